//! `hairspring archive`: keeps the sheets of all machines for years, and shows changes and their causes.

mod list;
mod prune;
mod show;
mod site;
mod trend;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use hairspring_archive::{Added, Archive, ArchiveError, read_sheet_text};

use crate::exit::{Exit, Failure};
use crate::measure::historic::in_folder;
use crate::output;
use crate::page::{Example, Page};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    files: &[("~/.local/share/hairspring/sheets.db", "the archive without --archive, an SQLite database")],
    environment: &[("XDG_DATA_HOME", "the folder in place of ~/.local/share")],
    ..Page::new(
        "archive",
        &[
            Example { does: "Add two sheets", line: "hairspring archive add before.json after.json" },
            Example { does: "List what is there", line: "hairspring archive list" },
            Example {
                does: "Say what the last months did to a figure of this machine",
                line: "hairspring archive trend clocks.read.now.later",
            },
            Example {
                does: "Compare two sheets, with what varies between sheets of this machine",
                line: "hairspring archive compare 1f0c77 a9e2d4",
            },
            Example {
                does: "Write the table that DuckDB, polars and Spark read",
                line: "hairspring archive export sheets",
            },
            Example {
                does: "Write a site of all machines for a web server",
                line: "hairspring archive html /srv/www/machines",
            },
            Example {
                does: "Show which sheets would go if each machine kept its last thousand",
                line: "hairspring archive prune --keep 1000",
            },
        ],
    )
};

/// Keep sheets for years, and show what changed
///
/// One file has the sheets of all machines, each as it was written. `sheet --archive` adds at once, and
/// `compare --ledger` takes the file, too.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The archive [default: ~/.local/share/hairspring/sheets.db]
    #[arg(long, value_name = "FILE", global = true)]
    archive: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add sheets; one that is there already is left alone
    Add {
        /// Sheet that was written with --format json, or a folder of them
        #[arg(value_name = "SHEET", required = true)]
        sheets: Vec<PathBuf>,
    },
    /// List the sheets, the oldest first
    List(list::Arguments),
    /// Show one sheet
    Show(show::Arguments),
    /// Show figures over months: what changed them, and what cannot be told yet
    Trend(trend::Arguments),
    /// Compare sheets; the archive says how much sheets of the machine vary
    Compare(show::CompareArguments),
    /// Write all figures as Parquet files into a new folder
    Export {
        /// Folder, new or empty
        folder: PathBuf,
    },
    /// Write a static site: machines × figures as small plots, each linked to its sheets
    Html(site::Arguments),
    /// Remove sheets; without --yes only say which
    Prune(prune::Arguments),
    /// Make the tables again from the stored sheets
    Rebuild,
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        match error {
            ArchiveError::DiskFull
            | ArchiveError::Busy
            | ArchiveError::Damaged(_)
            | ArchiveError::Io(..)
            | ArchiveError::Database(_) => Self::failed_to(error),
            _ => Self::bad_request(format!("failed to {error}")),
        }
    }
}

/// The archive's file: the one that is named, or that of the user.
pub(crate) fn path(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let usual = || {
        let data = folder("XDG_DATA_HOME").or_else(|| folder("LOCALAPPDATA"));
        let data = data.or_else(|| folder("HOME").map(|home| home.join(".local/share")));
        data.map(|data| data.join("hairspring").join("sheets.db"))
    };
    named
        .map(Path::to_owned)
        .or_else(usual)
        .ok_or_else(|| Failure::bad_request("there is no home folder: name the archive with --archive"))
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let path = path(arguments.archive.as_deref())?;
    if let Action::Add { sheets } = &arguments.action {
        return add(&path, sheets);
    }
    let mut archive = Archive::open(&path)?;
    match &arguments.action {
        Action::Add { .. } => Ok(Exit::Success),
        Action::List(arguments) => list::run(&archive, arguments),
        Action::Show(arguments) => show::run(&archive, arguments),
        Action::Trend(arguments) => trend::run(&archive, arguments),
        Action::Compare(arguments) => show::compared(&archive, arguments),
        Action::Export { folder } => {
            let written = archive.export(folder)?;
            output::print(&format!(
                "{} rows of {} sheets in {} below {}\n",
                written.rows,
                written.sheets,
                written.files,
                folder.display()
            ))
        }
        Action::Html(arguments) => site::run(&archive, arguments),
        Action::Prune(arguments) => prune::run(&mut archive, arguments),
        Action::Rebuild => {
            let rebuilt = archive.rebuild()?;
            let done = output::print(&format!("{} sheets\n", rebuilt.sheets))?;
            match rebuilt.unreadable.is_empty() {
                true => Ok(done),
                false => Err(Failure::failed(rebuilt.unreadable.join("\n"))),
            }
        }
    }
}

/// Reads all sheets before it adds the first, so that a bad one changes nothing.
fn add(path: &Path, named: &[PathBuf]) -> Result<Exit, Failure> {
    let mut files = Vec::new();
    for named in named {
        if named.is_dir() {
            files.extend(in_folder(named)?);
        } else {
            files.push(named.clone());
        }
    }
    let about = |file: &Path, error: ArchiveError| {
        let failure = Failure::from(error);
        Failure { text: format!("{}: {}", file.display(), failure.text), ..failure }
    };
    for file in &files {
        if !file.exists() {
            return Err(Failure::bad_request(format!("there is no file {}", file.display())));
        }
        read_sheet_text(file).and_then(|json| hairspring_archive::check(&json)).map_err(|error| about(file, error))?;
    }
    let mut archive = Archive::create(path)?;
    for file in &files {
        let added = read_sheet_text(file).and_then(|json| archive.add(&json)).map_err(|error| about(file, error))?;
        let what = if matches!(added, Added::New(_)) { "added" } else { "is there already" };
        output::print(&format!("{} {what}: {}\n", added.id().get(..8).unwrap_or_default(), file.display()))?;
    }
    Ok(Exit::Success)
}
