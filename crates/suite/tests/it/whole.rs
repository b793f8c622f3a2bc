//! A whole sheet of a quiet machine: complete, in time, and the same in every run.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::LazyLock;

use hairspring_machine::sim::Script;
use hairspring_machine::{Nanos, Sim};
use hairspring_sheet::render::{text, to_json};
use hairspring_sheet::{Row, Sheet, TextStyle, Value};
use hairspring_suite::{Effort, SheetRequest};

use crate::{check_declared, figure, request, take_watched, warnings};

/// A normal sheet of the default machine, and how much virtual time it took.
static NORMAL: LazyLock<(Sheet, Nanos)> = LazyLock::new(|| whole(Effort::Normal));
/// The same with quick effort.
static QUICK: LazyLock<(Sheet, Nanos)> = LazyLock::new(|| whole(Effort::Quick));

fn whole(effort: Effort) -> (Sheet, Nanos) {
    let sim = Sim::new(Script::default());
    let request = SheetRequest { rounds: effort.rounds(), ..request(&[], effort) };
    (take_watched(&sim, &request, |_, _| {}), sim.true_time())
}

/// The contents of a sheet, one line per table: number of rows, and how many of them lack a figure for which reasons. A
/// chapter without any figure is one line. `the_figures_are_those_of_the_script` checks the figures, and the tests of
/// the renderers the layout.
fn outline(sheet: &Sheet) -> String {
    let mut outline = String::new();
    for chapter in &sheet.chapters {
        let rows: Vec<&Row> = chapter.tables.iter().flat_map(|table| &table.rows).collect();
        let _ = writeln!(outline, "{}: {} tables, {}", chapter.id, chapter.tables.len(), account(&rows));
        if rows.iter().all(|row| row.figure().is_none()) {
            continue;
        }
        for table in &chapter.tables {
            let _ = writeln!(outline, "  {}: {}", table.id, account(&table.rows.iter().collect::<Vec<_>>()));
        }
        for series in &chapter.series {
            let _ = writeln!(outline, "  plot {}: {} lines", series.id, series.lines.len());
        }
        for note in &chapter.notes {
            let _ = writeln!(outline, "  {:?}: {}", note.kind, note.text);
        }
    }
    outline
}

fn account(rows: &[&Row]) -> String {
    let reasons = rows.iter().filter_map(|row| match &row.value {
        Value::Absent(absent) => Some(absent.reason.as_str()),
        Value::Figure(_) => None,
    });
    let absent = reasons.clone().count();
    let reasons: Vec<&str> = reasons.collect::<BTreeSet<_>>().into_iter().collect();
    let absences = if absent == 0 { String::new() } else { format!(", {absent} absent: {}", reasons.join(" | ")) };
    format!("{} rows{absences}", rows.len())
}

#[test]
fn a_whole_sheet_consists_of_these_tables() {
    insta::assert_snapshot!(outline(&NORMAL.0));
}

#[test]
fn a_chapter_reads_like_this() {
    // Taken alone: the other chapters' rows must not decide the simulated chance here.
    let request = SheetRequest { rounds: Effort::Normal.rounds(), ..request(&["disturbance"], Effort::Normal) };
    let sheet = take_watched(&Sim::new(Script::default()), &request, |_, _| {});
    let style = TextStyle { width: 100, colour: false, verbose: false };
    insta::assert_snapshot!(text(&sheet, &style));
}

#[test]
fn every_row_that_was_asked_for_is_there_in_the_order_of_the_registry() {
    let asked = request(&[], Effort::Normal).rows;
    let given: Vec<String> = NORMAL.0.rows().map(|row| row.id.clone()).collect();
    assert_eq!(given, asked);
}

