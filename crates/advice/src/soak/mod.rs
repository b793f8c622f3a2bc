//! Soaks: jobs watched for hours, under a load that is declared, in memory that does not grow.
//!
//! | noun | meaning |
//! |---|---|
//! | [`SoakRequest`] | jobs to watch, total time, length of blocks |
//! | [`Soak`] | the results so far: valid at any moment, as a sheet too |
//! | [`SoakTally`] | counts, distribution, blocks and worst cases of one job |
//! | [`Extremes`] | the maxima of the blocks on the axis of a Gumbel distribution |
//!
//! Jobs of one soak take turns of a few seconds on one CPU, so that each is watched for its part of the time. After
//! each block the caller gets the soak as it stands, to write it down: an abrupt end of the program then costs only the
//! block that had begun.
//!
//! The culprits of the worst cases come from the kernel's records, which are on meanwhile; without permission the soak
//! has a note instead.
//!
//! Without a miss in a time T there are at most 3/T misses, with 95 % confidence: the answer is valid at any moment,
//! and gets sharper.

mod conditions;
mod extremes;
mod sheet;
mod states;
mod tally;
mod watcher;

use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Clock, Cpu, Host, Instant, Machine, Nanos};
use hairspring_sheet::{Absent, Conditions};
use hairspring_suite::soak_load::RunningLoads;
use hairspring_suite::workload::{Observed, WORST_MOST, Workload, WorkloadPlace, WorkloadRun};
use hairspring_suite::{read_conditions, timestamp};
use hairspring_time::{Continuity, Timebase};

pub use conditions::{SOAK_CONDITIONS, changed_conditions, conditions_mark};
pub use extremes::{EVENTS_LEAST, Extremes, FURTHEST, GumbelLine, MAXIMA_LEAST, SHAPE_MOST, UNEXPLAINED_MOST};
pub use sheet::{ASKED, soak_id, soak_sheet};
pub use states::{SoakState, SoakStates};
pub use tally::{BLOCKS_MOST, CASES_MOST, CaseCulprit, SoakBlock, SoakTally, WorstCase};

use crate::job::{AnswerKind, Evidence, JobAnswer, Requirement};
use watcher::{Watcher, case};

/// A job to watch, and its requirements.
#[derive(Clone, Debug, PartialEq)]
pub struct SoakJob {
    /// The activity.
    pub workload: Workload,
    /// Whether it runs as an ordinary program; otherwise under `SCHED_FIFO`.
    pub ordinary: bool,
    /// Requirements of the job, with their words; empty if it is only watched.
    pub asked: Vec<(String, Requirement)>,
}

/// Jobs to watch, time and options of a soak.
#[derive(Clone, Debug, PartialEq)]
pub struct SoakRequest {
    /// The jobs, which take turns.
    pub jobs: Vec<SoakJob>,
    /// For how long, all together.
    pub span: Nanos,
    /// Interval at which the unfinished soak is handed over.
    pub block: Nanos,
    /// The CPU that the jobs run on.
    pub cpu: Cpu,
    /// The priority under `SCHED_FIFO`, 1–99.
    pub priority: u8,
    /// Whether to end as soon as one answer is *no*.
    pub until_no: bool,
}

/// Results of a soak.
#[derive(Clone, Debug, PartialEq)]
pub struct Soak {
    /// As it was asked for.
    pub request: SoakRequest,
    /// The time of day at which it began, RFC 3339 in UTC.
    pub began: String,
    /// The time of day at which this was true.
    pub now: String,
    /// Time since the begin.
    pub elapsed: Nanos,
    /// Tallies of the jobs, in their order.
    pub tallies: Vec<SoakTally>,
    /// Each load's name and its rate in each block, in bytes per second.
    pub loads: Vec<(String, Vec<f64>)>,
    /// Limits of the figures' validity, once each.
    pub notes: Vec<String>,
    /// Remarks that help to read the figures.
    pub remarks: Vec<String>,
    /// Conditions of the machine at the begin.
    pub conditions: Conditions,
    /// Temperature and frequency, block by block.
    pub states: SoakStates,
    /// The time that the kernel counted as stolen from the CPU, in steps of 10 ms.
    pub stolen: Nanos,
    /// Whether all of the requested time has passed.
    pub complete: bool,
}

