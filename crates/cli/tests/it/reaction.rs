//! The matrix of priorities, with real processes, which are this program again.

use hairspring_machine::{Host, Machine, Policy};
use serde_json::Value;
use testing::skip;

use crate::{code, hairspring, json, row, stderr, stdout};

/// The median of a row that has a figure.
fn median(sheet: &Value, id: &str) -> f64 {
    row(sheet, id)["figure"]["median"].as_f64().unwrap_or_else(|| panic!("{:#}", row(sheet, id)))
}

#[test]
fn priorities_order_processes_as_in_the_latency_note() {
    let name = "priorities_order_processes_as_in_the_latency_note";
    let before = Host.policy();
    if Host.set_policy(Policy::Fifo(99)).is_err() {
        return skip(name, "no permission for real-time priorities");
    }
    Host.set_policy(before).expect("back again");
    let rows: Vec<String> = ["17_17.inherit", "50_17.inherit", "17_100.none"]
        .iter()
        .flat_map(|cell| [1, 2].map(|number| format!("reaction.matrix.{cell}.process{number}")))
        .collect();
    let mut arguments = vec!["sheet", "--quick", "--format", "json", "--only", "reaction.inversion"];
    rows.iter().for_each(|id| arguments.extend(["--only", id]));
    let output = hairspring(&arguments).output().expect("it starts");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let sheet = json(&stdout(&output));
    let of = |row: &str| median(&sheet, &format!("reaction.{row}"));
    // Raised before the first of equals before the second of equals, and so is the lower of two.
    let raised = of("matrix.50_17.inherit.process1");
    let (first, second) = (of("matrix.17_17.inherit.process1"), of("matrix.17_17.inherit.process2"));
    let lower = of("matrix.50_17.inherit.process2");
    assert!(raised < first && first < second && first < lower, "{raised} {first} {second} {lower}");
    assert!(of("matrix.17_100.none.process2") < of("matrix.17_100.none.process1"));
    // Inheritance: the wait is one access of the board, without the computing of the middle process.
    let (inherit, none) = (of("inversion.inherit.high"), of("inversion.none.high"));
    assert!(inherit < none / 2.0, "{inherit} {none}");
}

#[test]
fn a_chain_is_for_the_sheet_alone() {
    let output = hairspring(&["chain", "x"]).output().expect("it starts");
    assert_eq!(code(&output), 2, "{}", stderr(&output));
    assert!(stderr(&output).contains("hairspring sheet"));
}
