//! The verdict and the reason of a recording at its end, and the metadata that state both.

use hairspring_record::recorder::ResumeFrom;
use hairspring_recording::clock::{BootId, ClockNote, Mark, MarkSource};
use hairspring_recording::journal::GapBounds;
use hairspring_recording::ledger::RecordingVerdict::{self, Complete, Incomplete, Stopped, Unaccounted};
use hairspring_recording::sigmf::{self, SegmentOf};
use hairspring_source::{Ignored, SenderCount};

use super::*;

const EPOCH: Nanos = Nanos::from_secs(1_700_000_000);

fn began(rig: &mut Rig) {
    rig.recorder.begins(Beginning { realtime: EPOCH, monotonic: rig.now, within: Nanos::ZERO });
}

/// Ends a recording, and checks that its metadata match its outcome.
#[track_caller]
fn ends(rig: Rig, end: End, expected: (RecordingVerdict, &str)) -> Outcome {
    let (outcome, disk) = rig.end(end);
    assert_eq!((outcome.verdict, outcome.reason.as_str()), expected);
    let meta = disk.image_after_kill(0).read("a/x.sigmf-meta").expect("metadata");
    let closing = sigmf::parse(&meta).expect("read").1.expect("ended");
    assert_eq!((closing.verdict, closing.reason.as_str()), expected);
    assert_eq!((&closing.gaps, &closing.skips, &closing.triggers), (&outcome.gaps, &outcome.skips, &outcome.triggers));
    assert_eq!((closing.ledger, closing.ignored, closing.missed), (outcome.ledger, outcome.ignored, outcome.missed));
    assert_eq!(closing.direct_io_proven, outcome.direct == Direct::Proven);
    assert_eq!(
        (closing.worst_stall, closing.buffer, closing.buffer_high_water),
        (outcome.worst_stall, outcome.buffer, outcome.high_water)
    );
    outcome
}

#[test]
fn a_recording_that_lacks_nothing_says_how_it_ended() {
    let mut rig = Rig::new(at_once(), setup());
    rig.put(3 * BLOCK + 5);
    ends(rig, End::Finished, (Complete, "everything that the source produced is there"));
    ends(Rig::new(at_once(), setup()), End::Stopped, (Stopped, "ended by its user, before any data came"));
    let mut rig = Rig::new(at_once(), setup());
    began(&mut rig);
    rig.put(100);
    ends(rig, End::Stopped, (Stopped, "ended by its user, without loss"));
    // Ignored datagrams are no loss, and are reported.
    for (end, expected) in [
        (End::Finished, (Complete, "everything is there, though 2 datagrams from other senders ignored")),
        (End::Stopped, (Stopped, "ended by its user, without loss; 2 datagrams from other senders ignored")),
    ] {
        let mut rig = Rig::new(at_once(), setup());
        began(&mut rig);
        rig.counters.ignored = Ignored { foreign: 2, ..Ignored::default() };
        assert_eq!(ends(rig, end, expected).ignored.foreign, 2);
    }
}

#[test]
fn a_recording_that_ended_once_its_shots_were_made_is_complete() {
    for (shots, expected) in [(1, Complete), (1000, Stopped)] {
        let trigger = "level:ch0>0.5".parse().expect("a trigger");
        let gate = Gate::new(trigger, bytes(), Frames(10), Frames(50), Shots::Repeated(Some(shots))).expect("a gate");
        let mut rig = Rig::new(at_once(), Setup { gate: Some(gate), ..setup() });
        rig.put(60);
        for _ in 0..3 {
            rig.settle();
        }
        assert_eq!(rig.step() == Step::StopSource, shots == 1, "nothing more is needed");
        let (outcome, _) = rig.end(End::Stopped);
        assert_eq!((outcome.verdict, outcome.triggers.len() == 1), (expected, shots == 1), "{}", outcome.reason);
        // The first trigger came less than ten frames after the beginning.
        assert!(outcome.missed.short_shots > 0 && outcome.reason.contains("without all frames"), "{}", outcome.reason);
    }
}

