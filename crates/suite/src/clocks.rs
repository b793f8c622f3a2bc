//! Chapter *Clocks*: what it costs to ask for the time, how fine the answer is, and how right.

mod calibration;
mod cost;

use hairspring_machine::{Clock, ClockCall, Machine, Nanos};
use hairspring_sheet::{Absent, Figure, Method, Unit};
use hairspring_time::{RealTime, Skew};

use crate::context::{Context, Effort};
use crate::host::system::{READS, STEPS};
use crate::registry::{ChapterDeclaration, RowDeclaration, TableDeclaration};
use crate::samples::Samples;

/// A way to ask for the time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Read {
    Counter,
    CounterOrdered,
    Now,
    NowOrdered,
    Call(ClockCall),
}

/// Steps that are collected of each clock.
const STEPS_WANTED: usize = 1_000;
/// Pairs of CPUs whose skew is measured at most; each takes some 10 ms.
const SKEW_PAIRS_MOST: usize = 15;

pub(crate) fn declare() -> ChapterDeclaration {
    let read = |quantity: &str, title: &str, limits, method, how: &str| TableDeclaration {
        diagram: None,
        limits,
        id: "clocks.read".to_owned(),
        title: title.to_owned(),
        rows: READS
            .iter()
            .map(|(segment, label, _)| {
                RowDeclaration::new(
                    format!("clocks.read.{segment}.{quantity}"),
                    (*label).to_owned(),
                    Unit::Ns,
                    method,
                    format!("cost of one call of {label}, {how}"),
                )
            })
            .collect(),
    };
    let steps = STEPS
        .iter()
        .map(|(segment, label, _)| {
            RowDeclaration::new(
                format!("clocks.step.{segment}"),
                (*label).to_owned(),
                Unit::Ns,
                Method::Stamp,
                format!("differences between consecutive readings of {label} that are not zero; the least is its step"),
            )
        })
        .collect();
    ChapterDeclaration {
        id: "clocks",
        title: "Clocks",
        intro: "What it costs to ask for the time, how fine the answer is, and how right. Later calls are timed in loops, \
                less the empty loop; first calls one by one, after 16 MiB of other data went through the caches.",
        tables: vec![
            read(
                "later",
                "Cost of a later call",
                "at most 400 batches of 500 calls; disturbed batches are kept and show in the maximum",
                Method::Diff,
                "caches warm: batches of calls less the empty loop",
            ),
            read(
                "first",
                "Cost of a first call",
                "12 calls; the pair of stamps is contained and stated as overhead",
                Method::Stamp,
                "caches cold; the pair of stamps is contained",
            ),
            TableDeclaration {
                diagram: None,
                id: "clocks.step".to_owned(),
                title: "Smallest step".to_owned(),
                limits: "at most 1,000 steps of each clock, and a hundredth of the chapter's time; a step below the cost of a \
                         read cannot be seen",
                rows: steps,
            },
            calibration::declare(),
            TableDeclaration {
                diagram: None,
                id: "clocks.skew".to_owned(),
                limits: "at most 15 pairs of CPUs; 4,000 hand-overs each, the shortest is kept",
                title: "Agreement between CPUs".to_owned(),
                rows: vec![
                    RowDeclaration::new(
                        "clocks.skew.offset".to_owned(),
                        "counter offset to first CPU".to_owned(),
                        Unit::Ns,
                        Method::Stamp,
                        "offset between the counters of two CPUs by the four-stamp method; one sample for each further CPU",
                    ),
                    RowDeclaration::new(
                        "clocks.skew.uncertainty".to_owned(),
                        "uncertainty of that".to_owned(),
                        Unit::Ns,
                        Method::Stamp,
                        "half of the shortest round trip between the two CPUs: how wrong the offset can be",
                    ),
                ],
            },
        ],
    }
}

pub(crate) fn measure<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) {
    trust_notes(context);
    calibration::measure(context);
    let machine = context.machine.clone();
    let pinned = RealTime { cpu: Some(context.cpu), ..RealTime::default() }.apply(&machine);
    if context.wants("clocks.read") {
        cost::measure(context);
    }
    if context.wants("clocks.step") {
        measure_steps(context);
    }
    drop(pinned);
    if context.wants("clocks.skew") {
        measure_skew(context);
    }
    calibration::finish(context);
}

