//! [`Node`]: an open file of the kernel's sound interface, and its requests as safe functions.
//!
//! Nothing here blocks: files are opened without waiting, and a read or write that would wait is refused.

#![expect(unsafe_code, reason = "ioctl with structures, some of which hold addresses")]

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use zerocopy::{FromBytes, IntoBytes};

use super::abi::{ELEM_LIST, ElemId, READ_FRAMES, Request, WRITE_FRAMES};

/// `struct snd_xferi`.
#[repr(C)]
struct Transfer {
    result: i64,
    buffer: *mut u8,
    frames: u64,
}

/// `struct snd_ctl_elem_list`.
#[repr(C)]
struct ElemList {
    offset: u32,
    space: u32,
    used: u32,
    count: u32,
    ids: *mut ElemId,
    reserved: [u8; 50],
}

const _: () = assert!(size_of::<Transfer>() == 24 && size_of::<ElemList>() == 80, "as the requests' numbers say");

/// An open file below `/dev/snd`.
#[derive(Debug)]
pub(super) struct Node(File);

impl Node {
    /// Opens a file without waiting for it.
    pub(super) fn open(path: &Path, write: bool) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(write).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC);
        Ok(Self(options.open(path)?))
    }

    /// Passes a value, which the kernel may change.
    pub(super) fn exchange<T: FromBytes + IntoBytes>(&self, request: &Request<T>, value: &mut T) -> io::Result<()> {
        // SAFETY: the number encodes the size of `T`, which is all that the kernel copies; any bits are a `T`, and it
        // lives until the call returns.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request.number as _, std::ptr::from_mut(value)) };
        checked(result)
    }

    /// Makes a request without a value.
    pub(super) fn command(&self, number: libc::c_ulong) -> io::Result<()> {
        // SAFETY: a request of this kind touches no memory of ours.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), number as _) };
        checked(result)
    }

    /// Reads whole frames of `frame_bytes`. Returns their number.
    pub(super) fn read_frames(&self, into: &mut [u8], frame_bytes: u64) -> io::Result<u64> {
        let frames = into.len() as u64 / frame_bytes;
        let mut transfer = Transfer { result: 0, buffer: into.as_mut_ptr(), frames };
        // SAFETY: the kernel writes at most `frames` frames to the address, which are within `into`; it knows
        // `frame_bytes` from the set-up that the caller made with this size. Both live until the call returns.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), READ_FRAMES as _, &raw mut transfer) })?;
        Ok(u64::try_from(transfer.result).unwrap_or(0))
    }

    /// Writes whole frames of `frame_bytes`. Returns their number.
    pub(super) fn write_frames(&self, from: &[u8], frame_bytes: u64) -> io::Result<u64> {
        let frames = from.len() as u64 / frame_bytes;
        let mut transfer = Transfer { result: 0, buffer: from.as_ptr().cast_mut(), frames };
        // SAFETY: the kernel only reads at most `frames` frames from the address, which are within `from`; as above.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), WRITE_FRAMES as _, &raw mut transfer) })?;
        Ok(u64::try_from(transfer.result).unwrap_or(0))
    }

    /// The ids of a card's elements. Returns the number of ids written.
    pub(super) fn elements(&self, ids: &mut [ElemId]) -> io::Result<usize> {
        let space = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let mut list = ElemList { offset: 0, space, used: 0, count: 0, ids: ids.as_mut_ptr(), reserved: [0; 50] };
        // SAFETY: the kernel writes at most `space` ids to the address, which is as many as `ids` has; any bits are an
        // id.
        checked(unsafe { libc::ioctl(self.0.as_raw_fd(), ELEM_LIST as _, &raw mut list) })?;
        Ok((list.used as usize).min(ids.len()))
    }
}

impl AsFd for Node {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
