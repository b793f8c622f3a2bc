//! The carrier answers the [publisher](crate::status): it copies the states of the tasks.

use hairspring_exec_core::TaskId;
use hairspring_machine::Nanos;

use super::carrier::Carrier;
use super::fibers::Fibers;
use super::overflow;
use crate::status::SAMPLE_PERIOD;

impl<M: Carrier> Fibers<M> {
    /// Answers a status request. `caller` has had the CPU since the first open request; none: no task has had it.
    /// Allocates for tasks that it has not seen before. Does not block.
    #[cold]
    #[inline(never)]
    pub(super) fn answer(&self, caller: Option<TaskId>) {
        let at = self.machine.moment();
        self.arrivals.answers.answer(|sample, asked| {
            sample.at = at;
            sample.running = true;
            sample.taken += u64::from(asked);
            if caller.is_none() {
                sample.idle += u64::from(asked);
            }
            let core = self.core.borrow();
            let count = self.fibers.borrow().len();
            let runs = caller.map(TaskId::index);
            // The caller always, so that no sample of the CPU is lost.
            let turn = sample.turn(count);
            for index in turn.filter(|&index| Some(index) != runs).chain(runs) {
                let fiber = self.fiber_at(index);
                let task = fiber.task.get();
                let Some(view) = core.look(task) else {
                    sample.forget(index);
                    continue;
                };
                let record = sample.record(task, &fiber.name, view);
                record.messages = core.mail_waiting(task);
                record.wait_ends = core.wait_deadline(task);
                if let Some(usage) = self.usage_of(task) {
                    (record.cpu, record.switches) = (usage.cpu, Some(usage.switches));
                } else if caller == Some(task) {
                    record.cpu += Nanos::new(SAMPLE_PERIOD.count() * i64::from(asked));
                }
                record.note(caller == Some(task), at);
            }
            // One stack for each answer, because it takes a system call.
            let count = sample.tasks.len() as u64;
            let turn = sample.taken.checked_rem(count).map(|turn| turn as usize);
            if let Some(record) = turn.and_then(|turn| sample.tasks[turn].as_mut()) {
                record.stack = overflow::stack_use(&self.extents.borrow(), record.task.index() as u32);
            }
        });
    }
}
