//! Chapter *Delays*: how exact the delays of this library are on this machine, under both policies.

use hairspring_machine::{Clock, Machine, Nanos};
use hairspring_sheet::{Absent, Figure, Method, Unit};
use hairspring_time::{LongDelay, Watch};

use crate::context::{Class, Context, Effort, policy_refused};
use crate::registry::{ChapterDeclaration, RowDeclaration, TableDeclaration};
use crate::samples::Samples;

/// Requests of the guaranteed minimum.
const MINIMUM: [(&str, Nanos); 6] = [
    ("1us", Nanos::from_micros(1)),
    ("2us", Nanos::from_micros(2)),
    ("3us", Nanos::from_micros(3)),
    ("5us", Nanos::from_micros(5)),
    ("10us", Nanos::from_micros(10)),
    ("100us", Nanos::from_micros(100)),
];

/// Requests of the long delay, each with its share of the chapter and its least number of samples.
const LONG: [(&str, Nanos, f64, usize); 5] = [
    ("1ms", Nanos::from_millis(1), 0.05, 20),
    ("10ms", Nanos::from_millis(10), 0.06, 10),
    ("100ms", Nanos::from_millis(100), 0.08, 3),
    ("1s", Nanos::from_secs(1), 0.30, 3),
    ("60s", Nanos::from_secs(60), 0.0, 1),
];

/// How long a stretch of polling under `SCHED_FIFO` may last before the thread sleeps for [`REST`]: well below the share
/// that the kernel leaves to others.
const STRETCH: Nanos = Nanos::from_millis(20);
const REST: Nanos = Nanos::from_millis(2);

pub(crate) fn declare() -> ChapterDeclaration {
    let mut tables = Vec::new();
    for class in Class::ALL {
        let (segment, kernel_name) = (class.segment(), class.kernel_name());
        let how = "Timebase::delay, which polls";
        let rows = by_quantity(MINIMUM.map(|(request, _)| late_and_early("minimum", segment, request, how)));
        tables.push(TableDeclaration {
            diagram: None,
            id: format!("delays.minimum.{segment}"),
            limits: "at most 20,000 delays of each request; polled in stretches of 20 ms with rests of 2 ms",
            title: format!("Guaranteed minimum, {kernel_name}"),
            rows,
        });
    }
    tables.push(TableDeclaration {
        diagram: None,
        id: "delays.step".to_owned(),
        limits: "100 batches of 500 rounds",
        title: "Poll step".to_owned(),
        rows: vec![RowDeclaration::new(
            "delays.step.poll".to_owned(),
            "one round of the polling loop".to_owned(),
            Unit::Ns,
            Method::Diff,
            "pause, counter read and watch for gaps: the grain of a guaranteed minimum",
        )],
    });
    for class in Class::ALL {
        let (segment, kernel_name) = (class.segment(), class.kernel_name());
        let rows = by_quantity(LONG.map(|(request, _, _, _)| {
            let [late, early] =
                late_and_early("long", segment, request, "LongDelay::delay, which sleeps first and polls last");
            [late, seen(segment, request), early, cpu_share(segment, request)]
        }));
        tables.push(TableDeclaration {
            diagram: None,
            id: format!("delays.long.{segment}"),
            limits: "1 s not with --quick, 60 s only with --thorough",
            title: format!("Long delay, {kernel_name}"),
            rows,
        });
    }
    ChapterDeclaration {
        id: "delays",
        title: "Delays",
        intro: "How late the delays of this library return; early must be 0. A guaranteed minimum polls and uses the whole \
                CPU; a long delay gives the CPU away and polls only the end. Lateness is what the delay itself reports, \
                from its first read to its last.",
        tables,
    }
}

