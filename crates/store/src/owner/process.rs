//! [`OwnerProcess`]: the process that holds the lock of a file.
//!
//! The kernel does not return it: the lock belongs to an open file description, which several processes can share.
//! `/proc/PID/fdinfo` lists the locks of each descriptor. The device there is that of the file system, which can differ
//! from that of the file (btrfs, overlays), so the file itself is compared.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A process that owns a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerProcess {
    /// Its number and its name.
    Found(u32, String),
    /// It cannot be seen from here: why.
    Hidden(&'static str),
}

impl fmt::Display for OwnerProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Found(number, name) => write!(f, "process {number} ({name})"),
            Self::Hidden(why) => write!(f, "another process ({why})"),
        }
    }
}

/// Looks for the process that holds the lock of a file.
pub(super) fn holding(device: u64, inode: u64) -> OwnerProcess {
    let Ok(entries) = fs::read_dir("/proc") else {
        return OwnerProcess::Hidden("there is no /proc to look it up");
    };
    let mut refused = false;
    for entry in entries.flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        match holds(&entry.path(), device, inode) {
            Ok(true) => {
                let name = fs::read(entry.path().join("comm")).unwrap_or_default();
                let name: String = String::from_utf8_lossy(&name).chars().filter(|one| !one.is_control()).collect();
                return OwnerProcess::Found(number, name);
            }
            Ok(false) => {}
            Err(error) => refused |= error.kind() == io::ErrorKind::PermissionDenied,
        }
    }
    OwnerProcess::Hidden(match refused {
        true => "it belongs to another user, or runs in another container or on another computer",
        false => "it runs in another container or on another computer, or has ended",
    })
}

/// Whether a process has a descriptor with the lock of a file.
fn holds(process: &Path, device: u64, inode: u64) -> io::Result<bool> {
    for entry in fs::read_dir(process.join("fdinfo"))?.flatten() {
        let Ok(text) = fs::read_to_string(entry.path()) else { continue };
        let is_locked = text.lines().any(|line| line.starts_with("lock:") && line.contains(" OFDLCK "));
        if !is_locked {
            continue;
        }
        // Follows the descriptor, not the name that the file had.
        let file = fs::metadata(process.join("fd").join(entry.file_name()));
        if file.is_ok_and(|file| (file.dev(), file.ino()) == (device, inode)) {
            return Ok(true);
        }
    }
    Ok(false)
}
