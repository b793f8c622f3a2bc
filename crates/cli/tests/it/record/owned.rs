//! One owner: a process that records, mends, compresses or deletes a recording is its only owner; others are refused
//! with its id.
//!
//! If a test must hold the files of a recording at one moment, the process of this test owns them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use hairspring_store::owner::{Ownership, Work};

use super::{CARD, Ended, about, begin, number, record, recorded, refused, wait_for_records};
use crate::{code, folder, hairspring, names, stderr, stdout, wait_until, works};

/// The exit code of a command that may not own a recording.
const OWNED: i32 = 13;

/// A recording without an end, of which some blocks are in the journal.
#[track_caller]
fn running(folder: &Path, name: &str, more: &[&str]) -> Ended {
    let first = if more.contains(&"--segment") { format!("{name}-000000") } else { name.to_owned() };
    let mut recorder = begin(folder, &[&["--card", CARD, "--to", name, "--notify", "32KiB", "--quiet"], more].concat());
    let journal = folder.join(format!("{first}.hairspring-journal"));
    wait_for_records(recorder.child(), &journal, 8);
    recorder
}

/// Ends a recorder in order.
#[track_caller]
fn ended(mut recorder: Ended, expected: i32) -> serde_json::Value {
    super::signal(recorder.child(), "INT");
    let output = recorder.output();
    assert_eq!(code(&output), expected, "{} {}", stdout(&output), stderr(&output));
    crate::json(&stdout(&output))
}

fn files(folder: &Path, base: &str) -> Vec<PathBuf> {
    [".sigmf-data", ".sigmf-meta", ".hairspring-journal"]
        .iter()
        .map(|end| folder.join(format!("{base}{end}")))
        .collect()
}

fn said(folder: &Path, arguments: &[&str]) -> Output {
    hairspring(arguments).current_dir(folder).output().expect("the binary can be started")
}

/// The contents of all files of which the name begins so.
fn contents(folder: &Path, name: &str) -> Vec<(String, Vec<u8>)> {
    let names = names(folder).into_iter().filter(|one| one.starts_with(name));
    names.map(|one| (one.clone(), std::fs::read(folder.join(&one)).expect("read"))).collect()
}

#[test]
fn a_recording_that_runs_is_changed_by_nobody_else_and_stays_whole() {
    let folder = folder();
    let mut recorder = running(folder.path(), "x", &[]);
    let by = format!("is being recorded by process {} (hairspring)", recorder.child().id());
    for command in [
        &["recover", "x"][..],
        &["recover", "x", "--all"],
        &["recover", "x", "--dry-run"],
        &["recover", "x.sigmf-data", "--cut-journal"],
        &["compress", "x"],
        &["compress", "x", "--undo"],
        &["join", "x", "--to", "y"],
        &["join", "x", "--to", "y", "--declare-gaps"],
        &["record", "--card", CARD, "--for", "1s", "--to", "x"],
        &["record", "--card", CARD, "--for", "1s", "--to", "x", "--segment", "1s"],
    ] {
        refused(folder.path(), command, OWNED, &by);
    }
    let verified = said(folder.path(), &["verify", "x", "--quiet"]);
    assert!(stdout(&verified).contains(&by), "{}", stdout(&verified));
    assert!(!stdout(&verified).contains("recover"), "no advice that would be refused: {}", stdout(&verified));
    assert_eq!(names(folder.path()), ["x.hairspring-journal", "x.sigmf-data", "x.sigmf-meta"]);
    let report = ended(recorder, 0);
    let verified = about(folder.path(), &["verify", "x"], 0);
    assert_eq!(number(&verified, "proven_bytes"), number(&report, "stored_bytes"));
    assert_eq!(about(folder.path(), &["recover", "x"], 0)["changed"], serde_json::Value::Array(Vec::new()));
}

#[test]
fn each_member_of_a_stripe_has_the_owner() {
    let folder = folder();
    ["a", "b"].iter().for_each(|name| std::fs::create_dir(folder.path().join(name)).expect("made"));
    let mut recorder = begin(folder.path(), &["--card", CARD, "--to", "a/x,b/x", "--notify", "32KiB", "--quiet"]);
    wait_for_records(recorder.child(), &folder.path().join("b/x.hairspring-journal"), 8);
    let by = format!("is being recorded by process {} (hairspring)", recorder.child().id());
    for name in ["a/x", "b/x"] {
        refused(folder.path(), &["recover", name], OWNED, &by);
        refused(folder.path(), &["compress", name], OWNED, &by);
    }
    ended(recorder, 0);
    about(folder.path(), &["verify", "a/x"], 0);
}

