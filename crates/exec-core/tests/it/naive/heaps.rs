//! Heaps, as the naive executive keeps them: a list of the blocks in use. Its sizes are so small that a block fits if
//! there is room for it.

use hairspring_exec_core::{CallStatus, HeapId, Priority, Reply, Until, Waiting};

use super::{Come, DONE, Naive, ok};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) first: u32,
    units: u32,
    taken: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Heap {
    units: u32,
    most: u16,
    pub(crate) least_free: u32,
    /// By place.
    pub(crate) blocks: Vec<Block>,
}

impl Heap {
    pub(super) fn new(units: u32, most: u16) -> Self {
        assert!(units <= 16, "above that a block can be refused that there is room for");
        Self { units, most, least_free: units, blocks: Vec::new() }
    }

    pub(crate) fn free(&self) -> u32 {
        self.units - self.blocks.iter().map(|block| block.units).sum::<u32>()
    }

    /// The largest gap, if another block may be in use.
    pub(crate) fn largest(&self) -> u32 {
        if self.blocks.len() == usize::from(self.most) {
            return 0;
        }
        let ends = std::iter::once(0).chain(self.blocks.iter().map(|block| block.first + block.units));
        let begins = self.blocks.iter().map(|block| block.first).chain([self.units]);
        ends.zip(begins).map(|(end, begin)| begin - end).max().unwrap_or(0)
    }

    /// Places a block where the core placed it, which must be in a gap.
    fn put(&mut self, first: u32, units: u32, taken: bool) {
        let apart = |block: &Block| first + units <= block.first || block.first + block.units <= first;
        assert!(self.blocks.iter().all(apart) && first + units <= self.units, "units {first} and on are in use");
        self.blocks.push(Block { first, units, taken });
        self.blocks.sort_by_key(|block| block.first);
        self.least_free = self.least_free.min(self.free());
    }
}

impl Naive {
    pub(super) fn get_block(&mut self, heap: HeapId, units: u32, chosen: u32) -> Come<Reply> {
        let (slot, units) = self.heap_for(heap, units)?;
        if !self.heap_line(slot).is_empty() || self.heaps[slot].largest() < units {
            return Err(CallStatus::Empty);
        }
        self.heaps[slot].put(chosen, units, true);
        ok(chosen)
    }

    pub(super) fn wait_block(
        &mut self,
        me: usize,
        heap: HeapId,
        units: u32,
        until: Until,
        at: Option<Priority>,
    ) -> Come<Reply> {
        let (slot, units) = self.heap_for(heap, units)?;
        self.put_block_back(me);
        let first = self.heap_line(slot).first().map(|&man| self.men[man].given.unwrap_or(self.men[man].effective));
        let passes = first.is_none_or(|first| at.unwrap_or(self.men[me].effective) < first);
        if passes && !self.men[me].killed && self.heaps[slot].largest() >= units {
            return ok(self.grant(me, slot, units));
        }
        self.wait(me, Waiting::Block(slot as u16, units), until, at)
    }

    pub(super) fn take_block(&mut self, me: usize) -> Come<Reply> {
        let (slot, first) = self.men[me].granted.take().ok_or(CallStatus::Empty)?;
        let block = self.heaps[slot].blocks.iter_mut().find(|block| block.first == first);
        block.expect("a block that was granted").taken = true;
        ok(first)
    }

    pub(super) fn free_block(&mut self, heap: HeapId, first: u32) -> Come<Reply> {
        let slot = self.heaps.find(heap.number())?;
        let blocks = &mut self.heaps[slot].blocks;
        let at = blocks.iter().position(|block| block.first == first && block.taken).ok_or(CallStatus::NotInUse)?;
        blocks.remove(at);
        self.serve_heaps();
        DONE
    }

    pub(super) fn put_block_back(&mut self, me: usize) {
        if let Some((slot, first)) = self.men[me].granted.take() {
            self.heaps[slot].blocks.retain(|block| block.first != first);
            self.serve_heaps();
        }
    }

    /// Grants the first waiter a block if one fits, then the next.
    pub(super) fn serve_heaps(&mut self) {
        for slot in self.heaps.iter().map(|(slot, ..)| slot).collect::<Vec<_>>() {
            while let Some(&man) = self.heap_line(slot).first()
                && let Waiting::Block(_, units) = self.men[man].waiting
                && self.heaps[slot].largest() >= units
            {
                let first = self.grant(man, slot, units);
                self.ready(man, CallStatus::Ok, first);
            }
        }
    }

    fn grant(&mut self, man: usize, slot: usize, units: u32) -> u32 {
        let id = self.men[man].id;
        let first = *self.grants.get(&id).unwrap_or_else(|| panic!("{id:?} was granted no block"));
        self.heaps[slot].put(first, units, false);
        self.men[man].granted = Some((slot, first));
        first
    }

    /// The slot of a heap, and the outcome of a request.
    fn heap_for(&self, heap: HeapId, units: u32) -> Come<(usize, u32)> {
        let slot = self.heaps.find(heap.number())?;
        let units = units.max(1);
        if units > self.heaps[slot].units { Err(CallStatus::TooLarge) } else { Ok((slot, units)) }
    }

    fn heap_line(&self, slot: usize) -> Vec<usize> {
        self.line(|waiting| matches!(waiting, Waiting::Block(at, _) if usize::from(at) == slot))
    }
}
