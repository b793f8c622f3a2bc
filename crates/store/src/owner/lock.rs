//! [`Lock`]: the lock of an open file description.

#![expect(unsafe_code, reason = "fcntl with the kernel's description of a lock")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};

use super::{Errno, Holder, PathFacts, Work};

/// A file whose lock is held until this is dropped.
#[derive(Debug)]
pub(super) struct Lock(File);

/// The answer to an attempt to lock.
pub(super) enum Answer {
    Taken(Lock),
    /// Another owner has it.
    Refused,
}

impl Lock {
    /// Takes the lock of a file that is open for writing, or for reading if it is copied. Does not wait.
    ///
    /// # Errors
    /// There are no locks here.
    pub(super) fn take(file: File, work: Work) -> Result<Answer, Errno> {
        match call(file.as_raw_fd(), libc::F_OFD_SETLK, kind(work), work.first_byte()) {
            Ok(_) => Ok(Answer::Taken(Self(file))),
            Err(error) => match error.raw_os_error().unwrap_or(libc::EIO) {
                libc::EAGAIN | libc::EACCES => Ok(Answer::Refused),
                errno => Err(Errno(errno)),
            },
        }
    }

    /// Changes the work that the lock publishes.
    pub(super) fn turn(&self, work: Work) -> io::Result<()> {
        let file = self.0.as_raw_fd();
        // Never without a lock: it grows first, and is shortened from its beginning.
        call(file, libc::F_OFD_SETLK, kind(work), work.first_byte())?;
        if work.first_byte() > 0 {
            call_on(file, libc::F_OFD_SETLK, libc::F_UNLCK, 0, work.first_byte())?;
        }
        Ok(())
    }

    pub(super) fn is_of(&self, file: &PathFacts) -> bool {
        self.facts().is_some_and(|own| own.is_same_file(file))
    }

    pub(super) fn facts(&self) -> Option<PathFacts> {
        self.0.metadata().ok().map(|found| PathFacts::from(&found))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child that was forked meanwhile has the description, too: closing it here would not end the lock.
        let _ = call(self.0.as_raw_fd(), libc::F_OFD_SETLK, libc::F_UNLCK, 0);
    }
}

/// The holder of the lock of a file that is open for reading.
pub(super) fn holder(file: &File) -> io::Result<Option<Holder>> {
    // A lock of this very description is not shown; none is taken on it.
    let found = call(file.as_raw_fd(), libc::F_OFD_GETLK, libc::F_WRLCK, 0)?;
    if libc::c_int::from(found.l_type) == libc::F_UNLCK {
        return Ok(None);
    }
    let PathFacts { device, inode, .. } = PathFacts::from(&file.metadata()?);
    let work = Work::of_first_byte(u64::try_from(found.l_start).unwrap_or(0));
    Ok(Some(Holder { work, device, inode }))
}

fn kind(work: Work) -> libc::c_int {
    if work == Work::Copies { libc::F_RDLCK } else { libc::F_WRLCK }
}

/// Acts on all bytes of a file from `first` on.
fn call(file: RawFd, command: libc::c_int, kind: libc::c_int, first: u64) -> io::Result<libc::flock> {
    call_on(file, command, kind, first, 0)
}

/// Acts on some bytes of a file; a length of 0 reaches to the end, wherever that is.
fn call_on(file: RawFd, command: libc::c_int, kind: libc::c_int, first: u64, length: u64) -> io::Result<libc::flock> {
    let narrow = |number: libc::c_int| libc::c_short::try_from(number).unwrap_or_default();
    let wide = |number: u64| libc::off_t::try_from(number).unwrap_or(libc::off_t::MAX);
    let mut lock = libc::flock {
        l_type: narrow(kind),
        l_whence: narrow(libc::SEEK_SET),
        l_start: wide(first),
        l_len: wide(length),
        // The kernel requires it for these commands.
        l_pid: 0,
    };
    loop {
        // SAFETY: these three commands read and write one `flock`, which `lock` is and which lives through the call. A
        // descriptor that is closed is an error.
        let result = unsafe { libc::fcntl(file, command, &raw mut lock) };
        if result == 0 {
            return Ok(lock);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
