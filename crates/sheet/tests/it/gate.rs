//! Gates on comparisons.

use hairspring_sheet::{
    Absent, CompareTerms, ComparedSheets, Comparison, ComparisonGate, Figure, GateOutcome, Method, Row, Unit, compare,
    compare_interleaved,
};

use crate::compare::{ID, drifting, interleaved, median, sheet, side, sides};
use crate::example::{absent, row};

fn gone(id: &str) -> Row {
    absent(id, id, Absent::new("refused", "ask"))
}

/// Checks the outcome of a gate, and the ids and texts of the rows that do not hold.
#[track_caller]
fn check(gate: &str, comparison: &Comparison, outcome: GateOutcome, texts: &[&str]) {
    let report = ComparisonGate::parse(gate).unwrap().check(comparison);
    let found: Vec<String> =
        report.findings.iter().map(|f| format!("{}: {}", f.id.as_deref().unwrap_or("gate"), f.text)).collect();
    assert_eq!((report.outcome, found.iter().map(String::as_str).collect::<Vec<_>>()), (outcome, texts.to_vec()));
}

fn outcome(gate: &str, comparison: &Comparison) -> GateOutcome {
    ComparisonGate::parse(gate).unwrap().check(comparison).outcome
}

/// Three sheets a side, one row, this ratio between the sides and this much noise.
fn three(ratio: f64, noise: f64) -> Comparison {
    let a = [100.0 * (1.0 - noise), 100.0, 100.0 * (1.0 + noise)];
    compare(&sides(&a, &a.map(|m| m * ratio)), &CompareTerms::default())
}

/// Single sheets of these rows.
fn single(a: Vec<Row>, b: Vec<Row>) -> Comparison {
    compare(&[side("A", vec![sheet(a)]), side("B", vec![sheet(b)])], &CompareTerms::default())
}

#[test]
fn the_interval_decides_and_not_the_ratio() {
    use GateOutcome::{Fails, Holds, Undecided};
    let gate = format!("{ID}>1.2");
    for (ratio, noise, expected) in [
        (1.00, 0.01, Holds),
        (1.15, 0.01, Holds),
        (1.30, 0.01, Fails),
        (1.20, 0.01, Undecided),
        (1.30, 0.30, Undecided),
        (1.00, 0.30, Undecided),
    ] {
        assert_eq!(outcome(&gate, &three(ratio, noise)), expected, "{ratio} {noise}");
        // The same from below.
        assert_eq!(outcome(&format!("{ID}<{}", 1.0 / 1.2), &three(1.0 / ratio, noise)), expected, "1/{ratio} {noise}");
    }
    assert_eq!(outcome(&format!("{ID}<0.8"), &three(2.0, 0.01)), Holds);
}

#[test]
fn what_fails_or_is_undecided_says_why_and_what_would_decide() {
    check(
        "clocks>1.2",
        &three(1.3, 0.01),
        GateOutcome::Fails,
        &["clocks.cost.now: the ratio of medians is 1.300, and at least 1.278 with 95 %"],
    );
    check(
        "clocks>1.2",
        &three(1.1, 0.10),
        GateOutcome::Undecided,
        &[
            "clocks.cost.now: the ratio of medians is 1.100, from 0.924 to 1.310: a decision needs about 18 sheets a side",
        ],
    );
    check(
        "clocks>1.2",
        &single(vec![median(ID, 1.0)], vec![median(ID, 9.0)]),
        GateOutcome::Undecided,
        &["clocks.cost.now: single sheets decide nothing"],
    );
}

#[test]
fn a_gate_on_many_rows_fails_no_more_often_than_a_gate_on_one() {
    let rows = |others: usize| {
        // One row a little beyond the limit: declared alone, and not among forty.
        let mut rows = vec![(0..5).map(|i| [100.0, 121.5 + f64::from(i)]).collect::<Vec<[f64; 2]>>()];
        rows.extend((0..others).map(|_| drifting(1.0)));
        compare_interleaved(&interleaved(&rows), None)
    };
    assert_eq!(outcome("clocks>1.2", &rows(0)), GateOutcome::Fails);
    assert_eq!(outcome("clocks>1.2", &rows(60)), GateOutcome::Undecided);
    assert_eq!(outcome("clocks.row0>1.2", &rows(60)), GateOutcome::Fails, "a gate on one row pays no penalty");
}

