//! One recorder hands the ring on to the next, step by step: nothing is lost, and the ring gets its room back in order.

use hairspring_record::recorder::ResumeFrom;
use hairspring_recording::clock::BootId;
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_recording::sigmf::SegmentOf;

use super::*;

const SERIES: RecordingId = RecordingId([8; 16]);

fn segment(number: u32) -> Setup {
    let first = (number == 0).then_some(Frames(0));
    let of =
        SegmentOf { id: SERIES, name: "x".to_owned(), number, first, previous: None, epoch: 0, epoch_first: Frames(0) };
    Setup {
        series: Some(of),
        id: RecordingId([number as u8; 16]),
        targets: vec![format!("{number}/x").into()],
        ..setup()
    }
}

/// The recorder of a first segment on a slow disk, and that of the next on a fast one.
struct Two {
    first: Rig,
    next: Recorder,
    disk: ScriptedDisk,
}

impl Two {
    fn new(on_overrun: OnOverrun, change: impl Fn(Setup) -> Setup) -> Self {
        let script =
            DiskScript { least_latency: Nanos::from_millis(10), most_latency: Nanos::from_millis(10), ..at_once() };
        let (slow, disk) = (ScriptedDisk::new(script), ScriptedDisk::new(at_once()));
        let (producer, consumer) = ring_of(RING, on_overrun);
        let loan = RingLoan::of(&consumer);
        let recorder = Recorder::open(Box::new(slow.store(64)), consumer, description(bytes()), change(segment(0)));
        let next = Setup { gate: None, ..change(segment(1)) };
        let next = Recorder::prepare(Box::new(disk.store(64)), loan, description(bytes()), next).expect("prepared");
        let now = slow.now();
        disk.advance(now);
        let first =
            Rig { disk: slow, recorder: recorder.expect("opens"), producer, counters: SourceCounters::default(), now };
        Self { first, next, disk }
    }

    fn step_next(&mut self) -> Step {
        self.disk.advance(self.first.now);
        let step = self.next.step(self.first.now, self.first.counters);
        let ledger = self.next.ledger(self.first.counters);
        assert!(ledger.holds(), "{ledger:?}");
        step
    }

    fn settle_next(&mut self) -> Step {
        (0..8).map(|_| self.step_next()).last().expect("steps")
    }

    fn cut(&mut self) -> bool {
        let Rig { recorder, counters, now, .. } = &mut self.first;
        recorder.cut(&mut self.next, *now, *counters)
    }

    /// Drives both to their ends, and returns their results.
    #[track_caller]
    fn end(self, end: End) -> [(Outcome, ScriptedDisk); 2] {
        let Self { first, next, disk } = self;
        let Rig { disk: slow, recorder, mut producer, counters, mut now } = first;
        producer.close(end);
        let mut both = [(recorder, slow, false), (next, disk, false)];
        for _ in 0..100_000 {
            for (recorder, disk, done) in &mut both {
                disk.advance(now);
                // The first needs no counts any more.
                *done = *done || recorder.step(now, counters) == Step::Done;
            }
            if both.iter().all(|one| one.2) {
                return both.map(|(recorder, disk, _)| (recorder.finish(now, counters), disk));
            }
            now += Nanos::from_micros(100);
        }
        panic!("a segment does not end");
    }
}

