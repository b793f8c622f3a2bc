//! Gates on comparisons.

use hairspring_sheet::{Absent, ComparisonGate, Figure, GateFailure, Method, Row, Sheet, Unit, compare};

use crate::example::{self, absent, row};

fn sheet(rows: Vec<Row>) -> Sheet {
    let mut sheet = example::sheet();
    sheet.chapters.truncate(1);
    sheet.chapters[0].tables.truncate(1);
    sheet.chapters[0].tables[0].rows = rows;
    sheet
}

fn median(id: &str, median: f64) -> Row {
    row(id, id, Figure::from_samples(Unit::Ns, Method::Stamp, &mut [median; 10]))
}

fn gone(id: &str) -> Row {
    absent(id, id, Absent::new("refused", "ask"))
}

/// What the gate says about a baseline and another sheet: the ids and texts of its failures.
#[track_caller]
fn check(gate: &str, a: Vec<Row>, b: Vec<Row>, expected: &[&str]) {
    let failures = ComparisonGate::parse(gate).unwrap().check(&compare(&sheet(a), &[sheet(b)]));
    let texts: Vec<String> = failures.iter().map(GateFailure::to_string).collect();
    assert_eq!(texts, expected);
}

#[test]
fn a_ratio_beyond_the_limit_fails() {
    let rows = |factor: f64| vec![median("delays.a", 10.0 * factor), median("delays.b", 20.0)];
    check("delays.a>1.2", rows(1.0), rows(1.1), &[]);
    check("delays.a > 1.2", rows(1.0), rows(1.2), &[]);
    check("delays.a>1.2", rows(1.0), rows(1.3), &["delays.a>1.2: delays.a: the ratio of medians is 1.300 (higher)"]);
    check("delays.a<0.8", rows(1.0), rows(0.5), &["delays.a<0.8: delays.a: the ratio of medians is 0.500 (lower)"]);
    check("delays.a<0.8", rows(1.0), rows(2.0), &[]);
}

#[test]
fn a_gate_covers_one_id_or_a_family_up_to_a_dot_or_any_beginning_with_a_star() {
    let covers = |pattern: &str, id: &str| ComparisonGate::parse(&format!("{pattern}>1")).unwrap().covers(id);
    assert!(covers("delays.minimum", "delays.minimum") && covers("delays.minimum", "delays.minimum.fifo.2us.late"));
    assert!(
        !covers("delays.min", "delays.minimum.fifo.2us.late") && covers("delays.min*", "delays.minimum.fifo.2us.late")
    );
    assert!(!covers("delays.minimum.*", "delays.minimum") && covers("*", "anything"));
}

#[test]
fn a_gate_that_could_check_nothing_is_a_failure() {
    let rows = || vec![median("delays.a", 10.0)];
    check("wakeup>1.2", rows(), rows(), &["wakeup>1.2: no row has this id; `hairspring probes` lists the ids"]);
    check(
        "delays>1.2",
        vec![gone("delays.a")],
        vec![gone("delays.a")],
        &["delays>1.2: none of the 1 rows it covers could be compared"],
    );
    check(
        "delays>1.2",
        vec![gone("delays.a")],
        rows(),
        &["delays>1.2: none of the 1 rows it covers could be compared"],
    );
    let comparison = compare(&sheet(rows()), &[]);
    assert_eq!(ComparisonGate::parse("delays>1.2").unwrap().check(&comparison).len(), 1);
}

#[test]
fn a_figure_that_vanished_is_a_failure_even_beside_others_that_hold() {
    let rows = || vec![median("delays.a", 10.0), median("delays.b", 10.0)];
    let vanished = "delays>1.2: delays.b: cannot be compared (absent here, measured in A)";
    check("delays>1.2", rows(), vec![median("delays.a", 10.0), gone("delays.b")], &[vanished]);
    check(
        "delays>1.2",
        rows(),
        vec![median("delays.a", 10.0)],
        &["delays>1.2: delays.b: cannot be compared (only in A)"],
    );
}

#[test]
fn medians_without_a_ratio_pass_only_if_they_are_equal() {
    let zero = || vec![median("delays.a", 0.0)];
    check("delays>1.2", zero(), zero(), &[]);
    check("delays>1.2", zero(), vec![median("delays.a", 5.0)], &["delays>1.2: delays.a: cannot be compared (higher)"]);
    let hz = row("delays.a", "a", Figure::single(Unit::Hz, Method::Rate, 10.0));
    check(
        "delays>1.2",
        vec![median("delays.a", 10.0)],
        vec![hz],
        &["delays>1.2: delays.a: cannot be compared (error: the units differ)"],
    );
}

#[test]
fn with_several_sheets_the_failure_names_the_one() {
    let sheets = [10.0, 11.0, 20.0].map(|m| sheet(vec![median("delays.a", m)]));
    let failures = ComparisonGate::parse("delays.a>1.5").unwrap().check(&compare(&sheets[0], &sheets[1..]));
    assert_eq!(failures.len(), 1);
    assert!(failures[0].text.starts_with("the ratio of medians is 2.000 (higher), in "), "{}", failures[0].text);
}

#[track_caller]
fn check_error(gate: &str, instead: &str) {
    let error = ComparisonGate::parse(gate).unwrap_err().to_string();
    assert!(error.ends_with(&format!("; write {instead}")), "{error}");
}

#[test]
fn what_is_no_gate_is_refused_with_what_to_write() {
    check_error("delays.a", "delays.a>1.2");
    check_error("", "ID>1.2");
    check_error(">1.2", "ID>1.2");
    check_error("delays.a>", "delays.a>1.2");
    check_error("delays.a<", "delays.a<0.8");
    check_error("delays.a>=1.3", "delays.a>1.3");
    check_error("delays.a>20%", "delays.a>1.2");
    check_error("delays.a<20%", "delays.a<0.8");
    check_error("delays.a>120 %", "delays.a>1.2");
    check_error("delays.a>1.5x", "delays.a>1.5");
    check_error("delays.a>1,5", "delays.a>1.5");
    check_error("delays.a>0", "delays.a>1.2");
    check_error("delays.a>-1", "delays.a>1.2");
    check_error("delays.a>inf", "delays.a>1.2");
    check_error("delays.a>NaN", "delays.a>1.2");
    check_error("delays.*.late>1.2", "delays.*>1.2");
    check_error("Delays.A>1.2", "delays.a>1.2");
    check_error("delays.a>fast", "delays.a>1.2");
}
