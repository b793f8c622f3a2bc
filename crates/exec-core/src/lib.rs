//! The core of the executive: a state machine that decides, and does nothing else.
//!
//! No clock, no stack, no thread, no allocation after objects are made, no `unsafe`: `(state, call) → (status, decision)`.
//! The back-ends of `hairspring-exec` give it those, one each way; what a service means is written there, in the manual.
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
mod look;
mod mail;
mod observer;
mod pool;
mod queue;
mod resource;
mod semaphore;
mod task;
mod timer;
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
