//! Inspection: what each task does, and the order of each wait list. For displays and tests; not for the hot path.

use alloc::vec::Vec;

use crate::id::{Moment, Priority, ResourceId, TaskId};
use crate::observer::Observer;
use crate::state::core::Core;
use crate::state::link::NIL;
use crate::state::task::{TaskState, Waiting};

/// A snapshot of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TaskView {
    /// Idle, ready, waiting, dead or deleted.
    pub state: TaskState,
    /// The object or event that the task waits for.
    pub waiting: Waiting,
    /// Its own priority.
    pub base: Priority,
    /// The priority it runs at.
    pub effective: Priority,
    /// Only tasks that are more urgent than this preempt it; the least urgent priority where it has set none.
    pub threshold: Priority,
    /// Whether it is suspended.
    pub suspended: bool,
    /// Whether it has been killed and has not unwound yet.
    pub killed: bool,
    /// Whether a wake is kept for it.
    pub latch: bool,
    /// Starts asked for and not yet made.
    pub starts: u16,
    /// Its signal bits.
    pub signals: u32,
}

impl<O: Observer> Core<O> {
    /// State, wait and priorities of a task; none if the id is stale.
    pub fn look(&self, task: TaskId) -> Option<TaskView> {
        let index = self.known(task).ok()?;
        let task = self.tasks.get(usize::from(index))?;
        Some(TaskView {
            state: task.state,
            waiting: task.waiting,
            base: task.base,
            effective: task.effective,
            threshold: task.threshold,
            suspended: task.marks.suspended,
            killed: task.marks.killed,
            latch: task.marks.latch,
            starts: task.starts,
            signals: task.signals,
        })
    }

    /// All tasks that are not deleted.
    pub fn tasks(&self) -> Vec<TaskId> {
        let alive = self.tasks.iter().enumerate().filter(|(_, task)| task.state != TaskState::Deleted);
        alive.map(|(index, task)| task.id(index as u16)).collect()
    }

    /// The tasks that may run, in the order in which they would: [`first`](Core::first) is the head.
    pub fn ready_tasks(&self) -> Vec<TaskId> {
        self.names(self.ready.line(&self.tasks))
    }

    /// The wait list for the same object, first to last; empty if this kind of wait has no list (a wake, mail).
    pub fn line(&self, waiting: Waiting) -> Vec<TaskId> {
        let objects = &self.objects;
        let queue = match waiting {
            Waiting::Semaphore(slot) => objects.semaphores.peek(slot).map(|found| &found.waiters),
            Waiting::Resource(slot) => objects.resources.peek(slot).map(|found| &found.waiters),
            Waiting::Events(slot, ..) => objects.events.peek(slot).map(|found| &found.waiters),
            Waiting::Exchange(slot) => objects.exchanges.peek(slot).map(|found| &found.waiters),
            Waiting::Block(slot, _) => objects.heaps.peek(slot).map(|found| &found.waiters),
            Waiting::End(_) => Some(&objects.joiners),
            _ => None,
        };
        queue.map_or_else(Vec::new, |queue| self.names(queue.line(&self.tasks)))
    }

    fn names(&self, line: impl Iterator<Item = u16>) -> Vec<TaskId> {
        line.map(|index| self.tasks[usize::from(index)].id(index)).collect()
    }

    /// The resources a task owns, the one it came to own last first.
    pub fn owned_by(&self, task: TaskId) -> Vec<ResourceId> {
        let Ok(index) = self.known(task) else { return Vec::new() };
        let slot = |slot: u16| (slot != NIL).then_some(slot);
        let next = |&held: &u16| slot(self.objects.resources.at(held).next_held);
        let held = core::iter::successors(slot(self.tasks[usize::from(index)].held), next);
        held.map(|index| ResourceId { index, generation: self.objects.resources.generation(index) }).collect()
    }

    /// The moment at which the wait of a task times out.
    pub fn wait_deadline(&self, task: TaskId) -> Option<Moment> {
        let index = self.known(task).ok()?;
        self.wheel.deadline(self.tasks[usize::from(index)].node)
    }

    /// The envelope that a task was handed and has not opened.
    pub fn in_hand(&self, task: TaskId) -> Option<u32> {
        let handed = self.tasks[usize::from(self.known(task).ok()?)].handed;
        (handed != NIL).then(|| u32::from(handed))
    }
}
