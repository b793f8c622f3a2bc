//! Taking a sheet: selects rows, drives the rounds, gathers conditions and findings into the document.

use std::any::Any;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Clock, Cpu, CpuSet, Host, Instant, Machine, Nanos, Policy};
use hairspring_sheet::{Note, NoteKind, SCHEMA, Sheet, Taken};
use hairspring_time::{RealTime, Timebase};

use crate::conditions;
use crate::host::system;
use crate::interleaving::Random;
use crate::merge::{self, Taking};
use crate::probe::{ChapterDeclaration, SheetProgress, policy_refused};
use crate::request::{SheetError, SheetRequest, choose_cpu, selected};
use crate::round::process::{self, Ask, Failed};
use crate::round::{Measuring, RoundPart, RoundRequest, take_round};

/// Required bound of the rate before the first measurement, and the time limit for it.
const BOUND_PPM: f64 = 0.5;
const AGE: Nanos = Nanos::from_millis(200);
/// The longest pause between two rounds, as a part of a chapter's time: 0.1 s in a quick sheet, 7 s in a thorough one.
const PAUSE_PART: i64 = 25;
/// The most by which the environment of a round is lengthened: a page, so that the stack begins anywhere in one.
const PADDING_MOST: usize = 4096;

/// Takes a sheet on `machine`, in the requested number of rounds. Blocks for the time that the effort allows.
/// `interrupted` ends it early: the sheet is made from the complete rounds, or from the first if none is complete, and
/// missing rows give the reason. `progress` is called between measurements.
///
/// On the host each round is a process of `program`, if there is one that can be a round; else all rounds are taken in
/// this process. Spawns threads to listen to these processes, and in this process only for the skew between CPUs and,
/// on the host, for the chapters on the executive, on reactions and on transfers. Threads and processes end within it.
///
/// # Errors
/// Bad requests, before anything is measured; a machine on which no time base can be had.
pub fn take_sheet<M: Machine + Clone + Sync + 'static>(
    machine: &M,
    request: &SheetRequest,
    interrupted: &AtomicBool,
    progress: &mut dyn FnMut(SheetProgress<'_>),
) -> Result<Sheet, SheetError> {
    let cpu = choose_cpu(machine, request.cpu, request.priority)?;
    let declared: Vec<ChapterDeclaration> =
        selected::<M>(&request.rows)?.into_iter().map(|(_, declared)| declared).collect();
    let began = machine.monotonic();
    let start = timestamp(machine.read(Clock::Realtime));
    let conditions = conditions::read_conditions(machine, request.redact);
    let timebase = calibrated(machine)?;
    let mut notes = system::notes(&conditions);
    notes.extend(head_notes(&timebase, request.priority, conditions.value("limits.cgroup_cpu")));
    let mut driver = Driver { machine, request, cpu, interrupted, timebase, processes: 0, parts: Vec::new() };
    notes.extend(driver.rounds(progress)?);
    // Relaxed: a plain flag that publishes no other data.
    let interrupted = interrupted.load(Ordering::Relaxed);
    let rounds = driver.complete();
    let parts = driver.parts;
    let of_rounds: Vec<Vec<Note>> = (0..request.rounds)
        .map(|round| parts.iter().filter(|part| part.round == round).flat_map(|part| part.head.clone()).collect())
        .collect();
    let of_rounds: Vec<&[Note]> = of_rounds.iter().map(Vec::as_slice).collect();
    notes.extend(merge::notes(&of_rounds));
    let taking = Taking { began: began.as_monotonic(), interrupted, alone_ns: merge::alone_ns(&parts) };
    let chapter = |declared: &ChapterDeclaration| {
        let parts: Vec<&RoundPart> = parts.iter().filter(|part| part.chapter == declared.id).collect();
        merge::chapter(declared, &parts, taking)
    };
    Ok(Sheet {
        schema: SCHEMA.to_owned(),
        hairspring: request.build.clone(),
        taken: Taken {
            start,
            duration_s: (machine.monotonic() - began).as_secs_f64(),
            effort: request.effort.name().to_owned(),
            interrupted,
            rounds,
        },
        conditions,
        notes,
        summary: None,
        chapters: declared.iter().map(chapter).collect(),
    })
}

