//! The commands that change settings, and restore them.

pub(crate) mod best;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod settings;

use crate::page::commands;

commands! { "Tune":
    Run(run),
    Settings(settings),
    Restore(restore),
}
