//! The JSON of `hairspring:clock`: the facts about time, and values derived from them for readers that compute nothing.

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::units::Frames;
use hairspring_source::SenderCount;
use hairspring_source::external::{ExternalBracket, ExternalFacts, ExternalKind};
use serde::{Deserialize, Serialize};

use super::About;
use crate::clock::axis::{FrameTime, TimeAxis};
use crate::clock::external::{ExternalReading, ExternalSilence, ExternalStep};
use crate::clock::{ClockChange, ClockChangeKind, ClockPair, ClockRecord, ClockReference, Mark, MarkSource};

#[derive(Serialize, Deserialize)]
pub(super) struct Clock {
    #[serde(default)]
    boot_id: Option<String>,
    #[serde(default)]
    reference: Option<Reference>,
    #[serde(default)]
    pairs: Vec<Pair>,
    #[serde(default)]
    marks: Vec<MarkAt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sender_count: Option<Count>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external: Option<External>,
    /// Values derived from the above. Reading ignores them and computes them again.
    #[serde(flatten, skip_deserializing)]
    derived: Option<Derived>,
}

#[derive(Serialize)]
struct Derived {
    frame0: Option<Frame0>,
    rate_hz: Option<[f64; 2]>,
    rate_ppb: Option<[f64; 2]>,
    over_ns: i64,
    off_line_ns: i64,
    steps: Vec<Step>,
}

#[derive(Serialize)]
struct Frame0 {
    monotonic_ns: [i64; 2],
    how: &'static str,
}

#[derive(Serialize, Deserialize)]
struct Reference {
    synchronised: bool,
    max_error_ns: i64,
    read_monotonic_ns: i64,
}

#[derive(Serialize, Deserialize)]
struct Pair {
    monotonic_ns: i64,
    realtime_ns: i64,
    raw_ns: i64,
    suspended_ns: i64,
    within_ns: i64,
}

#[derive(Serialize, Deserialize)]
struct MarkAt {
    frame: u64,
    monotonic_ns: [i64; 2],
    how: String,
}

#[derive(Serialize, Deserialize)]
struct Count {
    frame: u64,
    number: u64,
    frames_each: u32,
    bits: u8,
}

#[derive(Serialize, Deserialize)]
struct External {
    kind: String,
    id: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    late_ns: i64,
    #[serde(default)]
    readings: Vec<Reading>,
    #[serde(default)]
    silences: Vec<Silence>,
    /// As in [`Clock`].
    #[serde(flatten, skip_deserializing)]
    derived: Option<ExternalDerived>,
}

#[derive(Serialize)]
struct ExternalDerived {
    ticks_per_s: u32,
    monotonic_ppb: Option<[f64; 2]>,
    over_ns: Option<i64>,
    off_line_ns: Option<i64>,
    steps: Vec<ExternalStepAt>,
    rate_hz: Option<[f64; 2]>,
    rate_ppb: Option<[f64; 2]>,
}

#[derive(Serialize, Deserialize)]
struct Reading {
    ticks: i64,
    monotonic_ns: [i64; 2],
    how: String,
}

#[derive(Serialize, Deserialize)]
struct Silence {
    monotonic_ns: [i64; 2],
    gone: bool,
}

#[derive(Serialize)]
struct ExternalStepAt {
    monotonic_ns: [i64; 2],
    by_ns: i64,
}

