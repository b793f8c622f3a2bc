//! [`Event`]: something that happened outside, with its stamp and the origin of the stamp.

use hairspring_time::Instant;

/// Origin of the stamp of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stamped {
    /// The event has no stamp of its own: its time is the one at which it was due.
    Due,
    /// The thread that fired it, just before.
    Sender,
    /// The kernel, when it took the interrupt or the packet.
    Kernel,
    /// The waiting thread, after reading it: earlier delays are in no figure.
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
    /// Origin of the stamp.
    pub stamped: Stamped,
    /// When the waiting thread got it.
    pub wake: Instant,
    /// The event was there before the thread waited for it again. Set where the stamp cannot show that:
    /// [`Stamped::Wake`].
    pub waited: bool,
    /// Its number at its source, from 1. Numbers that are left out were merged into it or lost on the way.
    pub sequence: u64,
    /// Numbers skipped since the event before.
    pub missed: u64,
    /// The sender's number for this turn of the machine: the accelerator's cycle, the shot, the frame.
    pub cycle: Option<u64>,
}
