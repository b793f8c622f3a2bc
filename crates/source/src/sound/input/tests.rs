//! A scripted sound card is recorded: every byte and the place of every gap are checked by the pattern.

use hairspring_machine::Nanos;
use hairspring_ring::layout::Container;
use hairspring_ring::units::SampleRate;

use super::super::testing::{PcmScript, ScriptedClock, ScriptedPcm};
use super::*;
use crate::pattern::Pattern;
use crate::sound::setup::PcmWire;
use crate::source::StampTime;
use crate::source::test_consumer::{TestConsumer, pair};

/// A tenth of a second of buffer, in ten periods.
const BUFFER: u64 = 4800;
const RATE_HZ: u64 = 48_000;

struct Bench {
    source: SoundInput,
    ring: Producer,
    listener: TestConsumer,
    clock: ScriptedClock,
}

fn ms(span: i64) -> Nanos {
    Nanos::from_millis(span)
}

fn setup() -> PcmSetup {
    PcmSetup {
        container: Container::I16,
        wire: PcmWire::AsStored,
        channels: 2,
        rate: SampleRate::hz(RATE_HZ).expect("exists"),
        significant_bits: 16,
        buffer: Frames(BUFFER),
        period: Frames(480),
        boundary: Frames(BUFFER << 20),
        fifo: Frames(16),
        moves_by_periods: false,
    }
}

impl Bench {
    fn new(script: PcmScript, frames: Option<u64>, on_overrun: OnOverrun) -> Self {
        Self::of(setup(), Pattern::Noise { seed: 7 }, script, frames, on_overrun)
    }

    /// Frames without numbers, for a recording in which their place is uncertain.
    fn silent(script: PcmScript) -> Self {
        Self::of(setup(), Pattern::Zero, script, None, OnOverrun::Gap)
    }

    fn of(setup: PcmSetup, pattern: Pattern, script: PcmScript, frames: Option<u64>, on_overrun: OnOverrun) -> Self {
        let layout = Layout::analogue(2, setup.significant_bits).expect("exists");
        let clock = ScriptedClock::default();
        clock.pass(ms(5));
        let card = ScriptedPcm::new(setup, layout, pattern, script, clock.clone());
        let (ring, listener) = pair(layout, pattern, Bytes::kib(64), on_overrun);
        let mut source = SoundInput::new(Pcm::scripted(card), layout, "scripted".to_owned(), frames.map(Frames));
        source.start(clock.now());
        Self { source, ring, listener, clock }
    }

    /// The card is served after each of these spans.
    fn serve(&mut self, spans: impl IntoIterator<Item = Nanos>) -> Option<End> {
        for span in spans {
            self.clock.pass(span);
            let next = self.source.service(self.clock.now(), &mut self.ring);
            self.check();
            self.listener.listen(u64::MAX);
            if let Next::Ended(end) = next {
                return Some(end);
            }
        }
        None
    }

    fn check(&mut self) {
        let counters = self.source.counters();
        assert_eq!(counters.produced_bytes, self.ring.position() + counters.lost_bytes + counters.fifo_bytes);
    }

    /// Ends the source; returns the number of produced frames, and of lost ones among them.
    fn finish(&mut self, expected: End) -> (u64, u64) {
        let mut next = self.source.stop(self.clock.now(), &mut self.ring);
        for _ in 0..1000 {
            self.check();
            self.listener.listen(u64::MAX);
            if matches!(next, Next::Ended(_)) {
                break;
            }
            next = self.source.stop(self.clock.now(), &mut self.ring);
        }
        assert_eq!(next, Next::Ended(expected));
        self.ring.close(expected);
        assert_eq!(self.listener.finish(), expected);
        let counters = self.source.counters();
        let frame_bytes = self.source.frame_bytes();
        let (produced, lost) = (counters.produced_bytes / frame_bytes, counters.lost_bytes / frame_bytes);
        assert_eq!((self.listener.frame, self.listener.lost()), (produced, lost));
        (produced, lost)
    }

    fn truly(&self) -> u64 {
        ((self.clock.now() - Instant::BOOT - ms(5)).as_secs_f64() * RATE_HZ as f64) as u64
    }
}

fn every(span: Nanos, times: usize) -> impl Iterator<Item = Nanos> {
    std::iter::repeat_n(span, times)
}

#[test]
fn all_frames_arrive_while_pointers_wrap() {
    let small = PcmSetup { boundary: Frames(BUFFER * 4), ..setup() };
    let mut bench = Bench::of(small, Pattern::Noise { seed: 7 }, PcmScript::default(), None, OnOverrun::Gap);
    assert_eq!(bench.serve(every(ms(13), 400)), None);
    let (produced, lost) = bench.finish(End::Stopped);
    assert_eq!(lost, 0);
    assert!(produced.abs_diff(bench.truly()) < 48, "{produced} of {}", bench.truly());
    assert!(produced > BUFFER * 4 * 5, "the pointers did not wrap");
}

