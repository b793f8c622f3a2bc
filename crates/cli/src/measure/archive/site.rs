//! `hairspring archive html`: a static site of all machines, for a web server or a folder.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use hairspring_advice::summarize;
use hairspring_archive::{Archive, ArchivedSheet, KnownMachine};
use hairspring_file::NewFile;
use hairspring_sheet::render::{self, MULTIPLES_GENERATOR, MultiplesCell, MultiplesColumn, MultiplesRow};
use hairspring_sheet::{RowPattern, Trend, trends};

use crate::exit::{Exit, Failure};
use crate::measure::compare::patterns;
use crate::output;

/// More columns than this are no overview.
const COLUMNS_MAX: usize = 60;

#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// Folder, new or empty or with a site of this command, which is replaced
    folder: PathBuf,
    /// These rows: ids, beginnings of ids up to a dot, or beginnings with a * at the end; separated by commas [default:
    /// the characteristics on the first pages of the newest sheets]
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// Draw the last N sheets of each machine, and write their pages
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    sheets: u32,
}

/// A machine with its history.
struct Drawn {
    machine: KnownMachine,
    sheets: Vec<ArchivedSheet>,
    trends: Vec<(Trend, Vec<usize>)>,
}

pub(super) fn run(archive: &Archive, arguments: &Arguments) -> Result<Exit, Failure> {
    let folder = &arguments.folder;
    accept(folder)?;
    let named = patterns(&arguments.only)?;
    let first_page = if named.is_empty() { characteristics(archive)? } else { Vec::new() };
    let only = match named.is_empty() {
        true => patterns(&first_page.iter().map(|(id, _)| id).collect::<Vec<_>>())?,
        false => named,
    };
    let mut drawn = Vec::new();
    for machine in archive.machines()? {
        let sheets = archive.sheets_of_history(&machine, None)?;
        let history = archive.history(&machine, None, &only)?;
        // The indices of the sheets that have each row.
        let known = history.rows.iter().map(|row| {
            let medians = row.medians.iter().enumerate();
            medians.filter_map(|(sheet, median)| median.map(|_| sheet)).collect()
        });
        drawn.push(Drawn {
            machine,
            sheets,
            trends: trends(&history).into_iter().zip(known.collect::<Vec<_>>()).collect(),
        });
    }
    let columns = columns(&only, &first_page, &drawn);
    if columns.is_empty() || columns.len() > COLUMNS_MAX {
        let why = format!("{} rows of the archive would be drawn, not 1 to {COLUMNS_MAX}", columns.len());
        return Err(Failure::bad_request(format!("{why}; choose others with --only")));
    }
    let pages = folder.join("sheet");
    std::fs::create_dir_all(&pages).map_err(|error| failed(&pages, &error))?;
    let (mut rows, mut written) = (Vec::new(), 0);
    for one in &drawn {
        let from = one.sheets.len().saturating_sub(arguments.sheets as usize);
        for sheet in &one.sheets[from..] {
            write(&folder.join(page(sheet)), &render::html(&archive.sheet(sheet)?))?;
            written += 1;
        }
        rows.push(row(one, &columns, from));
    }
    let about = format!("{} machines, the last {} sheets of each at most.", rows.len(), arguments.sheets);
    // The last, so that no link leads to a page that is still missing.
    let index = folder.join("index.html");
    write(&index, &render::multiples_html(&about, &columns, &rows))?;
    output::print(&format!(
        "{} machines × {} figures with {written} sheets: {}\n",
        rows.len(),
        columns.len(),
        index.display()
    ))
}

/// Refuses a folder with files of another program.
fn accept(folder: &Path) -> Result<(), Failure> {
    let Ok(mut entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let index = std::fs::read_to_string(folder.join("index.html")).unwrap_or_default();
    // A run that ended before its last page leaves `sheet` alone.
    let is_own =
        index.contains(MULTIPLES_GENERATOR) || entries.all(|entry| entry.is_ok_and(|e| e.file_name() == "sheet"));
    match is_own {
        true => Ok(()),
        false => Err(Failure::bad_request(format!(
            "{} has files that are not of `hairspring archive html`; name a new folder",
            folder.display()
        ))),
    }
}

/// The rows on the first pages of the machines' newest sheets: ids and labels.
fn characteristics(archive: &Archive) -> Result<Vec<(String, String)>, Failure> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for machine in archive.machines()? {
        let Some(newest) = archive.sheets_of_history(&machine, None)?.pop() else { continue };
        let sheet = archive.sheet(&newest)?;
        let summary = sheet.summary.clone().unwrap_or_else(|| summarize(&sheet));
        for line in summary.characteristics {
            if rows.iter().all(|(id, _)| *id != line.row) {
                rows.push((line.row, line.label));
            }
        }
    }
    match rows.is_empty() {
        false => Ok(rows),
        true => Err(Failure::bad_request("the newest sheets have no row of the first page; choose rows with --only")),
    }
}

/// The figures that some machine has, in the order in which they were asked for, with their labels on the first page if
/// they are there.
fn columns(only: &[RowPattern], first_page: &[(String, String)], drawn: &[Drawn]) -> Vec<MultiplesColumn> {
    let mut columns: Vec<MultiplesColumn> = Vec::new();
    for pattern in only {
        for (trend, _) in drawn.iter().flat_map(|one| &one.trends).filter(|(trend, _)| pattern.covers(&trend.id)) {
            if columns.iter().all(|column| (column.id.as_str(), column.unit) != (trend.id.as_str(), trend.unit)) {
                let label = first_page.iter().find(|(id, _)| *id == trend.id).map_or(&trend.label, |(_, label)| label);
                columns.push(MultiplesColumn { id: trend.id.clone(), label: label.clone(), unit: trend.unit });
            }
        }
    }
    columns
}

/// A machine's row, which draws its sheets from `from` on.
fn row(one: &Drawn, columns: &[MultiplesColumn], from: usize) -> MultiplesRow {
    let by_column: HashMap<_, _> =
        one.trends.iter().map(|both| ((both.0.id.as_str(), both.0.unit.name()), both)).collect();
    let cell = |column: &MultiplesColumn| {
        let (trend, places) = by_column.get(&(column.id.as_str(), column.unit.name()))?;
        let pages = places.iter().map(|place| (*place >= from).then(|| page(&one.sheets[*place])));
        Some(MultiplesCell { trend: trend.clone(), pages: pages.collect() })
    };
    let cpu = one.machine.cpu.as_deref().unwrap_or("unknown processor");
    MultiplesRow {
        name: one.machine.name(),
        about: format!("{cpu} · {} sheets", one.sheets.len()),
        cells: columns.iter().map(cell).collect(),
    }
}

/// Path of a sheet's page, relative to the index.
fn page(sheet: &ArchivedSheet) -> String {
    format!("sheet/{}.html", sheet.id)
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let written = NewFile::begin(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.replace()
    });
    written.map_err(|error| failed(path, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!(
        "failed to write {}: {error}; free some space or choose another folder, and repeat",
        path.display()
    ))
}
