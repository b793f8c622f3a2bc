//! [`Trial`]: watches a requirement on this computer, unchanged and with idle states off.
//!
//! The two arms take turns in the order A B B A B A A B, so that a slow drift of the machine affects both. A descriptor
//! that this process holds switches idle states off; the kernel closes it with the process, so no change can remain.

use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Cpu, Host, Machine, Nanos};
use hairspring_settings::IdleLatency;
use hairspring_sheet::Absent;
use hairspring_suite::interleaving::{in_blocks, mirrored};
use hairspring_suite::workload::{Observed, Workload, WorkloadPlace, WorkloadRun};
use hairspring_time::Timebase;

use super::answer::JobAnswer;
use super::bounds::events_needed;
use super::evidence::Evidence;
use super::requirement::{Requirement, Tolerance};

/// Settings of a trial.
#[derive(Clone, Copy, Debug)]
pub struct TrialRequest {
    /// Watching time of each arm; by default as long as the requirement needs, from 4 s to 20 s.
    pub span: Option<Nanos>,
    /// The CPU that the job runs on; by default the last one that the process may use.
    pub cpu: Option<Cpu>,
    /// The priority under `SCHED_FIFO`, 1–99.
    pub priority: u8,
}

/// A requirement under one choice of settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The settings: `as it is`, or the argument of `hairspring run --set`.
    pub settings: &'static str,
    /// The watched events.
    pub evidence: Evidence,
    /// The answer.
    pub answer: JobAnswer,
}

/// The result of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// First the unchanged machine, then idle states off if that could be tried.
    pub arms: Vec<Arm>,
    /// The conditions: policy, CPU, idle states.
    pub conditions: Vec<String>,
    /// Settings that were refused or not tried, and the remedies.
    pub notes: Vec<String>,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// The shortest and the longest default time for one arm.
const SPAN: (Nanos, Nanos) = (Nanos::from_secs(4), Nanos::from_secs(20));
/// More events than needed are watched, so that a few misses do not leave it undecided.
const MORE: f64 = 3.0;
/// Turns in all: each arm has half of them, or one arm has all.
const TURNS: usize = 8;
/// Length of a first run that does not count.
const WARM_UP: Nanos = Nanos::from_millis(20);
/// A larger difference of the time in suspend is more than the error of two readings.
const SUSPEND_LEAST: Nanos = Nanos::from_millis(1);
/// The assumed time between events if the requirement does not give one.
const REACTION: Nanos = Nanos::from_micros(400);

impl TrialRequest {
    /// Watching time of each arm of a requirement.
    pub fn span_of(&self, requirement: &Requirement) -> Nanos {
        if let Some(span) = self.span {
            return span;
        }
        let each = match requirement.workload {
            Workload::Loop(span) | Workload::Delay(span) => span,
            Workload::Reaction(_) | Workload::Gaps => REACTION,
        };
        let needed = match requirement.tolerance {
            Tolerance::Share(share) => events_needed(share) as f64 * MORE * each.count() as f64,
            Tolerance::Rate(..) => f64::MAX,
        };
        let (least, most) = SPAN;
        Nanos::new(needed as i64).max(least).min(most)
    }
}

impl Trial {
    /// Watches a requirement. Blocks for twice the span of one arm. `progress` receives the part that is done, from 0
    /// to 1.
    ///
    /// It runs under `SCHED_FIFO` if that is permitted and the requirement does not ask for an ordinary program. It
    /// restores the settings of the calling thread.
    ///
    /// # Errors
    /// The workload cannot run here: the reason, and the remedy.
    pub fn run(
        requirement: &Requirement,
        request: &TrialRequest,
        timebase: &Timebase<Host>,
        interrupted: &AtomicBool,
        progress: &mut dyn FnMut(f64),
    ) -> Result<Self, Absent> {
        let mut observe = |run: &WorkloadRun| run.observe(timebase, interrupted);
        // Relaxed: a plain flag.
        let stopped = || interrupted.load(Ordering::Relaxed);
        let polls = IdleLatency::in_force().ok().flatten() == Some(0);
        Self::observing(requirement, request, polls, &stopped, progress, &mut observe)
    }

