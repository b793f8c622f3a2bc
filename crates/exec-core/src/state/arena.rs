//! [`Arena`]: which areas of a memory are free and which are blocks in use. The core never accesses the memory itself.
//!
//! Problem: allocate and free blocks of any size in bounded time, merge free neighbours, and refuse a block that is
//! freed twice. Solution: the two-level segregated fit (TLSF, Masmano et al. 2004), with its records beside the memory
//! and not in it. Sizes are counted in units. Free areas are listed by class of size: one class for each size below 16,
//! above that eight classes between a power of two and the next. A word of 64 bits, one for each class, marks the lists
//! that are not empty.
//!
//! ```text
//!   request of 21 units ─► classes from 22 up ─► first list that has an area ─► split: the block, and what is left over as a free area
//! ```
//!
//! Conditions: a request is rounded up to the next class, so a free area can be passed over that is less than an eighth
//! larger than the request; only the first area of the request's own class is looked at as well. Every operation takes
//! constant time and never allocates.
//!
//! The crates for this keep their lists in the memory (`rlsf`, `talc`, `linked_list_allocator`), where a task that
//! writes past its block destroys them, a second free is undefined, and a replayed trace would have no memory;
//! `offset-allocator` needs `std`, logs in each operation, and panics when its records are used up.

use alloc::vec::Vec;

use crate::state::link::NIL;

/// Most units of one memory.
pub const MOST_UNITS: u32 = 1 << 26;

/// Most blocks in use of one memory: each can have a free area behind it, and one lies before the first.
pub const MOST_BLOCKS: u16 = (NIL - 1) / 2;

/// Bits of a size below its highest that its class keeps: eight classes between two powers of two.
const FINE: u32 = 3;
/// The classes of all sizes up to [`MOST_UNITS`].
const CLASSES: usize = class_of(MOST_UNITS) + 1;
/// Words of bits for them.
const WORDS: usize = CLASSES.div_ceil(64);

/// State of an area.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    /// Free, and in the list of its class.
    Free,
    /// In use.
    Block,
    /// Granted to a task that has not taken it yet.
    Granted,
}

/// A stretch of units.
#[derive(Clone, Copy, Debug)]
struct Area {
    first: u32,
    units: u32,
    /// Its neighbours in the memory.
    below: u16,
    above: u16,
    /// Its neighbours in the list of its class, or the next unused record.
    next: u16,
    previous: u16,
    what: Use,
}

/// The areas of one memory.
#[derive(Clone, Debug)]
pub(crate) struct Arena {
    areas: Vec<Area>,
    /// The first record that stands for no area.
    unused: u16,
    /// By unit: the block that begins there, or [`NIL`].
    blocks: Vec<u16>,
    heads: [u16; CLASSES],
    present: [u64; WORDS],
    free: u32,
    least_free: u32,
    in_use: u16,
    most: u16,
}

/// How the units of a heap are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeapUsage {
    /// The units that it has.
    pub units: u32,
    /// The units that are free.
    pub free: u32,
    /// The largest block, in units, that would be granted now if no task waited.
    pub largest: u32,
    /// The fewest units that were ever free.
    pub least_free: u32,
    /// The blocks in use.
    pub blocks: u16,
    /// Most blocks that can be in use.
    pub most_blocks: u16,
}

/// The class of an area of this size.
const fn class_of(units: u32) -> usize {
    if units < 1 << FINE {
        return units as usize;
    }
    let shift = units.ilog2() - FINE;
    ((shift << FINE) + (units >> shift)) as usize
}

/// The first class in which every area has room for `units` units.
const fn class_for(units: u32) -> usize {
    let class = class_of(units);
    if least_of(class) == units { class } else { class + 1 }
}

/// The smallest area of a class.
const fn least_of(class: usize) -> u32 {
    let class = class as u32;
    if class < 2 << FINE {
        return class;
    }
    let shift = (class >> FINE) - 1;
    (class - (shift << FINE)) << shift
}

impl Arena {
    /// A memory of `units` units, all free, for at most `most` blocks. Only this function allocates. At most
    /// [`MOST_UNITS`] and [`MOST_BLOCKS`].
    pub(crate) fn new(units: u32, most: u16) -> Self {
        let records = 2 * most + 1;
        let empty = |next| Area { first: 0, units: 0, below: NIL, above: NIL, next, previous: NIL, what: Use::Free };
        let areas = (1..records).chain([NIL]).map(empty).collect();
        let blocks = alloc::vec![NIL; units as usize];
        let (heads, present) = ([NIL; CLASSES], [0; WORDS]);
        let mut arena =
            Self { areas, unused: 0, blocks, heads, present, free: units, least_free: units, in_use: 0, most };
        if units > 0 {
            let whole = arena.record(Area { first: 0, units, ..arena.areas[0] });
            arena.list(whole);
        }
        arena
    }

