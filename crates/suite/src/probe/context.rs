//! Context of a probe: the machine, the time base, its share of the time, and the rows for its figures.

use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Cpu, Host, Instant, Machine, Nanos, Policy};
use hairspring_sheet::{Absent, Incident, Method, Note, NoteKind, Series};
use hairspring_time::{Continuity, RealTime, RealTimeGuard, Timebase};
use serde::{Deserialize, Serialize};

use super::declaration::{RowDeclaration, Slot};
use super::reading::{Found, Reading, Taken};
use super::spin;
use super::stamps::StampCosts;
use crate::host::system::Means;

/// Time budget of a sheet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// A quarter of the normal time.
    Quick,
    /// About seven seconds a chapter.
    Normal,
    /// As long as it takes, with the long requests.
    Thorough,
}

impl Effort {
    /// Its name in the sheet.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Normal => "normal",
            Self::Thorough => "thorough",
        }
    }

    /// Number of rounds of a sheet: fresh processes, each of which measures every row for its share of the time.
    pub fn rounds(self) -> u32 {
        match self {
            Self::Quick => 5,
            Self::Normal => 10,
            Self::Thorough => 20,
        }
    }

    /// The time that a chapter may take, in all rounds together.
    pub fn chapter_budget(self) -> Nanos {
        match self {
            Self::Quick => Nanos::from_millis(2_000),
            Self::Normal => Nanos::from_millis(7_500),
            Self::Thorough => Nanos::from_secs(180),
        }
    }
}

/// The two policies under which everything is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Fifo,
    Other,
}

impl Class {
    pub(crate) const ALL: [Self; 2] = [Self::Fifo, Self::Other];

    /// Its segment in ids.
    pub(crate) fn segment(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Other => "other",
        }
    }

    /// The kernel's name for it.
    pub(crate) fn kernel_name(self) -> &'static str {
        match self {
            Self::Fifo => "SCHED_FIFO",
            Self::Other => "SCHED_OTHER",
        }
    }
}

/// The current measurement and the progress of the sheet.
#[derive(Clone, Copy, Debug)]
pub struct SheetProgress<'p> {
    /// Name of the current measurement.
    pub measuring: &'p str,
    /// Time planned for the finished part.
    pub done: Nanos,
    /// Time planned for the whole sheet.
    pub total: Nanos,
}

/// The machine, the time base, the rows and the options of a running probe.
pub(crate) struct Context<'c, M: Machine> {
    pub(crate) machine: M,
    pub(crate) timebase: Timebase<M>,
    /// Cost and resolution of stamps in the probe that runs.
    pub(crate) stamps: StampCosts,
    pub(crate) effort: Effort,
    /// Index of this round, from 0, and the number of rounds.
    pub(crate) round: u32,
    pub(crate) rounds: u32,
    pub(crate) cpu: Cpu,
    /// Another CPU that the process may use, if there is one.
    pub(crate) other: Option<Cpu>,
    pub(crate) priority: u8,
    /// Resources of the chapters that only this system has.
    pub(crate) means: Means,
    /// Program to run as a process of the matrix and as the caller from Rust.
    pub(crate) program: Option<PathBuf>,
    pub(crate) interrupted: &'c AtomicBool,
    pub(crate) progress: &'c mut dyn FnMut(SheetProgress<'_>),
    /// The rows of the chapter.
    pub(crate) rows: Rows,
    pub(crate) series: Vec<Series>,
    /// The worst gaps and late wake-ups.
    pub(crate) incidents: Vec<Incident>,
    pub(crate) notes: Vec<Note>,
    /// Notes that a reader needs before any figure.
    pub(crate) head: Vec<Note>,
    /// Whether names that identify the machine and its place are left out.
    pub(crate) redact: bool,
    /// Nanoseconds by which each event of these rows is lengthened, to test comparisons.
    pub(crate) spin: BTreeMap<String, f64>,
    /// Planned time of the round: before this chapter, and in all.
    pub(crate) done: Nanos,
    pub(crate) total: Nanos,
    /// When the chapter began.
    pub(crate) began: Instant,
}

/// The rows of a chapter, by slot, with the findings so far.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    all: Vec<Entry>,
    /// The slots of the probe that runs.
    running: Vec<Slot>,
}

/// A row of the chapter and its finding.
#[derive(Debug)]
struct Entry {
    id: String,
    method: Method,
    /// Whether the row was asked for.
    wanted: bool,
    value: Option<Found>,
}

