//! The promises of the command, on the real binary, in one binary of tests.
//!
//! The measured machine is this one, so no test asserts how long anything took; only that a bad request ends before
//! anything is measured, with much room.

mod ab;
mod archive;
mod can;
mod clock;
mod compare;
mod delay;
mod device;
mod disturbed;
mod doctor;
mod examples;
mod expose;
mod faults;
mod generated;
mod interrupted;
mod limited;
mod limits;
mod live;
mod maxrate;
mod out;
mod plan;
mod reaction;
mod record;
mod redacted;
mod refused;
mod serve;
mod sheet;
mod soak;
mod top;
mod trace;
mod tune;
mod watch;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// The binary.
const HAIRSPRING: &str = env!("CARGO_BIN_EXE_hairspring");

/// A row that is measured within a blink.
const ROW: &str = "clocks.read.now";

fn hairspring(arguments: &[&str]) -> Command {
    let mut command = Command::new(HAIRSPRING);
    command.args(arguments).stdin(Stdio::null());
    command
}

#[track_caller]
fn run(arguments: &[&str]) -> Output {
    hairspring(arguments).output().expect("the binary can be started")
}

/// Runs a command that must end with 0 and print only its result; returns the result.
#[track_caller]
fn succeed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!((code(&output), stderr(&output)), (0, String::new()), "{arguments:?}");
    stdout(&output)
}

/// The exit code; -1 for a signal.
fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text:.300}"))
}

#[track_caller]
fn json_file(file: &Path) -> Value {
    json(&std::fs::read_to_string(file).expect("the file is there"))
}

/// The rows of a sheet, in reading order.
fn rows(sheet: &Value) -> impl Iterator<Item = &Value> {
    items(sheet, "chapters").flat_map(|chapter| items(chapter, "tables")).flat_map(|table| items(table, "rows"))
}

/// The members of a list in a document; none if there is no list of that name.
fn items<'v>(value: &'v Value, name: &str) -> std::slice::Iter<'v, Value> {
    value[name].as_array().map(Vec::as_slice).unwrap_or_default().iter()
}

#[track_caller]
fn row<'s>(sheet: &'s Value, id: &str) -> &'s Value {
    rows(sheet).find(|row| row["id"] == id).unwrap_or_else(|| panic!("no row {id}"))
}

/// The names in a folder, hidden ones too.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room for a temporary folder")
}

/// Waits for something that happens, a minute at most.
#[track_caller]
fn wait_until(what: &str, mut happens: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happens() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what} does not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a command can be run here with success; for the tools that some tests need.
fn works(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Whether new name spaces are permitted, so that a test may mount file systems without touching the machine.
fn may_unshare() -> bool {
    works(Command::new("unshare").args(["--mount", "--uts", "true"]))
}

/// Whether the tests run as root.
fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:")).map(str::split_whitespace);
    uids.and_then(|mut uids| uids.nth(1)) == Some("0")
}
