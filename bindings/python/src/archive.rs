//! The archive of sheets, for `hairspring.archive`. The package turns its columns into frames.
//!
//! SQLite stands in this module, not in Python's own `sqlite3`: two copies of SQLite that open one file in one process
//! undo each other's locks.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use hairspring_archive::{Added, Archive, ArchiveError, ArchivedSheet, FiguresOf, KnownMachine};
use hairspring_sheet::RowPattern;
use pyo3::exceptions::{PyFileNotFoundError, PyKeyError, PyOSError, PyValueError};
use pyo3::prelude::*;

/// An open archive. Its methods release the GIL; threads take turns.
#[pyclass(frozen, module = "hairspring._hairspring")]
pub(crate) struct SheetArchive {
    archive: Mutex<Archive>,
}

fn raised(error: ArchiveError) -> PyErr {
    let text = format!("failed to {error}");
    match error {
        ArchiveError::NotFound(_) => PyFileNotFoundError::new_err(text),
        ArchiveError::NoSuchSheet(_) | ArchiveError::Ambiguous(..) | ArchiveError::WhichMachine(..) => {
            PyKeyError::new_err(text)
        }
        ArchiveError::NotASheet(_)
        | ArchiveError::TooLarge(_)
        | ArchiveError::NotAnArchive(_)
        | ArchiveError::LaterVersion(..) => PyValueError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

fn patterns(only: &[String]) -> PyResult<Vec<RowPattern>> {
    let pattern = |text: &String| {
        let bad = || {
            format!(
                "{text:?} names no rows: write an id, its beginning up to a dot, or a beginning with a * at its end"
            )
        };
        RowPattern::parse(text).ok_or_else(|| PyValueError::new_err(bad()))
    };
    only.iter().map(pattern).collect()
}

/// A sheet of the list, as a tuple.
type Listed = (String, i64, String, Option<String>, Option<String>, i64, String, String, bool, u32, u32);

fn listed(sheet: ArchivedSheet) -> Listed {
    let ArchivedSheet {
        id,
        taken_ns,
        machine,
        host,
        cpu,
        conditions,
        version,
        effort,
        interrupted,
        figures,
        absent,
        ..
    } = sheet;
    (id, taken_ns, machine, host, cpu, conditions, version, effort, interrupted, figures, absent)
}

/// Columns: places of sheets, places of quantities, counts, medians, half widths.
type Columns = (Vec<usize>, Vec<usize>, Vec<i64>, Vec<f64>, Vec<Option<f64>>);

impl SheetArchive {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Archive) -> Result<T, ArchiveError> + Send,
    ) -> PyResult<T> {
        // A panic left no transaction open: it ended with the call.
        py.detach(|| act(&mut self.archive.lock().unwrap_or_else(PoisonError::into_inner))).map_err(raised)
    }
}

#[pymethods]
impl SheetArchive {
    #[new]
    fn new(py: Python<'_>, path: PathBuf, create: bool) -> PyResult<Self> {
        let opened = py.detach(|| if create { Archive::create(&path) } else { Archive::open(&path) });
        Ok(Self { archive: Mutex::new(opened.map_err(raised)?) })
    }

    /// Adds a sheet's JSON. Returns its id, and whether it is new.
    fn add(&self, py: Python<'_>, json: &str) -> PyResult<(String, bool)> {
        let added = self.with(py, |archive| archive.add(json))?;
        Ok((added.id().to_owned(), matches!(added, Added::New(_))))
    }

    /// All sheets, the oldest first.
    fn sheets(&self, py: Python<'_>) -> PyResult<Vec<Listed>> {
        Ok(self.with(py, |archive| archive.list())?.into_iter().map(listed).collect())
    }

    /// The JSON of the sheet whose id begins so.
    fn json(&self, py: Python<'_>, beginning: &str) -> PyResult<String> {
        self.with(py, |archive| archive.json(&archive.find(beginning)?))
    }

    /// The figures of many sheets: the sheets, the quantities (id, unit, label), and the columns.
    #[pyo3(signature = (only, machine, effort))]
    #[expect(clippy::type_complexity, reason = "the package unpacks it at once")]
    fn figures(
        &self,
        py: Python<'_>,
        only: Vec<String>,
        machine: Option<String>,
        effort: Option<String>,
    ) -> PyResult<(Vec<Listed>, Vec<(String, String, String)>, Columns)> {
        let only = patterns(&only)?;
        let found = self.with(py, |archive| {
            let machine = machine.map(|named| archive.machine(Some(&named))).transpose()?;
            archive.figures(&FiguresOf { machine, effort, only })
        })?;
        let quantities = found.quantities.into_iter().map(|quantity| (quantity.id, quantity.unit, quantity.label));
        let mut columns = Columns::default();
        for figure in found.figures {
            columns.0.push(figure.sheet);
            columns.1.push(figure.quantity);
            columns.2.push(figure.n);
            columns.3.push(figure.median);
            columns.4.push(figure.half_width);
        }
        Ok((found.sheets.into_iter().map(listed).collect(), quantities.collect(), columns))
    }

    /// Trends of figures over months, as JSON.
    #[pyo3(signature = (only, machine, effort))]
    fn trends(
        &self,
        py: Python<'_>,
        only: Vec<String>,
        machine: Option<String>,
        effort: Option<String>,
    ) -> PyResult<String> {
        let only = patterns(&only)?;
        let history = self.with(py, |archive| {
            let machine: KnownMachine = archive.machine(machine.as_deref())?;
            archive.history(&machine, effort.as_deref(), &only)
        })?;
        Ok(py.detach(|| hairspring_sheet::render::trend_json(&hairspring_sheet::trends(&history))))
    }
}
