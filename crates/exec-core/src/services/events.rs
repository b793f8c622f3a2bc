//! Event groups and task signals: bits that one task sets and others wait for.
//!
//! The bits of a group belong to all its waiters, looked at in the order of the wait list; a waiter that takes clears
//! what satisfied it before the next is looked at. The signals of a task belong to it alone and are always taken.

use crate::call::{Bits, CallStatus, Reply, Until};
use crate::id::{EventsId, Priority, TaskId};
use crate::observer::Observer;
use crate::state::core::Core;
use crate::state::link::NIL;
use crate::state::objects::Events;
use crate::state::queue::Queue;
use crate::state::task::Waiting;

impl<O: Observer> Core<O> {
    pub(crate) fn create_events(&mut self, bits: u32) -> Reply {
        match self.objects.events.add(Events { bits, waiters: Queue::new() }) {
            Some((index, generation)) => Reply::ok(EventsId { index, generation }.number()),
            None => CallStatus::TooMany.into(),
        }
    }

    pub(crate) fn delete_events(&mut self, events: EventsId) -> Reply {
        if self.event_bits(events).is_none() {
            return CallStatus::NoSuchObject.into();
        }
        // All waiters stand in one list, whatever bits they wait for.
        self.turn_away(Waiting::Events(events.index, Bits::Any(0), false));
        self.objects.events.remove(events.index);
        Reply::OK
    }

    pub(crate) fn signal_events(&mut self, events: EventsId, bits: u32) -> Reply {
        let Some(group) = self.objects.events.get_mut(events.index, events.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        group.bits |= bits;
        let mut waiter = group.waiters.first();
        while waiter != NIL {
            let group = self.objects.events.at_mut(events.index);
            let next = group.waiters.after(&self.tasks, waiter);
            if let Waiting::Events(_, wish, take) = self.tasks[usize::from(waiter)].waiting
                && let Some(satisfied) = wish.satisfied_by(group.bits)
            {
                if take {
                    group.bits &= !satisfied;
                }
                group.waiters.remove(&mut self.tasks, waiter);
                self.ready(waiter, CallStatus::Ok, satisfied);
            }
            waiter = next;
        }
        Reply::OK
    }

    pub(crate) fn clear_events(&mut self, events: EventsId, bits: u32) -> Reply {
        let Some(group) = self.objects.events.get_mut(events.index, events.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        group.bits &= !bits;
        Reply::OK
    }

    pub(crate) fn wait_events(
        &mut self,
        me: u16,
        events: EventsId,
        wish: Bits,
        take: bool,
        until: Until,
        at: Option<Priority>,
    ) -> Reply {
        let Some(group) = self.objects.events.get_mut(events.index, events.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        if wish.mask() == 0 {
            return CallStatus::NoBits.into();
        }
        if let Some(satisfied) = wish.satisfied_by(group.bits)
            && !self.tasks[usize::from(me)].marks.killed
        {
            if take {
                group.bits &= !satisfied;
            }
            return Reply::ok(satisfied);
        }
        if let Some(reply) = self.unable_to_wait(me, until) {
            return reply;
        }
        let waiting = Waiting::Events(events.index, wish, take);
        let reply = self.block(me, waiting, until);
        self.line_up(me, waiting, at);
        reply
    }

    /// [`Call::SignalEvents`](crate::Call::SignalEvents) of a group without waiters. False: a task waits or is killed,
    /// and nothing was done.
    #[inline(always)]
    pub fn set_bits_simply(&mut self, events: EventsId, bits: u32) -> bool {
        match self.objects.events.get_mut(events.index, events.generation) {
            Some(group) if self.killed == 0 && group.waiters.is_empty() => {
                group.bits |= bits;
                true
            }
            _ => false,
        }
    }

    /// [`Call::WaitEvents`](crate::Call::WaitEvents) for bits that are set. None: they are not, or a task is killed,
    /// and nothing was done.
    #[inline(always)]
    pub fn take_bits_simply(&mut self, me: TaskId, events: EventsId, wish: Bits, take: bool) -> Option<u32> {
        let able = self.killed == 0 && self.tasks.get(me.index()).is_some_and(|found| found.runs_as(me));
        let group = self.objects.events.get_mut(events.index, events.generation)?;
        let satisfied = wish.satisfied_by(group.bits).filter(|_| able && wish.mask() != 0)?;
        group.bits &= if take { !satisfied } else { u32::MAX };
        Some(satisfied)
    }

    #[inline]
    pub(crate) fn signal(&mut self, task: TaskId, bits: u32) -> Reply {
        let index = match self.started(task) {
            Ok(index) => index,
            Err(refusal) => return refusal,
        };
        let task = &mut self.tasks[usize::from(index)];
        task.signals |= bits;
        if let Waiting::Signals(wish) = task.waiting
            && let Some(satisfied) = wish.satisfied_by(task.signals)
        {
            task.signals &= !satisfied;
            self.ready(index, CallStatus::Ok, satisfied);
        }
        Reply::OK
    }

    pub(crate) fn wait_signals(&mut self, me: u16, wish: Bits, until: Until) -> Reply {
        if wish.mask() == 0 {
            return CallStatus::NoBits.into();
        }
        let task = &mut self.tasks[usize::from(me)];
        if let Some(satisfied) = wish.satisfied_by(task.signals)
            && !task.marks.killed
        {
            task.signals &= !satisfied;
            return Reply::ok(satisfied);
        }
        match self.unable_to_wait(me, until) {
            Some(reply) => reply,
            None => self.block(me, Waiting::Signals(wish), until),
        }
    }

    /// The bits of an event group now.
    pub fn event_bits(&self, events: EventsId) -> Option<u32> {
        Some(self.objects.events.get(events.index, events.generation)?.bits)
    }
}
