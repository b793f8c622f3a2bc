//! Proof: a guaranteed minimum is never early, in very many delays of random length, under two policies.
//!
//! Each delay lies between two ordered stamps of its own. All stamps are kept and converted after the run, with a time
//! base refined over the whole run, not with the one that the delays used. The thread stays on one CPU, so both stamps
//! come from one counter.

use hairspring_time::{Host, Machine, Nanos, Policy, Timebase};
use serde_json::{Map, json};

use crate::placement::{PAUSE, POLICIES, STRETCH, take};
use crate::{Verdict, order_statistics};

/// The longest request, in nanoseconds.
const LONGEST_NS: u64 = 20_000;

/// One delay: the request and the ticks between the outer stamps, both cut to 32 bits, which is more than a second.
type Sample = (u32, u32);

pub(crate) fn prove(count: u64) -> Verdict {
    let mut figures = Map::new();
    let mut passed = count >= 2;
    let Ok(mut timebase) = Timebase::calibrate_to(Host, 1.0, Nanos::from_secs(1)) else {
        figures.insert("defect".to_owned(), json!("no time base"));
        return Verdict { passed: false, figures };
    };
    let mut runs = Vec::new();
    for (name, policy) in POLICIES {
        match run(&timebase, policy, count / 2) {
            Ok(samples) => runs.push((name, samples)),
            Err(refused) => {
                passed = false;
                figures.insert(format!("{name}_refused"), json!(refused));
            }
        }
        timebase = timebase.refine().timebase;
    }
    let (mut early, mut total) = (0_u64, 0_u64);
    for (name, samples) in runs {
        let late = |(request, ticks): &Sample| timebase.nanos(i64::from(*ticks)).count() - i64::from(*request);
        let mut late: Vec<i64> = samples.iter().map(late).collect();
        early += late.iter().filter(|late| **late < 0).count() as u64;
        total += late.len() as u64;
        figures.insert(format!("{name}_late"), order_statistics::figures(&mut late));
    }
    let calibration = timebase.calibration();
    figures.insert("delays".to_owned(), json!(total));
    figures.insert("early".to_owned(), json!(early));
    figures.insert("final_bound_ppm".to_owned(), json!(calibration.bound_ppm));
    figures.insert("final_baseline_s".to_owned(), json!(calibration.baseline.as_secs_f64()));
    Verdict { passed: passed && early == 0 && total + 1 >= count, figures }
}

fn run(timebase: &Timebase, policy: Policy, count: u64) -> Result<Vec<Sample>, String> {
    // Written once beforehand, so that no page fault occurs between two stamps.
    let mut samples: Vec<Sample> = vec![(1, 1); usize::try_from(count).map_err(|_| "hold so many delays".to_owned())?];
    let _guard = take(policy)?;
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut stretch_ends = Host.monotonic() + STRETCH;
    for (number, sample) in samples.iter_mut().enumerate() {
        let request_ns = random.below(LONGEST_NS + 1);
        let request = Nanos::new(request_ns.cast_signed());
        let before = timebase.stamp_ordered();
        let report = timebase.delay(request);
        let after = timebase.stamp_ordered();
        report.map_err(|error| error.to_string())?;
        *sample = (narrow(request_ns.cast_signed()), narrow(after.since(before)));
        // Checks the clock every thousand delays, which is every 10 ms at most.
        if policy != Policy::Other && number % 1_000 == 0 {
            let now = Host.monotonic();
            if now > stretch_ends {
                Host.sleep_until(now + PAUSE);
                stretch_ends = Host.monotonic() + STRETCH;
            }
        }
    }
    Ok(samples)
}

/// Clamps to 32 bits: a longer span becomes the longest that fits, and a negative one, which would be early, zero.
fn narrow(span: i64) -> u32 {
    u32::try_from(span.max(0)).unwrap_or(u32::MAX)
}

/// A fixed sequence of random numbers (xorshift64, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(limit)) >> 64) as u64
    }
}
