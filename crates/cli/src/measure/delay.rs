//! `hairspring delay`: makes delays and shows how late each returned.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use clap::Args;
use hairspring_machine::{Clock, Host, Machine};
use hairspring_sheet::render::quantity;
use hairspring_sheet::{Figure, Method, Unit};
use hairspring_time::{DelayError, LongDelay, Nanos, POLL_MOST, REQUEST_MOST, Timebase, Verdict};
use serde_json::json;

use crate::arguments::{Plain, number};
use crate::exit::{Exit, Failure};
use crate::page::{Example, Page};
use crate::placement::Placement;
use crate::{histogram, interrupt, output};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page::new(
    "delay",
    &[
        Example { does: "Make delays of 250 us for two seconds", line: "hairspring delay 250us" },
        Example {
            does: "Make five delays of a second under real-time priority, asleep until shortly before the end",
            line: "hairspring delay 1s --long --count 5 --priority 80",
        },
    ],
);

/// Make delays and show how late each returned
///
/// A delay never returns early. The report shows the distribution of the lateness and what disturbed the delays.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Length of each delay, for instance 250us, 1.5ms or 2s
    #[arg(value_name = "DURATION", allow_hyphen_values = true)]
    request: String,
    /// Number of delays [default: as many as fit into two seconds, at most 10000]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = number::<u32>(1, 1_000_000))]
    count: Option<u32>,
    /// Sleep first and poll only the end; required above 100 ms
    #[arg(long)]
    long: bool,
    #[command(flatten)]
    placement: Placement,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
}

/// Default time for all delays together.
const TIME_USUAL: Nanos = Nanos::from_secs(2);
/// Greatest default count.
const COUNT_MOST: i64 = 10_000;
/// Age of the calibration before the delays begin.
const AGE: Nanos = Nanos::from_millis(100);

/// The result of the delays.
struct Outcome {
    late: Vec<f64>,
    early: u64,
    verdicts: BTreeMap<&'static str, u64>,
    window: Nanos,
    cpu_share: f64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let request = request(arguments)?;
    let count = arguments.count.map_or_else(|| usual_count(request), |count| count as usize);
    let guard = arguments.placement.apply()?;
    let interrupted = interrupt::watch()?;
    let timebase = Timebase::calibrate_to(Host, 1.0, AGE).map_err(Failure::failed_to)?;
    let mut long = arguments.long.then(|| LongDelay::new(&timebase).cancelled_by(&interrupted));
    let outcome = perform(&timebase, long.as_mut(), request, count, || interrupted.load(Ordering::Relaxed));
    drop(guard);
    let outcome = outcome.map_err(|error| match error {
        DelayError::Cancelled(_) => Failure::failed_to(error),
        _ => Failure::bad_request(format!("failed to {error}")),
    })?;
    let stopped = interrupted.load(Ordering::Relaxed);
    output::print(&match arguments.format {
        Plain::Text => text(request, &outcome, arguments.long),
        Plain::Json => json(request, &outcome, arguments.long),
    })?;
    Ok(if stopped { Exit::Interrupted } else { Exit::Success })
}

/// Checks the request.
fn request(arguments: &Arguments) -> Result<Nanos, Failure> {
    let bad = |text: String| Err(Failure::bad_request(text));
    let written = &arguments.request;
    if written.starts_with("--") {
        return bad(format!("there is no option {written}; `hairspring delay --help` lists them"));
    }
    let request: Nanos = match written.parse() {
        Ok(request) => request,
        Err(error) => return bad(format!("{written}: {error}")),
    };
    if request.is_negative() {
        return bad(format!("{request}: a delay cannot be negative: write one like 250us"));
    }
    if request > REQUEST_MOST {
        return bad(format!("{written} is more than 100 days: write a shorter delay"));
    }
    if request > POLL_MOST && !arguments.long {
        return bad(format!(
            "{request} is more than {POLL_MOST}, which is the most that a delay may poll: add --long to sleep first"
        ));
    }
    Ok(request)
}

fn usual_count(request: Nanos) -> usize {
    let fits = TIME_USUAL.count() / request.count().max(1);
    usize::try_from(fits.clamp(1, COUNT_MOST)).unwrap_or(1)
}

fn perform(
    timebase: &Timebase,
    mut long: Option<&mut LongDelay<'_, Host>>,
    request: Nanos,
    count: usize,
    stopped: impl Fn() -> bool,
) -> Result<Outcome, DelayError> {
    // Keeps little of each delay: a million must fit into locked memory.
    let mut late = Vec::with_capacity(count);
    let (mut early, mut window, mut verdicts) = (0, Nanos::ZERO, BTreeMap::from(Verdict::NAMES.map(|name| (name, 0))));
    let clocks = || (Host.monotonic(), Host.read(Clock::ThreadCpu));
    let began = clocks();
    while late.len() < count && !stopped() {
        let before = timebase.stamp_ordered();
        let outcome = match &mut long {
            Some(long) => long.delay(request),
            None => timebase.delay(request),
        };
        let after = timebase.stamp_ordered();
        match outcome {
            Ok(report) => {
                late.push(report.late.count() as f64);
                early += u64::from(report.late.is_negative() || timebase.nanos(after.since(before)) < request);
                window = report.window;
                *verdicts.entry(report.verdict.name()).or_insert(0) += 1;
            }
            // The delays until then are shown nevertheless.
            Err(DelayError::Cancelled(_)) => break,
            Err(error) => return Err(error),
        }
    }
    let ended = clocks();
    verdicts.retain(|_, count| *count > 0);
    Ok(Outcome {
        late,
        early,
        verdicts,
        window,
        cpu_share: (ended.1 - began.1).count() as f64 / (ended.0 - began.0).count().max(1) as f64,
    })
}

fn figure(outcome: &Outcome) -> Figure {
    Figure::from_samples(Unit::Ns, Method::Stamp, &mut outcome.late.clone())
}

fn text(request: Nanos, outcome: &Outcome, long: bool) -> String {
    let figure = figure(outcome);
    let kind = if long { "long delay" } else { "guaranteed minimum" };
    let mut text = format!("{} × {request}, {kind}; how late they returned:\n\n", figure.n);
    text.push_str(&histogram::drawn(&figure, output::style(false).width));
    let verdicts: Vec<String> = outcome.verdicts.iter().map(|(name, count)| format!("{count} {name}")).collect();
    text.push_str(&format!("\nearly     {}\nverdicts  {}\n", outcome.early, verdicts.join(", ")));
    text.push_str(&format!("CPU       {}", quantity(outcome.cpu_share, Unit::Ratio)));
    text.push_str(&if long { format!(", polling the last {}\n", outcome.window) } else { "\n".to_owned() });
    text
}

fn json(request: Nanos, outcome: &Outcome, long: bool) -> String {
    let f = figure(outcome);
    let value = json!({
        "schema": "hairspring.delay/1",
        "requested_ns": request.count(),
        "kind": if long { "long" } else { "minimum" },
        "n": f.n,
        "late_ns": {
            "min": f.min, "p1": f.p1, "q1": f.q1, "median": f.median, "q3": f.q3, "p99": f.p99, "p999": f.p999,
            "max": f.max, "mad": f.mad, "mean": f.mean,
        },
        "early": outcome.early,
        "verdicts": outcome.verdicts,
        "window_ns": outcome.window.count(),
        "cpu_share": outcome.cpu_share,
    });
    format!("{value:#}\n")
}