#[test]
fn a_recording_that_lacks_frames_says_how_many_where_and_why() {
    let one = "5 frames are missing in 1 gap, the first at frame 4096: lost before they reached this computer";
    let mut rig = Rig::new(at_once(), setup());
    rig.put(BLOCK);
    rig.lose(5, GapCause::Source);
    rig.put(10);
    let outcome = ends(rig, End::Finished, (Incomplete, one));
    assert_eq!(outcome.gaps.len(), 1);
    let two = "12 frames are missing in 2 gaps, the first at frame 100: the buffer was full";
    for (end, expected) in [
        (End::Stopped, two.to_owned()),
        (End::Overrun, format!("{two}; the source was stopped at its first loss")),
        (End::Failed(0), format!("{two}; the source vanished")),
        (End::Failed(libc::EIO), format!("{two}; the source failed: {}", Errno(libc::EIO))),
    ] {
        let mut rig = Rig::new(at_once(), setup());
        rig.put(100);
        rig.lose(5, GapCause::BufferFull);
        rig.put(100);
        // The last gap follows all data.
        rig.lose(7, GapCause::ServedLate);
        ends(rig, end, (Incomplete, &expected));
    }
    // A source that failed left no gap, but it is unknown whether it had more data.
    ends(Rig::new(at_once(), setup()), End::Failed(0), (Incomplete, "the source vanished"));
}

#[test]
fn gaps_that_are_known_as_intervals_only_say_how_much_more_may_be_missing() {
    let bounds = |first, least, most| GapBounds { first: Frames(first), least: Frames(least), most: Frames(most) };
    let mut rig = Rig::new(at_once(), setup());
    rig.put(100);
    rig.lose(5, GapCause::Source);
    rig.recorder.bound_gaps(&[bounds(100, 5, 9)]);
    rig.put(100);
    rig.settle();
    // The first has grown; the second is new, and belongs to no declared gap.
    rig.recorder.bound_gaps(&[bounds(100, 5, 8), bounds(205, 0, 2)]);
    rig.recorder.bound_gaps(&[bounds(100, 5, 8), bounds(205, 0, 2)]);
    let (outcome, disk) = rig.end(End::Finished);
    assert!(
        outcome
            .reason
            .ends_with("up to 5 frames more may be missing there, because only the clock says how many passed"),
        "{}",
        outcome.reason
    );
    let image = disk.image_after_kill(0);
    let meta = image.read("a/x.sigmf-meta").expect("metadata");
    assert_eq!(sigmf::parse(&meta).expect("read").1.expect("ended").bounds, [bounds(100, 5, 8)]);
    let records = Journal::read(&image.read("a/x.hairspring-journal").expect("a journal")).records;
    let told: Vec<_> = records
        .iter()
        .filter_map(|record| if let Record::Bounds(bounds) = record { Some(*bounds) } else { None })
        .collect();
    assert_eq!(told, [bounds(100, 5, 9), bounds(100, 5, 8), bounds(205, 0, 2)], "each only once");
}

#[test]
fn an_account_that_does_not_add_up_says_so_whatever_else_there_is() {
    let mut rig = Rig::new(at_once(), setup());
    rig.put(100);
    rig.counters.produced_bytes += 3;
    ends(rig, End::Finished, (Unaccounted, "3 bytes are unaccounted for; "));
    let mut rig = Rig::new(at_once(), setup());
    rig.put(100);
    rig.producer.gap(Gap { first: Frames(101), frames: Frames(5), cause: GapCause::Source, found: rig.now });
    (rig.counters.produced_bytes, rig.counters.lost_bytes) = (105, 5);
    let missing = "5 frames are missing in 1 gap, the first at frame 101: lost before they reached this computer";
    ends(rig, End::Finished, (Unaccounted, &format!("1 gaps are not where the source says; {missing}")));
}

