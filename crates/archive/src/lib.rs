//! An archive of timing data sheets: one file that keeps the sheets of all machines for years.
//!
//! The JSON of a sheet is the truth. It is stored byte for byte, compressed beside an earlier sheet of the same
//! machine, and everything else in the file is derived from it: [`Archive::rebuild`] makes the tables again. The file
//! is an SQLite database, so that every language can read its tables and its view `figures`.
//!
//! Promises. Adding is atomic: a process that is killed meanwhile leaves the archive as it was. Adding a sheet twice
//! adds it once, because the id of a sheet is the hash of its content. Several processes may add at the same time. An
//! archive that a later version wrote is refused and not changed, and so is a database of another program.
//!
//! Limits. The archive knows medians with their intervals; other statistics are in the JSON. It is for a local disk:
//! SQLite's locks do not hold on every network file system. It draws nothing and prints nothing.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let json = include_str!("../../../sheets/historic/fermilab-2007.json");
//! use hairspring_archive::{Added, Archive};
//! let mut archive = Archive::create(&folder.path().join("sheets.db"))?;
//! assert!(matches!(archive.add(json)?, Added::New(_)));
//! assert!(matches!(archive.add(json)?, Added::Known(_)));
//! assert_eq!(archive.list()?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod add;
mod archive;
mod error;
mod export;
mod figures;
mod identity;
mod ledger;
mod packed;
mod query;
mod rebuild;
mod remove;
mod schema;
mod trend;

pub use add::{Added, SHEET_BYTES_MAX, check, open_sheet, read_sheet_text};
pub use archive::Archive;
pub use error::ArchiveError;
pub use export::Exported;
pub use figures::{ArchivedFigure, ArchivedFigures, ArchivedQuantity, FiguresOf};
pub use identity::{machine_id, sheet_id};
pub use query::{ArchivedSheet, KnownMachine};
pub use rebuild::Rebuilt;
pub use remove::Removed;
pub use schema::{APPLICATION_ID, ARCHIVE_VERSION};