#[test]
fn a_series_that_runs_is_resumed_by_nobody_else() {
    let folder = folder();
    let series = ["--segment", "100ms", "--resume"];
    let mut recorder = running(folder.path(), "x", &series);
    wait_until("a second segment", || folder.path().join("x-000002.sigmf-meta").exists());
    let by = format!("is being recorded by process {} (hairspring)", recorder.child().id());
    let again = ["--card", CARD, "--to", "x", "--frames", "1000"];
    for _ in 0..3 {
        let output = record(folder.path(), &[&again[..], &series].concat()).output().expect("starts");
        assert_eq!((code(&output), stdout(&output)), (OWNED, String::new()), "{}", stderr(&output));
        assert!(stderr(&output).contains(&by), "{}", stderr(&output));
    }
    for command in [&["recover", "x"][..], &["recover", "x", "--all"], &["join", "x", "--to", "y", "--declare-gaps"]] {
        refused(folder.path(), command, OWNED, &by);
    }
    let verified = said(folder.path(), &["verify", "x", "--quiet"]);
    assert!(stdout(&verified).contains(&by), "{}", stdout(&verified));
    assert!(!stdout(&verified).contains("recover"), "{}", stdout(&verified));
    // A closed segment has no owner.
    about(folder.path(), &["recover", "x-000000", "--all"], 0);
    let report = ended(recorder, 0);
    let verified = about(folder.path(), &["verify", "x"], 0);
    assert_eq!(number(&verified, "proven_bytes"), number(&report, "stored_bytes"));
}

#[test]
fn of_two_recorders_that_begin_at_once_one_is_refused() {
    let folder = folder();
    for name in ["x", "y", "z"] {
        let series = ["--card", CARD, "--to", name, "--frames", "200_000", "--segment", "100ms", "--resume"];
        let both = [begin(folder.path(), &series), begin(folder.path(), &series)].map(Ended::output);
        let mut codes = both.each_ref().map(code);
        codes.sort_unstable();
        // The second may also have come when the first was done: then it goes on, and declares the gap between.
        assert!(codes == [0, OWNED] || codes == [0, 4], "{codes:?}: {} {}", stderr(&both[0]), stderr(&both[1]));
        let runs = codes.iter().filter(|one| **one != OWNED).count() as u64;
        let verified = about(folder.path(), &["verify", name], if runs == 1 { 0 } else { 4 });
        assert_eq!(number(&verified, "proven_bytes"), runs * 800_000);
    }
}

#[test]
fn the_files_of_a_recorder_that_was_killed_belong_to_nobody() {
    let folder = folder();
    for series in [&[][..], &["--segment", "100ms", "--resume"]] {
        let mut recorder = running(folder.path(), "x", series);
        recorder.child().kill().expect("it lives");
        recorder.child().wait().expect("it ends");
        let verified = said(folder.path(), &["verify", "x", "--quiet"]);
        assert!(stdout(&verified).contains("was cut off; `recover` mends it"), "{}", stdout(&verified));
        let recovered = said(folder.path(), &["recover", "x", "--quiet"]);
        assert!([0, 4].contains(&code(&recovered)), "{}", stderr(&recovered));
        names(folder.path()).iter().for_each(|name| std::fs::remove_file(folder.path().join(name)).expect("removed"));
    }
}

#[test]
fn nobody_changes_what_another_command_changes() {
    let folder = folder();
    recorded(folder.path(), &["--card", CARD, "--to", "x", "--frames", "100_000"], 0);
    let before = contents(folder.path(), "x");
    let owner = Ownership::take(&files(folder.path(), "x"), Work::Changes).expect("taken");
    let by = format!("is being changed by process {} (", std::process::id());
    for command in [&["recover", "x"][..], &["recover", "x", "--all"], &["compress", "x"], &["join", "x", "--to", "y"]]
    {
        refused(folder.path(), command, OWNED, &by);
    }
    assert_eq!(contents(folder.path(), ""), before, "nothing was changed, and nothing else was made");
    // Readers read.
    about(folder.path(), &["verify", "x"], 0);
    drop(owner);
    // Several processes may copy it at once, and none changes it meanwhile.
    let copier = Ownership::take(&files(folder.path(), "x"), Work::Copies).expect("taken");
    about(folder.path(), &["join", "x", "--to", "y"], 0);
    refused(folder.path(), &["compress", "x"], OWNED, &format!("is being copied by process {} (", std::process::id()));
    drop(copier);
    about(folder.path(), &["compress", "x"], 0);
    let packed = [folder.path().join("x.sigmf-data.zst")];
    let owner = Ownership::take(&packed, Work::Changes).expect("taken");
    refused(folder.path(), &["compress", "x", "--undo"], OWNED, &by);
    drop(owner);
    about(folder.path(), &["compress", "x", "--undo"], 0);
    assert_eq!(contents(folder.path(), "x"), before);
}

