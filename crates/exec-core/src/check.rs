//! Checks every invariant of the state that the services rely on. For tests; slow.

use alloc::string::String;
use alloc::{format, vec};

use crate::id::{Priority, Urgency};
use crate::observer::Observer;
use crate::state::core::Core;
use crate::state::link::NIL;
use crate::state::task::{Task, TaskState, Waiting};

/// An invariant that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Broken(pub String);

impl<O: Observer> Core<O> {
    /// Checks every invariant of the state. For tests; slow.
    ///
    /// # Errors
    /// The first one that does not hold.
    pub fn check(&self) -> Result<(), Broken> {
        let mut seen = vec![0_u8; self.tasks.len()];
        self.check_line(self.ready.line(&self.tasks), &mut seen, |task| {
            task.is_ready() && task.link.at == task.effective
        })?;
        for (slot, semaphore) in self.objects.semaphores.iter() {
            if semaphore.count > 0 && !semaphore.waiters.is_empty() {
                return Err(Broken(format!("semaphore {slot} has units and waiters")));
            }
            self.check_line(semaphore.waiters.line(&self.tasks), &mut seen, |t| t.waiting == Waiting::Semaphore(slot))?;
        }
        for (slot, resource) in self.objects.resources.iter() {
            if resource.owner == NIL && !resource.waiters.is_empty() {
                return Err(Broken(format!("resource {slot} is free and has waiters")));
            }
            self.check_line(resource.waiters.line(&self.tasks), &mut seen, |t| t.waiting == Waiting::Resource(slot))?;
        }
        for (slot, events) in self.objects.events.iter() {
            self.check_line(
                events.waiters.line(&self.tasks),
                &mut seen,
                |t| matches!(t.waiting, Waiting::Events(s, ..) if s == slot),
            )?;
        }
        for (slot, exchange) in self.objects.exchanges.iter() {
            self.check_line(exchange.waiters.line(&self.tasks), &mut seen, |t| t.waiting == Waiting::Exchange(slot))?;
        }
        for (slot, heap) in self.objects.heaps.iter() {
            heap.arena.check().map_err(|broken| Broken(format!("heap {slot}: {broken}")))?;
            let of_heap = |t: &Task| matches!(t.waiting, Waiting::Block(s, _) if s == slot);
            self.check_line(heap.waiters.line(&self.tasks), &mut seen, of_heap)?;
            let first = heap.waiters.first();
            if first != NIL
                && let Waiting::Block(_, units) = self.tasks[usize::from(first)].waiting
                && heap.arena.clone().get(units, false).is_some()
            {
                return Err(Broken(format!("heap {slot} has a block for the task that waits first")));
            }
            let granted = self.tasks.iter().filter(|task| task.granted_by == slot);
            if granted.clone().any(|task| heap.arena.units_of(task.granted).is_none())
                || granted.count() != heap.arena.granted()
            {
                return Err(Broken(format!("heap {slot} has granted other blocks than tasks were granted")));
            }
        }
        self.check_line(self.objects.joiners.line(&self.tasks), &mut seen, |task| {
            let Waiting::End(slot) = task.waiting else { return false };
            matches!(self.tasks[usize::from(slot)].state, TaskState::Ready | TaskState::Waiting)
        })?;
        for (index, task) in self.tasks.iter().enumerate() {
            let listed = task.is_ready()
                || matches!(
                    task.waiting,
                    Waiting::Semaphore(_)
                        | Waiting::Resource(_)
                        | Waiting::Events(..)
                        | Waiting::Exchange(_)
                        | Waiting::Block(..)
                        | Waiting::End(_)
                );
            if u8::from(listed) != seen[index] {
                return Err(Broken(format!("task {index} is in {} lists, not {}", seen[index], u8::from(listed))));
            }
            if (task.state == TaskState::Waiting) != (task.waiting != Waiting::Nothing) {
                return Err(Broken(format!("task {index} is {:?} and waits for {:?}", task.state, task.waiting)));
            }
            if task.state != TaskState::Deleted && task.effective != self.effective_priority(index as u16) {
                return Err(Broken(format!("task {index} runs at {:?}, not by the formula", task.effective)));
            }
            if task.marks.calm() != (task.threshold != Priority::LOWEST) {
                return Err(Broken(format!(
                    "task {index} has threshold {:?} and no mark of it, or no more",
                    task.threshold
                )));
            }
            if task.marks.calm() && !matches!(task.state, TaskState::Ready | TaskState::Waiting) {
                return Err(Broken(format!("task {index} has a threshold without a run")));
            }
            if task.marks.timed() != self.wheel.is_armed(task.node) {
                return Err(Broken(format!("task {index} and the wheel disagree about its deadline")));
            }
            let awaits_mail = matches!(task.waiting, Waiting::Mail(_) | Waiting::Exchange(_));
            if task.handed != NIL && (awaits_mail || !matches!(task.state, TaskState::Ready | TaskState::Waiting)) {
                return Err(Broken(format!("task {index} has a message in its hand while it is {:?}", task.state)));
            }
            if task.marks.killed && task.state != TaskState::Ready {
                return Err(Broken(format!("task {index} was killed and is {:?}", task.state)));
            }
            if task.waiting == Waiting::Wake && task.marks.latch {
                return Err(Broken(format!("task {index} waits for a wake that it has")));
            }
            if let Waiting::Signals(bits) = task.waiting
                && bits.satisfied_by(task.signals).is_some()
            {
                return Err(Broken(format!("task {index} waits for signals that it has")));
            }
        }
        let killed = self.tasks.iter().filter(|task| task.marks.killed).count();
        if self.killed as usize != killed {
            return Err(Broken(format!("{killed} tasks are killed, not {}", self.killed)));
        }
        self.check_mail()?;
        self.check_timers()
    }

