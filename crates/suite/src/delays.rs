//! Chapter *Delays*: the lateness of this library's delays on this machine, under both policies.

use hairspring_machine::{Clock, Machine, Nanos};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_time::{LongDelay, Watch};

use crate::probe::{Class, Context, Effort, Probes, Reading, Row, Samples, Setting, Slot, spin};

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

/// From this length on a delay is made in some of the rounds only.
const LONGER: Nanos = Nanos::from_millis(100);

/// Longest polling under `SCHED_FIFO` before the thread sleeps for [`REST`], so that the kernel does not throttle it.
const STRETCH: Nanos = Nanos::from_millis(20);
const REST: Nanos = Nanos::from_millis(2);

/// The probes of the chapter: for each policy the guaranteed minimum of each request, then the long delays; between
/// them the step of the polling loop.
pub(crate) fn probes<M: Machine + Clone + Sync + 'static>() -> Probes<M> {
    let mut probes = Probes::new(
        "delays",
        "Delays",
        "How late the delays of this library return; early must be 0. A guaranteed minimum polls and uses the whole \
         CPU; a long delay gives the CPU away and polls only the end. Lateness is what the caller sees, by ordered \
         stamps around the call; what the delay itself reports, from its first read to its last, stands beside it.",
    );
    let minimum = Class::ALL.map(|class| minimum_rows(&mut probes, class));
    let table = probes.table("delays.step", "Poll step", "100 batches of 500 rounds");
    let poll = probes.row(
        table,
        Row::new(
            "poll",
            "one round of the polling loop",
            Unit::Ns,
            Method::Mean,
            "pause, counter read and watch for gaps, as the mean of 500 rounds: the resolution of a guaranteed minimum",
        ),
    );
    let long = Class::ALL.map(|class| long_rows(&mut probes, class));
    for (class, (minimum, long)) in Class::ALL.into_iter().zip(minimum.into_iter().zip(long)) {
        for ((request, span), rows) in MINIMUM.into_iter().zip(minimum) {
            probes.several(Setting::Class(class), rows.all(), move |context| {
                context.say(&format!("guaranteed minimum of {request}, {}", class.kernel_name()));
                measure_minimum(context, rows, span);
            });
        }
        if class == Class::ALL[0] {
            probes.several(Setting::BestClass, [poll], move |context| context.put(poll, poll_step(context)));
        }
        let slots = long.iter().flat_map(|rows| rows.all());
        probes.several(Setting::Class(class), slots, move |context| measure_long(context, class, &long));
    }
    probes
}

/// The rows of one request of a delay.
#[derive(Clone, Copy)]
struct Rows {
    late: Slot,
    reported: Slot,
    early: Slot,
}

impl Rows {
    fn all(self) -> [Slot; 3] {
        [self.late, self.reported, self.early]
    }
}

/// The rows of one request of a long delay.
#[derive(Clone, Copy)]
struct LongRows {
    delays: Rows,
    cpu_share: Slot,
}

impl LongRows {
    fn all(self) -> [Slot; 4] {
        [self.delays.late, self.delays.reported, self.delays.early, self.cpu_share]
    }
}

/// The table of the guaranteed minimum under one policy: all rows of lateness, then all early counts.
fn minimum_rows<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>, class: Class) -> [Rows; MINIMUM.len()] {
    let table = probes.table(
        format!("delays.minimum.{}", class.segment()),
        format!("Guaranteed minimum, {}", class.kernel_name()),
        "at most 20,000 delays of each request; polled in stretches of 20 ms with rests of 2 ms",
    );
    let how = "Timebase::delay, which polls";
    let late = MINIMUM.map(|(request, _)| probes.row(table, late(request, how)));
    let reported = MINIMUM.map(|(request, _)| probes.row(table, reported(request)));
    let early = MINIMUM.map(|(request, _)| probes.row(table, early(request)));
    std::array::from_fn(|request| Rows { late: late[request], reported: reported[request], early: early[request] })
}

/// The table of the long delay under one policy, quantity by quantity.
fn long_rows<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>, class: Class) -> [LongRows; LONG.len()] {
    let table = probes.table(
        format!("delays.long.{}", class.segment()),
        format!("Long delay, {}", class.kernel_name()),
        "1 s not with --quick, 60 s only with --thorough",
    );
    let how = "LongDelay::delay, which sleeps first and polls last";
    let late = LONG.map(|(request, ..)| probes.row(table, late(request, how)));
    let reported = LONG.map(|(request, ..)| probes.row(table, reported(request)));
    let early = LONG.map(|(request, ..)| probes.row(table, early(request)));
    let cpu_share = LONG.map(|(request, ..)| probes.row(table, cpu_share(request)));
    std::array::from_fn(|request| LongRows {
        delays: Rows { late: late[request], reported: reported[request], early: early[request] },
        cpu_share: cpu_share[request],
    })
}

fn late(request: &str, how: &str) -> Row {
    Row::new(
        format!("{request}.late"),
        format!("{request} late"),
        Unit::Ns,
        Method::Stamp,
        format!("how much longer than {request} the caller of {how}, waited: ordered stamps around the call"),
    )
}

fn early(request: &str) -> Row {
    Row::new(
        format!("{request}.early"),
        format!("{request} early"),
        Unit::Count,
        Method::Count,
        "delays that were shorter than requested, by their own report or by stamps around the call",
    )
}

