//! Proof: of the delays that their caller sees late, hardly any is called clean.
//!
//! Each delay of a microsecond lies between two ordered stamps. While a colleague keeps the CPU busy and sleeps by turns, disturbances are
//! frequent. A delay that the stamps see more than 1.5 µs late, and whose verdict is clean, was disturbed between its caller's stamp
//! and its own first or last look: its blind spots. At most one in twenty may fall into them.

use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Clock, CpuSet};
use hairspring_time::{Host, Machine, Nanos, Timebase};
use serde_json::{Map, json};

use super::Verdict;
use super::place::last_cpu;

const REQUEST: Nanos = Nanos::from_micros(1);
/// What the stamps call late.
const LATE: Nanos = Nanos::new(1_500);
/// One in so many late delays may be called clean.
const ALLOWED_PART: u64 = 20;
/// Fewer late delays say nothing about a share.
const LATE_LEAST: u64 = 200;

pub(crate) fn prove(seconds: u32) -> Verdict {
    let mut figures = Map::new();
    let Ok(timebase) = Timebase::calibrate_to(Host, 1.0, Nanos::from_secs(1)) else {
        figures.insert("defect".to_owned(), json!("no time base"));
        return Verdict { passed: false, figures };
    };
    let ended = AtomicBool::new(false);
    let (made, late, clean) = std::thread::scope(|scope| {
        scope.spawn(|| disturb(&ended));
        let counted = scope.spawn(|| count(&timebase, Nanos::from_secs(i64::from(seconds))));
        let counted = counted.join().unwrap_or_default();
        // Relaxed: the flag carries no data.
        ended.store(true, Ordering::Relaxed);
        counted
    });
    figures.insert("delays".to_owned(), json!(made));
    figures.insert("late_seen_outside".to_owned(), json!(late));
    figures.insert("called_clean".to_owned(), json!(clean));
    Verdict { passed: late >= LATE_LEAST && clean * ALLOWED_PART <= late, figures }
}

/// Works and sleeps by turns of some 100 µs on the CPU of the delays, so that each wake-up preempts one.
fn disturb(ended: &AtomicBool) {
    let _ = Host.set_affinity(&CpuSet(vec![last_cpu()]));
    while !ended.load(Ordering::Relaxed) {
        let until = Host.read(Clock::Monotonic) + Nanos::from_micros(20);
        while Host.read(Clock::Monotonic) < until {
            std::hint::spin_loop();
        }
        Host.sleep_until(until + Nanos::from_micros(150));
    }
}

/// How many delays were made, how many were late by the stamps outside, and how many of these were called clean.
fn count(timebase: &Timebase, span: Nanos) -> (u64, u64, u64) {
    let _ = Host.set_affinity(&CpuSet(vec![last_cpu()]));
    let until = Host.read(Clock::Monotonic) + span;
    let (mut made, mut late, mut clean) = (0, 0, 0);
    while Host.read(Clock::Monotonic) < until {
        for _ in 0..1_000 {
            let before = timebase.stamp_ordered();
            let report = timebase.delay(REQUEST);
            let after = timebase.stamp_ordered();
            made += 1;
            if timebase.nanos(after.since(before)) - REQUEST > LATE {
                late += 1;
                clean += u64::from(report.is_ok_and(|report| report.verdict.is_clean()));
            }
        }
    }
    (made, late, clean)
}