/// The length of a turn.
const TURN: Nanos = Nanos::from_secs(5);
/// Remark while the kernel's records were on.
const WATCHED: &str = "The kernel's records of this CPU were on all the time, to find the culprits of the worst cases: they make each \
                       interrupt and each change of tasks a little longer, and so the figures somewhat worse than without.";
/// Least time between two looks at the conditions, which take milliseconds.
const CONDITIONS_EVERY: Nanos = Nanos::from_secs(10);
/// A first run that is not counted, and that shows whether the policy is permitted.
const WARM_UP: Nanos = Nanos::from_millis(20);

impl SoakJob {
    /// The jobs behind requirements: jobs that differ only in the limit are watched once.
    pub fn of(asked: impl IntoIterator<Item = (String, Requirement)>) -> Vec<Self> {
        let mut jobs: Vec<Self> = Vec::new();
        for (text, requirement) in asked {
            let (workload, ordinary) = (requirement.workload, requirement.ordinary);
            match jobs.iter_mut().find(|job| (job.workload, job.ordinary) == (workload, ordinary)) {
                Some(job) => job.asked.push((text, requirement)),
                None => jobs.push(Self { workload, ordinary, asked: vec![(text, requirement)] }),
            }
        }
        jobs
    }

    /// Jobs that are watched without a requirement: a loop of 1 kHz, and the gaps in a polling loop.
    pub fn usual() -> Vec<Self> {
        let of = |workload, ordinary| Self { workload, ordinary, asked: Vec::new() };
        vec![of(Workload::Loop(Nanos::from_millis(1)), false), of(Workload::Gaps, true)]
    }
}

impl Soak {
    /// Watches. Blocks until the time has passed, `interrupted` is set or, if that was asked for, an answer is *no*.
    /// After each block `hand_over` gets the soak as it stands. The settings of the calling thread are as before when
    /// it returns.
    ///
    /// # Errors
    /// A job cannot be done here: the reason, and the remedy; or the error of `hand_over`.
    pub fn run(
        mut request: SoakRequest,
        loads: &mut RunningLoads,
        interrupted: &AtomicBool,
        hand_over: &mut dyn FnMut(&Self) -> Result<(), Absent>,
    ) -> Result<Self, Absent> {
        let failed = |error| Absent::final_(format!("failed to {error}"));
        let mut timebase = Timebase::calibrate(Host).map_err(failed)?;
        let mut notes = Vec::new();
        for job in &mut request.jobs {
            warm_up(job, request.cpu, request.priority, &timebase, interrupted, &mut notes)?;
        }
        request.block = request.block.max(longest(&request) * (20 * request.jobs.len() as i64));
        let limits = |job: &SoakJob| SoakTally::new(job.asked.iter().map(|(_, requirement)| requirement.limit));
        let stolen = |cpu| Host.cpu_counters(cpu).map_or(Nanos::ZERO, |counters| counters.steal);
        let mut watcher = Watcher::open(request.cpu, timebase.trust().guest).map_err(|untraced| untraced.to_string());
        let stolen_before = stolen(request.cpu);
        let start = Host.monotonic();
        let mut soak = Self {
            began: timestamp(Host.read(Clock::Realtime)),
            now: String::new(),
            elapsed: Nanos::ZERO,
            tallies: request.jobs.iter().map(limits).collect(),
            loads: Vec::new(),
            notes,
            remarks: watcher.iter().map(|_| WATCHED.to_owned()).collect(),
            conditions: read_conditions(&Host, false),
            states: SoakStates::default(),
            stolen: Nanos::ZERO,
            complete: false,
            request,
        };
        // Progress of the loads during their start is not counted.
        loads.progress();
        let (mut loads_since, mut looked) = (Host.monotonic(), Nanos::ZERO);
        // Relaxed: a plain flag.
        while !interrupted.load(Ordering::Relaxed) && !soak.complete {
            let at = Host.monotonic() - start;
            let end = start + (at + soak.request.block).min(soak.request.span);
            let observed = turns(&soak.request, end, &timebase, &mut watcher, interrupted)?;
            for (tally, turns) in soak.tallies.iter_mut().zip(observed) {
                tally.enter(at, &turns.observed, turns.cases, turns.asked_from);
            }
            soak.states.enter(at, Host.heat(soak.request.cpu));
            let (now, span) = (Host.monotonic(), Host.monotonic() - loads_since);
            soak.load_rates(loads, span);
            loads_since = now;
            soak.elapsed = now - start;
            soak.now = timestamp(Host.read(Clock::Realtime));
            soak.stolen = stolen(soak.request.cpu) - stolen_before;
            soak.complete = soak.elapsed >= soak.request.span;
            let refined = timebase.refine();
            if let Some(note) = broken(refined.continuity) {
                soak.note(note);
            }
            timebase = refined.timebase;
            if soak.complete || soak.elapsed >= looked + CONDITIONS_EVERY {
                looked = soak.elapsed;
                soak.look_at_conditions();
            }
            hand_over(&soak)?;
            if soak.request.until_no && soak.answers().any(|answer| answer.outcome == AnswerKind::No) {
                break;
            }
        }
        Ok(soak)
    }

