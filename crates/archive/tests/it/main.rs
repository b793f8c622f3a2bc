//! The promises of the archive, in one binary of tests.

mod adding;
mod export;
mod ledger;
mod reading;
mod refused;

use hairspring_archive::Archive;
use hairspring_sheet::render::{from_json, to_json};
use hairspring_sheet::{FactValue, Figure, Method, Sheet, SheetFact, Unit, Value};
use tempfile::TempDir;

const ID: &str = "clocks.read.now.later";
const OTHER: &str = "delays.long.1s.late";

/// A small sheet of day `day` with this kernel, whose medians are multiplied.
fn sheet(day: usize, kernel: &str, factor: f64) -> Sheet {
    let text = include_str!("../../../../sheets/historic/fermilab-2007.json");
    let mut sheet = from_json(text).expect("it is a sheet");
    sheet.taken.effort = "quick".to_owned();
    sheet.taken.start = format!("2025-{:02}-{:02}T04:00:00.25Z", 1 + day / 28, 1 + day % 28);
    let fact = |id: &str, value: &str| SheetFact {
        id: id.to_owned(),
        label: id.to_owned(),
        value: FactValue::Value(value.to_owned()),
    };
    let facts = [("host.name", "bench"), ("cpu.model", "EPYC"), ("kernel.release", kernel), ("load.average", "1")];
    sheet.conditions.facts = facts.iter().map(|(id, value)| fact(id, value)).collect();
    let mut row = sheet.chapters[0].tables[0].rows[0].clone();
    sheet.chapters.truncate(1);
    sheet.chapters[0].tables.truncate(1);
    let mut with = |id: &str, median: f64| {
        row.id = id.to_owned();
        let mut samples: Vec<f64> = (0..12).map(|place| median + f64::from(place) / 100.0).collect();
        row.value = Value::Figure(Figure::from_samples(Unit::Ns, Method::Diff, &mut samples));
        row.clone()
    };
    sheet.chapters[0].tables[0].rows = vec![with(ID, 20.0 * factor), with(OTHER, 60e3)];
    sheet
}

fn text(day: usize, kernel: &str, factor: f64) -> String {
    to_json(&sheet(day, kernel, factor))
}

/// A new archive in a folder of its own.
fn archive() -> (TempDir, Archive) {
    let folder = tempfile::tempdir().expect("room for a folder");
    let archive = Archive::create(&folder.path().join("new/sheets.db")).expect("made");
    (folder, archive)
}
