//! Counting semaphores: a unit given while a task waits goes to the first waiter, not through the count.

use crate::call::{CallStatus, Reply, Until};
use crate::id::{Priority, SemaphoreId, TaskId};
use crate::observer::Observer;
use crate::state::core::Core;
use crate::state::link::NIL;
use crate::state::objects::Semaphore;
use crate::state::queue::Queue;
use crate::state::task::Waiting;

impl<O: Observer> Core<O> {
    pub(crate) fn create_semaphore(&mut self, count: u32, limit: u32) -> Reply {
        if count > limit {
            return CallStatus::Overflow.into();
        }
        match self.objects.semaphores.add(Semaphore { count, limit, waiters: Queue::new() }) {
            Some((index, generation)) => Reply::ok(SemaphoreId { index, generation }.number()),
            None => CallStatus::TooMany.into(),
        }
    }

    pub(crate) fn delete_semaphore(&mut self, semaphore: SemaphoreId) -> Reply {
        if self.objects.semaphores.get(semaphore.index, semaphore.generation).is_none() {
            return CallStatus::NoSuchObject.into();
        }
        self.turn_away(Waiting::Semaphore(semaphore.index));
        self.objects.semaphores.remove(semaphore.index);
        Reply::OK
    }

    #[inline]
    pub(crate) fn wait_semaphore(
        &mut self,
        me: u16,
        semaphore: SemaphoreId,
        until: Until,
        at: Option<Priority>,
    ) -> Reply {
        let Some(found) = self.objects.semaphores.get_mut(semaphore.index, semaphore.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        if found.count > 0 && !self.tasks[usize::from(me)].marks.killed {
            found.count -= 1;
            return Reply::OK;
        }
        if let Some(reply) = self.unable_to_wait(me, until) {
            return reply;
        }
        let waiting = Waiting::Semaphore(semaphore.index);
        let reply = self.block(me, waiting, until);
        self.line_up(me, waiting, at);
        reply
    }

    /// [`Call::WaitSemaphore`](crate::Call::WaitSemaphore) of a semaphore that has a unit. False: it has none, or a
    /// task is killed, and nothing was done.
    #[inline(always)]
    pub fn take_unit_simply(&mut self, me: TaskId, semaphore: SemaphoreId) -> bool {
        let able = self.killed == 0 && self.tasks.get(me.index()).is_some_and(|found| found.runs_as(me));
        let found = self.objects.semaphores.get_mut(semaphore.index, semaphore.generation);
        match found {
            Some(found) if able && found.count > 0 => {
                found.count -= 1;
                true
            }
            _ => false,
        }
    }

    /// [`Call::SignalSemaphore`](crate::Call::SignalSemaphore) of a semaphore without waiters. False: a task waits, the
    /// count is at its limit, or a task is killed, and nothing was done.
    #[inline(always)]
    pub fn give_unit_simply(&mut self, semaphore: SemaphoreId) -> bool {
        let found = self.objects.semaphores.get_mut(semaphore.index, semaphore.generation);
        match found {
            Some(found) if self.killed == 0 && found.waiters.is_empty() && found.count != found.limit => {
                found.count += 1;
                true
            }
            _ => false,
        }
    }

    #[inline(always)]
    pub(crate) fn signal_semaphore(&mut self, semaphore: SemaphoreId) -> Reply {
        let Some(found) = self.objects.semaphores.get_mut(semaphore.index, semaphore.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        let waiter = found.waiters.first();
        if waiter == NIL {
            if found.count == found.limit {
                return CallStatus::Overflow.into();
            }
            found.count += 1;
        } else {
            found.waiters.remove(&mut self.tasks, waiter);
            self.ready(waiter, CallStatus::Ok, 0);
        }
        Reply::OK
    }

    /// The count of a semaphore now, and the first of its waiters.
    pub fn semaphore(&self, semaphore: SemaphoreId) -> Option<(u32, Option<TaskId>)> {
        let found = self.objects.semaphores.get(semaphore.index, semaphore.generation)?;
        let first = found.waiters.first();
        Some((found.count, (first != NIL).then(|| self.tasks[usize::from(first)].id(first))))
    }
}
