//! Objects of one kind, by the slot in their id, as the naive executive keeps them.

use std::collections::BTreeSet;
use std::ops::{Index, IndexMut};

use hairspring_exec_core::CallStatus;

#[derive(Clone, Debug)]
pub(crate) struct Shelf<T> {
    /// By slot: the number of the id, and the object.
    places: Vec<Option<(u32, T)>>,
    /// Every number that was ever used.
    used: BTreeSet<u32>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { places: Vec::new(), used: BTreeSet::new() }
    }
}

impl<T> Shelf<T> {
    /// Takes an object in under the name that the core chose.
    pub(super) fn put(&mut self, number: u32, object: T) {
        let slot = (number & 0xffff) as usize;
        assert!(self.used.insert(number), "{number:#x} was used before");
        if self.places.len() <= slot {
            self.places.resize_with(slot + 1, || None);
        }
        assert!(self.places[slot].is_none(), "slot {slot} is taken");
        self.places[slot] = Some((number, object));
    }

    /// The slot of an object that there is.
    pub(super) fn find(&self, number: u32) -> Result<usize, CallStatus> {
        let slot = (number & 0xffff) as usize;
        match self.places.get(slot) {
            Some(Some((own, _))) if *own == number => Ok(slot),
            _ => Err(CallStatus::NoSuchObject),
        }
    }

    pub(super) fn remove(&mut self, slot: usize) {
        self.places[slot] = None;
    }

    /// All objects: slot, number of the id, and object.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, u32, &T)> {
        let places = self.places.iter().enumerate();
        places.filter_map(|(slot, place)| place.as_ref().map(|(number, object)| (slot, *number, object)))
    }

    /// The number of the id of the object in a slot.
    pub(crate) fn number(&self, slot: usize) -> u32 {
        self.places[slot].as_ref().expect("an object that there is").0
    }
}

impl<T> Index<usize> for Shelf<T> {
    type Output = T;

    fn index(&self, slot: usize) -> &T {
        &self.places[slot].as_ref().expect("an object that there is").1
    }
}

impl<T> IndexMut<usize> for Shelf<T> {
    fn index_mut(&mut self, slot: usize) -> &mut T {
        &mut self.places[slot].as_mut().expect("an object that there is").1
    }
}
