//! `hairspring maxrate` on the real command: its evidence, its refusals, its leftovers.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::{code, folder, hairspring, items, json, names, stderr, stdout};

/// Small enough that a search takes a second or two.
const SMALL: [&str; 9] =
    ["maxrate", "--to", ".", "--buffer", "1MiB", "--for", "50ms", "--card", "virtual:2ch,16bit,1MS/s,fifo=256KiB"];

fn maxrate(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = hairspring(&SMALL);
    command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn output(folder: &Path, arguments: &[&str]) -> Output {
    maxrate(folder, arguments).output().expect("the binary can be started")
}

fn rate(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or_else(|| panic!("{name} is no number in {value:#}"))
}

#[test]
fn a_rate_that_any_disk_carries_is_confirmed_and_nothing_is_left_behind() {
    let folder = folder();
    let arguments = ["--limit", "4MB/s", "--confirmations", "2", "--format", "json"];
    let output = output(folder.path(), &arguments);
    assert_eq!(code(&output), 0, "{}{}", stderr(&output), stdout(&output));
    let report = json(&stdout(&output));
    assert_eq!(report["schema"], "hairspring.maxrate/1");
    let lossless = rate(&report, "lossless_bytes_per_s");
    let confirming: Vec<_> = items(&report, "probes").filter(|probe| probe["purpose"] == "confirm").collect();
    let those = || confirming.iter().filter(|probe| rate(probe, "rate_bytes_per_s") == lossless);
    assert_eq!(those().count(), 2, "{report:#}");
    for probe in those() {
        assert_eq!((&probe["lost"], &probe["read_back"]), (&Value::Null, &true.into()));
        // Twice the capacity of the buffer and the FIFO.
        assert!(rate(probe, "volume_bytes") >= 2.0 * 2.25 * f64::from(1 << 20), "{probe:#}");
    }
    let watched: f64 = those().map(|probe| rate(probe, "elapsed_ns")).sum();
    assert_eq!(rate(&report, "watched_ns"), watched);
    let bound = rate(&report, "losses_per_hour_below");
    assert!((bound * watched / 3.0 / 3600e9 - 1.0).abs() < 1e-6, "the rule of three: {bound}");
    // On a machine that is busy a recording at 4 MB/s can lose something, and then the report shows it.
    assert_eq!(report["at_ceiling"], items(&report, "probes").all(|probe| probe["lost"].is_null()));
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn the_text_begins_with_the_answer_and_lists_every_recording() {
    let folder = folder();
    let output = output(folder.path(), &["--limit", "4MB/s", "--confirmations", "1"]);
    let text = stdout(&output);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(text.starts_with("no data were lost at "), "{text}");
    for part in ["confirmed", "recommended", "sure of", "worst stall", "no loss, read back and compared"] {
        assert!(text.contains(part), "without {part}: {text}");
    }
}

#[test]
fn a_card_that_always_loses_has_no_rate() {
    let folder = folder();
    let card = "virtual:2ch,16bit,1MS/s,fifo=64B,hiccup=1ms+300ms";
    let mut command = hairspring(&["maxrate", "--to", ".", "--buffer", "1MiB", "--limit", "1MB/s", "--format", "json"]);
    let output =
        command.args(["--for", "50ms", "--card", card]).current_dir(folder.path()).output().expect("it starts");
    assert_eq!(code(&output), 4, "{}{}", stderr(&output), stdout(&output));
    let report = json(&stdout(&output));
    assert_eq!(report["lossless_bytes_per_s"], Value::Null, "{report:#}");
    assert!(report["failed_bytes_per_s"].is_number() && report["recommended_bytes_per_s"].is_null());
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_written() {
    let folder = folder();
    for (arguments, hint) in [
        (&["--volume", "1MiB"][..], "4608 KiB"),
        (&["--limit", "0MB/s"], "--limit"),
        (&["--limit", "500GB/s", "--confirmations", "0"], "--confirmations"),
        (&["--resolution", "0"], "--resolution 0"),
        (&["--resolution", "NaN"], "--resolution NaN"),
        (&["--sync", "0s"], "--sync 0s"),
        (&["--to", "nowhere"], "nowhere"),
    ] {
        let mut command = hairspring(&["maxrate", "--buffer", "1MiB", "--card", "virtual:2ch,16bit,1MS/s,fifo=256KiB"]);
        if !arguments.contains(&"--to") {
            command.args(["--to", "."]);
        }
        let output = command.args(arguments).current_dir(folder.path()).output().expect("it starts");
        assert_eq!((code(&output), stdout(&output)), (2, String::new()), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{arguments:?} said {:?}, without {hint:?}", stderr(&output));
        assert!(!stderr(&output).contains("unpaced"), "{arguments:?} recorded something: {}", stderr(&output));
    }
    for (arguments, hint) in [
        (["--for", "0s", "--to", "."], "--for 0s"),
        (["--to", ".,.", "--for", "1s"], "names . twice"),
        (["--card", "unpaced:1ch,16bit", "--to", "."], "only a virtual card"),
    ] {
        let mut command = hairspring(&["maxrate"]);
        let output = command.args(arguments).current_dir(folder.path()).output().expect("it starts");
        assert_eq!((code(&output), stdout(&output)), (2, String::new()), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(hint), "{arguments:?} said {:?}, without {hint:?}", stderr(&output));
    }
    assert_eq!(names(folder.path()), [""; 0]);
}

#[test]
fn ctrl_c_ends_a_search_and_removes_what_was_recorded() {
    let folder = folder();
    let child = maxrate(folder.path(), &["--limit", "2MB/s", "--confirmations", "1000"]).spawn().expect("it starts");
    let begun = std::time::Instant::now();
    while names(folder.path()).is_empty() {
        assert!(begun.elapsed().as_secs() < 60, "it does not record");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-s", "INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    assert_eq!(names(folder.path()), [""; 0]);
}
