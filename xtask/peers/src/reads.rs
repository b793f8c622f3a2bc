//! Cost of one reading of the time, ours and the peers': loops less the empty loop.

use std::hint::black_box;
use std::ops::ControlFlow;

use hairspring_machine::{Host, Machine};
use hairspring_sheet::render::quantity;
use hairspring_sheet::{Figure, Method, Unit};
use hairspring_suite::interleaving::{interleave, median};
use hairspring_time::{Ordering, Profile, Timebase};

use crate::report::statistics;

/// Calls in a batch.
const BATCH: u32 = 20_000;

/// One candidate: its name and a batch of its calls.
type Candidate<'c> = (&'c str, Box<dyn FnMut() + 'c>);

/// A candidate whose call is compiled into its own loop.
fn candidate<'c, R>(name: &'c str, mut call: impl FnMut() -> R + 'c) -> Candidate<'c> {
    let batch = move || {
        for _ in 0..BATCH {
            black_box(call());
        }
    };
    (name, Box::new(batch))
}

pub(crate) fn run(timebase: &Timebase, quick: bool) {
    let quanta = quanta::Clock::new();
    let ordered = Profile::new(timebase, Ordering::Ordered);
    let unordered = Profile::new(timebase, Ordering::Unordered);
    let mut candidates: Vec<Candidate<'_>> = vec![
        candidate("bare counter", || Host.ticks()),
        candidate("**hairspring now**", move || timebase.now()),
        candidate("quanta Instant::now", quanta::Instant::now),
        candidate("quanta Clock::raw (no conversion)", || quanta.raw()),
        candidate("fastant Instant::now (no conversion)", fastant::Instant::now),
        candidate("ordered counter (lfence; rdtsc)", || Host.ticks_ordered()),
        candidate("**hairspring now_ordered**", move || timebase.now_ordered()),
        candidate("std Instant::now", std::time::Instant::now),
        candidate("clock_gettime MONOTONIC", || Host.monotonic()),
        candidate("**hairspring stamp pair, ordered**", || pair(&ordered)),
        candidate("**hairspring stamp pair, unordered**", || pair(&unordered)),
        candidate("empty loop", || 0_u64),
    ];
    let rounds = if quick { 15 } else { 51 };
    let mut samples: Vec<Vec<f64>> = vec![Vec::new(); candidates.len()];
    let complete = interleave(rounds, candidates.len(), |turn| {
        let start = timebase.stamp_ordered();
        candidates[turn.candidate].1();
        let ticks = timebase.stamp_ordered().since(start);
        samples[turn.candidate].push(ticks as f64 * 1e9 / timebase.calibration().rate_hz / f64::from(BATCH));
        ControlFlow::<()>::Continue(())
    });
    debug_assert!(complete.is_continue());
    let empty = median(&samples.pop().unwrap_or_default());
    candidates.pop();
    for samples in &mut samples {
        samples.iter_mut().for_each(|sample| *sample -= empty);
    }
    let medians: Vec<f64> = samples.iter().map(|samples| median(samples)).collect();
    let (bare, fenced) = (medians[0], medians[5]);
    println!(
        "## Reading the time\n\nNanoseconds a call in a loop, less the empty loop ({empty:.2} ns); {rounds} rounds of {BATCH} calls.\n"
    );
    println!(
        "| call | n | min | median | p99 | max | × bare | × ordered |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    );
    for (((name, _), samples), median) in candidates.iter().zip(&mut samples).zip(&medians) {
        let figure = Figure::from_samples(Unit::Ns, Method::Diff, samples);
        println!("| {name} | {} | {:.3} | {:.3} |", statistics(&figure), median / bare, median / fenced);
    }
    println!(
        "\nA call of `now` is {} more than the bare counter, conversion included.\n",
        quantity(medians[1] - bare, Unit::Ns)
    );
}

/// A pair of stamps with nothing between, as in a span; the difference is kept, so that the compiler does not remove
/// it.
#[inline(always)]
fn pair(profile: &Profile<'_, Host>) -> i64 {
    profile.pair_ticks()
}
