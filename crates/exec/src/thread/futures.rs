//! Tasks that wait for futures: their semaphores, and the wakers of any thread.

use hairspring_exec_core::{By, Call, CallStatus, SemaphoreId, TaskId};

use super::threads::{Shared, Threads};
use crate::calls::Rouse;
use crate::engine::Engine;

impl Rouse for Shared {
    fn rouse(&self, task: TaskId) {
        let mut state = self.lock.hold();
        let line = state.lines.get(task.index()).copied().flatten();
        if let Some(semaphore) = line {
            let call = Call::SignalSemaphore { semaphore };
            // One that has its unit already needs no other.
            let reply = state.apply(By::Outside, call);
            state.conclude(None, &call, reply);
            state.settle(None, Some(&call));
        }
        self.release_from_outside(state);
    }
}

impl Threads {
    /// The semaphore of a task. Its successor with the same index gets the same one.
    pub(super) fn line_of(&self, me: TaskId) -> Result<SemaphoreId, CallStatus> {
        let state = self.shared.lock.hold();
        let known = state.lines.get(me.index()).copied().flatten();
        self.shared.release(state);
        if let Some(line) = known {
            return Ok(line);
        }
        let made = self.call(By::Task(me), Call::CreateSemaphore { count: 0, limit: 1 }).result()?;
        let line = SemaphoreId::from_number(made);
        let mut state = self.shared.lock.hold();
        if state.lines.len() <= me.index() {
            state.lines.resize(me.index() + 1, None);
        }
        state.lines[me.index()] = Some(line);
        self.shared.release(state);
        Ok(line)
    }
}
