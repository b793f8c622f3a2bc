//! Tasks that wait for futures: their semaphores, and the wakers of other threads.

use hairspring_exec_core::{By, Call, CallStatus, SemaphoreId, TaskId};

use super::attention::ARRIVED;
use super::carrier::Carrier;
use super::fibers::{Arrivals, Fibers};
use crate::calls::Rouse;

impl Rouse for Arrivals {
    fn rouse(&self, task: TaskId) {
        self.roused.add(task.index());
        // The bell wakes a sleeping carrier; the word reaches a carrier that runs tasks.
        self.attention.set(ARRIVED);
        self.doorbell.ring();
    }
}

impl<M: Carrier> Fibers<M> {
    /// The semaphore of a task. Its successor in the same slot gets the same one.
    pub(super) fn line_of(&self, me: TaskId) -> Result<SemaphoreId, CallStatus> {
        let known = self.lines.borrow().get(me.index()).copied().flatten();
        if let Some(line) = known {
            return Ok(line);
        }
        let made = self.apply(By::Task(me), Call::CreateSemaphore { count: 0, limit: 1 }).result()?;
        let line = SemaphoreId::from_number(made);
        let mut lines = self.lines.borrow();
        if lines.len() <= me.index() {
            lines.resize(me.index() + 1, None);
        }
        lines[me.index()] = Some(line);
        self.arrivals.roused.prepare(me.index());
        Ok(line)
    }

    /// Gives a unit to each task whose waker was called, and returns whether there was one.
    pub(super) fn serve_roused(&self) -> bool {
        let mut any = false;
        self.arrivals.roused.take(|index| {
            let line = self.lines.borrow().get(index).copied().flatten();
            if let Some(semaphore) = line {
                // One that has its unit already needs no other.
                self.apply(By::Outside, Call::SignalSemaphore { semaphore });
                any = true;
            }
        });
        any
    }
}