fn reported(request: &str) -> Row {
    Row::new(
        format!("{request}.reported"),
        format!("{request} late, by its own report"),
        Unit::Ns,
        Method::Stamp,
        "the same by the delay's report, from its first read to its last, without entry and return",
    )
}

fn cpu_share(request: &str) -> Row {
    Row::new(
        format!("{request}.cpu_share"),
        format!("{request} CPU share"),
        Unit::Ratio,
        Method::Rate,
        "CPU time of the thread in all these delays, divided by their wall time",
    )
}

fn measure_minimum<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, rows: Rows, span: Nanos) {
    let (mut samples, mut seen) = (Samples::new(), Samples::new());
    let (timebase, machine) = (context.timebase.clone(), context.machine.clone());
    let until = machine.monotonic() + context.share(0.014);
    let mut refused = None;
    'sampling: while !samples.is_full() && !context.stopped() {
        let stretch = machine.monotonic() + STRETCH;
        loop {
            let before = timebase.stamp_ordered();
            let outcome = timebase.delay(span);
            spin(0, 1);
            let after = timebase.stamp_ordered();
            match outcome {
                Ok(report) => {
                    let outside = timebase.nanos(after.since(before));
                    samples.push_delay(&report, outside);
                    seen.push_nanos(outside - span);
                }
                Err(error) => {
                    refused = Some(error);
                    break 'sampling;
                }
            }
            let now = machine.monotonic();
            if now >= until || samples.is_full() {
                break 'sampling;
            }
            if now >= stretch {
                break;
            }
        }
        machine.sleep_until(machine.monotonic() + REST);
    }
    let reason = refused.map_or_else(|| "no delay was made".to_owned(), |error| format!("failed to {error}"));
    enter(context, rows, span, samples, seen, &Absent::final_(reason));
}

/// Enters the lateness of the delays, as timed by the caller and by report, and the count of early ones.
fn enter<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    rows: Rows,
    span: Nanos,
    samples: Samples,
    seen: Samples,
    none: &Absent,
) {
    let (early, verdicts) = (samples.early() as f64, samples.verdicts());
    let rate_error = span.count() as f64 * context.timebase.calibration().bound_ppm * 1e-6;
    let seen = seen.taken(none).map(|seen| {
        let seen = seen.beyond(span).with_verdicts(verdicts);
        if rate_error >= 1.0 {
            seen.with_caveat(format!("the counter's rate is known to ±{rate_error:.0} ns over {span}"))
        } else {
            seen
        }
    });
    let reported = samples.taken(none);
    context.enter(rows.early, reported.as_ref().map(|_| Reading::single(early)).map_err(Absent::clone));
    context.enter(rows.late, seen);
    context.enter(rows.reported, reported.map(|reported| reported.beyond(span)));
}

/// The cost of one round of the polling loop, by loops of rounds.
fn poll_step<M: Machine + Clone + Sync>(context: &Context<'_, M>) -> Reading {
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
        spin(0, u64::from(ROUNDS));
        let ticks = timebase.stamp_ordered().since(start);
        drop(watch);
        *sample = ticks as f64 * 1e9 / timebase.calibration().rate_hz / f64::from(ROUNDS);
    }
    Reading::means(samples.to_vec(), f64::from(ROUNDS))
}

/// All requests with one [`LongDelay`], which learns how late the machine wakes.
fn measure_long<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, class: Class, rows: &[LongRows; LONG.len()]) {
    let (timebase, machine) = (context.timebase.clone(), context.machine.clone());
    let interrupted = context.interrupted;
    let mut long = LongDelay::new(&timebase).cancelled_by(interrupted);
    for ((request, span, share, least), rows) in LONG.into_iter().zip(rows) {
        if !context.wants_any(rows.all()) {
            continue;
        }
        if let Some(absent) = out_of_time(context.effort, span) {
            rows.all().into_iter().for_each(|slot| context.absent(slot, absent.clone()));
            continue;
        }
        let limit = context.share(share);
        let least = if span < LONGER {
            context.repeats(least)
        } else {
            // Too long to measure in every round: spread over the rounds, as many as fit.
            let all = (limit * i64::from(context.rounds)).count() / span.count();
            context.turns(usize::try_from(all).unwrap_or(0).max(least))
        };
        if least == 0 {
            context.elsewhere(rows.all());
            continue;
        }
        context.say(&format!("long delay of {request}, {}", class.kernel_name()));
        context.lengthen(&rows.all());
        let began = machine.monotonic();
        let cpu_began = machine.read(Clock::ThreadCpu);
        let (mut samples, mut seen) = (Samples::new(), Samples::new());
        while !context.stopped() && !samples.is_full() {
            let before = timebase.stamp_ordered();
            let outcome = long.delay(span);
            spin(0, 1);
            let after = timebase.stamp_ordered();
            let Ok(report) = outcome else { break };
            let outside = timebase.nanos(after.since(before));
            samples.push_delay(&report, outside);
            seen.push_nanos(outside - span);
            if samples.len() >= least && (span >= LONGER || machine.monotonic() - began + span > limit) {
                break;
            }
        }
        let cpu = machine.read(Clock::ThreadCpu) - cpu_began;
        let wall = machine.monotonic() - began;
        let none = Absent::final_("no delay was made");
        let made = if samples.len() > 0 { Ok(()) } else { Err(none.clone()) };
        let share = cpu.count() as f64 / wall.count().max(1) as f64;
        context.enter(rows.cpu_share, made.map(|()| Reading::single(share)));
        enter(context, rows.delays, span, samples, seen, &none);
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
