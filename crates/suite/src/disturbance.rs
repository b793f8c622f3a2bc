//! Chapter *Disturbance*: how the machine disturbs a program that wants to run, and one that wants to be woken.

mod attribution;

use hairspring_machine::{Instant, Machine, Nanos};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_time::{Cause, Watch};

use crate::host::system;
use crate::idle;
use crate::probe::{Class, Context, Probes, Reading, Row, SAMPLES_MOST, Samples, Setting, Slot};
use attribution::Attribution;

/// Period of the wake-up test, the same as cyclictest's default.
const PERIOD: Nanos = Nanos::from_millis(1);
/// The most periods in one call of [`periods`].
pub(crate) const PERIODS_MOST: usize = SAMPLES_MOST;
/// Shares of the chapter's time.
const GAPS_SHARE: f64 = 0.25;
/// Periods with the CPUs held out of their idle states, in all rounds together.
const HELD_PERIODS: usize = 300;
const WAKEUP_SHARE: f64 = 0.24;

/// The probes of the chapter: a polling loop, and a thread that wants to be woken, under each policy.
pub(crate) fn probes<M: Machine + Clone + Sync + 'static>() -> Probes<M> {
    let mut probes = Probes::new(
        "disturbance",
        "Disturbance",
        "How the machine disturbs a program that wants to run, and one that wants to be woken every millisecond. \
         On a guest an interrupt and time stolen by the hypervisor look alike, and are named so.",
    );
    gaps(&mut probes);
    wakeup(&mut probes, Class::Fifo, "disturbance.wakeup");
    wakeup(&mut probes, Class::Other, "disturbance.wakeup_other");
    system::disturbance(&mut probes);
    probes
}

/// The rows of the polling loop.
struct GapRows {
    lost: Slot,
    causes: Vec<CauseRows>,
}

/// The rows of the gaps with one cause.
struct CauseRows {
    cause: Cause,
    count: Slot,
    length: Slot,
}

fn gaps<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) {
    let table = probes.table(
        "disturbance.gaps",
        "Gaps in a polling loop",
        "a quarter of the chapter's time; gaps of 1 µs and more; lengths of the first 20,000 are kept",
    );
    let lost = Row::new(
        "lost",
        "time lost to all gaps",
        Unit::Ratio,
        Method::Rate,
        "length of all gaps over the time watched",
    );
    let lost = probes.row(table, lost);
    let mut of_cause = |cause: Cause| {
        let (name, people, meaning) = (cause.name(), people(cause), meaning(cause));
        let count = Row::new(
            format!("{name}.count"),
            format!("{people}, gaps"),
            Unit::Count,
            Method::Count,
            format!("gaps above 1 µs in a polling loop under SCHED_OTHER with this cause: {meaning}"),
        );
        let length = Row::new(
            format!("{name}.length"),
            format!("{people}, length"),
            Unit::Ns,
            Method::Stamp,
            format!("length of these gaps: {meaning}"),
        );
        CauseRows { cause, count: probes.row(table, count), length: probes.row(table, length) }
    };
    let causes: Vec<CauseRows> = Cause::ALL.into_iter().map(&mut of_cause).collect();
    let slots: Vec<Slot> = causes.iter().flat_map(|rows| [rows.count, rows.length]).chain([lost]).collect();
    let rows = GapRows { lost, causes };
    probes.several(Setting::Class(Class::Other), slots, move |context| measure_gaps(context, &rows));
}

fn wakeup<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>, class: Class, id: &str) {
    let policy = class.kernel_name();
    let table = probes.table(
        id,
        format!("Wake-up every 1 ms, {policy}"),
        "a quarter of the chapter's time; at most 20,000 periods",
    );
    let late = Row::new(
        "late",
        format!("late, {policy}"),
        Unit::Ns,
        Method::Stamp,
        format!("how late clock_nanosleep(TIMER_ABSTIME) returns every {PERIOD} under {policy}, timer slack 1 ns"),
    );
    let missed = Row::new(
        "missed",
        format!("missed periods, {policy}"),
        Unit::Count,
        Method::Count,
        "periods that had passed completely before the wake-up; their lateness is counted, not skipped",
    );
    let (late, missed) = (probes.row(table, late), probes.row(table, missed));
    probes.several(Setting::Punctual(class), [late, missed], move |context| {
        context.say(&format!("wake-up every {PERIOD}, {policy}"));
        measure_wakeup(context, late, missed);
        idle::remark(context);
        if class == Class::Fifo {
            idle_evidence(context, late);
        }
    });
}

fn people(cause: Cause) -> &'static str {
    match cause {
        Cause::Interrupted => "interrupted",
        Cause::InterruptedOrStolen => "interrupted or stolen",
        Cause::Stolen => "stolen",
        Cause::Unknown => "unknown",
        Cause::Preempted => "preempted",
    }
}