fn late_and_early(kind: &str, segment: &str, request: &str, how: &str) -> [RowDeclaration; 2] {
    [
        RowDeclaration::new(
            format!("delays.{kind}.{segment}.{request}.late"),
            format!("{request} late"),
            Unit::Ns,
            Method::Stamp,
            format!("how much longer than {request} a delay took by {how}"),
        ),
        RowDeclaration::new(
            format!("delays.{kind}.{segment}.{request}.early"),
            format!("{request} early"),
            Unit::Count,
            Method::Count,
            "delays that were shorter than requested, by their own account or by stamps around the call",
        ),
    ]
}

fn seen(segment: &str, request: &str) -> RowDeclaration {
    RowDeclaration::new(
        format!("delays.long.{segment}.{request}.seen"),
        format!("{request} late, seen by caller"),
        Unit::Ns,
        Method::Stamp,
        "lateness by ordered stamps around the call: entry and return, with caches cold from sleeping, included",
    )
}

fn cpu_share(segment: &str, request: &str) -> RowDeclaration {
    RowDeclaration::new(
        format!("delays.long.{segment}.{request}.cpu_share"),
        format!("{request} CPU share"),
        Unit::Ratio,
        Method::Rate,
        "CPU time of the thread in all these delays, divided by their wall time",
    )
}

/// The rows of all requests, put in order of their quantity: all that are late, then all that are early, and so on.
fn by_quantity<const REQUESTS: usize, const QUANTITIES: usize>(
    rows: [[RowDeclaration; QUANTITIES]; REQUESTS],
) -> Vec<RowDeclaration> {
    (0..QUANTITIES).flat_map(|quantity| rows.iter().map(move |of_request| of_request[quantity].clone())).collect()
}

pub(crate) fn measure<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) {
    for class in Class::ALL {
        let (minimum, long) =
            (format!("delays.minimum.{}", class.segment()), format!("delays.long.{}", class.segment()));
        if !context.wants(&minimum) && !context.wants(&long) && !context.wants("delays.step") {
            continue;
        }
        let machine = context.machine.clone();
        let guard = context.settings(class).apply(&machine);
        if let Some(absent) = policy_refused(&guard) {
            context.absent_under(&minimum, &absent);
            context.absent_under(&long, &absent);
            continue;
        }
        for (request, span) in MINIMUM {
            measure_minimum(context, class, request, span);
        }
        if context.wants("delays.step") {
            let figure = poll_step(context);
            context.put("delays.step.poll", figure);
        }
        if context.wants(&long) {
            measure_long(context, class);
        }
    }
}

fn measure_minimum<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, class: Class, request: &str, span: Nanos) {
    let id = format!("delays.minimum.{}.{request}", class.segment());
    if !context.wants(&id) {
        return;
    }
    context.say(&format!("guaranteed minimum of {request}, {}", class.kernel_name()));
    let mut samples = Samples::new();
    let (timebase, machine) = (context.timebase.clone(), context.machine.clone());
    let until = machine.read(Clock::Monotonic) + context.share(0.014);
    let mut refused = None;
    'sampling: while !samples.is_full() && !context.stopped() {
        let stretch = machine.read(Clock::Monotonic) + STRETCH;
        loop {
            let before = timebase.stamp_ordered();
            let outcome = timebase.delay(span);
            let after = timebase.stamp_ordered();
            match outcome {
                Ok(report) => samples.push_delay(&report, timebase.nanos(after.since(before))),
                Err(error) => {
                    refused = Some(error);
                    break 'sampling;
                }
            }
            let now = machine.read(Clock::Monotonic);
            if now >= until || samples.is_full() {
                break 'sampling;
            }
            if now >= stretch {
                break;
            }
        }
        machine.sleep_until(machine.read(Clock::Monotonic) + REST);
    }
    let reason = refused.map_or_else(|| "no delay was made".to_owned(), |error| format!("failed to {error}"));
    enter(context, &id, samples, &Absent::final_(reason));
}

