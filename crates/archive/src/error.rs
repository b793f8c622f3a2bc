//! Why an archive could not do something.

use std::fmt;
use std::io;

use rusqlite::ErrorCode;

/// An operation of an archive that failed. Each variant names the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum ArchiveError {
    /// There is no file of this name.
    NotFound(String),
    /// The file is no archive.
    NotAnArchive(String),
    /// A later version wrote the archive: its number, and the greatest one that this build knows.
    LaterVersion(i64, i64),
    /// A text is no sheet, for this reason.
    NotASheet(String),
    /// A text is larger than any sheet, in bytes.
    TooLarge(u64),
    /// No sheet's id begins with this.
    NoSuchSheet(String),
    /// The ids of several sheets begin with this.
    Ambiguous(String, Vec<String>),
    /// There is no such machine, or there are several; those that there are.
    WhichMachine(Option<String>, Vec<String>),
    /// The disk is full. The archive is unchanged.
    DiskFull,
    /// Another process has been writing for too long.
    Busy,
    /// The stored document of a sheet cannot be read.
    Damaged(String),
    /// The system refused.
    Io(String, io::Error),
    /// Any other answer of SQLite.
    Database(rusqlite::Error),
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(path) => {
                write!(f, "open the archive {path}: there is no such file; `hairspring archive add SHEET` begins one")
            }
            Self::NotAnArchive(path) => {
                write!(f, "open {path}: it is not an archive of sheets; name another file with --archive")
            }
            Self::LaterVersion(found, known) => write!(
                f,
                "open the archive: a later version of hairspring wrote it (format {found}, and this build knows {known}); \
                 use that version. Nothing was changed"
            ),
            Self::NotASheet(why) => write!(f, "read a sheet: {why}"),
            Self::TooLarge(bytes) => write!(
                f,
                "read a sheet: it has {bytes} bytes or more, and no sheet is that large; give a sheet that was written with --format json"
            ),
            Self::NoSuchSheet(id) => {
                write!(f, "find a sheet {id}: no id begins so; `hairspring archive list` shows the ids")
            }
            Self::Ambiguous(id, ids) => {
                write!(f, "find one sheet {id}: {} ids begin so ({}); write more of one", ids.len(), ids.join(", "))
            }
            Self::WhichMachine(None, machines) => write!(
                f,
                "choose a machine: the archive has {} ({}); name one with --machine",
                machines.len(),
                machines.join(", ")
            ),
            Self::WhichMachine(Some(named), machines) => write!(
                f,
                "find one machine {named}: the archive has {}; write a name or the beginning of an id",
                machines.join(", ")
            ),
            Self::DiskFull => {
                write!(f, "write the archive: the disk is full; free some space and repeat. The archive is unchanged")
            }
            Self::Busy => write!(f, "write the archive: another process has been writing to it for 30 s; repeat later"),
            Self::Damaged(why) => {
                write!(
                    f,
                    "read the archive: {why}; add the sheet again, or restore the file from a copy, and check its disk"
                )
            }
            Self::Io(what, error) => write!(f, "{what}: {error}"),
            Self::Database(error) => write!(f, "use the archive: {error}"),
        }
    }
}

impl std::error::Error for ArchiveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            Self::Database(error) => Some(error),
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for ArchiveError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy,
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged(error.to_string()),
            Some(ErrorCode::NotADatabase) => Self::NotAnArchive("this file".to_owned()),
            _ => Self::Database(error),
        }
    }
}
