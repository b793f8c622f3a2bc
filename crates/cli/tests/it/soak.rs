//! `hairspring soak`: the sheet on the disk is valid at any moment, however the command ends.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{code, folder, hairspring, json, json_file, names, row, run, stderr, stdout};

/// Time limit for something that is sure to happen, only against hanging.
const PATIENCE: Duration = Duration::from_secs(60);
/// A job that any computer can do.
const EASY: &str = "loop 1kHz jitter 10s p90 ordinary";

fn soak(folder: &Path, more: &[&str]) -> Command {
    let mut command = hairspring(&["soak", EASY, "--block", "100ms", "--out", "soak.json"]);
    command.args(more).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a soak and waits for `blocks` blocks.
fn in_the_middle(folder: &Path, blocks: usize, more: &[&str]) -> Child {
    let child = soak(folder, more).spawn().expect("the binary can be started");
    until(|| {
        let text = std::fs::read_to_string(folder.join("soak.json")).ok();
        text.is_some_and(|text| maxima(&json(&text)) >= blocks)
    });
    child
}

#[track_caller]
fn until(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The blocks in a sheet.
fn maxima(sheet: &Value) -> usize {
    let series = sheet["chapters"][0]["series"].as_array().and_then(|series| series.first());
    series.and_then(|series| series["lines"][0]["points"].as_array()).map_or(0, Vec::len)
}

fn signal(id: u32, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &id.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill -s {name}");
}

#[test]
fn a_soak_ends_in_a_sheet_that_every_command_takes() {
    let folder = folder();
    let output = soak(folder.path(), &["--for", "500ms", "--load", "net=1MB/s,memory"]).output().expect("it runs");
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("the requested time") && said.contains("YES"), "{said}");
    assert!(said.contains("nothing is extrapolated: there are"), "{said}");
    let file = folder.path().join("soak.json");
    let (sheet, file) = (json_file(&file), file.display().to_string());
    let worst = sheet["chapters"][0]["tables"][1]["rows"].as_array().expect("the worst cases");
    let unnamed = worst.iter().filter(|row| row["label"].as_str().expect("text").ends_with("not attributed")).count();
    // Without permission no culprit is named, and beside other tests the kernel may lose records; each case without a
    // name has its reason.
    let why = said.contains("some cases have no culprit: ");
    assert!((unnamed == 0) != why, "{worst:?} {said}");
    let reason = said.split("some cases have no culprit: ").nth(1).unwrap_or("records were lost");
    assert!(
        ["records", "tracepoint", "perf_event_open"].iter().any(|word| reason.contains(word)),
        "neither a permission nor records are missing: {said}"
    );
    assert!(why || said.contains("records of this CPU were on"), "{said}");
    assert_eq!((&sheet["schema"], &sheet["taken"]["interrupted"]), (&"hairspring.sheet/1".into(), &false.into()));
    let events = row(&sheet, "soak.loop.1ms.other.late")["figure"]["n"].as_u64();
    // The load decides how many.
    assert!(events > Some(0), "{events:?}");
    for load in ["net", "memory"] {
        assert!(row(&sheet, &format!("soak.load.{load}.rate"))["figure"]["max"].as_f64() > Some(0.0));
    }
    assert_eq!(code(&run(&["can", EASY, "--sheet", &file])), 0);
    assert_eq!(code(&run(&["can", "loop 1kHz jitter 1ns p50 ordinary", "--sheet", &file])), 10);
    assert_eq!(code(&run(&["compare", &file, &file])), 0);
    let page = run(&["soak", "--show", &file, "--format", "html"]);
    assert_eq!(code(&page), 0, "{}", stderr(&page));
    assert!(stdout(&page).contains("extreme values"));
}

#[test]
fn a_soak_that_is_killed_has_lost_its_last_block_only() {
    let folder = folder();
    let mut child = in_the_middle(folder.path(), 3, &["--for", "1h", "--load", "cpu"]);
    let before = json_file(&folder.path().join("soak.json"));
    let id = child.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).expect("it runs");
    assert!(!children.trim().is_empty(), "the load runs");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    // The blocks written before the kill are still there, perhaps with one more.
    let after = json_file(&folder.path().join("soak.json"));
    assert!(maxima(&after) >= maxima(&before) && after["taken"]["interrupted"] == true);
    let shown = run(&["soak", "--show", &folder.path().join("soak.json").display().to_string()]);
    assert_eq!(code(&shown), 0, "{}", stderr(&shown));
    assert!(stdout(&shown).contains("less than the requested time"), "{}", stdout(&shown));
    // A file that was about to be written has no other name, and the load ends with the soak.
    assert!(names(folder.path()).iter().all(|name| name == "soak.json" || name.starts_with(".hairspring-")));
    for load in children.split_whitespace() {
        until(|| {
            let status = std::fs::read_to_string(format!("/proc/{load}/status")).unwrap_or_default();
            status.is_empty() || status.contains("State:\tZ")
        });
    }
}

#[test]
fn a_soak_goes_on_without_its_terminal() {
    let folder = folder();
    let mut child = in_the_middle(folder.path(), 1, &["--for", "2s"]);
    drop((child.stdout.take(), child.stderr.take()));
    signal(child.id(), "HUP");
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    let sheet = json_file(&folder.path().join("soak.json"));
    assert!(sheet["taken"]["interrupted"] == false && sheet["taken"]["duration_s"].as_f64() >= Some(2.0));
}

#[test]
fn an_interrupted_soak_shows_what_it_knows() {
    let folder = folder();
    let child = in_the_middle(folder.path(), 1, &["--for", "1h"]);
    signal(child.id(), "INT");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    assert!(stdout(&output).contains("less than the requested time"), "{}", stdout(&output));
    assert_eq!(names(folder.path()), ["soak.json"]);
    assert_eq!(json_file(&folder.path().join("soak.json"))["taken"]["interrupted"], true);
}

#[test]
fn a_clear_no_ends_a_soak_early_where_that_is_asked() {
    let folder = folder();
    let output = soak(folder.path(), &["loop 1kHz jitter 1ns p50 ordinary", "--for", "1h", "--until-no"]).output();
    let output = output.expect("it runs");
    assert_eq!(code(&output), 10, "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn soaks_that_make_no_sense_are_refused_before_hours_are_spent() {
    let folder = folder();
    std::fs::write(folder.path().join("there.json"), "{}").expect("written");
    for (arguments, says) in [
        (&["soak"][..], "--for"),
        (&["soak", "--for", "0s"], "for instance 8h"),
        (&["soak", "--for", "1h", "--out", "there.json"], "exists: choose another name"),
        (&["soak", "--for", "1h", "--out", "nowhere/x.json"], "cannot write nowhere/x.json"),
        (&["soak", "--for", "1h", "--load", "heat"], "write cpu, memory, disk or net"),
        (&["soak", "--for", "1h", "--block", "1ms"], "100 ms or more"),
        (&["soak", "--for", "1h", "--cpu", "4095"], "CPU 4095"),
        (&["soak", "--for", "1h", "loop 1kHz"], "write `jitter`"),
        (&["soak", "--show", "fesa-2007"], "is not a sheet of a soak"),
    ] {
        let output = hairspring(arguments).current_dir(folder.path()).output().expect("it runs");
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stdout(&output));
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
    }
    assert_eq!(names(folder.path()), ["there.json"]);
}
