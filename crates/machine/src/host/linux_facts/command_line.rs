//! The command line that the kernel was started with.

use super::root::{self, Root};
use crate::facts::Unread;

/// The command line the kernel was started with.
pub(super) fn read(root: &Root) -> Result<String, Unread> {
    root::line(&root.proc.join("cmdline"))
}

/// The value of an option of the kernel's command line, the last if it is there more than once, as the kernel takes it.
pub(super) fn option(root: &Root, name: &str) -> Result<Option<String>, Unread> {
    // Words after `--` are for the first process, not for the kernel.
    Ok(read(root)?
        .split_whitespace()
        .take_while(|word| *word != "--")
        .filter_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        .last()
        .map(|value| value.trim_matches('"').to_owned()))
}
