//! The examples of help and manual have the effect that the text describes.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{HAIRSPRING, ROW, code, folder, stderr, stdout, succeed};

/// The examples below the help of a command, as lines for a shell.
fn examples(command: &str) -> Vec<String> {
    let help = succeed(&[command, "--help"]);
    let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_else(|| panic!("{command} has no examples"));
    let lines = examples.replace(" \\\n", " ");
    lines.lines().filter_map(|line| line.strip_prefix("    ")).map(str::to_owned).collect()
}

/// Runs an example by a shell. Boards and installed completions are put into the folder.
#[track_caller]
fn runs(folder: &Path, example: &str) {
    let line = example.replace("/dev/shm/", "").replace("~/.local/share/bash-completion/completions/", "");
    let folders = format!("{}:/usr/bin:/bin", Path::new(HAIRSPRING).parent().expect("a folder").display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(folder).env("PATH", folders).stdin(Stdio::null());
    let output = shell.output().expect("it starts");
    // If the samples go to the standard output, the report goes to the standard error.
    let said = if example.contains("--to stdout") { String::new() } else { stderr(&output) };
    assert_eq!((code(&output), said), (0, String::new()), "{example}: {}", stdout(&output));
}

/// All but those that take long, need a device, a sender or a permission, or would write elsewhere.
#[test]
fn examples_do_what_they_say() {
    let folder = folder();
    for name in ["disk1", "disk2", "archive"] {
        std::fs::create_dir(folder.path().join(name)).expect("room for a folder");
    }
    let station = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/station.toml");
    let station = std::fs::read_to_string(station).expect("the example");
    let here = format!("{}/", folder.path().display());
    std::fs::write(folder.path().join("station.toml"), station.replace("/dev/shm/", &here)).expect("room for a file");
    // And six more, of which three are a side. Taken side by side, because most of their time they wait.
    let six = ["1.json", "2.json", "3.json", "4.json", "5.json", "6.json"];
    std::thread::scope(|scope| {
        for sheet in ["before.json", "after.json"].into_iter().chain(six) {
            let line = format!("hairspring sheet --quick --only {ROW} --out {sheet}");
            let folder = folder.path();
            scope.spawn(move || runs(folder, &line));
        }
    });
    let elsewhere = [
        "hairspring sheet",
        "--thorough",
        "--only executive",
        "--only delays",
        "--drift",
        "--fail-if",
        "--priority",
        "--age 10s",
        "udp:",
        "--to /",
        "parport:",
        "| man -l",
        "station.toml --for",
        "--live",
        "--publish",
        "--reference",
    ];
    // Each command uses the files that others of its group have made. The groups run side by side, because most
    // examples wait.
    let groups: [&[&str]; 3] = [
        &["sheet", "compare", "delay", "clock", "probes", "schema", "exit-codes", "completions", "man"],
        &["record", "verify", "play", "export", "recover", "join"],
        &["pulse", "expose", "scope", "serve", "trace"],
    ];
    let run = |commands: &[&str]| {
        let mut ran = 0;
        for command in commands {
            for example in examples(command) {
                assert!(example.starts_with(&format!("hairspring {command}")), "{example}");
                if elsewhere.iter().all(|part| !example.contains(part)) {
                    runs(folder.path(), &example);
                    ran += 1;
                }
            }
        }
        ran
    };
    let ran: usize = std::thread::scope(|scope| {
        let groups = groups.map(|commands| scope.spawn(move || run(commands)));
        groups.into_iter().map(|group| group.join().expect("its examples run")).sum()
    });
    assert_eq!(ran, 39, "an example was added or taken away: look whether it runs here");
}
