//! Proof: no delay is early by the kernel's clock while that clock's rate is stepped by up to ±500 ppm at random moments.
//!
//! A thread beside the one that waits sets the rate by `adjtimex`, the most that the kernel allows, and takes it back at the end.
//! The time base is calibrated before and never again: it is as wrong as it can get. Each delay lies between two readings of
//! CLOCK_MONOTONIC.
//!
//! If this process is killed the kernel keeps the last rate that was set; `adjtimex --frequency 0` or a reboot takes it back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hairspring_machine::Clock;
use hairspring_time::{Host, LongDelay, Machine, Nanos, Policy, Timebase};
use serde_json::{Map, json};

use super::place::take;
use super::random::Random;
use super::{Verdict, summary};

/// The kernel's unit of frequency: parts per million with 16 bits after the point. This is ±500 ppm, the most it takes.
const MOST: i64 = 500 << 16;
/// Between two steps of the rate lie so many microseconds at most.
const STEP_MOST_US: u64 = 5_000;

/// What is asked for, in nanoseconds: from 20 µs on, where delays are confirmed.
const SHORTEST_NS: u64 = 20_000;

/// One delay of so many is long, whichever the way.
const LONG_ONE_OF: u64 = 2_000;
const LONG_NS: u64 = 99_000_000;

/// The ways to wait: what it is called, one of how many delays it is, and the longest request.
const WAYS: [(&str, u64, u64); 4] = [
    ("LongDelay::delay", 1_000, 20_000_000),
    ("LongDelay::delay_until", 1_000, 20_000_000),
    ("Timebase::delay_until", 10, 250_000),
    ("Timebase::delay", 1, 250_000),
];

#[derive(Default)]
struct Seen {
    early: u64,
    /// Of those to an instant: where the scale of the time base had not come to it.
    early_by_the_scale: u64,
    late_ns: Vec<i64>,
}

pub(crate) fn prove(count: u64) -> Verdict {
    let before = match frequency(None) {
        Ok(before) => before,
        Err(refused) => return Verdict::not_run(format!("adjtimex: {refused}")),
    };
    if let Err(refused) = frequency(Some(before)) {
        return Verdict::not_run(format!("adjtimex may not set the rate: {refused}"));
    }
    let timebase = match Timebase::calibrate_to(Host, 1.0, Nanos::from_secs(1)) {
        Ok(timebase) => timebase,
        Err(error) => return Verdict { passed: false, figures: Map::from_iter([defect(error.to_string())]) },
    };
    let (stop, steps) = (AtomicBool::new(false), AtomicU64::new(0));
    let waited = std::thread::scope(|scope| {
        scope.spawn(|| step_the_rate(&stop, &steps));
        let waited = wait(&timebase, count);
        // Relaxed: the flag carries no other data.
        stop.store(true, Ordering::Relaxed);
        waited
    });
    let restored = frequency(Some(before)).and_then(|_| frequency(None));
    let mut figures = Map::new();
    let mut passed = restored.as_ref().is_ok_and(|now| *now == before);
    figures.insert("steps of the rate by up to ±500 ppm".to_owned(), json!(steps.load(Ordering::Relaxed)));
    figures.insert("rate before and after, in 2^-16 ppm".to_owned(), json!([before, restored.unwrap_or(i64::MAX)]));
    match waited {
        Ok(all) => {
            for ((name, ..), mut seen) in WAYS.into_iter().zip(all) {
                passed &= (seen.early, seen.early_by_the_scale) == (0, 0) && !seen.late_ns.is_empty();
                figures.insert(format!("{name}: early by CLOCK_MONOTONIC"), json!(seen.early));
                if name.ends_with("until") {
                    figures.insert(format!("{name}: early by the time base"), json!(seen.early_by_the_scale));
                }
                figures.insert(format!("{name}: late by CLOCK_MONOTONIC"), summary::figures(&mut seen.late_ns));
            }
        }
        Err(error) => {
            passed = false;
            figures.extend([defect(error)]);
        }
    }
    Verdict { passed: passed && steps.load(Ordering::Relaxed) >= 100, figures }
}

fn defect(error: String) -> (String, serde_json::Value) {
    ("defect".to_owned(), json!(error))
}

fn wait(timebase: &Timebase<Host>, count: u64) -> Result<[Seen; 4], String> {
    let _guard = take(Policy::Other)?;
    let mut long = LongDelay::new(timebase);
    let mut random = Random::default();
    let mut all: [Seen; 4] = Default::default();
    for number in 1..=count {
        let way = WAYS.iter().position(|(_, of, _)| random.below(*of) == 0).unwrap_or(WAYS.len() - 1);
        let request_ns = SHORTEST_NS + random.below(WAYS[way].2 - SHORTEST_NS);
        // Some are as long as the delays in which the fault was found: 500 ppm of that are more than any lateness hides.
        let request_ns = if number.is_multiple_of(LONG_ONE_OF) { LONG_NS } else { request_ns };
        let request = Nanos::new(request_ns.cast_signed());
        let before = Host.read(Clock::Monotonic);
        let deadline = timebase.now() + request;
        let waited = match way {
            0 => long.delay(request),
            1 => long.delay_until(deadline),
            2 => timebase.delay_until(deadline),
            _ => timebase.delay(request),
        };
        let after = Host.read(Clock::Monotonic);
        waited.map_err(|error| error.to_string())?;
        let seen = &mut all[way];
        let late = after - before - request;
        seen.early += u64::from(late < Nanos::ZERO);
        let to_an_instant = matches!(way, 1 | 2);
        let left = deadline.since(timebase.now()).map_err(|_| "the time base has changed its epoch")?;
        seen.early_by_the_scale += u64::from(to_an_instant && left > Nanos::ZERO);
        seen.late_ns.push(late.count());
    }
    Ok(all)
}

/// Sets the rate at random moments until it is told to stop: as far off as it goes on either side, or anything between.
fn step_the_rate(stop: &AtomicBool, steps: &AtomicU64) {
    let mut random = Random::default();
    while !stop.load(Ordering::Relaxed) {
        let anything = random.below(2 * MOST as u64 + 1).cast_signed() - MOST;
        let rate = [-MOST, MOST, anything][random.below(3) as usize];
        if frequency(Some(rate)).is_ok() {
            steps.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_micros(1 + random.below(STEP_MOST_US)));
    }
}

/// The kernel's correction of its rate, after it was set to this if anything is given.
#[expect(unsafe_code, reason = "no crate of ours or of rustix has adjtimex")]
fn frequency(set: Option<i64>) -> std::io::Result<i64> {
    // SAFETY: a timex is made of integers, for which zeros are values; with no modes the kernel only fills it in.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    if let Some(frequency) = set {
        timex.modes = libc::ADJ_FREQUENCY;
        timex.freq = frequency;
    }
    // SAFETY: the pointer is to a timex of ours that lives through the call, all that the kernel asks for.
    let said = unsafe { libc::adjtimex(&raw mut timex) };
    if said == -1 { Err(std::io::Error::last_os_error()) } else { Ok(timex.freq) }
}
