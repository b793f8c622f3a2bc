//! `hairspring watch`: another program's late wake-ups and preemptions, and their culprits.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use testing::skip;

use crate::{HAIRSPRING, code, folder, hairspring, is_root, json, json_file, run, stderr, stdout, works};

/// Whether programs can be watched here.
fn may_watch(test: &str) -> bool {
    if !is_root()
        || !works(Command::new("taskset").args(["-c", "0", "true"]))
        || !works(Command::new("chrt").arg("--help"))
    {
        skip(test, "needs root, taskset and chrt");
        return false;
    }
    let output = run(&["watch", "--quiet", "--", "true"]);
    if code(&output) == 125 {
        skip(test, stderr(&output));
        return false;
    }
    true
}

/// A program of this name and policy that computes for some milliseconds and rests, on CPU 0, for at most some seconds.
/// It ends without a signal.
fn hog(folder: &Path, name: &str, policy: &[&str]) -> Child {
    let copy = folder.join(name);
    std::fs::copy("/bin/sh", &copy).expect("there is room");
    let script =
        "n=0; while [ $n -lt 150 ]; do n=$((n+1)); i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.01; done";
    let mut command = Command::new("taskset");
    command.args(["-c", "0", "chrt"]).args(policy).arg(copy).args(["-c", script]);
    command.stdin(Stdio::null()).spawn().expect("it starts")
}

/// Watches a loop of 1 kHz beside a hog.
fn beside(name: &str, policy: &[&str]) -> Value {
    let folder = folder();
    let mut hog = hog(folder.path(), name, policy);
    let out = folder.path().join("watch.json");
    let span = "1500000000";
    // Only the kernel decides which thread is delayed: both want CPU 0.
    let output = hairspring(&["watch", "--quiet", "--format", "json", "--out"])
        .arg(&out)
        .args(["--", "taskset", "-c", "0", HAIRSPRING, "turn", "loop 1kHz jitter 1ms ordinary", span, "0"])
        .output()
        .expect("it starts");
    drop(hog.kill());
    hog.wait().expect("it ends");
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    json_file(&out)
}

/// Time that one culprit took, by its name, of wake-ups and preemptions together; and the time that all took.
fn taken(report: &Value, name: &str) -> (i64, i64) {
    let all = ["wakeups", "preemptions"].into_iter().flat_map(|kind| report[kind].as_array().expect("a list"));
    all.fold((0, 0), |(its, all), toll| {
        let time = toll["total_ns"].as_i64().expect("a number");
        let is = toll["culprit"].as_str().is_some_and(|culprit| culprit.starts_with(name));
        (its + if is { time } else { 0 }, all + time)
    })
}

#[test]
fn a_hog_is_named_with_its_policy() {
    let test = "a_hog_is_named_with_its_policy";
    if !may_watch(test) {
        return;
    }
    for (name, policy, told) in [("hog-fifo", &["-f", "20"][..], "real time 20"), ("hog-nice", &["-o", "0"], "nice 0")]
    {
        let report = beside(name, policy);
        let (its, all) = taken(&report, &format!("task {name}, pid "));
        // Others build beside the tests, so that the hog need not be the only one.
        assert!(its > 0 && its * 5 > all, "{name} took {its} of {all}: {report:#}");
        let culprits = report.to_string();
        assert!(culprits.contains(&format!("task {name}, pid ")) && culprits.contains(told), "{report:#}");
        let looped = report["threads"]
            .as_array()
            .expect("threads")
            .iter()
            .find(|thread| thread["wakeups"]["n"].as_u64() > Some(300));
        assert!(looped.is_some(), "a loop of 1.5 s wakes more than 300 times: {report:#}");
        // Beside a hog and other tests a reader may lose records, and then counts them.
        assert!(report["losses"].is_u64(), "{report:#}");
    }
}

