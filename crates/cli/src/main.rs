//! `hairspring`: the only program that translates arguments, prints and exits; the libraries do not.

mod arguments;
mod command;
#[cfg(target_os = "linux")]
mod conclude;
#[cfg(target_os = "linux")]
mod drive;
mod exit;
#[cfg(target_os = "linux")]
mod hidden;
mod histogram;
mod host;
mod interrupt;
#[cfg(target_os = "linux")]
mod listing;
mod measure;
mod output;
mod page;
mod placement;
mod process;
#[cfg(target_os = "linux")]
mod progress_line;
#[cfg(target_os = "linux")]
mod record;
mod reference;
#[cfg(target_os = "linux")]
mod table;
#[cfg(target_os = "linux")]
mod tune;

fn main() -> std::process::ExitCode {
    process::begin();
    let exit = match command::Line::of_this_process().run() {
        Ok(exit) => exit,
        Err(failure) => {
            output::complain(&failure.text);
            failure.exit
        }
    };
    std::process::ExitCode::from(exit.code())
}
