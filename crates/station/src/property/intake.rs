//! [`PropertyIntake`]: the unit's end of the queue of accepted values.

use std::cmp::Ordering as Order;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};

use super::{Property, PropertyValues};

/// Values that may wait in the queue and for their cycles together.
pub(super) const WAITING_MOST: u64 = 64;

/// An accepted value on its way to the unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) ticket: u64,
    pub(super) property: Property,
    pub(super) value: i64,
    pub(super) cycle: Option<u64>,
}

/// Values in force, as published by the unit.
#[derive(Debug, Default)]
pub(super) struct ReadBack {
    values: [AtomicI64; Property::ALL.len()],
    /// The latest ticket that the unit has taken out of the queue. Stored after the values that it changed.
    taken: AtomicU64,
    /// Values that were applied or have expired.
    done: AtomicU64,
    expired: AtomicU64,
}

impl ReadBack {
    fn store(&self, values: PropertyValues) {
        for (word, value) in self.values.iter().zip(values.0) {
            // Relaxed: `taken` publishes them; each value is independent.
            word.store(value, Ordering::Relaxed);
        }
    }

    pub(super) fn values(&self) -> PropertyValues {
        PropertyValues(std::array::from_fn(|index| self.values[index].load(Ordering::Relaxed)))
    }

    /// The latest ticket whose effect the values show.
    pub(super) fn taken(&self) -> u64 {
        // Acquire: pairs with the Release in `at`.
        self.taken.load(Ordering::Acquire)
    }

    pub(super) fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    pub(super) fn expired(&self) -> u64 {
        self.expired.load(Ordering::Relaxed)
    }
}

/// The unit's end: values in force, and values that wait for their cycles.
#[derive(Debug)]
pub(crate) struct PropertyIntake {
    changes: Consumer<Change>,
    waiting: Vec<Change>,
    values: PropertyValues,
    read_back: Arc<ReadBack>,
    done: u64,
}

/// Both ends of a queue, with the values in force at the beginning.
pub(crate) fn property_queue(values: PropertyValues) -> (QueueEnd, PropertyIntake) {
    let (producer, consumer) = RingBuffer::new(WAITING_MOST as usize);
    let read_back = Arc::new(ReadBack::default());
    read_back.store(values);
    let waiting = Vec::with_capacity(WAITING_MOST as usize);
    let intake = PropertyIntake { changes: consumer, waiting, values, read_back: Arc::clone(&read_back), done: 0 };
    (QueueEnd { changes: producer, read_back }, intake)
}

/// The main thread's end.
#[derive(Debug)]
pub(crate) struct QueueEnd {
    pub(super) changes: Producer<Change>,
    pub(super) read_back: Arc<ReadBack>,
}

impl PropertyIntake {
    /// The values for an event of this cycle. Real-time safe: one load if no change is pending.
    #[inline]
    pub(crate) fn at(&mut self, cycle: Option<u64>) -> PropertyValues {
        if !(self.changes.is_empty() && self.waiting.is_empty()) {
            self.apply(cycle);
        }
        self.values
    }

    #[cold]
    fn apply(&mut self, cycle: Option<u64>) {
        let mut taken = None;
        while let Ok(change) = self.changes.pop() {
            taken = Some(change.ticket);
            match change.cycle {
                None => {
                    self.values.set(change.property, change.value);
                    self.done += 1;
                }
                // There is room: the other end counts the changes under way.
                Some(_) => self.waiting.push(change),
            }
        }
        let (mut applied, mut expired) = (0, 0);
        let values = &mut self.values;
        self.waiting.retain(|change| match change.cycle.zip(cycle).map(|(bound, now)| bound.cmp(&now)) {
            Some(Order::Equal) => {
                values.set(change.property, change.value);
                applied += 1;
                false
            }
            Some(Order::Less) => {
                expired += 1;
                false
            }
            Some(Order::Greater) | None => true,
        });
        self.done += applied + expired;
        self.read_back.store(self.values);
        // Relaxed: a count of its own.
        self.read_back.expired.fetch_add(expired, Ordering::Relaxed);
        // Release: pairs with the Acquire of the main thread, which then sees the values.
        self.read_back.done.store(self.done, Ordering::Release);
        if let Some(taken) = taken {
            self.read_back.taken.store(taken, Ordering::Release);
        }
    }
}
