//! `hairspring delay`: never early, and the fields that programs may rely on.

use serde_json::Value;

use crate::{json, succeed};

#[track_caller]
fn delays(arguments: &str) -> Value {
    let mut all = vec!["delay", "--format", "json"];
    all.extend(arguments.split_whitespace());
    json(&succeed(&all))
}

/// Checks the properties of any delays.
#[track_caller]
fn check(arguments: &str, requested_ns: u64, count: u64) -> Value {
    let found = delays(arguments);
    assert_eq!((&found["schema"], &found["requested_ns"]), (&"hairspring.delay/1".into(), &requested_ns.into()));
    assert_eq!((&found["n"], &found["early"]), (&count.into(), &0.into()), "{arguments}");
    let late = |name: &str| found["late_ns"][name].as_f64();
    assert!(late("min") >= Some(0.0) && late("median") >= late("min") && late("max") >= late("median"), "{found}");
    let verdicts = found["verdicts"].as_object().expect("verdicts have names");
    assert_eq!(verdicts.values().filter_map(Value::as_u64).sum::<u64>(), count, "{found}");
    found
}

#[test]
fn guaranteed_minima_are_never_early_and_every_one_has_a_verdict() {
    let found = check("50us --count 2000", 50_000, 2_000);
    assert_eq!(found["kind"], "minimum");
    // The number of independent samples limits the percentiles in the tails.
    for name in ["q1", "q3", "mad", "mean"] {
        assert!(found["late_ns"][name].is_f64(), "{name} of {found}");
    }
}

#[test]
fn long_delays_are_never_early_and_give_the_cpu_away() {
    let found = check("20ms --long --count 20", 20_000_000, 20);
    assert_eq!(found["kind"], "long");
    assert!(found["window_ns"].as_i64() > Some(0));
    assert!(found["cpu_share"].as_f64() < Some(0.5), "{found}");
}

#[test]
fn a_delay_of_nothing_is_no_mistake() {
    check("0ns --count 3", 0, 3);
    check("0s --long --count 3", 0, 3);
}

#[test]
fn a_statistic_that_the_count_does_not_support_is_null() {
    let found = check("1ms --count 3", 1_000_000, 3);
    for name in ["p1", "q1", "q3", "p99", "p999", "mad"] {
        assert!(found["late_ns"][name].is_null(), "{name} of {found}");
    }
}

#[test]
fn the_usual_count_fits_into_two_seconds() {
    check("100ms", 100_000_000, 20);
}

#[test]
fn people_see_a_distribution_the_early_ones_and_the_verdicts() {
    let text = succeed(&["delay", "100us", "--count", "300"]);
    assert!(text.starts_with("300 × 100 µs, guaranteed minimum"), "{text}");
    for words in ["median", "█", "early     0\n", "verdicts  "] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    assert!(text.contains("p99 ") != text.contains("largest of 300 "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}
