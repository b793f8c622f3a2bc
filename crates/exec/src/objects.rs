//! Handles of typed objects: what a task, timer or procedure captures to use them. All small, and good for the
//! executive that made them.
//!
//! Mailboxes, exchanges, pools and heaps are the core's. The others keep their data in a [`guarded`] cell and let tasks
//! wait by the core's semaphores and event groups ([`waiting`]), so they behave alike on all back-ends and their traces
//! replay.

mod broadcast;
mod byte_pipe;
mod circular_list;
pub(crate) mod day_timer;
pub(crate) mod guarded;
mod heap;
mod join;
mod mailbox;
mod message_queue;
mod mutex;
mod pool;
mod waiting;

pub use broadcast::{Broadcast, Heard, Subscriber};
pub use byte_pipe::BytePipe;
pub use circular_list::CircularList;
pub use day_timer::{DayExpiry, DayTimer};
pub use heap::{HEAP_UNIT_BYTES, Heap, HeapBlock, HeapMemory, HeapOrder, HeapParcel, HeapUse, MOST_HEAP_BYTES};
pub use join::Join;
pub use mailbox::{Exchange, Mailbox};
pub use message_queue::{MessageQueue, Unsent};
pub use mutex::{Condition, Locked, Mutex};
pub use pool::{Buffer, Parcel, Pool};
pub use waiting::{Selectable, Selector};
