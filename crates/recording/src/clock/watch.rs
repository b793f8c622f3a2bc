//! [`ClockWatch`]: decides when a recording reads the clocks, and makes marks from the counts and stamps of its source.
//!
//! A state machine without threads. The thread that serves the source calls [`ClockWatch::look`] after each call of the
//! source; most looks cost at most one reading of the clock. The watch hands on each note when it is due: the time of
//! frame 0 with the first data, then a pair and a mark after 250 ms, and again after twice as long each time, up to a
//! minute.

use hairspring_machine::{Instant, Machine, Nanos};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames};
use hairspring_source::{FrameStamp, Next, SenderCount, Source, StampTime};

use super::{ClockNote, ClockPair, Mark, MarkSource};
use crate::beginning::Beginning;

/// The first span between two marks. Short recordings get some marks, too.
const FIRST_SPAN: Nanos = Nanos::from_millis(250);
/// The longest.
const LONGEST_SPAN: Nanos = Nanos::from_secs(60);
/// A stamp is a whole number of nanoseconds.
const STAMP_STEP: Nanos = Nanos::new(1);

/// Takes pairs and marks while a source is served.
#[derive(Debug)]
pub struct ClockWatch {
    layout: Layout,
    begins_with_data: bool,
    started: Instant,
    /// The last look that emptied the source: when it began, and the frames produced by then.
    empty: Option<(Instant, Frames)>,
    seen: Frames,
    pair: ClockPair,
    /// The newest frame that arrived between two looks.
    arrived: Option<Mark>,
    /// The last mark handed on, so that no mark is handed on twice.
    marked: Option<Mark>,
    due: Instant,
    span: Nanos,
    wanted: bool,
    /// The sender's counter as it was handed on last.
    count: Option<SenderCount>,
}

impl ClockWatch {
    /// Watches a source that is started now: `pair` was taken before the call.
    pub fn new(source: &dyn Source, pair: ClockPair) -> Self {
        let started = pair.monotonic - pair.within;
        Self {
            layout: source.describe().layout,
            begins_with_data: source.begins_with_data(),
            started,
            empty: Some((started, Frames(0))),
            seen: Frames(0),
            pair,
            arrived: None,
            marked: None,
            due: Instant::END,
            span: FIRST_SPAN,
            wanted: false,
            count: None,
        }
    }

    /// Looks at a source that was called at `called` and asked for `next`. Real-time safe, if `hand_on` is.
    pub fn look(
        &mut self,
        machine: &impl Machine,
        called: Instant,
        source: &dyn Source,
        next: Next,
        hand_on: &mut dyn FnMut(ClockNote),
    ) {
        let count = source.sender_count();
        if let Some(count) = count.filter(|count| self.count.replace(*count) != Some(*count)) {
            hand_on(ClockNote::Count(count));
        }
        let produced = self.layout.frames_in(Bytes(source.counters().produced_bytes));
        if called >= self.due {
            self.read_clocks(machine, hand_on);
            self.wanted = true;
            self.due = called + self.span;
            self.span = (self.span + self.span).min(LONGEST_SPAN);
        }
        if produced > self.seen {
            let latest = machine.monotonic();
            let first = self.seen.0 == 0;
            // The first of the new frames was not there at the last look, if that look emptied the source.
            let earliest = self.empty.filter(|(_, frames)| *frames == self.seen).map(|(at, _)| at);
            let how = if self.begins_with_data { MarkSource::FirstData } else { MarkSource::Start };
            self.arrived = earliest.map(|earliest| Mark {
                frame: self.seen,
                earliest: if first && !self.begins_with_data { self.started } else { earliest },
                latest,
                how: if first { how } else { MarkSource::Arrival },
            });
            self.seen = produced;
            if first {
                self.read_clocks(machine, hand_on);
                self.first_frame(source, hand_on);
                (self.due, self.span) = (latest + FIRST_SPAN, FIRST_SPAN + FIRST_SPAN);
            } else if self.wanted {
                self.mark(source, hand_on);
            }
        }
        if matches!(next, Next::Readable(_)) {
            self.empty = Some((called, produced));
        }
    }

    /// Takes the last pair and the last mark.
    pub fn end(&mut self, machine: &impl Machine, source: &dyn Source, hand_on: &mut dyn FnMut(ClockNote)) {
        self.read_clocks(machine, hand_on);
        if self.seen.0 > 0 {
            self.mark(source, hand_on);
        }
    }

    fn read_clocks(&mut self, machine: &impl Machine, hand_on: &mut dyn FnMut(ClockNote)) {
        self.pair = ClockPair::take(machine);
        hand_on(ClockNote::Pair(self.pair));
    }

