//! [`ExternalTrigger`]: a trigger fired by a call from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use hairspring_machine::{Instant, Nanos};

/// The most waiting calls. A gate takes them each time it is fed, so this limits the shots within one notify size.
const WAITING: usize = 64;

/// The value of a free slot: a time that `CLOCK_MONOTONIC` never shows.
const EMPTY: i64 = i64::MIN;

#[derive(Debug)]
struct Slots {
    times: [AtomicI64; WAITING],
    refused: AtomicU64,
}

/// Fires a gate's external trigger. Can be cloned and sent to any thread.
#[derive(Clone, Debug)]
pub struct ExternalTrigger {
    slots: Arc<Slots>,
}

impl ExternalTrigger {
    pub(super) fn new() -> Self {
        let times = [const { AtomicI64::new(EMPTY) }; WAITING];
        Self { slots: Arc::new(Slots { times, refused: AtomicU64::new(0) }) }
    }

    /// Triggers at an instant, which may lie in the future. `false` if 64 calls wait already: then this call is lost
    /// and counted. Neither blocks nor allocates.
    pub fn fire(&self, at: Instant) -> bool {
        let at_ns = at.as_monotonic().count().max(EMPTY + 1);
        // Relaxed: only the time itself is passed.
        let taken =
            |slot: &AtomicI64| slot.compare_exchange(EMPTY, at_ns, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let fired = self.slots.times.iter().any(taken);
        if !fired {
            // Relaxed: a figure for people.
            self.slots.refused.fetch_add(1, Ordering::Relaxed);
        }
        fired
    }

    /// Calls that were lost because 64 others waited.
    pub fn refused(&self) -> u64 {
        // Relaxed: a figure for people.
        self.slots.refused.load(Ordering::Relaxed)
    }

    /// Calls that wait for the gate.
    pub(super) fn waiting(&self) -> u64 {
        // Relaxed: a figure for people.
        self.slots.times.iter().filter(|slot| slot.load(Ordering::Relaxed) != EMPTY).count() as u64
    }

    /// Takes waiting calls while there is room, the earliest first.
    pub(super) fn drain(&self, into: &mut Vec<Instant>) {
        for slot in &self.slots.times {
            if into.len() == into.capacity() {
                break;
            }
            // Relaxed: see `fire`. The load keeps an idle slot's cache line shared.
            if slot.load(Ordering::Relaxed) != EMPTY {
                let at_ns = slot.swap(EMPTY, Ordering::Relaxed);
                if at_ns != EMPTY {
                    into.push(Instant::from_monotonic(Nanos::new(at_ns)));
                }
            }
        }
        into.sort_unstable();
    }

    /// Room for the most waiting calls.
    pub(super) fn room() -> Vec<Instant> {
        Vec::with_capacity(WAITING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_from_many_threads_all_arrive_in_the_order_of_their_times() {
        let trigger = ExternalTrigger::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let trigger = trigger.clone();
                scope.spawn(move || {
                    for call in 0..16 {
                        assert!(trigger.fire(Instant::BOOT + Nanos::new(call * 4 + thread)));
                    }
                });
            }
        });
        assert!(!trigger.fire(Instant::BOOT), "all slots are taken");
        assert_eq!(trigger.refused(), 1);
        let mut seen = ExternalTrigger::room();
        trigger.drain(&mut seen);
        assert_eq!(seen, (0..64).map(|ns| Instant::BOOT + Nanos::new(ns)).collect::<Vec<_>>());
    }
}
