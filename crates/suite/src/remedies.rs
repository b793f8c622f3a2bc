//! Chapter *Remedies*: the gain from a change of settings, measured with and without it in turns.
//!
//! Only settings that end with this process are tried: no file of the system is written. The blocks come in the order A
//! B B A, so that a slow drift of the machine affects both; each pair of neighbours gives one ratio of their medians.

use hairspring_machine::{Machine, Nanos};
use hairspring_settings::IdleLatency;
use hairspring_sheet::{Absent, Method, Unit};

use crate::interleaving::{in_blocks, median, mirrored};
use crate::probe::{Context, Probes, Reading, Row, Setting, Taken};
use crate::workload::{Observed, ReactionSource, Workload, WorkloadPlace, WorkloadRun};

/// Pairs of blocks, one with the remedy and one without; in every second pair the remedy comes first.
const PAIRS: usize = 2;
/// Shares of the chapter's time.
const REACT_SHARE: f64 = 0.2;
const LOOP_SHARE: f64 = 0.15;
const SLACK_SHARE: f64 = 0.1;
/// The period of the loops.
const PERIOD: Nanos = Nanos::from_millis(1);
/// The kernel's timer slack for an ordinary thread, and the slack that periodic threads set.
const SLACK_USUAL: Nanos = Nanos::from_micros(50);
const SLACK_LEAST: Nanos = Nanos::new(1);
/// Length of a first run that does not count.
const WARM_UP: Nanos = Nanos::from_millis(5);

/// The probes of the chapter.
pub(crate) fn probes<M: Machine + Clone + Sync + 'static>() -> Probes<M> {
    let mut probes = Probes::new(
        "remedies",
        "Remedies",
        "The gain from a change of settings on this machine: a median with the remedy over the median without it, measured in turns. \
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
            "{label} under SCHED_FIFO, or as an ordinary thread if that is refused; /dev/cpu_dma_latency held at 0"
        );
        let slot = probes.row(table, Row::new(suffix, label, Unit::Ratio, Method::Derived, measures));
        probes.several_on_host(Setting::AsStarted, [slot], move |context, timebase| {
            context.say(&format!("idle states on and off, {label}"));
            let mut observe = |run: &WorkloadRun| run.observe(timebase, context.interrupted);
            let taken = can_fall_asleep().and_then(|()| idle_off(context, workload, share, &mut observe));
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
        let taken = slack(context, &mut |run| run.observe(timebase, context.interrupted));
        context.enter(slot, taken);
    });
    probes
}

const LIMITS: &str = "2 pairs of blocks with and without in each round, in half of the chapter's time";

/// Runs a workload.
type Observe<'o> = &'o mut dyn FnMut(&WorkloadRun) -> Result<Observed, Absent>;

/// The ratios of the pairs, in blocks that fill this share of the chapter; `run` does each block, with the remedy or
/// without.
fn ratios<M: Machine + Clone + Sync>(
    context: &Context<'_, M>,
    share: f64,
    run: impl Fn(bool, Nanos) -> WorkloadRun,
    observe: Observe<'_>,
) -> Result<Reading, Absent> {
    let span = Nanos::new(context.share(share).count() / (2 * PAIRS as i64));
    let pairs = in_blocks((0..PAIRS).map(mirrored), &|| context.stopped(), |arm| {
        match median(&observe(&run(arm == 1, span))?.values) {
            median if median.is_finite() => Ok(median),
            _ => Err(Absent::new("no event came within a block", "take the sheet without --quick")),
        }
    })?;
    Ok(Reading::samples(pairs.iter().map(|pair| pair[1] / pair[0].max(1.0)).collect()))
}

/// Whether the idle states can be switched off at all.
fn can_fall_asleep() -> Result<(), Absent> {
    match IdleLatency::in_force() {
        Ok(Some(0)) => Err(Absent::new(
            "another program already keeps the idle states off, so no comparison is possible",
            "end the program that holds /dev/cpu_dma_latency: `fuser -v /dev/cpu_dma_latency` names it",
        )),
        _ => Ok(()),
    }
}

fn idle_off<M: Machine + Clone + Sync>(
    context: &Context<'_, M>,
    workload: Workload,
    share: f64,
    observe: Observe<'_>,
) -> Taken {
    let mut place = WorkloadPlace { priority: Some(context.priority), slack: SLACK_LEAST, cpu: context.cpu };
    let run =
        |place, idle_off, span| WorkloadRun { workload, place: Some(place), fire_from: context.other, idle_off, span };
    let mut caveat = None;
    if observe(&run(place, false, WARM_UP)).is_err() {
        place.priority = None;
        caveat = Some("SCHED_FIFO was refused: measured as an ordinary thread");
    }
    let ratios = ratios(context, share, |with, span| run(place, with, span), observe)?;
    Ok(caveat.into_iter().fold(ratios, Reading::with_caveat))
}

fn slack<M: Machine + Clone + Sync>(context: &Context<'_, M>, observe: Observe<'_>) -> Taken {
    let run = |with, span| {
        let slack = if with { SLACK_LEAST } else { SLACK_USUAL };
        let place = Some(WorkloadPlace { priority: None, slack, cpu: context.cpu });
        WorkloadRun { workload: Workload::Loop(PERIOD), place, fire_from: None, idle_off: false, span }
    };
    ratios(context, SLACK_SHARE, run, observe)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use hairspring_machine::Sim;
    use hairspring_machine::sim::Script;

    use super::*;

    /// The row of the idle states if each block gives the result of `block`, and the number of blocks. The first run is
    /// the warm-up.
    fn taken(mut block: impl FnMut(usize, &WorkloadRun) -> Result<f64, Absent>) -> (Taken, usize) {
        let sim = Sim::new(Script::default());
        let interrupted = AtomicBool::new(false);
        let mut said = |_: crate::SheetProgress<'_>| {};
        let context = Context::for_test(&sim, &interrupted, &mut said);
        let mut blocks = 0;
        let mut observe = |run: &WorkloadRun| {
            assert!(run.span > Nanos::ZERO);
            let value = block(blocks, run)?;
            blocks += 1;
            Ok(Observed { values: vec![value], watched: run.span, ..Observed::default() })
        };
        let taken = idle_off(&context, Workload::Loop(PERIOD), 0.1, &mut observe);
        (taken, blocks)
    }

    #[test]
    fn a_ratio_is_the_remedy_over_the_machine_as_it_is_whichever_comes_first() {
        let mut turns = Vec::new();
        let (ratios, _) = taken(|_, run| {
            turns.push(run.idle_off);
            Ok(if run.idle_off { 10.0 } else { 40.0 })
        });
        assert_eq!(ratios, Ok(Reading::samples(vec![0.25; PAIRS])));
        assert_eq!(turns, [false, false, true, true, false]);
    }

    #[test]
    fn a_block_without_events_is_a_reason() {
        let (none, _) = taken(|_, _| Ok(f64::NAN));
        assert!(none.is_err_and(|absent| absent.reason.contains("no event")));
    }

    #[test]
    fn a_remedy_that_is_refused_in_mid_run_is_a_reason_and_no_block_without_it_counts_for_it() {
        let refused = Absent::final_("the device is gone");
        let (none, blocks) = taken(|block, run| match (run.idle_off, block) {
            (true, 3..) => Err(refused.clone()),
            _ => Ok(40.0),
        });
        assert_eq!((none, blocks), (Err(refused), 3));
    }
}
