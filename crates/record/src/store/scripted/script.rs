//! [`DiskScript`]: what a scripted disk is like, and what goes wrong on it.

use hairspring_machine::Nanos;

use crate::store::Errno;
use hairspring_ring::units::{ByteRate, Bytes};

/// What a disk is like. `DiskScript::default()` is one that does everything at once, never fails, and wants pieces of 512 bytes.
#[derive(Clone, Debug)]
pub struct DiskScript {
    /// Everything that is left to chance follows from it.
    pub seed: u64,
    /// What moves the disk's time.
    pub pace: Pace,
    /// The least that an operation takes.
    pub least_latency: Nanos,
    /// The most; each takes something in between, so that completions come in any order.
    pub most_latency: Nanos,
    /// How fast data move, one operation after the other; `None` for no limit.
    pub rate: Option<ByteRate>,
    /// What fits on it; `None` for no limit.
    pub capacity: Option<Bytes>,
    /// Data files want offsets and lengths that are multiples of this; others are refused with `EINVAL`, as for direct I/O. A
    /// power of two.
    pub alignment: u64,
    /// Keeps only the lengths of files; they read as zeros. For asking how a disk would do on more than memory holds.
    pub forgetful: bool,
    /// What goes wrong. If several fit one operation, the first of them happens.
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
            alignment: 512,
            forgetful: false,
            faults: Vec::new(),
        }
    }
}

/// What moves a disk's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Only `ScriptedDisk::advance`.
    Stepped,
    /// Also `Store::wait`: it moves to the next completion, or to the moment until which is waited.
    Leaping,
    /// `CLOCK_MONOTONIC`.
    Real,
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Which operations it looks at; `None` for all.
    pub kind: Option<OpKind>,
    /// Only those on files in whose path this occurs; `None` for all.
    pub file: Option<String>,
    /// Which of these it strikes.
    pub when: When,
    /// What happens.
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

    /// No more than so many bytes can be written: the disk says it is full, although space could be reserved on it.
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

/// Which of the operations that a fault looks at it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// The nth, counted from 1.
    Nth(u64),
    /// The nth and all that come after it.
    From(u64),
    /// Each that would move more than so many bytes altogether. One that reaches over the limit is cut short there.
    AfterBytes(Bytes),
}

/// What happens to an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It fails. After a failed sync, what it was to make durable never is.
    Error(Errno),
    /// It moves no more than so many bytes.
    Short(u64),
    /// The whole disk stands still for so long first.
    Stall(Nanos),
    /// The disk is gone: what is under way is done, half done or not done by seed, and everything fails from now on with
    /// `ENODEV`.
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
    SyncFolder,
}

/// Chance that can be repeated: SplitMix64.
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

    /// One of `n` numbers from 0. `n` is not 0; that small ones come up a little more often does not matter here.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(super) fn coin(&mut self) -> bool {
        self.next() >> 63 == 1
    }
}
