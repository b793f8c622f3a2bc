//! [`CpuHistory`]: the occupants of one CPU over time, from the kernel's records of it.
//!
//! Contexts nest: a non-maskable interrupt interrupts an interrupt, which interrupts a softirq, which interrupts a
//! task. A moment belongs to the innermost context. So the spans of a history follow each other without gaps, and no
//! time counts twice.
//!
//! The history is unknown at first, and where records were lost: also where an exit has no entry. It is known again
//! from the next task switch on, because the kernel switches tasks outside of all interrupts.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hairspring_machine::{Instant, Nanos};

use crate::culprit::WhyUnexplained;
use crate::record::{Context, KernelEvent, KernelRecord, KernelTask, LeftAs};

/// The most spans in a history, about 400 MB; older ones are dropped. At 100,000 records a second that is 40 seconds.
const SPANS_MOST: usize = 4_000_000;
/// The most durations of one interrupt that are kept for its median.
const USUAL_MOST: usize = 1_000;
/// The least number of durations for a median.
const USUAL_LEAST: usize = 20;

/// Occupants of one CPU over time.
#[derive(Clone, Debug)]
pub struct CpuHistory {
    spans: VecDeque<Span>,
    /// The span that is not complete yet.
    current: Occupant,
    since: Instant,
    /// Time of the latest record.
    latest: Instant,
    /// The time up to which the history is known: the latest record, or later if the ring was empty later.
    until: Instant,
    /// The task that has the CPU; `None` while that is unknown.
    task: Option<KernelTask>,
    why_unknown: WhyUnexplained,
    contexts: Vec<Context>,
    /// Softirqs of tasks that were switched out inside a softirq, as happens with PREEMPT_RT.
    parked: BTreeMap<u32, Vec<Context>>,
    /// The functions that kernel workers execute.
    work: BTreeMap<u32, Option<Arc<str>>>,
    switches: VecDeque<SwitchMark>,
    faults: VecDeque<(Instant, u32)>,
    frequencies: VecDeque<Instant>,
    usual: BTreeMap<Context, Vec<Nanos>>,
}

/// The occupant of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// Unknown, with the reason.
    Unknown(WhyUnexplained),
    /// A task; also the idle task, and a kernel worker between two pieces of work.
    Task(KernelTask),
    /// A kernel worker, with the function it executes.
    Worker(KernelTask, Option<Arc<str>>),
    /// An interrupt or a softirq.
    Context(Context),
    /// A non-maskable interrupt.
    Nmi,
}

/// A stretch of time with one occupant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    from: Instant,
    to: Instant,
    occupant: Occupant,
}

/// A change of tasks.
#[derive(Clone, Copy, Debug)]
struct SwitchMark {
    at: Instant,
    from: u32,
    left_as: LeftAs,
    to: u32,
    /// Whether that is the kernel's migration task, which moves others to other CPUs.
    moves: bool,
}

/// A thread's time away from its CPU.
pub(crate) struct Away {
    /// When it left.
    pub(crate) since: Instant,
    /// Why it left.
    pub(crate) left_as: LeftAs,
    /// Whether the CPU was idle in between: no other task kept the thread from running.
    pub(crate) cpu_was_idle: bool,
    /// Whether it came back. If it ran again without that, it did so on another CPU.
    pub(crate) came_back: bool,
}

impl Default for CpuHistory {
    fn default() -> Self {
        Self::new()
    }
}

impl CpuHistory {
    /// A history without records.
    pub fn new() -> Self {
        let beginning = Instant::from_monotonic(Nanos::new(i64::MIN));
        Self {
            spans: VecDeque::new(),
            current: Occupant::Unknown(WhyUnexplained::NotCovered),
            since: beginning,
            latest: beginning,
            until: beginning,
            task: None,
            why_unknown: WhyUnexplained::NotCovered,
            contexts: Vec::new(),
            parked: BTreeMap::new(),
            work: BTreeMap::new(),
            switches: VecDeque::new(),
            faults: VecDeque::new(),
            frequencies: VecDeque::new(),
            usual: BTreeMap::new(),
        }
    }

