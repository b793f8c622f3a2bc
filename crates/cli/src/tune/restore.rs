//! `hairspring restore`: undoes the changes of a killed command.

use clap::Args;
use hairspring_settings::{Changes, JOURNAL, Restored};

use crate::exit::{Exit, Failure};
use crate::output;
use crate::page::{Example, Page};

pub(crate) const PAGE: Page = Page {
    name: "restore",
    examples: &[Example { does: "Undo the changes that a killed command left", line: "hairspring restore" }],
    files: &[(JOURNAL, "old values of settings of the machine, while they are changed")],
    environment: &[],
};

/// Restore settings that a killed command left changed
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Wait until the command that now changes settings has ended; `run` starts this in case it is killed
    #[arg(long, hide = true)]
    wait: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let restored = if arguments.wait {
        // The guardian ignores signals from the terminal and to the whole process group.
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

/// Before any other command: restores the changes of a killed one, and reports that.
pub(crate) fn leftovers() {
    match Changes::restore_leftovers() {
        Ok(restored) => tell(&restored),
        Err(error) => output::complain(&format!(
            "a killed command left settings changed, and they could not be restored: {error}; run \
             `hairspring restore` as root"
        )),
    }
}

/// The changes of a killed command, as text.
pub(crate) fn tell(restored: &[Restored]) {
    for line in restored {
        output::complain(&format!("restored after a killed command: {line}"));
    }
}
