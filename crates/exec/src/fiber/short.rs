//! The short ways of the calls that are made most, compiled into the task, on an executive that is not observed.
//!
//! Problem: a call as a value, and its reply, pass through memory that all ways of calling share. Storing and loading
//! them was a third of the instructions of the shortest calls. Solution: each of these functions takes the parts of one
//! call. If the call is simple, as nearly all are, the function makes the call by the core's fast path and settles it.
//! Else it does nothing and returns false or none, and its caller makes the call in the general way.
//!
//! Conditions: a fast path of the core makes all checks that the long way makes. Both are held against the naive model,
//! and against each other.
#![expect(unsafe_code, reason = "messages of any Copy type are moved as bytes")]

use std::mem::MaybeUninit;

use hairspring_exec_core::{Bits, EventsId, Reply, SemaphoreId, TaskId, Urgency};

use super::carrier::Carrier;
use super::fibers::Fibers;
use super::switch::SwitchBack;

impl<M: Carrier> Fibers<M> {
    /// Wakes a task that waits for it.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn wake_shortly(&self, me: TaskId, task: TaskId, back: SwitchBack) -> bool {
        let simple = self.core.borrow().wake_simply(task);
        if simple {
            self.settle_done(me, back);
        }
        simple
    }

    /// Starts an idle task.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn trigger_shortly(&self, me: TaskId, task: TaskId, back: SwitchBack) -> bool {
        let simple = self.core.borrow().trigger_simply(task);
        if simple {
            self.settle_done(me, back);
        }
        simple
    }

    /// Waits for a wake without a limit. The outcome, or none.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn wait_shortly(&self, me: TaskId, back: SwitchBack) -> Option<Reply> {
        let simple = self.core.borrow().wait_simply(me);
        if simple { Some(self.settle_blocked(me, back)) } else { None }
    }

    /// Takes a unit of a semaphore that has one.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn take_unit_shortly(&self, me: TaskId, semaphore: SemaphoreId) -> bool {
        let simple = self.core.borrow().take_unit_simply(me, semaphore);
        if simple {
            self.settle_still(me);
        }
        simple
    }

    /// Gives a unit to a semaphore without waiters.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn give_unit_shortly(&self, me: TaskId, semaphore: SemaphoreId) -> bool {
        let simple = self.core.borrow().give_unit_simply(semaphore);
        if simple {
            self.settle_still(me);
        }
        simple
    }

    /// Takes a unit of a semaphore that has one, if nothing else is to be served.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn take_unit_at_once(&self, me: TaskId, semaphore: SemaphoreId) -> bool {
        !self.needs_attention() && self.core.borrow().take_unit_simply(me, semaphore)
    }

    /// Gives a unit to a semaphore without waiters, if nothing else is due.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn give_unit_at_once(&self, semaphore: SemaphoreId) -> bool {
        !self.needs_attention() && self.core.borrow().give_unit_simply(semaphore)
    }

    /// Sets bits of an event group without waiters, if nothing else is due.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn set_bits_at_once(&self, events: EventsId, bits: u32) -> bool {
        !self.needs_attention() && self.core.borrow().set_bits_simply(events, bits)
    }

    /// Takes, or looks at, bits of an event group that are set, if nothing else is to be served.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn take_bits_at_once(&self, me: TaskId, events: EventsId, bits: Bits, take: bool) -> Option<u32> {
        if self.needs_attention() { None } else { self.core.borrow().take_bits_simply(me, events, bits, take) }
    }

    /// Sends a message to a task that is idle, which it starts, that is ready, or that waits for it. The message is a
    /// value: a message in memory could have been stored there in other pieces than those in which it is copied, and
    /// each of these would wait for the stores.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn send_shortly<T: Copy>(
        &self,
        me: TaskId,
        task: TaskId,
        urgency: Urgency,
        message: T,
        back: SwitchBack,
    ) -> bool {
        let mut readied = self.core.borrow().send_simply(task, urgency);
        if readied.is_none() {
            readied = self.core.borrow().hand_simply(task, urgency);
        }
        if let Some(envelope) = readied {
            self.slots.put(u32::from(envelope), message);
            self.settle_done(me, back);
            return true;
        }
        let left = self.core.borrow().leave_simply(task, urgency);
        if let Some(envelope) = left {
            self.slots.put(u32::from(envelope), message);
            self.settle_still(me);
            return true;
        }
        false
    }

    /// The message of a letter that is there already.
    ///
    /// # Safety
    /// The task's mailbox is of type T.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) unsafe fn receive_shortly<T: Copy>(&self, me: TaskId, urgency: Option<Urgency>) -> Option<T> {
        let simple = self.core.borrow().collect_simply(me, urgency);
        let envelope = simple?;
        let mut message = MaybeUninit::<T>::uninit();
        // SAFETY: the caller's promise. The envelope is free, and no task sends before the whole T is copied out.
        let message = unsafe {
            self.slots.read(u32::from(envelope), message.as_mut_ptr().cast(), size_of::<T>());
            message.assume_init()
        };
        self.settle_still(me);
        Some(message)
    }

    /// The message in an envelope that `me` was handed and has not taken; takes it.
    ///
    /// # Safety
    /// The mailbox or exchange that it comes from is of type T.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) unsafe fn open_inline<T: Copy>(&self, me: TaskId, envelope: u32) -> T {
        let mut message = MaybeUninit::<T>::uninit();
        // SAFETY: the caller's promise; a whole T is copied out before it is read.
        unsafe {
            self.take_inline(me, envelope, message.as_mut_ptr().cast(), size_of::<T>(), false);
            message.assume_init()
        }
    }
}
