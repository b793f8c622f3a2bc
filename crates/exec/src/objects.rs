//! Handles of typed objects: what a task, timer or procedure captures to use them. All small, copied, and good for the
//! executive that made them.

mod mailbox;
mod pool;

pub use mailbox::{Exchange, Mailbox};
pub use pool::{Buffer, Parcel, Pool};
