//! [`ExternalWatch`]: decides when a recording reads an external clock, and ties each reading to `CLOCK_MONOTONIC`.
//!
//! A state machine without threads. A thread that has no deadline calls [`ExternalWatch::look`]; the clock may block
//! it.
//!
//! # Problem
//! The kernel stamps external clocks by the time of day, which can be set at any moment.
//!
//! # Solution
//! A pair of the kernel's clocks is taken before and after each reading. `CLOCK_REALTIME` minus `CLOCK_MONOTONIC` is
//! constant but for a step and a suspend. So if both pairs agree within their widths, the stamp lies on
//! `CLOCK_MONOTONIC` at its distance from them. If they do not, the reading is left out, and another one is taken.

use hairspring_machine::{Instant, Machine, Nanos};
use hairspring_source::external::{ExternalClock, ExternalKind, ExternalStamp};

use super::{ExternalReading, ExternalSilence};
use crate::clock::{ClockNote, ClockPair};

/// The first span between two readings of a clock that can be read at any time. It doubles up to the longest.
const FIRST_SPAN: Nanos = Nanos::from_millis(250);
const LONGEST_SPAN: Nanos = Nanos::from_secs(60);
/// The least span between two pulses that are kept: for one pulse a second, with room for a rate that is off.
const LEAST_BETWEEN_PULSES: Nanos = Nanos::from_millis(500);
/// Time without a pulse after which there is a silence: two and a half seconds, so that one missing pulse is a step,
/// not a silence.
const SILENT_AFTER: Nanos = Nanos::from_millis(2500);
/// How long one call waits for a pulse.
const WAIT: Nanos = Nanos::from_millis(100);
/// Readings that are tried while the time of day is set again and again.
const TRIES: usize = 3;

/// Takes readings of an external clock.
#[derive(Debug)]
pub struct ExternalWatch {
    kind: ExternalKind,
    /// The last pair, taken before the next reading.
    pair: ClockPair,
    /// When the clock is read next, and the span after that.
    due: Instant,
    span: Nanos,
    /// The end of the last reading; before the first, when the watch began.
    heard: Instant,
    kept: Option<Instant>,
    /// The current silence as it was handed on last.
    silence: Option<ExternalSilence>,
}

impl ExternalWatch {
    /// Watches a clock from now on.
    pub fn new(machine: &impl Machine, kind: ExternalKind) -> Self {
        let pair = ClockPair::take(machine);
        let now = pair.monotonic;
        Self { kind, pair, due: now, span: FIRST_SPAN, heard: now, kept: None, silence: None }
    }

    /// Reads the clock if that is due, or waits a while for its next pulse. Returns when to call again. Blocks as long
    /// as the clock does.
    pub fn look(
        &mut self,
        machine: &impl Machine,
        clock: &mut dyn ExternalClock,
        hand_on: &mut dyn FnMut(ClockNote),
    ) -> Instant {
        if machine.monotonic() >= self.due {
            self.read(machine, clock, hand_on);
        }
        self.due
    }

    /// Takes the last reading of a clock that can be read at any time. The last pulse was handed on when it came.
    pub fn end(&mut self, machine: &impl Machine, clock: &mut dyn ExternalClock, hand_on: &mut dyn FnMut(ClockNote)) {
        if self.kind == ExternalKind::Ptp {
            self.read(machine, clock, hand_on);
        }
    }

