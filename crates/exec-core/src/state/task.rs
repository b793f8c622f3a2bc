//! The record of one task.

use crate::call::{Bits, CallStatus};
use crate::id::{Priority, TaskId};
use crate::state::link::{Link, NIL};

/// State of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TaskState {
    /// Nothing: it waits to be triggered.
    Idle,
    /// It runs or could run (unless it is suspended).
    Ready,
    /// It waits for the event in [`Waiting`].
    Waiting,
    /// It panicked.
    Dead,
    /// The slot is free.
    Deleted,
}

/// The event that a waiting task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// Nothing.
    Nothing,
    /// A wake.
    Wake,
    /// Time.
    Delay,
    /// Signal bits of its own.
    Signals(Bits),
    /// Mail of this urgency (0–3), or any (4).
    Mail(u8),
    /// The acknowledgement of the message with this number.
    Acknowledgement(u32),
    /// A unit of the semaphore in this slot.
    Semaphore(u16),
    /// The resource in this slot.
    Resource(u16),
    /// Bits of the event group in this slot, and whether to clear them.
    Events(u16, Bits, bool),
    /// A message of the exchange in this slot.
    Exchange(u16),
    /// A block of the heap in this slot, with this number of units.
    Block(u16, u32),
    /// The end of the run of the task in this slot.
    End(u16),
}

/// The sender that waits for an acknowledgement, by the number of its message. One word: a load of two halves that were
/// stored one by one would have to wait for both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ticket(u64);

impl Ticket {
    /// No sender waits.
    pub(crate) const NONE: Self = Self(0);

    /// The number is not 0.
    pub(crate) fn new(sender: u16, number: u32) -> Self {
        Self(u64::from(number) << 16 | u64::from(sender))
    }

    pub(crate) fn sender(self) -> u16 {
        self.0 as u16
    }

    pub(crate) fn number(self) -> u32 {
        (self.0 >> 16) as u32
    }
}

/// The exceptional conditions of a task. Usually none is set, which one comparison tests for all.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(4))]
pub(crate) struct Marks {
    pub(crate) suspended: bool,
    pub(crate) killed: bool,
    /// A wake that came while it did not wait.
    pub(crate) latch: bool,
    /// [`TIMED`](Self::TIMED) and [`CALM`](Self::CALM).
    rest: u8,
}

impl Marks {
    pub(crate) const NONE: Self = Self { suspended: false, killed: false, latch: false, rest: 0 };
    /// Its deadline may be in the wheel.
    const TIMED: u8 = 1;
    /// It has set a threshold.
    const CALM: u8 = 2;

    /// Whether there is any. One load and one comparison, which deriving `PartialEq` would not make of it.
    #[inline(always)]
    pub(crate) fn any(self) -> bool {
        u32::from_ne_bytes([self.suspended.into(), self.killed.into(), self.latch.into(), self.rest]) != 0
    }

    /// Whether its deadline may be in the wheel.
    #[inline(always)]
    pub(crate) fn timed(self) -> bool {
        self.rest & Self::TIMED != 0
    }

    #[inline(always)]
    pub(crate) fn set_timed(&mut self, timed: bool) {
        self.rest = self.rest & !Self::TIMED | if timed { Self::TIMED } else { 0 };
    }

    /// Whether it has set a threshold.
    pub(crate) fn calm(self) -> bool {
        self.rest & Self::CALM != 0
    }

    pub(crate) fn set_calm(&mut self, calm: bool) {
        self.rest = self.rest & !Self::CALM | if calm { Self::CALM } else { 0 };
    }
}

/// A cache line of its own, so that a call touches one line of each task.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct Task {
    pub(crate) link: Link,
    pub(crate) state: TaskState,
    pub(crate) base: Priority,
    pub(crate) effective: Priority,
    /// The least urgent priority, unless it holds others off.
    pub(crate) threshold: Priority,
    pub(crate) marks: Marks,
    pub(crate) outcome: CallStatus,
    pub(crate) value: u32,
    pub(crate) generation: u16,
    /// Starts asked for and not yet made.
    pub(crate) starts: u16,
    /// First of the resources it owns.
    pub(crate) held: u16,
    /// The envelope it was handed and has not opened.
    pub(crate) handed: u16,
    /// The heap that granted it a block which it has not taken.
    pub(crate) granted_by: u16,
    /// The unit at which that block begins.
    pub(crate) granted: u32,
    pub(crate) waiting: Waiting,
    /// Its place in wait lists where the wait gave one.
    pub(crate) wait_at: Option<Priority>,
    pub(crate) signals: u32,
    pub(crate) ticket: Ticket,
    /// Its deadline in the wheel.
    pub(crate) node: u32,
}

/// One cache line: the fast paths touch no other of a task.
const _: () = assert!(size_of::<Task>() == 64);

impl Task {
    pub(crate) fn new(priority: Priority, generation: u16, node: u32) -> Self {
        Self {
            link: Link::default(),
            state: TaskState::Idle,
            base: priority,
            effective: priority,
            threshold: Priority::LOWEST,
            marks: Marks::NONE,
            outcome: CallStatus::Ok,
            value: 0,
            generation,
            starts: 0,
            held: NIL,
            handed: NIL,
            granted_by: NIL,
            granted: 0,
            waiting: Waiting::Nothing,
            wait_at: None,
            signals: 0,
            ticket: Ticket::NONE,
            node,
        }
    }

    pub(crate) fn id(&self, index: u16) -> TaskId {
        TaskId { index, generation: self.generation }
    }

    /// Whether it is the task that `me` means, in the middle of a run and not waiting, so that it can make calls.
    /// Without the feature `checks` always.
    #[inline(always)]
    pub(crate) fn runs_as(&self, me: TaskId) -> bool {
        !cfg!(feature = "checks") || self.generation == me.generation && self.state == TaskState::Ready
    }

    /// Whether it is in the ready list.
    #[inline]
    pub(crate) fn is_ready(&self) -> bool {
        self.state == TaskState::Ready && !self.marks.suspended
    }
}
