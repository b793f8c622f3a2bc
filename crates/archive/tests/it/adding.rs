//! Adding is atomic, happens once, and two processes may do it at the same time.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hairspring_archive::{Added, Archive, ArchiveError, Rebuilt};
use rusqlite::Connection;

use crate::{archive, text};

/// The variable that makes this test a writer: an archive, the first day and the number of days.
const WRITER: &str = "HAIRSPRING_ARCHIVE_WRITER";

#[test]
fn a_sheet_that_is_added_again_is_known_and_comes_back_byte_for_byte() {
    let (_folder, mut archive) = archive();
    let json = text(1, "6.8", 1.0);
    let Added::New(id) = archive.add(&json).expect("added") else { panic!("it is new") };
    assert_eq!(archive.add(&json).expect("known"), Added::Known(id.clone()));
    // Without its indentation it is the same sheet.
    let value: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_ne!(archive.add(&text(2, "6.8", 1.0)).expect("added").id(), id);
    let flat = json.lines().map(str::trim_start).collect::<String>();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&flat).expect("JSON"), value);
    assert_eq!(archive.add(&flat).expect("known"), Added::Known(id.clone()));
    let found = archive.find(&id[..6]).expect("found");
    assert_eq!(archive.json(&found).expect("read"), json);
    assert_eq!((found.taken.as_str(), found.taken_ns % 1_000_000_000), ("2025-01-02 04:00:00.25 UTC", 250_000_000));
    assert_eq!(archive.list().expect("listed").len(), 2);
}

#[test]
fn the_tables_can_be_made_again() {
    let (_folder, mut archive) = archive();
    for day in 0..6 {
        archive.add(&text(day, if day < 3 { "6.8" } else { "6.9" }, 1.0 + day as f64)).expect("added");
    }
    let machine = archive.machine(None).expect("one");
    let before = (archive.list().expect("listed"), archive.history(&machine, None, &[]).expect("read"));
    assert_eq!(archive.rebuild().expect("made again"), Rebuilt { sheets: 6, unreadable: Vec::new() });
    let after = (archive.list().expect("listed"), archive.history(&machine, None, &[]).expect("read"));
    assert_eq!(before, after);
}

#[test]
fn what_is_removed_is_gone_and_the_rest_can_be_read() {
    let (_folder, mut archive) = archive();
    let ids: Vec<String> =
        (0..5).map(|day| archive.add(&text(day, "6.8", 1.0)).expect("added").id().to_owned()).collect();
    let removed = archive.remove(&ids[..2]).expect("removed");
    assert!(removed.sheets == 2 && removed.not_smaller.is_none(), "{removed:?}");
    assert_eq!(archive.remove(&ids[..2]).expect("gone").sheets, 0);
    let left = archive.list().expect("listed");
    assert_eq!(left.iter().map(|sheet| sheet.id.as_str()).collect::<Vec<_>>(), &ids[2..]);
    assert_eq!(archive.json(&left[0]).expect("the base stayed"), text(2, "6.8", 1.0));
    assert!(matches!(archive.add(&text(0, "6.8", 1.0)), Ok(Added::New(_))));
    archive.remove(&archive.list().expect("listed").iter().map(|s| s.id.clone()).collect::<Vec<_>>()).expect("removed");
    assert_eq!(archive.machines().expect("read"), []);
}

/// Not a test of its own: the work of the processes that the other tests start.
#[test]
fn writer() {
    let Ok(terms) = std::env::var(WRITER) else { return };
    let terms: Vec<&str> = terms.split(' ').collect();
    let (first, count): (usize, usize) = (terms[1].parse().expect("a day"), terms[2].parse().expect("a count"));
    if let Some(folder) = terms.get(3).map(Path::new) {
        let mut archive = Archive::open(Path::new(terms[0])).expect("opened");
        let wait = || {
            std::fs::write(folder.join("ready"), "").expect("written");
            until(&folder.join("go"));
        };
        archive.add_after_for_tests(&text(first, "6.8", 1.0), wait).expect("added");
        return;
    }
    for day in first..first + count {
        let mut archive = Archive::create(Path::new(terms[0])).expect("opened");
        archive.add(&text(day, "6.8", 1.0 + day as f64 / 100.0)).expect("added");
    }
}

/// Waits until a file is there.
fn until(file: &Path) {
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn start(archive: &Path, first: usize, count: usize) -> Child {
    start_with(archive, &format!("{first} {count}"))
}

fn start_with(archive: &Path, terms: &str) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "adding::writer", "--nocapture"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.env(WRITER, format!("{} {terms}", archive.display())).spawn().expect("started")
}

#[test]
fn two_processes_add_at_the_same_time_and_nothing_is_lost_or_there_twice() {
    let folder = tempfile::tempdir().expect("room for a folder");
    let path = folder.path().join("sheets.db");
    // Days 10 to 19 are added by both.
    let writers = [start(&path, 0, 20), start(&path, 10, 20)];
    for mut writer in writers {
        assert!(writer.wait().expect("ended").success());
    }
    let archive = Archive::open(&path).expect("opened");
    let sheets = archive.list().expect("listed");
    assert_eq!(sheets.len(), 30);
    assert!(sheets.iter().all(|sheet| archive.sheet(sheet).is_ok() && sheet.figures == 2));
}

