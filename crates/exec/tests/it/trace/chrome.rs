//! The Trace Event Format: held against what its description demands of each kind of event.

use std::collections::{BTreeMap, BTreeSet};

use hairspring_exec::trace::{Trace, TraceEventKind};
use serde_json::Value;

use super::{little, programs_everywhere};

/// A moment or a span in nanoseconds: the format has microseconds with decimals.
#[track_caller]
fn nanos(event: &Value, field: &str) -> u64 {
    let micros = event[field].as_f64().unwrap_or_else(|| panic!("no {field} in {event}"));
    assert!(micros >= 0.0, "{event}");
    (micros * 1_000.0).round() as u64
}

#[track_caller]
fn events(trace: &Trace) -> Vec<Value> {
    let text = trace.to_chrome().expect("it replays");
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    assert_eq!(document["displayTimeUnit"], "ns");
    document["traceEvents"].as_array().expect("a list").clone()
}

/// A slice: from, to, name.
type Slice = (u64, u64, String);

/// Checks each event alone; returns the slices and the names of all tracks.
#[track_caller]
fn check(trace: &Trace, what: &str) -> (BTreeMap<u64, Vec<Slice>>, BTreeMap<u64, String>) {
    let events = events(trace);
    let mut slices: BTreeMap<u64, Vec<Slice>> = BTreeMap::new();
    let (mut names, mut orders) = (BTreeMap::new(), BTreeSet::new());
    let (mut tails, mut heads) = (BTreeMap::new(), BTreeMap::new());
    for event in &events {
        assert_eq!(event["pid"], 1, "{what}: {event}");
        let text = |field: &str| event[field].as_str().unwrap_or_else(|| panic!("{what}: no {field} in {event}"));
        let tid = || event["tid"].as_u64().unwrap_or_else(|| panic!("{what}: no track in {event}"));
        assert!(!text("name").is_empty(), "{what}: {event}");
        match text("ph") {
            "M" if text("name") == "process_name" => {}
            "M" if text("name") == "thread_name" => {
                let name = event["args"]["name"].as_str().expect("a name").to_owned();
                assert!(names.insert(tid(), name).is_none(), "{what}: a track with two names");
            }
            "M" => {
                assert_eq!(text("name"), "thread_sort_index", "{what}");
                assert!(orders.insert(event["args"]["sort_index"].as_u64()), "{what}: two tracks at one place");
            }
            "X" => {
                let from = nanos(event, "ts");
                slices.entry(tid()).or_default().push((from, from + nanos(event, "dur"), text("name").to_owned()));
            }
            "i" => assert_eq!((text("s"), nanos(event, "ts") < u64::MAX), ("t", true), "{what}: {event}"),
            "C" => assert!(event["args"]["priority"].as_u64() < Some(64), "{what}: {event}"),
            "s" => drop(tails.insert(event["id"].as_u64(), (tid(), nanos(event, "ts")))),
            "f" => {
                assert_eq!(text("bp"), "e", "{what}: the arrow belongs to the slice around its head");
                heads.insert(event["id"].as_u64(), (tid(), nanos(event, "ts")));
            }
            other => panic!("{what}: {other} is nothing that we write"),
        }
    }
    assert_eq!(names.len(), orders.len(), "{what}");
    for (tid, slices) in &slices {
        assert!(names.contains_key(tid), "{what}: track {tid} has no name");
        // They are written in order, and on one track none reaches into the next.
        assert!(slices.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{what}: slices of {} overlap", names[tid]);
    }
    let covered = |(tid, at): &(u64, u64)| slices[tid].iter().any(|(from, to, _)| (from..to).contains(&at));
    assert_eq!(tails.keys().collect::<Vec<_>>(), heads.keys().collect::<Vec<_>>(), "{what}: half an arrow");
    for (tail, head) in tails.values().zip(heads.values()) {
        assert!(tail.1 <= head.1 && covered(tail) && covered(head), "{what}: an arrow from {tail:?} to {head:?}");
    }
    (slices, names)
}

#[test]
fn the_events_are_as_reviewed() {
    insta::assert_snapshot!(little().to_chrome().expect("it replays"));
}

#[test]
fn every_event_is_what_the_format_demands_and_slices_of_a_track_do_not_overlap() {
    check(&little(), "little");
    for (what, trace) in programs_everywhere() {
        let (_, names) = check(&trace, &what);
        assert!(trace.tasks.iter().all(|task| names.values().any(|name| name == task)), "{what}: {names:?}");
    }
}

#[test]
fn the_most_urgent_task_is_on_top_and_interrupts_and_timers_are_above_it() {
    let (_, names) = check(&little(), "little");
    let names: Vec<&str> = names.values().map(String::as_str).collect();
    let expected = ["interrupt edge", "timer tick", "3rd $end \"high\"\n", "low & slow", "resource R0", "program"];
    assert_eq!(names, expected);
}

#[test]
fn a_task_runs_in_its_slices_from_the_moments_at_which_the_replay_says_so() {
    for (what, trace) in programs_everywhere().filter(|(what, _)| what.ends_with("sim")) {
        let (slices, names) = check(&trace, &what);
        let begin = trace.records[0].at;
        for (tid, name) in &names {
            let Some(index) = trace.tasks.iter().position(|task| task == name) else { continue };
            let events = trace.replay().expect("it replays");
            let told =
                events.iter().filter(|event| matches!(event.what, TraceEventKind::Run(task) if task.index() == index));
            let told: Vec<u64> = told.map(|event| (event.at - begin).count().cast_unsigned()).collect();
            let drawn = slices[tid].iter().filter(|slice| slice.2 == "run").map(|slice| slice.0).collect::<Vec<_>>();
            assert_eq!(drawn, told, "{what}: {name}");
        }
    }
}
