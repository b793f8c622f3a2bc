//! The core of the executive: a state machine that decides, and does nothing else.
//!
//! No clock, no stack, no thread, no allocation after objects are made, no `unsafe`: `(state, call) → (status, decision)`.
//! The back-ends of `hairspring-exec` give it those, one each way; what a service means is written there, in the manual.
//!
//! Without the feature `checks` an id of a task is taken at its word, except where a message is sent to it: one that was
//! deleted may mean its successor or nothing, one that never was panics, and a call by a task that is idle or waits is the
//! caller's error and makes the state wrong. Sending checks the id in every build, because the back-ends type messages by
//! it. Nothing else differs; all other ids, and everything that can be wrong without an error in the program (a full
//! mailbox, a deadlock, a count at its limit), are told in either case.
//!
//! How it is known to be right: each service and status by its own test, deadlines against a sorted list, random calls
//! against a naive executive, small systems in all their states, and a list of deliberate breaks each of which a named test
//! finds (`mutants.toml`).
//!
//! ```
//! use hairspring_exec_core::{By, Call, Core, Priority, Status, TaskId, Until};
//! # fn main() -> Result<(), Box<dyn core::error::Error>> {
//! let mut core = Core::new(8, ());
//! let mut task = |number| {
//!     let priority = Priority::new(number).ok_or("priorities are 0 to 63")?;
//!     Ok::<_, &str>(TaskId::from_number(core.apply(By::Outside, Call::CreateTask { priority, mailboxes: [0; 4] }).value))
//! };
//! let (low, high) = (task(20)?, task(10)?);
//! core.apply(By::Outside, Call::Trigger { task: low });
//! assert_eq!(core.first(), Some(low));
//! core.apply(By::Task(low), Call::Trigger { task: high });
//! assert_eq!(core.first(), Some(high), "the more urgent one preempts");
//! let reply = core.apply(By::Task(high), Call::Wait { until: Until::Forever });
//! assert_eq!((reply.status, core.first()), (Status::Blocked, Some(low)));
//! # Ok(())
//! # }
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod call;
mod check;
mod core;
mod events;
mod id;
mod life;
mod look;
mod mail;
mod observer;
mod pool;
mod queue;
mod resource;
mod semaphore;
mod task;
mod timer;
mod wake;
mod wheel;

pub use crate::call::{Bits, By, Call, Ending, Protocol, Reply, Status, Until};
pub use crate::check::Broken;
pub use crate::core::{Core, MOST_OBJECTS, MOST_STARTS};
pub use crate::id::{
    EventsId, ExchangeId, Moment, PoolId, Priority, ResourceId, SemaphoreId, TaskId, TimerId, Urgency,
};
pub use crate::look::Look;
pub use crate::mail::NO_ENVELOPE;
pub use crate::observer::Observer;
pub use crate::task::{State, Waiting};
pub use crate::timer::Expiry;

/// Whether parameter checks are compiled in (the feature `checks`).
pub const CHECKS: bool = cfg!(feature = "checks");