#[test]
fn the_ring_gets_its_room_back_in_order_when_its_recorder_changes() {
    let mut two = Two::new(OnOverrun::Gap, |setup| setup);
    assert!(!two.first.recorder.is_at_cut() && !two.cut(), "no cut is due");
    two.first.put(3 * BLOCK);
    two.first.recorder.cut_after(2);
    two.first.step();
    assert_eq!((two.first.recorder.blocks_taken(), two.first.recorder.end_frame()), (2, Frames(2 * BLOCK)));
    assert!(two.first.recorder.is_at_cut() && !two.first.recorder.is_ending());
    let (now, counters) = (two.first.now, two.first.counters);
    assert_eq!(two.next.step(now, counters), Step::Wait(now + Nanos::from_millis(100)), "it has no ring yet");
    assert!(two.cut() && two.first.recorder.is_ending() && !two.first.recorder.is_at_cut());
    assert_eq!((two.next.first_frame(), two.next.blocks_taken()), (Frames(2 * BLOCK), 0));
    // A block that the next recorder writes at once keeps its place in the ring, because the data before it are not
    // written.
    two.first.put(2 * BLOCK);
    assert_eq!(
        two.settle_next(),
        Step::Wait(two.first.now + MILLISECOND),
        "nobody wakes it when the first has written"
    );
    assert_eq!((two.next.blocks_taken(), two.next.ledger(two.first.counters).stored_bytes), (3, 3 * BLOCK));
    assert_eq!((two.first.producer.room(), two.next.fill().now), (RING - 5 * BLOCK, Bytes(5 * BLOCK)));
    two.next.cut_after(3);
    two.first.put(BLOCK);
    two.step_next();
    assert!(!two.next.is_at_cut(), "the segment before still owes blocks");
    two.first.pass(Nanos::from_millis(10));
    two.first.step();
    assert!(two.step_next() != Step::Wait(two.first.now + MILLISECOND));
    assert_eq!(two.first.producer.room(), RING - BLOCK, "what both have written is free");
    two.next.do_not_cut();
    let [(first, slow), (next, fast)] = two.end(End::Finished);
    assert_eq!(
        (first.verdict, first.reason.as_str(), first.end),
        (RecordingVerdict::Complete, "everything is there; the next segment begins with frame 8192", End::Finished)
    );
    assert_eq!((first.ledger.produced_bytes, first.ledger.stored_bytes), (2 * BLOCK, 2 * BLOCK));
    assert_eq!((next.verdict, next.ledger.stored_bytes), (RecordingVerdict::Complete, 4 * BLOCK), "{}", next.reason);
    assert_eq!(
        (next.ledger.produced_bytes, next.ledger.left_out_bytes, next.ledger.earlier_bytes),
        (6 * BLOCK, 2 * BLOCK, 2 * BLOCK)
    );
    assert_eq!(first.high_water, Bytes(3 * BLOCK), "as it was at the cut");
    // The first segment of all has nothing before it, and its source has counted from its first frame.
    assert_eq!((first.skips.len(), next.skips.len()), (0, 1));
    let journals = [
        slow.image_after_kill(0).read("0/x.hairspring-journal"),
        fast.image_after_kill(0).read("1/x.hairspring-journal"),
    ];
    for journal in journals.into_iter().flatten() {
        assert!(!Journal::read(&journal).records.iter().any(|record| matches!(record, Record::Epoch { .. })));
    }
    oracle::check(&slow.image_after_kill(0), &["0/x"], bytes(), PATTERN, true);
    oracle::check(&fast.image_after_kill(0), &["1/x"], bytes(), PATTERN, true);
}

#[test]
fn the_ring_gets_room_back_block_by_block_while_the_recorder_before_writes() {
    let mut two = Two::new(OnOverrun::Gap, |setup| setup);
    two.first.put(BLOCK);
    two.first.recorder.cut_after(2);
    two.first.step();
    two.first.pass(Nanos::from_millis(4));
    two.first.put(2 * BLOCK);
    two.first.step();
    assert!(two.cut());
    two.settle_next();
    two.first.pass(Nanos::from_millis(6));
    two.first.step();
    two.step_next();
    assert_eq!(two.first.producer.room(), RING - 2 * BLOCK, "the first block is written");
    two.first.pass(Nanos::from_millis(4));
    two.first.step();
    two.step_next();
    assert_eq!(two.first.producer.room(), RING);
    let stored = two.end(End::Finished).map(|(outcome, _)| outcome.ledger.stored_bytes);
    assert_eq!(stored, [2 * BLOCK, BLOCK]);
}

#[test]
fn a_gap_at_the_cut_is_in_one_of_the_segments_and_counts_once() {
    let mut two = Two::new(OnOverrun::Gap, |setup| setup);
    two.first.put(100);
    two.first.lose(7, GapCause::Source);
    two.first.put(BLOCK - 100);
    two.first.recorder.cut_after(1);
    // The gap is known when the last block is taken: it belongs to the segment that ends with it.
    two.first.lose(5, GapCause::Source);
    two.first.step();
    assert!(!two.first.recorder.is_at_cut(), "nothing follows");
    two.first.counters.ignored.foreign = 3;
    // The bytes in the card's FIFO belong to the next segment.
    two.first.counters.fifo_bytes = 9;
    two.first.lose(4, GapCause::ServedLate);
    assert!(two.first.recorder.is_at_cut(), "a gap follows");
    assert!(two.cut());
    assert_eq!(two.next.first_frame(), Frames(BLOCK + 12));
    assert_eq!(two.first.recorder.ledger(two.first.counters).in_fifo_bytes, 0);
    two.first.counters.fifo_bytes = 0;
    two.first.put(50);
    two.first.counters.ignored.foreign = 5;
    let [(first, slow), (next, fast)] = two.end(End::Finished);
    let gaps = |outcome: &Outcome| outcome.gaps.iter().map(|gap| (gap.first.0, gap.frames.0)).collect::<Vec<_>>();
    assert_eq!(gaps(&first), [(100, 7), (BLOCK + 7, 5)]);
    assert_eq!((first.ledger.lost_bytes, first.ledger.produced_bytes), (12, BLOCK + 12));
    assert_eq!(gaps(&next), [(BLOCK + 12, 4)]);
    assert_eq!((next.ledger.lost_bytes, next.ledger.produced_bytes), (4, BLOCK + 66));
    assert_eq!((first.ignored.foreign, next.ignored.foreign), (3, 2), "each has its own");
    for (outcome, disk, base) in [(first, slow, "0/x"), (next, fast, "1/x")] {
        assert_eq!(outcome.verdict, RecordingVerdict::Incomplete, "{}", outcome.reason);
        oracle::check(&disk.image_after_kill(0), &[base], bytes(), PATTERN, true);
    }
}

