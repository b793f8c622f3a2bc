//! The gaps in a polling loop: counted exactly, and blamed on no culprit that may be innocent.

use hairspring_machine::sim::{Costs, Disturbance, Script};
use hairspring_machine::{Nanos, Sim};
use hairspring_sheet::Sheet;
use hairspring_suite::Effort;

use crate::{absent, figure, request, take_watched};

const CAUSES: [&str; 5] = ["interrupted", "interrupted_or_stolen", "stolen", "unknown", "preempted"];

/// The gaps of a machine to which these things happen, 5 ms apart, while the loop polls.
fn gaps(script: Script, happen: &[Disturbance]) -> Sheet {
    // Looks that are rare, though well below the shortest gap, make for few steps of the machine.
    let costs = Costs { relax: 400_000, ..script.costs };
    let sim = Sim::new(Script { costs, ..script });
    take_watched(&sim, &request(&["disturbance.gaps"], Effort::Quick), |progress, _| {
        if progress.measuring.starts_with("gaps") {
            for (disturbance, number) in happen.iter().zip(1..) {
                sim.disturb(sim.true_time() + Nanos::from_millis(5) * number, *disturbance);
            }
        }
    })
}

/// Checks how many gaps each cause has; those that are not named have none.
#[track_caller]
fn check(sheet: &Sheet, expected: &[(&str, f64)]) {
    for cause in CAUSES {
        let count = expected.iter().find(|(name, _)| *name == cause).map_or(0.0, |(_, count)| *count);
        assert_eq!(figure(sheet, &format!("disturbance.gaps.{cause}.count")).max, Some(count), "{cause}");
        let length = format!("disturbance.gaps.{cause}.length");
        if count > 0.0 {
            assert_eq!(figure(sheet, &length).n as f64, count, "{length}");
        } else {
            assert!(absent(sheet, &length).reason.starts_with("no such event in "), "{length}");
        }
    }
}

fn guest() -> Script {
    Script { hypervisor: true, ..Script::default() }
}

fn micros(count: i64) -> Nanos {
    Nanos::from_micros(count)
}

#[test]
fn a_quiet_loop_has_no_gaps() {
    let sheet = gaps(Script::default(), &[]);
    check(&sheet, &[]);
    assert_eq!(figure(&sheet, "disturbance.gaps.lost").max, Some(0.0));
}

#[test]
fn every_preemption_is_counted_with_its_length() {
    let lengths = [3, 7, 50, 400, 2_000];
    let sheet = gaps(Script::default(), &lengths.map(|length| Disturbance::Preempt(micros(length))));
    check(&sheet, &[("preempted", 5.0)]);
    let figure = figure(&sheet, "disturbance.gaps.preempted.length");
    for (stated, scripted) in [(figure.min, 3), (figure.median, 50), (figure.max, 2_000)] {
        let longer = stated.unwrap_or(f64::NAN) - f64::from(scripted) * 1e3;
        assert!((0.0..500.0).contains(&longer), "{scripted} µs came out as {stated:?} ns");
    }
}

#[test]
fn the_time_lost_is_the_length_of_all_gaps_over_the_time_watched() {
    let sheet = gaps(Script::default(), &[Disturbance::Preempt(micros(4_000)), Disturbance::Interrupt(micros(1_000))]);
    check(&sheet, &[("preempted", 1.0), ("interrupted", 1.0)]);
    // The watch lasts 25 % of a quick chapter of 2 s.
    let lost = figure(&sheet, "disturbance.gaps.lost").max.unwrap_or(f64::NAN);
    assert!((lost - 5.0 / 500.0).abs() < 1e-5, "{lost}");
}

#[test]
fn an_interrupt_is_named_so_only_where_there_is_no_hypervisor() {
    let interrupts = [Disturbance::Interrupt(micros(5)); 3];
    check(&gaps(Script::default(), &interrupts), &[("interrupted", 3.0)]);
    check(&gaps(guest(), &interrupts), &[("interrupted_or_stolen", 3.0)]);
}

#[test]
fn time_counts_as_stolen_only_if_the_cpu_handled_no_interrupt_meanwhile() {
    let steal = Disturbance::Steal(micros(200));
    check(&gaps(guest(), &[steal, steal]), &[("stolen", 2.0)]);
    check(&gaps(guest(), &[steal, Disturbance::Interrupt(micros(2)), steal]), &[("interrupted_or_stolen", 3.0)]);
    // Even one too short for a gap leaves it open.
    check(&gaps(guest(), &[steal, Disturbance::Interrupt(Nanos::new(100))]), &[("interrupted_or_stolen", 1.0)]);
}

#[test]
fn a_preemption_stays_one_where_everything_else_was_stolen() {
    let sheet = gaps(guest(), &[Disturbance::Steal(micros(30)), Disturbance::Preempt(micros(60))]);
    check(&sheet, &[("stolen", 1.0), ("preempted", 1.0)]);
}

#[test]
fn what_the_kernel_counted_meanwhile_stands_below_the_table() {
    let sheet = gaps(guest(), &[Disturbance::Interrupt(micros(5)), Disturbance::Steal(micros(10))]);
    let notes: Vec<&str> = sheet.chapters[0].notes.iter().map(|note| note.text.as_str()).collect();
    assert!(notes.iter().any(|note| note.contains("1 interrupts") && note.contains("10 µs stolen")), "{notes:?}");
}
