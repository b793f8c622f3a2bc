//! `hairspring run`, `settings` and `restore`: what a program gets, and that it is given back.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};

use crate::{code, hairspring, items, json, run, skip, stderr, stdout, succeed};

/// What a program sees of its settings: CPUs, slack, policy and nice value of a shell's child.
const SHOW: &str = "grep Cpus_allowed_list /proc/self/status; cat /proc/self/timerslack_ns; chrt -p $$; nice";

#[test]
fn a_program_runs_under_what_was_set() {
    let output = run(&["run", "--set", "slack=1us,cpu=0", "--set", "nice=3", "--", "sh", "-c", SHOW]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let said = stdout(&output);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "Cpus_allowed_list:\t0");
    assert_eq!(lines[1], "1000");
    assert_eq!(lines.last(), Some(&"3"));
    assert_eq!(stderr(&output), "hairspring: set slack=1us, cpu=0, nice=3\n");
}

#[test]
fn of_two_values_the_later_one_counts_and_nothing_is_said_when_asked() {
    let output = run(&["run", "--quiet", "--set", "nice=3", "--set", "nice=5", "--", "nice"]);
    assert_eq!((stdout(&output).trim(), stderr(&output).as_str()), ("5", ""));
}

#[test]
fn a_real_time_policy_is_the_programs_or_a_refusal_with_a_remedy() {
    let output = run(&["run", "--set", "policy=fifo:7", "--", "sh", "-c", "chrt -p $$"]);
    match code(&output) {
        0 => {
            let said = stdout(&output);
            assert!(said.contains("SCHED_FIFO") && said.contains(": 7"), "{said}");
        }
        125 => {
            assert!(stderr(&output).contains("nothing was run"), "{}", stderr(&output));
            skip("a_real_time_policy_is_the_programs_or_a_refusal_with_a_remedy", "no right to real-time policies");
        }
        other => panic!("{other}: {}", stderr(&output)),
    }
}

#[test]
fn the_exit_code_is_the_programs() {
    assert_eq!(code(&run(&["run", "--set", "nice=1", "--", "sh", "-c", "exit 7"])), 7);
    assert_eq!(code(&run(&["run", "--set", "nice=1", "--", "sh", "-c", "kill -KILL $$"])), 137);
    assert_eq!(code(&run(&["run", "--set", "nice=1", "--", "/nothing/of/this/name"])), 127);
    assert_eq!(code(&run(&["run", "--set", "nice=1", "--", "/etc/passwd"])), 126);
}

