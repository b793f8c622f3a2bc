//! `hairspring can`: three answers, from a sheet and from the computer.

use crate::{code, json, run, stderr, stdout};

const SHEET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sheets/2026-11-22-kvm-guest/sheet.json");

#[track_caller]
fn from_sheet(requirement: &str, exit: i32, says: &str) {
    let output = run(&["can", requirement, "--sheet", SHEET]);
    assert_eq!(code(&output), exit, "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains(says), "{}", stdout(&output));
}

#[test]
fn a_sheet_answers_yes_no_and_not_shown() {
    // The loop of that sheet: 2,799 periods, median 62 µs, worst 1.87 ms.
    from_sheet("loop 1kHz jitter 5ms p99", 0, "YES");
    from_sheet("loop 1kHz jitter 50us", 10, "NO ");
    from_sheet("loop 1kHz jitter 5ms p99.99", 11, "29,956 periods would decide it");
    from_sheet("loop 1kHz jitter 5ms misses 1/h", 11, "NOT SHOWN");
    from_sheet("loop 500Hz jitter 5ms", 11, "leave out --sheet");
    from_sheet("react 10ms p99", 0, "reaction.eventfd.total");
    from_sheet("delay 10us within 1s p99", 0, "delays.minimum.fifo.10us");
}

#[test]
fn the_worst_answer_decides_the_exit() {
    let ask = |more: &str| code(&run(&["can", "loop 1kHz jitter 5ms p99", more, "--sheet", SHEET]));
    assert_eq!(ask("loop 1kHz jitter 50us"), 10);
    assert_eq!(ask("loop 500Hz jitter 50us"), 11);
}

#[test]
fn this_computer_answers() {
    let output = run(&["can", "loop 1kHz jitter 10s p90 ordinary", "--watch", "200ms", "--format", "json"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    let said = json(&stdout(&output));
    let answer = &said["answers"][0];
    assert_eq!((&answer["answer"], &answer["limit_ns"]), (&"yes".into(), &10_000_000_000_i64.into()));
    let arms = answer["arms"].as_array().expect("arms");
    assert_eq!(arms[0]["settings"], "as it is");
    for arm in arms {
        assert!(arm["evidence"]["events"].as_u64() >= Some(100) && arm["answer"] == "yes", "{arm}");
    }
    // Nobody can wake a thread within a nanosecond.
    let impossible = run(&["can", "loop 1kHz jitter 1ns p50 ordinary", "--watch", "200ms"]);
    assert_eq!(code(&impossible), 10, "{}", stdout(&impossible));
}

#[test]
fn bad_questions_are_refused_before_anything_is_watched() {
    for (arguments, says) in [
        (&["can"][..], "--list shows the ready-made jobs"),
        (&["can", "loop 1kHz jiter 50us"], "'jiter': write jitter"),
        (&["can", "--job", "cooking"], "choose from audio"),
        (&["can", "react 1ms", "--cpu", "4095"], "CPU 4095"),
        (&["can", "react 1ms", "--sheet", "/nothing"], "no file /nothing"),
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}
