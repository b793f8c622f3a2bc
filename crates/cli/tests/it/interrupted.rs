//! Ctrl-C: the rows measured until then, and no other files left behind.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::{code, folder, hairspring, json, json_file, names, row, stderr};

/// Rows of which the first take seconds in each round with all effort, so that an interruption finds them being
/// measured.
const ROWS: &str = "disturbance.gaps,disturbance.wakeup_other";
/// Time limit for something that is sure to happen, only against hanging.
const PATIENCE: Duration = Duration::from_secs(60);

/// CPU time of the process so far, in the kernel's steps of 10 ms, and that of the processes it has started.
fn cpu_steps(child: &Child) -> u64 {
    let id = child.id();
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let ids = children.split_whitespace().map(str::to_owned).chain([id.to_string()]);
    ids.map(|id| own_cpu_steps(&id)).sum()
}

fn own_cpu_steps(id: &str) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The fields behind the name, which may contain spaces: user time is the 12th of them.
    let behind = stat.rsplit_once(')').map_or("", |(_, behind)| behind);
    behind.split_whitespace().nth(11).and_then(|steps| steps.parse().ok()).unwrap_or(0)
}

/// Starts a long sheet and waits until it is in the middle: until it has used half a second of CPU time, which only the
/// polling of the first probe does.
fn in_the_middle(folder: &Path, arguments: &[&str]) -> Child {
    let child = hairspring(&["sheet", "--thorough", "--only", ROWS])
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    let start = Instant::now();
    while cpu_steps(&child) < 50 {
        assert!(start.elapsed() < PATIENCE, "it does not get to the middle");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args(["-s", name, &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill -s {name}");
}

#[track_caller]
fn check(sheet: &serde_json::Value) {
    assert_eq!(sheet["taken"]["interrupted"], true);
    assert!(row(sheet, "disturbance.gaps.lost")["figure"]["n"].as_u64() > Some(0));
    let late = row(sheet, "disturbance.wakeup_other.late");
    assert_eq!(late["absent"]["reason"], "interrupted before it was measured");
}

#[test]
fn an_interrupted_sheet_has_what_was_measured_and_nothing_lies_beside_it() {
    for name in ["INT", "TERM"] {
        let folder = folder();
        let child = in_the_middle(folder.path(), &["--out", "sheet.json"]);
        assert_eq!(names(folder.path()), [""; 0], "nothing is there before the end");
        signal(&child, name);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!((code(&output), output.stdout.len(), stderr(&output)), (130, 0, String::new()));
        assert_eq!(names(folder.path()), ["sheet.json"]);
        check(&json_file(&folder.path().join("sheet.json")));
    }
}

#[test]
fn an_interrupted_sheet_on_the_standard_output_is_whole_json() {
    let folder = folder();
    let child = in_the_middle(folder.path(), &["--format", "json"]);
    signal(&child, "INT");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code(&output), 130);
    check(&json(&String::from_utf8_lossy(&output.stdout)));
}

/// `timeout` signals its program and then its process group. On a busy computer the sheet handled the first signal
/// before the second was sent, took that for a user who will not wait, and ended without its results.
#[test]
fn two_signals_of_one_request_do_not_lose_what_a_sheet_has() {
    let folder = folder();
    let child = in_the_middle(folder.path(), &["--out", "sheet.json"]);
    let sheet = child.id().to_string();
    let twice = format!("kill -s INT {sheet}; sleep 0.01; kill -s INT {sheet}");
    assert!(Command::new("sh").args(["-c", &twice]).status().is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((code(&output), stderr(&output)), (130, String::new()));
    check(&json_file(&folder.path().join("sheet.json")));
}

#[test]
fn a_second_request_ends_what_does_not_look_at_the_first() {
    // It waits for its input, in spite of the flag.
    let mut child = hairspring(&["round"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    wait_for_handler(&child);
    signal(&child, "INT");
    std::thread::sleep(Duration::from_millis(600));
    assert!(child.try_wait().expect("it can be asked").is_none(), "it still waits");
    signal(&child, "TERM");
    assert_eq!(code(&ended(child)), 130);
}

/// A killed process cannot clean up, so a measurement must leave nothing that needs cleaning.
#[test]
fn a_sheet_that_is_killed_leaves_the_old_file_and_nothing_else() {
    let folder = folder();
    let file = folder.path().join("sheet.json");
    std::fs::write(&file, "old").expect("written");
    let mut child = in_the_middle(folder.path(), &["--out", "sheet.json"]);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(names(folder.path()), ["sheet.json"]);
    assert_eq!(std::fs::read_to_string(&file).expect("it is there"), "old");
}

#[test]
fn interrupted_delays_show_those_that_were_made() {
    let child = hairspring(&["delay", "50ms", "--count", "100000", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    let start = Instant::now();
    while cpu_steps(&child) < 30 {
        assert!(start.elapsed() < PATIENCE, "it does not get to the middle");
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "INT");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((code(&output), stderr(&output)), (130, String::new()));
    let found = json(&String::from_utf8_lossy(&output.stdout));
    assert!((1..100_000).contains(&found["n"].as_u64().unwrap_or(0)), "{found}");
    assert_eq!(found["early"], 0);
}

#[test]
fn an_interrupted_long_delay_does_not_wait_for_its_end() {
    let child = hairspring(&["delay", "1h", "--long", "--count", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary can be started");
    wait_for_handler(&child);
    // The calibration that comes first takes a tenth of a second. Where it takes longer less is tested, but nothing
    // fails.
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, "INT");
    let output = ended(child);
    assert_eq!((code(&output), stderr(&output)), (130, String::new()));
}

/// The output of a process that ends soon.
fn ended(mut child: Child) -> Output {
    let start = Instant::now();
    while child.try_wait().expect("it can be asked").is_none() {
        if start.elapsed() > PATIENCE {
            child.kill().expect("it runs");
            panic!("it goes on");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("it has ended")
}

/// Waits until the process handles SIGINT, before which it would simply die of it.
fn wait_for_handler(child: &Child) {
    let handles = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:").map(str::trim));
        caught.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 0b10 != 0)
    };
    let start = Instant::now();
    while !handles() {
        assert!(start.elapsed() < PATIENCE, "it does not handle the signal");
        std::thread::sleep(Duration::from_millis(1));
    }
}
