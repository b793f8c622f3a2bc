//! [`Observer`]: receives each decision of the core as it is made.
//!
//! The scheduler hooks of the executive: the thread back-end wakes threads by it, a trace is written from it, a test
//! counts with it. An observer that does nothing costs nothing.

use crate::call::Ending;
use crate::id::{Priority, ResourceId, TaskId, TimerId};
use crate::state::task::Waiting;

/// Receives each change, in order. The core is in the middle of a call, so an observer must not call it.
pub trait Observer {
    /// The task may run from now on.
    #[inline]
    fn readied(&mut self, task: TaskId) {
        let _ = task;
    }

    /// An idle task begins a run; [`readied`](Self::readied) follows.
    #[inline]
    fn started(&mut self, task: TaskId) {
        let _ = task;
    }

    /// The task waits, or (with [`Waiting::Nothing`]) was suspended or ended.
    #[inline]
    fn stopped(&mut self, task: TaskId, waiting: Waiting) {
        let _ = (task, waiting);
    }

    /// The wait of the task ended by time.
    #[inline]
    fn timed_out(&mut self, task: TaskId) {
        let _ = task;
    }

    /// The task's run is over.
    #[inline]
    fn ended(&mut self, task: TaskId, how: Ending) {
        let _ = (task, how);
    }

    /// The task's effective priority changed.
    #[inline]
    fn priority(&mut self, task: TaskId, effective: Priority) {
        let _ = (task, effective);
    }

    /// A resource has a new owner, or none.
    #[inline]
    fn owned(&mut self, resource: ResourceId, owner: Option<TaskId>) {
        let _ = (resource, owner);
    }

    /// A timer went off; `missed` periods had passed unserved.
    #[inline]
    fn expired(&mut self, timer: TimerId, missed: u64) {
        let _ = (timer, missed);
    }
}

/// Ignores every event.
impl Observer for () {}
