//! Chapter *Remedies*: what a change of settings brings, measured with and without it in turns.
//!
//! Only settings that end with this process are tried: no file of the system is written. The blocks come in the order A B B A, so that a
//! slow drift of the machine falls on both; each pair of neighbours gives one ratio of their medians.

use std::sync::atomic::AtomicBool;

use hairspring_machine::{Host, Machine, Nanos};
use hairspring_settings::IdleLatency;
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_time::Timebase;

use crate::probe::{Context, Probes, Reading, Row, Setting, Taken};
use crate::rounds::median;
use crate::workload::{ReactionSource, Workload, WorkloadPlace, WorkloadRun};

/// Pairs of blocks, one with the remedy and one without; in every second pair the remedy comes first.
const PAIRS: usize = 2;
/// Shares of the chapter's time.
const REACT_SHARE: f64 = 0.2;
const LOOP_SHARE: f64 = 0.15;
const SLACK_SHARE: f64 = 0.1;
/// The period of the loops.
const PERIOD: Nanos = Nanos::from_millis(1);
/// The kernel's timer slack for an ordinary thread, and what periodic threads set.
const SLACK_USUAL: Nanos = Nanos::from_micros(50);
const SLACK_LEAST: Nanos = Nanos::new(1);
/// A first run that is not counted.
const WARM_UP: Nanos = Nanos::from_millis(5);

/// The probes of the chapter.
pub(crate) fn probes<M: Machine + Clone + Sync + 'static>() -> Probes<M> {
    let mut probes = Probes::new(
        "remedies",
        "Remedies",
        "What a change of settings brings on this machine: a median with the remedy over the median without it, measured in turns. \
         Below 1 the remedy helps, about 1 it does nothing here.",
    );
    probes.needs_host("settings are those of a real machine");
    let table = probes.table("remedies.idle_off", "All CPUs kept awake: `--set idle=off`", LIMITS);
    let idle = [
        ("react.ratio", "event → action", Workload::Reaction(ReactionSource::Eventfd), REACT_SHARE),
        ("loop.ratio", "lateness of a loop of 1 kHz", Workload::Loop(PERIOD), LOOP_SHARE),
    ];
    for (suffix, label, workload, share) in idle {
        let measures = format!(
            "{label} under SCHED_FIFO, or as an ordinary thread where that is refused; /dev/cpu_dma_latency held at 0"
        );
        let slot = probes.row(table, Row::new(suffix, label, Unit::Ratio, Method::Derived, measures));
        probes.several_on_host(Setting::AsStarted, [slot], move |context, timebase| {
            context.say(&format!("idle states on and off, {label}"));
            let taken = idle_off(context, timebase, workload, share);
            context.enter(slot, taken);
        });
    }
    let table = probes.table("remedies.slack_1ns", "Timer slack of 1 ns: `--set slack=1ns`", LIMITS);
    let row = Row::new(
        "loop.ratio",
        "lateness of an ordinary loop of 1 kHz",
        Unit::Ratio,
        Method::Derived,
        "lateness of an ordinary thread with a timer slack of 1 ns over that with the usual 50 µs",
    );
    let slot = probes.row(table, row);
    probes.several_on_host(Setting::AsStarted, [slot], move |context, timebase| {
        context.say("timer slack of 50 µs and of 1 ns");
        let taken = slack(context, timebase);
        context.enter(slot, taken);
    });
    probes
}

const LIMITS: &str = "2 pairs of blocks with and without in each round, in half of the chapter's time";

/// One block: its median, with the remedy or without.
type Block<'b> = &'b mut dyn FnMut(bool, Nanos) -> Result<f64, Absent>;

/// The ratios of the pairs, in blocks that fill this share of the chapter.
fn ratios<M: Machine + Clone + Sync>(
    context: &Context<'_, M>,
    share: f64,
    block: Block<'_>,
) -> Result<Vec<f64>, Absent> {
    let span = Nanos::new(context.share(share).count() / (2 * PAIRS as i64));
    let mut ratios = Vec::with_capacity(PAIRS);
    for pair in 0..PAIRS {
        if context.stopped() {
            break;
        }
        let first = pair % 2 == 1;
        let one = block(first, span)?;
        let other = block(!first, span)?;
        let (with, without) = if first { (one, other) } else { (other, one) };
        ratios.push(with / without.max(1.0));
    }
    Ok(ratios)
}

