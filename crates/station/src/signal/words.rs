//! [`Words`]: the memory of a signal, from which readers take whole events without a lock.
//!
//! **How it works.** Each slot is a sequence lock. The writer stores 0 as the number, then stamp and cycle, then the
//! number. The reader loads the number, stamp and cycle, and the number again. If the number is unchanged, they belong
//! together. The fences ensure that a reader which sees a new stamp also sees the 0 or a later number. The model in
//! `loom_checks` fails without the 0. This holds for one writer at a time in each slot: a second writer gets there only
//! if the first was delayed until all other slots had been written to.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::atomic::AtomicU32;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Events that are kept for a busy reader; later ones overwrite the oldest. The model has fewer, so that it overwrites
/// within a few steps.
pub const PLACES: u64 = if cfg!(loom) { 2 } else { 63 };
/// Encoding of "no cycle".
const NO_CYCLE: u64 = u64::MAX;

/// One event, alone in its cache line, so that readers of one event do not slow down the writer of the next.
#[repr(C, align(64))]
struct Place {
    /// Number of the event in this place, written last; 0 during the write.
    sequence: AtomicU64,
    stamp: AtomicU64,
    cycle: AtomicU64,
}

/// All words of a signal.
#[repr(C)]
pub(super) struct Words {
    /// Identifies a signal. Not explored by the model, so no loom type.
    pub(super) magic: std::sync::atomic::AtomicU64,
    /// Number of events fired, counted when a number is given out.
    fired: AtomicU64,
    /// Changes with every event; sleepers wait on it.
    pub(super) bell: AtomicU32,
    /// Number of sleepers.
    pub(super) sleepers: AtomicU32,
    places: [Place; PLACES as usize],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Words>() == super::SIGNAL_BYTES);

/// An event that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found<W> {
    pub(super) sequence: u64,
    pub(super) stamp: u64,
    pub(super) cycle: Option<u64>,
    /// Clock reading after the number was seen.
    pub(super) wake: W,
}

impl Words {
    fn place(&self, sequence: u64) -> &Place {
        &self.places[(sequence % PLACES) as usize]
    }

    /// Number of events fired since the signal was made.
    pub(super) fn fired(&self) -> u64 {
        // Relaxed: gives out numbers; the place publishes the rest.
        self.fired.load(Ordering::Relaxed)
    }

    /// Whether the next event after this one is in its place, or was.
    pub(super) fn is_past(&self, last: u64) -> bool {
        // Acquire: pairs with the Release of the firing thread.
        self.place(last + 1).sequence.load(Ordering::Acquire) > last
    }

    /// Stores an event in the next slot, and returns its number.
    pub(super) fn put(&self, stamp: u64, cycle: Option<u64>) -> u64 {
        // Relaxed: as above.
        let sequence = self.fired.fetch_add(1, Ordering::Relaxed) + 1;
        let place = self.place(sequence);
        // The zero marks the place as incomplete while the event is replaced. Release: pairs with the Acquire fence of
        // the look.
        place.sequence.store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        let cycle = cycle.unwrap_or(NO_CYCLE);
        place.stamp.store(stamp, Ordering::Relaxed);
        place.cycle.store(cycle, Ordering::Relaxed);
        // Release: pairs with the Acquire of a reader that looks for this number.
        place.sequence.store(sequence, Ordering::Release);
        sequence
    }

    /// The next event after this one that is still in its place; `None` if there is none yet. Reads `clock` after its
    /// number was seen.
    #[inline]
    pub(super) fn look<W>(&self, last: u64, clock: impl Fn() -> W) -> Option<Found<W>> {
        let mut next = last + 1;
        loop {
            let place = self.place(next);
            // Acquire: pairs with the Release of the firing thread.
            let here = place.sequence.load(Ordering::Acquire);
            if here < next {
                return None;
            }
            let wake = clock();
            let (stamp, cycle) = (place.stamp.load(Ordering::Relaxed), place.cycle.load(Ordering::Relaxed));
            // Acquire: pairs with the Release fence of the thread that fires. Unchanged means that stamp and cycle are
            // this event's, too.
            fence(Ordering::Acquire);
            if here == next && place.sequence.load(Ordering::Relaxed) == here {
                let cycle = (cycle != NO_CYCLE).then_some(cycle);
                return Some(Found { sequence: next, stamp, cycle, wake });
            }
            // It was overwritten: the oldest remaining event is a round older than the newest number given out.
            let oldest = self.fired().saturating_sub(PLACES - 1);
            next = oldest.max(next + 1);
        }
    }
}

#[cfg(loom)]
#[cfg(test)]
mod loom_checks {
    //! All interleavings of threads that fire and one that reads, and all orders in which stores may be seen.

    use loom::sync::Arc;
    use loom::thread;

    use super::*;

    /// Switches between threads that are not forced.
    const PREEMPTIONS: usize = 3;

    fn words() -> Words {
        let place = |()| Place { sequence: AtomicU64::new(0), stamp: AtomicU64::new(0), cycle: AtomicU64::new(0) };
        Words {
            magic: std::sync::atomic::AtomicU64::new(0),
            fired: AtomicU64::new(0),
            bell: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            places: [(); PLACES as usize].map(place),
        }
    }

    /// Explores threads that each fire a given number of events, and one that reads meanwhile and at the end.
    fn explore(firing: &'static [u64]) {
        let all: u64 = firing.iter().sum();
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(PREEMPTIONS);
        model.check(move || {
            let words = Arc::new(words());
            let threads: Vec<_> = (0..)
                .zip(firing)
                .map(|(number, count)| {
                    let words = Arc::clone(&words);
                    // The writer, and the index of the event among its own: both in the stamp and in the cycle.
                    let value = move |of| number * 100 + of;
                    let fire = move || (1..=*count).for_each(|of| _ = words.put(value(of), Some(value(of))));
                    thread::spawn(fire)
                })
                .collect();
            let mut last = 0;
            let mut look = |had: &mut Vec<u64>| {
                let found = words.look(last, || ());
                if let Some(Found { sequence, stamp, cycle, .. }) = found {
                    assert!(sequence > last && sequence <= all, "number {sequence} after {last}");
                    assert_eq!(cycle, Some(stamp), "event {sequence} is half another event");
                    assert!(!had.contains(&stamp), "event {stamp} came twice");
                    if firing.len() == 1 {
                        assert_eq!(stamp, sequence, "the stamp of another event");
                    }
                    had.push(stamp);
                    last = sequence;
                }
                found.is_some()
            };
            let mut had = Vec::new();
            // While they fire …
            look(&mut had);
            look(&mut had);
            for thread in threads {
                thread.join().expect("it does not panic");
            }
            // … and the events in place at the end.
            while look(&mut had) {}
            assert_eq!(last, all, "the last event was not found");
        });
    }

    #[test]
    fn an_event_is_never_half_another_that_takes_its_place() {
        explore(&[2 * PLACES]);
    }

    #[test]
    fn events_of_several_senders_are_distinguished() {
        explore(&[PLACES / 2, PLACES / 2]);
    }
}