impl<M: Machine + Clone + Sync> Context<'_, M> {
    /// A context on a simulated machine, without rows.
    #[cfg(test)]
    pub(crate) fn for_test<'c>(
        machine: &M,
        interrupted: &'c AtomicBool,
        progress: &'c mut dyn FnMut(SheetProgress<'_>),
    ) -> Context<'c, M> {
        let timebase = Timebase::calibrate(machine.clone()).expect("a simulated machine has a time base");
        Context {
            machine: machine.clone(),
            stamps: StampCosts::measure(&timebase),
            timebase,
            effort: Effort::Quick,
            round: 0,
            rounds: 1,
            cpu: Cpu(0),
            other: None,
            priority: 80,
            means: Means::default(),
            program: None,
            interrupted,
            progress,
            rows: Rows::default(),
            series: Vec::new(),
            incidents: Vec::new(),
            notes: Vec::new(),
            head: Vec::new(),
            redact: false,
            spin: BTreeMap::new(),
            done: Nanos::ZERO,
            total: Nanos::ZERO,
            began: machine.monotonic(),
        }
    }

    /// Begins a chapter with these rows, of which some were asked for. The place of a row is its slot.
    pub(crate) fn open<'d>(&mut self, rows: impl Iterator<Item = &'d RowDeclaration>, asked: &[String]) {
        let entry = |row: &RowDeclaration| {
            let wanted = asked.contains(&row.id);
            Entry { id: row.id.clone(), method: row.method, wanted, value: None }
        };
        self.rows = Rows { all: rows.map(entry).collect(), running: Vec::new() };
        self.began = self.machine.monotonic();
    }

    /// Ends the chapter: the findings for the requested rows, by their ids.
    pub(crate) fn close(&mut self) -> impl Iterator<Item = (String, Option<Found>)> + use<M> {
        std::mem::take(&mut self.rows.all).into_iter().filter(|row| row.wanted).map(|row| (row.id, row.value))
    }

    /// The time base, if the machine is this computer.
    pub(crate) fn host_timebase(&self) -> Option<Timebase<Host>>
    where
        M: 'static,
    {
        (&self.timebase as &dyn Any).downcast_ref::<Timebase<Host>>().cloned()
    }

    /// Begins a probe, which fills these slots.
    pub(super) fn begin(&mut self, slots: &[Slot]) {
        self.rows.running.clear();
        self.rows.running.extend_from_slice(slots);
        self.lengthen(slots);
        if !slots.is_empty() {
            self.stamps = self.stamps.again(&self.timebase);
        }
    }

    /// Whether this row is wanted and has no value yet, and there was no interruption.
    pub(crate) fn wants(&self, slot: Slot) -> bool {
        !self.stopped() && self.rows.all.get(slot.0).is_some_and(|row| row.wanted && row.value.is_none())
    }

    /// Whether any of these rows is wanted.
    pub(crate) fn wants_any(&self, slots: impl IntoIterator<Item = Slot>) -> bool {
        slots.into_iter().any(|slot| self.wants(slot))
    }

    /// The median of a row in this round, if it has one already.
    pub(crate) fn median(&self, slot: Slot) -> Option<f64> {
        match self.rows.all.get(slot.0)?.value.as_ref()? {
            Found::Reading(reading) => reading.centre(),
            Found::Absent(_) | Found::Elsewhere => None,
        }
    }

    /// The id of a row.
    pub(crate) fn id(&self, slot: Slot) -> &str {
        self.rows.all.get(slot.0).map_or("", |row| row.id.as_str())
    }

    /// Whether the user has interrupted the run.
    pub(crate) fn stopped(&self) -> bool {
        // Relaxed: a plain flag that publishes no other data.
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Reports the start of a measurement.
    pub(crate) fn say(&mut self, measuring: &str) {
        let budget = self.share(1.0);
        let here = (self.machine.monotonic() - self.began).min(budget);
        (self.progress)(SheetProgress { measuring, done: self.done + here, total: self.total });
    }

    /// Refines the bound of the time base as it ages; a disturbance of the clocks meanwhile is a warning at the head.
    pub(crate) fn refine(&mut self) {
        let refined = self.timebase.refine();
        self.timebase = refined.timebase;
        let text = match refined.continuity {
            Continuity::Continued => return,
            Continuity::Rerated => "The kernel changed the rate of its clock during the run (NTP).".to_owned(),
            Continuity::Suspended(span) => format!("The machine was suspended for about {span} during the run."),
            Continuity::Stepped(step) => format!("Counter and kernel clock parted by {step} during the run."),
            Continuity::Distrusted => "The kernel gave up the counter as its clock source during the run.".to_owned(),
        };
        let remedy = Some("take the sheet again before relying on it".to_owned());
        self.head.push(Note { kind: NoteKind::Warning, text, remedy });
    }

    /// Lets [`spin`](super::spin) lengthen events of these rows: nothing, except where a comparison is tested with a
    /// change of known size.
    pub(crate) fn lengthen(&self, slots: &[Slot]) {
        if !self.spin.is_empty() {
            spin::set(slots.iter().map(|slot| self.spin.get(self.id(*slot)).copied()));
        }
    }

    /// A share of the time that the chapter has in this round.
    pub(crate) fn share(&self, parts: f64) -> Nanos {
        Nanos::new((self.effort.chapter_budget().count() as f64 * parts / f64::from(self.rounds.max(1))) as i64)
    }

    /// Number of repeats in this round of something that is repeated `all` times in the sheet; at least one.
    pub(crate) fn repeats(&self, all: usize) -> usize {
        all.div_ceil(self.rounds.max(1) as usize)
    }

    /// Number of turns in this round of something that is done exactly `all` times in the sheet, spread over its
    /// rounds. A row with 0 turns is measured [elsewhere](Self::elsewhere).
    pub(crate) fn turns(&self, all: usize) -> usize {
        let (round, rounds) = (self.round as usize, self.rounds.max(1) as usize);
        (round + 1) * all / rounds - round * all / rounds
    }

    /// Marks these rows as measured in other rounds.
    pub(crate) fn elsewhere(&mut self, slots: impl IntoIterator<Item = Slot>) {
        for slot in slots {
            self.store(slot, Found::Elsewhere);
        }
    }

    /// Enters a run's finding for a row. A run that was interrupted before it found anything leaves the row empty.
    pub(crate) fn enter(&mut self, slot: Slot, taken: Taken) {
        match taken {
            Ok(reading) => self.put(slot, reading),
            Err(absent) if !self.stopped() => self.absent(slot, absent),
            Err(_) => {}
        }
    }

    /// Enters a reading: the figure has the unit and the method of its row, or is absent where that method cannot
    /// resolve it.
    pub(crate) fn put(&mut self, slot: Slot, reading: Reading) {
        let Some(method) = self.rows.all.get(slot.0).map(|row| row.method) else { return };
        match reading.stamped(method, &self.stamps) {
            Ok(reading) => self.store(slot, Found::Reading(reading)),
            Err(absent) => self.store(slot, Found::Absent(absent)),
        }
    }

    /// Notes how long the loop of [`company`](super::company) took around the probe that ran.
    pub(super) fn keep_company(&mut self, ns: f64) {
        for slot in std::mem::take(&mut self.rows.running) {
            if let Some(Some(Found::Reading(reading))) = self.rows.all.get_mut(slot.0).map(|row| &mut row.value) {
                reading.company = Some(ns);
            }
        }
    }

    /// Enters the reason for an absence.
    pub(crate) fn absent(&mut self, slot: Slot, absent: Absent) {
        self.store(slot, Found::Absent(absent));
    }

    /// Enters the same absence for those of these rows that have no value yet.
    pub(crate) fn absent_all(&mut self, slots: impl IntoIterator<Item = Slot>, absent: &Absent) {
        for slot in slots {
            if self.rows.all.get(slot.0).is_some_and(|row| row.value.is_none()) {
                self.absent(slot, absent.clone());
            }
        }
    }

    /// Enters the same absence for every row of the chapter that has no value yet.
    pub(crate) fn absent_everywhere(&mut self, absent: &Absent) {
        for row in self.rows.all.iter_mut().filter(|row| row.value.is_none()) {
            row.value = Some(Found::Absent(absent.clone()));
        }
    }

    /// Stores a value. A probe fills its own rows only: a value for another row is a defect, reported in the head of
    /// the sheet.
    fn store(&mut self, slot: Slot, value: Found) {
        if !self.rows.running.is_empty() && !self.rows.running.contains(&slot) {
            let owner = self.rows.running.first().map_or_else(String::new, |own| self.id(*own).to_owned());
            let text = format!(
                "The probe of `{owner}` gave a value for `{}`, which is not a row of its own: a defect of hairspring.",
                self.id(slot)
            );
            self.head.push(Note { kind: NoteKind::Warning, text, remedy: None });
            return;
        }
        if let Some(row) = self.rows.all.get_mut(slot.0) {
            row.value = Some(value);
        }
    }

    /// Adds a remark below the chapter's tables.
    pub(crate) fn remark(&mut self, text: impl Into<String>) {
        self.notes.push(Note { kind: NoteKind::Remark, text: text.into(), remedy: None });
    }

    /// Adds a remark, unless the chapter has it already.
    pub(crate) fn remark_once(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.notes.iter().any(|note| note.text == text) {
            self.remark(text);
        }
    }

    /// Adds a warning with its remedy below the chapter's tables.
    pub(crate) fn warn(&mut self, text: impl Into<String>, remedy: Option<String>) {
        self.notes.push(Note { kind: NoteKind::Warning, text: text.into(), remedy });
    }

    /// The settings of one class of measurements: pinned always, at real-time priority and with locked memory if asked.
    pub(crate) fn settings(&self, class: Class) -> RealTime {
        match class {
            Class::Other => RealTime { policy: Some(Policy::Other), cpu: Some(self.cpu), ..RealTime::default() },
            Class::Fifo => RealTime {
                policy: Some(Policy::Fifo(self.priority)),
                cpu: Some(self.cpu),
                lock_memory: true,
                slack: None,
                idle: None,
            },
        }
    }
}

/// Why this class cannot be measured here: its policy was refused. Memory that could not be locked is no reason.
pub(crate) fn policy_refused<M: Machine>(guard: &RealTimeGuard<'_, M>) -> Option<Absent> {
    guard.grants().iter().find_map(|grant| match grant {
        hairspring_time::Grant::Refused(setting, refused) if *setting != "lock_memory" => {
            Some(Absent::new(format!("the system refused to {}: {}", refused.attempted, refused.said), &refused.remedy))
        }
        _ => None,
    })
}