#[test]
fn a_row_that_holds_does_not_decide_for_one_that_does_not() {
    let both = |second: f64| {
        let of = |factor: f64| {
            let rows = |m: f64| vec![median("delays.a", m), median("delays.b", m * factor)];
            [99.0, 100.0, 101.0].map(|m| sheet(rows(m))).to_vec()
        };
        compare(&[side("A", of(1.0)), side("B", of(second))], &CompareTerms::default())
    };
    assert_eq!(outcome("delays>1.2", &both(1.0)), GateOutcome::Holds);
    assert_eq!(outcome("delays>1.2", &both(1.2)), GateOutcome::Undecided);
    assert_eq!(outcome("delays>1.2", &both(1.4)), GateOutcome::Fails);
}

#[test]
fn a_gate_covers_one_id_or_a_family_up_to_a_dot_or_any_beginning_with_a_star() {
    let covers = |pattern: &str, id: &str| ComparisonGate::parse(&format!("{pattern}>1")).unwrap().pattern().covers(id);
    assert!(covers("delays.minimum", "delays.minimum") && covers("delays.minimum", "delays.minimum.fifo.2us.late"));
    assert!(
        !covers("delays.min", "delays.minimum.fifo.2us.late") && covers("delays.min*", "delays.minimum.fifo.2us.late")
    );
    assert!(!covers("delays.minimum.*", "delays.minimum") && covers("*", "anything"));
}

#[test]
fn a_gate_that_could_check_nothing_fails() {
    let rows = || vec![median("delays.a", 10.0)];
    let none = "gate: none of the 1 rows it covers could be compared";
    check(
        "wakeup>1.2",
        &single(rows(), rows()),
        GateOutcome::Fails,
        &["gate: no row has this id; `hairspring probes` lists the ids"],
    );
    check("delays>1.2", &single(vec![gone("delays.a")], vec![gone("delays.a")]), GateOutcome::Fails, &[none]);
    check("delays>1.2", &single(vec![gone("delays.a")], rows()), GateOutcome::Fails, &[none]);
    let count = |n| vec![row(ID, ID, Figure::single(Unit::Count, Method::Count, n))];
    check(
        "clocks>1.2",
        &single(count(1.0), count(5.0)),
        GateOutcome::Fails,
        &["gate: none of the 1 rows it covers has a verdict: counts and largest values have none"],
    );
    let alone: &[ComparedSheets] = &[side("A", vec![sheet(rows())])];
    assert_eq!(outcome("delays>1.2", &compare(alone, &CompareTerms::default())), GateOutcome::Fails);
}

#[test]
fn a_figure_that_vanished_fails_even_beside_others_that_hold() {
    let three = |rows: fn(f64) -> Vec<Row>| [99.0, 100.0, 101.0].map(|m| sheet(rows(m))).to_vec();
    let before = three(|m| vec![median("delays.a", m), median("delays.b", m)]);
    let vanished = "delays.b: cannot be compared (absent here, measured in A)";
    let after = three(|m| vec![median("delays.a", m), gone("delays.b")]);
    let terms = CompareTerms::default();
    check(
        "delays>1.2",
        &compare(&[side("A", before.clone()), side("B", after)], &terms),
        GateOutcome::Fails,
        &[vanished],
    );
    let after = three(|m| vec![median("delays.a", m)]);
    let missing = "delays.b: cannot be compared (only in A)";
    check("delays>1.2", &compare(&[side("A", before), side("B", after)], &terms), GateOutcome::Fails, &[missing]);
}

#[test]
fn medians_without_a_ratio_leave_a_gate_undecided_and_other_units_fail_it() {
    let zero = compare(&sides(&[0.0, 1.0, -1.0], &[0.0, 1.0, 0.0]), &CompareTerms::default());
    let no_ratio = "clocks.cost.now: it can be 0 or less, so it has no ratio";
    check("clocks>1.2", &zero, GateOutcome::Undecided, &[no_ratio]);
    let hz = row("delays.a", "a", Figure::single(Unit::Hz, Method::Rate, 10.0));
    check(
        "delays>1.2",
        &single(vec![median("delays.a", 10.0)], vec![hz]),
        GateOutcome::Fails,
        &["delays.a: cannot be compared (error: the units differ)"],
    );
}

#[test]
fn with_several_sides_the_finding_names_the_one() {
    let of = |m: f64| [m * 0.99, m, m * 1.01].map(|m| sheet(vec![median(ID, m)])).to_vec();
    let all = [side("old", of(10.0)), side("new", of(11.0)), side("newer", of(20.0))];
    let report = ComparisonGate::parse("clocks>1.5").unwrap().check(&compare(&all, &CompareTerms::default()));
    assert_eq!(report.findings.len(), 1);
    assert!(report.findings[0].text.ends_with(", in newer"), "{}", report.findings[0].text);
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