    /// Whether a block of `units` units could ever be granted.
    pub(crate) fn can_hold(&self, units: u32) -> bool {
        units as usize <= self.blocks.len() && self.most > 0
    }

    /// How many blocks are in use.
    pub(crate) fn in_use(&self) -> u16 {
        self.in_use
    }

    /// Allocates `units` units, at least one; returns the first. With `taken` the caller has the block at once, else it
    /// is [taken](Self::take) later.
    pub(crate) fn get(&mut self, units: u32, taken: bool) -> Option<u32> {
        let found = self.find(units)?;
        self.unlist(found);
        let Area { first, units: whole, above, .. } = self.areas[usize::from(found)];
        if whole > units {
            // There is a record for it: the blocks in use are fewer than their most, and no two free areas are
            // neighbours.
            let rest = self.record(Area {
                first: first + units,
                units: whole - units,
                below: found,
                above,
                next: NIL,
                previous: NIL,
                what: Use::Free,
            });
            if above != NIL {
                self.areas[usize::from(above)].below = rest;
            }
            self.areas[usize::from(found)].above = rest;
            self.list(rest);
        }
        let area = &mut self.areas[usize::from(found)];
        area.units = units;
        area.what = if taken { Use::Block } else { Use::Granted };
        self.blocks[first as usize] = found;
        self.free -= units;
        self.least_free = self.least_free.min(self.free);
        self.in_use += 1;
        Some(first)
    }

    /// The task to which this block was granted takes it.
    pub(crate) fn take(&mut self, first: u32) {
        if let Some(found) = self.block_at(first) {
            self.areas[usize::from(found)].what = Use::Block;
        }
    }

    /// Frees the block that begins at this unit, and joins it with free neighbours. False: no block in use begins
    /// there, or (unless `granted`) it is granted and not taken.
    pub(crate) fn free(&mut self, first: u32, granted: bool) -> bool {
        let Some(mut area) = self.block_at(first) else { return false };
        if !granted && self.areas[usize::from(area)].what == Use::Granted {
            return false;
        }
        self.blocks[first as usize] = NIL;
        self.free += self.areas[usize::from(area)].units;
        self.in_use -= 1;
        self.areas[usize::from(area)].what = Use::Free;
        let Area { below, above, .. } = self.areas[usize::from(area)];
        if self.is_free(above) {
            self.unlist(above);
            self.join(area, above);
        }
        if self.is_free(below) {
            self.unlist(below);
            self.join(below, area);
            area = below;
        }
        self.list(area);
        true
    }

    /// The units of the block in use that begins at this unit.
    pub(crate) fn units_of(&self, first: u32) -> Option<u32> {
        self.block_at(first).map(|area| self.areas[usize::from(area)].units)
    }

    /// How many blocks are granted and not taken. For tests; slow.
    pub(crate) fn granted(&self) -> usize {
        let blocks = self.blocks.iter().filter(|&&area| area != NIL);
        blocks.filter(|&&area| self.areas[usize::from(area)].what == Use::Granted).count()
    }

    pub(crate) fn usage(&self) -> HeapUsage {
        let top = (0..CLASSES).rev().map(|class| self.heads[class]).find(|&head| head != NIL);
        let largest = top.filter(|_| self.in_use < self.most).map_or(0, |head| self.areas[usize::from(head)].units);
        HeapUsage {
            units: self.blocks.len() as u32,
            free: self.free,
            largest,
            least_free: self.least_free,
            blocks: self.in_use,
            most_blocks: self.most,
        }
    }

    /// A free area with room for `units` units.
    fn find(&self, units: u32) -> Option<u16> {
        if self.in_use == self.most || !self.can_hold(units) {
            return None;
        }
        let own = self.heads[class_of(units)];
        if own != NIL && self.areas[usize::from(own)].units >= units {
            return Some(own);
        }
        let least = class_for(units);
        for word in least / 64..WORDS {
            let from = if word == least / 64 { u64::MAX << (least % 64) } else { u64::MAX };
            let bits = self.present[word] & from;
            if bits != 0 {
                return Some(self.heads[word * 64 + bits.trailing_zeros() as usize]);
            }
        }
        None
    }

