//! The chapter *Executive*: on this computer, where its tasks really run, and on a simulated one, where they cannot.

use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use hairspring_machine::sim::Script;
use hairspring_machine::{Host, Machine};
use hairspring_sheet::{Sheet, Value};
use hairspring_suite::{Effort, take_sheet};

use crate::{absent, check_declared, request, take};

/// A quick sheet of this chapter on this computer.
static HERE: LazyLock<Sheet> = LazyLock::new(|| {
    let request = request(&["executive"], Effort::Quick);
    take_sheet(&Host, &request, &AtomicBool::new(false), &mut |_| {}).expect("a good request")
});

fn median(id: &str) -> Option<f64> {
    HERE.row(id).unwrap_or_else(|| panic!("no row {id}")).figure()?.median
}

#[test]
fn a_simulated_machine_has_no_threads_to_run_tasks_on_and_says_so() {
    let sheet = take(Script::default(), &["executive"]);
    assert!(sheet.rows().count() > 300);
    for row in sheet.rows() {
        let absent = absent(&sheet, &row.id);
        assert!(absent.reason.contains("real machine") && absent.remedy.is_some(), "{}: {}", row.id, absent.reason);
    }
}

#[test]
fn every_cell_has_a_figure_or_a_reason_that_is_no_defect() {
    assert_eq!(HERE.rows().map(|row| row.id.clone()).collect::<Vec<_>>(), request(&["executive"], Effort::Quick).rows);
    for row in HERE.rows() {
        match &row.value {
            Value::Figure(figure) => {
                assert!(figure.n > 0 && (figure.median.is_some() || figure.at_most.is_some()), "{}", row.id);
            }
            Value::Absent(absent) => {
                assert!(
                    !absent.reason.is_empty() && !absent.reason.contains("defect"),
                    "{}: {}",
                    row.id,
                    absent.reason
                );
            }
        }
    }
    // Rows that need neither permission nor a second CPU exist on every machine.
    for id in ["waitwake.sum.hot.idle", "waitwake.roundtrip.hot.idle", "task_switch.hot.idle"] {
        assert!(median(&format!("executive.fiber.{id}")).is_some(), "{id}");
    }
    for service in [
        "mutex",
        "condition",
        "selector",
        "byte_pipe",
        "heap",
        "circular_list",
        "broadcast",
        "latest_value",
        "ticker",
        "queue_deletion",
        "day_timer",
        "join",
    ] {
        assert!(median(&format!("executive.service.fiber.{service}")).is_some(), "{service}");
    }
}

#[test]
fn what_an_executive_cannot_do_is_named_so() {
    for id in [
        "executive.thread_up.timer.t1.hot.idle",
        "executive.thread_smp.waitwake.t2.hot.idle",
        "executive.pthread_futex.mailbox.t1.hot.idle",
        "executive.thread_metric.pthread_futex.memory",
        "executive.service.thread_smp.condition",
    ] {
        assert!(absent(&HERE, id).reason.starts_with("n/a on "), "{id}: {}", absent(&HERE, id).reason);
    }
}

#[test]
fn every_figure_has_the_unit_and_the_method_that_the_registry_declares() {
    // Fibers alone, without a permission and without a second CPU, give more than these.
    check_declared(&HERE, "executive", 40);
}

#[test]
fn the_parts_of_wait_and_wake_agree_with_the_whole() {
    for executive in ["fiber", "thread_up"] {
        let of = |quantity: &str| median(&format!("executive.{executive}.waitwake.{quantity}.hot.idle"));
        let parts: Option<f64> = ["t1", "t2", "t3", "t4"].into_iter().map(of).sum();
        let (Some(parts), Some(sum)) = (parts, of("sum")) else {
            let why = &absent(&HERE, &format!("executive.{executive}.waitwake.sum.hot.idle")).reason;
            assert!(executive != "fiber" && why.contains("refused"), "{executive}: {why}");
            continue;
        };
        // Real machines show 0.9 to 1.1. A part that is counted twice or for the wrong number of links lies outside.
        assert!((0.67..1.5).contains(&(parts / sum)), "{executive}: {parts} ns in parts, {sum} ns together");
    }
}

#[test]
fn fibers_switch_faster_than_threads() {
    let fiber = median("executive.fiber.waitwake.roundtrip.hot.idle").expect("fibers run everywhere");
    if let Some(thread) = median("executive.thread_up.waitwake.roundtrip.hot.idle") {
        assert!(fiber < thread, "{fiber} ns against {thread} ns");
    }
}

#[test]
fn load_and_interrupts_come_from_another_cpu_or_are_absent_where_there_is_none() {
    let alone = Host.affinity().0.len() == 1;
    assert_eq!(median("executive.fiber.waitwake.sum.hot.loaded").is_none(), alone);
    if alone {
        assert!(absent(&HERE, "executive.fiber.isp.t1.hot.idle").reason.contains("only one CPU"));
    }
}

#[test]
fn each_scenario_is_drawn_once() {
    let drawn: Vec<&str> =
        HERE.chapters[0].tables.iter().filter(|table| table.diagram.is_some()).map(|table| table.id.as_str()).collect();
    let expected =
        ["waitwake", "mailbox", "timer", "delay", "isp"].map(|scenario| format!("executive.fiber.{scenario}"));
    assert_eq!(drawn, expected);
}