/// The median of a workload's events.
fn observed(run: &WorkloadRun, timebase: &Timebase<Host>, interrupted: &AtomicBool) -> Result<f64, Absent> {
    let observed = run.observe(timebase, interrupted)?;
    match median(&observed.values) {
        median if median.is_finite() => Ok(median),
        _ => Err(Absent::new("no event came within a block", "take the sheet without --quick")),
    }
}

fn idle_off<M: Machine + Clone + Sync>(
    context: &Context<'_, M>,
    timebase: &Timebase<Host>,
    workload: Workload,
    share: f64,
) -> Taken {
    if IdleLatency::in_force().ok().flatten() == Some(0) {
        return Err(Absent::new(
            "another program keeps the idle states off already, so there is nothing to compare with",
            "end what holds /dev/cpu_dma_latency: `fuser -v /dev/cpu_dma_latency` names it",
        ));
    }
    IdleLatency::hold(0).map(drop).map_err(|error| {
        Absent::new(
            format!("/dev/cpu_dma_latency cannot be held: {}", error.said),
            "take the sheet as root, or give your group the device by a udev rule",
        )
    })?;
    let mut place = WorkloadPlace { priority: Some(context.priority), slack: SLACK_LEAST, cpu: context.cpu };
    let run = |place, span| WorkloadRun { workload, place: Some(place), fire_from: context.other, span };
    let mut caveat = None;
    if run(place, WARM_UP).observe(timebase, context.interrupted).is_err() {
        place.priority = None;
        caveat = Some("SCHED_FIFO was refused: measured as an ordinary thread");
    }
    let ratios = ratios(context, share, &mut |with, span| {
        let held = if with { IdleLatency::hold(0).ok() } else { None };
        let median = observed(&run(place, span), timebase, context.interrupted);
        drop(held);
        median
    })?;
    Ok(caveat.into_iter().fold(Reading::samples(ratios), Reading::with_caveat))
}

fn slack<M: Machine + Clone + Sync>(context: &Context<'_, M>, timebase: &Timebase<Host>) -> Taken {
    let ratios = ratios(context, SLACK_SHARE, &mut |with, span| {
        let slack = if with { SLACK_LEAST } else { SLACK_USUAL };
        let place = WorkloadPlace { priority: None, slack, cpu: context.cpu };
        let run = WorkloadRun { workload: Workload::Loop(PERIOD), place: Some(place), fire_from: None, span };
        observed(&run, timebase, context.interrupted)
    })?;
    Ok(Reading::samples(ratios))
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Sim;
    use hairspring_machine::sim::Script;

    use super::*;

    #[test]
    fn a_ratio_is_the_remedy_over_the_machine_as_it_is_whichever_comes_first() {
        let sim = Sim::new(Script::default());
        let interrupted = AtomicBool::new(false);
        let mut said = |_: crate::SheetProgress<'_>| {};
        let context = Context::for_test(&sim, &interrupted, &mut said);
        let mut turns = Vec::new();
        let ratios = ratios(&context, 0.1, &mut |with, span| {
            turns.push(with);
            assert!(span > Nanos::ZERO);
            Ok(if with { 10.0 } else { 40.0 })
        });
        assert_eq!(ratios.expect("both blocks have a median"), [0.25; PAIRS]);
        assert_eq!(turns, [false, true, true, false]);
    }

    #[test]
    fn a_block_without_events_is_a_reason() {
        let sim = Sim::new(Script::default());
        let interrupted = AtomicBool::new(false);
        let mut said = |_: crate::SheetProgress<'_>| {};
        let context = Context::for_test(&sim, &interrupted, &mut said);
        let absent = Absent::final_("nothing came");
        assert_eq!(ratios(&context, 0.1, &mut |_, _| Err(absent.clone())), Err(absent));
    }
}
