//! Chapter *Sleeps*: lateness of the operating system's sleeps, from a microsecond to a second, compared with this
//! library's.

use hairspring_machine::{Machine, Nanos, SleepCall};
use hairspring_sheet::{Absent, Axis, Method, Point, Series, SeriesLine, Unit};
use hairspring_time::{LongDelay, Timebase};

use crate::host::system::METHODS;
use crate::probe::{Class, Context, Effort, Probes, Row, Samples, Setting, Slot, spin};

/// Requests: segment, span, and number of samples with normal effort.
const REQUESTS: [(&str, Nanos, usize); 17] = [
    ("1us", Nanos::from_micros(1), 300),
    ("2us", Nanos::from_micros(2), 300),
    ("5us", Nanos::from_micros(5), 300),
    ("10us", Nanos::from_micros(10), 300),
    ("20us", Nanos::from_micros(20), 200),
    ("50us", Nanos::from_micros(50), 200),
    ("100us", Nanos::from_micros(100), 200),
    ("200us", Nanos::from_micros(200), 150),
    ("500us", Nanos::from_micros(500), 100),
    ("1ms", Nanos::from_millis(1), 60),
    ("2ms", Nanos::from_millis(2), 30),
    ("5ms", Nanos::from_millis(5), 12),
    ("10ms", Nanos::from_millis(10), 8),
    ("20ms", Nanos::from_millis(20), 5),
    ("100ms", Nanos::from_millis(100), 2),
    ("1s", Nanos::from_secs(1), 1),
    ("10s", Nanos::from_secs(10), 0),
];

/// From this length on a sleep is made in some of the rounds only.
const LONGER: Nanos = Nanos::from_millis(100);
/// Below this length our candidate is the guaranteed minimum; from here on the long delay.
const LONG_FROM: Nanos = Nanos::from_millis(1);

/// The one probe of the chapter: every method takes its turn at each request.
pub(crate) fn probes<M: Machine + Clone + Sync + 'static>() -> Probes<M> {
    let mut probes = Probes::new(
        "sleeps",
        "Sleeps",
        "How much longer than requested the operating system's sleeps take for an ordinary program (SCHED_OTHER, default \
         timer slack), and ours, by stamps around the call.",
    );
    let rows: Vec<[Slot; REQUESTS.len()]> = METHODS.iter().map(|method| rows(&mut probes, *method)).collect();
    let slots: Vec<Slot> = rows.iter().flatten().copied().collect();
    probes.several(Setting::Class(Class::Other), slots, move |context| {
        measure(context, &rows);
        crate::idle::remark(context);
    });
    probes
}

/// The table of one method, with a row for each request.
fn rows<M: Machine + Clone + Sync + 'static>(
    probes: &mut Probes<M>,
    (segment, name, call): (&str, &str, Option<SleepCall>),
) -> [Slot; REQUESTS.len()] {
    let table = probes.table(
        format!("sleeps.{segment}"),
        name,
        "300 sleeps of the shortest request down to one of 1 s; from 100 ms on not with --quick, 10 s only with --thorough",
    );
    REQUESTS.map(|(request, span, _)| {
        let how = match call {
            Some(_) => format!("{name}({request})"),
            None if span < LONG_FROM => format!("Timebase::delay({request})"),
            None => format!("LongDelay::delay({request})"),
        };
        let measures = format!("how much longer than {request} the call {how} took, by stamps around it");
        probes.row(table, Row::new(format!("{request}.late"), request, Unit::Ns, Method::Stamp, measures))
    })
}

