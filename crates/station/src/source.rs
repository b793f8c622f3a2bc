//! [`EventSource`]: the origin of events, and how a thread waits for them.
//!
//! | source | an event is | stamped by | several at once |
//! | --- | --- | --- | --- |
//! | [`Timer`] | a multiple of its period | the time it was due | merged and counted |
//! | [`PreciseTimer`] | the same, waited for by polling its end | the time it was due | merged and counted |
//! | [`Counter`] | an addition to an eventfd | the waiting thread | merged and counted |
//! | [`Readable`] | a read, or a line, of a pipe, a socket, a terminal | the waiting thread | each line is an event |
//! | [`Datagrams`] | a UDP datagram, to this host or to a group | the kernel | each waits; drops are counted |
//! | [`Interrupts`](interrupt::Interrupts) | interrupt, GPIO edge | the thread, GPIO: kernel | merged and counted |
//! | [`Pps`] | a pulse of a clock, `/dev/pps0` | the kernel | the last is kept, the others are counted |
//! | [`Sleeper`](crate::Sleeper) | a [`Signal`](crate::Signal) | the code that fires it | 63 wait; others are counted |
//! | [`Poller`](crate::Poller) | the same, by polling | the code that fires it | 63 wait; others are counted |
//!
//! **Numbers.** A source numbers its events from 1; a thread that joins a signal later begins after the last one fired.
//! Every number is either that of a returned event, or is counted in the `missed` of the next returned one.
//!
//! **Events between two waits.** An event that arrives while no thread waits is recognised by its stamp. If the waiting
//! thread stamps the events itself, it first checks whether one is there already, and sets `waited`; how long that
//! event has waited is unknown.
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
    /// Name for logs and messages.
    fn name(&self) -> String;

    /// The number before the first event.
    fn begins_after(&self) -> u64 {
        0
    }

    /// Uses this successor of its time base from now on, see [`HeldTimebase`](hairspring_time::HeldTimebase).
    /// Allocates.
    fn adopt(&mut self, successor: Timebase<M>);

    /// Waits for the next event; `None` after a stop, or if there will be no more.
    ///
    /// # Errors
    /// The source is gone or refuses.
    fn wait(&mut self) -> Result<Option<Event>, DeviceError>;
}

/// Whether data can be read already.
fn has_come(from: BorrowedFd<'_>) -> Result<bool, DeviceError> {
    system::wait_readable(from, Nanos::ZERO).map_err(|error| failed("look for events", &error))
}

/// Converts a kernel stamp of the time of day to our scale: as long before now as it is by that clock. No thread wakes
/// before the event, so the result is at most `wake` even if the clock was stepped.
fn taken<M: Machine>(timebase: &Timebase<M>, realtime: Nanos, wake: Instant) -> Instant {
    let ago = timebase.machine().read(Clock::Realtime) - realtime;
    let taken = timebase.now() + Nanos::new(ago.count().max(0).saturating_neg());
    if taken.since(wake).is_ok_and(|after| after > Nanos::ZERO) { wake } else { taken }
}

/// The error for a failed system call of a source.
fn failed(attempted: impl Into<String>, error: &std::io::Error) -> DeviceError {
    refusal(attempted, error, "check the name, and see the kernel's log (dmesg)")
}
