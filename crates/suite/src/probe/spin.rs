//! A known additional time inside measured code, which tests comparisons against a change of known size.
//!
//! Work of a fixed length takes the time, not a wait for the clock: a wait would end at a step of the counter, and would hide
//! disturbances during the wait. Every build has this work, so a build that spins has the layout of one that does not.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The most rows of one probe that can be lengthened.
const PLACES: usize = 8;
/// The length of the work that times one step, and its repeats; the median counts.
const WORK_TIMED: f64 = 20_000.0;
const TIMINGS: usize = 9;

/// For each row of the probe that runs: steps of work for an event, as the bits of an `f64`.
static STEPS: [AtomicU64; PLACES] = [const { AtomicU64::new(0) }; PLACES];

/// Lengthens so many events of this row of the running probe. Only one load and a comparison if no row is lengthened.
#[inline(always)]
pub(crate) fn spin(row: usize, events: u64) {
    // Relaxed: written before the reading threads start.
    let bits = STEPS[row].load(Ordering::Relaxed);
    if bits != 0 {
        work(f64::from_bits(bits) * events as f64);
    }
}

/// Sets by how many nanoseconds an event of each row is lengthened.
pub(super) fn set(rows: impl IntoIterator<Item = f64>) {
    let mut rows = rows.into_iter();
    for place in &STEPS {
        let ns = rows.next().unwrap_or(0.0);
        let steps = if ns > 0.0 { ns / step_ns() } else { 0.0 };
        // Relaxed: see `spin`.
        place.store(steps.to_bits(), Ordering::Relaxed);
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
        crate::rounds::median(&(0..TIMINGS).map(timed).collect::<Vec<_>>())
    })
}

/// Dependent steps, which neither compiler nor processor can shorten.
#[cold]
#[inline(never)]
fn work(steps: f64) {
    let steps = steps.round() as u64;
    std::hint::black_box((0..std::hint::black_box(steps)).fold(3_u64, |x, step| x.wrapping_mul(x).wrapping_add(step)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_events_take_more_work_and_rows_without_a_time_none() {
        set([0.0, 200.0]);
        let timed = |row, events| {
            let begun = Instant::now();
            spin(row, events);
            begun.elapsed().as_nanos() as f64
        };
        let least = |row, events| (0..20).map(|_| timed(row, events)).fold(f64::INFINITY, f64::min);
        let (none, some, more) = (least(0, 10_000), least(1, 1_000), least(1, 10_000));
        set([]);
        assert!(none < some / 20.0 && more > 5.0 * some && more < 20.0 * some, "{none} {some} {more}");
        assert!(least(1, 10_000) < some / 20.0, "it was taken back");
    }
}
