//! A user with few permissions: the sheet is made all the same, with the missing rows and the reasons.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;
use testing::skip;

use crate::{HAIRSPRING, ROW, code, folder, is_root, items, json, row, rows, run, stderr, works};

/// The user id of `nobody`.
const NOBODY: u32 = 65_534;

/// A copy of the binary in a folder that every user can read.
fn copy() -> (tempfile::TempDir, PathBuf) {
    let folder = folder();
    let binary = folder.path().join("hairspring");
    std::fs::copy(HAIRSPRING, &binary).expect("there is room for a copy");
    for path in [folder.path(), &binary] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    }
    (folder, binary)
}

/// Runs the command as user `nobody`, without the permission for real-time priorities; `None` if that is impossible
/// here.
fn as_nobody(test: &str, arguments: &[&str]) -> Option<Output> {
    let (_folder, binary) = copy();
    if !is_root() {
        skip(test, "only root can become somebody else");
        return None;
    }
    if !works(Command::new("prlimit").args(["--rtprio=0:0", "true"])) {
        skip(test, "there is no prlimit");
        return None;
    }
    let mut command = Command::new("prlimit");
    command.args(["--rtprio=0:0", "--memlock=65536:65536"]).arg(&binary).args(arguments);
    Some(command.uid(NOBODY).gid(NOBODY).current_dir("/").output().expect("it can be started"))
}

fn json_of(output: &Output) -> Value {
    json(&String::from_utf8_lossy(&output.stdout))
}

fn notes(sheet: &Value) -> Vec<String> {
    items(sheet, "notes").map(Value::to_string).collect()
}

#[test]
fn without_real_time_permission_the_sheet_is_made_and_says_what_would_help() {
    let rows_wanted = "clocks.read.now.later,delays.minimum,disturbance.wakeup,disturbance.wakeup_other";
    let arguments = ["sheet", "--quick", "--format", "json", "--only", rows_wanted];
    let test = "without_real_time_permission_the_sheet_is_made_and_says_what_would_help";
    let Some(output) = as_nobody(test, &arguments) else { return };
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
    let sheet = json_of(&output);
    for found in rows(&sheet) {
        let id = found["id"].as_str().unwrap_or_default();
        if id.starts_with("delays.minimum.fifo.") || id.starts_with("disturbance.wakeup.") {
            assert!(found["absent"]["reason"].as_str().is_some_and(|reason| reason.contains("refused")), "{found}");
            assert!(found["absent"]["remedy"].as_str().is_some_and(|remedy| remedy.contains("rtprio")), "{found}");
        } else {
            assert!(found["figure"]["n"].as_u64() > Some(0), "{found}");
        }
    }
    assert!(notes(&sheet).iter().any(|note| note.contains("No real-time permission") && note.contains("rtprio")));
}

#[test]
fn where_every_requested_figure_is_absent_the_exit_code_is_3() {
    let arguments = ["sheet", "--quick", "--format", "json", "--only", "delays.minimum.fifo"];
    let test = "where_every_requested_figure_is_absent_the_exit_code_is_3";
    let Some(output) = as_nobody(test, &arguments) else { return };
    assert_eq!((code(&output), stderr(&output)), (3, String::new()));
    assert!(rows(&json_of(&output)).all(|found| found["absent"]["remedy"].is_string()));
}

#[test]
fn a_priority_that_is_not_permitted_is_refused_with_the_remedy() {
    let test = "a_priority_that_is_not_permitted_is_refused_with_the_remedy";
    let Some(output) = as_nobody(test, &["delay", "1ms", "--priority", "50"]) else { return };
    assert_eq!((code(&output), output.stdout.len()), (1, 0));
    assert!(stderr(&output).contains("rtprio") || stderr(&output).contains("memlock"), "{}", stderr(&output));
}

#[test]
fn with_one_cpu_only_there_is_no_skew_and_all_else_is_measured() {
    if !works(Command::new("taskset").args(["-c", "0", "true"])) {
        return skip("with_one_cpu_only_there_is_no_skew_and_all_else_is_measured", "there is no taskset");
    }
    let sheet = |only: &str| {
        let mut command = Command::new("taskset");
        command.args(["-c", "0", HAIRSPRING, "sheet", "--quick", "--format", "json", "--only", only]);
        command.output().expect("it can be started")
    };
    let output = sheet("clocks.skew,clocks.read.now,disturbance.wakeup_other");
    assert_eq!((code(&output), stderr(&output)), (0, String::new()));
    let found = json_of(&output);
    assert!(row(&found, "clocks.skew.offset")["absent"]["remedy"].to_string().contains("taskset"));
    for id in ["clocks.read.now.later", "disturbance.wakeup_other.late"] {
        assert!(row(&found, id)["figure"]["n"].as_u64() > Some(0), "{id}");
    }
    assert!(notes(&found).iter().any(|note| note.contains("Only one CPU") && note.contains("taskset")));
    assert_eq!(code(&sheet("clocks.skew")), 3);
}

/// The group is made in the hierarchy of version 1 or 2, whichever is here, and removed at the end.
#[test]
fn a_limit_of_the_control_group_is_told_at_the_head() {
    let test = "a_limit_of_the_control_group_is_told_at_the_head";
    let name = format!("hairspring-test-{}", std::process::id());
    let places = [("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "50000"), ("/sys/fs/cgroup", "cpu.max", "50000 100000")];
    for (mount, file, limit) in places {
        let group = PathBuf::from(mount).join(&name);
        if std::fs::create_dir(&group).is_err() {
            continue;
        }
        let limited = std::fs::write(group.join(file), limit).is_ok();
        let script = format!(
            "echo $$ > '{}/cgroup.procs' && exec '{HAIRSPRING}' sheet --quick --only {ROW} --format json",
            group.display()
        );
        let output = limited.then(|| Command::new("sh").args(["-c", &script]).output().expect("it can be started"));
        let _ = std::fs::remove_dir(&group);
        if let Some(output) = output {
            assert_eq!((code(&output), stderr(&output)), (0, String::new()));
            let notes = notes(&json_of(&output));
            assert!(
                notes.iter().any(|note| note.contains("limited to 0.50 CPUs") && note.contains("cpu.max")),
                "{notes:?}"
            );
            return;
        }
    }
    skip(test, "no control group with a CPU limit can be made here");
}

#[test]
fn a_machine_that_permits_everything_says_nothing_of_limits() {
    let output = run(&["sheet", "--quick", "--only", ROW, "--format", "json"]);
    assert!(!notes(&json_of(&output)).iter().any(|note| note.contains("control group") && note.contains("none")));
}
