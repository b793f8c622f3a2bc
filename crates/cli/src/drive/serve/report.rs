//! Reports of a station and of its run, as text and as JSON.

use hairspring_device::Lines;
use hairspring_station::{Counts, DeviceSettings, PropertyLimits, Stamped, Station, UnitSettings};
use hairspring_time::Nanos;
use serde_json::{Value, json};

use super::Served;
use super::tally::Tally;
use crate::listing::{Listing, clock, grouped, span};
use crate::table::{Side, table as drawn};

fn priority(unit: &UnitSettings) -> String {
    unit.priority.map_or_else(|| "none (SCHED_OTHER)".to_owned(), |priority| format!("{priority} (SCHED_FIFO)"))
}

fn cpu(unit: &UnitSettings) -> String {
    unit.cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.0.to_string())
}

fn device<'s>(station: &'s Station, unit: &UnitSettings) -> Option<&'s str> {
    unit.device.and_then(|index| station.devices.get(index)).map(|device| device.name.as_str())
}

/// The safe state of a device; `None` if only the board knows it.
fn safe(settings: &DeviceSettings) -> Option<Lines> {
    let is_board = settings.driver.driver.name() == "virtual";
    settings.driver.safe.or_else(|| (!is_board).then_some(Lines(0)))
}

/// The station file, with every default filled in.
pub(super) fn station(station: &Station, width: usize) -> String {
    let mut listing = Listing::new(width);
    for settings in &station.devices {
        listing.heading(&format!("device {}", settings.name));
        listing.fact("driver", &settings.driver.to_string());
        let safe = safe(settings);
        listing.fact(
            "safe state",
            &safe.map_or_else(|| "set when the board was created".to_owned(), |safe| safe.to_string()),
        );
        let lock = match &settings.lock {
            Some((file, protocol)) => format!("{protocol}, in {}", file.display()),
            None if settings.driver.driver.name() == "virtual" => "on the board".to_owned(),
            None => "priority inheritance, within this process".to_owned(),
        };
        listing.fact("lock", &lock);
    }
    for unit in &station.units {
        listing.heading(&format!("unit {}", unit.name));
        listing.fact("on", &unit.on.to_string());
        listing.fact("do", &unit.act.to_string());
        listing.fact("device", device(station, unit).unwrap_or("none"));
        listing.fact("priority", &priority(unit));
        listing.fact("CPU", &cpu(unit));
        let late = unit.late_after.map_or_else(|| "never".to_owned(), |span| format!("after {span}"));
        listing.fact("late", &late);
        if !unit.enabled {
            listing.fact("enabled", "no: its events are skipped");
        }
        for PropertyLimits { property, least, most } in &unit.settable {
            let measure = property.unit();
            let space = if measure.is_empty() { "" } else { " " };
            listing.fact("settable", &format!("{property}: {least} to {most}{space}{measure}"));
        }
    }
    listing.finish()
}

fn unit_json(station: &Station, unit: &UnitSettings) -> Value {
    json!({
        "name": unit.name,
        "on": unit.on.to_string(),
        "do": unit.act.to_string(),
        "device": device(station, unit),
        "priority": unit.priority,
        "cpu": unit.cpu.map(|cpu| cpu.0),
        "late_after_ns": unit.late_after.map(Nanos::count),
        "alarm": unit.alarm.map(|alarm| json!({
            "minor_ns": alarm.minor.map(Nanos::count),
            "major_ns": alarm.major.map(Nanos::count),
            "hysteresis_ns": alarm.hysteresis.count(),
        })),
        "enabled": unit.enabled,
        "settable": unit.settable.iter().map(|limits| json!({
            "property": limits.property.name(), "least": limits.least, "most": limits.most,
        })).collect::<Vec<_>>(),
    })
}

/// The station as JSON.
pub(super) fn station_json(station: &Station) -> String {
    let devices: Vec<Value> = station
        .devices
        .iter()
        .map(|settings| {
            json!({
                "name": settings.name,
                "driver": settings.driver.to_string(),
                "safe_state": safe(settings).map(|safe| safe.to_string()),
                "lock": settings.lock.as_ref().map(|(file, protocol)| json!({
                    "file": file.display().to_string(), "protocol": protocol.name(),
                })),
            })
        })
        .collect();
    let units: Vec<Value> = station.units.iter().map(|unit| unit_json(station, unit)).collect();
    format!("{:#}\n", json!({ "schema": "hairspring.station/1", "devices": devices, "units": units }))
}