#[test]
fn no_row_is_missing_through_a_defect() {
    for row in NORMAL.0.rows() {
        match &row.value {
            Value::Figure(figure) => assert!(figure.n > 0 && figure.median.is_some(), "{} has no sample", row.id),
            Value::Absent(absent) => {
                assert!(!absent.reason.contains("defect of hairspring"), "{}: {}", row.id, absent.reason);
                // On a quiet machine only rows that take minutes, and events that did not happen, are absent.
                let expected = absent.reason.contains("no such event") || absent.remedy.is_some();
                assert!(expected, "{}: {}", row.id, absent.reason);
            }
        }
    }
}

#[test]
fn every_figure_has_the_unit_and_the_method_that_the_registry_declares() {
    // The chapters that need a real machine are checked on this computer, each in its own file.
    for (chapter, least) in [("clocks", 30), ("delays", 30), ("sleeps", 30), ("disturbance", 5)] {
        check_declared(&NORMAL.0, chapter, least);
    }
}

#[test]
fn nothing_was_early() {
    let early: Vec<_> = NORMAL.0.rows().filter(|row| row.id.ends_with(".early")).collect();
    assert!(early.len() >= 12);
    for row in early {
        assert!(row.figure().is_none_or(|figure| figure.max == Some(0.0)), "{} is not 0", row.id);
    }
    for row in NORMAL.0.rows().filter(|row| row.id.ends_with(".late")) {
        assert!(row.figure().is_none_or(|figure| figure.min >= Some(0.0)), "{} is negative", row.id);
    }
}

#[test]
fn a_sheet_takes_the_time_it_may_take_and_states_it() {
    for ((sheet, took), most) in [(&*NORMAL, 45), (&*QUICK, 15)] {
        assert!(*took <= Nanos::from_secs(most), "a {} sheet took {took}", sheet.taken.effort);
        assert!((took.as_secs_f64() - sheet.taken.duration_s).abs() < 0.1, "it says {} s", sheet.taken.duration_s);
    }
}

#[test]
fn two_runs_on_equal_machines_yield_the_same_bytes() {
    assert_eq!(to_json(&QUICK.0), to_json(&whole(Effort::Quick).0));
}

#[test]
fn the_figures_are_those_of_the_script() {
    let sheet = &NORMAL.0;
    let median = |id: &str| figure(sheet, id).median.unwrap_or(f64::NAN);
    let near = |value: f64, expected: f64, within: f64| assert!((value - expected).abs() <= within, "{value}");
    near(median("clocks.read.counter.later"), 8.0, 0.05);
    near(median("clocks.read.counter_ordered.later"), 13.0, 0.05);
    near(median("clocks.read.clock_monotonic.later"), 18.0, 0.05);
    near(median("clocks.read.clock_thread_cpu.later"), 170.0, 0.2);
    near(median("clocks.step.clock_monotonic_coarse"), 4e6, 1e3);
    // Within the bound that it states.
    near(median("clocks.calibration.rate"), 2.6e9, 2.6e3 * median("clocks.calibration.bound"));
    // A pause, a counter read and a look at the sentinel.
    near(median("delays.step.poll"), 18.5, 0.1);
    let late = figure(sheet, "disturbance.wakeup.late");
    assert!(late.min >= Some(20e3) && late.max <= Some(61e3), "{:?} to {:?}", late.min, late.max);
}

#[test]
fn a_quiet_machine_is_given_no_warning() {
    assert_eq!(warnings(&NORMAL.0), [""; 0]);
}

#[test]
fn the_plots_show_every_method_of_sleeping() {
    let series: Vec<_> = NORMAL.0.chapters.iter().flat_map(|chapter| &chapter.series).collect();
    let ids: Vec<&str> = series.iter().map(|series| series.id.as_str()).collect();
    assert_eq!(ids, ["sleeps.lateness", "sleeps.error_ratio"]);
    assert_eq!((series[0].lines.len(), series[1].lines.len()), (5, 4));
    assert!(series.iter().flat_map(|series| &series.lines).all(|line| line.points.len() >= 16));
}
