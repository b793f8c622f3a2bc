//! Requests that cannot be served: refused before anything is measured.

use std::sync::atomic::AtomicBool;

use hairspring_machine::sim::Script;
use hairspring_machine::{Cpu, Nanos, Sim};
use hairspring_suite::{Effort, SheetError, SheetRequest, select, take_sheet};

use crate::request;

#[track_caller]
fn check(refused: &SheetRequest, expected: &SheetError, hint: &str) {
    let sim = Sim::new(Script::default());
    let measured = &mut |_: hairspring_suite::SheetProgress<'_>| panic!("something was measured");
    let error = take_sheet(&sim, refused, &AtomicBool::new(false), measured).expect_err("it cannot be served");
    assert_eq!(&error, expected);
    assert!(error.to_string().contains(hint), "{error}");
    assert_eq!(sim.true_time(), Nanos::ZERO, "time passed");
}

#[test]
fn a_cpu_that_does_not_exist_is_refused_with_those_that_do() {
    let refused = SheetRequest { cpu: Some(Cpu(2)), ..request(&[], Effort::Quick) };
    check(&refused, &SheetError::NoSuchCpu(Cpu(2), vec![Cpu(0), Cpu(1)]), "choose from 0, 1");
}

#[test]
fn a_priority_that_does_not_exist_is_refused() {
    for priority in [0, 100, 255] {
        check(
            &SheetRequest { priority, ..request(&[], Effort::Quick) },
            &SheetError::Priority(priority),
            "choose 1 to 99",
        );
    }
}

#[test]
fn an_id_that_no_probe_has_is_refused() {
    let mut refused = request(&["clocks.read"], Effort::Quick);
    refused.rows.push("clocks.read.counter.latr".to_owned());
    check(&refused, &SheetError::NoSuchRow("clocks.read.counter.latr".to_owned()), "'clocks.read.counter.latr'");
}

#[test]
fn a_prefix_without_probes_is_refused_with_those_that_look_like_it() {
    for (written, hint) in
        [("clocks.rea", "clocks.read"), ("delay", "delays"), ("", "hairspring probes"), ("%", "lists")]
    {
        let refused = select(&["sleeps".to_owned(), written.to_owned()]).expect_err(written).to_string();
        assert!(refused.contains(hint), "{refused}");
    }
}
