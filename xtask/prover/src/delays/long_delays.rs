//! Proof: long delays end within a microsecond where nothing disturbs them, at every length, under two policies.
//!
//! The proof decides whether a delay was disturbed without looking at its lateness: by the gaps that its watch saw and
//! by the time that the thread waited for its CPU (`schedstat`). It counts disturbed delays; if there are more than 5
//! percent, there is no result. A late wake-up and a lateness without a known cause are no disturbance: they count
//! against the delay. Lateness is the one in the delay's report, from its first reading to its last. The report of the
//! proof also shows stamps around the call, converted at the end with a time base refined over the whole run.

use hairspring_machine::Clock;
use hairspring_time::{Cause, Host, LongDelay, Machine, Nanos, Policy, Report, Timebase};
use serde_json::{Map, Value, json};

use crate::placement::{POLICIES, take};
use crate::{Verdict, order_statistics};

/// Lengths with their names, and how often each is tried.
const LENGTHS: [(&str, Nanos, u32); 4] = [
    ("1ms", Nanos::from_millis(1), 300),
    ("10ms", Nanos::from_millis(10), 100),
    ("100ms", Nanos::from_millis(100), 100),
    ("1s", Nanos::from_secs(1), 20),
];
/// A delay is good when it is late by at most this.
const GOOD_NS: i64 = 1_000;
/// The median of all the delays, disturbed or not, must not be later than this.
const MEDIAN_MOST_NS: i64 = 50;
/// The CPU share of delays of a second must not be larger than this.
const CPU_SHARE_MOST: f64 = 0.001;
/// The largest share of disturbed delays with which there is a result.
const EXCLUDED_MOST: f64 = 0.05;
/// The share of the undisturbed ones that must be good, under `SCHED_FIFO`.
const GOOD_LEAST: f64 = 0.99;

struct Sample {
    report: Report,
    /// Ticks between the outer stamps.
    outer: i64,
    /// Time the thread waited for its CPU meanwhile, as far as the kernel shows it.
    waited: Nanos,
}

struct Run {
    name: String,
    samples: Vec<Sample>,
    cpu_share: f64,
}

/// Runs `part` percent of the full number of delays.
pub(crate) fn prove(part: u32) -> Verdict {
    let mut figures = Map::new();
    let mut passed = true;
    let Ok(mut timebase) = Timebase::calibrate_to(Host, 1.0, Nanos::from_secs(1)) else {
        figures.insert("defect".to_owned(), json!("no time base"));
        return Verdict { passed: false, figures };
    };
    let mut runs = Vec::new();
    for (name, policy) in POLICIES {
        match run_policy(&timebase, name, policy, part) {
            Ok(more) => runs.extend(more),
            Err(refused) => {
                passed = false;
                figures.insert(format!("{name}_refused"), json!(refused));
            }
        }
        timebase = timebase.refine().timebase;
    }
    for run in &runs {
        let (good, value) = judge(&timebase, run);
        passed &= good;
        figures.insert(run.name.clone(), value);
    }
    figures.insert("final_bound_ppm".to_owned(), json!(timebase.calibration().bound_ppm));
    Verdict { passed: passed && !runs.is_empty(), figures }
}

fn run_policy(timebase: &Timebase, name: &str, policy: Policy, part: u32) -> Result<Vec<Run>, String> {
    let _guard = take(policy)?;
    let mut long = LongDelay::new(timebase);
    LENGTHS
        .into_iter()
        .map(|(length, request, count)| {
            let count = (count * part / 100).max(2);
            let (wall, cpu) = (Host.monotonic(), Host.read(Clock::ThreadCpu));
            let samples: Result<Vec<Sample>, String> =
                (0..count).map(|_| sample(timebase, &mut long, request)).collect();
            let spent = (Host.read(Clock::ThreadCpu) - cpu).as_secs_f64();
            let cpu_share = spent / (Host.monotonic() - wall).as_secs_f64();
            Ok(Run { name: format!("{name}_{length}"), samples: samples?, cpu_share })
        })
        .collect()
}

fn sample(timebase: &Timebase, long: &mut LongDelay<'_, Host>, request: Nanos) -> Result<Sample, String> {
    let waited_before = Host.usage().run_delay.unwrap_or(Nanos::ZERO);
    let before = timebase.stamp_ordered();
    let report = long.delay(request);
    let after = timebase.stamp_ordered();
    let waited = Host.usage().run_delay.unwrap_or(Nanos::ZERO) - waited_before;
    Ok(Sample { report: report.map_err(|error| error.to_string())?, outer: after.since(before), waited })
}

/// Whether the thread lost its CPU at the end, by evidence independent of the lateness: a gap, or a wait for the CPU
/// longer than the reserved time.
fn is_disturbed(sample: &Sample) -> bool {
    let seen = [Cause::Preempted, Cause::Interrupted, Cause::InterruptedOrStolen];
    let gaps = seen.iter().any(|cause| sample.report.verdict.gaps(*cause).count > 0);
    gaps || sample.waited > sample.report.window
}

fn judge(timebase: &Timebase, run: &Run) -> (bool, Value) {
    let (disturbed, clean): (Vec<&Sample>, Vec<&Sample>) = run.samples.iter().partition(|sample| is_disturbed(sample));
    let outer = |sample: &Sample| timebase.nanos(sample.outer).count() - sample.report.requested.count();
    let mut inside: Vec<i64> = clean.iter().map(|sample| sample.report.late.count()).collect();
    let mut outside: Vec<i64> = clean.iter().map(|sample| outer(sample)).collect();
    let share = |late: &[i64]| late.iter().filter(|late| **late <= GOOD_NS).count() as f64 / late.len().max(1) as f64;
    let (good, good_outside) = (share(&inside), share(&outside));
    let mut all: Vec<i64> = run.samples.iter().map(|sample| sample.report.late.count()).collect();
    all.sort_unstable();
    let median = all.get(all.len() / 2).copied().unwrap_or(i64::MAX);
    // Early delays are counted among all, disturbed or not.
    let early = run.samples.iter().filter(|sample| sample.report.late < Nanos::ZERO || outer(sample) < 0).count();
    let mut verdicts = Map::new();
    for sample in &run.samples {
        let count = verdicts.entry(sample.report.verdict.name()).or_insert(json!(0));
        *count = json!(count.as_u64().unwrap_or(0) + 1);
    }
    let longest = |sample: &Sample| Cause::ALL.map(|cause| sample.report.verdict.gaps(cause).longest.count());
    let mut gaps: Vec<i64> = run.samples.iter().flat_map(longest).filter(|gap| *gap > 0).collect();
    let excluded = disturbed.len() as f64 / run.samples.len() as f64;
    let is_result = excluded <= EXCLUDED_MOST;
    let value = json!({
        "inside": order_statistics::figures(&mut inside),
        "outside": order_statistics::figures(&mut outside),
        "verdicts": verdicts,
        "excluded": disturbed.len(),
        "is_result": is_result,
        "early": early,
        "within_1us": good,
        "within_1us_outside": good_outside,
        "median_of_all_ns": median,
        "longest_of_all_ns": all.last(),
        "gaps": order_statistics::figures(&mut gaps),
        "cpu_share": run.cpu_share,
    });
    let spread_held = !run.name.starts_with("fifo") || (is_result && good >= GOOD_LEAST);
    let share_held = !run.name.ends_with("_1s") || run.cpu_share <= CPU_SHARE_MOST;
    (early == 0 && median <= MEDIAN_MOST_NS && spread_held && share_held, value)
}