    /// As `run`, with another observer. `polls`: idle states are off already.
    fn observing(
        requirement: &Requirement,
        request: &TrialRequest,
        polls: bool,
        stopped: &dyn Fn() -> bool,
        progress: &mut dyn FnMut(f64),
        observe: &mut dyn FnMut(&WorkloadRun) -> Result<Observed, Absent>,
    ) -> Result<Self, Absent> {
        let cpu = request.cpu.or_else(|| Host.affinity().0.last().copied()).unwrap_or(Cpu(0));
        let mut notes = Vec::new();
        let mut place =
            WorkloadPlace { priority: (!requirement.ordinary).then_some(request.priority), slack: Nanos::new(1), cpu };
        let run = |place, idle_off, span| {
            let workload = requirement.workload;
            WorkloadRun { workload, place: Some(place), fire_from: None, idle_off, span }
        };
        // A short one to warm up, and to see whether the policy is permitted.
        if let Err(absent) = observe(&run(place, false, WARM_UP)) {
            if place.priority.take().is_none() {
                return Err(absent);
            }
            observe(&run(place, false, WARM_UP))?;
            notes.push(format!("SCHED_FIFO was refused, so it ran as an ordinary program: {}", told(&absent)));
        }
        let mut both = !polls;
        if let Some(absent) = both.then(|| observe(&run(place, true, WARM_UP)).err()).flatten() {
            notes.push(format!("not tried: idle=off, because {}", told(&absent)));
            both = false;
        }
        let turns = request.span_of(requirement).count() * 2 / TURNS as i64;
        let span = Nanos::new(turns.max(1));
        let mut observed = [Observed::default(), Observed::default()];
        let (mut made, mut left_out) = (0_usize, Vec::new());
        let blocks = if both { TURNS / 2 } else { TURNS };
        let order = |block| if both { mirrored(block) } else { vec![0] };
        in_blocks((0..blocks).map(order), stopped, |arm| {
            progress(made as f64 / TURNS as f64);
            made += 1;
            let suspended = Host.suspended();
            match observe(&run(place, arm == 1, span)) {
                Ok(_) if Host.suspended() - suspended >= SUSPEND_LEAST => {
                    notes.push(format!("turn {made} does not count: the machine was suspended during it"));
                }
                Ok(one) => {
                    observed[arm].values.extend(one.values);
                    observed[arm].watched += one.watched;
                }
                // The unchanged machine was watched nevertheless.
                Err(absent) if arm == 1 => left_out.push(absent),
                Err(absent) => return Err(absent),
            }
            Ok(())
        })?;
        if let Some(absent) = left_out.first() {
            let turns = left_out.len();
            notes.push(format!("idle=off misses {turns} of {blocks} turns, because {}", told(absent)));
        }
        let names = ["as it is", "idle=off"];
        let arms = names.into_iter().zip(&observed).filter(|(_, observed)| !observed.values.is_empty());
        let arms = arms.map(|(settings, observed)| {
            let evidence = Evidence::of_samples(requirement, &observed.values, observed.watched);
            let answer = JobAnswer::of(requirement, &evidence);
            Arm { settings, evidence, answer }
        });
        let policy = place.priority.map_or_else(|| "As an ordinary program".to_owned(), |p| format!("SCHED_FIFO {p}"));
        let idle = if polls { "idle states are off already" } else { "idle states as they are" };
        Ok(Self {
            arms: arms.collect(),
            conditions: vec![policy, format!("CPU {}", cpu.0), idle.to_owned()],
            notes,
            interrupted: stopped(),
        })
    }
}

fn told(absent: &Absent) -> String {
    match &absent.remedy {
        Some(remedy) => format!("{} ({remedy})", absent.reason),
        None => absent.reason.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_is_refused_in_mid_run_is_told_and_counts_for_no_arm() {
        let requirement: Requirement = "loop 1kHz jitter 500ms p90 ordinary".parse().expect("a requirement");
        let request = TrialRequest { span: Some(Nanos::from_millis(400)), cpu: Some(Cpu(0)), priority: 1 };
        let mut awake = 0;
        let mut observe = |run: &WorkloadRun| {
            awake += usize::from(run.idle_off);
            // The warm-up and the first turn are granted.
            if run.idle_off && awake > 2 {
                return Err(Absent::new("the device is gone", "bring it back"));
            }
            Ok(Observed {
                values: vec![if run.idle_off { 1.0 } else { 2.0 }],
                watched: run.span,
                ..Observed::default()
            })
        };
        let trial = Trial::observing(&requirement, &request, false, &|| false, &mut |_| {}, &mut observe);
        let trial = trial.expect("the machine as it is was watched");
        assert_eq!(trial.notes, ["idle=off misses 3 of 4 turns, because the device is gone (bring it back)"]);
        let watched: Vec<_> = trial.arms.iter().map(|arm| arm.evidence.watched).collect();
        assert_eq!(watched, [400, 100].map(|ms| Some(Nanos::from_millis(ms))));
    }

    #[test]
    fn a_trial_watches_both_arms_and_leaves_the_limit_as_it_was() {
        let before = IdleLatency::in_force();
        let timebase = Timebase::calibrate(Host).expect("a time base");
        let requirement: Requirement = "loop 1kHz jitter 500ms p90 ordinary".parse().expect("a requirement");
        let request = TrialRequest { span: Some(Nanos::from_millis(200)), cpu: None, priority: 1 };
        let mut told = Vec::new();
        let trial = Trial::run(&requirement, &request, &timebase, &AtomicBool::new(false), &mut |done| told.push(done));
        let trial = trial.expect("an ordinary program may");
        assert_eq!(trial.arms[0].settings, "as it is");
        assert!(trial.arms.iter().all(|arm| arm.answer.outcome == super::super::AnswerKind::Yes), "{trial:?}");
        // Both arms, or a note on why not.
        assert_eq!(trial.arms.len() == 1, !trial.notes.is_empty() || trial.conditions[2].contains("already"));
        assert!(told.len() > 4 && told.is_sorted(), "{told:?}");
        assert_eq!(IdleLatency::in_force().ok(), before.ok());
    }
}
