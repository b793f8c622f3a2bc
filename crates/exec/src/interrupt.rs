//! Interrupt service procedures: code that a source outside the executive fires.
//!
//! A source is a descriptor that becomes readable (a device, a socket, a pipe), a counter (eventfd, timerfd), or
//! software: any thread that calls [`Isp::post`]. Each descriptor has its own thread, which only waits for it. The
//! thread has a priority above all tasks if real-time priority is granted (on fibers: if the carrier asks for it). A
//! procedure is either
//!
//! * *raw*: it makes no executive calls and runs at once on the source's thread, or
//! * *conforming*: it gets an [`IspCtx`](crate::IspCtx), with exactly the calls that cannot wait, and runs above all
//!   tasks: in the thread back-end on the source's thread, in the fiber back-end on the carrier, at the end of the call
//!   or the run of a task that is made next, or at a `preempt_point()`, on the stack of that task.
//!
//! Arrivals wait in a bounded ring. An arrival that finds the ring full is lost and counted
//! ([`Finish::interrupts_lost`](crate::Finish::interrupts_lost)). [`Finish::sources`](crate::Finish::sources) names the
//! sources that lost arrivals, could not be read, or ended.

mod doorbell;
mod health;
mod ring;
mod source;

use hairspring_machine::{Host, Instant, Machine};
use std::os::fd::OwnedFd;
use std::sync::Arc;

pub(crate) use doorbell::Doorbell;
pub(crate) use health::Health;
pub(crate) use ring::{RING_SLOTS, Ring};
pub(crate) use source::SourceThread;

/// The source that fires a procedure.
#[derive(Debug)]
pub enum InterruptSource {
    /// [`Isp::post`], from any thread.
    Software,
    /// A readable descriptor: one arrival for each read of at most 4 KiB. The data are dropped. If the data matter,
    /// read the descriptor in a task of its own.
    Readable(OwnedFd),
    /// An eventfd or timerfd: one arrival for each read, with the count that was read.
    Counter(OwnedFd),
}

/// One firing of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arrival {
    /// The time of the post; for a descriptor, the time after its thread woke up and read it.
    pub at: Instant,
    /// The number of firings: the count read from an eventfd or timerfd, else 1.
    pub count: u64,
}

/// The receiver of an [`Isp`]'s posts.
pub(crate) trait Post: Send + Sync {
    fn post(&self, isp: u16, arrival: Arrival) -> bool;
}

/// An attached procedure; posting to it is the software interrupt. Cheap to clone, can be sent to any thread.
#[derive(Clone)]
pub struct Isp {
    pub(crate) number: u16,
    pub(crate) to: Arc<dyn Post>,
}

/// The ring was full; the arrival is lost and has been counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InterruptLost;

impl std::fmt::Display for InterruptLost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the interrupt ring is full ({RING_SLOTS} arrivals); this one is lost")
    }
}

impl std::error::Error for InterruptLost {}

impl Isp {
    /// Fires the procedure. Does not block. Wakes the executive if it sleeps, which takes one system call.
    ///
    /// # Errors
    /// The ring is full.
    pub fn post(&self) -> Result<(), InterruptLost> {
        let arrival = Arrival { at: Host.monotonic(), count: 1 };
        if self.to.post(self.number, arrival) { Ok(()) } else { Err(InterruptLost) }
    }

    /// The number of the procedure in the order of attachment, which traces use.
    pub fn number(&self) -> u16 {
        self.number
    }
}

impl std::fmt::Debug for Isp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "I{}", self.number)
    }
}
