//! Scheduling: readying, blocking, and the lists in which tasks stand meanwhile.

use crate::call::{CallStatus, Reply, Until};
use crate::id::Priority;
use crate::observer::Observer;
use crate::state::core::Core;
use crate::state::link::NIL;
use crate::state::task::{TaskState, Waiting};

impl<O: Observer> Core<O> {
    /// Lets a task run from now on: its wait is over, with this outcome. It must be in no wait list.
    pub(crate) fn ready(&mut self, index: u16, status: CallStatus, value: u32) {
        self.ready_at_once(index, status, value);
    }

    /// The same, compiled into the calls that are made most.
    #[inline(always)]
    pub(crate) fn ready_at_once(&mut self, index: u16, status: CallStatus, value: u32) {
        // The slice is kept in registers; through `self` it would be loaded again after every store.
        let tasks = self.tasks.as_mut_slice();
        let task = &mut tasks[usize::from(index)];
        task.state = TaskState::Ready;
        task.waiting = Waiting::Nothing;
        task.outcome = status;
        task.value = value;
        if task.marks.any() {
            return self.ready_with_marks(index);
        }
        let (id, at) = (task.id(index), task.effective);
        self.ready.push_back(tasks, index, at);
        self.observer.readied(id);
    }

    #[cold]
    #[inline(never)]
    fn ready_with_marks(&mut self, index: u16) {
        let task = &mut self.tasks[usize::from(index)];
        if task.marks.timed() {
            task.marks.set_timed(false);
            self.wheel.disarm(task.node);
        }
        self.enlist(index);
    }

    /// Puts a ready task at the end of its priority's list, unless it is suspended.
    pub(crate) fn enlist(&mut self, index: u16) {
        let task = &self.tasks[usize::from(index)];
        if !task.marks.suspended {
            let (id, at) = (task.id(index), task.effective);
            self.ready.push_back(&mut self.tasks, index, at);
            self.observer.readied(id);
        }
    }

    /// Lets the calling task wait. It must be ready. Where a wait list is needed the caller enters it there.
    pub(crate) fn block(&mut self, me: u16, waiting: Waiting, until: Until) -> Reply {
        self.block_at_once(me, waiting, until)
    }

    /// The same, compiled into the calls that are made most.
    #[inline(always)]
    pub(crate) fn block_at_once(&mut self, me: u16, waiting: Waiting, until: Until) -> Reply {
        let tasks = self.tasks.as_mut_slice();
        self.ready.remove(tasks, me);
        let task = &mut tasks[usize::from(me)];
        task.state = TaskState::Waiting;
        task.waiting = waiting;
        let id = task.id(me);
        if let Until::At(moment) = until {
            task.marks.set_timed(true);
            self.wheel.arm(task.node, moment);
        }
        self.observer.stopped(id, waiting);
        CallStatus::Blocked.into()
    }

    /// Reply to a call that would wait and must not: killed, or timed out at once.
    #[inline]
    pub(crate) fn unable_to_wait(&self, me: u16, until: Until) -> Option<Reply> {
        let task = &self.tasks[usize::from(me)];
        if task.marks.killed {
            Some(CallStatus::Killed.into())
        } else if !task.is_ready() {
            // A task that lost the right to run in the middle of its code has no wait to begin yet.
            Some(CallStatus::AlreadySuspended.into())
        } else if until == Until::NoWait {
            Some(CallStatus::TimedOut.into())
        } else {
            None
        }
    }

    /// Enters a task that was just blocked into its wait list, at the priority it gave or its own.
    pub(crate) fn line_up(&mut self, me: u16, waiting: Waiting, at: Option<Priority>) {
        let task = &mut self.tasks[usize::from(me)];
        task.wait_at = at;
        let at = at.unwrap_or(task.effective);
        let Some(queue) = self.objects.wait_list(waiting) else { return };
        queue.push_back(&mut self.tasks, me, at);
    }

    /// Ends the waits of all that stand in this line, whose object is about to go, in its order.
    pub(crate) fn turn_away(&mut self, waiting: Waiting) {
        while let Some(queue) = self.objects.wait_list(waiting)
            && !queue.is_empty()
        {
            let waiter = queue.first();
            queue.remove(&mut self.tasks, waiter);
            self.ready(waiter, CallStatus::NoSuchObject, 0);
        }
    }

    /// Takes a waiting task out of its wait list; the owner of a resource no longer owes it its priority, and the
    /// waiters behind it move up.
    pub(crate) fn leave(&mut self, index: u16) {
        let waiting = self.tasks[usize::from(index)].waiting;
        let Some(queue) = self.objects.wait_list(waiting) else { return };
        queue.remove(&mut self.tasks, index);
        match waiting {
            Waiting::Resource(slot) => {
                self.tasks[usize::from(index)].waiting = Waiting::Nothing;
                let owner = self.objects.resources.at(slot).owner;
                if owner != NIL {
                    self.reconsider(owner);
                }
            }
            // There may be a block for the next in line.
            Waiting::Block(slot, _) => self.serve_heap(slot),
            _ => {}
        }
    }
}
