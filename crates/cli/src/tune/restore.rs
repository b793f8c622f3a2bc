//! `hairspring restore`: undoes what a command has changed that was killed.

use clap::Args;
use hairspring_settings::{Changes, JOURNAL, Restored};

use crate::exit::{Exit, Failure};
use crate::output;
use crate::page::{Example, Page};

pub(crate) const PAGE: Page = Page {
    name: "restore",
    examples: &[Example { does: "Undo what a killed command left changed", line: "hairspring restore" }],
    files: &[(JOURNAL, "old values of settings of the machine, while they are changed")],
    environment: &[],
};

#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Wait until the command has ended that has changed settings now; `run` starts this for the case that it is killed itself
    #[arg(long, hide = true)]
    wait: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let restored = if arguments.wait {
        // Signals of the terminal, and those for all of a job, are not for the guardian.
        let _ = rustix::process::setsid();
        Changes::wait_and_restore()
    } else {
        Changes::restore_leftovers()
    };
    let restored = restored.map_err(|error| Failure::failed(format!("failed to {error}; run it as root")))?;
    if restored.is_empty() {
        output::print("Nothing to restore.\n")?;
    }
    for line in &restored {
        output::print(&format!("{line}\n"))?;
    }
    Ok(if restored.iter().all(Restored::is_good) { Exit::Success } else { Exit::Failed })
}

/// Before any other command: restores what one has left that was killed, and says so.
pub(crate) fn leftovers() {
    match Changes::restore_leftovers() {
        Ok(restored) => tell(&restored),
        Err(error) => output::complain(&format!(
            "a command that was killed has left settings changed, and they could not be restored: {error}; run \
             `hairspring restore` as root"
        )),
    }
}

/// What a command has left that was killed.
pub(crate) fn tell(restored: &[Restored]) {
    for line in restored {
        output::complain(&format!("restored after a command that was killed: {line}"));
    }
}
