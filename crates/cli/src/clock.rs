//! `hairspring clock`: the calibration of the counter, and whether it can be trusted.

use hairspring_machine::{Clock, Host, Machine};
use hairspring_sheet::Unit;
use hairspring_sheet::render::{quantity, quantity_with_digits};
use hairspring_time::{Nanos, Source, Timebase};
use serde_json::json;

use crate::arguments::{ClockArguments, Plain};
use crate::exit::{Exit, Failure};
use crate::output;

/// The longest age: beyond it a person has mistyped.
const AGE_MOST: Nanos = Nanos::from_secs(3_600);

pub(crate) fn run(arguments: &ClockArguments) -> Result<Exit, Failure> {
    if arguments.age > AGE_MOST {
        return Err(Failure::bad_request(format!("--age {} is more than {AGE_MOST}: write less", arguments.age)));
    }
    let timebase = Timebase::calibrate(Host).map_err(|error| Failure::failed(format!("failed to {error}")))?;
    let fresh = *timebase.calibration();
    // Its age is that of its baseline, not that of this command, which a busy machine may start late.
    let until = Host.read(Clock::Monotonic) + (arguments.age - fresh.baseline).max(Nanos::ZERO);
    while Host.read(Clock::Monotonic) < until {
        Host.sleep_until(until);
    }
    let timebase = timebase.refine().timebase;
    output::print(&match arguments.format {
        Plain::Text => text(&timebase, fresh.bound_ppm, fresh.baseline),
        Plain::Json => json(&timebase),
    })
}

fn text(timebase: &Timebase, fresh_bound_ppm: f64, fresh_baseline: Nanos) -> String {
    let calibration = timebase.calibration();
    let trust = timebase.trust();
    let mut text = String::new();
    let mut line = |name: &str, value: String| text.push_str(&format!("{name:<14} {value}\n"));
    line("time from", source(timebase.source()).to_owned());
    line("rate", quantity_with_digits(calibration.rate_hz, Unit::Hz, 10).to_string());
    line("bound", format!("± {} over {}", quantity(calibration.bound_ppm, Unit::Ppm), calibration.baseline));
    line("", format!("± {} when first usable, after {fresh_baseline}", quantity(fresh_bound_ppm, Unit::Ppm)));
    line("discipline", format!("MONOTONIC_RAW − MONOTONIC: {}", quantity(calibration.discipline_ppm, Unit::Ppm)));
    line("it took", format!("{} wall time, {} of CPU", timebase.cost().wall, timebase.cost().cpu));
    line("trusted", if trust.trusted { "yes" } else { "no" }.to_owned());
    for reason in &trust.reasons {
        line("", format!("{} {}", if reason.supports { "+" } else { "−" }, reason.text));
    }
    if trust.guest {
        line("", "· a guest: the hypervisor can take time away unseen".to_owned());
    }
    match Host.discipline() {
        Ok(kept) => line(
            "kernel clock",
            format!(
                "{}, off UTC by at most {} by its own account",
                if kept.synchronized { "synchronized" } else { "not synchronized" },
                kept.most_error
            ),
        ),
        Err(unread) => line("kernel clock", format!("unknown: {}", unread.reason)),
    }
    text
}

fn source(source: Source) -> &'static str {
    match source {
        Source::Counter => "counter",
        Source::KernelClock => "CLOCK_MONOTONIC",
    }
}

fn json(timebase: &Timebase) -> String {
    let calibration = timebase.calibration();
    let trust = timebase.trust();
    let reasons: Vec<_> =
        trust.reasons.iter().map(|reason| json!({ "supports": reason.supports, "text": reason.text })).collect();
    let value = json!({
        "schema": "hairspring.clock/1",
        "source": match timebase.source() { Source::Counter => "counter", Source::KernelClock => "clock_monotonic" },
        "rate_hz": calibration.rate_hz,
        "bound_ppm": calibration.bound_ppm,
        "baseline_ns": calibration.baseline.count(),
        "discipline_ppm": calibration.discipline_ppm,
        "wall_ns": timebase.cost().wall.count(),
        "cpu_ns": timebase.cost().cpu.count(),
        "trusted": trust.trusted,
        "guest": trust.guest,
        "reasons": reasons,
    });
    format!("{value:#}\n")
}
