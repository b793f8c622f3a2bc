//! `hairspring run`, `settings` and `restore`: a program gets its settings, and they are restored.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use testing::skip;

use crate::{HAIRSPRING, code, hairspring, items, json, run, stderr, stdout, succeed};

/// Prints the settings as a program sees them: CPUs, slack, policy and nice value of a shell's child.
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

/// Starts a shell that prints `ready` when it runs, and then waits.
fn start(set: &str, script: &str) -> (Child, BufReader<std::process::ChildStdout>) {
    // Under nohup both inherit that SIGHUP is ignored: the command would not pass it on, and the shell cannot trap it.
    let mut command = std::process::Command::new("env");
    command.args(["--default-signal=HUP", HAIRSPRING, "run", "--quiet", "--set", set, "--allow", "machine", "--"]);
    command.args(["sh", "-c", script]).stdin(Stdio::null());
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

/// There is one machine: a change by one test is seen by each of them.
static MACHINE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

const SET: [&str; 6] = ["run", "--set", "stat-interval=7", "--allow", "machine", "--"];

/// Runs a shell under a setting of the machine.
fn shell(script: &str) -> Output {
    run(&[&SET[..], &["sh", "-c", script]].concat())
}

#[test]
fn the_machine_is_as_before_whatever_the_program_does() {
    let _alone = alone();
    if !may_change_the_machine("the_machine_is_as_before_whatever_the_program_does") {
        return;
    }
    let before = stat_interval();
    for (does, script, exit) in [
        ("leaves a child behind", "sleep 1 > /dev/null 2>&1 & exit 3", 3),
        ("dies", "kill -KILL $$", 137),
        ("is not there", "exec /nothing/of/this/name 2> /dev/null", 127),
    ] {
        let output = shell(script);
        assert_eq!((code(&output), stat_interval()), (exit, before.clone()), "{does}: {}", stderr(&output));
    }
    // It ignores signals: the command waits for its end, and restores then.
    let (mut child, _said) = start("stat-interval=7", "trap '' TERM INT HUP; echo ready; sleep 0.3; exit 5");
    signal(&child, "-TERM");
    signal(&child, "-INT");
    assert_eq!(child.wait().expect("waited").code(), Some(5));
    assert_eq!(stat_interval(), before);
}

#[test]
fn what_another_program_sets_meanwhile_is_noticed_and_left() {
    let _alone = alone();
    if !may_change_the_machine("what_another_program_sets_meanwhile_is_noticed_and_left") {
        return;
    }
    let before = stat_interval();
    let output = shell(&format!("echo 9 > {STAT_INTERVAL}; exit 4"));
    let after = stat_interval();
    std::fs::write(STAT_INTERVAL, &before).expect("restored");
    assert_eq!((code(&output), after.as_str()), (4, "9"));
    assert!(stderr(&output).contains("left at `9`, because another process has changed it"), "{}", stderr(&output));
}

/// The long form is the proof `undo`.
#[test]
fn the_machine_is_as_before_whenever_the_command_is_killed() {
    let _alone = alone();
    if !may_change_the_machine("the_machine_is_as_before_whenever_the_command_is_killed") {
        return;
    }
    let show = || {
        ["vm/stat_interval", "vm/swappiness", "vm/dirty_bytes", "vm/dirty_ratio"]
            .map(|file| std::fs::read_to_string(format!("/proc/sys/{file}")).expect("readable"))
    };
    let before = show();
    for after_ms in [0, 1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 100] {
        let set = "stat-interval=7,swappiness=59,dirty-bytes=268435456";
        let mut child = hairspring(&["run", "--quiet", "--set", set, "--allow", "machine", "--", "sleep", "0.03"])
            .spawn()
            .expect("started");
        std::thread::sleep(Duration::from_millis(after_ms));
        child.kill().expect("killed");
        child.wait().expect("waited");
        // The guardian may have restored them already; then this command has nothing to do.
        let restored = (0..500).any(|_| {
            succeed(&["restore"]);
            std::thread::sleep(Duration::from_millis(5));
            show() == before && !std::path::Path::new("/run/hairspring/undo.journal").exists()
        });
        assert!(restored, "killed after {after_ms} ms: {:?}, before {before:?}", show());
    }
}

#[test]
fn a_guardian_restores_when_the_command_is_killed_and_no_other_command_comes() {
    let _alone = alone();
    if !may_change_the_machine("a_guardian_restores_when_the_command_is_killed_and_no_other_command_comes") {
        return;
    }
    let before = stat_interval();
    let (mut child, _said) = start("stat-interval=7", "echo ready; exec sleep 2");
    child.kill().expect("killed");
    child.wait().expect("waited");
    let restored = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        stat_interval() == before
    });
    run(&["restore"]);
    assert!(restored, "it was left to the next command");
}