#[test]
fn exit_codes_and_signals_pass_through() {
    let test = "exit_codes_and_signals_pass_through";
    if !may_watch(test) {
        return;
    }
    let ends = run(&["watch", "--quiet", "--", "sh", "-c", "echo said; sleep 0.1; exit 7"]);
    assert_eq!((code(&ends), stdout(&ends).as_str()), (7, "said\n"), "{}", stderr(&ends));
    let says = stderr(&ends).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(says.contains("Wake-ups: from the call") && says.contains("Reading them took"), "{says}");
    assert_eq!(code(&run(&["watch", "--", "/nowhere/at/all"])), 127);
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child =
        hairspring(&["watch", "--quiet", "--", "sh", "-c", script]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut said = [0; 6];
    std::io::Read::read_exact(child.stdout.as_mut().expect("a pipe"), &mut said).expect("it says so");
    assert!(works(Command::new("kill").args(["-s", "TERM", &child.id().to_string()])));
    assert_eq!(child.wait().expect("it ends").code(), Some(9));
}

#[test]
fn a_program_that_another_one_executes_has_its_own_name_and_the_cost_of_records_is_measured() {
    let test = "a_program_that_another_one_executes_has_its_own_name_and_the_cost_of_records_is_measured";
    if !may_watch(test) {
        return;
    }
    let output = run(&["watch", "--quiet", "--", "sh", "-c", "exec sleep 0.4"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let says = stderr(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(says.starts_with("Watched sleep (process ") && says.contains(", 1 thread "), "{says}");
    assert!(
        !says.contains("hairspring ") && says.contains("One costs ") && says.contains(" pairs of blocks"),
        "{says}"
    );
}

#[test]
fn a_process_that_runs_is_watched_until_the_time_has_passed() {
    let test = "a_process_that_runs_is_watched_until_the_time_has_passed";
    if !may_watch(test) {
        return;
    }
    let mut sleeper = Command::new("sh")
        .args(["-c", "i=0; while [ $i -lt 300 ]; do i=$((i+1)); sleep 0.02; done"])
        .spawn()
        .expect("it starts");
    let output = run(&["watch", "--pid", &sleeper.id().to_string(), "--for", "700ms", "--format", "json", "--quiet"]);
    let goes_on = sleeper.try_wait().expect("it can be asked").is_none();
    drop(sleeper.kill());
    drop(sleeper.wait());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(goes_on, "the watch ended with the program, and not with its time");
    let report = json(&stdout(&output));
    let has = |name: &str| {
        report["threads"].as_array().is_some_and(|threads| threads.iter().any(|thread| thread["name"] == name))
    };
    assert!(has("sh") && has("sleep"), "the program and those that it starts: {report:#}");
    assert_eq!(report["schema"], "hairspring.watch/1");
    assert!(report["threads"].as_array().is_some_and(|threads| !threads.is_empty()), "{report:#}");
    let cost = &report["record_cost_ns"];
    assert!(cost["low"].as_f64() < cost["mean"].as_f64() && cost["pairs"].as_u64() > Some(1), "{cost}");
    assert!(report["records"].as_u64() > Some(0) && report["own_cpu_ns"].as_i64() > Some(0));
}

#[test]
fn without_permission_the_capability_is_named_and_nothing_is_run() {
    let test = "without_permission_the_capability_is_named_and_nothing_is_run";
    if !is_root() || !works(Command::new("setpriv").args(["--bounding-set", "-all", "--inh-caps", "-all", "true"])) {
        return skip(test, "needs root and setpriv");
    }
    let folder = folder();
    let marker = folder.path().join("ran");
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", "-all", "--inh-caps", "-all", HAIRSPRING, "watch", "--", "touch"]).arg(&marker);
    let output: Output = command.output().expect("it starts");
    assert_eq!(code(&output), 125, "{}", stdout(&output));
    assert!(stderr(&output).contains("CAP_"), "{}", stderr(&output));
    assert!(!marker.exists());
}

#[test]
fn a_watch_of_nobody_is_refused() {
    for (arguments, says) in [
        (&["watch"][..], "--pid"),
        (&["watch", "--pid", "4194305"], "there is no such process"),
        (&["watch", "--pid", "1", "--", "true"], "cannot be used with"),
    ] {
        let output = run(arguments);
        assert_eq!(code(&output), 2, "{arguments:?}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}
