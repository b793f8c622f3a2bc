//! Playing to a scripted sound card in virtual time: each frame is heard at its own time, or is silence and counted.

use hairspring_ring::units::SampleRate;
use hairspring_source::sound::testing::{PcmScript, ScriptedClock, ScriptedPcm};
use hairspring_source::sound::{Pcm, PcmSetup, PcmWire};

use super::*;
use crate::sink::SoundOutput;

const RATE_HZ: u64 = 48_000;
const BUFFER: u64 = 4800;

fn setup() -> PcmSetup {
    PcmSetup {
        container: Container::I16,
        wire: PcmWire::AsStored,
        channels: 1,
        rate: SampleRate::hz(RATE_HZ).expect("possible"),
        significant_bits: 16,
        buffer: Frames(BUFFER),
        period: Frames(480),
        boundary: Frames(BUFFER << 20),
        fifo: Frames(16),
        moves_by_periods: false,
    }
}

/// Plays a recording. Each of `stalls` is a time during which the card is not served. Returns the frames heard, in
/// order.
fn heard(frames: u64, script: PcmScript, stalls: &[(i64, i64)]) -> (Played, Vec<Option<u64>>) {
    let (mut track, image) = recording(mono(), frames, &[]);
    track.rate = SampleRate::hz(RATE_HZ);
    let clock = ScriptedClock::default();
    let card =
        ScriptedPcm::new(setup(), track.layout, Pattern::Zero, PcmScript { plays: true, ..script }, clock.clone());
    let out = card.played();
    let sink = Box::new(SoundOutput::new(Pcm::scripted(card), track.layout, "scripted".to_owned()));
    let disk = disk(image, FAST, vec![]);
    let mut player = Player::new(&track, sink, Box::new(disk.store(4)), &small(), Arc::default()).expect("possible");
    let mut now = Instant::BOOT;
    loop {
        disk.advance(now);
        player.reader.step(now);
        clock.pass((now - clock.now()).max(Nanos::ZERO));
        let stalled = stalls.iter().map(|(from, to)| (Nanos::from_millis(*from), Nanos::from_millis(*to)));
        let stalled =
            stalled.filter(|(from, to)| (*from..*to).contains(&(now - Instant::BOOT))).map(|(_, to)| to).next();
        if let Some(until) = stalled {
            now = Instant::BOOT + until;
            continue;
        }
        let at = match player.driver.step(now) {
            SinkNext::Ended(_) => break,
            SinkNext::At(at) | SinkNext::Data(at) => at,
        };
        player.reader.step(now);
        now = disk.next_due().unwrap_or(at).min(at).max(now + Nanos::from_micros(100));
        assert!(now - Instant::BOOT < Nanos::from_secs(600), "never ends");
    }
    let played = player.played(Instant::BOOT, now, Nanos::ZERO, Nanos::ZERO, track.layout);
    let log = out.lock().expect("whole");
    // Each frame of noise is known by its number; silence is none.
    let number_of = |at: usize, bytes: &Vec<u8>| {
        let mut expected = [0; 2];
        NOISE.fill(track.layout, Frames(at as u64), &mut expected);
        assert_eq!(bytes[..], expected, "frame {at} is not at its own time");
        at as u64
    };
    let heard = log.iter().enumerate().map(|(at, frame)| frame.as_ref().map(|bytes| number_of(at, bytes)));
    (played, heard.collect())
}

#[test]
fn every_frame_is_heard_once_and_in_order() {
    let (played, heard) = heard(30_000, PcmScript::default(), &[]);
    assert_eq!(played.verdict, RecordingVerdict::Complete, "{played:?}");
    assert_eq!((played.counters.recorded_frames, played.counters.missing_frames), (30_000, 0));
    assert!(heard.len() >= 30_000 && heard[..30_000].iter().all(Option::is_some));
    assert!(heard[30_000..].iter().all(Option::is_none), "after the end there is silence");
}

#[test]
fn frames_that_are_late_are_silence_counted_exactly_and_later_ones_keep_their_time() {
    for late_ms in [150, 250, 1000] {
        let (played, heard) = heard(90_000, PcmScript::default(), &[(300, 300 + late_ms)]);
        let silent = heard[..90_000].iter().filter(|frame| frame.is_none()).count() as u64;
        assert_eq!(played.counters.missing_frames, silent, "{late_ms} ms");
        assert_eq!(played.counters.recorded_frames + silent, 90_000, "{late_ms} ms");
        assert_eq!((played.counters.underruns, played.underruns[0].late), (1, Late::ServedLate));
        let least = late_ms as u64 * 48 - BUFFER;
        assert!((least..least + BUFFER).contains(&silent), "{late_ms} ms: {silent}");
    }
}

#[test]
fn a_card_that_vanishes_or_is_stopped_ends_the_output_with_the_reason() {
    let gone = PcmScript { pulled_at: Some(Nanos::from_millis(200)), ..PcmScript::default() };
    assert_eq!(heard(90_000, gone, &[]).0.end, End::Failed(libc::ENODEV));
    let stopped = PcmScript { stops: vec![Nanos::from_millis(200)], ..PcmScript::default() };
    assert_eq!(heard(90_000, stopped, &[]).0.end, End::Failed(libc::EPIPE));
}
