//! Limits of the shell or the unit: files, memory, descriptors. None ends a command by a signal or a panic, each error
//! names the remedy, and no partial file is left.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use testing::skip;

use crate::{HAIRSPRING, folder, names, run, stderr, stdout, works};

/// A line for each command, in a folder with a recording `r`, a series `s` and a sheet.
const LINES: &[&str] = &[
    "sheet --quick --only clocks.read.now --format json --out new.json",
    "compare sheet.json sheet.json",
    "archive add sheet.json --archive a.db",
    "ab --help",
    "delay 1us --count 50",
    "clock",
    "can record_1kS/s --sheet sheet.json",
    "soak loop_1kHz_jitter_1s --for 1s --out soak.json",
    "doctor --help",
    "watch --for 100ms -- true",
    "plan --card virtual:1ch,16bit,1kS/s --to . --for 1s",
    "maxrate --help",
    "record -q --card unpaced:2ch,16bit,frames=200000 --to n1 --buffer 4MiB",
    "record -q --card unpaced:2ch,16bit,frames=200000 --to n2 --buffer 4MiB --segment 256KiB --notify 64KiB",
    "verify r",
    "verify s",
    "play r --to null",
    "play r --to file:new.raw",
    "export r --out new.npy",
    "export r --out new.csv",
    "export r --out new.h5",
    "export r --out new.zarr",
    "recover r",
    "recover s",
    "join s --to j",
    "keep s-000000",
    "compress r",
    "pulse --device virtual:board 10us",
    "expose --device virtual:board 10ms",
    "scope --device virtual:board --for 50ms",
    "serve --help",
    "trace sampler --out trace.json",
    "top --help",
    "run -- true",
    "settings",
    "restore",
    "probes",
    "schema",
    "exit-codes",
    "completions bash",
    "man record",
];

/// Limits of `prlimit`, each small enough to be met by some and large enough for others. A build for tests has more
/// than 100 MiB to load.
const LIMITS: [&str; 4] = ["--fsize=4096", "--as=320000000", "--nofile=6", "--nofile=9"];

fn prepare(folder: &Path) {
    let record = ["record", "-q", "--buffer", "4MiB", "--card", "unpaced:2ch,16bit,frames=100000"];
    for more in [&["--to", "r"][..], &["--to", "s", "--segment", "128KiB", "--notify", "64KiB"]] {
        let recorded = Command::new(HAIRSPRING).args(record).args(more).current_dir(folder).output();
        assert!(recorded.is_ok_and(|output| output.status.success()), "{more:?}");
    }
    let sheet = ["sheet", "--quick", "--only", crate::ROW, "--format", "json", "--out", "sheet.json"];
    assert!(works(Command::new(HAIRSPRING).args(sheet).current_dir(folder)));
}

#[test]
fn under_a_limit_every_command_ends_in_order_and_says_what_to_do() {
    if !works(Command::new("prlimit").args(["--nofile=64", "true"])) {
        return skip("under_a_limit_every_command_ends_in_order_and_says_what_to_do", "there is no prlimit");
    }
    let seed = folder();
    prepare(seed.path());
    for limit in LIMITS {
        for line in LINES {
            let work = folder();
            for name in names(seed.path()) {
                std::fs::copy(seed.path().join(&name), work.path().join(&name)).expect("copied");
            }
            let words = line.split(' ').map(|word| word.replace('_', " "));
            let mut command = Command::new("prlimit");
            command.args([limit, HAIRSPRING]).args(words).current_dir(work.path()).stdin(Stdio::null());
            // Its own archive and state, not those of the user.
            command.env("HOME", work.path()).env("XDG_DATA_HOME", work.path()).env("XDG_RUNTIME_DIR", work.path());
            let output = command.output().expect("it can be started");
            let said = stderr(&output);
            assert_eq!(output.status.signal(), None, "{limit} {line}: {said}");
            assert!(!said.contains("panicked"), "{limit} {line}: {said}");
            // A limit that is met is named, or its remedy is.
            let is_told =
                said.is_empty() || !said.contains("(os error") || said.contains("ulimit") || said.contains("; ");
            assert!(is_told, "{limit} {line}: {said}");
            let left: Vec<_> = names(work.path()).into_iter().filter(|name| name.contains("tmp")).collect();
            assert_eq!(left, Vec::<String>::new(), "{limit} {line}: {said}");
        }
    }
}

/// A new command gets a line above.
#[test]
fn every_command_is_tried_under_limits() {
    let help = stdout(&run(&["--help"]));
    // A command has two blanks, its name and its summary in the same line.
    let commands = help.lines().filter_map(|line| line.strip_prefix("  ")?.split_once("  ").map(|(name, _)| name));
    let missing: Vec<_> = commands
        .filter(|name| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'))
        .filter(|name| !name.starts_with('-') && *name != "help")
        .filter(|name| !LINES.iter().any(|line| line.split(' ').next() == Some(*name)))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// Regression: SIGXFSZ ended the recorder without a message, in the middle of a file.
#[test]
fn a_recording_that_meets_the_limit_of_a_file_ends_in_order_with_its_account() {
    let test = "a_recording_that_meets_the_limit_of_a_file_ends_in_order_with_its_account";
    if !works(Command::new("prlimit").args(["--nofile=64", "true"])) {
        return skip(test, "there is no prlimit");
    }
    let work = folder();
    let mut command = Command::new("prlimit");
    command.args(["--fsize=8000000", HAIRSPRING, "record", "-q", "--buffer", "4MiB", "--notify", "64KiB"]);
    command.args(["--card", "unpaced:2ch,16bit,frames=4000000", "--to", "x"]).current_dir(work.path());
    let output = command.output().expect("it can be started");
    let report = stdout(&output);
    assert_eq!((output.status.code(), stderr(&output)), (Some(4), String::new()), "{report}");
    assert!(report.contains("File too large") && report.contains("ulimit -f"), "{report}");
    // The stored part is exported, and the lost part has its exit code.
    let mut export = Command::new(HAIRSPRING);
    export.args(["export", "x", "--out", "x.npy", "--gaps", "skip"]).current_dir(work.path());
    assert_eq!(export.output().expect("it can be started").status.code(), Some(4));
    assert!(work.path().join("x.npy").exists());
}