#[test]
fn a_source_that_has_ended_behind_the_cut_does_not_end_there() {
    for gap in [false, true] {
        let mut two = Two::new(OnOverrun::Gap, |setup| setup);
        two.first.put(BLOCK);
        two.first.recorder.cut_after(1);
        two.first.step();
        if gap {
            two.first.lose(3, GapCause::Source);
        } else {
            two.first.put(10);
        }
        two.first.producer.close(End::Finished);
        assert!(two.first.recorder.is_at_cut() && !two.first.recorder.ends_at_cut(), "gap: {gap}");
        assert!(two.cut());
    }
}

#[test]
fn a_segment_that_was_resumed_hands_its_epoch_on() {
    let at = Instant::BOOT + Nanos::from_secs(1);
    let mut clock = ClockRecord::default();
    clock.boot_id = Some(BootId([4; 16]));
    let from = |clock: &ClockRecord| ResumeFrom {
        end: Frames(5000),
        taken: Some((at, at)),
        clock: clock.clone(),
        rate: SampleRate::hz(1_000_000),
        average_hz: None,
        layout: bytes(),
    };
    let mut two = Two::new(OnOverrun::Gap, |mut setup| {
        let is_first = setup.id == RecordingId([0; 16]);
        setup.resumed = is_first.then(|| from(&clock));
        setup.series.iter_mut().for_each(|of| of.first = of.first.map(|_| Frames(5000)));
        Setup { clock: clock.clone(), ..setup }
    });
    two.first.recorder.begins(Beginning { realtime: Nanos::ZERO, monotonic: at + MILLISECOND, within: Nanos::ZERO });
    let (epoch, bounds) = two.first.recorder.resumed().expect("known");
    let origin = 5000 + bounds.least.0;
    two.first.put(BLOCK);
    two.first.recorder.cut_after(1);
    two.first.step();
    two.first.put(30);
    assert!(two.cut());
    assert_eq!((epoch, two.next.first_frame(), two.next.resumed()), (0, Frames(origin + BLOCK), None));
    let [(first, _), (next, fast)] = two.end(End::Finished);
    assert!(first.ledger.holds() && next.ledger.holds(), "{:?} {:?}", first.ledger, next.ledger);
    assert_eq!((first.ledger.produced_bytes, next.ledger.produced_bytes), (origin + BLOCK, origin + BLOCK + 30));
    let records = Journal::read(&fast.image_after_kill(0).read("1/x.hairspring-journal").expect("a journal")).records;
    assert!(records.contains(&Record::Epoch { first: Frames(origin) }), "its source counts from there");
}

/// The caller may cut where a source falls silent, so that the existing data become a closed segment.
#[test]
fn a_cut_before_anything_follows_loses_nothing_whether_something_comes_or_not() {
    for more in [0, 30] {
        let mut two = Two::new(OnOverrun::Gap, |setup| setup);
        two.first.put(BLOCK - 1);
        two.first.recorder.cut_after(1);
        two.first.step();
        assert!(!two.first.recorder.may_cut(), "its block is not whole");
        two.first.put(1);
        two.first.step();
        assert!(two.first.recorder.may_cut() && !two.first.recorder.is_at_cut(), "nothing follows");
        assert!(two.cut() && !two.first.recorder.may_cut());
        assert_eq!((two.next.first_frame(), two.next.blocks_taken()), (Frames(BLOCK), 0));
        if more > 0 {
            two.first.put(more);
        }
        let [(first, slow), (next, fast)] = two.end(End::Finished);
        assert_eq!((first.verdict, next.verdict), (RecordingVerdict::Complete, RecordingVerdict::Complete), "{more}");
        assert_eq!((first.ledger.stored_bytes, next.ledger.stored_bytes), (BLOCK, more));
        oracle::check(&slow.image_after_kill(0), &["0/x"], bytes(), PATTERN, true);
        oracle::check(&fast.image_after_kill(0), &["1/x"], bytes(), PATTERN, true);
    }
}

