//! Sheets as texts: takes them with the suite in this process, reads and renders them. The package turns them into
//! dictionaries and frames.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Cpu, Host};
use hairspring_sheet::{Build, Sheet, TextStyle};
use hairspring_suite::{Effort, SheetProgress, SheetRequest, select};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Columns of a sheet as text.
const WIDTH: usize = 100;

/// Takes a sheet in this process, on the calling thread, without the GIL, and returns its JSON. Ctrl-C ends it between
/// two measurements with a KeyboardInterrupt.
#[pyfunction]
#[pyo3(signature = (only, effort, cpu, priority, redact, program))]
pub(crate) fn take_sheet(
    py: Python<'_>,
    only: Vec<String>,
    effort: &str,
    cpu: Option<u32>,
    priority: u8,
    redact: bool,
    program: Option<PathBuf>,
) -> PyResult<String> {
    let effort = match effort {
        "quick" => Effort::Quick,
        "normal" => Effort::Normal,
        "thorough" => Effort::Thorough,
        other => {
            return Err(PyValueError::new_err(format!(
                "there is no effort {other:?}: choose 'quick', 'normal' or 'thorough'"
            )));
        }
    };
    let rows = select(&only).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let build = Build {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: None,
        compiler: env!("HAIRSPRING_COMPILER").to_owned(),
        flags: env!("HAIRSPRING_FLAGS").to_owned(),
    };
    let (cpu, rounds) = (cpu.map(Cpu), effort.rounds());
    // Drops the note that names the process that measured a row.
    let seed = u64::from(std::process::id());
    let request = SheetRequest { rows, effort, cpu, priority, redact, build, disks: None, rounds, seed, program };
    let interrupted = AtomicBool::new(false);
    let mut raised = None;
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is not general enough in its lifetime")]
    let mut look = |_: SheetProgress<'_>| {
        // None while the interpreter ends: then no caller waits for the sheet.
        if let Some(Err(error)) = Python::try_attach(|py| py.check_signals()) {
            raised.get_or_insert(error);
            // Relaxed: the suite runs on this thread.
            interrupted.store(true, Ordering::Relaxed);
        }
    };
    let taken = py.detach(|| hairspring_suite::take_sheet(&Host, &request, &interrupted, &mut look));
    match (raised, taken) {
        (Some(error), _) => Err(error),
        (None, taken) => {
            let sheet = taken.map_err(|error| PyValueError::new_err(format!("failed to take a sheet: {error}")))?;
            Ok(hairspring_sheet::render::to_json(&sheet))
        }
    }
}

fn read(json: &str) -> PyResult<Sheet> {
    hairspring_sheet::render::from_json(json).map_err(|error| PyValueError::new_err(format!("failed to {error}")))
}

/// Reads a sheet's JSON and writes it again. A text that is not a sheet of this version raises a ValueError, which
/// names the kind of the text.
#[pyfunction]
pub(crate) fn read_sheet(json: &str) -> PyResult<String> {
    read(json).map(|sheet| hairspring_sheet::render::to_json(&sheet))
}

/// A sheet's JSON as `text`, `markdown` or `html`.
#[pyfunction]
pub(crate) fn render(json: &str, form: &str) -> PyResult<String> {
    let sheet = read(json)?;
    match form {
        "text" => {
            let style = TextStyle { width: WIDTH, colour: false, verbose: false };
            Ok(hairspring_sheet::render::text(&sheet, &style))
        }
        "markdown" => Ok(hairspring_sheet::render::markdown(&sheet)),
        "html" => Ok(hairspring_sheet::render::html(&sheet)),
        other => Err(PyValueError::new_err(format!("there is no form {other:?}: choose 'text', 'markdown' or 'html'"))),
    }
}

/// The ids of all rows that begin with one of these texts; all ids if none is given.
#[pyfunction]
#[pyo3(signature = (only = Vec::new()))]
pub(crate) fn probes(only: Vec<String>) -> PyResult<Vec<String>> {
    select(&only).map_err(|error| PyValueError::new_err(error.to_string()))
}
