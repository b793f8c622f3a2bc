//! Removes a file whose space is freed in pieces, because freeing a large file at once can hold up the journal of its
//! file system.
//!
//! **Problem.** Space is freed in pieces by shortening the file. But a snapshot made of hard links has the same file
//! under another name, a process may have it mapped and would die of SIGBUS, and a reader that has it open would find
//! half of it.
//!
//! **Solution.** The name is removed first. The file is shortened only if no name is left and no other process has it
//! open or mapped; then no process can ever see it again. Otherwise the kernel frees it when its last user is gone.
//!
//! **Why it works.** The kernel grants a write lease only if the asking descriptor is the only one on the file,
//! mappings included. A file without a name cannot be opened anew. If the file system grants no leases, the file is not
//! shortened. The target of a symbolic link is never opened, so only the link is removed.

#![expect(unsafe_code, reason = "on the ledger: the lease that shows that a file has no other user")]

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use libc::c_int;

use super::{StoreError, folder};

/// Bytes that are freed at once.
const PIECE: u64 = 1 << 30;
/// Chooses the signal for the end of the lease; the same number on every architecture of Linux.
const F_SETSIG: c_int = 10;

/// Removes a file, and frees its space in pieces where no other process can see it. `removed` is called when the name
/// is gone; it closes the descriptors that this process has on the file. Blocks.
///
/// # Errors
/// The name cannot be removed. Space that cannot be freed in pieces is freed at once.
pub(super) fn discard(path: &Path, removed: impl FnOnce()) -> Result<(), StoreError> {
    let kept_open = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path).ok();
    folder::remove(path)?;
    removed();
    let Some(file) = kept_open else { return Ok(()) };
    let Ok(facts) = file.metadata() else { return Ok(()) };
    if !facts.is_file() || facts.nlink() > 0 || !is_alone(&file) {
        return Ok(());
    }
    let mut length = facts.len();
    while length > PIECE {
        length -= PIECE;
        if file.set_len(length).is_err() {
            break;
        }
    }
    Ok(())
}

/// Whether this descriptor is the only one on its file, mappings included.
fn is_alone(file: &File) -> bool {
    let control = |command: c_int, value: c_int| {
        // SAFETY: the descriptor is open as long as `file` is borrowed, and these commands take an integer, no pointer.
        unsafe { libc::fcntl(file.as_raw_fd(), command, value) == 0 }
    };
    // An open of the file while the lease is held would send SIGIO, which ends a process; SIGURG is ignored.
    control(F_SETSIG, libc::SIGURG)
        && control(libc::F_SETLEASE, libc::F_WRLCK)
        && control(libc::F_SETLEASE, libc::F_UNLCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_somebody_else_has_open_or_that_has_another_name_keeps_its_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("x"), b"good data").expect("written");
        std::fs::hard_link(path("x"), path("snapshot")).expect("linked");
        std::os::unix::fs::symlink(path("snapshot"), path("link")).expect("linked");
        discard(&path("x"), || ()).expect("removed");
        discard(&path("link"), || ()).expect("removed");
        assert_eq!(std::fs::read(path("snapshot")).expect("it is there"), b"good data");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);

        let reader = File::open(path("snapshot")).expect("it is there");
        let writer = OpenOptions::new().write(true).open(path("snapshot")).expect("it is there");
        assert!(!is_alone(&writer), "a reader has the file open");
        drop(writer);
        discard(&path("snapshot"), || ()).expect("removed");
        assert_eq!(std::io::read_to_string(reader).expect("readable"), "good data");
        assert!(discard(&path("snapshot"), || ()).is_err_and(|error| error.errno.0 == libc::ENOENT));
    }
}