    fn first_frame(&mut self, source: &dyn Source, hand_on: &mut dyn FnMut(ClockNote)) {
        let stamped = source.first_stamp().and_then(|stamp| self.stamped(stamp)).filter(|mark| mark.frame.0 == 0);
        let Some(mark) = stamped.or(self.arrived) else { return };
        if let Some(realtime) = self.pair.realtime_at(mark.latest) {
            // The pair may be off by this amount in either direction.
            let unsure = self.pair.within;
            let within = mark.latest - mark.earliest + unsure + unsure;
            let (monotonic, realtime) = (mark.latest + unsure, realtime + unsure);
            hand_on(ClockNote::Frame0(Beginning { monotonic, realtime, within }, mark.how));
        }
        self.hand_on(mark, hand_on);
    }

    fn mark(&mut self, source: &dyn Source, hand_on: &mut dyn FnMut(ClockNote)) {
        let stamped = source.newest_stamp().and_then(|stamp| self.stamped(stamp));
        if let Some(mark) = stamped.or(self.arrived) {
            self.hand_on(mark, hand_on);
        }
    }

    fn hand_on(&mut self, mark: Mark, hand_on: &mut dyn FnMut(ClockNote)) {
        self.wanted = false;
        if self.marked.replace(mark) != Some(mark) {
            hand_on(ClockNote::Mark(mark));
        }
    }

    /// The mark of a frame that the source or the kernel has stamped. A stamp in the time of day is converted by the
    /// pair just taken. The kernel stamps before the program sees the datagram, so a later stamp, after a step of the
    /// clock, is not trusted.
    fn stamped(&self, stamp: FrameStamp) -> Option<Mark> {
        let (earliest, latest, how) = match stamp.taken {
            StampTime::Monotonic(at) => (at, at, MarkSource::Card),
            StampTime::Between(earliest, latest) => (earliest, latest, MarkSource::Card),
            StampTime::Realtime(time) => {
                let (at, within) = (self.pair.monotonic_at(time)?, self.pair.within);
                (at - within, at + within, MarkSource::Kernel)
            }
        };
        let earliest = earliest - STAMP_STEP;
        let is_possible = earliest <= self.pair.monotonic && latest >= self.started;
        is_possible.then_some(Mark { frame: stamp.frame, earliest, latest, how })
    }
}

#[cfg(test)]
mod tests {
    use hairspring_machine::sim::{Disturbance, Script};
    use hairspring_machine::{Sim, SleepCall};
    use hairspring_ring::{Producer, SampleRate};
    use hairspring_source::{SourceCounters, SourceDescription};
    use proptest::prelude::*;

    use super::super::axis::TimeAxis;
    use super::super::{ClockChangeKind, ClockRecord};
    use super::*;

    /// A source in the time of the simulated computer.
    struct Steady {
        produced: u64,
        start: Option<FrameStamp>,
        stamp: Option<FrameStamp>,
    }

    impl Source for Steady {
        fn describe(&self) -> SourceDescription {
            SourceDescription {
                layout: Layout::analogue(1, 16).expect("exists"),
                rate: SampleRate::hz(1000),
                clocked: true,
                fifo: Bytes(0),
                hardware: "test".to_owned(),
                pattern: None,
            }
        }
        fn start(&mut self, _now: Instant) {}
        fn service(&mut self, now: Instant, _ring: &mut Producer) -> Next {
            Next::Readable(now)
        }
        fn stop(&mut self, now: Instant, ring: &mut Producer) -> Next {
            self.service(now, ring)
        }
        fn begins_with_data(&self) -> bool {
            true
        }
        fn counters(&self) -> SourceCounters {
            SourceCounters { produced_bytes: self.produced * 2, ..SourceCounters::default() }
        }
        fn first_stamp(&self) -> Option<FrameStamp> {
            self.start
        }
        fn newest_stamp(&self) -> Option<FrameStamp> {
            self.stamp
        }
    }