#[test]
fn a_recording_of_so_many_frames_has_so_many() {
    let mut bench = Bench::new(PcmScript::default(), Some(10_007), OnOverrun::Stop);
    assert_eq!(bench.serve(every(ms(10), 400)), Some(End::Finished));
    assert_eq!(bench.finish(End::Finished), (10_007, 0));
}

#[test]
fn frames_that_are_overwritten_are_counted_exactly_however_long_it_takes() {
    for late in [120, 199, 200, 201, 350, 1000, 60_000] {
        let mut bench = Bench::new(PcmScript::default(), None, OnOverrun::Gap);
        bench.serve(every(ms(10), 100));
        bench.serve([ms(late)]);
        bench.serve(every(ms(10), 20));
        let (produced, lost) = bench.finish(End::Stopped);
        assert!(produced.abs_diff(bench.truly()) < 48, "{late} ms: {produced} of {}", bench.truly());
        let [gap] = &bench.listener.gaps[..] else { panic!("{late} ms: {:?}", bench.listener.gaps) };
        assert_eq!(gap.cause, GapCause::ServedLate);
        // Frames that had left the buffer, and the guard.
        let more = (late as u64 * 48).saturating_sub(BUFFER);
        assert!((more..more + BUFFER / 8 + 96).contains(&lost), "{late} ms: {lost} of {more}");
        assert_eq!(bench.source.gap_bounds(), [], "the kernel saw every period");
    }
}

#[test]
fn frames_that_are_overwritten_while_they_are_copied_are_cut_off() {
    // Copying 4 ms of frames takes 6 ms: the card is always faster.
    let script = PcmScript { copy_frame: Nanos::new(31_000), ..PcmScript::default() };
    let mut bench = Bench::new(script, None, OnOverrun::Gap);
    bench.serve([ms(99)]);
    bench.serve(every(ms(1), 40));
    let (produced, lost) = bench.finish(End::Stopped);
    assert!(lost > 0 && produced > lost);
}

#[test]
fn rounds_that_no_interrupt_saw_are_found_by_the_clock() {
    // No interrupt and no query for 430 ms: the kernel sees at most one of four rounds.
    let script = PcmScript { deaf: vec![(ms(1900), ms(2440))], ..PcmScript::default() };
    let mut bench = Bench::new(script, None, OnOverrun::Gap);
    bench.serve(every(ms(10), 190));
    bench.serve([ms(430)]);
    bench.serve(every(ms(10), 20));
    let (produced, lost) = bench.finish(End::Stopped);
    assert!(produced.abs_diff(bench.truly()) < 48, "{produced} of {}", bench.truly());
    assert!(lost > 430 * 48 - BUFFER, "{lost}");
    assert_eq!((bench.listener.gaps.len(), bench.source.gap_bounds()), (1, &[][..]));
}

#[test]
fn a_count_in_doubt_is_an_interval_that_holds_the_truth() {
    // The rate is known to 1 % only, and the card is deaf for 40 s: 4 rounds more or less.
    let script = PcmScript { deaf: vec![(ms(100), ms(40_200))], off_ppm: 3000.0, ..PcmScript::default() };
    let mut bench = Bench::silent(script);
    bench.serve(every(ms(10), 9));
    bench.serve([ms(40_000)]);
    bench.serve(every(ms(10), 20));
    let truly = (bench.truly() as f64 * 1.003) as u64;
    let (produced, bounds) = (bench.source.counters().produced_bytes / 4, bench.source.gap_bounds().to_vec());
    let [bounds] = bounds[..] else { panic!("{bounds:?}") };
    let doubt = bounds.most.0 - bounds.least.0;
    assert!(doubt > 0 && doubt.is_multiple_of(BUFFER), "{bounds:?}");
    assert!((produced..=produced + doubt + 48).contains(&(truly + 48)), "{truly} in {produced} + {doubt}");
}

#[test]
fn a_stream_that_its_driver_stops_goes_on_after_a_gap_that_is_an_interval() {
    for suspends in [false, true] {
        let script = PcmScript { stops: vec![ms(1000), ms(1500)], suspends, ..PcmScript::default() };
        let mut bench = Bench::silent(script);
        bench.serve(every(ms(10), 95));
        let before = bench.source.counters();
        assert_eq!(before.lost_bytes, 0);
        bench.serve(every(ms(10), 100));
        let bounds = bench.source.gap_bounds();
        assert_eq!(bounds.len(), 2, "{bounds:?}");
        let truly = (bounds[0].least.0, bounds[0].most.0);
        // Up to 10 ms of frames that the program had not read, and up to 10 ms until it started the card again.
        assert!(truly.0 >= 1 && truly.1 < 48 * 25 && truly.0 < truly.1, "{bounds:?}");
    }
}

