//! The core of the executive: a state machine that decides, and does nothing else.
//!
//! It has no clock, stack, thread or `unsafe`, and allocates only when objects are created:
//! `(state, call) → (status, decision)`. The back-ends of `hairspring-exec` supply clock, stacks and threads; that
//! crate's manual describes each service.
//!
//! Without the feature `checks` the core does not check task ids, except when it sends a message. A stale id may then
//! mean the task's successor, an invented id panics, and a call by a task that is idle or waits corrupts the state.
//! Sending checks the id in every build, because the back-ends type messages by it. Nothing else differs; all other
//! ids, and everything that can be wrong without an error in the program (a full mailbox, a deadlock, a count at its
//! limit), are reported in either case.
//!
//! How it is known to be right: each service and status by its own test, deadlines against a sorted list, random calls
//! against a naive executive, small systems in all their states, and a list of deliberate breaks each of which a named
//! test finds (`mutants.toml`).
//!
//! ```
//! use hairspring_exec_core::{By, Call, Core, Priority, CallStatus, TaskId, Until};
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
//! assert_eq!((reply.status, core.first()), (CallStatus::Blocked, Some(low)));
//! # Ok(())
//! # }
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod call;
mod check;
mod id;
mod inspect;
mod observer;
mod services;
mod state;

pub use crate::call::{Bits, By, Call, CallStatus, Ending, Reply, ResourceProtocol, Until};
pub use crate::check::Broken;
pub use crate::id::{
    EventsId, ExchangeId, HeapId, Moment, PoolId, Priority, ResourceId, SemaphoreId, TaskId, TimerId, Urgency,
};
pub use crate::inspect::TaskView;
pub use crate::observer::Observer;
pub use crate::state::arena::{HeapUsage, MOST_BLOCKS, MOST_UNITS};
pub use crate::state::core::{Core, MOST_STARTS};
pub use crate::state::mail::NO_ENVELOPE;
pub use crate::state::table::MOST_OBJECTS;
pub use crate::state::task::{TaskState, Waiting};
pub use crate::state::timers::Expired;

/// Whether parameter checks are compiled in (the feature `checks`).
pub const CHECKS: bool = cfg!(feature = "checks");
