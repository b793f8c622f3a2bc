//! Chapter *Disturbance*: what the machine does to a program that wants to run, and to one that wants to be woken.

mod attribution;

use hairspring_machine::{Clock, Machine, Nanos};
use hairspring_sheet::{Absent, Figure, Method, Unit};
use hairspring_time::{Cause, Watch};

use crate::context::{Class, Context, policy_refused};
use crate::registry::{ChapterDeclaration, RowDeclaration, TableDeclaration};
use crate::samples::Samples;

use attribution::Attribution;

/// Period of the wake-up test, as cyclictest's default.
const PERIOD: Nanos = Nanos::from_millis(1);
/// Shares of the chapter's time.
const GAPS_SHARE: f64 = 0.35;
const WAKEUP_SHARE: f64 = 0.28;

pub(crate) fn declare() -> ChapterDeclaration {
    let mut gaps = vec![RowDeclaration::new(
        "disturbance.gaps.lost".to_owned(),
        "time lost to all gaps".to_owned(),
        Unit::Ratio,
        Method::Rate,
        "length of all gaps over the time watched",
    )];
    for cause in Cause::ALL {
        let name = cause.name();
        gaps.push(RowDeclaration::new(
            format!("disturbance.gaps.{name}.count"),
            format!("{}, gaps", people(cause)),
            Unit::Count,
            Method::Count,
            format!("gaps above 1 µs in a polling loop under SCHED_OTHER with this cause: {}", meaning(cause)),
        ));
        gaps.push(RowDeclaration::new(
            format!("disturbance.gaps.{name}.length"),
            format!("{}, length", people(cause)),
            Unit::Ns,
            Method::Stamp,
            format!("length of these gaps: {}", meaning(cause)),
        ));
    }
    let wakeup = |id: &str, policy: &str| {
        vec![
            RowDeclaration::new(
                format!("disturbance.{id}.late"),
                format!("late, {policy}"),
                Unit::Ns,
                Method::Stamp,
                format!(
                    "how late clock_nanosleep(TIMER_ABSTIME) returns every {PERIOD} under {policy}, timer slack 1 ns"
                ),
            ),
            RowDeclaration::new(
                format!("disturbance.{id}.missed"),
                format!("missed periods, {policy}"),
                Unit::Count,
                Method::Count,
                "periods that had passed altogether before the wake-up; their lateness is counted, not skipped",
            ),
        ]
    };
    let table = |id: &str, title: &str, limits, rows| TableDeclaration {
        diagram: None,
        id: id.to_owned(),
        title: title.to_owned(),
        limits,
        rows,
    };
    let gaps_limits = "a third of the chapter's time; gaps of 1 µs and more; lengths of the first 20,000 are kept";
    let wakeup_limits = "a quarter of the chapter's time; at most 20,000 periods";
    ChapterDeclaration {
        id: "disturbance",
        title: "Disturbance",
        intro: "What the machine does to a program that wants to run, and to one that wants to be woken every millisecond. \
                On a guest an interrupt and time stolen by the hypervisor look alike, and are named so.",
        tables: vec![
            table("disturbance.gaps", "Gaps in a polling loop", gaps_limits, gaps),
            table(
                "disturbance.wakeup",
                "Wake-up every 1 ms, SCHED_FIFO",
                wakeup_limits,
                wakeup("wakeup", "SCHED_FIFO"),
            ),
            table(
                "disturbance.wakeup_other",
                "Wake-up every 1 ms, SCHED_OTHER",
                wakeup_limits,
                wakeup("wakeup_other", "SCHED_OTHER"),
            ),
        ],
    }
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
        Cause::Interrupted => "an interrupt or the firmware, for there is no hypervisor",
        Cause::InterruptedOrStolen => "an interrupt or the hypervisor, which nobody inside a guest can tell apart",
        Cause::Stolen => "the hypervisor, for this CPU handled no interrupt during the run",
        Cause::Unknown => "anything, for this machine has no sentinel",
        Cause::Preempted => "the thread was taken off its CPU, or handled a signal",
    }
}

pub(crate) fn measure<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) {
    if context.wants("disturbance.gaps") {
        measure_gaps(context);
    }
    for (class, id) in [(Class::Fifo, "disturbance.wakeup"), (Class::Other, "disturbance.wakeup_other")] {
        if context.wants(id) {
            measure_wakeup(context, class, id);
        }
    }
}

fn measure_gaps<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) {
    context.say("gaps in a polling loop");
    let machine = context.machine.clone();
    let guard = context.settings(Class::Other).apply(&machine);
    if let Some(absent) = policy_refused(&guard) {
        context.absent_under("disturbance.gaps", &absent);
        return;
    }
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
    drop(guard);
    let after = machine.cpu_counters(context.cpu);
    let attribution = Attribution::decide(&before, &after);
    if let Some(remark) = attribution.remark() {
        context.remark(remark);
    }
    let lost = verdict.lost().count() as f64 / watched.count().max(1) as f64;
    context.put("disturbance.gaps.lost", Figure::single(Unit::Ratio, Method::Rate, lost));
    for cause in Cause::ALL {
        let source = attribution.source_of(cause);
        let id = format!("disturbance.gaps.{}", cause.name());
        let none = Absent::final_(format!("no such gap in {watched}"));
        let (count, samples) = match source {
            Some(source) => {
                (verdict.gaps(source).count, std::mem::replace(&mut lengths[source as usize], Samples::new()))
            }
            None => (0, Samples::new()),
        };
        let mut figure = Figure::single(Unit::Count, Method::Count, f64::from(count));
        if samples.is_full() {
            figure = figure.with_caveat(format!("lengths were kept of the first {} only", samples.len()));
        }
        context.put(&format!("{id}.count"), figure);
        match samples.figure(Method::Stamp, &none) {
            Ok(figure) => context.put(&format!("{id}.length"), figure),
            Err(absent) => context.absent(&format!("{id}.length"), absent),
        }
    }
}

fn measure_wakeup<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, class: Class, id: &str) {
    context.say(&format!("wake-up every {PERIOD}, {}", class.kernel_name()));
    let machine = context.machine.clone();
    let settings = hairspring_time::RealTime { slack: Some(Nanos::new(1)), ..context.settings(class) };
    let guard = settings.apply(&machine);
    if let Some(absent) = policy_refused(&guard) {
        context.absent_under(id, &absent);
        return;
    }
    let mut samples = Samples::new();
    let mut missed = 0_i64;
    let start = machine.read(Clock::Monotonic);
    let end = start + context.share(WAKEUP_SHARE);
    let mut next = start + PERIOD;
    while next < end && !context.stopped() && !samples.is_full() {
        machine.sleep_until(next);
        let now = machine.read(Clock::Monotonic);
        if now < next {
            // A signal; the flag is looked at above.
            continue;
        }
        // Every period has its sample. One that passed while we slept on was missed, and its lateness counts all the same:
        // skipping it would leave out just the worst moments.
        let mut passed = 0;
        while next <= now && !samples.is_full() {
            samples.push_nanos(now - next);
            next = next + PERIOD;
            passed += 1;
        }
        missed += passed - 1;
    }
    drop(guard);
    if samples.len() == 0 && context.stopped() {
        return;
    }
    context.put(&format!("{id}.missed"), Figure::single(Unit::Count, Method::Count, missed as f64));
    match samples.figure(Method::Stamp, &Absent::final_("no period passed")) {
        Ok(figure) => context.put(&format!("{id}.late"), figure),
        Err(absent) => context.absent(&format!("{id}.late"), absent),
    }
}