    fn read(&mut self, machine: &impl Machine, clock: &mut dyn ExternalClock, hand_on: &mut dyn FnMut(ClockNote)) {
        let mut is_gone = false;
        for _ in 0..TRIES {
            match clock.read(WAIT) {
                Ok(Some(stamp)) => {
                    if let Some(reading) = self.tied(machine, stamp) {
                        return self.heard(reading, hand_on);
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    is_gone = true;
                    break;
                }
            }
            // A pulse without a valid reading is lost; the next one comes in its time.
            if self.kind == ExternalKind::Pps {
                return;
            }
        }
        self.pair = ClockPair::take(machine);
        self.unheard(is_gone, hand_on);
    }

    /// The reading on `CLOCK_MONOTONIC`; `None` if the time of day was set meanwhile, or the stamp is in the future.
    fn tied(&mut self, machine: &impl Machine, stamp: ExternalStamp) -> Option<ExternalReading> {
        let pairs = [self.pair, ClockPair::take(machine)];
        self.pair = pairs[1];
        let least = pairs.iter().map(|pair| pair.offset() - pair.within).max()?;
        let most = pairs.iter().map(|pair| pair.offset() + pair.within).min()?;
        let at = |realtime: Nanos, offset: Nanos| Some(Instant::from_monotonic(realtime.checked_sub(offset)?));
        let (earliest, latest) = (at(stamp.earliest, most)?, at(stamp.latest, least)?);
        let is_possible = least <= most && earliest <= pairs[1].monotonic + pairs[1].within;
        is_possible.then_some(ExternalReading { ticks: stamp.ticks, earliest, latest, how: stamp.how })
    }

    fn heard(&mut self, reading: ExternalReading, hand_on: &mut dyn FnMut(ClockNote)) {
        if let Some(silence) = self.silence.take() {
            hand_on(ClockNote::ExternalSilence(ExternalSilence { before: reading.earliest, ..silence }));
            self.span = FIRST_SPAN;
        }
        self.heard = reading.latest;
        self.due = self.pair.monotonic;
        if self.kind == ExternalKind::Ptp {
            self.due += self.span;
            self.span = (self.span + self.span).min(LONGEST_SPAN);
        }
        let is_early = |kept| reading.latest - kept < LEAST_BETWEEN_PULSES;
        if self.kind == ExternalKind::Ptp || !self.kept.is_some_and(is_early) {
            self.kept = Some(reading.latest);
            hand_on(ClockNote::External(reading));
        }
    }

    /// Takes note of a failed reading. Reports a silence once it is long enough, and then at spans that double.
    fn unheard(&mut self, is_gone: bool, hand_on: &mut dyn FnMut(ClockNote)) {
        let now = self.pair.monotonic;
        let waits = self.kind == ExternalKind::Pps && !is_gone;
        // A clock that refuses is asked again later, not in a busy loop.
        self.due = if waits { now } else { now + self.span };
        let told = self
            .silence
            .map_or(self.heard + if waits { SILENT_AFTER } else { Nanos::ZERO }, |it| it.before + self.span);
        if now < told {
            return;
        }
        let is_gone = is_gone || self.silence.is_some_and(|silence| silence.is_gone);
        let silence = ExternalSilence { after: self.heard, before: now, is_gone };
        self.span = if self.silence.is_some() { (self.span + self.span).min(LONGEST_SPAN) } else { FIRST_SPAN };
        self.silence = Some(silence);
        hand_on(ClockNote::ExternalSilence(silence));
    }
}

#[cfg(test)]
mod tests {
    use hairspring_machine::sim::{Disturbance, Script};
    use hairspring_machine::{Clock, Sim, SleepCall};
    use hairspring_source::external::{ExternalBracket, ExternalFacts};

    use super::super::super::ClockRecord;
    use super::*;

    const S: i64 = 1_000_000_000;

    /// A scripted clock in the time of the simulated computer.
    #[derive(Debug, Default)]
    struct Scripted {
        /// It runs faster than the true time by this rate.
        ppb: i64,
        /// It is set forward by this amount, from this true time on.
        step: Option<(i64, i64)>,
        /// It returns no readings between these times; `true`: its driver refuses.
        away: Option<(i64, i64, bool)>,
        /// The time of day is set by this amount in the middle of this reading.
        set: Option<(u32, Nanos)>,
        /// Its brackets are wider by up to this.
        jitter: i64,
        reads: u32,
        pulses: i64,
    }

    impl Scripted {
        fn external_at(&self, now: i64) -> i64 {
            let stepped = self.step.map_or(0, |(from, by)| if now >= from { by } else { 0 });
            now + (i128::from(now) * i128::from(self.ppb) / i128::from(S)) as i64 + stepped
        }
    }

    /// Clock and simulated computer together, because a clock has no access to the computer.
    #[derive(Debug)]
    struct Rig {
        sim: Sim,
        clock: Scripted,
        kind: ExternalKind,
    }

