//! Machines that do not permit everything: the sheet is made all the same, with the missing rows and the reasons.

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_machine::{Nanos, Sim};
use hairspring_suite::{Effort, SheetRequest, select};

use crate::{absent, figure, request, take, take_watched, warnings};

#[test]
fn without_real_time_permission_the_rows_under_fifo_are_absent_with_the_remedy() {
    let script = Script { real_time_allowed: false, ..Script::default() };
    let sheet =
        take(script, &["delays.minimum", "delays.long.fifo.1ms", "disturbance.wakeup", "disturbance.wakeup_other"]);
    let under_fifo = ["delays.minimum.fifo.", "delays.long.fifo.", "disturbance.wakeup."];
    for row in sheet.rows() {
        if under_fifo.iter().any(|prefix| row.id.starts_with(prefix)) {
            let absent = absent(&sheet, &row.id);
            assert!(absent.reason.contains("refused to set the scheduling policy"), "{}: {}", row.id, absent.reason);
            assert_eq!(absent.remedy.as_deref(), Some("run as root"), "{}", row.id);
        } else {
            figure(&sheet, &row.id);
        }
    }
    assert_eq!(warnings(&sheet).len(), 1);
    assert!(warnings(&sheet)[0].starts_with("No real-time permission"), "{:?}", warnings(&sheet));
    let remedy =
        sheet.notes.iter().find(|note| note.text.starts_with("No real-time")).and_then(|note| note.remedy.clone());
    assert_eq!(remedy.as_deref(), Some("run as root"));
}

#[test]
fn permission_that_is_lost_in_the_middle_leaves_what_was_measured_and_a_reason() {
    let sim = Sim::new(Script::default());
    let rows = request(&["delays.minimum.fifo.1us", "disturbance.wakeup"], Effort::Quick);
    let sheet = take_watched(&sim, &rows, |progress, _| {
        if progress.measuring.starts_with("guaranteed minimum") {
            sim.disturb(sim.true_time(), Disturbance::LoseRealTime);
        }
    });
    figure(&sheet, "delays.minimum.fifo.1us.late");
    assert!(absent(&sheet, "disturbance.wakeup.late").remedy.is_some());
}

#[test]
fn with_an_untrusted_counter_everything_is_measured_by_the_kernels_clock_and_the_head_says_so() {
    let script = Script { counter_trusted: false, ..Script::default() };
    let rows =
        ["clocks.read", "clocks.calibration", "delays.minimum.other", "sleeps.hairspring.1ms", "disturbance.gaps"];
    let sheet = take(script, &rows);
    assert_eq!(warnings(&sheet).len(), 1);
    assert!(
        warnings(&sheet)[0].contains("not trusted") && warnings(&sheet)[0].contains("hpet"),
        "{:?}",
        warnings(&sheet)
    );
    let remedy = sheet.notes.iter().find_map(|note| note.remedy.as_deref());
    assert!(remedy.is_some_and(|remedy| remedy.contains("hairspring clock")), "{remedy:?}");
    for id in ["clocks.read.now.later", "delays.minimum.other.1us.late", "sleeps.hairspring.1ms.late"] {
        assert!(figure(&sheet, id).n > 0);
    }
    for row in sheet.rows().filter(|row| row.id.ends_with(".early")) {
        assert_eq!(figure(&sheet, &row.id).max, Some(0.0), "{}", row.id);
    }
    // Comparing the kernel's clock with itself would be a figure about nothing.
    for id in ["clocks.calibration.raw", "clocks.calibration.published"] {
        assert!(absent(&sheet, id).reason.contains("not trusted"), "{id}");
    }
}

#[test]
fn with_one_cpu_there_is_no_skew_and_the_head_says_so() {
    let script = Script { cpu_offsets: vec![0], ..Script::default() };
    let rows = select(&["clocks.skew".to_owned(), "clocks.read.now".to_owned()]).expect("they exist");
    let sheet = take_watched(&Sim::new(script), &SheetRequest { rows, ..request(&[], Effort::Quick) }, |_, _| {});
    for id in ["clocks.skew.offset", "clocks.skew.uncertainty"] {
        let absent = absent(&sheet, id);
        assert!(absent.reason.contains("only one CPU") && absent.remedy.is_some(), "{id}: {absent:?}");
    }
    figure(&sheet, "clocks.read.now.later");
    let note = sheet.notes.iter().find(|note| note.text.starts_with("Only one CPU")).expect("it is said");
    assert!(note.remedy.as_ref().is_some_and(|remedy| remedy.contains("taskset")));
}

#[test]
fn a_machine_without_a_sentinel_calls_gaps_unknown() {
    let sim = Sim::new(Script { sentinel: false, ..Script::default() });
    let sheet = take_watched(&sim, &request(&["disturbance.gaps"], Effort::Quick), |progress, _| {
        if progress.measuring.starts_with("gaps") {
            sim.disturb(sim.true_time() + Nanos::from_millis(5), Disturbance::Preempt(Nanos::from_micros(90)));
        }
    });
    assert_eq!(figure(&sheet, "disturbance.gaps.unknown.count").max, Some(1.0));
    assert_eq!(figure(&sheet, "disturbance.gaps.preempted.count").max, Some(0.0));
}
