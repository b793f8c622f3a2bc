//! `hairspring`: translates arguments, prints, exits. Nothing else does.

mod arguments;
mod beside;
mod clock;
mod compare;
mod delay;
mod distribution;
mod exit;
mod generate;
mod historic;
mod host;
mod interrupt;
mod output;
mod placement;
mod probes;
mod progress;
mod sheet;

// What only this system has is found like the rest.
pub(crate) use host::system::*;

use clap::Parser;

use arguments::{Arguments, Command};
use exit::{Exit, Failure};

fn main() -> std::process::ExitCode {
    let exit = match run(Arguments::parse()) {
        Ok(exit) => exit,
        Err(failure) => {
            output::complain(&failure.text);
            failure.exit
        }
    };
    std::process::ExitCode::from(exit.code())
}

fn run(arguments: Arguments) -> Result<Exit, Failure> {
    match arguments.command {
        Command::Sheet(arguments) => sheet::run(&arguments),
        Command::Delay(arguments) => delay::run(&arguments),
        Command::Clock(arguments) => clock::run(&arguments),
        Command::System(command) => command.run(),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Probes(arguments) => probes::run(&arguments),
        Command::Schema => output::print(&hairspring_sheet::render::schema()),
        Command::ExitCodes => output::print(&exit::table()),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man => generate::man(),
    }
}