    impl ExternalClock for Rig {
        fn facts(&self) -> ExternalFacts {
            let (id, name) = ("/dev/x".to_owned(), "scripted".to_owned());
            ExternalFacts { kind: self.kind, id, name, late: Nanos::ZERO }
        }

        fn read(&mut self, most: Nanos) -> Result<Option<ExternalStamp>, String> {
            let now = || self.sim.true_time().count();
            if let Some((_, _, gone)) = self.clock.away.filter(|(from, to, _)| (*from..*to).contains(&now())) {
                if !gone {
                    self.sim.sleep(SleepCall::ClockNanosleep, most);
                }
                return if gone { Err("it is gone".to_owned()) } else { Ok(None) };
            }
            if self.kind == ExternalKind::Pps {
                let until = now() + most.count();
                let second = self.clock.pulses + 1;
                while self.clock.external_at(now()) < second * S {
                    if now() >= until {
                        return Ok(None);
                    }
                    self.sim.sleep(SleepCall::ClockNanosleep, Nanos::from_micros(100));
                }
                self.clock.pulses = self.clock.external_at(now()) / S;
                let late = self.clock.external_at(now()) - self.clock.pulses * S;
                let stamp = self.sim.read(Clock::Realtime);
                let (earliest, latest) = (stamp - Nanos::new(late + late / 1000 + 1000), stamp);
                let (ticks, how) = (self.clock.pulses, ExternalBracket::Pulse);
                return Ok(Some(ExternalStamp { ticks, earliest, latest, how }));
            }
            self.clock.reads += 1;
            let earliest = self.sim.read(Clock::Realtime);
            let ticks = self.clock.external_at(now());
            let latest = self.sim.read(Clock::Realtime);
            if let Some((_, by)) = self.clock.set.filter(|(at, _)| *at == self.clock.reads) {
                self.sim.disturb(self.sim.true_time(), Disturbance::DayStep(by));
            }
            let wider = Nanos::new(i64::from(self.clock.reads * 7919 % 101) * self.clock.jitter / 100);
            let (earliest, latest, how) = (earliest - wider, latest + wider, ExternalBracket::Extended);
            Ok(Some(ExternalStamp { ticks, earliest, latest, how }))
        }
    }

    /// Watches a clock for `seconds` seconds. Returns the record and the number of reads.
    fn watched(kind: ExternalKind, clock: Scripted, seconds: i64) -> (ClockRecord, u32) {
        let sim = Sim::new(Script::default());
        let mut rig = Rig { sim: sim.clone(), clock, kind };
        let mut watch = ExternalWatch::new(&sim, kind);
        let mut record = ClockRecord { external: Some(rig.facts()), ..ClockRecord::default() };
        let mut hand_on = |note| match note {
            ClockNote::External(reading) => record.external_reading(reading),
            ClockNote::ExternalSilence(silence) => record.external_silence(silence),
            other => panic!("{other:?}"),
        };
        let end = sim.monotonic() + Nanos::from_secs(seconds);
        while sim.monotonic() < end {
            let due = watch.look(&sim, &mut rig, &mut hand_on);
            let left = due.min(end) - sim.monotonic();
            if left > Nanos::ZERO {
                sim.sleep(SleepCall::ClockNanosleep, left);
            }
        }
        watch.end(&sim, &mut rig, &mut hand_on);
        (record, rig.clock.reads)
    }

    #[track_caller]
    fn check_rate(record: &ClockRecord, external_ppb: i64, widest: f64) {
        // The simulated computer's clock is the true time; a clock that is fast makes it slow.
        let truth = -external_ppb as f64 / (1.0 + external_ppb as f64 / 1e9);
        let rate = record.external_rate().expect("a rate");
        assert!(rate.ppb[0] <= truth && truth <= rate.ppb[1], "{truth} {rate:?}");
        assert!(rate.ppb[1] - rate.ppb[0] < widest, "{rate:?}");
        assert_eq!(rate.off_line, Nanos::ZERO, "{rate:?}");
    }