fn meaning(cause: Cause) -> &'static str {
    match cause {
        Cause::Interrupted => "an interrupt or the firmware, because there is no hypervisor",
        Cause::InterruptedOrStolen => "an interrupt or the hypervisor, which a guest cannot distinguish",
        Cause::Stolen => "the hypervisor, because this CPU handled no interrupt during the run",
        Cause::Unknown => "any cause, because this machine has no sentinel",
        Cause::Preempted => "the thread was taken off its CPU, or handled a signal",
    }
}

fn measure_gaps<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, rows: &GapRows) {
    context.say("gaps in a polling loop");
    let machine = context.machine.clone();
    let timebase = context.timebase.clone();
    let length = timebase.ticks_for_at_least(context.share(GAPS_SHARE));
    let mut lengths: Vec<Samples> = Cause::ALL.iter().map(|_| Samples::new()).collect();
    let before = machine.cpu_counters(context.cpu);
    let start = timebase.stamp_ordered();
    let mut watch = Watch::begin(&timebase, start);
    let mut now = start;
    let mut looks = 0_u32;
    while now.since(start) < length {
        machine.relax();
        now = timebase.stamp();
        if let Some((cause, gap)) = watch.look(now) {
            lengths[cause as usize].push_nanos(gap);
        }
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(1 << 16) && context.stopped() {
            break;
        }
    }
    let verdict = watch.end();
    let watched = timebase.nanos(timebase.stamp_ordered().since(start));
    let after = machine.cpu_counters(context.cpu);
    let attribution = Attribution::decide(&before, &after);
    if let Some(remark) = attribution.remark() {
        context.remark(remark);
    }
    let lost = verdict.lost().count() as f64 / watched.count().max(1) as f64;
    context.put(rows.lost, Reading::single(lost));
    for rows in &rows.causes {
        let source = attribution.source_of(rows.cause);
        let (count, samples) = match source {
            Some(source) => {
                (verdict.gaps(source).count, std::mem::replace(&mut lengths[source as usize], Samples::new()))
            }
            None => (0, Samples::new()),
        };
        let mut reading = Reading::single(f64::from(count));
        if samples.is_full() {
            reading = reading.with_caveat(format!("only the lengths of the first {} were kept", samples.len()));
        }
        context.put(rows.count, reading);
        context.put(rows.length, Reading::watched(samples.into_values(), watched));
    }
}

fn measure_wakeup<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, late: Slot, missed_periods: Slot) {
    let mut samples = Samples::new();
    let machine = context.machine.clone();
    let (_, missed) = periods(&machine, PERIOD, context.share(WAKEUP_SHARE), || context.stopped(), &mut samples);
    let taken = samples.taken(&Absent::final_("no period passed"));
    if taken.is_ok() || !context.stopped() {
        context.put(missed_periods, Reading::single(missed as f64));
    }
    let overhead = context.stamps.kernel_pair_ns;
    context.enter(late, taken.map(|late| late.beyond(PERIOD).with_overhead(overhead)));
}

/// Measures more wake-ups while the CPUs are held out of their idle states, for comparison.
fn idle_evidence<M: Machine + Clone + Sync + 'static>(context: &mut Context<'_, M>, late: Slot) {
    if context.host_timebase().is_none() || context.stopped() {
        return;
    }
    let held = system::hold_awake().map(|held| {
        let (machine, mut samples) = (context.machine.clone(), Samples::new());
        let span = PERIOD * i64::try_from(context.repeats(HELD_PERIODS)).unwrap_or(1);
        periods(&machine, PERIOD, span, || context.stopped(), &mut samples);
        drop(held);
        samples
    });
    let text = idle::evidence(context.median(late), held.and_then(|samples| samples.median()));
    context.remark(text);
}

/// Sleeps to the end of each period for this long, until it is stopped or the samples are full. Enters the lateness of
/// each wake-up, and returns the end of the first period and the number of periods that had passed completely before a
/// wake-up.
pub(crate) fn periods<M: Machine>(
    machine: &M,
    period: Nanos,
    span: Nanos,
    stopped: impl Fn() -> bool,
    samples: &mut Samples,
) -> (Instant, i64) {
    let mut missed = 0_i64;
    let start = machine.monotonic();
    let end = start + span;
    let first = start + period;
    let mut next = first;
    while next < end && !stopped() && !samples.is_full() {
        machine.sleep_until(next);
        let now = machine.monotonic();
        if now < next {
            // Interrupted by a signal; the flag is checked above.
            continue;
        }
        // Every period has its sample. A period that passed during the sleep was missed, but its lateness counts:
        // skipping it would leave out the worst moments.
        let mut passed = 0;
        while next <= now && !samples.is_full() {
            samples.push_nanos(now - next);
            next += period;
            passed += 1;
        }
        missed += passed - 1;
    }
    (first, missed)
}
