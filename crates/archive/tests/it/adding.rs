//! Adding is atomic, happens once, and two processes may do it at the same time.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hairspring_archive::{Added, Archive};

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
    assert_eq!(archive.rebuild().expect("made again"), 6);
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

/// Not a test of its own: what the processes of the other tests do.
#[test]
fn writer() {
    let Ok(terms) = std::env::var(WRITER) else { return };
    let terms: Vec<&str> = terms.split(' ').collect();
    let (first, count): (usize, usize) = (terms[1].parse().expect("a day"), terms[2].parse().expect("a count"));
    for day in first..first + count {
        let mut archive = Archive::create(Path::new(terms[0])).expect("opened");
        archive.add(&text(day, "6.8", 1.0 + day as f64 / 100.0)).expect("added");
    }
}

fn start(archive: &Path, first: usize, count: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this test"));
    command.args(["--exact", "adding::writer", "--nocapture"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.env(WRITER, format!("{} {first} {count}", archive.display())).spawn().expect("started")
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
        assert_eq!(archive.rebuild().expect("made again"), before);
    }
    assert!(before > 0, "no writer came as far as a sheet");
}