    /// The record and the reads of a recording of a sender of 1000 frames a second, after `looks` looks of 10 ms.
    /// `lose` frames vanish without notice after a third of them; after half of them `disturbance` happens.
    fn watched(
        looks: u64,
        lose: u64,
        disturbance: Option<Disturbance>,
        stamps: bool,
    ) -> (ClockRecord, Vec<ClockNote>, Instant) {
        let sim = Sim::new(Script::default());
        let mut notes = Vec::new();
        let mut source = Steady { produced: 0, start: None, stamp: None };
        let pair = ClockPair::take(&sim);
        let mut watch = ClockWatch::new(&source, pair);
        let mut record = ClockRecord::default();
        record.pair(pair);
        let begin = sim.monotonic() + Nanos::from_millis(500);
        for look in 0..looks {
            sim.sleep(SleepCall::ClockNanosleep, Nanos::from_millis(10));
            if let Some(disturbance) = disturbance.filter(|_| look == looks / 2) {
                sim.disturb(sim.true_time(), disturbance);
            }
            let called = sim.monotonic();
            let sent = (called - begin).count().div_euclid(1_000_000) + 1;
            let vanished = if look > looks / 3 { lose } else { 0 };
            source.produced = source.produced.max(u64::try_from(sent).unwrap_or(0).saturating_sub(vanished));
            if stamps && source.produced > 0 {
                let frame = Frames(source.produced - 1);
                let taken = begin + Nanos::from_millis((frame.0 + vanished) as i64);
                let stamp = FrameStamp { frame, taken: StampTime::Monotonic(taken) };
                source.stamp = Some(stamp);
                source.start.get_or_insert(FrameStamp { frame: Frames(0), taken: StampTime::Monotonic(begin) });
            }
            watch.look(&sim, called, &source, Next::Readable(called), &mut |note| notes.push(note));
        }
        watch.end(&sim, &source, &mut |note| notes.push(note));
        for note in &notes {
            match note {
                ClockNote::Pair(pair) => record.pair(*pair),
                ClockNote::Mark(mark) => record.mark(*mark),
                _ => {}
            }
        }
        (record, notes, begin)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn every_frame_has_a_time_that_holds(looks in 100..3000_u64, stamps: bool) {
            let (record, notes, begin) = watched(looks, 0, None, stamps);
            let axis = TimeAxis::new(&record, true);
            prop_assert_eq!(axis.off_line(), Nanos::ZERO);
            for frame in [0, 1, 100, 200] {
                let time = axis.time_of(Frames(frame)).expect("bounded");
                let truth = begin + Nanos::from_millis(frame as i64);
                prop_assert!(time.earliest <= truth && truth <= time.latest, "{frame} {time:?} {truth:?}");
            }
            let first = notes.iter().find_map(|note| match note {
                ClockNote::Frame0(beginning, how) => Some((*beginning, *how)),
                _ => None,
            });
            let (beginning, how) = first.expect("data came");
            prop_assert!(beginning.monotonic - beginning.within <= begin && begin <= beginning.monotonic);
            prop_assert_eq!(how, if stamps { MarkSource::Card } else { MarkSource::FirstData });
            prop_assert_eq!(record.frame0().map(|mark| mark.how), Some(how));
            prop_assert_eq!(record.changes(), []);
        }
    }

    #[test]
    fn frames_that_vanish_without_notice_leave_no_line() {
        for stamps in [false, true] {
            let (record, ..) = watched(2000, 100, None, stamps);
            let off = TimeAxis::new(&record, true).off_line();
            assert!(off > Nanos::from_millis(10), "{off} with stamps: {stamps}");
        }
    }

    #[test]
    fn a_suspend_is_told_and_moves_no_mark() {
        let (record, ..) = watched(1000, 0, Some(Disturbance::Suspend(Nanos::from_secs(3))), false);
        let [change] = record.changes()[..] else { panic!("{:?}", record.changes()) };
        let ClockChangeKind::Suspend(by) = change.kind else { panic!("{change:?}") };
        assert!((by - Nanos::from_secs(3)).abs() < Nanos::from_micros(10), "{by}");
        assert_eq!(TimeAxis::new(&record, true).off_line(), Nanos::ZERO);
    }

    #[test]
    fn a_step_of_the_time_of_day_is_told_and_moves_no_mark() {
        for by in [Nanos::from_secs(3600), Nanos::from_secs(-2)] {
            let (record, ..) = watched(1000, 0, Some(Disturbance::DayStep(by)), false);
            let [change] = record.changes()[..] else { panic!("{:?}", record.changes()) };
            let ClockChangeKind::Step(told) = change.kind else { panic!("{change:?}") };
            assert!((told - by).abs() < Nanos::from_micros(10), "{told}");
            assert_eq!(TimeAxis::new(&record, true).off_line(), Nanos::ZERO);
        }
    }

    #[test]
    fn marks_become_rarer_until_one_a_minute() {
        let (record, ..) = watched(60_000, 0, None, false);
        // Frame 0, six at 0.25 to 31.75 s, then each minute of ten, and the last one.
        assert!((16..=22).contains(&record.marks().len()), "{}", record.marks().len());
        assert!(record.pairs().len() >= record.marks().len());
    }

    #[test]
    fn a_stamp_after_a_step_of_the_clock_is_not_believed() {
        let sim = Sim::new(Script::default());
        let pair = ClockPair::take(&sim);
        let source = Steady { produced: 0, start: None, stamp: None };
        let watch = ClockWatch::new(&source, pair);
        let stamp = |time| watch.stamped(FrameStamp { frame: Frames(0), taken: StampTime::Realtime(time) });
        assert!(stamp(pair.realtime).is_some());
        assert!(stamp(pair.realtime + Nanos::from_secs(1)).is_none());
        assert!(stamp(pair.realtime - Nanos::from_secs(1)).is_none());
    }
}
