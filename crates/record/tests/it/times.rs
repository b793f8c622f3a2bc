//! A recording's facts about time and channels survive crashes and recovery.

use hairspring_machine::{Instant, Nanos};
use hairspring_record::recorder::Step;
use hairspring_record::recover::{self, recover};
use hairspring_recording::Recording;
use hairspring_recording::beginning::Beginning;
use hairspring_recording::clock::external::{ExternalReading, ExternalSilence};
use hairspring_recording::clock::{BootId, ClockNote, ClockPair, Mark, MarkSource};
use hairspring_recording::journal::{Journal, Record};
use hairspring_ring::units::Frames;
use hairspring_source::Source;
use hairspring_source::external::ExternalBracket;
use hairspring_store::scripted::{DiskScript, Pace, ScriptedDisk};

use crate::oracle;
use crate::recording::{Case, channels, of_a_boot, open, serve};

/// Metadata are written at the start and at the end, so facts about time up to a crash are in the journals only.
#[test]
fn pairs_marks_and_channels_survive_a_crash() {
    let at = |ns| Instant::from_monotonic(Nanos::new(ns));
    let pair = |ns: i64| {
        let [realtime, raw, suspended, within] = [ns + 7, ns + 1, 0, 40].map(Nanos::new);
        ClockPair { monotonic: at(ns), realtime, raw, suspended, within }
    };
    let mark =
        |frame: u64, ns| Mark { frame: Frames(frame), earliest: at(ns - 9), latest: at(ns), how: MarkSource::Card };
    let reading =
        |ticks, ns| ExternalReading { ticks, earliest: at(ns - 30), latest: at(ns), how: ExternalBracket::CrossStamp };
    let silence = |ns| ExternalSilence { after: at(1_900_000), before: at(ns), is_gone: true };
    for ends in [false, true] {
        let case = Case::striped(2);
        let disk = ScriptedDisk::new(DiskScript { pace: Pace::Leaping, ..DiskScript::default() });
        let (mut recorder, mut producer, mut card) = open(&case, &disk, None).expect("a recorder");
        let mut now = disk.now();
        card.start(now);
        let beginning = Beginning { realtime: Nanos::from_secs(5), monotonic: now, within: Nanos::new(9) };
        recorder.begins(beginning);
        let notes = [
            ClockNote::External(reading(5_000_000_007, 900_000)),
            ClockNote::Pair(pair(1_000_000)),
            ClockNote::Frame0(Beginning { realtime: Nanos::from_secs(6), ..beginning }, MarkSource::Card),
            ClockNote::Mark(mark(0, 1_000_000)),
            ClockNote::Pair(pair(2_000_000)),
            ClockNote::Mark(mark(1000, 2_000_000)),
            ClockNote::External(reading(5_001_000_007, 1_900_000)),
            ClockNote::ExternalSilence(silence(2_000_000)),
            ClockNote::ExternalSilence(silence(2_500_000)),
        ];
        notes.into_iter().for_each(|note| recorder.note(note));
        let image = loop {
            let stop = ends && recorder.ledger(card.counters()).durable_bytes > 100_000;
            let done = serve(&mut card, &mut producer, now, stop);
            let step = recorder.step(now, card.counters());
            now += Nanos::from_micros(500);
            disk.advance(now);
            match step {
                Step::Done => {
                    drop(recorder.finish(now, card.counters()));
                    break disk.image_after_kill(0);
                }
                _ if !ends && recorder.ledger(card.counters()).durable_bytes > 100_000 => {
                    break disk.image_after_power_cut(3);
                }
                _ => assert!(!done || ends),
            }
        };
        assert_eq!(oracle::meta_says(&image, "a/x", "\"frame\": 1000"), ends, "the metadata are from before a crash");
        assert!(oracle::meta_says(&image, "a/x", "\"unit\": \"kPa\""));
        let disk = ScriptedDisk::with(DiskScript { pace: Pace::Leaping, ..DiskScript::default() }, image);
        let (mut store, paths) = (disk.store(8), ["a/x".into(), "b/x".into()]);
        let check = |recording: &Recording| {
            let about = recording.about();
            assert_eq!(about.clock.marks(), [mark(0, 1_000_000), mark(1000, 2_000_000)]);
            assert_eq!(about.clock.pairs(), [pair(1_000_000), pair(2_000_000)]);
            assert_eq!(about.clock.boot_id, Some(BootId([4; 16])));
            assert_eq!(about.clock.external, of_a_boot().external, "its name is in the metadata only");
            assert_eq!(
                about.clock.external_readings(),
                [reading(5_000_000_007, 900_000), reading(5_001_000_007, 1_900_000)]
            );
            assert_eq!(about.clock.external_silences(), [silence(2_500_000)]);
            assert_eq!((about.started_realtime, &about.channels), (Nanos::from_secs(6), &channels(case.layout)));
            let middle = about.time_axis().time_of(Frames(500)).expect("between the marks");
            assert_eq!((middle.earliest, middle.latest), (at(1_499_991), at(1_500_000)));
        };
        check(&Recording::open_in(&mut store, &paths).expect("opens"));
        recover(&mut store, &paths, recover::RecoverOptions::default(), &mut |_| {}).expect("recovered");
        check(&Recording::open_in(&mut store, &paths).expect("opens"));
        let image = disk.image_after_kill(0);
        for name in ["a/x", "b/x"] {
            assert!(oracle::meta_says(&image, name, "\"frame\": 1000"), "{name}");
        }
    }
}