/// Takes something away from a recorder; checks that the report names the file and the difference, and does not call it
/// complete.
#[track_caller]
fn check_taken_away(more: &[&str], act: impl FnOnce(&Path), says: &[&str]) {
    let folder = folder();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).expect("made");
    let recorder = running(&home, "x", more);
    act(&home);
    let report = ended(recorder, 4);
    assert_eq!(report["verdict"], "incomplete", "{report:#}");
    let reason = report["reason"].as_str().unwrap_or_default();
    assert!(says.iter().all(|part| reason.contains(part)), "{reason}");
    assert!(!reason.contains("recover"), "nothing that would not help: {reason}");
}

#[test]
fn a_recording_of_which_a_file_is_gone_moved_or_replaced_is_never_complete() {
    let [data, journal] = ["x.sigmf-data", "x.hairspring-journal"];
    for file in [data, journal] {
        let removed = format!("{file} was removed while it was recorded");
        check_taken_away(&[], |home| std::fs::remove_file(home.join(file)).expect("removed"), &[&removed]);
        let moved = format!("{file} was moved while it was recorded");
        check_taken_away(&[], |home| std::fs::rename(home.join(file), home.join("y")).expect("moved"), &[&moved]);
        let replaced = format!("{file} was replaced by another file");
        check_taken_away(
            &[],
            |home| {
                std::fs::write(home.join("y"), "other").expect("written");
                std::fs::rename(home.join("y"), home.join(file)).expect("replaced");
            },
            &[&replaced],
        );
    }
    let segments = ["--segment", "10min"];
    let first = "x-000000.sigmf-data";
    check_taken_away(
        &segments,
        |home| std::fs::remove_file(home.join(first)).expect("removed"),
        &["x-000000.sigmf-data was removed"],
    );
}

#[test]
fn metadata_of_a_stranger_that_a_recorder_finds_at_its_end_are_left_as_they_are() {
    let folder = folder();
    let home = folder.path();
    let meta = home.join("x.sigmf-meta");
    let recorder = running(home, "x", &[]);
    std::fs::write(home.join("y"), "a stranger's").expect("written");
    std::fs::rename(home.join("y"), &meta).expect("replaced");
    let report = ended(recorder, 4);
    assert_eq!(std::fs::read_to_string(&meta).expect("there"), "a stranger's", "{report:#}");
    let reason = report["reason"].as_str().unwrap_or_default();
    let says = ["x.sigmf-meta was replaced by another file", "it was left as it is"];
    assert!(says.iter().all(|part| reason.contains(part)), "{reason}");
    // Metadata that are gone are written anew.
    let recorder = running(home, "z", &[]);
    std::fs::remove_file(home.join("z.sigmf-meta")).expect("removed");
    ended(recorder, 0);
    about(home, &["verify", "z"], 0);
}

#[test]
fn a_recording_that_was_shortened_under_its_recorder_is_never_complete() {
    // The recorder goes on, and the files are as long as before in the end; the part that was cut off is a hole.
    for file in ["x.sigmf-data", "x.hairspring-journal"] {
        let says = format!("{file} was shortened while it was recorded");
        let cut = |home: &Path| {
            let file = std::fs::OpenOptions::new().write(true).open(home.join(file)).expect("open");
            file.set_len(0).expect("shortened");
            let bytes = || std::fs::metadata(home.join("x.sigmf-data")).expect("there").len();
            let before = bytes();
            wait_until("it goes on", || bytes() > before || before > 1 << 24);
        };
        check_taken_away(&[], cut, &[&says]);
    }
}

