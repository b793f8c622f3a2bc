//! Delays and sleeps, ours and the peers', timed from outside by ordered stamps.

use std::hint::black_box;
use std::time::Duration;

use hairspring_machine::{Clock, Cpu, Host, Machine, SleepCall};
use hairspring_sheet::render::quantity;
use hairspring_sheet::{Figure, Method, Unit};
use hairspring_time::{DelayError, LongDelay, Nanos, Policy, RealTime, Report, Timebase};
use spin_sleep::{SpinSleeper, SpinStrategy};

use crate::report::statistics;

/// Requests with the number of delays of each candidate.
const REQUESTS: [(Nanos, usize); 7] = [
    (Nanos::from_micros(1), 2_000),
    (Nanos::from_micros(10), 2_000),
    (Nanos::from_micros(100), 1_000),
    (Nanos::from_millis(1), 500),
    (Nanos::from_millis(10), 120),
    (Nanos::from_millis(100), 20),
    (Nanos::from_secs(1), 5),
];
/// From this length on our candidate is the long delay.
const LONG_FROM: Nanos = Nanos::from_millis(1);
/// Delays of one candidate in a turn.
const TURN: usize = 50;
/// A rest between turns, so that polling under `SCHED_FIFO` stays below the kernel's limit.
const REST: Nanos = Nanos::from_millis(1);

const CANDIDATES: [&str; 5] = [
    "**hairspring**",
    "spin_sleep, default",
    "spin_sleep, hint",
    "clock_nanosleep absolute, slack 1 ns",
    "std::thread::sleep",
];

pub(crate) fn run(timebase: Timebase, cpu: Cpu, quick: bool) {
    println!("## Delays\n");
    println!(
        "Lateness by ordered stamps around the call, entry and return included. Ours: the guaranteed minimum below 1 ms, \
         the long delay from there on.\n"
    );
    let mut timebase = timebase;
    for policy in [Policy::Fifo(80), Policy::Other] {
        let settings = RealTime {
            policy: Some(policy),
            cpu: Some(cpu),
            lock_memory: policy != Policy::Other,
            slack: None,
            idle: None,
        };
        let guard = settings.apply(&Host);
        println!("### {policy:?}\n");
        if let Some(refused) = guard.refused() {
            println!("absent: failed to {refused}\n");
            continue;
        }
        println!("| request | candidate | n | min | median | p99 | max | early | CPU |");
        println!("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
        for (request, count) in REQUESTS {
            eprintln!("delays of {request}, {policy:?}");
            timebase = timebase.refine().timebase;
            one_request(&timebase, request, if quick { count.div_ceil(4) } else { count });
        }
        println!();
    }
    println!("The counter's rate is known to ±{}.\n", quantity(timebase.calibration().bound_ppm, Unit::Ppm));
}

/// Reads the lateness of a report, as a caller does. To hand over the whole report would copy it, which the others need
/// not do.
fn late(told: Result<Report, DelayError>) {
    black_box(told.map_or(Nanos::ZERO, |report| report.late));
}

/// The samples of one candidate.
#[derive(Default)]
struct Tally {
    late: Vec<f64>,
    cpu: Nanos,
    wall: Nanos,
}

/// Makes and times `turn` delays. Inlined, like the calls: the stamps stand right before and after the call, as in a
/// program that makes it. A way back through this function would be in no cache after a sleep, and be counted with the
/// delay.
#[inline(always)]
fn take(tally: &mut Tally, timebase: &Timebase, request: Nanos, turn: usize, mut delay: impl FnMut()) {
    let began = (Host.monotonic(), Host.read(Clock::ThreadCpu));
    for _ in 0..turn {
        let before = timebase.stamp_ordered();
        delay();
        let ticks = timebase.stamp_ordered().since(before);
        tally.late.push((timebase.nanos(ticks) - request).count() as f64);
    }
    tally.wall += Host.monotonic() - began.0;
    tally.cpu += Host.read(Clock::ThreadCpu) - began.1;
    Host.sleep_until(Host.monotonic() + REST);
}

fn one_request(timebase: &Timebase, request: Nanos, count: usize) {
    let mut tallies: [Tally; CANDIDATES.len()] = Default::default();
    let mut long = LongDelay::new(timebase);
    let (default, hint) =
        (SpinSleeper::default(), SpinSleeper::default().with_spin_strategy(SpinStrategy::SpinLoopHint));
    let span = Duration::try_from(request).unwrap_or_default();
    let mut left = count;
    while left > 0 {
        let turn = left.min(TURN);
        left -= turn;
        let [ours, by_default, by_hint, by_kernel, by_std] = &mut tallies;
        if request < LONG_FROM {
            take(ours, timebase, request, turn, || late(timebase.delay(request)));
        } else {
            take(ours, timebase, request, turn, || late(long.delay(request)));
        }
        take(by_default, timebase, request, turn, || default.sleep(span));
        take(by_hint, timebase, request, turn, || hint.sleep(span));
        let slack = Host.timer_slack();
        Host.set_timer_slack(Nanos::new(1));
        take(by_kernel, timebase, request, turn, || {
            Host.sleep(SleepCall::ClockNanosleep, request);
        });
        Host.set_timer_slack(slack);
        take(by_std, timebase, request, turn, || std::thread::sleep(span));
    }
    for (name, tally) in CANDIDATES.iter().zip(&mut tallies) {
        let early = tally.late.iter().filter(|late| **late < 0.0).count();
        let share = tally.cpu.count() as f64 / tally.wall.count().max(1) as f64;
        let figure = Figure::from_samples(Unit::Ns, Method::Stamp, &mut tally.late);
        println!("| {request} | {name} | {} | {early} | {} |", statistics(&figure), quantity(share, Unit::Ratio));
    }
}
