//! The ready list: a [`Queue`], and before it the one task that floats.
//!
//! Problem: a task that is woken, runs and waits again would be entered into the list and taken out, for nothing.
//! Solution: a task that becomes ready above all others is not entered. It floats: it is the first until it waits, ends
//! or yields, and then nothing needs to be undone. When a still more urgent task becomes ready, the task that floats
//! goes to the front of its priority, where it would have been.

use crate::id::Priority;
use crate::state::link::NIL;
use crate::state::queue::Queue;
use crate::state::task::Task;

#[derive(Clone, Debug)]
pub(crate) struct ReadyList {
    /// The first of all, or [`NIL`], and the number of its priority, or 64.
    first: u16,
    urgency: u8,
    /// The task that floats, which is then the first; or [`NIL`].
    floating: u16,
    listed: Queue,
}

impl ReadyList {
    pub(crate) const fn new() -> Self {
        Self { first: NIL, urgency: Priority::COUNT as u8, floating: NIL, listed: Queue::new() }
    }

    /// The first of the most urgent, or [`NIL`].
    #[inline(always)]
    pub(crate) fn first(&self) -> u16 {
        self.first
    }

    /// All, in the order in which they would run.
    pub(crate) fn line<'t>(&'t self, tasks: &'t [Task]) -> impl Iterator<Item = u16> + 't {
        (self.floating != NIL).then_some(self.floating).into_iter().chain(self.listed.line(tasks))
    }

    /// Enters a task behind its equals.
    #[inline(always)]
    pub(crate) fn push_back(&mut self, tasks: &mut [Task], index: u16, at: Priority) {
        if at.number() >= self.urgency {
            return self.listed.push_back(tasks, index, at);
        }
        if self.floating != NIL {
            self.sink(tasks);
        }
        tasks[usize::from(index)].link.at = at;
        self.floating = index;
        self.first = index;
        self.urgency = at.number();
    }

    /// Enters a task before its equals.
    pub(crate) fn push_front(&mut self, tasks: &mut [Task], index: u16, at: Priority) {
        if self.floating != NIL {
            self.sink(tasks);
        }
        self.listed.push_front(tasks, index, at);
        self.find_first();
    }

    /// Takes a ready task out.
    #[inline(always)]
    pub(crate) fn remove(&mut self, tasks: &mut [Task], index: u16) {
        if index == self.floating {
            self.floating = NIL;
        } else {
            self.listed.remove(tasks, index);
            if self.floating != NIL {
                return;
            }
        }
        self.find_first();
    }

    /// Enters the task that floats where it would have been.
    #[inline(always)]
    fn sink(&mut self, tasks: &mut [Task]) {
        let at = tasks[usize::from(self.floating)].link.at;
        self.listed.push_front(tasks, self.floating, at);
        self.floating = NIL;
    }

    #[inline(always)]
    fn find_first(&mut self) {
        (self.first, self.urgency) = self.listed.head();
    }
}
