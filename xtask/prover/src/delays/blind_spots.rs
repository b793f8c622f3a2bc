//! Proof: of the delays that stamps around the call see late, few are called clean.
//!
//! A delay itself does not see a disturbance of the thread before its first or after its last reading of the counter.
//! The stamps of its caller do.
//!
//! A first delay after a pause is counted apart: its code is cold, and the delay cannot see the time of fetching it
//! before the first reading inside the call. It is no disturbance either, for the next pause brings it again.

use hairspring_time::{Host, Machine, Nanos, Policy, Timebase};
use serde_json::{Map, json};

use crate::placement::{PAUSE, POLICIES, STRETCH, take};
use crate::{Verdict, order_statistics};

/// The requests.
const REQUESTS: [Nanos; 3] = [Nanos::from_micros(1), Nanos::from_micros(10), Nanos::from_micros(30)];
/// Lateness beyond which a delay counts as late.
const LATE: Nanos = Nanos::new(1_500);
/// One in this number of late delays may be called clean.
const CLEAN_ONE_OF: u64 = 20;
/// With fewer late delays the share is not significant.
const LATE_LEAST: u64 = 200;

pub(crate) fn prove(count: u64) -> Verdict {
    let mut figures = Map::new();
    let timebase = match Timebase::calibrate_to(Host, 1.0, Nanos::from_secs(1)) {
        Ok(timebase) => timebase,
        Err(error) => {
            figures.insert("defect".to_owned(), json!(error.to_string()));
            return Verdict { passed: false, figures };
        }
    };
    let (mut passed, mut too_few) = (true, Vec::new());
    // Each length for itself: the longer a delay, the more of its disturbances fall between its own looks.
    for request in REQUESTS {
        let (mut late, mut clean) = (0, 0);
        for (name, policy) in POLICIES {
            match run(&timebase, policy, request, count) {
                Ok(Delays { mut repeated, mut first }) => {
                    for (which, delays) in [("repeated", &mut repeated), ("first after a pause", &mut first)] {
                        if delays.late.is_empty() {
                            continue;
                        }
                        let label =
                            format!("{name}, {request}, {which}: late by more than {LATE}, of them called clean");
                        figures.insert(label, json!([delays.too_late, delays.clean]));
                        let label = format!("{name}, {request}, {which}: lateness as the caller sees it");
                        figures.insert(label, order_statistics::figures(&mut delays.late));
                    }
                    late += repeated.too_late;
                    clean += repeated.clean;
                }
                Err(refused) => {
                    figures.insert(format!("{name}, {request}: refused"), json!(refused));
                }
            }
        }
        if late < LATE_LEAST {
            too_few.push(format!("only {late} delays of {request} were late, too few for a share"));
            continue;
        }
        figures.insert(format!("{request}: called clean in percent"), json!((clean * 10_000 / late) as f64 / 100.0));
        passed &= clean * CLEAN_ONE_OF <= late;
    }
    if passed && !too_few.is_empty() {
        figures.insert(crate::NOT_RUN.to_owned(), json!(too_few.join("; ")));
        return Verdict { passed: false, figures };
    }
    Verdict { passed, figures }
}

/// Delays of one kind.
#[derive(Default)]
struct Seen {
    /// Lateness of each for its caller, in nanoseconds.
    late: Vec<i64>,
    too_late: u64,
    /// Number of those that were too late and called clean.
    clean: u64,
}

#[derive(Default)]
struct Delays {
    repeated: Seen,
    first: Seen,
}

fn run(timebase: &Timebase<Host>, policy: Policy, request: Nanos, count: u64) -> Result<Delays, String> {
    let _guard = take(policy)?;
    let mut delays = Delays::default();
    // Its memory is there before the delays begin.
    delays.repeated.late = vec![0; count as usize];
    delays.repeated.late.clear();
    let mut stretch_ends = Host.monotonic() + STRETCH;
    let mut is_first = true;
    for number in 0..count {
        let before = timebase.stamp_ordered();
        let report = timebase.delay(request);
        let after = timebase.stamp_ordered();
        let report = report.map_err(|error| error.to_string())?;
        let late = timebase.nanos(after.since(before)) - request;
        let seen = if is_first { &mut delays.first } else { &mut delays.repeated };
        seen.late.push(late.count());
        if late > LATE {
            seen.too_late += 1;
            seen.clean += u64::from(report.verdict.is_clean());
        }
        is_first = false;
        // A look at the clock every hundred delays: 3 ms at the most.
        if policy != Policy::Other && number.is_multiple_of(100) {
            let now = Host.monotonic();
            if now > stretch_ends {
                Host.sleep_until(now + PAUSE);
                stretch_ends = Host.monotonic() + STRETCH;
                is_first = true;
            }
        }
    }
    Ok(delays)
}
