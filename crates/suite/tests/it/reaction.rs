//! The chapter *Reaction*: on this computer, whose threads react, and on a simulated one, which has none.

use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use hairspring_machine::sim::Script;
use hairspring_machine::{Host, Machine, Policy};
use hairspring_sheet::{Sheet, Value};
use hairspring_suite::{Effort, take_sheet};

use crate::{absent, request, take};

/// A quick sheet of this chapter on this computer, without a program for other processes.
static HERE: LazyLock<Sheet> = LazyLock::new(|| {
    let request = request(&["reaction"], Effort::Quick);
    take_sheet(&Host, &request, &AtomicBool::new(false), &mut |_| {}).expect("a good request")
});

#[test]
fn a_simulated_machine_has_nobody_who_reacts_and_says_so() {
    let sheet = take(Script::default(), &["reaction"]);
    for row in sheet.rows() {
        let absent = absent(&sheet, &row.id);
        assert!(absent.reason.contains("real machine") && absent.remedy.is_some(), "{}: {}", row.id, absent.reason);
    }
}

#[test]
fn every_row_has_a_figure_or_a_reason_that_is_no_defect() {
    for row in HERE.rows() {
        match &row.value {
            Value::Figure(figure) => assert!(figure.n > 0 && figure.median.is_some(), "{}", row.id),
            Value::Absent(absent) => {
                assert!(!absent.reason.contains("defect"), "{}: {}", row.id, absent.reason);
                let under = |prefixes: &[&str]| prefixes.iter().any(|prefix| row.id.starts_with(prefix));
                let takes_processes = under(&["reaction.matrix", "reaction.inversion", "reaction.chain.process"]);
                assert_eq!(takes_processes, absent.reason.contains("need a program"), "{}: {}", row.id, absent.reason);
                let is_wired = under(&["reaction.gpio", "reaction.parport", "reaction.uio"]);
                assert_eq!(is_wired, absent.reason.contains("by itself"), "{}: {}", row.id, absent.reason);
                let is_pulse = under(&["reaction.pps"]) && !std::path::Path::new("/dev/pps0").exists();
                assert_eq!(is_pulse, absent.reason.contains("/dev/pps0"), "{}: {}", row.id, absent.reason);
            }
        }
    }
}

#[test]
fn device_calls_take_at_least_the_access_times_of_the_board() {
    for (call, least_ns) in [("read", 1250.0), ("write", 1250.0), ("init", 3750.0)] {
        let id = format!("reaction.call.{call}");
        let figure = HERE.row(&id).and_then(|row| row.figure()).unwrap_or_else(|| panic!("{id} is absent"));
        assert!(figure.min >= Some(least_ns), "{id}: {:?}", figure.min);
    }
}

#[test]
fn the_stages_of_a_reaction_lie_within_its_total() {
    for source in ["eventfd", "software", "udp"] {
        let median = |stage: &str| {
            let id = format!("reaction.{source}.{stage}");
            HERE.row(&id).and_then(|row| row.figure()).and_then(|figure| figure.min)
        };
        let Some(total) = median("total") else {
            assert!(Host.set_policy(Policy::Fifo(1)).is_err(), "{source} is absent, though there is permission");
            continue;
        };
        let parts: f64 = ["wake", "start", "lock", "io"].iter().filter_map(|stage| median(stage)).sum();
        assert!(
            parts <= total,
            "{source}: the least of all stages, {parts} ns, is more than the least total, {total} ns"
        );
    }
}
