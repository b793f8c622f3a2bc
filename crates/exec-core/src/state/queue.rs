//! A queue of tasks by priority: FIFO among equals, every operation in constant time.
//!
//! The [ready list](super::ready) and every wait list are of this kind. Links lie in the tasks themselves (a task is in
//! at most one queue at a time), a word of 64 bits marks the priorities that are not empty, and its lowest set bit is
//! the most urgent.

use crate::id::Priority;
use crate::state::link::{Link, NIL};
use crate::state::task::Task;

#[derive(Clone, Debug)]
pub(crate) struct Queue {
    present: u64,
    /// One more than there are priorities, which stays [`NIL`]: where an empty word's lowest bit is.
    heads: [u16; Priority::COUNT + 1],
    tails: [u16; Priority::COUNT],
}

impl Default for Queue {
    fn default() -> Self {
        Self::new()
    }
}

impl Queue {
    pub(crate) const fn new() -> Self {
        Self { present: 0, heads: [NIL; Priority::COUNT + 1], tails: [NIL; Priority::COUNT] }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// The first of the most urgent, or [`NIL`].
    #[inline(always)]
    pub(crate) fn first(&self) -> u16 {
        self.heads[self.present.trailing_zeros() as usize]
    }

    /// The same, and the number of its priority, or 64.
    #[inline(always)]
    pub(crate) fn head(&self) -> (u16, u8) {
        let slot = self.present.trailing_zeros();
        (self.heads[slot as usize], slot as u8)
    }

    /// All, in the order in which they would leave.
    pub(crate) fn line<'t>(&'t self, tasks: &'t [Task]) -> impl Iterator<Item = u16> + 't {
        let real = |index: u16| (index != NIL).then_some(index);
        core::iter::successors(real(self.first()), move |&index| real(self.after(tasks, index)))
    }

    /// The one after `index` in the order in which they would leave, or [`NIL`].
    pub(crate) fn after(&self, tasks: &[Task], index: u16) -> u16 {
        let link = tasks[usize::from(index)].link;
        if link.next != NIL {
            return link.next;
        }
        let further = self.present & !(u64::MAX >> (63 - link.at.number()));
        if further == 0 { NIL } else { self.heads[further.trailing_zeros() as usize] }
    }

    #[inline(always)]
    pub(crate) fn push_back(&mut self, tasks: &mut [Task], index: u16, at: Priority) {
        let slot = usize::from(at.number() & 63);
        let tail = self.tails[slot];
        tasks[usize::from(index)].link = Link { next: NIL, previous: tail, at };
        if self.present & (1 << slot) == 0 {
            self.heads[slot] = index;
            self.present |= 1 << slot;
        } else {
            tasks[usize::from(tail)].link.next = index;
        }
        self.tails[slot] = index;
    }

    pub(crate) fn push_front(&mut self, tasks: &mut [Task], index: u16, at: Priority) {
        let slot = usize::from(at.number() & 63);
        let head = self.heads[slot];
        if self.present & (1 << slot) == 0 {
            self.push_back(tasks, index, at);
            return;
        }
        tasks[usize::from(index)].link = Link { next: head, previous: NIL, at };
        tasks[usize::from(head)].link.previous = index;
        self.heads[slot] = index;
    }

    /// Takes a task out that is in this queue.
    #[inline(always)]
    pub(crate) fn remove(&mut self, tasks: &mut [Task], index: u16) {
        let Link { next, previous, at } = tasks[usize::from(index)].link;
        let slot = usize::from(at.number() & 63);
        if previous == NIL {
            self.heads[slot] = next;
            if next == NIL {
                self.present &= !(1 << slot);
            }
        } else {
            tasks[usize::from(previous)].link.next = next;
        }
        if next == NIL {
            self.tails[slot] = previous;
        } else {
            tasks[usize::from(next)].link.previous = previous;
        }
    }
}
