//! `hairspring pulse`: makes pulses on a device's lines, and says what each was at least and at most.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hairspring_device::pulse::{PulseError, Train};
use hairspring_device::{DeviceError, Lend, Lines, Pulse, PulseReport};
use hairspring_machine::Host;
use hairspring_sheet::{Figure, Method, Unit};
use hairspring_time::{Nanos, Timebase};
use serde_json::{Value, json};

use crate::arguments::{Plain, PulseArguments};
use crate::drawing::{self, DRAWING};
use crate::exit::{Exit, Failure};
use crate::listing::{Listing, grouped, span};
use crate::output::OutputFile;
use crate::{distribution, interrupt, output, placement};

/// Age of the calibration before the pulses begin.
const AGE: Nanos = Nanos::from_millis(100);
/// The pause between pulses unless a period is given, as a multiple of their width.
const PAUSE_WIDTHS: i64 = 9;
/// The least period unless one is given.
const PERIOD_LEAST: Nanos = Nanos::from_micros(100);

/// What was made, as it is shown.
struct Made<'a> {
    arguments: &'a PulseArguments,
    device: String,
    safe: Lines,
    period: Nanos,
    train: Train,
}

pub(crate) fn run(arguments: &PulseArguments) -> Result<Exit, Failure> {
    let usual = Nanos::new(arguments.width.count().saturating_mul(1 + PAUSE_WIDTHS)).max(PERIOD_LEAST);
    let period = arguments.period.unwrap_or(usual);
    let file = arguments.out.as_deref().map(|file| {
        if drawing::ends_with(file, DRAWING) {
            return OutputFile::create(file);
        }
        Err(Failure::bad_request(format!("--out {}: write a name that ends in .svg", file.display())))
    });
    let file = file.transpose()?;
    let stop = Arc::new(AtomicBool::new(false));
    // A second signal does not end the program either: the line may be up.
    interrupt::flag_only(&stop)?;
    let failed = |error: &dyn std::fmt::Display| Failure::failed(format!("failed to {error}"));
    let timebase = Timebase::calibrate_to(Host, 1.0, AGE).map_err(|error| failed(&error))?;
    let pulse = Pulse { lines: Lines::one(arguments.line), width: arguments.width };
    let device = arguments.device.open_guarded(pulse.lines, None, &timebase);
    let mut device = device.map_err(|error| Failure::bad_request(error.to_string()))?.cancelled_by(&stop);
    let in_force = arguments.device.in_force(&timebase).map_err(|error| Failure::bad_request(error.to_string()))?;
    let guard = placement::apply(arguments.priority, arguments.cpu)?;
    let refused = |error: DeviceError| Failure::failed(error.to_string());
    device.lend(|device| device.init()).and_then(Option::transpose).map_err(refused)?;
    let train = pulse.train(arguments.count, period, &mut device, &timebase, &stop);
    drop(guard);
    let train = train.map_err(|error| match error {
        PulseError::Period(_) => Failure::bad_request(format!("--period: {error}")),
        error => Failure::failed(error.to_string()),
    })?;
    device.make_safe().map_err(refused)?;
    let safe = device.safe_state();
    let exit = if train.stopped { Exit::Interrupted } else { Exit::Success };
    let made = Made { arguments, device: in_force.to_string(), safe, period, train };
    if let Some(file) = file.filter(|_| !made.train.pulses.is_empty()) {
        file.finish(&made.drawing()?)?;
    }
    output::print(&match arguments.format {
        Plain::Text => made.text(output::style(false).width),
        Plain::Json => made.json(),
    })?;
    Ok(exit)
}

impl Made<'_> {
    fn figure(&self, read: fn(&PulseReport) -> Nanos) -> Figure {
        let mut samples: Vec<f64> = self.train.pulses.iter().map(|pulse| read(pulse).count() as f64).collect();
        Figure::from_samples(Unit::Ns, Method::Stamp, &mut samples)
    }

    /// Pulses that were shorter than asked: none, or this program is wrong.
    fn short(&self) -> usize {
        self.train.pulses.iter().filter(|pulse| pulse.at_least < pulse.width).count()
    }

    fn disturbed(&self) -> usize {
        self.train.pulses.iter().filter(|pulse| pulse.is_disturbed()).count()
    }

    fn drawing(&self) -> Result<String, Failure> {
        let title = format!("pulses of {} on line {} of {}", self.arguments.width, self.arguments.line, self.device);
        let pulses = self.train.pulses.iter();
        let pulses = pulses.map(|pulse| (pulse.at_least, pulse.at_most, pulse.is_disturbed()));
        drawing::drawn(&[drawing::made(title, self.arguments.width, pulses)])
    }

    fn text(&self, width: usize) -> String {
        let arguments = self.arguments;
        let (count, line) = (grouped(self.train.pulses.len() as u64), arguments.line);
        let mut text = format!(
            "{count} pulses of {} on line {line} of {}; how long they were at most:\n\n",
            arguments.width, self.device
        );
        text.push_str(&distribution::drawn(&self.figure(|pulse| pulse.at_most), width));
        text.push('\n');
        let mut listing = Listing::new(width);
        let shortest = self.train.pulses.iter().map(|pulse| pulse.at_least).min();
        listing.fact(
            "at least",
            &shortest.map_or_else(|| "none was made".to_owned(), |shortest| format!("{} each", span(shortest))),
        );
        listing.fact("too short", &self.short().to_string());
        listing.fact("disturbed", &format!("{} while they were up", self.disturbed()));
        if let Some(cut) = &self.train.cut_short {
            let told =
                format!("one more, up for {} to {} when it was told to stop", span(cut.at_least), span(cut.at_most));
            listing.fact("cut short", &told);
        }
        let latest = self.train.pulses.iter().map(|pulse| pulse.late).max().unwrap_or(Nanos::ZERO);
        listing.fact(
            "begun",
            &format!("every {}, at most {} late; {} left out", self.period, span(latest), self.train.left_out),
        );
        listing.fact("safe state", &self.safe.to_string());
        if let Some(file) = &arguments.out {
            listing.fact("written", &format!("{}, for a browser", file.display()));
        }
        text.push_str(&listing.finish());
        text
    }

    fn json(&self) -> String {
        let spread = |figure: &Figure| -> Value {
            json!({ "n": figure.n, "min": figure.min, "median": figure.median, "p99": figure.p99, "max": figure.max })
        };
        let value = json!({
            "schema": "hairspring.pulse/1",
            "device": self.device,
            "line": self.arguments.line,
            "width_ns": self.arguments.width.count(),
            "period_ns": self.period.count(),
            "pulses": self.train.pulses.len(),
            "left_out": self.train.left_out,
            "stopped": self.train.stopped,
            "cut_short": self.train.cut_short.map(|cut| {
                json!({ "at_least_ns": cut.at_least.count(), "at_most_ns": cut.at_most.count() })
            }),
            "too_short": self.short(),
            "disturbed": self.disturbed(),
            "at_least_ns": spread(&self.figure(|pulse| pulse.at_least)),
            "at_most_ns": spread(&self.figure(|pulse| pulse.at_most)),
            "late_ns": spread(&self.figure(|pulse| pulse.late)),
            "safe_state": self.safe.to_string(),
            "files": self.arguments.out.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }
}
