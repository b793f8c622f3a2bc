//! The records of the timers, and the procedures that are due.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::id::{Moment, TimerId};

/// A cache line of its own, so that an expiry touches one.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Timer {
    pub(crate) generation: u16,
    pub(crate) alive: bool,
    /// Its procedure is due and has not been handed out.
    pub(crate) due: bool,
    pub(crate) period_ns: u64,
    /// Expirations that the next run of its procedure stands for besides its own.
    pub(crate) missed: u64,
    /// Total of missed expiries.
    pub(crate) overruns: u64,
    /// The deadline that the procedure runs for.
    pub(crate) deadline: Moment,
    pub(crate) node: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Timers {
    pub(crate) slots: Vec<Timer>,
    pub(crate) free: Vec<u16>,
    pub(crate) due: VecDeque<TimerId>,
}

/// Deadline and misses of the expiry for which a timer's procedure is called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Expired {
    /// The moment at which it was due.
    pub deadline: Moment,
    /// Expirations before this one that had no run of their own.
    pub missed: u64,
    /// All that the timer missed since it was started.
    pub overruns: u64,
}
