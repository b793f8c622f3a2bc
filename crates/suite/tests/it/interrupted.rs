//! An interrupted run: measured rows stay, the others give the reason why they are missing.

use std::sync::atomic::Ordering;

use hairspring_machine::Sim;
use hairspring_machine::sim::Script;
use hairspring_sheet::{Sheet, Value};
use hairspring_suite::Effort;

use crate::{figure, request, take_watched};

/// The probes of a run without the long ones.
const ROWS: [&str; 5] =
    ["clocks.read.now", "clocks.calibration", "delays.minimum.other", "sleeps.nanosleep.1us", "disturbance.gaps"];

/// A sheet that is interrupted when the probe with this name begins.
fn interrupted(probe: &str) -> Sheet {
    take_watched(&Sim::new(Script::default()), &request(&ROWS, Effort::Quick), |progress, interrupted| {
        if progress.measuring.starts_with(probe) {
            interrupted.store(true, Ordering::Relaxed);
        }
    })
}

/// The ids of the rows whose reason is the interruption; every other must have been measured.
fn missing(sheet: &Sheet) -> Vec<&str> {
    let missing = |value: &Value| match value {
        Value::Figure(_) => false,
        Value::Absent(absent) if absent.reason.starts_with("no such event") => false,
        Value::Absent(absent) if absent.reason.starts_with("too short for a pair of stamps") => false,
        Value::Absent(absent) if absent.reason.starts_with("processes run on a real machine") => false,
        Value::Absent(absent) => {
            assert_eq!(absent.reason, "interrupted before it was measured");
            assert!(absent.remedy.is_some());
            true
        }
    };
    sheet.rows().filter(|row| missing(&row.value)).map(|row| row.id.as_str()).collect()
}

#[test]
fn an_interruption_in_the_middle_leaves_what_was_measured_and_marks_the_rest() {
    let sheet = interrupted("guaranteed minimum of 3us");
    assert!(sheet.taken.interrupted);
    let missing = missing(&sheet);
    for id in ["clocks.read.now.later", "clocks.calibration.rate", "delays.minimum.other.2us.late"] {
        figure(&sheet, id);
    }
    for id in ["delays.minimum.other.3us.late", "sleeps.nanosleep.1us.late", "disturbance.gaps.preempted.count"] {
        assert!(missing.contains(&id), "{id} is not marked");
    }
}

#[test]
fn an_interruption_at_the_very_beginning_leaves_a_sheet_of_absences() {
    let sheet = interrupted("calibration");
    let all: Vec<&str> = sheet.rows().map(|row| row.id.as_str()).collect();
    // The calibration that had begun is finished: it takes a tenth of a second.
    let measured = |id: &str| id.starts_with("clocks.calibration.");
    let missing = missing(&sheet);
    assert!(all.iter().filter(|id| !measured(id)).all(|id| missing.contains(id)), "{missing:?}");
}

#[test]
fn no_interruption_leaves_an_unmarked_gap_whenever_it_comes() {
    for probe in ["first calls", "cost", "guaranteed minimum of 1us", "guaranteed minimum of 100us", "sleeps", "gaps"] {
        let sheet = interrupted(probe);
        assert!(sheet.taken.interrupted, "{probe}");
        missing(&sheet);
        assert_eq!(sheet.rows().count(), request(&ROWS, Effort::Quick).rows.len(), "{probe}");
    }
}
