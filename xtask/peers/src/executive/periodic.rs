//! A periodic timer over a long time: whether it stays in phase with `CLOCK_MONOTONIC`.
//!
//! A timer of one millisecond wakes a task, which reads the clock. The deadline of expiry n must be t0 + n·p to the
//! nanosecond, and the task must be as late at the end as at the beginning. A drift would show as lateness that grows.

use std::sync::{Arc, Mutex};

use hairspring_exec::{Backend, Create, ExecConfig, Executive, Limit, Priority, RunLimit, Services, ThreadProfile};
use hairspring_machine::{Host, Machine, Policy};
use hairspring_sheet::Unit;
use hairspring_sheet::render::quantity;
use hairspring_suite::executive::Bench;
use hairspring_suite::interleaving::median;
use hairspring_time::Nanos;

const PERIOD: Nanos = Nanos::from_millis(1);
/// Expiries in a second.
const PER_SECOND: u64 = 1_000;

/// One expiry as the task saw it.
#[derive(Clone, Copy)]
struct Seen {
    /// Its number n: due at t0 + n periods.
    n: u64,
    /// Its deadline, less t0 + n·p.
    off_ns: i64,
    /// When the task ran, less the deadline.
    late_ns: i64,
}

/// Runs one back-end after the other, and prints.
pub(crate) fn run(bench: &Bench, seconds: u64) {
    println!("### Periodic timer of {PERIOD} over {seconds} s\n");
    println!(
        "From the deadline until the task that the timer wakes reads CLOCK_MONOTONIC. Growth is last less first second; \
         with a drift it would be seconds × drift.\n"
    );
    println!(
        "| back-end | wakes | missed | early | deadline − (t0 + n·p), most | median late, first s | median late, last s | \
         growth of the median | growth of the least | last wake − (t0 + n·p) |"
    );
    println!("| --- |{}", " ---: |".repeat(9));
    let fiber = Backend::Fiber { cpu: Some(bench.place.cpu), policy: Policy::Fifo(60) };
    for backend in [fiber, Backend::Thread(ThreadProfile::Up { cpu: Some(bench.place.cpu) })] {
        let name = backend.name();
        eprintln!("periodic timer on {name}");
        match watch(backend, seconds) {
            Ok(seen) => println!("| **{name}** | {} |", cells(&seen, seconds)),
            Err(why) => println!("| **{name}** | no result: {why} |||||||||"),
        }
    }
    println!();
}

fn watch(backend: Backend, seconds: u64) -> Result<Vec<Seen>, String> {
    let mut executive = Executive::new(backend, &ExecConfig::default()).map_err(|error| error.to_string())?;
    let seen = Arc::new(Mutex::new(Vec::with_capacity((seconds * PER_SECOND) as usize + 100)));
    // The expiry that the task is woken for: its number and its deadline.
    let latest = Arc::new(Mutex::new((0_i64, Host.monotonic())));
    let first = Host.monotonic() + Nanos::new(20_000_000);

    let (own, samples) = (Arc::clone(&latest), Arc::clone(&seen));
    let woken = move |ctx: &hairspring_exec::TaskCtx<'_>| {
        while ctx.wait(Limit::Forever).is_ok() {
            let at = Host.monotonic();
            if let (Ok(latest), Ok(mut samples)) = (own.lock(), samples.lock()) {
                let (n, deadline) = *latest;
                let (off, late) = (deadline - (first + PERIOD * n), at - deadline);
                samples.push(Seen { n: n.cast_unsigned(), off_ns: off.count(), late_ns: late.count() });
            }
        }
    };
    let priority = Priority::new(16).unwrap_or(Priority::LOWEST);
    let task = executive.task("woken", priority, woken).map_err(|status| status.to_string())?;
    let mut next = 0;
    let procedure = move |ctx: &hairspring_exec::TimerCtx<'_>, expiry: hairspring_exec::Expiry| {
        next += expiry.missed.cast_signed();
        if let Ok(mut latest) = latest.lock() {
            *latest = (next, expiry.deadline);
        }
        next += 1;
        let _ = ctx.wake(task);
    };
    let timer = executive.timer("period", procedure).map_err(|status| status.to_string())?;
    executive.trigger(task).map_err(|status| status.to_string())?;
    executive.start_periodic(timer, first, PERIOD).map_err(|status| status.to_string())?;
    let end = first + Nanos::from_secs(seconds.cast_signed()) + Nanos::new(500_000);
    let finish = executive.run(RunLimit::Until(end));
    if let Some(refused) = finish.refused.first() {
        return Err(format!("failed to {refused}"));
    }
    drop(executive);
    let seen = seen.lock().map_err(|_| "the task panicked".to_owned())?.clone();
    if seen.is_empty() { Err("the task never ran".to_owned()) } else { Ok(seen) }
}

fn cells(seen: &[Seen], seconds: u64) -> String {
    let within = |from: u64| {
        let late =
            seen.iter().filter(|seen| (from..from + PER_SECOND).contains(&seen.n)).map(|seen| seen.late_ns as f64);
        late.collect::<Vec<_>>()
    };
    let (first, last) = (within(0), within((seconds - 1) * PER_SECOND));
    let least = |samples: &[f64]| samples.iter().copied().fold(f64::INFINITY, f64::min);
    let (first_median, last_median) = (median(&first), median(&last));
    let early = seen.iter().filter(|seen| seen.late_ns < 0).count();
    let off = seen.iter().map(|seen| seen.off_ns.abs()).max().unwrap_or(0);
    let (expected, end) = (seen.last().map_or(0, |seen| seen.n + 1), seen.last().map_or(0, |seen| seen.late_ns));
    let ns = |value: f64| quantity(value, Unit::Ns);
    [
        seen.len().to_string(),
        (expected - (seen.len() as u64).min(expected)).to_string(),
        early.to_string(),
        ns(off as f64).to_string(),
        ns(first_median).to_string(),
        ns(last_median).to_string(),
        ns(last_median - first_median).to_string(),
        ns(least(&last) - least(&first)).to_string(),
        ns(end as f64).to_string(),
    ]
    .join(" | ")
}