    /// Adds the next record of this CPU. Records come in the order in which the kernel wrote them.
    pub fn push(&mut self, record: KernelRecord) {
        let at = record.at.max(self.latest);
        match record.event {
            KernelEvent::Switch { from, left_as, to } => {
                self.switch(at, from.pid, to);
                self.switches.push_back(SwitchMark {
                    at,
                    from: from.pid,
                    left_as,
                    to: to.pid,
                    moves: to.moves_tasks(),
                });
            }
            KernelEvent::Enter(context) => {
                if self.task.is_some() {
                    self.contexts.push(context);
                }
            }
            KernelEvent::Exit(context) => self.exit(&context),
            KernelEvent::WorkBegins { pid, function } => {
                self.work.insert(pid, function);
            }
            KernelEvent::WorkEnds { pid } => {
                self.work.remove(&pid);
            }
            KernelEvent::Fault { pid } => self.faults.push_back((at, pid)),
            KernelEvent::Frequency => self.frequencies.push_back(at),
            KernelEvent::Nmi(length) => self.nmi(at, length),
            KernelEvent::Lost => self.lose(WhyUnexplained::RecordsLost),
            KernelEvent::Waking { .. } | KernelEvent::Idle(_) => {}
        }
        self.change(at);
        (self.latest, self.until) = (at, self.until.max(at));
    }

    /// Declares that there were no records after the latest one up to this time.
    pub fn known_until(&mut self, at: Instant) {
        self.until = self.until.max(at);
    }

    /// Drops everything before a time. Time lost before it is unexplained from now on.
    pub fn forget_before(&mut self, at: Instant) {
        while self.spans.front().is_some_and(|span| span.to <= at) {
            self.spans.pop_front();
        }
        while self.switches.front().is_some_and(|mark| mark.at < at) {
            self.switches.pop_front();
        }
        while self.faults.front().is_some_and(|fault| fault.0 < at) {
            self.faults.pop_front();
        }
        while self.frequencies.front().is_some_and(|&change| change < at) {
            self.frequencies.pop_front();
        }
    }

    /// The occupants of the CPU between two times, in order and without gaps.
    pub fn occupants(&self, from: Instant, to: Instant) -> Vec<(Instant, Instant, Occupant)> {
        let first = self.spans.partition_point(|span| span.to <= from);
        let known = self.spans.range(first..).map(|span| (span.from, span.to, span.occupant.clone()));
        let open = (self.since, self.until, self.current.clone());
        let mut parts = Vec::new();
        let mut at = from;
        for (begin, end, occupant) in known.chain([open]) {
            if begin >= to || at >= to {
                break;
            }
            let (begin, end) = (begin.max(at), end.min(to));
            if begin >= end {
                continue;
            }
            if begin > at {
                parts.push((at, begin, Occupant::Unknown(WhyUnexplained::NotCovered)));
            }
            parts.push((begin, end, occupant));
            at = end;
        }
        if at < to {
            parts.push((at, to, Occupant::Unknown(WhyUnexplained::NotCovered)));
        }
        parts
    }

    /// How a thread lost the CPU that it does not have at `at` and has again at `until`; `None` if the history has not
    /// seen it leave.
    pub(crate) fn away(&self, thread: u32, at: Instant, until: Instant) -> Option<Away> {
        let after = self.switches.partition_point(|mark| mark.at <= at);
        let left = self.switches.range(..after).rposition(|mark| mark.from == thread)?;
        let known = self.switches.partition_point(|mark| mark.at <= until).max(after);
        let back = self.switches.range(left + 1..known).position(|mark| mark.to == thread);
        let end = back.map_or(known, |distance| left + 1 + distance);
        let cpu_was_idle = self.switches.range(left..end).any(|mark| mark.to == 0);
        let SwitchMark { at: since, left_as, .. } = self.switches[left];
        Some(Away { since, left_as, cpu_was_idle, came_back: back.is_some() })
    }

    /// Time at which the kernel moved the thread to another CPU, between these times; `None` if it did not, or the
    /// thread came back.
    pub(crate) fn moved(&self, thread: u32, from: Instant, until: Instant) -> Option<Instant> {
        let first = self.switches.partition_point(|mark| mark.at < from);
        let after = self.switches.partition_point(|mark| mark.at <= until).max(first);
        let left = first + self.switches.range(first..after).rposition(|mark| mark.from == thread)?;
        let mut later = self.switches.range(left..after);
        let moved = later.clone().find(|mark| mark.moves)?;
        later.all(|mark| mark.to != thread).then_some(moved.at)
    }

