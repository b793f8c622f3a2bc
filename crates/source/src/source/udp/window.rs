//! Datagrams that arrived before their turn, because the network reordered neighbours.
//!
//! Bonded links and network cards with several queues deliver neighbours out of order. A datagram whose number is a
//! little ahead is kept here until those before it have arrived. They are lost when [`MOST_HELD`] datagrams wait for
//! them, or when the first has waited for [`LONGEST`].

use std::collections::VecDeque;

use hairspring_machine::{Instant, Nanos};

use super::Placed;

/// Most datagrams that wait for one before them.
pub const MOST_HELD: usize = 32;

/// Longest time for which a datagram waits.
pub const LONGEST: Nanos = Nanos::from_millis(20);

/// A datagram that waits.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) placed: Placed,
    since: Instant,
    pub(super) samples: Vec<u8>,
}

/// The waiting datagrams, by number.
#[derive(Debug, Default)]
pub(super) struct Window {
    held: VecDeque<Held>,
    /// Whether all are released, even behind missing ones.
    open: bool,
}

impl Window {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Arrival of the first waiting datagram at this computer.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.held.iter().map(|held| held.placed.came).min()
    }

    /// The highest number here.
    pub(super) fn last(&self) -> Option<u64> {
        self.held.back().map(|held| held.placed.number)
    }

    /// Keeps a datagram. `ahead`: distance of its number from the one due. Returns whether a higher number arrived
    /// before it; `None` if this number is here already.
    pub(super) fn keep(
        &mut self,
        placed: Placed,
        samples: &[u8],
        ahead: impl Fn(u64) -> u64,
        now: Instant,
    ) -> Option<bool> {
        let at = self.held.partition_point(|held| ahead(held.placed.number) < ahead(placed.number));
        if self.held.get(at).is_some_and(|held| held.placed.number == placed.number) {
            return None;
        }
        self.held.insert(at, Held { placed, since: now, samples: samples.to_vec() });
        Some(at + 1 < self.held.len())
    }

    /// Lets all go, at an end.
    pub(super) fn open(&mut self) {
        self.open = true;
    }

    /// When the first has waited for long enough.
    pub(super) fn due_at(&self) -> Option<Instant> {
        self.held.iter().map(|held| held.since).min().map(|since| since + LONGEST)
    }

    /// Takes the first if it is due: no datagram is missing before it, or it has waited long enough.
    pub(super) fn take(&mut self, expected: u64, now: Instant) -> Option<Held> {
        let first = self.held.front()?;
        let is_due = first.placed.number == expected
            || self.open
            || self.held.len() > MOST_HELD
            || self.due_at().is_some_and(|due| due <= now);
        let taken = if is_due { self.held.pop_front() } else { None };
        self.open &= !self.held.is_empty();
        taken
    }
}