/// Why the counter is trusted, or not.
fn trust_notes<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) {
    let trust = context.timebase.trust().clone();
    let because: Vec<&str> =
        trust.reasons.iter().filter(|r| r.supports == trust.trusted).map(|r| r.text.as_str()).collect();
    if trust.trusted {
        context.remark(format!("The counter is trusted: {}.", because.join("; ")));
    } else {
        context.warn(format!("The counter is not trusted: {}.", because.join("; ")), None);
    }
}

fn measure_steps<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) {
    for &(segment, label, clock) in STEPS {
        let id = format!("clocks.step.{segment}");
        if !context.wants(&id) {
            continue;
        }
        context.say(&format!("smallest step of {label}"));
        let limit = context.share(if context.effort == Effort::Quick { 0.02 } else { 0.01 });
        let mut samples = Samples::new();
        let until = context.machine.read(Clock::Monotonic) + limit;
        match clock {
            None => {
                let rate_ghz = context.timebase.calibration().rate_hz / 1e9;
                while samples.len() < STEPS_WANTED && context.machine.read(Clock::Monotonic) < until {
                    let before = context.timebase.stamp();
                    let step = context.timebase.stamp().since(before);
                    if step != 0 {
                        samples.push(step as f64 / rate_ghz);
                    }
                }
            }
            Some(clock) => {
                let mut before = context.machine.read(clock);
                let mut looks = 0_u32;
                while samples.len() < STEPS_WANTED {
                    let now = context.machine.read(clock);
                    if now != before {
                        samples.push_nanos(now - before);
                        before = now;
                    }
                    looks += 1;
                    if looks.is_multiple_of(64) && context.machine.read(Clock::Monotonic) > until {
                        break;
                    }
                }
            }
        }
        let empty = Absent::new(
            format!("the clock did not step within {limit}"),
            "take the sheet with --thorough, which waits longer",
        );
        match samples.figure(Method::Stamp, &empty) {
            Ok(figure) => context.put(&id, figure),
            Err(absent) => context.absent(&id, absent),
        }
    }
}

fn measure_skew<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) {
    context.say("agreement between CPUs");
    let cpus = context.machine.affinity().0;
    let Some((&first, others)) = cpus.split_first().filter(|(_, others)| !others.is_empty()) else {
        let absent = Absent::new(
            "only one CPU may be used",
            "start it on more CPUs: `taskset -c 0-1 hairspring sheet`, or widen the cpuset of the container",
        );
        context.absent_under("clocks.skew", &absent);
        return;
    };
    let (mut offset, mut uncertainty) = (Samples::new(), Samples::new());
    let mut failure = None;
    let mut bound = Nanos::ZERO;
    for &other in others.iter().take(SKEW_PAIRS_MOST) {
        match Skew::measure(&context.timebase, first, other) {
            Ok(skew) => {
                offset.push_nanos(skew.offset);
                uncertainty.push_nanos(skew.uncertainty);
                bound = bound.max(skew.bound());
            }
            Err(error) => failure = Some(error.to_string()),
        }
    }
    if bound > Nanos::ZERO && failure.is_none() && others.len() <= SKEW_PAIRS_MOST {
        context.timebase = context.timebase.clone().with_skew(bound);
    }
    let reason = failure.unwrap_or_else(|| "no pair of CPUs could be measured".to_owned());
    let empty = Absent::new(format!("failed to {reason}"), "take the sheet on a machine that is less busy");
    for (id, samples) in [("clocks.skew.offset", offset), ("clocks.skew.uncertainty", uncertainty)] {
        match samples.figure(Method::Stamp, &empty) {
            Ok(figure) => context.put(id, figure),
            Err(absent) => context.absent(id, absent),
        }
    }
}

/// A figure of one number.
pub(crate) fn single(unit: Unit, value: f64) -> Figure {
    Figure::single(unit, Method::Derived, value)
}
