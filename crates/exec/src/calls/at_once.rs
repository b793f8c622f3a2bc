//! [`AtOnce`]: the shortest ways of a task's calls on fibers, for functions in C.
//!
//! Problem: a function in C is called. All code that may switch stacks needs every register, so a function with a
//! switch in it first saves its caller's registers. Solution: these functions make a call only if it switches nothing
//! and nothing else is due, and return true or a value; else they do nothing and return false or none. Then the
//! function makes the call in a full way, in another function.

use hairspring_exec_core::{Bits, EventsId, SemaphoreId, TaskId};
use hairspring_machine::Host;

use super::task::TaskCtx;
use crate::back_end::BackEnd;
use crate::fiber::Fibers;

/// A task on fibers that may make calls at once.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct AtOnce<'k> {
    fibers: &'k Fibers<Host>,
    me: TaskId,
}

impl<'k> TaskCtx<'k> {
    /// The shortest ways of this task's calls; none on other back-ends.
    #[doc(hidden)]
    #[inline(always)]
    pub fn at_once(&self) -> Option<AtOnce<'k>> {
        match self.back_end() {
            BackEnd::Fiber(fibers, _) => Some(AtOnce { fibers, me: self.id() }),
            BackEnd::Other(_) => None,
        }
    }
}

impl AtOnce<'_> {
    /// Gives a semaphore one unit.
    #[inline(always)]
    pub fn signal_semaphore(self, semaphore: SemaphoreId) -> bool {
        self.fibers.give_unit_at_once(semaphore)
    }

    /// Takes one unit of a semaphore.
    #[inline(always)]
    pub fn wait_semaphore(self, semaphore: SemaphoreId) -> bool {
        self.fibers.take_unit_at_once(self.me, semaphore)
    }

    /// Sets bits of an event group.
    #[inline(always)]
    pub fn signal_events(self, events: EventsId, bits: u32) -> bool {
        self.fibers.set_bits_at_once(events, bits)
    }

    /// Waits for bits of an event group. The bits that are set, if they suffice.
    #[inline(always)]
    pub fn wait_events(self, events: EventsId, bits: Bits, take: bool) -> Option<u32> {
        self.fibers.take_bits_at_once(self.me, events, bits, take)
    }
}