/// Enters lateness and early count of the delays that were made.
fn enter<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, id: &str, samples: Samples, none: &Absent) {
    let (late, early) = (format!("{id}.late"), format!("{id}.early"));
    if samples.len() == 0 {
        // An interruption is told by the runner.
        if !context.stopped() {
            context.absent_under(id, none);
        }
        return;
    }
    context.put(&early, Figure::single(Unit::Count, Method::Count, samples.early() as f64));
    let verdicts = samples.verdicts();
    match samples.figure(Method::Stamp, none) {
        Ok(figure) => context.put(&late, Figure { verdicts, ..figure }),
        Err(absent) => context.absent(&late, absent),
    }
}

/// The cost of one round of the polling loop, by loops of rounds.
fn poll_step<M: Machine + Clone + Sync>(context: &Context<'_, M>) -> Figure {
    const ROUNDS: u32 = 500;
    let timebase = &context.timebase;
    let mut samples = [0.0; 100];
    for sample in &mut samples {
        let start = timebase.stamp_ordered();
        let mut watch = Watch::begin(timebase, start);
        for _ in 0..ROUNDS {
            context.machine.relax();
            watch.look(timebase.stamp());
        }
        let ticks = timebase.stamp_ordered().since(start);
        drop(watch);
        *sample = ticks as f64 * 1e9 / timebase.calibration().rate_hz / f64::from(ROUNDS);
    }
    Figure::from_samples(Unit::Ns, Method::Diff, &mut samples)
}

fn measure_long<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, class: Class) {
    let (timebase, machine) = (context.timebase.clone(), context.machine.clone());
    let interrupted = context.interrupted;
    let mut long = LongDelay::new(&timebase).cancelled_by(interrupted);
    for (request, span, share, least) in LONG {
        let id = format!("delays.long.{}.{request}", class.segment());
        if !context.wants(&id) {
            continue;
        }
        if let Some(absent) = out_of_time(context.effort, span) {
            context.absent_under(&id, &absent);
            continue;
        }
        context.say(&format!("long delay of {request}, {}", class.kernel_name()));
        let limit = context.share(share);
        let began = machine.read(Clock::Monotonic);
        let cpu_began = machine.read(Clock::ThreadCpu);
        let (mut samples, mut seen) = (Samples::new(), Samples::new());
        while !context.stopped() && !samples.is_full() {
            let before = timebase.stamp_ordered();
            let outcome = long.delay(span);
            let after = timebase.stamp_ordered();
            let Ok(report) = outcome else { break };
            let outside = timebase.nanos(after.since(before));
            samples.push_delay(&report, outside);
            // Taken from the report where the counter's rate would add more than it resolves.
            seen.push_nanos(outside - span);
            if samples.len() >= least && machine.read(Clock::Monotonic) - began + span > limit {
                break;
            }
        }
        let cpu = machine.read(Clock::ThreadCpu) - cpu_began;
        let wall = machine.read(Clock::Monotonic) - began;
        if samples.len() > 0 {
            let share = Figure::single(Unit::Ratio, Method::Rate, cpu.count() as f64 / wall.count().max(1) as f64);
            context.put(&format!("{id}.cpu_share"), share);
            let rate_error = span.count() as f64 * timebase.calibration().bound_ppm * 1e-6;
            if let Ok(figure) = seen.figure(Method::Stamp, &Absent::final_("no delay was made")) {
                let figure = if rate_error >= 1.0 {
                    figure.with_caveat(format!("the counter's rate is known to ±{rate_error:.0} ns over {span}"))
                } else {
                    figure
                };
                context.put(&format!("{id}.seen"), figure);
            }
        }
        enter(context, &id, samples, &Absent::final_("no delay was made"));
    }
}

/// Requests that do not fit the effort.
fn out_of_time(effort: Effort, span: Nanos) -> Option<Absent> {
    match effort {
        Effort::Quick if span >= Nanos::from_secs(1) => {
            Some(Absent::new("does not fit the time of --quick", "take the sheet without --quick"))
        }
        Effort::Quick | Effort::Normal if span > Nanos::from_secs(1) => {
            Some(Absent::new("takes minutes", "take the sheet with --thorough"))
        }
        _ => None,
    }
}