fn cell(value: Option<Nanos>) -> String {
    value.map_or_else(|| "–".to_owned(), span)
}

/// The table of units: counts of their events, and quantiles of the reactions with kept stamps.
pub(super) fn table<'t>(
    station: &Station,
    units: impl IntoIterator<Item = (Counts, &'t Tally)>,
    width: usize,
) -> String {
    let right = |heading| (heading, Side::Right);
    let headings = [
        ("unit", Side::Left),
        right("events"),
        right("missed"),
        right("late"),
        right("overrun"),
        right("wake, median"),
        right("to I/O, median"),
        right("p99"),
        right("max"),
    ];
    let rows: Vec<Vec<String>> = station
        .units
        .iter()
        .zip(units)
        .map(|(unit, (counts, tally))| {
            let mut row = vec![unit.name.clone()];
            row.extend([counts.events, counts.missed, counts.delayed, counts.overrun].map(grouped));
            row.push(cell(tally.wake.quantile(0.5)));
            let total = &tally.total;
            row.extend([total.quantile(0.5), total.quantile(0.99), total.range().map(|(_, most)| most)].map(cell));
            row
        })
        .collect();
    drawn(&headings, &rows, width)
}

/// The medians of the stages of a reaction.
fn stages(listing: &mut Listing, tally: &Tally) {
    let stages = [("wake", &tally.wake), ("start", &tally.start), ("lock", &tally.lock), ("I/O", &tally.io)];
    let seen = stages.iter().filter(|(_, spans)| spans.count() > 0);
    let seen: Vec<String> = seen.map(|(name, spans)| format!("{name} {}", cell(spans.quantile(0.5)))).collect();
    if let Some(stamped) = tally.stamped {
        listing.fact("medians", &format!("{}; events are stamped by: {}", seen.join(", "), stamped.name()));
    }
}