#[test]
fn a_recording_whose_folder_was_moved_is_never_complete() {
    let folder = folder();
    let home = folder.path().join("home");
    std::fs::create_dir(&home).expect("made");
    let name = home.join("x");
    let recorder = running(folder.path(), name.to_str().expect("text"), &[]);
    std::fs::rename(&home, folder.path().join("elsewhere")).expect("moved");
    let report = ended(recorder, 4);
    let reason = report["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("x.sigmf-data was moved while it was recorded"), "{reason}");
}

#[test]
fn files_that_were_moved_belong_to_their_recorder_under_their_new_names() {
    let folder = folder();
    let mut recorder = running(folder.path(), "x", &[]);
    for (from, to) in files(folder.path(), "x").iter().zip(files(folder.path(), "y")) {
        std::fs::rename(from, to).expect("moved");
    }
    let by = format!("is being recorded by process {} (hairspring)", recorder.child().id());
    refused(folder.path(), &["recover", "y"], OWNED, &by);
    let report = ended(recorder, 4);
    let reason = report["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("x.sigmf-data was moved") && reason.contains("x.hairspring-journal was moved"), "{reason}");
}

#[test]
fn hard_links_to_a_recording_are_no_difference() {
    let folder = folder();
    let recorder = running(folder.path(), "x", &[]);
    for (from, to) in files(folder.path(), "x").iter().zip(files(folder.path(), "snapshot")) {
        std::fs::hard_link(from, to).expect("linked");
    }
    ended(recorder, 0);
    about(folder.path(), &["verify", "x"], 0);
}

#[test]
fn retention_leaves_a_segment_that_somebody_else_owns_and_tries_again() {
    let folder = folder();
    let recorder = running(folder.path(), "x", &["--segment", "100ms", "--keep", "1000000"]);
    wait_until("a second segment", || folder.path().join("x-000001.sigmf-meta").exists());
    // Closed by now, or soon.
    let mut owner = None;
    wait_until("the first segment is closed", || {
        owner = Ownership::take(&files(folder.path(), "x-000000"), Work::Changes).ok();
        owner.is_some()
    });
    ended(recorder, 0);
    // The same with a run that deletes.
    let recorder = begin(
        folder.path(),
        &["--card", CARD, "--to", "x", "--notify", "32KiB", "--quiet", "--segment", "100ms", "--keep", "1", "--resume"],
    );
    wait_until("the second segment is deleted", || !folder.path().join("x-000001.sigmf-meta").exists());
    assert!(files(folder.path(), "x-000000").iter().all(|file| file.exists()), "{:?}", names(folder.path()));
    drop(owner);
    wait_until("the first segment is deleted", || !folder.path().join("x-000000.sigmf-meta").exists());
    ended(recorder, 4);
}

#[test]
fn a_series_that_would_meet_an_older_segment_is_refused_at_the_start() {
    let folder = folder();
    let asked = ["--card", CARD, "--to", "x", "--frames", "1000", "--segment", "100ms"];
    for old in ["x-000002.sigmf-meta", "x-000007.sigmf-data.zst", "x-1000000.hairspring-journal"] {
        let path = folder.path().join(old);
        std::fs::write(&path, "old").expect("written");
        for more in [&[][..], &["--resume"]] {
            let output = record(folder.path(), &[&asked[..], more].concat()).output().expect("starts");
            assert_eq!((code(&output), stdout(&output)), (2, String::new()), "{}", stderr(&output));
            assert!(stderr(&output).contains(&format!("{old} exists already")), "{}", stderr(&output));
            assert_eq!(names(folder.path()), [old], "nothing is left behind");
        }
        std::fs::remove_file(path).expect("removed");
    }
    // Names that only look similar do not belong to the series.
    for other in ["x-12.sigmf-meta", "x-000002.txt", "xy-000002.sigmf-meta"] {
        std::fs::write(folder.path().join(other), "other").expect("written");
    }
    recorded(folder.path(), &asked, 0);
}

/// With few descriptors or little memory a recorder either records, or leaves nothing behind, and the next try is not
/// refused.
#[test]
fn a_recorder_that_cannot_begin_leaves_nothing_behind() {
    let test = "a_recorder_that_cannot_begin_leaves_nothing_behind";
    if !works(Command::new("prlimit").arg("true")) {
        return testing::skip(test, "there is no prlimit");
    }
    let limits = (6..48).map(|count| format!("--nofile={count}"));
    // From less than the program needs to more than its buffers need.
    let limits = limits.chain((1..24).map(|count| format!("--as={}", (count * 16) << 20)));
    let (mut refused, mut complete) = (0, 0);
    for (number, limit) in limits.enumerate() {
        let folder = folder();
        let more: &[&str] = match number % 3 {
            0 => &[],
            1 => &["--on-overrun", "overwrite"],
            _ => &["--segment", "1s"],
        };
        let mut command = Command::new("prlimit");
        command.arg(&limit).arg(env!("CARGO_BIN_EXE_hairspring"));
        command.args(["record", "--card", CARD, "--to", "x", "--frames", "2000", "--buffer", "4MiB", "--quiet"]);
        let output = command.args(more).current_dir(folder.path()).output().expect("starts");
        if code(&output) == 0 {
            complete += 1;
        } else {
            refused += 1;
            // A failed allocation ends the process at once, like a kill, and its unfinished files stay.
            let was_killed = stderr(&output).contains("the system has none for this process");
            assert!(was_killed || names(folder.path()).is_empty(), "{limit} {more:?}: {}", stderr(&output));
        }
    }
    assert!(refused > 0 && complete > 0, "{refused} {complete}");
}

/// A library that lets the system refuse all locks of open file descriptions, as file systems without them do.
fn without_locks(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("locks.c"), folder.join("locks.so"));
    let text = r#"
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <fcntl.h>
        #include <stdarg.h>
        #define REFUSING(name) \
            int name(int file, int command, ...) { \
                va_list list; va_start(list, command); void *argument = va_arg(list, void *); va_end(list); \
                if (command == F_OFD_SETLK) { errno = ENOLCK; return -1; } \
                int (*next)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, #name); \
                return next(file, command, argument); \
            }
        REFUSING(fcntl)
        REFUSING(fcntl64)
    "#;
    std::fs::write(&source, text).expect("written");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(&source).arg("-ldl");
    works(&mut compiler).then_some(library)
}

#[test]
fn without_locks_a_recorder_goes_on_with_a_note_and_nothing_that_exists_is_changed() {
    let folder = folder();
    let tools = crate::folder();
    let Some(library) = without_locks(tools.path()) else {
        return testing::skip("without_locks_a_recorder_goes_on_with_a_note", "there is no C compiler");
    };
    let without = |arguments: &[&str]| {
        let mut command = hairspring(arguments);
        command.env("LD_PRELOAD", &library).current_dir(folder.path()).output().expect("starts")
    };
    let asked = ["record", "--card", CARD, "--to", "x", "--frames", "100_000", "--quiet"];
    let output = without(&asked);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("No locks available") && stdout(&output).contains("locks"), "{}", stdout(&output));
    // A recording in order needs no change, and so no owner.
    assert_eq!(code(&without(&["recover", "x"])), 0);
    assert_eq!(code(&without(&["verify", "x"])), 0);
    assert_eq!(code(&without(&["join", "x", "--to", "joined"])), 0);
    let before = contents(folder.path(), "x");
    let output = without(&["compress", "x"]);
    assert_eq!(code(&output), OWNED, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("No locks available") && stderr(&output).contains("copy it"),
        "{}",
        stderr(&output)
    );
    let journal = std::fs::OpenOptions::new().write(true).open(folder.path().join("x.hairspring-journal"));
    journal.expect("there").set_len(640).expect("shortened");
    let damaged = contents(folder.path(), "x");
    assert_ne!(damaged, before);
    // Its metadata prove that the journal was longer, which is no crash.
    let output = without(&["recover", "x"]);
    assert_eq!(code(&output), 5, "{}", stderr(&output));
    let output = without(&["recover", "x", "--cut-journal"]);
    assert_eq!(code(&output), OWNED, "{}", stderr(&output));
    assert_eq!(contents(folder.path(), "x"), damaged, "nothing was changed");
    // A series that deletes what it has recorded itself goes on as well.
    let series = ["--card", CARD, "--to", "s", "--frames", "600_000", "--segment", "100ms", "--keep", "1", "--quiet"];
    let output = without(&[&["record"], &series[..]].concat());
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(!folder.path().join("s-000000.sigmf-meta").exists(), "{:?}", names(folder.path()));
    let output = without(&[&["record"], &series[..], &["--resume"]].concat());
    assert_eq!(code(&output), OWNED, "{}", stderr(&output));
}
