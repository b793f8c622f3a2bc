//! The hardware's FIFO without its data: the grains in it, and the lost grains between them.

use std::collections::VecDeque;

use hairspring_machine::Instant;

use hairspring_ring::gap::GapCause;

/// The most stretches of lost grains in the FIFO. A further loss extends the last stretch: the FIFO takes nothing in
/// until the first stretch has left it. So it never allocates after the beginning.
const MOST_RUNS: usize = 256;

/// Consecutive grains, and the lost grains after them.
#[derive(Clone, Copy, Debug)]
struct Run {
    present: u64,
    lost: u64,
    cause: GapCause,
    found: Instant,
}

/// Grains that were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    /// The global index of the first.
    pub(super) first: u64,
    pub(super) grains: u64,
    pub(super) cause: GapCause,
    pub(super) found: Instant,
}

/// Takes grains in while there is room; the others are lost.
#[derive(Debug)]
pub(super) struct Fifo {
    capacity: u64,
    fill: u64,
    high_water: u64,
    lost: u64,
    /// The global index of the oldest grain in the FIFO, or of the next grain to arrive.
    next: u64,
    runs: VecDeque<Run>,
}

impl Fifo {
    pub(super) fn new(capacity: u64) -> Self {
        Self { capacity, fill: 0, high_water: 0, lost: 0, next: 0, runs: VecDeque::with_capacity(MOST_RUNS) }
    }

    /// Takes in the grains that fit and returns the number of lost ones. `cause` is asked if a new stretch begins.
    pub(super) fn arrive(&mut self, grains: u64, now: Instant, cause: impl FnOnce(u64) -> GapCause) -> u64 {
        let mut taken = grains.min(self.capacity - self.fill);
        let crowded = self.runs.len() == MOST_RUNS;
        match self.runs.back_mut() {
            Some(last) if last.lost == 0 => last.present += taken,
            Some(_) if crowded => taken = 0,
            _ if taken > 0 => {
                self.runs.push_back(Run { present: taken, lost: 0, cause: GapCause::BufferFull, found: now });
            }
            _ => {}
        }
        self.fill += taken;
        self.high_water = self.high_water.max(self.fill);
        let lost = grains - taken;
        if lost > 0 {
            self.lost += lost;
            match self.runs.back_mut() {
                Some(last) => {
                    if last.lost == 0 {
                        (last.cause, last.found) = (cause(lost), now);
                    }
                    last.lost += lost;
                }
                None => self.runs.push_back(Run { present: 0, lost, cause: cause(lost), found: now }),
            }
        }
        lost
    }

    /// The number of grains before the next lost ones; 0 if lost ones come first; `None` if the FIFO is empty.
    pub(super) fn front(&self) -> Option<u64> {
        self.runs.front().map(|run| run.present)
    }

    /// Takes out `grains`, at most [`Fifo::front`].
    pub(super) fn take(&mut self, grains: u64) {
        let Some(run) = self.runs.front_mut() else { return };
        run.present -= grains;
        self.fill -= grains;
        self.next += grains;
        if run.present == 0 && run.lost == 0 {
            self.runs.pop_front();
        }
    }

    /// Takes out the lost grains if they come first.
    pub(super) fn take_lost(&mut self) -> Option<Lost> {
        let run = self.runs.pop_front_if(|run| run.present == 0)?;
        let lost = Lost { first: self.next, grains: run.lost, cause: run.cause, found: run.found };
        self.next += run.lost;
        Some(lost)
    }

    /// Takes out all grains, as lost.
    pub(super) fn give_up(&mut self, now: Instant) -> Option<Lost> {
        let first = self.next;
        let grains = self.fill + self.runs.drain(..).map(|run| run.lost).sum::<u64>();
        (self.next, self.lost, self.fill) = (first + grains, self.lost + self.fill, 0);
        (grains > 0).then_some(Lost { first, grains, cause: GapCause::BufferFull, found: now })
    }

    /// The global index of the oldest grain in it, or of the next to arrive.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The capacity in grains.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Grains in it.
    pub(super) fn fill(&self) -> u64 {
        self.fill
    }

    /// The highest fill since the start, in grains.
    pub(super) fn high_water(&self) -> u64 {
        self.high_water
    }

    /// All grains that were lost.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    pub(super) fn is_more_than_half_full(&self) -> bool {
        self.fill > self.capacity / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_stretches_become_longer_instead_of_more() {
        let mut fifo = Fifo::new(1000);
        let late = |_| GapCause::ServedLate;
        assert_eq!(fifo.arrive(1000 + 7, Instant::BOOT, late), 7);
        let mut produced = 1007;
        for _ in 0..2 * MOST_RUNS {
            fifo.take(1);
            assert!(fifo.arrive(2, Instant::BOOT, late) >= 1);
            produced += 2;
        }
        assert_eq!(fifo.runs.len(), MOST_RUNS);
        let (mut present, mut lost) = (2 * MOST_RUNS as u64, 0);
        while let Some(front) = fifo.front() {
            assert_eq!(fifo.next(), present + lost);
            present += front;
            fifo.take(front);
            lost += fifo.take_lost().map_or(0, |lost| lost.grains);
        }
        assert_eq!((present + lost, lost, fifo.fill()), (produced, fifo.lost(), 0));
    }
}