#[test]
fn a_stream_that_its_driver_stops_ends_under_the_policy_stop() {
    let script = PcmScript { stops: vec![ms(1000)], ..PcmScript::default() };
    let mut bench = Bench::new(script, None, OnOverrun::Stop);
    assert_eq!(bench.serve(every(ms(10), 200)), Some(End::Overrun));
    let (produced, lost) = bench.finish(End::Overrun);
    assert!(lost < 960 && produced.abs_diff(995 * 48) < 96, "{produced}, {lost}");
}

#[test]
fn a_card_that_is_pulled_out_ends_the_recording_with_what_was_read() {
    let script = PcmScript { pulled_at: Some(ms(800)), ..PcmScript::default() };
    let mut bench = Bench::new(script, None, OnOverrun::Gap);
    assert_eq!(bench.serve(every(ms(10), 200)), Some(End::Failed(libc::ENODEV)));
    let (produced, lost) = bench.finish(End::Failed(libc::ENODEV));
    assert!(lost == 0 && produced.abs_diff(795 * 48) < 960, "{produced}, {lost}");
}

#[test]
fn an_overrun_ends_a_recording_under_the_policy_stop_and_keeps_the_frames_behind_it() {
    let mut bench = Bench::new(PcmScript::default(), None, OnOverrun::Stop);
    bench.serve(every(ms(10), 20));
    assert_eq!(bench.serve([ms(300), ms(1), ms(1)]), Some(End::Overrun));
    let (produced, lost) = bench.finish(End::Overrun);
    assert!(lost > 200 * 48 && produced > lost + 200 * 48, "{produced}, {lost}");
}

#[test]
fn a_ring_without_room_makes_the_card_hold_its_frames_and_then_lose_them() {
    let mut bench = Bench::new(PcmScript::default(), None, OnOverrun::Gap);
    // The consumer takes nothing: the ring, 64 KiB, holds 341 ms, and the card 100 ms more.
    for _ in 0..60 {
        bench.clock.pass(ms(10));
        let next = bench.source.service(bench.clock.now(), &mut bench.ring);
        assert!(matches!(next, Next::At(_) | Next::Readable(_)));
        bench.check();
    }
    let (produced, lost) = bench.finish(End::Stopped);
    assert!(produced.abs_diff(bench.truly()) < 48 && lost > 150 * 48, "{produced}, {lost}");
    assert_eq!(bench.listener.gaps[0].cause, GapCause::BufferFull);
}

#[test]
fn stamps_hold_the_true_time_of_their_frame_and_become_narrow() {
    let mut bench = Bench::new(PcmScript::default(), None, OnOverrun::Gap);
    let mut narrowest = Nanos::MAX;
    for _ in 0..200 {
        bench.serve([ms(7)]);
        for stamp in [bench.source.first_stamp(), bench.source.newest_stamp()].into_iter().flatten() {
            let StampTime::Between(earliest, latest) = stamp.taken else { panic!("{stamp:?}") };
            // The card starts at 5 ms and some calls; the script moves its pointer when a frame is complete.
            let begin = ms(5) + Nanos::from_micros(2);
            let taken = Instant::BOOT + begin + setup().rate.time_of(Frames(stamp.frame.0 + 1));
            let slack = Nanos::from_micros(3);
            assert!(earliest <= taken + slack && taken <= latest + slack, "{stamp:?}: {taken}");
            narrowest = narrowest.min(latest - earliest);
        }
    }
    assert!(narrowest < Nanos::from_micros(10), "{narrowest}");
}

/// Some USB cards offer only 24 bits in three bytes, or in the lower part of four. They were refused.
#[test]
fn samples_of_24_bits_are_recorded_with_their_sign_and_gaps_are_as_exact_as_ever() {
    for wire in [PcmWire::LowThree, PcmWire::Three] {
        let setup = PcmSetup { container: Container::I32, wire, significant_bits: 24, ..setup() };
        let noise = Pattern::Noise { seed: 7 };
        let mut bench = Bench::of(setup, noise, PcmScript::default(), None, OnOverrun::Gap);
        // The third call is late by more than a buffer.
        let spans = every(ms(10), 20).chain([ms(250)]).chain(every(ms(10), 20));
        assert_eq!(bench.serve(spans), None);
        let (produced, lost) = bench.finish(End::Stopped);
        assert!(lost > 0 && produced > lost + BUFFER, "{produced} {lost} {wire:?}");
    }
}
