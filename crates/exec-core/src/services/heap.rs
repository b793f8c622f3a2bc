//! Heaps: blocks of any size of one memory. A task waits until a block fits, and no later waiter passes it meanwhile.
//!
//! The first in line gets its block before any other: a block that is freed goes to it or, together with its
//! neighbours, waits for it. So tasks that want little cannot starve one that wants much. A request passes the line
//! only if its task is more urgent than the first.
//!
//! A block that a task waited for is granted to it and lies in its hand until the task [takes](crate::Call::TakeBlock)
//! it. A task that is killed between the two returns it at the end of its run.

use crate::call::{CallStatus, Reply, Until};
use crate::id::{HeapId, Priority, TaskId};
use crate::observer::Observer;
use crate::state::arena::{Arena, HeapUsage, MOST_BLOCKS, MOST_UNITS};
use crate::state::core::Core;
use crate::state::link::NIL;
use crate::state::objects::Heap;
use crate::state::queue::Queue;
use crate::state::task::Waiting;

impl<O: Observer> Core<O> {
    pub(crate) fn create_heap(&mut self, units: u32, blocks: u16) -> Reply {
        if units > MOST_UNITS || blocks > MOST_BLOCKS {
            return CallStatus::Overflow.into();
        }
        match self.objects.heaps.add(Heap { arena: Arena::new(units, blocks), waiters: Queue::new() }) {
            Some((index, generation)) => Reply::ok(HeapId { index, generation }.number()),
            None => CallStatus::TooMany.into(),
        }
    }

    /// While no block is in use no task waits: every request that can be met is.
    pub(crate) fn delete_heap(&mut self, heap: HeapId) -> Reply {
        let Some(found) = self.objects.heaps.get(heap.index, heap.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        if found.arena.in_use() > 0 {
            return CallStatus::InUse.into();
        }
        self.objects.heaps.remove(heap.index);
        Reply::OK
    }

    pub(crate) fn get_block(&mut self, heap: HeapId, units: u32) -> Reply {
        let units = units.max(1);
        let Some(found) = self.objects.heaps.get_mut(heap.index, heap.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        if !found.arena.can_hold(units) {
            return CallStatus::TooLarge.into();
        }
        if !found.waiters.is_empty() {
            return CallStatus::Empty.into();
        }
        found.arena.get(units, true).map_or(CallStatus::Empty.into(), Reply::ok)
    }

    pub(crate) fn wait_block(
        &mut self,
        me: u16,
        heap: HeapId,
        units: u32,
        until: Until,
        at: Option<Priority>,
    ) -> Reply {
        let units = units.max(1);
        match self.objects.heaps.get(heap.index, heap.generation) {
            None => return CallStatus::NoSuchObject.into(),
            Some(found) if !found.arena.can_hold(units) => return CallStatus::TooLarge.into(),
            Some(_) => {}
        }
        self.put_block_back(me);
        let task = &mut self.tasks[usize::from(me)];
        let found = self.objects.heaps.at_mut(heap.index);
        let passes = at.unwrap_or(task.effective).number() < found.waiters.head().1;
        if passes
            && !task.marks.killed
            && let Some(first) = found.arena.get(units, false)
        {
            (task.granted_by, task.granted) = (heap.index, first);
            return Reply::ok(first);
        }
        if let Some(reply) = self.unable_to_wait(me, until) {
            return reply;
        }
        let waiting = Waiting::Block(heap.index, units);
        let reply = self.block(me, waiting, until);
        self.line_up(me, waiting, at);
        reply
    }

    pub(crate) fn take_block(&mut self, me: u16) -> Reply {
        let task = &mut self.tasks[usize::from(me)];
        let slot = core::mem::replace(&mut task.granted_by, NIL);
        if slot == NIL {
            return CallStatus::Empty.into();
        }
        let first = task.granted;
        self.objects.heaps.at_mut(slot).arena.take(first);
        Reply::ok(first)
    }

    pub(crate) fn free_block(&mut self, heap: HeapId, first: u32) -> Reply {
        let Some(found) = self.objects.heaps.get_mut(heap.index, heap.generation) else {
            return CallStatus::NoSuchObject.into();
        };
        if !found.arena.free(first, false) {
            return CallStatus::NotInUse.into();
        }
        self.serve_heap(heap.index);
        Reply::OK
    }

    /// A block that was granted to a task and not taken goes back.
    pub(crate) fn put_block_back(&mut self, me: u16) {
        let task = &mut self.tasks[usize::from(me)];
        let slot = core::mem::replace(&mut task.granted_by, NIL);
        if slot != NIL {
            let first = task.granted;
            self.objects.heaps.at_mut(slot).arena.free(first, true);
            self.serve_heap(slot);
        }
    }

    /// Grants blocks in the order of the line until there is none for the first. To be called when a block was freed,
    /// and when another task is first.
    pub(crate) fn serve_heap(&mut self, slot: u16) {
        loop {
            let heap = self.objects.heaps.at_mut(slot);
            let waiter = heap.waiters.first();
            if waiter == NIL {
                return;
            }
            let task = &mut self.tasks[usize::from(waiter)];
            let Waiting::Block(_, units) = task.waiting else { return };
            let Some(first) = heap.arena.get(units, false) else { return };
            (task.granted_by, task.granted) = (slot, first);
            heap.waiters.remove(&mut self.tasks, waiter);
            self.ready(waiter, CallStatus::Ok, first);
        }
    }

    /// How a heap is used now.
    pub fn heap_usage(&self, heap: HeapId) -> Option<HeapUsage> {
        Some(self.objects.heaps.get(heap.index, heap.generation)?.arena.usage())
    }

    /// The size in units of the block in use that begins at this unit.
    pub fn block_units(&self, heap: HeapId, first: u32) -> Option<u32> {
        self.objects.heaps.get(heap.index, heap.generation)?.arena.units_of(first)
    }

    /// The block that was granted to a task and that it has not taken: its heap, and the unit at which it begins.
    pub fn granted_block(&self, task: TaskId) -> Option<(HeapId, u32)> {
        let task = &self.tasks[usize::from(self.known(task).ok()?)];
        let index = task.granted_by;
        (index != NIL).then(|| (HeapId { index, generation: self.objects.heaps.generation(index) }, task.granted))
    }
}
