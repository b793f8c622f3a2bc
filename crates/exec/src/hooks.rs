//! Scheduler hooks: a program's own observer of every decision, on any back-end.

use hairspring_exec_core::{Ending, Observer, Priority, ResourceId, TaskId, TimerId, Waiting};

/// The core's observer that passes everything on to the program's, if there is one.
#[derive(Default)]
pub(crate) struct Tap {
    pub(crate) hooks: Option<Box<dyn Observer + Send>>,
}

impl Observer for Tap {
    #[inline(always)]
    fn readied(&mut self, task: TaskId) {
        if let Some(hooks) = &mut self.hooks {
            hooks.readied(task);
        }
    }

    #[inline(always)]
    fn started(&mut self, task: TaskId) {
        if let Some(hooks) = &mut self.hooks {
            hooks.started(task);
        }
    }

    #[inline(always)]
    fn stopped(&mut self, task: TaskId, waiting: Waiting) {
        if let Some(hooks) = &mut self.hooks {
            hooks.stopped(task, waiting);
        }
    }

    fn timed_out(&mut self, task: TaskId) {
        if let Some(hooks) = &mut self.hooks {
            hooks.timed_out(task);
        }
    }

    #[inline(always)]
    fn ended(&mut self, task: TaskId, how: Ending) {
        if let Some(hooks) = &mut self.hooks {
            hooks.ended(task, how);
        }
    }

    fn priority(&mut self, task: TaskId, effective: Priority) {
        if let Some(hooks) = &mut self.hooks {
            hooks.priority(task, effective);
        }
    }

    fn owned(&mut self, resource: ResourceId, owner: Option<TaskId>) {
        if let Some(hooks) = &mut self.hooks {
            hooks.owned(resource, owner);
        }
    }

    fn expired(&mut self, timer: TimerId, missed: u64) {
        if let Some(hooks) = &mut self.hooks {
            hooks.expired(timer, missed);
        }
    }
}
