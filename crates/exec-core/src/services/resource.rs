//! Resources: owned, nestable, handed straight to the first waiter, with or without a remedy against priority
//! inversion.
//!
//! The effective priority of a task is the most urgent of
//!
//! * its own,
//! * the threshold that it has set,
//! * the ceilings of the resources it owns (protocol `Ceiling`), and
//! * the effective priorities of the tasks that wait for the resources it owns (protocol `Inherit`).
//!
//! Each change of one of these calls [`reconsider`](Core::reconsider), which follows the chain of owners for as long as
//! priorities change. There is no cycle to follow: a wait that would close one is refused as a deadlock.
//!
//! A task that becomes more urgent goes to the end of its new priority's list; one that becomes less urgent goes to the
//! front of its own, because it was running (as POSIX requires of `pthread_mutex_unlock`).

use crate::call::{CallStatus, Reply, ResourceProtocol, Until};
use crate::id::{Priority, ResourceId, TaskId};
use crate::observer::Observer;
use crate::state::core::Core;
use crate::state::link::NIL;
use crate::state::objects::Resource;
use crate::state::queue::Queue;
use crate::state::task::{TaskState, Waiting};

impl<O: Observer> Core<O> {
    pub(crate) fn create_resource(&mut self, protocol: ResourceProtocol) -> Reply {
        let free = Resource { protocol, owner: NIL, depth: 0, next_held: NIL, waiters: Queue::new() };
        match self.objects.resources.add(free) {
            Some((index, generation)) => Reply::ok(ResourceId { index, generation }.number()),
            None => CallStatus::TooMany.into(),
        }
    }

    /// Only a resource that is owned has waiters.
    pub(crate) fn delete_resource(&mut self, resource: ResourceId) -> Reply {
        match self.resource(resource) {
            None => CallStatus::NoSuchObject.into(),
            Some((Some(_), _)) => CallStatus::InUse.into(),
            Some((None, _)) => {
                self.objects.resources.remove(resource.index);
                Reply::OK
            }
        }
    }

