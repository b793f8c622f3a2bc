//! `hairspring`: translates arguments, prints, exits. Nothing else does.

mod account;
mod arguments;
mod beside;
mod chain;
mod clock;
mod compare;
mod delay;
mod distribution;
mod drawing;
mod exit;
mod export;
mod expose;
mod generate;
mod historic;
mod interrupt;
mod join;
mod listing;
mod live;
mod maxrate;
mod output;
mod placement;
mod plan;
mod play;
mod probes;
mod progress;
mod pulse;
mod record;
mod recording;
mod recover;
mod scope;
mod serve;
mod sheet;
mod table;
mod target;
mod trace;
mod verify;
mod way;

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
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Record(arguments) => record::run(&arguments),
        Command::Play(arguments) => play::run(&arguments),
        Command::Verify(arguments) => verify::run(&arguments),
        Command::Recover(arguments) => recover::run(&arguments),
        Command::Join(arguments) => join::run(&arguments),
        Command::Export(arguments) => export::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments),
        Command::Maxrate(arguments) => maxrate::run(&arguments),
        Command::Pulse(arguments) => pulse::run(&arguments),
        Command::Scope(arguments) => scope::run(&arguments),
        Command::Expose(arguments) => expose::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Probes(arguments) => probes::run(&arguments),
        Command::Chain { words } => chain::run(&words),
        Command::Schema => output::print(&hairspring_sheet::render::schema()),
        Command::ExitCodes => output::print(&exit::table()),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man => generate::man(),
    }
}