impl Served<'_> {
    /// The conclusion, the table, and every unit and device with something unusual; all of them if `--verbose`.
    pub(super) fn text(&self, width: usize) -> String {
        let verbose = self.arguments.verbose;
        let outcomes = self.station.units.iter().zip(&self.tallies).zip(&self.outcome.units);
        let accounted = match self.outcome.units.iter().all(|unit| unit.counts.holds()) {
            true => "every event is accounted for",
            false => "NOT every event is accounted for",
        };
        let safe = match self.outcome.devices.iter().all(|device| device.unsafe_because.is_none()) {
            _ if self.outcome.devices.is_empty() => "",
            true => "; every device is in its safe state",
            false => "; NOT every device is in its safe state",
        };
        let name = self.arguments.station.display();
        let mut listing = Listing::new(width);
        listing.heading(&format!("{accounted}{safe}"));
        listing.fact("station", &format!("{name}, served for {}", clock(self.elapsed)));
        let mut text = format!("{}\n", listing.finish());
        let counts = self.outcome.units.iter().map(|unit| unit.counts);
        text.push_str(&table(self.station, counts.zip(&self.tallies), width));
        let mut listing = Listing::new(width);
        for ((unit, tally), outcome) in outcomes {
            let counts = outcome.counts;
            if !verbose && counts.holds() && counts.unrecorded == 0 && counts.skipped == 0 && outcome.failed.is_none() {
                continue;
            }
            listing.heading(&format!("unit {}: {}, on {}", unit.name, unit.act, unit.on));
            if verbose {
                listing.fact("runs at", &format!("priority {}, on CPU {}", priority(unit), cpu(unit)));
                stages(&mut listing, tally);
            }
            if !counts.holds() {
                let unaccounted = counts.events.abs_diff(counts.activations + counts.missed + counts.skipped);
                listing.fact("account", &format!("{} events are unaccounted for", grouped(unaccounted)));
            }
            if counts.skipped > 0 {
                listing.fact("skipped", &format!("{} events came while it was disabled", grouped(counts.skipped)));
            }
            if counts.unrecorded > 0 {
                let lost = grouped(counts.unrecorded);
                listing.fact(
                    "stamps",
                    &format!("{lost} reactions are counted but not measured: there was no room for their stamps"),
                );
            }
            listing.facts("failed", outcome.failed.as_ref().map(ToString::to_string));
        }
        for device in &self.outcome.devices {
            if !verbose && device.unsafe_because.is_none() && device.recovered == 0 {
                continue;
            }
            listing.heading(&format!("device {}", device.name));
            match &device.unsafe_because {
                None => listing.fact("safe state", &format!("{}, taken at the end", device.safe)),
                Some(error) => listing.fact("safe state", &format!("{} was NOT taken: {error}", device.safe)),
            }
            if device.recovered > 0 {
                let died = format!(
                    "{} owners died while they held it; the device was initialised each time",
                    device.recovered
                );
                listing.fact("lock", &died);
            }
        }
        let more = listing.finish();
        if !more.is_empty() {
            text.push('\n');
            text.push_str(&more);
        }
        text
    }

    pub(super) fn json(&self) -> String {
        let units = self.station.units.iter().zip(&self.tallies).zip(&self.outcome.units);
        let units: Vec<Value> = units
            .map(|((unit, tally), outcome)| {
                let mut value = unit_json(self.station, unit);
                let counts = outcome.counts;
                let more = json!({
                    "events": counts.events,
                    "activations": counts.activations,
                    "missed": counts.missed,
                    "late": counts.delayed,
                    "overrun": counts.overrun,
                    "unrecorded": counts.unrecorded,
                    "skipped": counts.skipped,
                    "accounted": counts.holds(),
                    "failed": outcome.failed.as_ref().map(ToString::to_string),
                    "stamped_by": tally.stamped.map(Stamped::name),
                    "wake_ns": tally.wake.json(),
                    "start_ns": tally.start.json(),
                    "lock_ns": tally.lock.json(),
                    "io_ns": tally.io.json(),
                    "total_ns": tally.total.json(),
                });
                if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
                    value.extend(more);
                }
                value
            })
            .collect();
        let devices = self.outcome.devices.iter().map(|device| {
            json!({
                "name": device.name,
                "safe_state": device.safe.to_string(),
                "is_safe": device.unsafe_because.is_none(),
                "unsafe_because": device.unsafe_because.as_ref().map(ToString::to_string),
                "owners_died": device.recovered,
            })
        });
        let value = json!({
            "schema": "hairspring.serve/1",
            "station": self.arguments.station.display().to_string(),
            "elapsed_ns": self.elapsed.count(),
            "units": units,
            "devices": devices.collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use hairspring_station::run::{StationOutcome, UnitOutcome};
    use hairspring_station::{Counts, file};

    use super::super::Arguments;
    use super::*;
    use crate::arguments::Plain;

    /// The table once counted only events with kept stamps; the JSON counted all.
    #[test]
    fn the_table_counts_events_whose_stamps_found_no_room() {
        let text = "[source.t]\nfrom = \"timer:1s\"\n[unit.u]\non = \"t\"\ndo = { fire = \"/dev/shm/x\" }\n";
        let station = file::read(text).expect("a station");
        let counts = Counts {
            events: 20_007,
            activations: 20_004,
            missed: 3,
            delayed: 41,
            overrun: 5_000,
            unrecorded: 20_004,
            skipped: 0,
        };
        let unit = UnitOutcome { name: "u".to_owned(), counts, failed: None };
        let outcome = StationOutcome { units: vec![unit], devices: Vec::new() };
        let station_file = "x.toml".into();
        let arguments = Arguments {
            station: station_file,
            length: None,
            check: false,
            publish: None,
            screen: false,
            quiet: true,
            verbose: false,
            format: Plain::Text,
        };
        let (tallies, elapsed) = (vec![Tally::default()], Nanos::from_secs(1));
        let text = Served { arguments: &arguments, station: &station, outcome, tallies, elapsed }.text(100);
        let row = text.lines().find(|line| line.split_whitespace().next() == Some("u")).expect("a row");
        assert_eq!(row.split_whitespace().collect::<Vec<_>>()[1..5], ["20,007", "3", "41", "5,000"], "{text}");
    }
}
