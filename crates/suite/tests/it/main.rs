//! The promises of the suite, on a simulated machine, in one binary.
//!
//! Every sheet here is taken in virtual time: it is the same in every run, and no other load of the computer shows in
//! it.

mod budget;
mod conditions;
mod disturbed;
mod executive;
mod gaps;
mod interrupted;
mod limited;
mod reaction;
mod refused;
mod transfer;
mod whole;

use std::sync::atomic::AtomicBool;

use hairspring_machine::Sim;
use hairspring_machine::sim::Script;
use hairspring_sheet::{Absent, Build, Figure, NoteKind, Sheet, Value};
use hairspring_suite::{Effort, SheetProgress, SheetRequest, registry, select, take_sheet};

/// A request for the rows under these prefixes, or for all rows, without those of the skew between CPUs: that is
/// measured by two threads which share the virtual time, so how long it takes is not the same in every run.
fn request(prefixes: &[&str], effort: Effort) -> SheetRequest {
    let prefixes: Vec<String> = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
    let rows = select(&prefixes).expect("the prefixes exist");
    let build = Build {
        version: "0.0.0".to_owned(),
        commit: Some("0123456789ab".to_owned()),
        compiler: "a compiler".to_owned(),
        flags: "its flags".to_owned(),
    };
    let rows = rows.into_iter().filter(|id| !id.starts_with("clocks.skew.")).collect();
    SheetRequest {
        rows,
        effort,
        cpu: None,
        priority: 80,
        redact: false,
        build,
        disks: None,
        rounds: 1,
        seed: 1,
        program: None,
    }
}

/// Takes a quick sheet of the rows under these prefixes.
#[track_caller]
fn take(script: Script, prefixes: &[&str]) -> Sheet {
    take_watched(&Sim::new(script), &request(prefixes, Effort::Quick), |_, _| {})
}

/// Takes a sheet; `watch` gets the progress before each measurement, and may raise the flag that interrupts.
#[track_caller]
fn take_watched(sim: &Sim, request: &SheetRequest, watch: impl Fn(SheetProgress<'_>, &AtomicBool)) -> Sheet {
    let interrupted = AtomicBool::new(false);
    take_sheet(sim, request, &interrupted, &mut |progress| watch(progress, &interrupted)).expect("a good request")
}

#[track_caller]
fn figure<'s>(sheet: &'s Sheet, id: &str) -> &'s Figure {
    match &sheet.row(id).unwrap_or_else(|| panic!("no row {id}")).value {
        Value::Figure(figure) => figure,
        Value::Absent(absent) => panic!("{id} is absent: {}", absent.reason),
    }
}

#[track_caller]
fn absent<'s>(sheet: &'s Sheet, id: &str) -> &'s Absent {
    match &sheet.row(id).unwrap_or_else(|| panic!("no row {id}")).value {
        Value::Figure(figure) => panic!("{id} has a figure of {} samples", figure.n),
        Value::Absent(absent) => absent,
    }
}

/// Checks the unit and the method of each figure of this chapter against its declaration. At least `least` rows must
/// have one: a chapter without figures agrees with everything.
#[track_caller]
fn check_declared(sheet: &Sheet, chapter: &str, least: usize) {
    let chapters = registry().into_iter().filter(|declared| declared.id == chapter);
    let mut figures = 0;
    for row in chapters.flat_map(|chapter| chapter.tables).flat_map(|table| table.rows) {
        if let Some(figure) = sheet.row(&row.id).and_then(|row| row.figure()) {
            assert_eq!((figure.unit, figure.method), (row.unit, row.method), "{}", row.id);
            figures += 1;
        }
    }
    assert!(figures >= least, "only {figures} rows of {chapter} have a figure");
}

/// The warnings at the head.
fn warnings(sheet: &Sheet) -> Vec<&str> {
    let warnings = sheet.notes.iter().filter(|note| note.kind == NoteKind::Warning);
    warnings.map(|note| note.text.as_str()).collect()
}
