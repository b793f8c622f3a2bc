//! Making and deleting the objects that tasks share. Tasks that wait for an object go on when it is deleted.

use hairspring_exec_core::{Call, CallStatus, Reply, Waiting};

use super::heaps::Heap;
use super::{Boxes, Come, DONE, Naive, Thing};

impl Naive {
    /// Makes the object that a call asks for, under the name that the core chose.
    pub(super) fn create(&mut self, call: Call, chosen: u32) {
        match call {
            Call::CreateSemaphore { count, limit } => self.semaphores.put(chosen, (count, limit)),
            Call::CreateResource { protocol } => self.things.put(chosen, Thing { protocol, owner: None, depth: 0 }),
            Call::CreateEvents { bits } => self.events.put(chosen, bits),
            Call::CreateExchange { capacities } => self.exchanges.put(chosen, Boxes::new(capacities)),
            Call::CreatePool { buffers } => self.pools.put(chosen, vec![false; usize::from(buffers)]),
            Call::CreateHeap { units, blocks } => self.heaps.put(chosen, Heap::new(units, blocks)),
            other => panic!("{other:?} makes nothing"),
        }
    }

    /// Deletes the object that a call names.
    pub(super) fn delete(&mut self, call: Call) -> Come<Reply> {
        match call {
            Call::DeleteSemaphore { semaphore } => {
                let slot = self.semaphores.find(semaphore.number())?;
                self.semaphores.remove(slot);
                self.turn_away(|waiting| waiting == Waiting::Semaphore(slot as u16));
            }
            Call::DeleteResource { resource } => {
                let slot = self.things.find(resource.number())?;
                if self.things[slot].owner.is_some() {
                    return Err(CallStatus::InUse);
                }
                self.things.remove(slot);
            }
            Call::DeleteEvents { events } => {
                let slot = self.events.find(events.number())?;
                self.events.remove(slot);
                self.turn_away(|waiting| matches!(waiting, Waiting::Events(at, ..) if usize::from(at) == slot));
            }
            Call::DeleteExchange { exchange } => {
                let slot = self.exchanges.find(exchange.number())?;
                let letters: usize = self.exchanges[slot].letters.iter().map(Vec::len).sum();
                self.free_envelopes += letters as u16;
                self.exchanges.remove(slot);
                self.turn_away(|waiting| waiting == Waiting::Exchange(slot as u16));
            }
            Call::DeletePool { pool } => {
                let slot = self.pools.find(pool.number())?;
                if self.pools[slot].contains(&true) {
                    return Err(CallStatus::InUse);
                }
                self.pools.remove(slot);
            }
            Call::DeleteHeap { heap } => {
                let slot = self.heaps.find(heap.number())?;
                if !self.heaps[slot].blocks.is_empty() {
                    return Err(CallStatus::InUse);
                }
                self.heaps.remove(slot);
            }
            other => panic!("{other:?} deletes nothing"),
        }
        DONE
    }

    fn turn_away(&mut self, waits: impl Fn(Waiting) -> bool) {
        for man in self.line(waits) {
            self.ready(man, CallStatus::NoSuchObject, 0);
        }
    }
}