fn measure<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, rows: &[[Slot; REQUESTS.len()]]) {
    let timebase = context.timebase.clone();
    let interrupted = context.interrupted;
    let mut long = LongDelay::new(&timebase).cancelled_by(interrupted);
    let mut lines: Vec<SeriesLine> = METHODS
        .iter()
        .map(|(_, name, _)| SeriesLine { name: (*name).to_owned(), points: Vec::new(), fitted: false })
        .collect();
    for (index, (request, span, usual)) in REQUESTS.into_iter().enumerate() {
        let slots = rows.iter().map(|rows| rows[index]);
        if !context.wants_any(slots.clone()) {
            continue;
        }
        let Some(count) = samples_wanted(context.effort, span, usual) else {
            let remedy = match usual {
                0 => "take the sheet with --thorough",
                _ => "take the sheet without --quick",
            };
            let absent = Absent::new("does not fit the time of this effort", remedy);
            slots.for_each(|slot| context.absent(slot, absent.clone()));
            continue;
        };
        let count = if span < LONGER { context.repeats(count) } else { context.turns(count) };
        if count == 0 {
            context.elsewhere(slots);
            continue;
        }
        context.say(&format!("sleeps of {request}"));
        for (((_, _, call), slot), line) in METHODS.iter().zip(slots).zip(&mut lines) {
            if !context.wants(slot) {
                continue;
            }
            let mut samples = Samples::new();
            context.lengthen(&[slot]);
            for _ in 0..count {
                if context.stopped() {
                    break;
                }
                // A sleep that a signal cut short has no lateness.
                if let Some(late) = one(&timebase, &mut long, *call, span) {
                    samples.push_nanos(late);
                }
            }
            if let (Some(y), Some((low, high))) = (samples.median(), samples.range()) {
                let range = samples.len() > 1;
                let (low, high) = (range.then_some(low), range.then_some(high));
                line.points.push(Point { x: span.count() as f64, y, low, high });
            }
            let taken = samples.taken(&Absent::final_("a signal ended every sleep"));
            let overhead = context.stamps.kernel_pair_ns;
            context.enter(slot, taken.map(|late| late.beyond(span).with_overhead(overhead)));
        }
    }
    lines.retain(|line| !line.points.is_empty());
    if !lines.is_empty() {
        context.series.push(lateness(lines.clone()));
        context.series.extend(error_ratio(&lines));
    }
}

/// One sleep: its excess over the request, timed by its caller; none if a signal cut it short.
fn one<M: Machine + Clone>(
    timebase: &Timebase<M>,
    long: &mut LongDelay<'_, M>,
    call: Option<SleepCall>,
    span: Nanos,
) -> Option<Nanos> {
    let machine = timebase.machine();
    // Uses the kernel's clock, which judges every method here: a rate error would show at a second.
    let before = machine.monotonic();
    match call {
        Some(call) => {
            if machine.sleep(call, span) == hairspring_machine::Woken::Signal {
                return None;
            }
        }
        None if span < LONG_FROM => drop(timebase.delay(span).ok()?),
        None => drop(long.delay(span).ok()?),
    }
    spin(0, 1);
    Some(machine.monotonic() - before - span)
}

/// The number of samples of this effort in all rounds; none if there are none.
fn samples_wanted(effort: Effort, span: Nanos, usual: usize) -> Option<usize> {
    match effort {
        Effort::Quick if span >= Nanos::from_millis(100) => None,
        Effort::Quick => Some((usual / 4).max(2)),
        Effort::Normal if usual == 0 => None,
        Effort::Normal => Some(usual),
        Effort::Thorough => Some((usual * 5).max(1)),
    }
}

fn lateness(lines: Vec<SeriesLine>) -> Series {
    Series {
        id: "sleeps.lateness".to_owned(),
        title: "How late each method returns".to_owned(),
        x: Axis { label: "requested delay".to_owned(), unit: Unit::Ns, log: true },
        y: Axis { label: "lateness, median".to_owned(), unit: Unit::Ns, log: true },
        lines,
    }
}

/// The error of each method over ours at the same request, as figures 2 and 3 of Fermilab's note on the calibrated TSC
/// show it for `usleep` and `Sleep`.
fn error_ratio(lines: &[SeriesLine]) -> Option<Series> {
    let (ours, others) = lines.split_last().filter(|(ours, _)| ours.name == METHODS[METHODS.len() - 1].1)?;
    let ratio = |point: &Point| {
        let own = ours.points.iter().find(|own| own.x == point.x && own.y > 0.0)?;
        Some(Point { x: point.x, y: point.y / own.y, low: None, high: None })
    };
    let lines: Vec<SeriesLine> = others
        .iter()
        .map(|line| SeriesLine {
            name: line.name.clone(),
            points: line.points.iter().filter_map(ratio).collect(),
            fitted: false,
        })
        .filter(|line| !line.points.is_empty())
        .collect();
    (!lines.is_empty()).then(|| Series {
        id: "sleeps.error_ratio".to_owned(),
        title: "Error ratio: lateness of each method over ours".to_owned(),
        x: Axis { label: "requested delay".to_owned(), unit: Unit::Ns, log: true },
        y: Axis { label: "error ratio".to_owned(), unit: Unit::Ratio, log: true },
        lines,
    })
}
