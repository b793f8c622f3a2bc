//! A station and what became of it, for people and for programs.

use hairspring_device::station::{DeviceSettings, UnitSettings};
use hairspring_device::{Counts, Lines, Stamped, Station};
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

/// The safe state of a device; `None` where only the board knows it.
fn safe(settings: &DeviceSettings) -> Option<Lines> {
    let is_board = settings.driver.driver.name() == "virtual";
    settings.driver.safe.or_else(|| (!is_board).then_some(Lines(0)))
}

/// A station as it was understood, with everything that was not said.
pub(super) fn station(station: &Station, width: usize) -> String {
    let mut listing = Listing::new(width);
    for settings in &station.devices {
        listing.heading(&format!("device {}", settings.name));
        listing.fact("driver", &settings.driver.to_string());
        let safe = safe(settings);
        listing
            .fact("safe state", &safe.map_or_else(|| "as the board was made with".to_owned(), |safe| safe.to_string()));
        let lock = match &settings.lock {
            Some((file, protocol)) => format!("{protocol}, in {}", file.display()),
            None if settings.driver.driver.name() == "virtual" => "on the board".to_owned(),
            None => "inherit, in this process".to_owned(),
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
    })
}

/// The same for programs.
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

/// How the units react: what became of their events, and the reactions whose stamps were seen.
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

impl Served<'_> {
    pub(super) fn text(&self, width: usize) -> String {
        let mut text = format!("{} served for {}\n\n", self.arguments.station.display(), clock(self.elapsed));
        let counts = self.outcome.units.iter().map(|unit| unit.counts);
        text.push_str(&table(self.station, counts.zip(&self.tallies), width));
        text.push('\n');
        let mut listing = Listing::new(width);
        for ((unit, tally), outcome) in self.station.units.iter().zip(&self.tallies).zip(&self.outcome.units) {
            listing.heading(&format!("unit {}: {}, on {}", unit.name, unit.act, unit.on));
            listing.fact("runs at", &format!("priority {}, on CPU {}", priority(unit), cpu(unit)));
            let stages = [("wake", &tally.wake), ("start", &tally.start), ("lock", &tally.lock), ("I/O", &tally.io)];
            let stages: Vec<String> = stages
                .iter()
                .filter(|(_, spans)| spans.count() > 0)
                .map(|(name, spans)| format!("{name} {}", cell(spans.quantile(0.5))))
                .collect();
            if let Some(stamped) = tally.stamped {
                let by = stamped.name();
                listing.fact("medians", &format!("{}; the event by its {by} stamp", stages.join(", ")));
            }
            let counts = outcome.counts;
            let sound = if counts.holds() {
                "every event is accounted for".to_owned()
            } else {
                let unaccounted = counts.events.abs_diff(counts.activations + counts.missed);
                format!("{} events are unaccounted for", grouped(unaccounted))
            };
            listing.fact("account", &format!("{sound}; {} stamps lost", grouped(counts.unrecorded)));
            if let Some(error) = &outcome.failed {
                listing.fact("failed", &error.to_string());
            }
        }
        for device in &self.outcome.devices {
            listing.heading(&format!("device {}", device.name));
            let safe = match &device.unsafe_because {
                None => format!("{}, taken at the end", device.safe),
                Some(error) => format!("{} was NOT taken: {error}", device.safe),
            };
            listing.fact("safe state", &safe);
            let died = match device.recovered {
                0 => "no owner died with it".to_owned(),
                count => format!("{count} owners died with it; the device was initialised each time"),
            };
            listing.fact("lock", &died);
        }
        text.push_str(&listing.finish());
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
    use hairspring_device::Counts;
    use hairspring_device::station::file;
    use hairspring_device::station::run::{Outcome, UnitOutcome};

    use super::*;
    use crate::arguments::{Plain, ServeArguments};

    /// The table was made of the stamps that had found room, and the rest of the events was in the JSON alone.
    #[test]
    fn the_table_counts_events_whose_stamps_found_no_room() {
        let text = "[source.t]\nfrom = \"timer:1s\"\n[unit.u]\non = \"t\"\ndo = { fire = \"/dev/shm/x\" }\n";
        let station = file::read(text).expect("a station");
        let counts =
            Counts { events: 20_007, activations: 20_004, missed: 3, delayed: 41, overrun: 5_000, unrecorded: 20_004 };
        let unit = UnitOutcome { name: "u".to_owned(), counts, failed: None };
        let outcome = Outcome { units: vec![unit], devices: Vec::new() };
        let station_file = "x.toml".into();
        let arguments =
            ServeArguments { station: station_file, length: None, check: false, quiet: true, format: Plain::Text };
        let (tallies, elapsed) = (vec![Tally::default()], Nanos::from_secs(1));
        let text = Served { arguments: &arguments, station: &station, outcome, tallies, elapsed }.text(100);
        let row = text.lines().find(|line| line.split_whitespace().next() == Some("u")).expect("a row");
        assert_eq!(row.split_whitespace().collect::<Vec<_>>()[1..5], ["20,007", "3", "41", "5,000"], "{text}");
    }
}