/// The next segment would hide the failure.
#[test]
fn a_segment_whose_disk_has_failed_is_not_cut() {
    let what = What::Error(Errno(libc::EIO));
    let file = Some(".sigmf-data".to_owned());
    let fault = Fault { kind: Some(OpKind::Write), file, when: When::From(2), what };
    let mut rig = Rig::new(DiskScript { faults: vec![fault], ..at_once() }, segment(0));
    rig.put(2 * BLOCK);
    rig.recorder.cut_after(2);
    while rig.step() != Step::StopSource {
        rig.pass(MILLISECOND);
    }
    rig.put(BLOCK);
    assert_eq!(rig.recorder.blocks_taken(), 2);
    assert!(!rig.recorder.is_at_cut() && !rig.recorder.may_cut());
}

#[test]
fn a_source_that_ends_at_the_cut_ends_there() {
    let mut two = Two::new(OnOverrun::Gap, |setup| setup);
    two.first.put(BLOCK);
    two.first.recorder.cut_after(1);
    two.first.step();
    assert!(!two.first.recorder.is_at_cut() && !two.first.recorder.ends_at_cut(), "something may follow");
    two.first.producer.close(End::Finished);
    two.first.step();
    assert!(!two.first.recorder.is_at_cut() && two.first.recorder.ends_at_cut());
    two.first.recorder.do_not_cut();
    assert!(!two.first.recorder.ends_at_cut());
    let Two { first, next, disk } = two;
    next.abandon();
    assert_eq!(disk.names(), 0, "what was made in advance is gone");
    let Rig { recorder, counters, now, .. } = first;
    let mut recorder = recorder;
    let mut now = now;
    while recorder.step(now, counters) != Step::Done {
        now += MILLISECOND;
        first.disk.advance(now);
    }
    assert_eq!(recorder.finish(now, counters).reason, "everything that the source produced is there");
}

#[test]
fn a_cut_beside_a_gate_comes_between_two_shots_and_the_gate_goes_on() {
    // Full-scale frames trigger; each shot is 10 frames before and 50 from the trigger on.
    let mut two =
        Two::new(OnOverrun::Gap, |setup| Setup { gate: Some(gate("level:ch0>0.99", 10, 50)), gated: true, ..setup });
    two.first.recorder.begins(Beginning { realtime: Nanos::ZERO, monotonic: two.first.now, within: Nanos::ZERO });
    two.first.recorder.cut_after(1);
    let mut is_cut = false;
    for _ in 0..40 {
        two.first.put(500);
        two.first.settle();
        if !is_cut && two.first.recorder.is_at_cut() {
            assert!(two.cut(), "what the last shot left in a block is written with the cut");
            is_cut = true;
        }
        if is_cut {
            two.settle_next();
        }
    }
    assert!(is_cut, "no shot ended");
    let [(first, slow), (next, fast)] = two.end(End::Finished);
    let shots: Vec<u64> = first.triggers.iter().chain(&next.triggers).map(|(shot, _)| *shot).collect();
    assert_eq!(shots, (0..shots.len() as u64).collect::<Vec<_>>(), "shots are counted through");
    assert!(!first.triggers.is_empty() && !next.triggers.is_empty());
    assert_eq!(first.ledger.lost_bytes + next.ledger.lost_bytes, 0);
    let end = first.ledger.produced_bytes;
    assert!(
        first.triggers.iter().all(|(_, frame)| frame.0 + 50 <= end),
        "a shot is divided at {end}: {:?}",
        first.triggers
    );
    for (outcome, disk, base) in [(first, slow, "0/x"), (next, fast, "1/x")] {
        assert!(outcome.ledger.holds() && outcome.ledger.is_settled(), "{:?}", outcome.ledger);
        // The first may be the frames before the segment.
        let mut pairs = outcome.skips.windows(2).skip(1);
        let apart = pairs.all(|pair| pair[0].first.0 + pair[0].frames.0 < pair[1].first.0);
        assert!(apart, "what is left out at a stretch is one skip: {:?}", outcome.skips);
        let contents = oracle::check(&disk.image_after_kill(0), &[base], bytes(), PATTERN, true);
        assert_eq!((contents.stored, contents.left_out), (outcome.ledger.stored_bytes, outcome.ledger.left_out_bytes));
    }
}