#[test]
fn what_cannot_be_set_is_refused_before_anything_runs() {
    for (set, says) in [
        ("idel=off", "did you mean `idle`?"),
        ("policy=fifo:100", "it takes fifo:1..99"),
        ("firmware=x", "cannot be set for a program"),
    ] {
        let output = run(&["run", "--set", set, "--", "echo", "ran"]);
        assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{set}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    let output = run(&["run", "--set", "stat-interval=7", "--", "echo", "ran"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (125, ""));
    assert!(stderr(&output).contains("--allow machine"), "{}", stderr(&output));
}

/// A shell that says when it runs, and then waits.
fn start(set: &str, script: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = hairspring(&["run", "--quiet", "--set", set, "--allow", "machine", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("started");
    let mut said = BufReader::new(child.stdout.take().expect("piped"));
    let mut line = String::new();
    said.read_line(&mut line).expect("readable");
    assert_eq!(line, "ready\n", "{set}");
    (child, said)
}

fn signal(child: &Child, name: &str) {
    let sent = std::process::Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill");
    assert!(sent.success());
}

#[test]
fn signals_reach_the_program() {
    for (name, number) in [("-TERM", 15), ("-HUP", 1), ("-USR1", 10)] {
        let script = format!("trap 'echo got; exit 9' {number}; echo ready; while :; do sleep 0.02; done");
        let (mut child, mut said) = start("nice=1", &script);
        signal(&child, name);
        assert_eq!(child.wait().expect("waited").code(), Some(9), "{name}");
        let mut rest = String::new();
        said.read_to_string(&mut rest).expect("readable");
        assert_eq!(rest, "got\n", "{name}");
    }
}

const STAT_INTERVAL: &str = "/proc/sys/vm/stat_interval";

fn stat_interval() -> String {
    std::fs::read_to_string(STAT_INTERVAL).expect("readable").trim().to_owned()
}

/// Whether settings of the machine may be changed here.
fn may_change_the_machine(test: &str) -> bool {
    let may = std::fs::OpenOptions::new().write(true).open(STAT_INTERVAL).is_ok()
        && std::fs::create_dir_all("/run/hairspring").is_ok();
    if !may {
        skip(test, "no right to change settings of the machine");
    }
    may
}

/// One test, for the machine is one: what it changes is seen by each of them.
#[test]
fn the_machine_is_as_before_however_the_command_ends() {
    if !may_change_the_machine("the_machine_is_as_before_however_the_command_ends") {
        return;
    }
    let before = stat_interval();
    let set = "stat-interval=7";
    // It ends by itself.
    let output = run(&["run", "--set", set, "--allow", "machine", "--", "cat", STAT_INTERVAL]);
    assert_eq!((stdout(&output).trim(), stat_interval()), ("7", before.clone()), "{}", stderr(&output));
    // It is told to end.
    let (mut child, _said) = start(set, "echo ready; exec sleep 30");
    assert_eq!(stat_interval(), "7");
    // A second command is refused as long as the first runs.
    let second = run(&["run", "--set", set, "--allow", "machine", "--", "true"]);
    assert_eq!(code(&second), 125);
    assert!(stderr(&second).contains("wait until it ends"), "{}", stderr(&second));
    signal(&child, "-TERM");
    assert_eq!(child.wait().expect("waited").code(), Some(143));
    assert_eq!(stat_interval(), before);
    // It is killed: its guardian restores, or the next command. The program, orphaned, ends by its own limit.
    let (mut child, _said) = start(set, "echo ready; exec sleep 2");
    child.kill().expect("killed");
    assert_eq!(child.wait().expect("waited").signal(), Some(9));
    run(&["restore"]);
    for _ in 0..200 {
        if stat_interval() == before {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(stat_interval(), before);
    assert_eq!(succeed(&["restore"]), "Nothing to restore.\n");
}

#[test]
fn idle_states_are_off_while_the_program_runs() {
    let name = "idle_states_are_off_while_the_program_runs";
    if std::fs::OpenOptions::new().write(true).open("/dev/cpu_dma_latency").is_err() {
        return skip(name, "no right to write /dev/cpu_dma_latency");
    }
    let shown = "od -An -td4 -N4 /dev/cpu_dma_latency";
    let output = run(&["run", "--quiet", "--set", "idle=off", "--", "sh", "-c", shown]);
    assert_eq!(stdout(&output).trim(), "0", "{}", stderr(&output));
    let output = run(&["run", "--set", "idle=17us", "--", "sh", "-c", shown]);
    // Another holder may ask for less.
    let most_us: i64 = stdout(&output).trim().parse().expect("a number");
    assert!((0..=17).contains(&most_us), "{most_us}");
    assert!(stderr(&output).contains("µs at most"), "{}", stderr(&output));
}

#[test]
fn the_catalogue_is_told_to_people_and_to_programs() {
    let text = succeed(&["settings"]);
    for words in ["slack", "idle", "rt-throttling", "firmware", "what it changes", "machine"] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
    let page = succeed(&["settings", "idle"]);
    for words in ["/dev/cpu_dma_latency", "now", "costs", "traps", "needs"] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    let settings = json(&succeed(&["settings", "--format", "json"]));
    assert_eq!(settings["schema"], "hairspring.settings/1");
    assert!(items(&settings, "settings").count() > 25);
    assert!(items(&settings, "settings").any(|setting| setting["id"] == "slack" && setting["now"].is_string()));
    let output = run(&["settings", "nothing"]);
    assert_eq!(code(&output), 2);
}