    #[test]
    fn a_clock_that_drifts_is_found_out_at_spans_that_double_up_to_a_minute() {
        for ppb in [0, 12_345, -80_000] {
            let (record, reads) = watched(ExternalKind::Ptp, Scripted { ppb, jitter: 500, ..Scripted::default() }, 600);
            // At 0, 0.25, … 31.75 s, then each minute of ten, and the last one.
            assert!((16..=20).contains(&reads), "{reads}");
            assert_eq!(record.external_readings().len(), reads as usize);
            check_rate(&record, ppb, 10.0);
            assert_eq!((record.external_steps(), record.external_silences()), (vec![], &[][..]));
        }
    }

    #[test]
    fn each_pulse_is_a_reading_with_its_number() {
        let (record, _) = watched(ExternalKind::Pps, Scripted { ppb: 20_000, ..Scripted::default() }, 60);
        let ticks: Vec<_> = record.external_readings().iter().map(|reading| reading.ticks).collect();
        assert!(ticks.len() >= 59 && ticks.windows(2).all(|two| two[1] == two[0] + 1), "{ticks:?}");
        check_rate(&record, 20_000, 20_000.0);
        assert_eq!((record.external_steps(), record.external_silences()), (vec![], &[][..]));
    }

    #[test]
    fn pulses_that_come_faster_are_thinned() {
        // Ten in each second of the computer.
        let (record, _) = watched(ExternalKind::Pps, Scripted { ppb: 9 * S, ..Scripted::default() }, 20);
        assert!((30..=40).contains(&record.external_readings().len()), "{}", record.external_readings().len());
    }

    #[test]
    fn a_step_of_the_clock_is_told_and_divides_its_readings() {
        for by in [37 * S, -S, 200_000_000] {
            let clock = Scripted { step: Some((100 * S, by)), ..Scripted::default() };
            let (record, _) = watched(ExternalKind::Ptp, clock, 600);
            let [step] = record.external_steps()[..] else { panic!("{:?}", record.external_steps()) };
            assert!((step.by - Nanos::new(by)).abs() < Nanos::from_micros(10), "{step:?}");
            check_rate(&record, 0, 10.0);
        }
    }

    #[test]
    fn a_step_of_the_time_of_day_moves_no_reading() {
        let (calm, _) = watched(ExternalKind::Ptp, Scripted::default(), 600);
        for by in [Nanos::from_secs(3600), Nanos::from_millis(-3)] {
            let (record, reads) =
                watched(ExternalKind::Ptp, Scripted { set: Some((7, by)), ..Scripted::default() }, 600);
            assert_eq!(record.external_readings().len() as u32, reads - 1, "the one in which it was set is left out");
            assert_eq!((record.external_steps(), record.external_silences()), (vec![], &[][..]));
            assert_eq!(record.external_readings().len(), calm.external_readings().len(), "it is taken again");
            check_rate(&record, 0, 10.0);
        }
    }

    #[test]
    fn a_clock_that_goes_away_and_comes_back_is_silent_meanwhile() {
        for (kind, gone) in [(ExternalKind::Ptp, true), (ExternalKind::Pps, false), (ExternalKind::Pps, true)] {
            let clock = Scripted { away: Some((100 * S, 400 * S, gone)), ..Scripted::default() };
            let (record, _) = watched(kind, clock, 600);
            let [silence] = record.external_silences()[..] else { panic!("{:?}", record.external_silences()) };
            let begin = Sim::new(Script::default()).monotonic();
            let [after, before] = [silence.after, silence.before].map(|at| (at - begin).count() / S);
            assert_eq!(silence.is_gone, gone, "{kind:?}");
            assert!((30..=101).contains(&after) && (399..=465).contains(&before), "{kind:?}: {after} {before}");
            assert!(record.external_rate().is_some());
        }
    }

    #[test]
    fn a_clock_that_never_gives_anything_is_silent_from_the_beginning_to_the_end() {
        for (kind, gone) in [(ExternalKind::Ptp, true), (ExternalKind::Pps, false)] {
            let clock = Scripted { away: Some((0, 1000 * S, gone)), ..Scripted::default() };
            let (record, _) = watched(kind, clock, 300);
            assert_eq!((record.external_readings(), record.external_rate()), (&[][..], None));
            let [silence] = record.external_silences()[..] else { panic!("{:?}", record.external_silences()) };
            assert!(silence.before - silence.after > Nanos::from_secs(230), "{silence:?}");
        }
    }
}