    /// The thread's first page fault in this span.
    pub(crate) fn fault(&self, thread: u32, from: Instant, to: Instant) -> Option<Instant> {
        let first = self.faults.partition_point(|fault| fault.0 < from);
        self.faults.range(first..).take_while(|fault| fault.0 < to).find(|fault| fault.1 == thread).map(|fault| fault.0)
    }

    /// Whether the frequency changed in this span.
    pub(crate) fn frequency_changed(&self, from: Instant, to: Instant) -> bool {
        let first = self.frequencies.partition_point(|&at| at < from);
        self.frequencies.get(first).is_some_and(|&at| at < to)
    }

    /// The median duration of an interrupt on this CPU; `None` if too few were seen.
    pub(crate) fn usual(&self, context: &Context) -> Option<Nanos> {
        let seen = self.usual.get(context).filter(|seen| seen.len() >= USUAL_LEAST)?;
        let mut sorted = seen.clone();
        let middle = sorted.len() / 2;
        Some(*sorted.select_nth_unstable(middle).1)
    }

    fn switch(&mut self, at: Instant, from: u32, to: KernelTask) {
        if !self.contexts.is_empty() {
            let contexts = std::mem::take(&mut self.contexts);
            if contexts.iter().all(|context| matches!(context, Context::Softirq(_))) {
                self.parked.insert(from, contexts);
            } else {
                // Interrupts do not switch tasks, so the record of an exit is missing.
                self.lose(WhyUnexplained::RecordsLost);
            }
        } else if self.task.is_some_and(|task| task.pid != from) {
            self.lose(WhyUnexplained::RecordsLost);
        }
        self.change(at);
        self.task = Some(to);
        self.contexts = self.parked.remove(&to.pid).unwrap_or_default();
    }

    fn exit(&mut self, context: &Context) {
        if self.task.is_none() {
            return;
        }
        match self.contexts.iter().rposition(|open| open == context) {
            Some(depth) if depth + 1 == self.contexts.len() => self.contexts.truncate(depth),
            // An exit without its entry, or an entry without its exit.
            _ => self.lose(WhyUnexplained::RecordsLost),
        }
    }

    /// A non-maskable interrupt writes one record, at its end.
    fn nmi(&mut self, at: Instant, length: Nanos) {
        if self.task.is_none() {
            return;
        }
        let begin = (at - length).max(self.since.max(self.latest));
        self.close(begin);
        self.since = begin;
        self.current = Occupant::Nmi;
    }

    /// Marks the time from the latest record on as unknown.
    fn lose(&mut self, why: WhyUnexplained) {
        self.task = None;
        self.why_unknown = why;
        self.contexts.clear();
        self.parked.clear();
        self.work.clear();
        self.close(self.latest);
        self.since = self.since.max(self.latest);
        self.current = Occupant::Unknown(why);
    }

    /// Begins a new span if the occupant has changed.
    fn change(&mut self, at: Instant) {
        let next = match (self.task, self.contexts.last()) {
            (None, _) => Occupant::Unknown(self.why_unknown),
            (Some(_), Some(context)) => Occupant::Context(context.clone()),
            (Some(task), None) => match self.work.get(&task.pid) {
                Some(function) => Occupant::Worker(task, function.clone()),
                None => Occupant::Task(task),
            },
        };
        if next != self.current {
            self.close(at);
            (self.current, self.since) = (next, at);
        }
    }

    /// Enters the current occupant's time up to now.
    fn close(&mut self, at: Instant) {
        if at <= self.since {
            return;
        }
        if let Occupant::Context(context @ (Context::Vector(_) | Context::Interrupt { .. })) = &self.current {
            let seen = self.usual.entry(context.clone()).or_default();
            if seen.len() < USUAL_MOST {
                seen.push(at - self.since);
            }
        }
        if self.spans.len() == SPANS_MOST {
            self.spans.pop_front();
        }
        self.spans.push_back(Span { from: self.since, to: at, occupant: self.current.clone() });
    }
}
