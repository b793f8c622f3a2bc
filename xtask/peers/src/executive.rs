//! Runs our executive on its back-ends and other executives through the same scenarios in one run.

mod asynchronous;
mod direct;
mod embassy;
mod from_c;
mod goals;
mod lower_bounds;
pub(crate) mod memory;
mod meter;
mod mq;
mod number;
mod periodic;
mod posix;
mod rounds;
mod scaling;
mod tokio;

use std::path::Path;

use hairspring_machine::{Cpu, Host, Machine};
use hairspring_sheet::Unit;
use hairspring_sheet::render::quantity;
use hairspring_suite::executive::port::Placement;
use hairspring_time::{Nanos, Timebase};

use hairspring_suite::executive::ours::{Ours, ThreadUp};
use hairspring_suite::executive::{Bench, Compared};
use hairspring_suite::interleaving::median;

/// Rounds between two stamps.
const ROUNDS: u64 = 512;
/// Bytes written before each round to make the caches dirty: none here, so the caches stay hot.
const SWEEP_BYTES: usize = 0;

/// The repeats of a cell.
pub(crate) struct Spread {
    n: usize,
    min: f64,
    pub(crate) median: f64,
    max: f64,
}

impl Spread {
    pub(crate) fn of(mut samples: Vec<f64>) -> Option<Self> {
        let median = median(&samples);
        samples.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*samples.first()?, *samples.last()?);
        Some(Self { n: samples.len(), min, median, max })
    }

    pub(crate) fn cell(&self, unit: Unit) -> String {
        let [min, median, max] = [self.min, self.median, self.max].map(|value| quantity(value, unit));
        format!("{min} / {median} / {max}")
    }
}

pub(crate) fn run(timebase: &Timebase, cpu: Cpu, folder: &Path, quick: bool) -> Result<(), String> {
    let other = Host.affinity().0.iter().copied().find(|other| *other != cpu);
    let place = Placement { cpu, other, measure_latency: false };
    let (span, seconds) = if quick { (Nanos::from_millis(20), 3) } else { (Nanos::from_millis(200), 60) };
    let bench = Bench { rounds: ROUNDS, ..Bench::new(timebase.clone(), place, span, SWEEP_BYTES) };
    let results = rounds::take(&bench);
    // One round per sample: as many round trips as fit, each of which must preempt.
    let patient = Bench { rounds: 1, slice: Nanos::from_secs(1), ..bench.clone() };
    let ten_thousand = Compared::WakeWait.take::<Ours<ThreadUp>>(&patient).ok();
    let growths = scaling::take(&bench, if quick { 3 } else { rounds::REPEATS });
    let memory = memory::take();
    let calls = from_c::take(&bench, folder);

    println!("## Executives\n");
    println!(
        "Ours with its parameter checks {}, floating-point control words saved for tasks that ask (none here), its trace off. A batch is {span}; in each \
         of {} rounds every candidate has its turn. Every round trip is proven: the task that was to run had run when the call \
         returned; where the caller is not preempted, it gives way (cooperative) or polls (several CPUs) until then, and that \
         is in the figure. tokio is its current-thread runtime with a LocalSet, embassy its raw executor polled in a loop; \
         tasks of both wait on a count and a waker, the least there is.\n",
        if hairspring_exec::CHECKS { "on" } else { "off" },
        rounds::REPEATS,
    );
    results.print();
    calls.print();
    scaling::print(&growths);
    match memory {
        Ok(bytes) => println!("A parked fiber keeps {:.2} KiB in memory (of 1,000, resident set).\n", bytes / 1024.0),
        Err(why) => println!("Memory of a parked fiber: no result, failed to {why}\n"),
    }
    periodic::run(&bench, seconds);
    goals::print(&results, &growths, ten_thousand, &calls);
    Ok(())
}
