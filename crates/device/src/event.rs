//! [`Event`]: something that happened outside, and who says when.

use hairspring_time::Instant;

/// Who stamped an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stamped {
    /// Nobody had to: it is the time at which it was due.
    Due,
    /// Whoever fired it, just before.
    Sender,
    /// The kernel, when it took the interrupt or the packet.
    Kernel,
    /// The waiting thread, when it had read it: what went before that is not in any figure.
    Wake,
}

impl Stamped {
    /// Its name in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Due => "due",
            Self::Sender => "sender",
            Self::Kernel => "kernel",
            Self::Wake => "wake",
        }
    }
}

/// A logical event, as the waiting thread gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it happened.
    pub at: Instant,
    /// Who says so.
    pub stamped: Stamped,
    /// When the waiting thread had it.
    pub wake: Instant,
    /// It had come before the thread came back to wait for it. Told where the stamp does not: [`Stamped::Wake`].
    pub waited: bool,
    /// Its number at its source, from 1. Numbers that are left out were merged into it or lost on the way.
    pub sequence: u64,
    /// How many numbers were left out since the event before.
    pub missed: u64,
    /// What its sender calls this turn of the machine: the accelerator's cycle, the shot, the frame.
    pub cycle: Option<u64>,
}
