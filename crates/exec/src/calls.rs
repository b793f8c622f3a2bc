//! The calls that programs make, grouped by caller.

mod at_once;
pub(crate) mod body;
mod create;
mod future;
mod options;
mod procedures;
mod services;
mod task;
mod threshold;
mod ticker;

pub use at_once::AtOnce;
pub use create::Create;
pub(crate) use future::Rouse;
pub use options::{LEAST_STACK_BYTES, TaskOptions};
pub use procedures::{Expiry, IspCtx, TimerCtx};
pub use services::{CallSite, Caller, Services, WakeOutcome};
pub use task::{Limit, Reserved, TaskCtx};
pub use threshold::Threshold;
pub use ticker::{Tick, Ticker};
