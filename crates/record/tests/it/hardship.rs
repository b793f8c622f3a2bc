//! Recordings in child processes with few resources, or that are stopped: they go on with less and report it, or state
//! the missing frames.

use std::io::{BufRead, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::Nanos;
use hairspring_record::recorder::WriteSettings;
use hairspring_record::session::{Input, RecordConfig, Recorded, record};
use hairspring_recording::RecordingVerdict;
use hairspring_ring::OnOverrun;
use hairspring_ring::layout::Layout;
use hairspring_ring::memory::Pages;
use hairspring_ring::units::{Bytes, SampleRate};
use hairspring_source::pattern::Pattern;
use hairspring_source::virtual_card::{Settings, VirtualCard};

use crate::session::read_back;

/// Set in the child: the path of its recording.
const TARGET: &str = "HAIRSPRING_HARDSHIP_TARGET";

/// Runs a test of this file once more, alone, as a child under a command; `None` in the child itself.
fn child(test: &str, wrapper: &[&str], target: &Path) -> Option<Command> {
    if std::env::var_os(TARGET).is_some() {
        return None;
    }
    let mut command = Command::new(wrapper[0]);
    command.args(&wrapper[1..]).arg(std::env::current_exe().expect("the path of this test"));
    command.args(["--exact", &format!("hardship::{test}"), "--nocapture", "--test-threads=1"]).env(TARGET, target);
    Some(command)
}

/// Runs the child to its end.
#[track_caller]
fn succeeds(mut command: Command) {
    let output = command.output().expect("prlimit and setpriv are in util-linux");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// 5 MS/s of two channels, in a buffer of 1 MiB: data not taken within a tenth of a second are lost.
fn card() -> VirtualCard {
    VirtualCard::new(Settings {
        layout: Layout::analogue(2, 16).expect("exists"),
        rate: SampleRate::hz(5_000_000).expect("possible"),
        pattern: Pattern::Counter,
        fifo: Bytes::kib(256),
        jitter: Nanos::ZERO,
        hiccups: Vec::new(),
        bus: None,
        frames: None,
    })
}

/// Records until a few blocks are stored, and prints its stages if the second argument is set.
fn recorded(targets: Vec<PathBuf>, tell: bool) -> Recorded {
    let stage = |name: &str| {
        if tell {
            // Not through `println!`, which the test harness may capture.
            let _ = writeln!(std::io::stdout(), "\nstage {name}");
        }
    };
    let config = RecordConfig {
        buffer: Bytes::mib(1),
        pages: Pages::Small,
        write: WriteSettings { block: Bytes::kib(64), ..WriteSettings::default() },
        on_overrun: OnOverrun::Gap,
        ..RecordConfig::default()
    };
    let (stop, mut told) = (AtomicBool::new(false), 0);
    stage("opening");
    let inputs = vec![Input { source: Box::new(card()), targets, channels: Vec::new() }];
    let all = record(inputs, &config, &stop, &mut |cards| {
        let stored = cards[0].status.ledger.stored_bytes;
        if told == 0 && stored > 1 << 20 {
            told = 1;
            stage("streaming");
        } else if told == 1 && stored > 3 << 20 {
            told = 2;
            stop.store(true, Ordering::Relaxed);
            stage("ending");
        }
    });
    let recorded = all.expect("recorded").remove(0);
    assert!(recorded.outcome.ledger.holds() && recorded.outcome.ledger.is_settled(), "{:?}", recorded.outcome.ledger);
    assert_ne!(recorded.outcome.verdict, RecordingVerdict::Unaccounted, "{}", recorded.outcome.reason);
    recorded
}

fn told_target() -> PathBuf {
    std::env::var_os(TARGET).expect("set by the parent").into()
}

#[test]
fn with_64_open_files_three_targets_are_recorded_and_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let test = "with_64_open_files_three_targets_are_recorded_and_read_back";
    if let Some(command) = child(test, &["prlimit", "--nofile=64"], &folder.path().join("x")) {
        return succeeds(command);
    }
    let base = told_target();
    let targets: Vec<PathBuf> = (0..3).map(|number| base.with_file_name(format!("x{number}"))).collect();
    let recorded = recorded(targets, false);
    assert!(recorded.outcome.verdict <= RecordingVerdict::Incomplete, "{}", recorded.outcome.reason);
    assert_eq!(recorded.outcome.files.len(), 9);
}

#[test]
fn where_64_kib_may_be_locked_the_recording_works_and_says_what_it_does_without() {
    let test = "where_64_kib_may_be_locked_the_recording_works_and_says_what_it_does_without";
    let folder = tempfile::tempdir().expect("a folder");
    let less = ["prlimit", "--memlock=65536", "setpriv", "--bounding-set", "-ipc_lock", "--inh-caps", "-ipc_lock"];
    if let Some(command) = child(test, &less, &folder.path().join("x")) {
        return succeeds(command);
    }
    let recorded = recorded(vec![told_target()], false);
    let ladder = &recorded.outcome.fallbacks;
    let unregistered =
        ladder.iter().any(|fallback| fallback.name == "registered_buffers" && fallback.refused.is_some());
    let without_ring = ladder.iter().any(|fallback| fallback.name == "io_uring" && fallback.refused.is_some());
    assert!(unregistered || without_ring, "{ladder:?}");
    let (stated, ledger) = read_back(&told_target());
    assert_eq!(stated, Some(recorded.outcome.verdict));
    assert_eq!(ledger.stored_bytes, recorded.outcome.ledger.stored_bytes);
}

#[test]
fn a_process_that_is_stopped_in_any_stage_names_what_it_missed() {
    let test = "a_process_that_is_stopped_in_any_stage_names_what_it_missed";
    let folder = tempfile::tempdir().expect("a folder");
    for at in ["opening", "streaming", "ending"] {
        let target = folder.path().join(at);
        // A child that hangs ends after a minute.
        let Some(mut command) = child(test, &["timeout", "60"], &target) else {
            recorded(vec![told_target()], true);
            return;
        };
        let mut running = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("a child");
        let lines = BufReader::new(running.stdout.take().expect("piped")).lines();
        let mut said = Vec::new();
        for line in lines.map_while(Result::ok) {
            if line == format!("stage {at}") {
                stop_for_a_while(&running.id().to_string());
            }
            said.push(line);
        }
        let ended = running.wait_with_output().expect("ends");
        let why = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() && said.iter().any(|line| line.contains("1 passed")), "{at}: {said:?} {why}");
        let (stated, ledger) = read_back(&target);
        assert!(ledger.holds(), "{at}: {ledger:?}");
        let lost = ledger.lost_bytes > 0;
        assert_eq!(
            stated,
            Some(if lost { RecordingVerdict::Incomplete } else { RecordingVerdict::Stopped }),
            "{at}: {ledger:?}"
        );
        assert!(lost || at != "streaming", "three times the buffer passed while it was stopped");
    }
}

/// Stops the recording child of a process, and lets it go on when the card has produced several times what the buffer
/// holds.
fn stop_for_a_while(timeout: &str) {
    let children = std::fs::read_to_string(format!("/proc/{timeout}/task/{timeout}/children")).expect("its children");
    let child = children.split_whitespace().next().expect("one").to_owned();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &child]).status().expect("kill").success());
    signal("-STOP");
    std::thread::sleep(std::time::Duration::from_millis(400));
    signal("-CONT");
}
