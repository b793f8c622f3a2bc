//! The report of `hairspring expose`: every exposure with its parts, and the figures of all exposures together.

use hairspring_device::Lines;
use hairspring_device::exposure::ExposureEnd;
use hairspring_sheet::{Figure, Method, Unit};
use hairspring_time::Nanos;
use serde_json::{Value, json};

use super::Arguments;
use super::{Made, Series};
use crate::histogram;
use crate::listing::{Listing, grouped, span};
use crate::table::{Side, table};

/// Most exposures to list one by one in text.
const LISTED_MOST: usize = 20;
/// Fewest exposures whose distribution is drawn.
const DRAWN_LEAST: usize = 10;

impl Series {
    /// The exposures that were not stopped.
    fn whole(&self) -> impl Iterator<Item = &Made> {
        self.exposures.iter().map(|(_, made)| made).filter(|made| made.end != ExposureEnd::Stopped)
    }

    fn figure(&self, read: fn(&Made) -> Nanos) -> Figure {
        let mut samples: Vec<f64> = self.whole().map(|made| read(made).count() as f64).collect();
        Figure::from_samples(Unit::Ns, Method::Stamp, &mut samples)
    }

    /// Exposures that were too short without being stopped: none, unless this program has a defect.
    fn short(&self) -> usize {
        self.whole().filter(|made| made.at_least() < made.asked).count()
    }

    fn too_long(&self) -> usize {
        self.whole().filter(|made| matches!(made.end, ExposureEnd::ReadingTooLong(_))).count()
    }

    fn disturbed(&self) -> usize {
        self.whole().filter(|made| made.is_disturbed()).count()
    }
}

/// The instrument's answer, or why there is none.
fn told(made: &Made) -> String {
    match &made.reading {
        Some(Ok(Some(answer))) => answer.text.clone(),
        Some(Err(error)) => error.said.clone(),
        Some(Ok(None)) | None => String::new(),
    }
}

pub(super) fn text(arguments: &Arguments, series: &Series, safe: Lines, width: usize) -> String {
    let count = grouped(series.exposures.len() as u64);
    let (line, device) = (arguments.line, &arguments.device);
    let short = match series.short() {
        0 => "none too short".to_owned(),
        short => format!("{short} TOO SHORT"),
    };
    let mut text = format!("{count} exposures of {} on line {line} of {device}, {short}:\n\n", arguments.time);
    text.push_str(&listed(series, arguments.instrument.is_some(), width));
    let late = series.figure(Made::late);
    if series.whole().count() >= DRAWN_LEAST {
        text.push_str("\nhow much longer than asked:\n\n");
        text.push_str(&histogram::drawn(&late, width));
    }
    text.push('\n');
    let mut listing = Listing::new(width);
    let longer = match (late.min, late.max) {
        (Some(min), Some(max)) => {
            format!("by {} to {}", span(Nanos::new(min as i64)), span(Nanos::new(max as i64)))
        }
        _ => "every exposure was stopped".to_owned(),
    };
    listing.fact("longer", &longer);
    if let Some(error) = series.exposures.iter().find_map(|(_, made)| made.reading.as_ref()?.as_ref().err()) {
        listing.fact("not read", &error.to_string());
    }
    if series.too_long() > 0 {
        listing.fact("too long", &format!("{} because of the reading", series.too_long()));
    }
    if series.disturbed() > 0 {
        listing.fact("disturbed", &format!("{} at their end", series.disturbed()));
    }
    if let Some(address) = &arguments.instrument {
        let patience = arguments.timeout.map_or_else(
            || "waiting until 5 ms before the shutter has to close, or for half of the time left".to_owned(),
            |patience| format!("waiting for at most {patience}"),
        );
        listing.fact("instrument", &format!("{address}, asked {} after half the time, {patience}", arguments.query));
    }
    if let Some(period) = arguments.period {
        let latest = series.exposures.iter().map(|(late, _)| *late).max().unwrap_or(Nanos::ZERO);
        listing
            .fact("started", &format!("every {period}, at most {} late; {} left out", span(latest), series.left_out));
    }
    listing.fact("left at", &format!("{safe}, the safe state"));
    text.push_str(&listing.finish());
    text
}

/// The first exposures one by one.
fn listed(series: &Series, is_read: bool, width: usize) -> String {
    let headings = [
        ("measured_exp_time", Side::Right),
        ("open", Side::Right),
        ("first half", Side::Right),
        ("reading", Side::Right),
        ("rest", Side::Right),
        ("close", Side::Right),
        (if is_read { "end, and what was read" } else { "end" }, Side::Left),
    ];
    let rows: Vec<Vec<String>> = series
        .exposures
        .iter()
        .take(LISTED_MOST)
        .map(|(_, made)| {
            let parts = made.parts;
            let mut row = vec![format!("{:.9} s", made.measured_exp_time.as_secs_f64())];
            row.extend([parts.open_write, parts.first_half, parts.reading, parts.rest, parts.close_write].map(span));
            row.push([made.name(), &told(made)].join(" ").trim_end().to_owned());
            row
        })
        .collect();
    let mut text = table(&headings, &rows, width);
    if series.exposures.len() > LISTED_MOST {
        let more = grouped((series.exposures.len() - LISTED_MOST) as u64);
        text.push_str(&format!("  and {more} more; --format json has all of them\n"));
    }
    text
}

pub(super) fn json(arguments: &Arguments, series: &Series, safe: Lines) -> String {
    let spread = |figure: &Figure| -> Value {
        json!({ "n": figure.n, "min": figure.min, "median": figure.median, "p99": figure.p99, "max": figure.max })
    };
    let instrument = arguments.instrument.as_ref().map(|address| {
        json!({
            "address": address.to_string(),
            "query": arguments.query,
            "timeout_ns": arguments.timeout.map(Nanos::count),
        })
    });
    let value = json!({
        "schema": "hairspring.exposures/1",
        "device": arguments.device.to_string(),
        "line": arguments.line,
        "asked_ns": arguments.time.count(),
        "period_ns": arguments.period.map(Nanos::count),
        "instrument": instrument,
        "left_out": series.left_out,
        "stopped": series.stopped,
        "too_short": series.short(),
        "too_long": series.too_long(),
        "disturbed": series.disturbed(),
        "measured_exp_time_ns": spread(&series.figure(|made| made.measured_exp_time)),
        "late_ns": spread(&series.figure(Made::late)),
        "exposures": series.exposures.iter().map(|(late, made)| exposure(*late, made)).collect::<Vec<_>>(),
        "safe_state": safe.to_string(),
    });
    format!("{value:#}\n")
}

fn exposure(begun_late: Nanos, made: &Made) -> Value {
    let parts = made.parts;
    let reading = match &made.reading {
        Some(Ok(Some(answer))) => {
            json!({ "text": answer.text, "took_ns": answer.took.count(), "discarded_bytes": answer.discarded })
        }
        Some(Err(error)) => json!({ "error": error.to_string() }),
        Some(Ok(None)) | None => Value::Null,
    };
    json!({
        "measured_exp_time_ns": made.measured_exp_time.count(),
        "at_least_ns": made.at_least().count(),
        "at_most_ns": made.at_most().count(),
        "begun_late_ns": begun_late.count(),
        "parts_ns": {
            "open_write": parts.open_write.count(),
            "first_half": parts.first_half.count(),
            "reading": parts.reading.count(),
            "rest": parts.rest.count(),
            "close_write": parts.close_write.count(),
        },
        "end": made.name(),
        "reading": reading,
    })
}