/// The second process compresses beside base 1. Before it writes, the first removes that base with its sheet, and a new
/// base gets the number. The sheet was then stored beside a text that it was not compressed with: lost, although it was
/// reported as added.
#[test]
fn a_sheet_stays_readable_when_another_process_replaces_its_base_meanwhile() {
    let folder = tempfile::tempdir().expect("room for a folder");
    let path = folder.path().join("sheets.db");
    let mut archive = Archive::create(&path).expect("made");
    let first = archive.add(&text(1, "6.8", 1.0)).expect("added").id().to_owned();
    let mut writer = start_with(&path, &format!("2 1 {}", folder.path().display()));
    until(&folder.path().join("ready"));
    archive.remove(&[first]).expect("removed");
    // A base of the same length with other content takes the number.
    archive.add(&text(3, "9.9", 7.0)).expect("added");
    std::fs::write(folder.path().join("go"), "").expect("written");
    assert!(writer.wait().expect("ended").success());
    let sheets = archive.list().expect("listed");
    let texts: Vec<String> = sheets.iter().map(|sheet| archive.json(sheet).expect("readable")).collect();
    assert_eq!(texts, [text(2, "6.8", 1.0), text(3, "9.9", 7.0)]);
    assert_eq!(archive.rebuild().expect("made again"), Rebuilt { sheets: 2, unreadable: Vec::new() });
}

#[test]
fn a_sheet_from_the_list_is_never_read_as_another_one() {
    let (_folder, mut archive) = archive();
    let first = archive.add(&text(1, "6.8", 1.0)).expect("added").id().to_owned();
    let listed = archive.find(&first).expect("listed");
    archive.remove(&[first]).expect("removed");
    archive.add(&text(2, "6.8", 1.0)).expect("gets the number of the first");
    assert!(matches!(archive.json(&listed), Err(ArchiveError::NoSuchSheet(_))));
}

/// Damages the document with the greatest number.
fn damage(path: &Path) {
    let other = Connection::open(path).expect("opened");
    other
        .execute("UPDATE document SET packed = x'00' WHERE sheet = (SELECT max(sheet) FROM document)", [])
        .expect("set");
}

#[test]
fn rebuild_names_a_sheet_that_cannot_be_read_and_keeps_its_figures() {
    let (folder, mut archive) = archive();
    let ids: Vec<String> =
        (0..3).map(|day| archive.add(&text(day, &format!("6.{day}"), 2.0)).expect("added").id().to_owned()).collect();
    let machine = archive.machine(None).expect("one");
    let seen = |archive: &Archive| {
        let history = archive.history(&machine, None, &[]).expect("read");
        let facts: Vec<_> = history.conditions.iter().map(|number| history.facts[number].clone()).collect();
        (history.taken, history.rows, facts)
    };
    let before = seen(&archive);
    damage(&folder.path().join("new/sheets.db"));
    for _ in 0..2 {
        let rebuilt = archive.rebuild().expect("made again");
        assert_eq!(rebuilt.sheets, 2);
        assert!(matches!(&rebuilt.unreadable[..], [one] if one.contains(&ids[2])), "{rebuilt:?}");
        assert_eq!(seen(&archive), before);
    }
    assert_eq!(archive.remove(&ids[2..]).expect("removed").sheets, 1);
    assert_eq!(archive.rebuild().expect("made again"), Rebuilt { sheets: 2, unreadable: Vec::new() });
}

#[test]
fn a_damaged_sheet_or_base_is_whole_again_when_the_sheet_is_added_again() {
    let (folder, mut archive) = archive();
    let path = folder.path().join("new/sheets.db");
    archive.add(&text(0, "6.8", 1.0)).expect("added");
    let id = archive.add(&text(1, "6.8", 1.0)).expect("added").id().to_owned();
    damage(&path);
    assert!(archive.json(&archive.find(&id).expect("listed")).is_err());
    assert_eq!(archive.add(&text(1, "6.8", 1.0)).expect("added again"), Added::New(id.clone()));
    assert_eq!(archive.json(&archive.find(&id).expect("listed")).expect("whole"), text(1, "6.8", 1.0));
    Connection::open(&path).expect("opened").execute("UPDATE base SET packed = x'00'", []).expect("set");
    for day in 0..3 {
        archive.add(&text(day, "6.8", 1.0)).expect("added although the base is damaged");
    }
    assert_eq!(archive.rebuild().expect("made again"), Rebuilt { sheets: 3, unreadable: Vec::new() });
}

#[test]
fn a_writer_that_is_killed_leaves_whole_sheets_only() {
    let folder = tempfile::tempdir().expect("room for a folder");
    let path = folder.path().join("sheets.db");
    let mut before = 0;
    for round in 0..8 {
        let mut writer = start(&path, 40 * round, 40);
        std::thread::sleep(Duration::from_millis(40 + 23 * round as u64));
        writer.kill().expect("killed");
        writer.wait().expect("ended");
        if !path.exists() {
            continue;
        }
        let mut archive = Archive::create(&path).expect("opened, whatever the writer left");
        let sheets = archive.list().expect("listed");
        assert!(sheets.len() >= before, "what was there stays");
        before = sheets.len();
        assert!(sheets.iter().all(|sheet| archive.sheet(sheet).is_ok() && sheet.figures == 2));
        assert_eq!(archive.rebuild().expect("made again").sheets, before);
    }
    assert!(before > 0, "no writer came as far as a sheet");
}