#[test]
fn files_that_are_not_in_order_are_named_with_what_helps() {
    let recover = "`hairspring recover` puts the files in order";
    let cases = [
        (OpKind::Truncate, ".sigmf-data", When::From(1), vec!["failed to set the length of a/x.sigmf-data", recover]),
        (
            OpKind::Sync,
            ".sigmf-data",
            When::From(1),
            vec!["4196 B are written but not certainly durable", "syncing data of a/x failed", recover],
        ),
        (OpKind::Write, "journal", When::From(2), vec!["writing the journal of a/x failed", recover]),
        (OpKind::Put, "meta", When::Nth(2), vec!["failed to write a/x.sigmf-meta", recover]),
    ];
    for (kind, file, when, expected) in cases {
        let mut rig = Rig::new(failing(kind, file, when, libc::EROFS), setup());
        rig.put(BLOCK);
        rig.settle();
        rig.put(100);
        let (outcome, disk) = rig.end(End::Finished);
        assert_eq!(outcome.verdict, Incomplete, "{kind:?}: {}", outcome.reason);
        for text in expected {
            assert_eq!(outcome.reason.matches(text).count(), 1, "{kind:?}: `{text}` in: {}", outcome.reason);
        }
        let image = disk.image_after_kill(0);
        assert_eq!(oracle::true_metadata(&image, &["a/x"], PATTERN, false), [Some(Incomplete)], "{kind:?}");
    }
}

/// The end of a series that is resumed: it had frames up to 5000, the last at second 1 of the same boot.
fn resumed() -> Setup {
    let at = Instant::BOOT + Nanos::from_secs(1);
    let mut clock = ClockRecord::default();
    clock.boot_id = Some(BootId([4; 16]));
    let from = ResumeFrom {
        end: Frames(5000),
        taken: Some((at, at)),
        clock: clock.clone(),
        rate: SampleRate::hz(1_000_000),
        average_hz: None,
        layout: bytes(),
    };
    let of = SegmentOf {
        id: RecordingId([8; 16]),
        name: "x".to_owned(),
        number: 7,
        first: Some(Frames(5000)),
        previous: Some(RecordingId([2; 16])),
        epoch: 1,
        epoch_first: Frames(5000),
    };
    Setup { series: Some(of), resumed: Some(from), clock, ..setup() }
}

#[test]
fn a_series_that_is_resumed_takes_nothing_before_it_is_known_where_and_names_the_gap() {
    let within = Nanos::from_micros(3);
    let mut rig = Rig::new(at_once(), resumed());
    rig.put(BLOCK);
    rig.settle();
    assert_eq!((rig.recorder.blocks_taken(), rig.recorder.resumed()), (0, None));
    let note = |frame, ns| {
        let at = Instant::BOOT + Nanos::from_secs(1) + Nanos::new(ns);
        ClockNote::Mark(Mark { frame: Frames(frame), earliest: at, latest: at, how: MarkSource::Kernel })
    };
    rig.recorder.begins(Beginning { realtime: EPOCH, monotonic: Instant::BOOT + Nanos::from_millis(1010), within });
    // A million frames per second, for 9.997 to 10 ms, ± 200 ppm.
    let bounds = GapBounds { first: Frames(5000), least: Frames(9995), most: Frames(10_003) };
    assert_eq!(rig.recorder.resumed(), Some((1, bounds)));
    // The source counts from 0 again.
    rig.recorder.note(note(2000, 12_000_000));
    rig.recorder.bound_gaps(&[GapBounds { first: Frames(BLOCK), least: Frames(5), most: Frames(6) }]);
    rig.lose(5, GapCause::Source);
    rig.put(10);
    let (outcome, disk) = rig.end(End::Finished);
    let origin = 5000 + 9995;
    let reason = "10000 frames are missing in 2 gaps, the first at frame 5000: between two parts of the recording; it was resumed: 9995 to 10003 frames are \
         missing from frame 5000 on; up to 1 frames more may be missing there, because only the clock says how many passed";
    assert_eq!((outcome.verdict, outcome.reason.as_str()), (Incomplete, reason));
    let ledger = outcome.ledger;
    assert_eq!(
        (ledger.produced_bytes, ledger.stored_bytes, ledger.lost_bytes),
        (origin + BLOCK + 15, BLOCK + 10, 10_000)
    );
    assert_eq!((ledger.left_out_bytes, ledger.earlier_bytes, outcome.skips.len()), (5000, 5000, 1));
    assert_eq!(
        outcome.gaps.iter().map(|gap| (gap.first.0, gap.frames.0)).collect::<Vec<_>>(),
        [(5000, 9995), (origin + BLOCK, 5)]
    );
    let image = disk.image_after_kill(0);
    let (about, closing, _) = sigmf::parse(&image.read("a/x.sigmf-meta").expect("metadata")).expect("read");
    let own = GapBounds { first: Frames(origin + BLOCK), least: Frames(5), most: Frames(6) };
    assert_eq!(closing.expect("ended").bounds, [bounds, own]);
    assert_eq!(about.clock.marks().iter().map(|mark| mark.frame.0).collect::<Vec<_>>(), [origin + 2000]);
    assert_eq!(about.series.expect("a segment").epoch_first, Frames(origin));
    let records = Journal::read(&image.read("a/x.hairspring-journal").expect("a journal")).records;
    assert_eq!(records.iter().filter(|record| matches!(record, Record::Series(_))).count(), 1);
    assert!(records.contains(&Record::Epoch { first: Frames(origin) }) && records.contains(&Record::Bounds(bounds)));
}

