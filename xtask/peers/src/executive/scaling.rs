//! Scaling of our fibers: 10 tasks or timers against 10,000.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hairspring_exec::{Backend, Create, Services};
use hairspring_machine::{Host, Machine, Policy};
use hairspring_sheet::Unit;
use hairspring_suite::executive::{Bench, Round};
use hairspring_suite::interleaving::{Random, median};
use hairspring_time::Nanos;

use super::Spread;
use super::direct::{self, conclude, executive, failed, priority};
use super::meter::{LOW, Meter, Outcome, Tray};

const FEW: usize = 10;
const MANY: usize = 10_000;
/// No claim is made for more fibers than this.
pub(crate) const GROWTH_MOST: f64 = 1.5;
/// The same CPU as the suite's carrier thread.
const CARRIER_PRIORITY: u8 = 60;
/// Mean time between two expiries, for any number of timers.
const EXPIRY_EVERY: Nanos = Nanos::from_micros(2);
/// Most expiries looked at in one batch.
const EXPIRIES_MOST: usize = 100_000;

/// One operation among few and among many.
pub(crate) struct Growth {
    pub(crate) name: &'static str,
    /// Whether it has a goal.
    pub(crate) goal: bool,
    few: Option<Spread>,
    many: Option<Spread>,
}

impl Growth {
    /// Factor by which the operation costs more among many.
    pub(crate) fn ratio(&self) -> Option<f64> {
        Some(self.many.as_ref()?.median / self.few.as_ref()?.median)
    }
}

/// Measures all four operations, among few and among many in turns.
pub(crate) fn take(bench: &Bench, repeats: usize) -> Vec<Growth> {
    type Operation = fn(&Bench, usize) -> Outcome;
    let operations: [(&str, bool, Operation); 4] = [
        ("wake + wait of one task while others wait", true, wake_wait),
        ("round robin over all tasks, one switch", false, round_robin),
        ("start + stop of one timer while others are armed", true, start_stop),
        ("one expiry while all are armed at random periods", true, expiry),
    ];
    let growth = |(name, goal, operation): (&'static str, bool, Operation)| {
        eprintln!("{name}");
        let mut samples: [Vec<f64>; 2] = Default::default();
        for _ in 0..repeats {
            for (samples, others) in samples.iter_mut().zip([FEW, MANY]) {
                match operation(bench, others) {
                    Ok(batch) => samples.push(batch.wall_ns),
                    Err(absent) => eprintln!("no result with {others}: {}", absent.reason),
                }
            }
        }
        let [few, many] = samples.map(|samples| Spread::of(samples).filter(|spread| spread.n == repeats));
        Growth { name, goal, few, many }
    };
    operations.map(growth).into()
}

pub(crate) fn print(growths: &[Growth]) {
    println!("### 10 against 10,000, on fibers: min / median / max\n");
    println!("| operation | with 10 | with 10,000 | × |\n| --- | ---: | ---: | ---: |");
    for growth in growths {
        let cell = |spread: &Option<Spread>| spread.as_ref().map_or("no result".to_owned(), |s| s.cell(Unit::Ns));
        let ratio = growth.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        println!("| {} | {} | {} | {ratio} |", growth.name, cell(&growth.few), cell(&growth.many));
    }
    println!(
        "\nThe round robin touches every stack, so with 10,000 it measures the caches. Expiries come every {EXPIRY_EVERY} on \
         average in both columns.\n"
    );
}

fn fiber(bench: &Bench) -> Backend {
    Backend::Fiber { cpu: Some(bench.place.cpu), policy: Policy::Fifo(CARRIER_PRIORITY) }
}

/// The others wait for ever, each on its own stack.
fn wake_wait(bench: &Bench, others: usize) -> Outcome {
    direct::wake_wait(fiber(bench), bench, others)
}

