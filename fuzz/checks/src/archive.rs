//! The archive of sheets: a text that is added comes back byte for byte, and is refused otherwise; documents and files
//! that another program wrote are read or refused.

use std::path::{Path, PathBuf};

use hairspring_archive::{Added, Archive};
use tempfile::TempDir;

use crate::Input;

/// A small sheet, so that an archive with a sheet has every table filled.
const SHEET: &str = include_str!("../../seeds/sheet/small.json");

/// A folder with an archive of one sheet, and room for a copy of it.
struct Place {
    folder: TempDir,
    bytes: Vec<u8>,
}

thread_local! {
    static PLACE: Place = Place::new();
}

impl Place {
    fn new() -> Self {
        // In memory where the system has such a folder: an archive syncs each sheet.
        let memory = Path::new("/dev/shm");
        let folder = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let folder = folder.expect("a folder");
        let path = folder.path().join("first.sqlite");
        let mut archive = Archive::create(&path).expect("an archive");
        archive.add(SHEET).expect("a sheet");
        drop(archive);
        Self { bytes: std::fs::read(path).expect("the archive"), folder }
    }

    /// An archive of these bytes.
    fn archive_of(&self, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join("copy.sqlite");
        let _ = std::fs::remove_file(path.with_extension("sqlite-journal"));
        std::fs::write(&path, bytes).expect("written");
        path
    }
}

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    PLACE.with(|place| match which % 3 {
        0 => add(place, bytes),
        1 => foreign_document(place, bytes),
        _ => damaged_file(place, bytes),
    });
}

fn add(place: &Place, bytes: &[u8]) {
    let Some(json) = crate::text(bytes) else { return };
    if hairspring_archive::check(json).is_err() {
        return;
    }
    let mut archive = Archive::open(&place.archive_of(&place.bytes)).expect("it is one");
    let before = archive.list().expect("it can be listed").len();
    let Ok(added) = archive.add(json) else {
        assert_eq!(archive.list().expect("it can be listed").len(), before);
        return;
    };
    let known = archive.find(added.id()).expect("it was added");
    assert_eq!(archive.json(&known).expect("it can be read"), json);
    assert_eq!(archive.add(json).expect("a second time"), Added::Known(added.id().to_owned()));
    let sheets = archive.list().expect("it can be listed").len();
    let rebuilt = archive.rebuild().expect("it can be rebuilt");
    assert_eq!((rebuilt.sheets, &rebuilt.unreadable[..]), (sheets, &[][..]));
}

/// Writes the document of a foreign program in place of the compressed one.
fn foreign_document(place: &Place, bytes: &[u8]) {
    let path = place.archive_of(&place.bytes);
    let Some((packs, bytes)) = bytes.split_first() else { return };
    let packed = if packs & 1 == 0 { bytes.to_vec() } else { zstd::bulk::compress(bytes, 1).expect("compressed") };
    let connection = rusqlite::Connection::open(&path).expect("it is one");
    let change = "UPDATE document SET packed = ?1, bytes = ?2";
    connection.execute(change, rusqlite::params![packed, bytes.len() as i64]).expect("changed");
    drop(connection);
    use_all(&path);
}

fn damaged_file(place: &Place, bytes: &[u8]) {
    let (mut file, mut input) = (place.bytes.clone(), Input(bytes));
    while !input.is_empty() {
        let at = (usize::from(input.short()) << 4 | usize::from(input.byte())) % file.len();
        file[at] = input.byte();
    }
    use_all(&place.archive_of(&file));
}

/// Runs the operations of the commands; errors are answers.
fn use_all(path: &Path) {
    let Ok(mut archive) = Archive::open(path) else { return };
    for sheet in archive.list().unwrap_or_default() {
        let _ = (archive.json(&sheet), archive.sheet(&sheet), sheet.short_id().len());
    }
    let _ = (archive.machines(), archive.rebuild());
}