    fn block_at(&self, first: u32) -> Option<u16> {
        self.blocks.get(first as usize).copied().filter(|&area| area != NIL)
    }

    fn is_free(&self, area: u16) -> bool {
        area != NIL && self.areas[usize::from(area)].what == Use::Free
    }

    /// Takes a record for an area.
    fn record(&mut self, area: Area) -> u16 {
        let index = self.unused;
        self.unused = self.areas[usize::from(index)].next;
        self.areas[usize::from(index)] = area;
        index
    }

    /// Makes one area of two neighbours, of which neither is listed.
    fn join(&mut self, low: u16, high: u16) {
        let Area { units, above, .. } = self.areas[usize::from(high)];
        self.areas[usize::from(high)].next = core::mem::replace(&mut self.unused, high);
        let area = &mut self.areas[usize::from(low)];
        area.units += units;
        area.above = above;
        if above != NIL {
            self.areas[usize::from(above)].below = low;
        }
    }

    /// Enters a free area into the list of its class.
    fn list(&mut self, area: u16) {
        let class = class_of(self.areas[usize::from(area)].units);
        let head = core::mem::replace(&mut self.heads[class], area);
        let entry = &mut self.areas[usize::from(area)];
        (entry.previous, entry.next, entry.what) = (NIL, head, Use::Free);
        if head != NIL {
            self.areas[usize::from(head)].previous = area;
        }
        self.present[class / 64] |= 1 << (class % 64);
    }

    fn unlist(&mut self, area: u16) {
        let Area { units, next, previous, .. } = self.areas[usize::from(area)];
        let class = class_of(units);
        if next != NIL {
            self.areas[usize::from(next)].previous = previous;
        }
        if previous != NIL {
            self.areas[usize::from(previous)].next = next;
            return;
        }
        self.heads[class] = next;
        if next == NIL {
            self.present[class / 64] &= !(1 << (class % 64));
        }
    }

    /// The first invariant that does not hold. For tests; slow.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let (mut at, mut unit, mut free, mut blocks, mut areas) = (NIL, 0, 0, 0, 0);
        let listed: Vec<u16> = (0..CLASSES).flat_map(|class| self.listed(class)).collect();
        // An area is joined into the one below it, so the first record stays that of the first unit.
        let mut next = (!self.blocks.is_empty()).then_some(0);
        while let Some(index) = next {
            let area = &self.areas[usize::from(index)];
            if (area.first, area.below) != (unit, at) || area.units == 0 {
                return Err("an area does not begin where the one below it ends");
            }
            match area.what {
                Use::Free if self.is_free(at) => return Err("two free areas are neighbours"),
                Use::Free if !listed.contains(&index) => return Err("a free area is not listed"),
                Use::Free => free += area.units,
                Use::Block | Use::Granted if self.block_at(unit) != Some(index) => return Err("a block is not found"),
                Use::Block | Use::Granted => blocks += 1,
            }
            (at, unit, areas) = (index, unit + area.units, areas + 1);
            next = (area.above != NIL).then_some(area.above);
        }
        let unused = core::iter::successors((self.unused != NIL).then_some(self.unused), |&area| {
            Some(self.areas[usize::from(area)].next).filter(|&next| next != NIL)
        });
        match () {
            () if unit as usize != self.blocks.len() => Err("the areas do not cover the memory"),
            () if (free, blocks) != (self.free, self.in_use) => Err("free units or blocks are miscounted"),
            () if self.blocks.iter().filter(|&&area| area != NIL).count() != usize::from(blocks) => {
                Err("a block begins where there is none")
            }
            () if listed.len() != areas - usize::from(blocks) => Err("an area is listed that is not free"),
            () if unused.take(self.areas.len() + 1).count() + areas != self.areas.len() => Err("a record is lost"),
            () => Ok(()),
        }
    }

    /// The areas in the list of a class.
    fn listed(&self, class: usize) -> impl Iterator<Item = u16> {
        let head = Some(self.heads[class]).filter(|&head| head != NIL);
        core::iter::successors(head, |&area| Some(self.areas[usize::from(area)].next).filter(|&next| next != NIL))
            .take(self.areas.len())
    }
}

#[cfg(test)]
mod tests;