/// Runs the rounds of a sheet and collects their findings.
struct Driver<'d, M: Machine> {
    machine: &'d M,
    request: &'d SheetRequest,
    cpu: Cpu,
    interrupted: &'d AtomicBool,
    timebase: Timebase<M>,
    /// Number of processes that have measured.
    processes: u32,
    parts: Vec<RoundPart>,
}

impl<M: Machine + Clone + Sync + 'static> Driver<'_, M> {
    /// Takes all rounds. Returns the notes about them.
    fn rounds(&mut self, progress: &mut dyn FnMut(SheetProgress<'_>)) -> Result<Vec<Note>, SheetError> {
        let mut notes = Vec::new();
        let mut random = Random::seeded(self.request.seed);
        let on_host = (self.machine as &dyn Any).is::<Host>();
        let mut program = self.request.program.as_deref().filter(|_| on_host && self.request.rounds > 1);
        let rounds = self.request.rounds;
        for round in 0..rounds {
            if round > 0 {
                self.pause(&mut random);
            }
            if self.stopped() {
                break;
            }
            let asked = RoundRequest::of(self.request, round);
            let mut said = |of: SheetProgress<'_>| {
                let before = of.total * i64::from(round);
                let measuring = match rounds {
                    1 => of.measuring.to_owned(),
                    _ => format!("round {} of {rounds}: {}", round + 1, of.measuring),
                };
                let (done, total) = (before + of.done, of.total * i64::from(rounds));
                progress(SheetProgress { measuring: &measuring, done, total });
            };
            if let Some(of) = program {
                let (anchors, alone_ns) = (Some(self.timebase.anchors().to_string()), merge::alone_ns(&self.parts));
                let asked = RoundRequest { anchors, alone_ns, ..asked.clone() };
                match self.in_process(of, asked, random.below(PADDING_MOST), &mut said) {
                    Ok(()) => continue,
                    Err(Failed::Broken(text)) => {
                        let text = format!("Round {} is not complete: {text}.", round + 1);
                        notes.push(warning(text, Some("take the sheet again if rows are missing".to_owned())));
                        continue;
                    }
                    Err(Failed::NoRound(text)) => {
                        let text = format!("All rounds were taken in one process, so they vary too little: {text}.");
                        notes.push(warning(text, Some("take the sheet by the command `hairspring`".to_owned())));
                        program = None;
                    }
                }
            }
            let measuring = Measuring {
                timebase: self.timebase.clone(),
                program: self.request.program.as_deref(),
                interrupted: self.interrupted,
            };
            let parts = &mut self.parts;
            self.timebase = take_round(self.machine, &asked, measuring, &mut said, |part| parts.push(part))?;
        }
        if self.complete() > 0 {
            let complete: Vec<u32> = (0..rounds).filter(|round| self.is_complete(*round)).collect();
            self.parts.retain(|part| complete.contains(&part.round));
        }
        Ok(notes)
    }

