//! [`EventSource`]: what events come from, and how a thread waits for them.
//!
//! | source | an event is | stamped by | several at once |
//! | --- | --- | --- | --- |
//! | [`Timer`] | a multiple of its period | the time it was due | merged and counted |
//! | [`PreciseTimer`] | the same, waited for by polling its end | the time it was due | merged and counted |
//! | [`Counter`] | what is added to an eventfd | the waiting thread | merged and counted |
//! | [`Readable`] | a read, or a line, of any descriptor: a pipe, a socket, a terminal | the waiting thread | each line is an event |
//! | [`Datagrams`] | a UDP datagram, to this host or to a group | the kernel | each waits in the socket; what it drops is counted |
//! | [`Interrupts`](interrupt::Interrupts) | what a driver reports: GPIO edge, parallel port, UIO | the kernel (GPIO), or the waiting thread | merged and counted |
//! | [`Pps`] | a pulse of a clock, `/dev/pps0` | the kernel | the last is kept, the others are counted |
//! | [`Sleeper`](crate::Sleeper) | a [`Signal`](crate::Signal) that somebody fires | the code that fires it | 63 wait; others are counted |
//! | [`Poller`](crate::Poller) | the same, by polling | the code that fires it | 63 wait; others are counted |
//!
//! **Numbers.** A source numbers its events from 1; a thread that joins a signal later begins after the last one fired. Every number is
//! either that of an event that is handed out, or is counted in the `missed` of the next one that is.
//!
//! **What came meanwhile.** An event that came while nobody waited is known by its stamp. Where the waiting thread stamps it itself, it
//! looks first whether there is one already, and says so in `waited`; since when, nobody knows.
//!
//! **Real-time behaviour.** Waiting blocks and does not allocate. Each source belongs to one thread.

mod counter;
mod datagrams;
mod description;
pub mod interrupt;
mod pps;
mod readable;
mod timer;

pub use counter::{Counter, CounterWriter};
pub use datagrams::Datagrams;
pub use description::EventSourceDescription;
pub use pps::Pps;
pub use readable::{Each, Readable};
pub use timer::{PERIOD_LEAST, PreciseTimer, Timer};

use std::os::fd::BorrowedFd;

use hairspring_device::refusal::refusal;
use hairspring_device::{DeviceError, system};
use hairspring_machine::{Clock, Machine, Nanos};
use hairspring_time::{Instant, Timebase};

use crate::event::Event;

/// A source of events.
pub trait EventSource<M: Machine>: Send {
    /// What it is, for people.
    fn name(&self) -> String;

    /// The number that comes before the first event.
    fn begins_after(&self) -> u64 {
        0
    }

    /// Uses this successor of its time base from now on, see [`HeldTimebase`](hairspring_time::HeldTimebase). Allocates.
    fn adopt(&mut self, successor: Timebase<M>);

    /// Waits for the next event; `None` when it was told to stop, or there will be no more.
    ///
    /// # Errors
    /// The source is gone or refuses.
    fn wait(&mut self) -> Result<Option<Event>, DeviceError>;
}

/// Whether there is something to read already.
fn has_come(from: BorrowedFd<'_>) -> Result<bool, DeviceError> {
    system::wait_readable(from, Nanos::ZERO).map_err(|error| failed("look for events", &error))
}

/// When the kernel took something that it has stamped by its clock of the day, on our scale: as long ago as it is by that clock.
/// Nobody is woken before it is there, so what a step of the clock makes of it ends at `wake`.
fn taken<M: Machine>(timebase: &Timebase<M>, realtime: Nanos, wake: Instant) -> Instant {
    let ago = timebase.machine().read(Clock::Realtime) - realtime;
    let taken = timebase.now() + Nanos::new(ago.count().max(0).saturating_neg());
    if taken.since(wake).is_ok_and(|after| after > Nanos::ZERO) { wake } else { taken }
}

/// What a source says when a system call fails.
fn failed(attempted: impl Into<String>, error: &std::io::Error) -> DeviceError {
    refusal(attempted, error, "check the name, and see the kernel's log (dmesg)")
}