/// A card that stamps its frames itself, and loses one without a report.
#[test]
fn a_card_whose_frames_and_clock_disagree_is_told_in_the_reason() {
    let case = Case::default();
    let disk = ScriptedDisk::new(DiskScript { pace: Pace::Leaping, ..DiskScript::default() });
    let (mut recorder, mut producer, mut card) = open(&case, &disk, None).expect("a recorder");
    let mut now = disk.now();
    card.start(now);
    recorder.begins(Beginning { realtime: Nanos::ZERO, monotonic: now, within: Nanos::ZERO });
    for (frame, ns) in [(0, 0), (1000, 1_000_000), (1999, 2_000_000), (2999, 3_000_000)] {
        let taken = Instant::from_monotonic(Nanos::new(ns));
        let mark = Mark { frame: Frames(frame), earliest: taken, latest: taken, how: MarkSource::Card };
        recorder.note(ClockNote::Mark(mark));
    }
    let mut ended = false;
    while recorder.step(now, card.counters()) != Step::Done {
        let stop = recorder.ledger(card.counters()).durable_bytes > 100_000;
        ended = ended || serve(&mut card, &mut producer, now, stop);
        now += Nanos::from_micros(500);
        disk.advance(now);
    }
    let reason = recorder.finish(now, card.counters()).reason;
    assert!(reason.contains("lost without notice"), "{reason}");
}

/// Metadata written before the first data lack the time of frame 0, and a recording that was cut off had no time.
#[test]
fn the_time_of_frame_0_survives_a_crash() {
    let script = DiskScript { pace: Pace::Leaping, ..DiskScript::default() };
    let case = Case::striped(2);
    let disk = ScriptedDisk::new(script);
    let (mut recorder, mut producer, mut card) = open(&case, &disk, None).expect("a recorder");
    let mut now = disk.now();
    card.start(now);
    recorder.step(now, card.counters());
    let began = |nanos| Nanos::from_secs(1_700_000_003) + Nanos::new(nanos);
    let beginning = Beginning { realtime: began(7), monotonic: now + Nanos::from_secs(9), within: Nanos::new(40) };
    recorder.begins(beginning);
    while recorder.ledger(card.counters()).durable_bytes < 100_000 {
        serve(&mut card, &mut producer, now, false);
        recorder.step(now, card.counters());
        now += Nanos::from_micros(500);
        disk.advance(now);
    }
    let image = disk.image_after_power_cut(3);
    assert!(!oracle::meta_says(&image, "a/x", "1700000003000000007"), "the metadata are from before");
    let disk = ScriptedDisk::with(DiskScript { pace: Pace::Leaping, ..DiskScript::default() }, image);
    let (mut store, paths) = (disk.store(8), ["a/x".into(), "b/x".into()]);
    let check = |recording: &Recording| {
        let about = recording.about();
        let found = (about.started_realtime, about.started_monotonic, about.started_within);
        assert_eq!(found, (beginning.realtime, beginning.monotonic, Some(beginning.within)));
    };
    check(&Recording::open_in(&mut store, &paths).expect("opens"));
    recover(&mut store, &paths, recover::RecoverOptions::default(), &mut |_| {}).expect("recovered");
    check(&Recording::open_in(&mut store, &paths).expect("opens"));
    for name in ["a/x", "b/x"] {
        let image = disk.image_after_kill(0);
        // Mending puts the journal in place before the metadata, and may be cut off between.
        let journal = Journal::read(&image.read(format!("{name}.hairspring-journal")).expect("a journal"));
        assert!(journal.records.iter().any(|record| matches!(record, Record::Begun { .. })), "{name}");
        assert!(oracle::meta_says(&image, name, "\"started_within_ns\": 40"), "{name}");
        assert!(oracle::meta_says(&image, name, "\"core:datetime\": \"2023-11-14T22:13:2"), "{name}");
    }
}
