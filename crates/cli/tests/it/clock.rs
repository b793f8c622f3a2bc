//! `hairspring clock`: the calibration and its grounds.

use crate::{items, json, succeed};

#[test]
fn programs_can_rely_on_rate_bound_and_trust() {
    let clock = json(&succeed(&["clock", "--format", "json"]));
    assert_eq!(clock["schema"], "hairspring.clock/1");
    // The range that the calibration itself accepts as plausible.
    let rate = clock["rate_hz"].as_f64().expect("a rate");
    assert!((8e6..=127e9).contains(&rate), "{rate}");
    assert!(clock["bound_ppm"].as_f64() > Some(0.0));
    assert!(clock["baseline_ns"].as_i64() >= Some(90_000_000), "it has aged for 100 ms: {clock}");
    let trusted = clock["trusted"].as_bool().expect("yes or no");
    assert_eq!(clock["source"], if trusted { "counter" } else { "clock_monotonic" });
    let supports = |reason: &serde_json::Value| reason["supports"] == true;
    assert_eq!(items(&clock, "reasons").all(supports), trusted, "{clock}");
    assert!(items(&clock, "reasons").count() >= 4);
}

#[test]
fn an_older_calibration_has_a_smaller_bound() {
    let bound = |age: &str| json(&succeed(&["clock", "--format", "json", "--age", age]))["bound_ppm"].as_f64();
    // 20 times the age; the widths of the brackets differ by less than that.
    assert!(bound("1s") < bound("50ms"));
}

#[test]
fn people_see_the_reasons() {
    let text = succeed(&["clock"]);
    for words in ["rate ", "GHz", "bound ", "ppm over ", "trusted ", "kernel clock"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}