#[test]
fn files_that_the_kernel_couples_come_back_without_a_word() {
    let _alone = alone();
    if !may_change_the_machine("files_that_the_kernel_couples_come_back_without_a_word") {
        return;
    }
    let output = run(&["run", "--set", "dirty-bytes=268435456", "--allow", "machine", "--", "true"]);
    assert_eq!(code(&output), 0);
    assert_eq!(stderr(&output), "hairspring: set dirty-bytes=268435456\n");
}

#[test]
fn without_a_permission_the_command_that_grants_it_is_told() {
    let Some(nobody) = Nobody::new() else {
        return skip("without_a_permission_the_command_that_grants_it_is_told", "not root, or no setpriv");
    };
    for (set, says) in [
        ("stat-interval=7", "sudo"),
        ("idle=off", "udev rule"),
        ("policy=fifo:1", "limits.conf"),
        ("nice=-5", "as root"),
        ("rtprio-limit=99", "as root"),
    ] {
        let output = nobody.run(&["run", "--set", set, "--allow", "machine", "--", "echo", "ran"]);
        assert_eq!((code(&output), stdout(&output).as_str()), (125, ""), "{set}: {}", stderr(&output));
        assert!(stderr(&output).contains(set.split_once('=').expect("a value").1), "{set}: {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{set}: {}", stderr(&output));
    }
}

/// Symptom: a panic, because the thread that takes on the settings was refused.
#[test]
fn a_limit_on_processes_is_told_and_the_program_is_not_started() {
    let Some(nobody) = Nobody::new() else {
        return skip("a_limit_on_processes_is_told_and_the_program_is_not_started", "not root, or no setpriv");
    };
    // Comes with setpriv.
    let mut command = nobody.command_of("prlimit");
    command.arg("--nproc=0").arg(nobody.folder.path().join("hairspring"));
    let output = command.args(["run", "--set", "nice=5", "--", "echo", "ran"]).output().expect("started");
    assert_eq!((code(&output), stdout(&output).as_str()), (125, ""), "{}", stderr(&output));
    assert!(stderr(&output).contains("ulimit -u") && stderr(&output).contains("not started"), "{}", stderr(&output));
}

/// The command as a user without any right runs it.
struct Nobody {
    folder: tempfile::TempDir,
}

impl Nobody {
    fn new() -> Option<Self> {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().expect("a folder");
        let all = || std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), all()).expect("opened");
        std::fs::copy(crate::HAIRSPRING, folder.path().join("hairspring")).expect("copied");
        let nobody = Self { folder };
        let output = nobody.command(&["--version"]).output().ok()?;
        output.status.success().then_some(nobody)
    }

    fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = self.command_of(self.folder.path().join("hairspring"));
        command.args(arguments);
        command
    }

    fn command_of(&self, program: impl AsRef<std::ffi::OsStr>) -> std::process::Command {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--inh-caps=-all"]);
        command.arg(program).stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("started")
    }
}

#[test]
fn a_job_runs_under_the_settings_that_it_needs() {
    let name = "a_job_runs_under_the_settings_that_it_needs";
    let show = ["--", "cat", "/proc/self/timerslack_ns"];
    let output = run(&[&["run", "--as", "loop 1kHz jitter 5ms ordinary"], &show[..]].concat());
    match code(&output) {
        0 => {
            assert_eq!(stdout(&output).trim(), "1000");
            let told = stderr(&output);
            assert!(told.contains("idle=off") && told.contains("slack=1us"), "{told}");
        }
        _ => skip(name, "no right to write /dev/cpu_dma_latency"),
    }
    // A value of --set counts before that of the job.
    let output = run(&[&["run", "--as", "audio-relaxed", "--set", "slack=2us,idle=30us"], &show[..]].concat());
    assert!(code(&output) == 125 || stdout(&output).trim() == "2000", "{}", stdout(&output));
    for (job, says) in [
        ("loop 1kHz", "'loop 1kHz': write `jitter`"),
        ("loop fast jitter 5us", "fast"),
        ("audoi", "choose from audio,"),
        ("/nothing.toml", "No such file"),
    ] {
        let output = run(&["run", "--as", job, "--", "echo", "ran"]);
        assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{job}");
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}

#[test]
fn the_machine_is_as_before_however_the_command_ends() {
    let _alone = alone();
    if !may_change_the_machine("the_machine_is_as_before_however_the_command_ends") {
        return;
    }
    let before = stat_interval();
    let set = "stat-interval=7";
    // It ends without a signal.
    let output = run(&["run", "--set", set, "--allow", "machine", "--", "cat", STAT_INTERVAL]);
    assert_eq!((stdout(&output).trim(), stat_interval()), ("7", before.clone()), "{}", stderr(&output));
    // SIGTERM asks it to end.
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
    // The program holds the file itself: its children keep the limit, also when the command is killed.
    let held = "ls -l /proc/$$/fd | grep -c cpu_dma_latency";
    let output = run(&["run", "--quiet", "--set", "idle=off", "--", "sh", "-c", held]);
    assert_eq!(stdout(&output).trim(), "1", "{}", stderr(&output));
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
