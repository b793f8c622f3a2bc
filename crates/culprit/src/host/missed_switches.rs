//! [`Tasks`]: task switches that the tracepoint has missed.
//!
//! The kernel silently drops a tracepoint's record if it believes that the same task is already inside one. There are
//! kernels on which some task stays in that state, and none of its records is ever written. That can be the idle task
//! of a CPU; then every gap there would be misunderstood. Task switches also have records of another form, written by
//! the leaving task and again by the arriving one. They lack names, so they are used only where the tracepoint was
//! silent. If a task is silent in all of them, the next task's record shows the switch, but not its reason: the task
//! counts as waiting.

use std::collections::{BTreeMap, HashMap};

use hairspring_machine::{Cpu, Instant};

use crate::record::{KernelEvent, KernelRecord, KernelTask, LeftAs};

/// The most tasks whose names are kept.
const NAMES_MOST: usize = 100_000;

/// The id of a thread that ends.
const NO_NUMBER: u32 = u32::MAX;

/// Names of tasks, and the latest switch on each CPU.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    known: HashMap<u32, KernelTask>,
    latest: BTreeMap<Cpu, (u32, u32)>,
}

/// A task switch without names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) preempted: bool,
}

impl Tasks {
    /// Stores the names and the switch in a record.
    pub(crate) fn note(&mut self, cpu: Cpu, record: &KernelRecord) {
        if let KernelEvent::Switch { from, to, .. } = record.event {
            self.latest.insert(cpu, (from.pid, to.pid));
            if self.known.len() >= NAMES_MOST {
                self.known.clear();
            }
            self.known.insert(from.pid, from);
            self.known.insert(to.pid, to);
        }
    }

    /// The record that the tracepoint should have written for this switch; `None` if it was written.
    pub(crate) fn missed(&self, cpu: Cpu, at: Instant, change: Change) -> Option<KernelRecord> {
        let latest = self.latest.get(&cpu);
        let from = match latest {
            // A thread that ends has already lost its id here.
            Some(latest) if change.from == NO_NUMBER && latest.1 == change.to => return None,
            Some(latest) if change.from == NO_NUMBER => latest.1,
            Some(&latest) if latest == (change.from, change.to) => return None,
            _ => change.from,
        };
        let task = |pid| self.known.get(&pid).copied().unwrap_or_else(|| KernelTask::new(pid, "?", 120));
        let left_as = if change.preempted { LeftAs::Runnable } else { LeftAs::Blocked };
        Some(KernelRecord { at, event: KernelEvent::Switch { from: task(from), left_as, to: task(change.to) } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_that_writes_nothing_at_all_is_told_of_by_the_next_one() {
        let (idle, poller) = (KernelTask::new(0, "swapper/1", 120), KernelTask::new(7, "poller", 120));
        let (at, cpu) = (Instant::BOOT, Cpu(1));
        let mut tasks = Tasks::default();
        let event = KernelEvent::Switch { from: poller, left_as: LeftAs::Blocked, to: idle };
        tasks.note(cpu, &KernelRecord { at, event });
        let comes = Change { from: 0, to: 7, preempted: false };
        let event = KernelEvent::Switch { from: idle, left_as: LeftAs::Blocked, to: poller };
        let told = KernelRecord { at, event };
        assert_eq!(tasks.missed(cpu, at, comes), Some(told.clone()));
        tasks.note(cpu, &told);
        assert_eq!(tasks.missed(cpu, at, comes), None, "both have told");
    }

    #[test]
    fn only_a_change_that_the_tracepoint_missed_is_filled_in_and_with_the_names_that_are_known() {
        let (a, b) = (KernelTask::new(1, "a", 120), KernelTask::new(2, "b", 98));
        let (at, cpu) = (Instant::BOOT, Cpu(1));
        let mut tasks = Tasks::default();
        let event = KernelEvent::Switch { from: a, left_as: LeftAs::Blocked, to: b };
        tasks.note(cpu, &KernelRecord { at, event });
        assert_eq!(tasks.missed(cpu, at, Change { from: 1, to: 2, preempted: false }), None);
        assert_eq!(tasks.missed(cpu, at, Change { from: NO_NUMBER, to: 2, preempted: false }), None, "an end");
        let event = KernelEvent::Switch { from: b, left_as: LeftAs::Runnable, to: a };
        assert_eq!(tasks.missed(cpu, at, Change { from: 2, to: 1, preempted: true }), Some(KernelRecord { at, event }));
    }
}
