//! CPU time and switches of tasks, where the configuration asks for them.
//!
//! A task has the CPU from the moment at which its own code continues until that of another task does, or until the
//! carrier sleeps. Timer and interrupt procedures run inside a call and count to the task that made it.

use hairspring_exec_core::{Moment, TaskId};

use super::carrier::Carrier;
use super::fibers::{Fibers, between};
use crate::inspect::TaskUsage;

impl<M: Carrier> Fibers<M> {
    /// From now on this task has the CPU, or none has. The time until now counts to the one that had it. Reads the
    /// clock, if usage is measured.
    pub(super) fn account(&self, task: Option<TaskId>) {
        if !self.config.measure_usage {
            return;
        }
        let now = self.machine.moment();
        let (before, since) = self.on_cpu.replace((task, now));
        self.charge(before, since, now);
        if let Some(task) = task.filter(|_| task != before) {
            let fiber = self.fiber(task);
            let mut usage = fiber.usage.get();
            usage.switches += 1;
            fiber.usage.set(usage);
        }
    }

    fn charge(&self, task: Option<TaskId>, since: Moment, now: Moment) {
        let Some(task) = task else { return };
        let fiber = self.fiber(task);
        // Another task may have its place by now.
        if fiber.task.get() == task {
            let mut usage = fiber.usage.get();
            usage.cpu += between(since, now);
            fiber.usage.set(usage);
        }
    }

    /// CPU time and switches of a task until now.
    pub(super) fn usage_of(&self, task: TaskId) -> Option<TaskUsage> {
        if !self.config.measure_usage {
            return None;
        }
        let (running, since) = self.on_cpu.get();
        if running == Some(task) {
            let now = self.machine.moment();
            self.on_cpu.set((running, now));
            self.charge(running, since, now);
        }
        let fiber = self.fiber(task);
        (fiber.task.get() == task).then(|| fiber.usage.get())
    }
}
