//! Executives, ours on its back-ends and other people's, put through the same scenarios in the same run.

mod asynchronous;
mod direct;
mod embassy;
mod floor;
mod goals;
pub(crate) mod memory;
mod mq;
mod periodic;
mod posix;
mod rounds;
mod scaling;
mod scenario;
mod tokio;

use hairspring_machine::{Cpu, Host, Machine};
use hairspring_sheet::Unit;
use hairspring_sheet::render::quantity;
use hairspring_suite::executive::port::Place;
use hairspring_time::{Nanos, Timebase};

use hairspring_suite::executive::ours::{Ours, ThreadUp};
use scenario::Stand;

/// Round trips that must each preempt.
const PREEMPTIONS: u64 = 10_000;

/// The repeats of a cell.
pub(crate) struct Spread {
    n: usize,
    min: f64,
    median: f64,
    max: f64,
}

impl Spread {
    fn of(mut samples: Vec<f64>) -> Option<Self> {
        let median = crate::report::median(&mut samples);
        let (min, max) = (*samples.first()?, *samples.last()?);
        Some(Self { n: samples.len(), min, median, max })
    }

    fn cell(&self, unit: Unit) -> String {
        let [min, median, max] = [self.min, self.median, self.max].map(|value| quantity(value, unit));
        format!("{min} / {median} / {max}")
    }
}

pub(crate) fn run(timebase: &Timebase, cpu: Cpu, quick: bool) -> Result<(), String> {
    let other = Host.affinity().0.iter().copied().find(|other| *other != cpu);
    let place = Place { cpu, other, measure_latency: false };
    let (span, seconds) = if quick { (Nanos::from_millis(20), 3) } else { (Nanos::from_millis(200), 60) };
    let stand = Stand { place, timebase: timebase.clone(), span, pair_ns: pair_ns(timebase) };
    let results = rounds::take(&stand);
    let patient = Stand { span: Nanos::from_secs(1), ..stand.clone() };
    let ten_thousand = scenario::wake_wait::<Ours<ThreadUp>>(&patient, PREEMPTIONS).ok();
    let growths = scaling::take(&stand, if quick { 3 } else { rounds::REPEATS });
    let memory = memory::take();

    println!("## Executives\n");
    println!(
        "Ours with its parameter checks {}, its floating-point control words saved, its trace off. A batch is {span}; in each \
         of {} rounds every candidate has its turn. Every round trip is proven: the task that was to run had run when the call \
         returned; where the caller is not preempted, it gives way (cooperative) or polls (several CPUs) until then, and that \
         is in the figure. tokio is its current-thread runtime with a LocalSet, embassy its raw executor polled in a loop; \
         tasks of both wait on a count and a waker, the least there is.\n",
        if hairspring_exec::CHECKS { "on" } else { "off" },
        rounds::REPEATS,
    );
    results.print();
    scaling::print(&growths);
    match memory {
        Ok(bytes) => println!("A parked fiber keeps {:.2} KiB in memory (of 1,000, resident set).\n", bytes / 1024.0),
        Err(why) => println!("Memory of a parked fiber: no result, failed to {why}\n"),
    }
    periodic::run(&stand, seconds);
    goals::print(&results, &growths, ten_thousand);
    Ok(())
}

/// What a pair of ordered stamps shows with nothing between.
fn pair_ns(timebase: &Timebase) -> f64 {
    let pair = || {
        let before = timebase.stamp_ordered();
        timebase.stamp_ordered().since(before) as f64 * 1e9 / timebase.calibration().rate_hz
    };
    crate::report::median(&mut (0..1001).map(|_| pair()).collect::<Vec<_>>())
}
