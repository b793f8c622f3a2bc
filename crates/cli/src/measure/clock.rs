//! `hairspring clock`: calibrates the counter and judges whether it can be trusted.

use clap::Args;
use hairspring_machine::{Host, Machine};
use hairspring_sheet::Unit;
use hairspring_sheet::render::{quantity, quantity_with_digits};
use hairspring_time::{Nanos, TimeSource, Timebase};
use serde_json::json;

use crate::arguments::{Plain, duration};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::page::{Example, Page};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page::new(
    "clock",
    &[
        Example { does: "Show the calibration after a tenth of a second", line: "hairspring clock" },
        Example { does: "Show it after ten seconds, for programs", line: "hairspring clock --age 10s --format json" },
    ],
);

/// Calibrate the processor's counter and say whether to trust it
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Age of the calibration when it is printed; its bound shrinks with age
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "100ms")]
    #[arg(allow_hyphen_values = true)]
    age: Nanos,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
}

/// The longest age; a longer one is likely a typing mistake.
const AGE_MOST: Nanos = Nanos::from_secs(3_600);

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    if arguments.age > AGE_MOST {
        return Err(Failure::bad_request(format!(
            "--age {} is more than {AGE_MOST}: write a shorter time",
            arguments.age
        )));
    }
    let timebase = Timebase::calibrate(Host).map_err(Failure::failed_to)?;
    let fresh = *timebase.calibration();
    // The age counts from the baseline, not from the start of the command, which may be late on a busy machine.
    let until = Host.monotonic() + (arguments.age - fresh.baseline).max(Nanos::ZERO);
    while Host.monotonic() < until {
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
    line("cost", format!("{} of wall time, {} of CPU time", timebase.cost().wall, timebase.cost().cpu));
    line("trusted", if trust.trusted { "yes" } else { "no" }.to_owned());
    for reason in &trust.reasons {
        line("", format!("{} {}", if reason.supports { "+" } else { "−" }, reason.text));
    }
    if trust.guest {
        line("", "· a guest: the hypervisor can take time away unnoticed".to_owned());
    }
    match Host.discipline() {
        Ok(kept) => line(
            "kernel clock",
            format!(
                "{}, at most {} from UTC by the kernel's own estimate",
                if kept.synchronized { "synchronized" } else { "not synchronized" },
                kept.most_error
            ),
        ),
        Err(unread) => line("kernel clock", format!("unknown: {}", unread.reason)),
    }
    text
}

fn source(source: TimeSource) -> &'static str {
    match source {
        TimeSource::Counter => "counter",
        TimeSource::KernelClock => "CLOCK_MONOTONIC",
    }
}

fn json(timebase: &Timebase) -> String {
    let calibration = timebase.calibration();
    let trust = timebase.trust();
    let reasons: Vec<_> =
        trust.reasons.iter().map(|reason| json!({ "supports": reason.supports, "text": reason.text })).collect();
    let value = json!({
        "schema": "hairspring.clock/1",
        "source": match timebase.source() { TimeSource::Counter => "counter", TimeSource::KernelClock => "clock_monotonic" },
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