#[derive(Serialize)]
struct Step {
    kind: &'static str,
    monotonic_ns: [i64; 2],
    /// The frames between which it happened.
    frame: Option<[i64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_ppb: Option<[f64; 2]>,
}

fn ns(instant: Instant) -> i64 {
    instant.as_monotonic().count()
}

fn instant(ns: i64) -> Instant {
    Instant::from_monotonic(Nanos::new(ns))
}

/// The object; `None` if nothing is known.
pub(super) fn written(about: &About) -> Option<Clock> {
    let (clock, axis) = (&about.clock, about.time_axis());
    (!clock.is_empty()).then(|| Clock {
        boot_id: clock.boot_id.map(|id| id.to_string()),
        reference: clock.reference.map(|reference| Reference {
            synchronised: reference.synchronized,
            max_error_ns: reference.most_error.count(),
            read_monotonic_ns: ns(reference.asked),
        }),
        pairs: clock.pairs().iter().map(pair).collect(),
        marks: clock.marks().iter().map(mark).collect(),
        sender_count: clock.count.map(|SenderCount { frame, number, frames_each, bits }| Count {
            frame: frame.0,
            number,
            frames_each,
            bits,
        }),
        external: clock.external.as_ref().map(|facts| external(facts, about)),
        derived: Some(Derived {
            frame0: clock
                .frame0()
                .map(|mark| Frame0 { monotonic_ns: [mark.earliest, mark.latest].map(ns), how: mark.how.name() }),
            rate_hz: axis.rate_hz(),
            rate_ppb: about.rate.and_then(|rate| axis.rate_ppb(rate)),
            over_ns: axis.over().count(),
            off_line_ns: axis.off_line().count(),
            steps: clock.changes().iter().map(|change| step(change, &axis)).collect(),
        }),
    })
}

fn external(facts: &ExternalFacts, about: &About) -> External {
    let (clock, rate) = (&about.clock, about.clock.external_rate());
    let reading = |it: &ExternalReading| Reading {
        ticks: it.ticks,
        monotonic_ns: [it.earliest, it.latest].map(ns),
        how: it.how.name().to_owned(),
    };
    let silence = |it: &ExternalSilence| Silence { monotonic_ns: [it.after, it.before].map(ns), gone: it.is_gone };
    let steps = clock.external_steps().into_iter();
    let step = |it: ExternalStep| ExternalStepAt { monotonic_ns: [it.after, it.before].map(ns), by_ns: it.by.count() };
    External {
        kind: facts.kind.name().to_owned(),
        id: facts.id.clone(),
        name: facts.name.clone(),
        late_ns: facts.late.count(),
        readings: clock.external_readings().iter().map(reading).collect(),
        silences: clock.external_silences().iter().map(silence).collect(),
        derived: Some(ExternalDerived {
            ticks_per_s: facts.kind.ticks_per_s(),
            monotonic_ppb: rate.map(|rate| rate.ppb),
            over_ns: rate.map(|rate| rate.over.count()),
            off_line_ns: rate.map(|rate| rate.off_line.count()),
            steps: steps.map(step).collect(),
            rate_hz: about.external_rate_hz(),
            rate_ppb: about.external_rate_ppb(),
        }),
    }
}

fn pair(pair: &ClockPair) -> Pair {
    Pair {
        monotonic_ns: ns(pair.monotonic),
        realtime_ns: pair.realtime.count(),
        raw_ns: pair.raw.count(),
        suspended_ns: pair.suspended.count(),
        within_ns: pair.within.count(),
    }
}

fn mark(mark: &Mark) -> MarkAt {
    let monotonic_ns = [mark.earliest, mark.latest].map(ns);
    MarkAt { frame: mark.frame.0, monotonic_ns, how: mark.how.name().to_owned() }
}

fn step(change: &ClockChange, axis: &TimeAxis) -> Step {
    let time = FrameTime { earliest: change.after, latest: change.before };
    let (kind, by_ns, rate_ppb) = match change.kind {
        ClockChangeKind::Step(by) => ("step", Some(by.count()), None),
        ClockChangeKind::Suspend(by) => ("suspend", Some(by.count()), None),
        ClockChangeKind::Slew(before, after) => ("slew", None, Some([before, after])),
    };
    let frame = axis.frames_at(time).map(|(first, last)| [first, last]);
    Step { kind, monotonic_ns: [change.after, change.before].map(ns), frame, by_ns, rate_ppb }
}

/// The facts in an object. Marks that are impossible are left out.
pub(super) fn read(clock: Clock) -> ClockRecord {
    let mut record = ClockRecord::default();
    record.boot_id = clock.boot_id.and_then(|id| id.parse().ok());
    record.reference = clock.reference.map(|reference| ClockReference {
        synchronized: reference.synchronised,
        most_error: Nanos::new(reference.max_error_ns),
        asked: instant(reference.read_monotonic_ns),
    });
    for pair in clock.pairs {
        record.pair(ClockPair {
            monotonic: instant(pair.monotonic_ns),
            realtime: Nanos::new(pair.realtime_ns),
            raw: Nanos::new(pair.raw_ns),
            suspended: Nanos::new(pair.suspended_ns),
            within: Nanos::new(pair.within_ns),
        });
    }
    for MarkAt { frame, monotonic_ns, how } in clock.marks {
        let [earliest, latest] = monotonic_ns.map(instant);
        let how = MarkSource::ALL.into_iter().find(|known| known.name() == how).unwrap_or(MarkSource::Arrival);
        record.mark(Mark { frame: Frames(frame), earliest, latest, how });
    }
    if let Some(external) = clock.external {
        read_external(&mut record, external);
    }
    let is_possible = |count: &Count| count.frames_each > 0 && (1..=64).contains(&count.bits);
    record.count = clock.sender_count.filter(is_possible).map(|Count { frame, number, frames_each, bits }| {
        SenderCount { frame: Frames(frame), number, frames_each, bits }
    });
    record
}

/// An external clock of a kind that this version does not know is left out, with its readings.
fn read_external(record: &mut ClockRecord, external: External) {
    let Some(kind) = ExternalKind::ALL.into_iter().find(|known| known.name() == external.kind) else { return };
    let late = Nanos::new(external.late_ns);
    record.external = Some(ExternalFacts { kind, id: external.id, name: external.name, late });
    for Reading { ticks, monotonic_ns, how } in external.readings {
        let [earliest, latest] = monotonic_ns.map(instant);
        let how = ExternalBracket::ALL.into_iter().find(|known| known.name() == how).unwrap_or(ExternalBracket::Plain);
        record.external_reading(ExternalReading { ticks, earliest, latest, how });
    }
    for Silence { monotonic_ns, gone } in external.silences {
        let [after, before] = monotonic_ns.map(instant);
        record.external_silence(ExternalSilence { after, before, is_gone: gone });
    }
}
