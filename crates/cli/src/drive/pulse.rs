//! `hairspring pulse`: makes pulses on a line of a device, and reports the least and greatest possible width of each.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use hairspring_device::pulse::{PulseError, Train};
use hairspring_device::{DeviceDescription, DeviceError, Lend, Lines, Pulse, PulseReport};
use hairspring_machine::Host;
use hairspring_sheet::{Figure, Method, Unit};
use hairspring_time::{Nanos, Timebase};
use serde_json::{Value, json};

use crate::arguments::{Plain, duration, number, parsed};
use crate::drive::drawing::{self, DRAWING};
use crate::exit::{Exit, Failure};
use crate::listing::{Listing, grouped, span};
use crate::output::{self, OutputFile};
use crate::page::{Example, Page};
use crate::placement::Placement;
use crate::{histogram, interrupt};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "pulse",
    examples: &[
        Example {
            does: "Make a thousand pulses of 10 us on a virtual board",
            line: "hairspring pulse 10us --device virtual:/dev/shm/board --count 1000",
        },
        Example {
            does: "Make them on a parallel port under real-time priority, and draw them",
            line: "hairspring pulse 10us --device parport:/dev/parport0 --line 2 --count 1000 --priority 80 --out pulses.svg",
        },
    ],
    files: &[super::BOARD],
    environment: &[],
};

/// Make pulses on a line of a device, never shorter than requested
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Least width of each pulse, for instance 10us
    #[arg(value_name = "WIDTH", value_parser = duration, allow_hyphen_values = true)]
    width: Nanos,
    /// Device, for instance parport:/dev/parport0 or virtual:/dev/shm/board,write=1.25us. Drivers: virtual, parport,
    /// gpio, serial, comedi, pci. The device is initialised; a virtual board that does not exist is created
    #[arg(long, value_name = "DEVICE", value_parser = parsed::<DeviceDescription>)]
    device: DeviceDescription,
    /// Line, 0 to 31
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    #[arg(value_parser = number::<u32>(0, 31))]
    line: u32,
    /// Number of pulses
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    #[arg(value_parser = number::<u64>(1, 10_000_000))]
    count: u64,
    /// Time from the start of one pulse to the start of the next [default: ten widths, at least 100 us]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    period: Option<Nanos>,
    /// Draw all pulses over each other into this file (.svg)
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    placement: Placement,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
}

/// Age of the calibration before the first pulse.
const AGE: Nanos = Nanos::from_millis(100);
/// Default pause between pulses, as a multiple of their width.
const PAUSE_WIDTHS: i64 = 9;
/// Least default period.
const PERIOD_LEAST: Nanos = Nanos::from_micros(100);

/// The result, for the report.
struct Made<'a> {
    arguments: &'a Arguments,
    device: String,
    safe: Lines,
    period: Nanos,
    train: Train,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
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
    // A second signal does not end the program either: the line may be high.
    interrupt::flag_only(&stop)?;
    let timebase = Timebase::calibrate_to(Host, 1.0, AGE).map_err(Failure::failed_to)?;
    let pulse = Pulse { lines: Lines::one(arguments.line), width: arguments.width };
    let device = arguments.device.open_guarded(pulse.lines, None, &timebase);
    let mut device = device.map_err(|error| Failure::bad_request(error.to_string()))?.cancelled_by(&stop);
    let in_force = arguments.device.in_force(&timebase).map_err(|error| Failure::bad_request(error.to_string()))?;
    let guard = arguments.placement.apply()?;
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

    /// Pulses that were too short: none, unless this program has a defect.
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
        let short = match self.short() {
            0 => "none too short".to_owned(),
            short => format!("{short} TOO SHORT"),
        };
        let mut text = format!(
            "{count} pulses of {} on line {line} of {}, {short}; greatest widths:\n\n",
            arguments.width, self.device
        );
        text.push_str(&histogram::drawn(&self.figure(|pulse| pulse.at_most), width));
        text.push('\n');
        let mut listing = Listing::new(width);
        let shortest = self.train.pulses.iter().map(|pulse| pulse.at_least).min();
        listing.fact(
            "at least",
            &shortest.map_or_else(|| "no pulse was made".to_owned(), |shortest| format!("{} each", span(shortest))),
        );
        if self.disturbed() > 0 {
            listing.fact("disturbed", &format!("{} while high", self.disturbed()));
        }
        if let Some(cut) = &self.train.cut_short {
            let told =
                format!("one more, high for {} to {} when it was told to stop", span(cut.at_least), span(cut.at_most));
            listing.fact("cut short", &told);
        }
        let latest = self.train.pulses.iter().map(|pulse| pulse.late).max().unwrap_or(Nanos::ZERO);
        listing.fact(
            "started",
            &format!("every {}, at most {} late; {} left out", self.period, span(latest), self.train.left_out),
        );
        listing.fact("left at", &format!("{}, the safe state", self.safe));
        if let Some(file) = &arguments.out {
            listing.fact("drawing", &format!("{}, for a browser", file.display()));
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
