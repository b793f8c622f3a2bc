//! What a probe works with: the machine, the time base, its share of the time, and where its figures go.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::host::system::Means;
use hairspring_machine::{Clock, Cpu, Machine, Nanos, Policy};
use hairspring_sheet::{Absent, Figure, Note, NoteKind, Series, Value};
use hairspring_time::{Continuity, RealTime, RealTimeGuard, Timebase};

/// How much time a sheet may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// A quarter of the normal time.
    Quick,
    /// About ten seconds a chapter.
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

    /// The time that a chapter may take.
    pub fn chapter_budget(self) -> Nanos {
        match self {
            Self::Quick => Nanos::from_millis(2_500),
            Self::Normal => Nanos::from_millis(10_000),
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

/// What is measured now and how far the sheet has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'p> {
    /// What is being measured.
    pub measuring: &'p str,
    /// Time planned for what is done.
    pub done: Nanos,
    /// Time planned for the whole sheet.
    pub total: Nanos,
}

/// What a probe works with.
pub(crate) struct Context<'c, M: Machine> {
    pub(crate) machine: M,
    pub(crate) timebase: Timebase<M>,
    pub(crate) effort: Effort,
    pub(crate) cpu: Cpu,
    pub(crate) priority: u8,
    /// What the chapters that only this system has work with.
    pub(crate) means: Means,
    /// What becomes a process of the matrix, and the one that calls from Rust.
    pub(crate) program: Option<PathBuf>,
    pub(crate) interrupted: &'c AtomicBool,
    pub(crate) progress: &'c mut dyn FnMut(Progress<'_>),
    /// The selected rows, with what was found so far.
    pub(crate) rows: BTreeMap<String, Option<Value>>,
    pub(crate) series: Vec<Series>,
    pub(crate) notes: Vec<Note>,
    /// What must be read before any figure.
    pub(crate) head: Vec<Note>,
    /// Planned time: before this chapter, and in all.
    pub(crate) done: Nanos,
    pub(crate) total: Nanos,
    /// When the chapter began.
    pub(crate) began: Nanos,
    /// Rates of fresh calibrations, in hertz, until there is a longer baseline to judge them by.
    pub(crate) fresh_rates: Vec<f64>,
}

impl<M: Machine + Clone + Sync> Context<'_, M> {
    /// Whether any row under this prefix is wanted and has no value yet, and there was no interruption.
    pub(crate) fn wants(&self, prefix: &str) -> bool {
        !self.stopped() && self.rows.iter().any(|(id, value)| value.is_none() && crate::registry::is_under(id, prefix))
    }

    /// Whether the user has interrupted the run.
    pub(crate) fn stopped(&self) -> bool {
        // Relaxed: a plain flag, nothing else is handed over with it.
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Says what is measured from now on.
    pub(crate) fn say(&mut self, measuring: &str) {
        let budget = self.effort.chapter_budget();
        let here = (self.machine.read(Clock::Monotonic) - self.began).min(budget);
        (self.progress)(Progress { measuring, done: self.done + here, total: self.total });
    }

    /// Lets the time base age into a smaller bound; what happened to the clocks meanwhile is a warning at the head.
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

    /// A share of the chapter's time.
    pub(crate) fn share(&self, parts: f64) -> Nanos {
        Nanos::new((self.effort.chapter_budget().count() as f64 * parts) as i64)
    }

    /// Enters a figure, if its row is wanted.
    pub(crate) fn put(&mut self, id: &str, figure: Figure) {
        self.enter(id, Value::Figure(figure));
    }

    /// Enters the reason for an absence, if the row is wanted.
    pub(crate) fn absent(&mut self, id: &str, absent: Absent) {
        self.enter(id, Value::Absent(absent));
    }

    /// Enters the same absence for every row under a prefix that has no value yet.
    pub(crate) fn absent_under(&mut self, prefix: &str, absent: &Absent) {
        for (id, value) in &mut self.rows {
            if value.is_none() && crate::registry::is_under(id, prefix) {
                *value = Some(Value::Absent(absent.clone()));
            }
        }
    }

    fn enter(&mut self, id: &str, value: Value) {
        if let Some(slot) = self.rows.get_mut(id) {
            *slot = Some(value);
        }
    }

    /// Adds a remark below the chapter's tables.
    pub(crate) fn remark(&mut self, text: impl Into<String>) {
        self.notes.push(Note { kind: NoteKind::Remark, text: text.into(), remedy: None });
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
