//! The executive (manual to be written).

mod config;
mod context;
mod ending;
mod engine;
mod executive;
mod fiber;
mod handle;
mod host;
mod interrupt;
mod message;
mod park;
mod report;
mod sync;
mod thread;
pub mod trace;

pub use config::{Config, ExecError, Profile};
pub use context::{Caller, IspCtx, Limit, Reserved, Services, Standing, TaskCtx, TimerCtx, Woken};
pub use executive::{Backend, Create, Executive};
pub use hairspring_exec_core::{
    Bits, By, CHECKS, Call, Ending, EventsId, Expiry, Moment, Priority, Protocol, Reply, ResourceId, SemaphoreId,
    Status, TaskId, TimerId, Urgency,
};
pub use handle::{Buffer, Exchange, Mailbox, Parcel, Pool};
pub use interrupt::{Arrival, Isp, Lost, Source};
pub use report::{Finish, MOST_MISHAPS, Misfortune, Mishap, RunLimit, Stopped};