    fn check_line(
        &self,
        line: impl Iterator<Item = u16>,
        seen: &mut [u8],
        belongs: impl Fn(&Task) -> bool,
    ) -> Result<(), Broken> {
        let mut before = None;
        for index in line {
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
        }
        Ok(())
    }

    /// Every envelope is in exactly one place: free, in a queue, or in a hand.
    fn check_mail(&self) -> Result<(), Broken> {
        let mut places = alloc::vec![0_u8; self.mail.envelopes.len()];
        let mut free = self.mail.free;
        for _ in 0..self.mail.free_count {
            *places.get_mut(usize::from(free)).ok_or_else(|| Broken("the free envelopes are miscounted".into()))? += 1;
            free = self.mail.envelopes[usize::from(free)].next;
        }
        let exchanges = self.objects.exchanges.iter().map(|(_, exchange)| &exchange.boxes);
        for boxes in self.mailboxes.iter().chain(exchanges) {
            for urgency in Urgency::ALL {
                let letters = boxes.letters[usize::from(urgency.number())];
                let listed = boxes.list(&self.mail, urgency);
                if listed.len() != usize::from(letters.count) || letters.count > letters.capacity {
                    return Err(Broken(format!("a mailbox counts {} letters and holds {listed:?}", letters.count)));
                }
                listed.iter().for_each(|&envelope| places[envelope as usize] += 1);
            }
        }
        for handed in self.tasks.iter().map(|task| task.handed).filter(|&handed| handed != NIL) {
            places[usize::from(handed)] += 1;
        }
        match places.iter().position(|&places| places != 1) {
            Some(envelope) => Err(Broken(format!("envelope {envelope} is in {} places", places[envelope]))),
            None => Ok(()),
        }
    }

    /// The line before the kernel task holds those that are due, each once.
    fn check_timers(&self) -> Result<(), Broken> {
        for (index, timer) in self.timers.slots.iter().enumerate() {
            let lined_up = self.timers.due.iter().filter(|id| id.index() == index).count();
            if lined_up != usize::from(timer.due) {
                return Err(Broken(format!("timer {index} stands {lined_up} times before the kernel task")));
            }
            if !timer.alive && (timer.due || self.wheel.is_armed(timer.node)) {
                return Err(Broken(format!("timer {index} was deleted and still runs")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