#[test]
fn a_resumption_of_which_nobody_knows_the_length_says_that() {
    // On another boot, whose time of day is not known either.
    let mut setup = resumed();
    setup.clock = ClockRecord::default();
    let mut rig = Rig::new(at_once(), setup);
    began(&mut rig);
    rig.put(10);
    let (outcome, _) = rig.end(End::Finished);
    assert_eq!((outcome.verdict, outcome.ledger.lost_bytes), (Incomplete, 0), "it does not claim to be whole");
    assert_eq!(outcome.reason, "it was resumed: 0 to any number of frames are missing from frame 5000 on");
    // A source that ended before it began lost nothing.
    let mut setup = self::resumed();
    setup.opened.monotonic = Instant::BOOT + Nanos::from_secs(1);
    let (outcome, _) = Rig::new(at_once(), setup).end(End::Stopped);
    assert!(outcome.reason.contains("it was resumed: 0 to 1 frames"), "{}", outcome.reason);
}

#[test]
fn a_resumption_that_the_sender_has_counted_is_exact() {
    let mut setup = resumed();
    let count = |frame, number| SenderCount { frame: Frames(frame), number, frames_each: 10, bits: 32 };
    let at = Instant::BOOT + Nanos::from_secs(1);
    let from = setup.resumed.as_mut().expect("resumed");
    from.clock.mark(Mark { frame: Frames(4900), earliest: at, latest: at, how: MarkSource::Kernel });
    from.clock.count = Some(count(0, 0));
    let mut rig = Rig::new(at_once(), setup);
    // Passed before the start of the resumed series is known.
    rig.recorder.note(ClockNote::Count(count(0, 1490)));
    rig.recorder.begins(Beginning { realtime: EPOCH, monotonic: at + Nanos::from_millis(10), within: Nanos::ZERO });
    rig.put(10);
    let (outcome, disk) = rig.end(End::Finished);
    let text = "9900 frames are missing in 1 gap, the first at frame 5000: between two parts of the recording; it was resumed: 9900 frames are \
                missing from frame 5000 on, by the numbers of their sender";
    assert_eq!((outcome.verdict, outcome.reason.as_str()), (Incomplete, text));
    let (about, closing, _) =
        sigmf::parse(&disk.image_after_kill(0).read("a/x.sigmf-meta").expect("metadata")).expect("read");
    assert_eq!(closing.expect("ended").bounds, [], "an exact length is no interval");
    assert_eq!(about.clock.count, Some(count(14_900, 1490)), "the series counts on");
    let journal = disk.image_after_kill(0).read("a/x.hairspring-journal").expect("a journal");
    assert!(!Journal::read(&journal).records.iter().any(|record| matches!(record, Record::Bounds(_))));
    // The sender went on with the very next frame.
    let mut setup = resumed();
    let from = setup.resumed.as_mut().expect("resumed");
    from.clock.mark(Mark { frame: Frames(5000), earliest: at, latest: at, how: MarkSource::Kernel });
    from.clock.count = Some(count(0, 0));
    let mut rig = Rig::new(at_once(), setup);
    rig.recorder.note(ClockNote::Count(count(0, 500)));
    rig.recorder.begins(Beginning { realtime: EPOCH, monotonic: at, within: Nanos::ZERO });
    rig.put(10);
    let text = "everything is there, though it was resumed: 0 frames are missing from frame 5000 on, by the numbers of their sender";
    ends(rig, End::Finished, (Complete, text));
}

