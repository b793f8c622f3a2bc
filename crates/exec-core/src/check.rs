//! Looking into the core: what a task is doing, and whether the state makes sense.

use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use crate::core::Core;
use crate::id::{Priority, TaskId};
use crate::observer::Observer;
use crate::queue::{NIL, Queue};
use crate::task::{State, Waiting};

/// What is to be seen of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// What it is doing.
    pub state: State,
    /// What it waits for.
    pub waiting: Waiting,
    /// Its own priority.
    pub base: Priority,
    /// The priority it runs at.
    pub effective: Priority,
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

/// An invariant that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken(pub String);

impl<O: Observer> Core<O> {
    /// What a task is doing.
    pub fn look(&self, task: TaskId) -> Option<Look> {
        let index = self.known(task).ok()?;
        let task = self.tasks.get(usize::from(index))?;
        Some(Look {
            state: task.state,
            waiting: task.waiting,
            base: task.base,
            effective: task.effective,
            suspended: task.suspended,
            killed: task.killed,
            latch: task.latch,
            starts: task.starts,
            signals: task.signals,
        })
    }

    /// All tasks that are not deleted.
    pub fn tasks(&self) -> Vec<TaskId> {
        let alive = self.tasks.iter().enumerate().filter(|(_, task)| task.state != State::Deleted);
        alive.map(|(index, task)| task.id(index as u16)).collect()
    }

    /// Checks every invariant of the state. For tests; slow.
    ///
    /// # Errors
    /// The first one that does not hold.
    pub fn check(&self) -> Result<(), Broken> {
        let mut seen = vec![0_u8; self.tasks.len()];
        self.check_queue(&self.ready, &mut seen, |task| task.is_ready() && task.link.at == task.effective)?;
        for (slot, semaphore) in self.objects.semaphores.iter().enumerate() {
            if semaphore.count > 0 && !semaphore.waiters.is_empty() {
                return Err(Broken(format!("semaphore {slot} has units and waiters")));
            }
            self.check_queue(&semaphore.waiters, &mut seen, |t| t.waiting == Waiting::Semaphore(slot as u16))?;
        }
        for (slot, resource) in self.objects.resources.iter().enumerate() {
            if resource.owner == NIL && !resource.waiters.is_empty() {
                return Err(Broken(format!("resource {slot} is free and has waiters")));
            }
            self.check_queue(&resource.waiters, &mut seen, |t| t.waiting == Waiting::Resource(slot as u16))?;
        }
        for (slot, events) in self.objects.events.iter().enumerate() {
            self.check_queue(
                &events.waiters,
                &mut seen,
                |t| matches!(t.waiting, Waiting::Events(s, ..) if s == slot as u16),
            )?;
        }
        for (slot, exchange) in self.objects.exchanges.iter().enumerate() {
            self.check_queue(&exchange.waiters, &mut seen, |t| t.waiting == Waiting::Exchange(slot as u16))?;
        }
        for (index, task) in self.tasks.iter().enumerate() {
            let listed = task.is_ready()
                || matches!(
                    task.waiting,
                    Waiting::Semaphore(_) | Waiting::Resource(_) | Waiting::Events(..) | Waiting::Exchange(_)
                );
            if u8::from(listed) != seen[index] {
                return Err(Broken(format!("task {index} is in {} lists, not {}", seen[index], u8::from(listed))));
            }
            if (task.state == State::Waiting) != (task.waiting != Waiting::Nothing) {
                return Err(Broken(format!("task {index} is {:?} and waits for {:?}", task.state, task.waiting)));
            }
            if task.state != State::Deleted && task.effective != self.effective_priority(index as u16) {
                return Err(Broken(format!("task {index} runs at {:?}, not by the formula", task.effective)));
            }
            if task.timed != self.wheel.is_armed(task.node) {
                return Err(Broken(format!("task {index} and the wheel disagree about its deadline")));
            }
            if task.waiting == Waiting::Wake && task.latch {
                return Err(Broken(format!("task {index} waits for a wake that it has")));
            }
            if let Waiting::Signals(bits) = task.waiting
                && bits.satisfied_by(task.signals).is_some()
            {
                return Err(Broken(format!("task {index} waits for signals that it has")));
            }
        }
        Ok(())
    }

    fn check_queue(
        &self,
        queue: &Queue,
        seen: &mut [u8],
        belongs: impl Fn(&crate::task::Task) -> bool,
    ) -> Result<(), Broken> {
        let mut index = queue.first();
        let mut before = None;
        while index != NIL {
            let task = &self.tasks[usize::from(index)];
            seen[usize::from(index)] += 1;
            if seen[usize::from(index)] > 1 {
                return Err(Broken(format!("task {index} is in two lists, or a list goes round")));
            }
            if !belongs(task) {
                return Err(Broken(format!("task {index} is in a list where it does not belong: {task:?}")));
            }
            if before.is_some_and(|before| before > task.link.at) {
                return Err(Broken(format!("task {index} stands behind a less urgent one")));
            }
            before = Some(task.link.at);
            index = queue.after(&self.tasks, index);
        }
        Ok(())
    }
}
