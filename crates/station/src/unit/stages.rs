//! [`Stages`]: the stamps of one activation, from the event to the last access of the device.
//!
//! ```text
//!   event ──▶ wake ──▶ start ──▶ requested ──▶ granted ──▶ done ──▶ end
//!     source's way   dispatch   action      lock       device
//! ```

use hairspring_machine::Nanos;
use hairspring_time::Instant;

use crate::event::{Event, Stamped};
use crate::unit::Counts;

/// Times of the stages of one activation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// The number of its event.
    pub sequence: u64,
    /// The cycle that its event belongs to.
    pub cycle: Option<u64>,
    /// Events before this one that were not acted on.
    pub missed: u64,
    /// Origin of the event's stamp.
    pub stamped: Stamped,
    /// The event.
    pub event: Instant,
    /// The thread received it.
    pub wake: Instant,
    /// The action began.
    pub start: Instant,
    /// Access to the device, if there was one.
    pub access: Option<Access>,
    /// The action ended.
    pub end: Instant,
    /// It began later than allowed.
    pub late: bool,
    /// The event arrived before the previous action had ended.
    pub overrun: bool,
    /// The unit was disabled: no action ran.
    pub skipped: bool,
    /// Counts of the unit's events at that time, including events whose stamps found no room.
    pub counts: Counts,
}

/// The accesses of an activation: first request of the lock, and end of the last access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The lock of the device was asked for …
    pub requested: Instant,
    /// … and granted.
    pub granted: Instant,
    /// The last access was done.
    pub done: Instant,
}

impl Stages {
    pub(crate) fn begin(event: &Event, start: Instant) -> Self {
        let Event { at, stamped, wake, sequence, missed, cycle, .. } = *event;
        Self {
            sequence,
            cycle,
            missed,
            stamped,
            event: at,
            wake,
            start,
            access: None,
            end: start,
            late: false,
            overrun: false,
            skipped: false,
            counts: Counts::default(),
        }
    }

    /// From the event to the end of the last access; to the start of the action if there was no access. `None` if the
    /// time base has changed its epoch in between.
    pub fn total(&self) -> Option<Nanos> {
        self.access.map_or(self.start, |access| access.done).since(self.event).ok()
    }
}
