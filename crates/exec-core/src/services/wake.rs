//! Wait and wake, and the pure delay.

use crate::call::{CallStatus, Reply, Until};
use crate::id::TaskId;
use crate::observer::Observer;
use crate::state::core::Core;
use crate::state::task::Waiting;

impl<O: Observer> Core<O> {
    #[inline(always)]
    pub(crate) fn wait(&mut self, me: u16, until: Until) -> Reply {
        if !self.tasks[usize::from(me)].marks.any() && until != Until::NoWait {
            self.block_at_once(me, Waiting::Wake, until)
        } else {
            self.wait_with_marks(me, until)
        }
    }

    /// [`Call::Wait`](crate::Call::Wait) of a task that then waits without a limit. False: it is not so simple, and
    /// nothing was done.
    #[inline(always)]
    pub fn wait_simply(&mut self, me: TaskId) -> bool {
        let simple = self.tasks.get(me.index()).is_some_and(|found| found.runs_as(me) && !found.marks.any());
        if simple {
            self.block_at_once(me.index, Waiting::Wake, Until::Forever);
        }
        simple
    }

    /// [`Call::Wake`](crate::Call::Wake) of a task that waits for it. False: it does not, and nothing was done.
    #[inline(always)]
    pub fn wake_simply(&mut self, task: TaskId) -> bool {
        let simple = self.tasks.get(task.index()).is_some_and(|found| {
            (found.generation == task.generation || !cfg!(feature = "checks")) && matches!(found.waiting, Waiting::Wake)
        });
        if simple {
            self.ready_at_once(task.index, CallStatus::Ok, 0);
        }
        simple
    }

    #[inline(never)]
    fn wait_with_marks(&mut self, me: u16, until: Until) -> Reply {
        let task = &mut self.tasks[usize::from(me)];
        if task.marks.latch && !task.marks.killed {
            task.marks.latch = false;
            return Reply::OK;
        }
        match self.unable_to_wait(me, until) {
            Some(reply) => reply,
            None => self.block(me, Waiting::Wake, until),
        }
    }

    #[inline(always)]
    pub(crate) fn wake(&mut self, task: TaskId) -> Reply {
        if self.wake_simply(task) { Reply::OK } else { self.leave_wake(task) }
    }

    /// Wakes a task that does not wait for it.
    #[inline(never)]
    fn leave_wake(&mut self, task: TaskId) -> Reply {
        let index = match self.started(task) {
            Ok(index) => index,
            Err(refusal) => return refusal,
        };
        let task = &mut self.tasks[usize::from(index)];
        if task.marks.latch {
            return CallStatus::WakeAlreadyPending.into();
        }
        task.marks.latch = true;
        CallStatus::WakePending.into()
    }

    pub(crate) fn wake_reset(&mut self, me: u16) -> Reply {
        Reply::ok(u32::from(core::mem::take(&mut self.tasks[usize::from(me)].marks.latch)))
    }

    pub(crate) fn delay(&mut self, me: u16, until: Until) -> Reply {
        match self.unable_to_wait(me, until) {
            Some(Reply { status: CallStatus::TimedOut, .. }) => Reply::OK,
            Some(reply) => reply,
            None => self.block(me, Waiting::Delay, until),
        }
    }
}
