//! [`Table`]: objects of one kind, by slot and generation.
//!
//! A slot is used again after its object was deleted, with the next generation, so that an id of the former object is
//! refused. A slot whose generations are used up is not used again, so no id ever means two objects. An object costs
//! one comparison to find: while a slot has none, a bit that no id has is set in its generation.

use alloc::vec::Vec;

/// Most objects of one kind. Slots are numbered by 16 bits, of which one pattern means "none".
pub const MOST_OBJECTS: usize = u16::MAX as usize;

/// Set in the generation of a slot without an object.
const EMPTY: u32 = 1 << 16;

#[derive(Clone, Debug)]
pub(crate) struct Table<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u16>,
}

#[derive(Clone, Debug)]
struct Slot<T> {
    generation: u32,
    object: T,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    /// Takes an object in: its slot and generation. None: all slots are taken.
    pub(crate) fn add(&mut self, object: T) -> Option<(u16, u16)> {
        if let Some(index) = self.free.pop() {
            let slot = &mut self.slots[usize::from(index)];
            slot.generation &= !EMPTY;
            slot.object = object;
            return Some((index, slot.generation as u16));
        }
        if self.slots.len() >= MOST_OBJECTS {
            return None;
        }
        self.slots.push(Slot { generation: 0, object });
        // Room for all, so that deleting does not allocate.
        self.free.reserve(self.slots.len());
        Some(((self.slots.len() - 1) as u16, 0))
    }

    /// The object with this id, if there is one.
    #[inline(always)]
    pub(crate) fn get(&self, index: u16, generation: u16) -> Option<&T> {
        let slot = self.slots.get(usize::from(index))?;
        (slot.generation == u32::from(generation)).then_some(&slot.object)
    }

    /// The same, to be changed.
    #[inline(always)]
    pub(crate) fn get_mut(&mut self, index: u16, generation: u16) -> Option<&mut T> {
        let slot = self.slots.get_mut(usize::from(index))?;
        (slot.generation == u32::from(generation)).then_some(&mut slot.object)
    }

    /// The object in a slot, or the last one that was there.
    pub(crate) fn peek(&self, slot: u16) -> Option<&T> {
        self.slots.get(usize::from(slot)).map(|slot| &slot.object)
    }

    /// The object in a slot that is known to have one.
    #[inline(always)]
    pub(crate) fn at(&self, slot: u16) -> &T {
        &self.slots[usize::from(slot)].object
    }

    /// The same, to be changed.
    #[inline(always)]
    pub(crate) fn at_mut(&mut self, slot: u16) -> &mut T {
        &mut self.slots[usize::from(slot)].object
    }

    /// The generation of the object in a slot that is known to have one.
    pub(crate) fn generation(&self, slot: u16) -> u16 {
        self.slots[usize::from(slot)].generation as u16
    }

    /// Deletes the object in a slot that is known to have one; its memory stays.
    pub(crate) fn remove(&mut self, index: u16) {
        let slot = &mut self.slots[usize::from(index)];
        if slot.generation as u16 == u16::MAX {
            slot.generation |= EMPTY;
        } else {
            slot.generation = (slot.generation + 1) | EMPTY;
            self.free.push(index);
        }
    }

    /// The objects that there are, each with its slot.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        let there = |&(_, slot): &(usize, &Slot<T>)| slot.generation & EMPTY == 0;
        self.slots.iter().enumerate().filter(there).map(|(index, slot)| (index as u16, &slot.object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_used_again_with_another_generation_until_they_are_used_up() {
        let mut table = Table::default();
        assert_eq!((table.add("a"), table.add("b")), (Some((0, 0)), Some((1, 0))));
        for generation in 0..=u16::MAX {
            assert_eq!(table.get(0, generation), Some(&if generation == 0 { "a" } else { "c" }));
            table.remove(0);
            // Neither the former id nor the one to come.
            assert_eq!((table.get(0, generation), table.get(0, generation.wrapping_add(1))), (None, None));
            let next = if generation == u16::MAX { (2, 0) } else { (0, generation + 1) };
            assert_eq!(table.add("c"), Some(next));
        }
        assert_eq!(table.iter().map(|(slot, _)| slot).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(table.get(3, 0), None);
    }
}
