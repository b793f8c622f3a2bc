//! [`SheetRequest`]: the request for a sheet, and its possible errors.

use std::collections::BTreeSet;
use std::path::PathBuf;

use hairspring_machine::{Cpu, Machine};
use hairspring_sheet::Build;
use hairspring_time::CalibrationError;

use crate::host::system::Disks;
use crate::probe::{ChapterDeclaration, Effort, Probes, chapters};

/// Chapters, time budget and options of a sheet.
#[derive(Clone, Debug)]
pub struct SheetRequest {
    /// The ids of the rows, from [`select`](crate::select).
    pub rows: Vec<String>,
    /// Time budget of the sheet.
    pub effort: Effort,
    /// The CPU to measure on; by default the last one that the process may use.
    pub cpu: Option<Cpu>,
    /// The priority for measurements under `SCHED_FIFO`, 1–99.
    pub priority: u8,
    /// Whether to leave out facts that identify the machine and its place.
    pub redact: bool,
    /// The measuring build.
    pub build: Build,
    /// Folders and limits for measuring disks; with `None` nothing is written to any disk.
    pub disks: Option<Disks>,
    /// Number of rounds, usually [`Effort::rounds`]; they share the time.
    pub rounds: u32,
    /// Decides the order of the chapters in each round, and the pauses between rounds.
    pub seed: u64,
    /// The program to start for rounds and callers. With the arguments [`COMMAND`](crate::COMMAND) and those of
    /// [`serve_round`](crate::serve_round) it runs a round; with those of a `reaction::Chain`, a process of the matrix;
    /// with `caller` and those of `caller::call`, the calls of Rust. With `None`, rounds run in this process, and the
    /// other rows are absent.
    pub program: Option<PathBuf>,
}

/// Why no sheet was taken. Nothing was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SheetError {
    /// The CPU does not exist or may not be used; those that may.
    NoSuchCpu(Cpu, Vec<Cpu>),
    /// No probe has a row with this id.
    NoSuchRow(String),
    /// The priority is not in 1–99.
    Priority(u8),
    /// There is no time base.
    Calibration(CalibrationError),
}

impl std::fmt::Display for SheetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSuchCpu(cpu, allowed) => {
                let allowed: Vec<String> = allowed.iter().map(|cpu| cpu.0.to_string()).collect();
                write!(f, "CPU {} is not one that this process may use: choose from {}", cpu.0, allowed.join(", "))
            }
            Self::NoSuchRow(id) => write!(f, "no row is called '{id}'; `hairspring probes` lists them all"),
            Self::Priority(priority) => write!(f, "priority {priority} does not exist: choose 1 to 99"),
            Self::Calibration(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SheetError {}

impl From<CalibrationError> for SheetError {
    fn from(error: CalibrationError) -> Self {
        Self::Calibration(error)
    }
}

/// The CPU to measure on, if the request can be served.
pub(crate) fn choose_cpu<M: Machine>(machine: &M, wanted: Option<Cpu>, priority: u8) -> Result<Cpu, SheetError> {
    let allowed = machine.affinity().0;
    if !(1..=99).contains(&priority) {
        return Err(SheetError::Priority(priority));
    }
    match wanted {
        Some(cpu) if !allowed.contains(&cpu) => Err(SheetError::NoSuchCpu(cpu, allowed)),
        Some(cpu) => Ok(cpu),
        // The first CPU serves most interrupts on most machines.
        None => Ok(allowed.last().copied().unwrap_or(Cpu(0))),
    }
}

/// The chapters that hold selected rows, each with its tables and rows as far as they are selected.
pub(crate) fn selected<M: Machine + Clone + Sync + 'static>(
    rows: &[String],
) -> Result<Vec<(Probes<M>, ChapterDeclaration)>, SheetError> {
    let mut selected = Vec::new();
    let mut unknown: BTreeSet<&str> = rows.iter().map(String::as_str).collect();
    for probes in chapters() {
        let mut declared = probes.declaration().clone();
        for table in &mut declared.tables {
            table.rows.retain(|row| rows.contains(&row.id));
            unknown.retain(|id| !table.rows.iter().any(|row| row.id == *id));
        }
        declared.tables.retain(|table| !table.rows.is_empty());
        if !declared.tables.is_empty() {
            selected.push((probes, declared));
        }
    }
    match unknown.first() {
        Some(id) => Err(SheetError::NoSuchRow((*id).to_owned())),
        None => Ok(selected),
    }
}