    /// One round in a process of its own. The listening process keeps off the CPU that measures, where there is
    /// another.
    fn in_process(
        &mut self,
        program: &Path,
        asked: RoundRequest,
        padding: usize,
        progress: &mut dyn FnMut(SheetProgress<'_>),
    ) -> Result<(), Failed> {
        self.processes += 1;
        let aside = Aside::from(self.machine, self.cpu);
        let how = process::Started { program, padding, variable: None };
        let mut answer = process::ask(&how, &Ask::Take(asked), self.interrupted, || aside.step(), progress);
        drop(aside);
        for part in &mut answer.parts {
            part.process = self.processes;
        }
        self.parts.append(&mut answer.parts);
        answer.failed.map_or(Ok(()), Err)
    }

    /// Rests for a random time, so that rounds have no period in common with other activity of the machine.
    fn pause(&self, random: &mut Random) {
        let most = self.request.effort.chapter_budget().count() / PAUSE_PART;
        let rest = Nanos::new(random.below(usize::try_from(most).unwrap_or(0)) as i64);
        let end = self.machine.monotonic() + rest;
        while self.machine.monotonic() < end && !self.stopped() {
            self.machine.sleep_until(end);
        }
    }

    fn stopped(&self) -> bool {
        // Relaxed: a plain flag that publishes no other data.
        self.interrupted.load(Ordering::Relaxed)
    }

    /// Whether a round completed every chapter.
    fn is_complete(&self, round: u32) -> bool {
        let mut parts = self.parts.iter().filter(|part| part.round == round).peekable();
        parts.peek().is_some() && parts.all(|part| !part.interrupted)
    }

    /// How many rounds are complete.
    fn complete(&self) -> u32 {
        (0..self.request.rounds).map(|round| u32::from(self.is_complete(round))).sum()
    }
}

/// The time base that all rounds go on with.
pub(crate) fn calibrated<M: Machine + Clone>(machine: &M) -> Result<Timebase<M>, SheetError> {
    Ok(Timebase::calibrate_to(machine.clone(), BOUND_PPM, AGE)?)
}

fn warning(text: impl Into<String>, remedy: Option<String>) -> Note {
    Note { kind: NoteKind::Warning, text: text.into(), remedy }
}

/// Notes that a reader needs before any figure. `cpu_limit` is the limit of the control group, from the facts.
fn head_notes<M: Machine + Clone + Sync>(timebase: &Timebase<M>, priority: u8, cpu_limit: Option<&str>) -> Vec<Note> {
    let mut notes = Vec::new();
    let machine = timebase.machine();
    let trust = timebase.trust();
    if !trust.trusted {
        let reasons: Vec<&str> = trust.reasons.iter().filter(|r| !r.supports).map(|r| r.text.as_str()).collect();
        notes.push(warning(
            format!("The counter is not trusted, so all times are CLOCK_MONOTONIC's: {}.", reasons.join("; ")),
            Some(system::UNTRUSTED.to_owned()),
        ));
    }
    let real_time = RealTime { policy: Some(Policy::Fifo(priority)), lock_memory: true, ..RealTime::default() };
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
                "The kernel lets real-time threads use {runtime} of each {period}, and stalls those that poll longer. The \
                 probes poll in short stretches."
            ),
            remedy: Some("sysctl -w kernel.sched_rt_runtime_us=-1 lifts it, at the risk of a locked machine".to_owned()),
        });
    }
    // Without a limit the fact is `none`, followed by the limits that are not visible.
    if let Some(limit) = cpu_limit.filter(|limit| !limit.starts_with("none")) {
        notes.push(warning(
            format!("The control group is limited to {limit}: the kernel stalls threads that poll longer, which shows as gaps."),
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
pub fn timestamp(realtime: Nanos) -> String {
    jiff::Timestamp::from_nanosecond(i128::from(realtime.count()))
        .map_or_else(|_| "unknown".to_owned(), |time| format!("{time:.0}"))
}

/// The time of day of a reading of `CLOCK_MONOTONIC`, RFC 3339 in UTC with milliseconds.
pub fn time_of_day(at: Instant) -> String {
    let realtime = Host.read(Clock::Realtime) - (Host.monotonic() - at);
    jiff::Timestamp::from_nanosecond(i128::from(realtime.count()))
        .map_or_else(|_| "unknown".to_owned(), |time| format!("{time:.3}"))
}

/// While a process measures, the thread that waits for it keeps off its CPU. Ends when dropped.
pub(crate) struct Aside<'m, M: Machine> {
    machine: &'m M,
    before: CpuSet,
    others: Vec<Cpu>,
}

impl<'m, M: Machine> Aside<'m, M> {
    /// Prepares to move the calling thread away from this CPU, if it may use another.
    pub(crate) fn from(machine: &'m M, cpu: Cpu) -> Self {
        let before = machine.affinity();
        let others = before.0.iter().copied().filter(|other| *other != cpu).collect();
        Self { machine, before, others }
    }

    /// Leaves the CPU. Called once the process has started, because it inherits the CPUs of the thread that starts it.
    pub(crate) fn step(&self) {
        if !self.others.is_empty() {
            // Refused, it waits where it is.
            drop(self.machine.set_affinity(&CpuSet(self.others.clone())));
        }
    }
}

impl<M: Machine> Drop for Aside<'_, M> {
    fn drop(&mut self) {
        drop(self.machine.set_affinity(&self.before));
    }
}