/// Each task yields to the next.
fn round_robin(bench: &Bench, tasks: usize) -> Outcome {
    let executive = executive(fiber(bench))?;
    let (tray, count) = (Tray::default(), Arc::new(AtomicU64::new(0)));
    for _ in 1..tasks {
        let own = Arc::clone(&count);
        let other = executive.task("other", priority(LOW), move |ctx| {
            loop {
                // Relaxed: one thread.
                own.store(own.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                ctx.yield_now();
            }
        });
        let other = other.map_err(failed)?;
        executive.trigger(other).map_err(failed)?;
    }
    let (span, left) = (bench.slice, tray.clone());
    conclude(executive, &tray, move |ctx| {
        // One round, so that each task touches its stack.
        ctx.yield_now();
        let before = count.load(Ordering::Relaxed);
        let mut meter = Meter::start(span);
        while meter.goes_on() {
            for _ in 0..(2 * MANY / tasks) {
                ctx.yield_now();
                meter.round(true);
            }
        }
        let batch = meter.finish();
        let (counted, due) = (count.load(Ordering::Relaxed) - before, batch.samples * (tasks as u64 - 1));
        let unproven = if counted.abs_diff(due) <= tasks as u64 { 0 } else { batch.samples };
        left.put(Round { wall_ns: batch.wall_ns / tasks as f64, unproven, ..batch });
        ctx.stop();
    })
}

/// The others are due long after the end.
fn start_stop(bench: &Bench, others: usize) -> Outcome {
    const SOON: u64 = 100_000_000_000;
    let executive = executive(fiber(bench))?;
    let tray = Tray::default();
    let mut random = Random::new();
    let begun = Host.monotonic();
    for _ in 0..others {
        let timer = executive.timer("other", |_, _| {}).map_err(failed)?;
        let at = begun + Nanos::new((SOON + random.below_u64(SOON)).cast_signed());
        executive.start_timer(timer, at).map_err(failed)?;
    }
    let timer = executive.timer("one", |_, _| {}).map_err(failed)?;
    let (span, left) = (bench.slice, tray.clone());
    conclude(executive, &tray, move |ctx| {
        let mut meter = Meter::start(span);
        while meter.goes_on() {
            for _ in 0..512 {
                let started = ctx.start_timer(timer, begun + Nanos::new((SOON + random.below_u64(SOON)).cast_signed()));
                meter.round(started.is_ok() & (ctx.stop_timer(timer) == Ok(true)));
            }
        }
        let batch = meter.finish();
        left.put(batch);
        ctx.stop();
    })
}

/// A task polls for expiries. The result is the time of a poll that found one, less that of a poll that found none.
fn expiry(bench: &Bench, timers: usize) -> Outcome {
    let executive = executive(fiber(bench))?;
    let (tray, count) = (Tray::default(), Arc::new(AtomicU64::new(0)));
    let mut random = Random::new();
    // Periods of one half to one and a half of the mean.
    let mean = EXPIRY_EVERY.count().unsigned_abs() * timers as u64;
    let begun = Host.monotonic() + Nanos::new(5_000_000);
    for _ in 0..timers {
        let own = Arc::clone(&count);
        let procedure = move |_: &hairspring_exec::TimerCtx<'_>, _| {
            own.store(own.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        };
        let timer = executive.timer("each", procedure).map_err(failed)?;
        let period = Nanos::new((mean / 2 + random.below_u64(mean)).cast_signed());
        let first = begun + Nanos::new(random.below_u64(mean).cast_signed());
        executive.start_periodic(timer, first, period).map_err(failed)?;
    }
    // Long enough for every timer to expire several times.
    let span = Nanos::new((bench.slice + Nanos::from_millis(60)).count());
    let (left, timebase) = (tray.clone(), bench.timebase.clone());
    conclude(executive, &tray, move |ctx| {
        let end = Host.monotonic() + Nanos::from_millis(5) + span;
        let (mut found, mut empty) = (Vec::with_capacity(EXPIRIES_MOST), Vec::with_capacity(EXPIRIES_MOST));
        while Host.monotonic() < end {
            for _ in 0..64 {
                let already = count.load(Ordering::Relaxed);
                let before = timebase.stamp_ordered();
                ctx.preempt_point();
                let ticks = timebase.stamp_ordered().since(before);
                match count.load(Ordering::Relaxed) - already {
                    0 if empty.len() < EXPIRIES_MOST => empty.push(ticks as f64),
                    1 if found.len() < EXPIRIES_MOST => found.push(ticks as f64),
                    _ => {}
                }
            }
        }
        let ns = (median(&found) - median(&empty)) * 1e9 / timebase.calibration().rate_hz;
        let rounds = found.len() as u64;
        let unproven = if rounds > 1_000 && empty.len() > 1_000 { 0 } else { rounds + 1 };
        left.put(Round { wall_ns: ns, cpu_ns: None, samples: rounds, unproven });
        ctx.stop();
    })
}