    pub(crate) fn reserve(&mut self, me: u16, resource: ResourceId, until: Until, at: Option<Priority>) -> Reply {
        let Some(found) = self.objects.resources.get_mut(resource.index, resource.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        let task = &self.tasks[usize::from(me)];
        if task.marks.killed {
            return CallStatus::Killed.into();
        }
        if found.owner == me {
            let Some(depth) = found.depth.checked_add(1) else { return CallStatus::Overflow.into() };
            found.depth = depth;
            return Reply::OK;
        }
        if let ResourceProtocol::Ceiling(ceiling) = found.protocol
            && task.base < ceiling
        {
            return CallStatus::AboveCeiling.into();
        }
        if found.owner == NIL {
            self.own(resource.index, me);
            self.reconsider(me);
            return Reply::OK;
        }
        if let Some(reply) = self.unable_to_wait(me, until) {
            return reply;
        }
        if self.would_deadlock(me, resource.index) {
            return CallStatus::Deadlock.into();
        }
        let owner = self.objects.resources.at(resource.index).owner;
        let waiting = Waiting::Resource(resource.index);
        let reply = self.block(me, waiting, until);
        self.line_up(me, waiting, at);
        self.reconsider(owner);
        reply
    }

    pub(crate) fn release(&mut self, me: u16, resource: ResourceId) -> Reply {
        let Some(found) = self.objects.resources.get_mut(resource.index, resource.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        if found.owner != me {
            return CallStatus::NotOwner.into();
        }
        found.depth -= 1;
        if found.depth == 0 {
            self.hand_on(me, resource.index);
            self.reconsider(me);
        }
        Reply::OK
    }

    /// Gives up all that a task owns, at its end.
    pub(crate) fn hand_on_everything(&mut self, me: u16) {
        loop {
            let slot = self.tasks[usize::from(me)].held;
            if slot == NIL {
                break;
            }
            self.hand_on(me, slot);
        }
        self.reconsider(me);
    }

    /// Takes a resource from its owner and gives it to the first waiter, if there is one.
    fn hand_on(&mut self, me: u16, slot: u16) {
        self.disown(me, slot);
        let found = self.objects.resources.at_mut(slot);
        found.owner = NIL;
        found.depth = 0;
        let heir = found.waiters.first();
        if heir == NIL {
            let resource = self.resource_id(slot);
            self.observer.owned(resource, None);
            return;
        }
        found.waiters.remove(&mut self.tasks, heir);
        // No longer a waiter, and an owner before it runs: its priority is settled before it is enlisted.
        self.tasks[usize::from(heir)].waiting = Waiting::Nothing;
        self.own(slot, heir);
        let effective = self.effective_priority(heir);
        let task = &mut self.tasks[usize::from(heir)];
        if task.effective != effective {
            task.effective = effective;
            let id = task.id(heir);
            self.observer.priority(id, effective);
        }
        self.ready(heir, CallStatus::Ok, 0);
    }

    fn own(&mut self, slot: u16, owner: u16) {
        let found = self.objects.resources.at_mut(slot);
        found.owner = owner;
        found.depth = 1;
        let task = &mut self.tasks[usize::from(owner)];
        found.next_held = task.held;
        task.held = slot;
        let (id, resource) = (task.id(owner), self.resource_id(slot));
        self.observer.owned(resource, Some(id));
    }

    /// Takes a resource out of its owner's list. The list is as long as the nesting of different resources.
    fn disown(&mut self, me: u16, slot: u16) {
        let next = self.objects.resources.at(slot).next_held;
        let mut at = self.tasks[usize::from(me)].held;
        if at == slot {
            self.tasks[usize::from(me)].held = next;
            return;
        }
        while at != NIL {
            let following = self.objects.resources.at(at).next_held;
            if following == slot {
                self.objects.resources.at_mut(at).next_held = next;
                return;
            }
            at = following;
        }
    }

    /// Whether the owner of the resource waits, directly or through others, for something that `me` owns.
    fn would_deadlock(&self, me: u16, slot: u16) -> bool {
        let mut owner = self.objects.resources.at(slot).owner;
        // A chain has at most one link per task, because it has no cycle yet.
        for _ in 0..=self.tasks.len() {
            if owner == me {
                return true;
            }
            match self.tasks[usize::from(owner)].waiting {
                Waiting::Resource(next) => owner = self.objects.resources.at(next).owner,
                _ => return false,
            }
        }
        false
    }

    pub(crate) fn set_priority(&mut self, task: TaskId, priority: Priority) -> Reply {
        let index = match self.known(task) {
            Ok(index) => index,
            Err(refusal) => return refusal,
        };
        let above = |slot: u16| matches!(self.objects.resources.at(slot).protocol, ResourceProtocol::Ceiling(c) if priority < c);
        if let Waiting::Resource(slot) = self.tasks[usize::from(index)].waiting
            && above(slot)
        {
            return CallStatus::AboveCeiling.into();
        }
        let mut held = self.tasks[usize::from(index)].held;
        while held != NIL {
            if above(held) {
                return CallStatus::AboveCeiling.into();
            }
            held = self.objects.resources.at(held).next_held;
        }
        self.tasks[usize::from(index)].base = priority;
        let before = self.tasks[usize::from(index)].effective;
        self.reconsider(index);
        // By its own wish it goes to the end of the list, up or down.
        let task = &self.tasks[usize::from(index)];
        if task.effective > before && task.is_ready() {
            let at = task.effective;
            self.ready.remove(&mut self.tasks, index);
            self.ready.push_back(&mut self.tasks, index, at);
        }
        Reply::OK
    }

    /// Sets the threshold of a task that makes calls.
    pub(crate) fn set_threshold(&mut self, me: u16, priority: Priority) -> Reply {
        let task = &mut self.tasks[usize::from(me)];
        let before = core::mem::replace(&mut task.threshold, priority);
        task.marks.set_calm(priority != Priority::LOWEST);
        self.reconsider(me);
        Reply::ok(u32::from(before.number()))
    }

    /// The formula at the head of this file.
    pub(crate) fn effective_priority(&self, index: u16) -> Priority {
        let task = &self.tasks[usize::from(index)];
        let mut effective = task.base.or_more_urgent(task.threshold);
        let mut slot = task.held;
        while slot != NIL {
            let found = self.objects.resources.at(slot);
            match found.protocol {
                ResourceProtocol::None => {}
                ResourceProtocol::Ceiling(ceiling) => effective = effective.or_more_urgent(ceiling),
                ResourceProtocol::Inherit => {
                    let mut waiter = found.waiters.first();
                    while waiter != NIL {
                        effective = effective.or_more_urgent(self.tasks[usize::from(waiter)].effective);
                        waiter = found.waiters.after(&self.tasks, waiter);
                    }
                }
            }
            slot = found.next_held;
        }
        effective
    }

    /// Brings a task's effective priority up to date, and those of the owners it waits for.
    pub(crate) fn reconsider(&mut self, index: u16) {
        let mut index = index;
        // One step per link of a chain of owners, which has no cycle.
        for _ in 0..=self.tasks.len() {
            let effective = self.effective_priority(index);
            let task = &mut self.tasks[usize::from(index)];
            let before = task.effective;
            if effective == before {
                return;
            }
            task.effective = effective;
            let (id, state, waiting, own_place) = (task.id(index), task.state, task.waiting, task.wait_at.is_none());
            self.observer.priority(id, effective);
            if state == TaskState::Ready && !self.tasks[usize::from(index)].marks.suspended {
                self.ready.remove(&mut self.tasks, index);
                if effective < before {
                    self.ready.push_back(&mut self.tasks, index, effective);
                } else {
                    self.ready.push_front(&mut self.tasks, index, effective);
                }
            }
            if state != TaskState::Waiting {
                return;
            }
            if own_place {
                self.move_in_line(index, waiting, effective);
            }
            match waiting {
                Waiting::Resource(slot) => index = self.objects.resources.at(slot).owner,
                _ => return,
            }
        }
    }

    fn move_in_line(&mut self, index: u16, waiting: Waiting, at: Priority) {
        let Some(queue) = self.objects.wait_list(waiting) else { return };
        queue.remove(&mut self.tasks, index);
        queue.push_back(&mut self.tasks, index, at);
        if let Waiting::Block(slot, _) = waiting {
            self.serve_heap(slot);
        }
    }

    /// The id of a resource that there is.
    fn resource_id(&self, slot: u16) -> ResourceId {
        ResourceId { index: slot, generation: self.objects.resources.generation(slot) }
    }

    /// Owner and nesting depth of a resource.
    pub fn resource(&self, resource: ResourceId) -> Option<(Option<TaskId>, u32)> {
        let found = self.objects.resources.get(resource.index, resource.generation)?;
        let owner = (found.owner != NIL).then(|| self.tasks[usize::from(found.owner)].id(found.owner));
        Some((owner, found.depth))
    }
}
