//! A known additional time inside measured code, which tests comparisons against a change of known size.
//!
//! Work of a fixed length takes the time, not a wait for the clock: a wait would end at a step of the counter, and
//! would hide disturbances during the wait. Every build has this work, so a build that spins has the layout of one that
//! does not.
//!
//! The call of the work takes some nanoseconds even without a step. So both builds of such a comparison make it, for
//! the same rows, and they differ by steps only. Ordered reads of the counter enclose the steps, and the first step
//! needs the first reading, so that the processor overlaps the steps with nothing, not even with the read.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hairspring_machine::{Host, Machine};

/// The most rows of one probe that can be lengthened.
const PLACES: usize = 8;
/// The length of the work that times one step, and its repeats; the median counts.
const WORK_TIMED: f64 = 20_000.0;
const TIMINGS: usize = 9;

/// The bits of a number that is no number of steps: the row makes no call of the work.
const NONE: u64 = f64::NAN.to_bits();

/// For each row of the probe that runs: steps of work for an event, as the bits of an `f64`, or [`NONE`].
static STEPS: [AtomicU64; PLACES] = [const { AtomicU64::new(NONE) }; PLACES];

/// Lengthens `events` events of this row of the running probe. Only one load and a comparison if the row is not
/// lengthened.
#[inline(always)]
pub(crate) fn spin(row: usize, events: u64) {
    // Relaxed: written before the reading threads start.
    let bits = STEPS[row].load(Ordering::Relaxed);
    if bits != NONE {
        work(f64::from_bits(bits) * events as f64);
    }
}

/// Sets by how many nanoseconds an event of each row is lengthened, if it is. With 0 ns it makes the call without a
/// step.
pub(super) fn set(rows: impl IntoIterator<Item = Option<f64>>) {
    let mut rows = rows.into_iter();
    for place in &STEPS {
        let steps = rows.next().flatten().map_or(NONE, |ns| (ns / step_ns()).to_bits());
        // Relaxed: see `spin`.
        place.store(steps, Ordering::Relaxed);
    }
}

/// The time of a step in this process.
fn step_ns() -> f64 {
    static STEP_NS: OnceLock<f64> = OnceLock::new();
    *STEP_NS.get_or_init(|| {
        let timed = |_| {
            let begun = Instant::now();
            work(WORK_TIMED);
            begun.elapsed().as_nanos() as f64 / WORK_TIMED
        };
        crate::interleaving::median(&(0..TIMINGS).map(timed).collect::<Vec<_>>())
    })
}

/// Dependent steps, which neither compiler nor processor can shorten.
#[cold]
#[inline(never)]
fn work(steps: f64) {
    let steps = steps.round() as u64;
    let begun = Host.ticks_ordered().raw();
    std::hint::black_box((0..std::hint::black_box(steps)).fold(begun, |x, step| x.rotate_left(1) ^ step));
    std::hint::black_box(Host.ticks_ordered());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_events_take_more_work_and_rows_without_a_time_none() {
        set([None, Some(200.0), Some(0.0)]);
        let timed = |row, events| {
            let begun = Instant::now();
            spin(row, events);
            begun.elapsed().as_nanos() as f64
        };
        let least = |row, events| (0..20).map(|_| timed(row, events)).fold(f64::INFINITY, f64::min);
        let (none, some, more) = (least(0, 10_000), least(1, 1_000), least(1, 10_000));
        assert!(least(2, 10_000) < some / 20.0, "a call without a step");
        set([]);
        assert!(none < some / 20.0 && more > 5.0 * some && more < 20.0 * some, "{none} {some} {more}");
        assert!(least(1, 10_000) < some / 20.0, "it was taken back");
    }
}
