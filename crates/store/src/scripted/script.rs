//! [`DiskScript`]: the properties of a scripted disk, and its faults.

use hairspring_machine::Nanos;

use crate::Errno;
use hairspring_ring::units::{ByteRate, Bytes};

/// The properties of a disk. `DiskScript::default()` completes everything at once, never fails, and requires pieces of
/// 512 bytes.
#[derive(Clone, Debug)]
pub struct DiskScript {
    /// The seed of all random decisions.
    pub seed: u64,
    /// The clock that advances the disk's time.
    pub pace: Pace,
    /// The shortest time of an operation.
    pub least_latency: Nanos,
    /// The longest time; operations take random times between the two, so completions come in any order.
    pub most_latency: Nanos,
    /// The rate at which data move, one operation after the other; `None` for no limit.
    pub rate: Option<ByteRate>,
    /// Its capacity; `None` for no limit.
    pub capacity: Option<Bytes>,
    /// A reservation without room takes the free space before it fails, as on ext4.
    pub refused_takes_all: bool,
    /// Data files require offsets and lengths that are multiples of this, a power of two. Others are refused with
    /// `EINVAL`, as for direct I/O.
    pub alignment: u64,
    /// Keeps only the lengths of files, which read as zeros. For volumes that do not fit into memory.
    pub forgetful: bool,
    /// The faults. If several match an operation, the first applies.
    pub faults: Vec<Fault>,
}

impl Default for DiskScript {
    fn default() -> Self {
        Self {
            seed: 0,
            pace: Pace::Stepped,
            least_latency: Nanos::ZERO,
            most_latency: Nanos::ZERO,
            rate: None,
            capacity: None,
            refused_takes_all: false,
            alignment: 512,
            forgetful: false,
            faults: Vec::new(),
        }
    }
}

/// The clock that advances a disk's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Only `ScriptedDisk::advance`.
    Stepped,
    /// Also `Store::wait`: the time leaps to the next completion, or to the end of the wait.
    Leaping,
    /// `CLOCK_MONOTONIC`.
    Real,
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of operations that it matches; `None` for all.
    pub kind: Option<OpKind>,
    /// Matches only files whose path contains this; `None` for all.
    pub file: Option<String>,
    /// Which of the matching operations it strikes.
    pub when: When,
    /// The effect on the operation.
    pub what: What,
}

impl Fault {
    /// Strikes the `n`th operation of a kind, counted from 1.
    pub fn nth(kind: OpKind, n: u64, what: What) -> Self {
        Self { kind: Some(kind), file: None, when: When::Nth(n), what }
    }

    /// The disk crashes at its `n`th operation of any kind, counted from 1.
    pub fn crash_at(n: u64) -> Self {
        Self { kind: None, file: None, when: When::Nth(n), what: What::Crash }
    }

    /// Lets only this many bytes be written: the disk reports that it is full although space could be reserved.
    pub fn full_after(bytes: Bytes) -> Self {
        let what = What::Error(Errno(libc::ENOSPC));
        Self { kind: Some(OpKind::Write), file: None, when: When::AfterBytes(bytes), what }
    }

    /// The same on some files only.
    #[must_use]
    pub fn on(self, file: &str) -> Self {
        Self { file: Some(file.to_owned()), ..self }
    }
}

/// Which of the matching operations a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The nth, counted from 1.
    Nth(u64),
    /// The nth and all that come after it.
    From(u64),
    /// Every operation after this many bytes in total. An operation that crosses the limit is cut short there.
    AfterBytes(Bytes),
}

/// The effect of a fault on an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It fails. The changes of a failed sync never become durable.
    Error(Errno),
    /// It moves at most this many bytes.
    Short(u64),
    /// First the whole disk stalls for this long.
    Stall(Nanos),
    /// The disk confirms a sync of a file or a folder without doing it; a file that is put exists, but is not durable.
    /// Other operations are unchanged.
    Lie,
    /// The disk disappears. Operations under way are done, half done or not done, as the seed decides, and all later
    /// ones fail with `ENODEV`.
    Crash,
}

/// The kinds of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, clippy::allow_attributes, reason = "each is named as what it stands for in the trait")]
pub enum OpKind {
    Write,
    Read,
    Sync,
    Allocate,
    Open,
    Truncate,
    Put,
    Remove,
    Rename,
    SyncFolder,
}

/// Repeatable random numbers: SplitMix64.
#[derive(Clone, Debug)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A random number below `n`, which is not 0. Small numbers are slightly more frequent, which does not matter here.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(super) fn coin(&mut self) -> bool {
        self.next() >> 63 == 1
    }
}