    /// The answers so far to all requirements.
    pub fn answers(&self) -> impl Iterator<Item = JobAnswer> {
        self.request.jobs.iter().zip(&self.tallies).flat_map(|(job, tally)| {
            let figure = tally.figure();
            job.asked.iter().filter_map(move |(_, requirement)| {
                let evidence = Evidence::of_figure(requirement, "", figure.as_ref()?, Some(tally.watched));
                Some(JobAnswer::of(requirement, &evidence))
            })
        })
    }

    fn load_rates(&mut self, loads: &mut RunningLoads, span: Nanos) {
        for (place, (load, done)) in loads.progress().into_iter().enumerate() {
            if self.loads.len() <= place {
                self.loads.push((load.kind.name().to_owned(), Vec::new()));
            }
            match done {
                Some(done) => self.loads[place].1.push(done as f64 / span.as_secs_f64()),
                None => {
                    self.note(format!("The load {load} ended before the soak: the rest of the soak was without it."));
                }
            }
        }
    }

    /// Notes the conditions that have changed since the begin.
    fn look_at_conditions(&mut self) {
        for (label, before, after) in changed_conditions(&self.conditions, &read_conditions(&Host, false)) {
            let text = format!("{label} changed during the soak, from {before} to {after}: the figures mix both.");
            self.note(text);
        }
    }

    fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }
}

/// Results of the turns of one job in a block.
#[derive(Clone, Debug, Default)]
struct Turns {
    observed: Observed,
    cases: Vec<WorstCase>,
    /// Smaller events need not be among the cases.
    asked_from: Nanos,
}

/// One after the other until the end, each for a turn.
fn turns(
    request: &SoakRequest,
    end: Instant,
    timebase: &Timebase<Host>,
    watcher: &mut Result<Watcher, String>,
    interrupted: &AtomicBool,
) -> Result<Vec<Turns>, Absent> {
    let mut observed = vec![Turns::default(); request.jobs.len()];
    let turn =
        TURN.min(Nanos::new(request.block.count() / request.jobs.len().max(1) as i64)).max(longest(request) * 10);
    let mut place = 0;
    loop {
        let left = end - Host.monotonic();
        if left <= Nanos::ZERO || interrupted.load(Ordering::Relaxed) {
            return Ok(observed);
        }
        let one = run_of(&request.jobs[place], request.cpu, request.priority, left.min(turn));
        let one = one.observe(timebase, interrupted)?;
        let of = &mut observed[place];
        if let Some((least, _)) = one.worst.last().filter(|_| one.worst.len() == WORST_MOST) {
            of.asked_from = of.asked_from.max(*least);
        }
        of.cases.extend(match watcher {
            Ok(watcher) => watcher.cases(request.jobs[place].workload, &one.worst),
            Err(why) => one.worst.iter().map(|(value, ended)| case(*value, *ended, Err(why.clone()))).collect(),
        });
        of.observed.values.extend(one.values);
        of.observed.watched += one.watched;
        place = (place + 1) % request.jobs.len();
    }
}

/// The longest time between two events of a job, if the job has one.
fn longest(request: &SoakRequest) -> Nanos {
    let of = |job: &SoakJob| match job.workload {
        Workload::Loop(span) | Workload::Delay(span) => span,
        Workload::Reaction(_) | Workload::Gaps => Nanos::ZERO,
    };
    request.jobs.iter().map(of).max().unwrap_or(Nanos::ZERO)
}

