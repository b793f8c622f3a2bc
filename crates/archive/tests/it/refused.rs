//! Refused input leaves the archive unchanged.

use std::fs::File;
use std::io::{Read, Write};

use hairspring_archive::{Archive, ArchiveError, SHEET_BYTES_MAX, read_sheet_text};
use rusqlite::Connection;

use crate::{archive, text};

#[test]
fn an_archive_of_a_later_version_is_refused_and_not_changed() {
    let (folder, mut archive) = archive();
    archive.add(&text(1, "6.8", 1.0)).expect("added");
    drop(archive);
    let path = folder.path().join("new/sheets.db");
    Connection::open(&path).expect("opened").pragma_update(None, "user_version", 2).expect("set");
    let before = std::fs::read(&path).expect("read");
    for opened in [Archive::open(&path), Archive::create(&path)] {
        let error = opened.expect_err("refused");
        assert!(matches!(error, ArchiveError::LaterVersion(2, 1)), "{error}");
        assert!(error.to_string().contains("a later version of hairspring wrote it"), "{error}");
    }
    assert_eq!(std::fs::read(&path).expect("read"), before);
}

#[test]
fn what_is_no_archive_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().expect("room for a folder");
    let path = folder.path().join("other.db");
    assert!(matches!(Archive::open(&path), Err(ArchiveError::NotFound(_))));
    assert!(!path.exists());
    Connection::open(&path).expect("made").execute_batch("CREATE TABLE mine(x)").expect("made");
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "notes ".repeat(1000)).expect("written");
    for path in [path, text] {
        let before = std::fs::read(&path).expect("read");
        for opened in [Archive::open(&path), Archive::create(&path)] {
            assert!(matches!(opened, Err(ArchiveError::NotAnArchive(_))), "{path:?}");
        }
        assert_eq!(std::fs::read(&path).expect("read"), before);
    }
}

#[track_caller]
fn refused(json: &str, hint: &str) {
    let (_folder, mut archive) = archive();
    let error = archive.add(json).expect_err("refused");
    assert!(error.to_string().contains(hint), "{error}");
    assert_eq!((archive.list().expect("listed").len(), archive.machines().expect("read").len()), (0, 0));
}

#[test]
fn a_text_that_is_no_sheet_is_refused_with_a_sentence() {
    refused("", "give a sheet that was written with --format json");
    refused("[]", "give a sheet that was written with --format json");
    refused("{}", "there is no \"schema\"");
    refused("{\"schema\": \"hairspring.plan/1\"}", "it is a document hairspring.plan/1");
    refused("{\"schema\": \"hairspring.sheet/2\"}", "the archive keeps hairspring.sheet/1");
    refused("{\"schema\": \"hairspring.sheet/1\"}", "take or copy the sheet again");
    refused(&text(1, "6.8", 1.0).replace("2025-01-02T", "yesterday"), "is not a time");
    refused(&"[".repeat(100_000), "give a sheet");
}

#[test]
fn a_hundred_megabytes_of_rubbish_are_refused_before_they_are_read() {
    let folder = tempfile::tempdir().expect("room for a folder");
    let path = folder.path().join("rubbish.json");
    let mut file = File::create(&path).expect("made");
    file.write_all(b"{\"schema\": \"hairspring.sheet/1\", \"x\": [0, 0").expect("written");
    // Without space on the disk: the size alone is refused.
    file.set_len(100 << 20).expect("grown");
    assert!(matches!(read_sheet_text(&path), Err(ArchiveError::TooLarge(size)) if size == 100 << 20));
    // A file without a size and without an end is refused, too.
    assert!(matches!(read_sheet_text("/dev/zero".as_ref()), Err(ArchiveError::NotASheet(_))));
    // A small file that would become large.
    let mut bomb = zstd::Encoder::new(File::create(&path).expect("made"), 1).expect("an encoder");
    bomb.write_all(b"{").expect("written");
    std::io::copy(&mut std::io::repeat(b' ').take(100 << 20), &mut bomb).expect("written");
    bomb.finish().expect("written");
    assert!(std::fs::metadata(&path).expect("there").len() < 1 << 20);
    assert!(matches!(read_sheet_text(&path), Err(ArchiveError::TooLarge(size)) if size == SHEET_BYTES_MAX + 1));
    let (_other, mut archive) = archive();
    let text = " ".repeat(SHEET_BYTES_MAX as usize + 1);
    assert!(matches!(archive.add(&text), Err(ArchiveError::TooLarge(_))));
}

#[test]
fn on_a_full_disk_an_addition_changes_nothing() {
    let (folder, mut archive) = archive();
    archive.add(&text(1, "6.8", 1.0)).expect("added");
    drop(archive);
    let path = folder.path().join("new/sheets.db");
    // SQLite answers the same where a file may not grow.
    let mut full = Archive::open(&path).expect("opened");
    full.limit_pages_for_tests();
    let error = (2..99).find_map(|day| full.add(&text(day, &format!("6.{day}"), 1.0)).err()).expect("it becomes full");
    assert!(matches!(error, ArchiveError::DiskFull), "{error}");
    let all = full.list().expect("listed");
    // Removing makes room, although a full disk has none for a smaller copy of the file.
    let removed = full.remove(&[&all[0].id]).expect("removed");
    assert_eq!(removed.sheets, 1);
    let count = all.len() - 1;
    drop(full);
    let mut archive = Archive::open(&path).expect("opened");
    assert_eq!(archive.rebuild().expect("whole").sheets, count);
    assert!(archive.add(&text(50, "6.8", 1.0)).is_ok(), "with space again");
}
