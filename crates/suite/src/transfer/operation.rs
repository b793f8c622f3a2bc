//! Operations on memory: copy, read, write, copy around the caches.

use std::hint::black_box;

use crate::host;

/// One way to move through memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The standard library's copy, which is the C library's `memcpy`.
    Copy,
    /// The sum of all words, with the widest loads there are.
    Read,
    /// The standard library's fill, which is the C library's `memset`.
    Write,
    /// A copy with non-temporal stores, which go around the caches.
    CopyNt,
}

/// Byte written by [`Operation::Write`].
const FILL: u8 = 0x5a;

impl Operation {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Copy, Self::Read, Self::Write, Self::CopyNt];

    /// Its segment in ids.
    pub fn segment(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Read => "read",
            Self::Write => "write",
            Self::CopyNt => "copy_nt",
        }
    }

    /// Its display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Copy => "copy",
            Self::Read => "read",
            Self::Write => "write",
            Self::CopyNt => "copy, non-temporal",
        }
    }

    /// The bytes counted, and those that really move.
    pub(super) fn counts(self) -> &'static str {
        match self {
            Self::Copy => {
                "bytes copied by the standard library's copy (memcpy): each is read once and written once, and most processors \
                 read the target before they write it (write-allocate), so up to three times as many bytes move"
            }
            Self::Read => "bytes read: the sum of all words with the widest loads of the processor",
            Self::Write => {
                "bytes filled by the standard library's fill (memset): most processors read them before they write them \
                 (write-allocate), so up to twice as many bytes move"
            }
            Self::CopyNt => {
                "bytes copied with non-temporal stores, which do not read the target first: each is read once and written \
                 once, so twice as many bytes move"
            }
        }
    }

    pub(super) fn is_copy(self) -> bool {
        matches!(self, Self::Copy | Self::CopyNt)
    }

    /// Runs the operation once. `black_box` keeps the compiler from removing it.
    #[inline]
    pub(super) fn run(self, source: &[u8], target: &mut [u8]) {
        let (source, target) = (black_box(source), black_box(target));
        match self {
            Self::Copy => target.copy_from_slice(source),
            Self::Read => {
                black_box(host::read(source));
            }
            Self::Write => target.fill(black_box(FILL)),
            Self::CopyNt => host::copy(source, target),
        }
        black_box(target);
    }
}