#[test]
fn a_trigger_from_outside_is_the_frame_of_its_time_also_in_a_series_that_was_resumed() {
    let gate = Gate::new("external".parse().expect("a trigger"), bytes(), Frames(10), Frames(50), Shots::Single)
        .expect("a gate");
    let calls = gate.external().expect("from outside");
    let mut rig = Rig::new(at_once(), Setup { gate: Some(gate), ..resumed() });
    let began = Instant::BOOT + Nanos::from_millis(1010);
    rig.recorder.begins(Beginning { realtime: EPOCH, monotonic: began, within: Nanos::ZERO });
    let (_, bounds) = rig.recorder.resumed().expect("known");
    assert!(calls.fire(began + Nanos::from_millis(2)));
    rig.put(BLOCK);
    rig.settle();
    let (outcome, _) = rig.end(End::Stopped);
    // A million frames per second since the source began again.
    assert_eq!(outcome.triggers, [(0, Frames(5000 + bounds.least.0 + 2000))]);
}

#[test]
fn only_a_card_with_a_clock_that_stamps_its_own_frames_can_disagree_with_itself() {
    for (clocked, how, expected) in
        [(true, MarkSource::Card, true), (true, MarkSource::Arrival, false), (false, MarkSource::Card, false)]
    {
        let disk = ScriptedDisk::new(at_once());
        let (producer, consumer) = ring_of(RING, OnOverrun::Gap);
        let description = SourceDescription { clocked, ..description(bytes()) };
        let recorder = Recorder::open(Box::new(disk.store(8)), consumer, description, setup()).expect("opens");
        let now = disk.now();
        let mut rig = Rig { disk, recorder, producer, counters: SourceCounters::default(), now };
        began(&mut rig);
        for (frame, us) in [(0, 0), (1000, 1000), (1999, 2000), (2999, 3000)] {
            let taken = Instant::BOOT + Nanos::from_micros(us);
            rig.recorder.note(ClockNote::Mark(Mark { frame: Frames(frame), earliest: taken, latest: taken, how }));
        }
        let reason = rig.end(End::Finished).0.reason;
        assert_eq!(reason.contains("lost without notice"), expected, "clocked: {clocked}, {how:?}: {reason}");
    }
}

#[test]
fn what_is_known_of_the_end_says_when_the_frame_after_it_would_have_been_taken() {
    let at = |us: i64| Instant::BOOT + Nanos::from_micros(us);
    let mark =
        |frame, us| Mark { frame: Frames(frame), earliest: at(us - 10), latest: at(us), how: MarkSource::Kernel };
    let about = |marks: &[Mark], epoch_first: u64| {
        let mut about = hairspring_recording::testing::Spec::plain().about(0);
        marks.iter().for_each(|mark| about.clock.mark(*mark));
        about.started_monotonic = at(0);
        about.series = resumed().series.map(|of| SegmentOf { epoch_first: Frames(epoch_first), ..of });
        about
    };
    // Without facts, and with one mark from which the nominal rate of 1 MHz counts on, ± 200 ppm and a nanosecond.
    let nothing = ResumeFrom::of(&about(&[], 0), Frames(9));
    assert_eq!((nothing.taken, nothing.average_hz), (None, None));
    let one = ResumeFrom::of(&about(&[mark(1000, 1000)], 0), Frames(11_000));
    let slack = Nanos::new(2001);
    assert_eq!(one.taken, Some((at(10_990) - slack, at(11_000) + slack)));
    assert_eq!(ResumeFrom::of(&about(&[mark(1000, 1000)], 0), Frames(999)).taken, None, "the mark is behind the end");
    // The average is that of the frames since the source began to count, to the beginning of the mark's interval.
    let hz = |marks: &[Mark], began| ResumeFrom::of(&about(marks, began), Frames(11_000)).average_hz;
    assert_eq!(hz(&[mark(1000, 1010)], 0), Some(1_000_000.0));
    assert_eq!(hz(&[mark(1000, 1010)], 500), Some(500_000.0));
    assert_eq!(hz(&[mark(1000, 1010)], 1000), None);
    assert_eq!(hz(&[mark(1000, 10)], 0), None, "no time has passed");
}
