//! Taking a sheet: selects rows, runs the chapters, gathers conditions and figures into the document.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use hairspring_machine::{Clock, Cpu, Machine, Nanos, Policy};
use hairspring_sheet::{Absent, Build, Chapter, Diagram, Note, NoteKind, Row, SCHEMA, Sheet, Table, Taken, Value};
use hairspring_time::{CalibrationError, RealTime, Timebase};

use crate::conditions;
use crate::host::system::{self, Disks};
use crate::probe::{ChapterDeclaration, Context, Effort, Probes, Rows, SheetProgress, chapters, policy_refused};

/// How well the rate must be known before the first measurement, and how long that may take.
const BOUND_PPM: f64 = 0.5;
const AGE: Nanos = Nanos::from_millis(200);

/// What sheet to take.
#[derive(Clone, Debug)]
pub struct SheetRequest {
    /// The ids of the rows, from [`select`](crate::select).
    pub rows: Vec<String>,
    /// How much time it may take.
    pub effort: Effort,
    /// The CPU to measure on; by default the last one that the process may use.
    pub cpu: Option<Cpu>,
    /// The priority for measurements under `SCHED_FIFO`, 1–99.
    pub priority: u8,
    /// Whether to leave out facts that identify the machine and its place.
    pub redact: bool,
    /// Which build is measuring.
    pub build: Build,
    /// Where disks may be measured; nothing is written to any without.
    pub disks: Option<Disks>,
    /// The program that becomes a process of the matrix when it is given the words of a `reaction::Chain`, and makes the calls of
    /// Rust when it is told `caller` and what `caller::call` takes: without one, these are absent.
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

/// Takes a sheet on `machine`. Blocks for the time that the effort allows; `interrupted` ends it early, and the rows that
/// are missing then say so. `progress` is called between measurements, never during one. Spawns threads only for the skew
/// between CPUs and, on the host, for the chapters on the executive, on reactions and on transfers; they end within it, and so do the processes
/// of `program`.
///
/// # Errors
/// Bad requests, before anything is measured; a machine on which no time base can be had.
pub fn take_sheet<M: Machine + Clone + Sync + 'static>(
    machine: &M,
    request: &SheetRequest,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(SheetProgress<'_>),
) -> Result<Sheet, SheetError> {
    let cpu = choose_cpu(machine, request)?;
    let selected = selected(&request.rows)?;
    let other = machine.affinity().0.into_iter().find(|other| *other != cpu);
    let start = machine.monotonic();
    let taken_at = timestamp(machine.read(Clock::Realtime));
    let conditions = conditions::read(machine, request.redact);
    let timebase = Timebase::calibrate_to(machine.clone(), BOUND_PPM, AGE)?;
    let total = request.effort.chapter_budget() * i64::try_from(selected.len()).unwrap_or(i64::MAX);
    let mut context = Context {
        machine: machine.clone(),
        timebase,
        effort: request.effort,
        cpu,
        other,
        priority: request.priority,
        interrupted,
        progress,
        means: system::Means::of(request),
        program: request.program.clone(),
        rows: Rows::default(),
        series: Vec::new(),
        notes: Vec::new(),
        head: Vec::new(),
        done: Nanos::ZERO,
        total,
        began: start,
    };
    context.head = system::notes(&conditions);
    context.head.extend(head_notes(&context, conditions.value("limits.cgroup_cpu")));
    let mut chapters = Vec::with_capacity(selected.len());
    for (probes, declared) in selected {
        context.refine();
        context.open(&probes, &request.rows);
        probes.run(&mut context);
        context.done += request.effort.chapter_budget();
        chapters.push(chapter(declared, &mut context));
    }
    context.refine();
    let stopped = context.stopped();
    let notes = context.head;
    Ok(Sheet {
        schema: SCHEMA.to_owned(),
        hairspring: request.build.clone(),
        taken: Taken {
            start: taken_at,
            duration_s: (machine.monotonic() - start).as_secs_f64(),
            effort: request.effort.name().to_owned(),
            interrupted: stopped,
        },
        conditions,
        notes,
        chapters,
    })
}

fn choose_cpu<M: Machine>(machine: &M, request: &SheetRequest) -> Result<Cpu, SheetError> {
    let allowed = machine.affinity().0;
    if !(1..=99).contains(&request.priority) {
        return Err(SheetError::Priority(request.priority));
    }
    match request.cpu {
        Some(cpu) if !allowed.contains(&cpu) => Err(SheetError::NoSuchCpu(cpu, allowed)),
        Some(cpu) => Ok(cpu),
        // The first CPU serves most interrupts on most machines.
        None => Ok(allowed.last().copied().unwrap_or(Cpu(0))),
    }
}

/// The chapters that hold selected rows, each with its tables and rows as far as they are selected.
fn selected<M: Machine + Clone + Sync + 'static>(
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

/// Turns the declarations and what was found into the chapter of the document.
fn chapter<M: Machine + Clone + Sync>(declaration: ChapterDeclaration, context: &mut Context<'_, M>) -> Chapter {
    let stopped = context.stopped();
    let mut found: BTreeMap<String, Option<Value>> = context.close().collect();
    let mut value = |id: &str| match found.remove(id).flatten() {
        Some(value) => value,
        None if stopped => Value::Absent(Absent::new("interrupted before it was measured", "run it again to the end")),
        None => Value::Absent(Absent::final_("the probe gave no figure, which is a defect of hairspring")),
    };
    let mut drawn: Vec<Diagram> = Vec::new();
    Chapter {
        id: declaration.id.to_owned(),
        title: declaration.title.to_owned(),
        intro: declaration.intro.to_owned(),
        tables: declaration
            .tables
            .into_iter()
            .map(|table| Table {
                id: table.id,
                title: table.title,
                rows: table
                    .rows
                    .into_iter()
                    .map(|row| Row { value: value(&row.id), id: row.id, label: row.label })
                    .collect(),
                // Tables of one scenario share a drawing; the first has it.
                diagram: table.diagram.filter(|diagram| {
                    let new = !drawn.contains(diagram);
                    drawn.extend(new.then(|| diagram.clone()));
                    new
                }),
            })
            .collect(),
        series: std::mem::take(&mut context.series),
        notes: std::mem::take(&mut context.notes),
    }
}

fn warning(text: impl Into<String>, remedy: Option<String>) -> Note {
    Note { kind: NoteKind::Warning, text: text.into(), remedy }
}

/// What a reader must know before any figure. `cpu_limit` is what the facts say of the control group's.
fn head_notes<M: Machine + Clone + Sync>(context: &Context<'_, M>, cpu_limit: Option<&str>) -> Vec<Note> {
    let mut notes = Vec::new();
    let machine = &context.machine;
    let trust = context.timebase.trust();
    if !trust.trusted {
        let reasons: Vec<&str> = trust.reasons.iter().filter(|r| !r.supports).map(|r| r.text.as_str()).collect();
        notes.push(warning(
            format!("The counter is not trusted, so all times are CLOCK_MONOTONIC's: {}.", reasons.join("; ")),
            Some(system::UNTRUSTED.to_owned()),
        ));
    }
    let real_time = RealTime { policy: Some(Policy::Fifo(context.priority)), lock_memory: true, ..RealTime::default() };
    let guard = real_time.apply(machine);
    if let Some(absent) = policy_refused(&guard) {
        notes.push(warning(
            format!("No real-time permission ({}): figures under SCHED_FIFO are absent.", absent.reason),
            absent.remedy,
        ));
    } else if let Some(refused) = guard.refused() {
        notes.push(warning(
            format!("Memory could not be locked ({}): page faults may show in the figures.", refused.said),
            Some(refused.remedy.clone()),
        ));
    }
    drop(guard);
    if let Some((runtime, period)) = machine.real_time_throttle() {
        notes.push(Note {
            kind: NoteKind::Remark,
            text: format!(
                "The kernel lets real-time threads use {runtime} of each {period}; whoever polls longer is stalled. The \
                 probes poll in short stretches."
            ),
            remedy: Some("sysctl -w kernel.sched_rt_runtime_us=-1 lifts it, at the risk of a locked machine".to_owned()),
        });
    }
    // The fact says `none`, with what is not visible, where there is no limit.
    if let Some(limit) = cpu_limit.filter(|limit| !limit.starts_with("none")) {
        notes.push(warning(
            format!("The control group is limited to {limit}: whoever polls longer is stalled, which shows as gaps."),
            Some("lift the limit: cpu.max of the control group, or `docker run` without --cpus".to_owned()),
        ));
    }
    if machine.affinity().0.len() == 1 {
        notes.push(Note {
            kind: NoteKind::Remark,
            text: "Only one CPU may be used: everything else on the machine competes with the measurement.".to_owned(),
            remedy: Some("start it on more CPUs: `taskset -c 0-1`, or widen the cpuset of the container".to_owned()),
        });
    }
    notes
}

/// A reading of the time of day as RFC 3339 in UTC.
fn timestamp(realtime: Nanos) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(realtime.count()))
        .map_or_else(|_| "unknown".to_owned(), |time| format!("{time:.0}"))
}