fn run_of(job: &SoakJob, cpu: Cpu, priority: u8, span: Nanos) -> WorkloadRun {
    let place = WorkloadPlace { priority: (!job.ordinary).then_some(priority), slack: Nanos::new(1), cpu };
    WorkloadRun { workload: job.workload, place: Some(place), fire_from: None, idle_off: false, span }
}

/// Does a job once. If its policy is refused, it becomes an ordinary program, with a note.
fn warm_up(
    job: &mut SoakJob,
    cpu: Cpu,
    priority: u8,
    timebase: &Timebase<Host>,
    interrupted: &AtomicBool,
    notes: &mut Vec<String>,
) -> Result<(), Absent> {
    let Err(absent) = run_of(job, cpu, priority, WARM_UP).observe(timebase, interrupted) else { return Ok(()) };
    if job.ordinary {
        return Err(absent);
    }
    job.ordinary = true;
    run_of(job, cpu, priority, WARM_UP).observe(timebase, interrupted)?;
    for (text, requirement) in &mut job.asked {
        requirement.ordinary = true;
        let words: Vec<&str> = text.split_whitespace().filter(|word| *word != "fifo").collect();
        *text = format!("{} ordinary", words.join(" "));
    }
    let remedy = absent.remedy.map_or_else(String::new, |remedy| format!(" ({remedy})"));
    notes.push(format!("SCHED_FIFO was refused, so the job ran as an ordinary program: {}{remedy}.", absent.reason));
    Ok(())
}

/// The note on a time base that had to begin anew.
fn broken(continuity: Continuity) -> Option<String> {
    match continuity {
        Continuity::Continued | Continuity::Rerated => None,
        Continuity::Suspended(span) => {
            Some(format!("The computer was suspended for {span}; that time was not watched."))
        }
        Continuity::Stepped(by) => Some(format!("The counter and the kernel's clock diverged by {by}.")),
        Continuity::Distrusted => {
            Some("The kernel no longer trusts the counter; times come from its clock.".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(asked: &[&str], span: Nanos) -> SoakRequest {
        let asked = asked.iter().map(|text| ((*text).to_owned(), text.parse().expect("a requirement")));
        let cpu = Host.affinity().0.last().copied().expect("a CPU");
        SoakRequest {
            jobs: SoakJob::of(asked),
            span,
            block: Nanos::from_millis(100),
            cpu,
            priority: 1,
            until_no: false,
        }
    }

    #[test]
    fn requirements_of_one_workload_are_watched_once() {
        let three = ["loop 1kHz jitter 50us", "loop 1kHz jitter 1ms misses 1/h", "loop 1kHz jitter 50us ordinary"];
        let jobs = request(&three, Nanos::from_secs(1)).jobs;
        assert_eq!(jobs.iter().map(|job| job.asked.len()).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn a_soak_is_handed_over_after_each_block_and_ends_with_an_answer() {
        let request = request(
            &["loop 1kHz jitter 10s p90 ordinary", "delay 100us within 1s p90 ordinary"],
            Nanos::from_millis(400),
        );
        let mut handed = Vec::new();
        let mut keep = |soak: &Soak| {
            handed.push((soak.tallies[0].watched, soak.answers().map(|answer| answer.outcome).collect::<Vec<_>>()));
            Ok(())
        };
        let soak =
            Soak::run(request, &mut RunningLoads::default(), &AtomicBool::new(false), &mut keep).expect("it runs");
        assert!(soak.complete && handed.len() >= 3, "{handed:?}");
        assert!(handed.is_sorted_by_key(|(watched, _)| *watched));
        assert!(soak.answers().all(|answer| answer.outcome == AnswerKind::Yes));
        assert!(soak.tallies.iter().all(|tally| !tally.worst.is_empty() && tally.worst[0].when.ends_with('Z')));
    }

    #[test]
    fn a_clear_no_ends_a_soak_that_was_asked_to_end_then() {
        let mut request = request(&["loop 1kHz jitter 1ns p50 ordinary"], Nanos::from_secs(60));
        request.until_no = true;
        let soak = Soak::run(request, &mut RunningLoads::default(), &AtomicBool::new(false), &mut |_| Ok(()))
            .expect("it runs");
        assert!(!soak.complete && soak.elapsed < Nanos::from_secs(30), "{:?}", soak.elapsed);
    }
}
