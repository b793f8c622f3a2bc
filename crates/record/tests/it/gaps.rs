//! More gaps than the ring holds, all in less than a block. A recorder that took no gap before it had a whole block
//! waited forever: the source waited for room in the list of gaps, or lost all later data.

use std::sync::Arc;

use hairspring_machine::{Instant, Nanos};
use hairspring_record::recorder::{BlockPlacement, Outcome, Recorder, Setup, Step, WriteSettings};
use hairspring_recording::beginning::Beginning;
use hairspring_recording::journal::RecordingId;
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_ring::gap::{Gap, GapCause};
use hairspring_ring::layout::Layout;
use hairspring_ring::memory::{Memory, Pages};
use hairspring_ring::units::{Bytes, Frames, SampleRate};
use hairspring_ring::{End, OnOverrun};
use hairspring_ring::{Producer, ring};
use hairspring_source::pattern::Pattern;
use hairspring_source::trigger::{Gate, Shots};
use hairspring_source::{SourceCounters, SourceDescription};
use hairspring_store::Errno;
use hairspring_store::scripted::{DiskScript, Fault, OpKind, Pace, ScriptedDisk, What, When};

use crate::{mended, oracle};

const PATTERN: Pattern = Pattern::Noise { seed: 7 };
/// A block with room for 10,000 gaps.
const LARGE: u64 = 64 << 10;
/// A block with room for 1,025 gaps.
const SMALL: u64 = 4 << 10;
/// Frames of one byte between two gaps of one frame.
const RUN: u64 = 3;
/// Steps after which a recording that does not end has hung.
const MOST_STEPS: u32 = 20_000;

#[derive(Clone, Debug)]
struct Case {
    gaps: u64,
    block: u64,
    on_overrun: OnOverrun,
    /// The most gaps that the source declares between two steps of the recorder.
    burst: u64,
    /// Adjacent gaps that the source declares at once; each is handed over separately.
    touching: u64,
    trigger: Option<&'static str>,
    faults: Vec<Fault>,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            gaps: 10_000,
            block: LARGE,
            on_overrun: OnOverrun::Block,
            burst: 500,
            touching: 1,
            trigger: None,
            faults: Vec::new(),
        }
    }
}

fn layout() -> Layout {
    Layout::analogue(1, 8).expect("exists")
}

/// A link that loses a frame after each run.
struct Link {
    producer: Producer,
    on_overrun: OnOverrun,
    gaps: u64,
    touching: u64,
    produced: u64,
    lost: u64,
    ended: bool,
}

impl Link {
    fn counters(&self) -> SourceCounters {
        SourceCounters { produced_bytes: self.produced, lost_bytes: self.lost, ..SourceCounters::default() }
    }

    fn lose(&mut self, bytes: u64, cause: GapCause) {
        self.producer.gap(Gap { first: Frames(self.produced), frames: Frames(bytes), cause, found: Instant::BOOT });
        self.produced += bytes;
        self.lost += bytes;
    }

    fn serve(&mut self, burst: u64, stop: bool) {
        for _ in 0..burst {
            if self.ended {
                return;
            }
            if stop || self.gaps == 0 {
                self.producer.close(if stop { End::Stopped } else { End::Finished });
                self.ended = true;
                return;
            }
            match self.producer.reserve(RUN as usize) {
                Some(room) => {
                    PATTERN.fill(layout(), Frames(self.produced), room);
                    self.producer.commit(RUN as usize);
                    self.produced += RUN;
                    for _ in 0..self.touching {
                        self.lose(1, GapCause::Source);
                        let _ = self.producer.room();
                    }
                    self.gaps -= 1;
                }
                None if self.on_overrun == OnOverrun::Block => return,
                None => {
                    self.lose(RUN, GapCause::BufferFull);
                    if self.on_overrun == OnOverrun::Stop {
                        self.producer.close(End::Overrun);
                        self.ended = true;
                    }
                }
            }
        }
    }
}

fn run(case: &Case) -> (Outcome, ScriptedDisk) {
    let (outcome, disk) = try_run(case);
    (outcome.expect("a recorder"), disk)
}

/// The same where the disk may crash before there is a recorder.
fn try_run(case: &Case) -> (Option<Outcome>, ScriptedDisk) {
    let script = DiskScript { pace: Pace::Leaping, faults: case.faults.clone(), ..DiskScript::default() };
    let disk = ScriptedDisk::new(script);
    let memory = Memory::mirrored(Bytes(4 * LARGE), Bytes(4 * LARGE), Pages::Small).expect("memory");
    let (producer, consumer) = ring(Arc::new(memory), Bytes(case.block), case.on_overrun).expect("a ring");
    let description = SourceDescription {
        layout: layout(),
        rate: SampleRate::hz(1_000_000),
        clocked: false,
        fifo: Bytes(0),
        hardware: "test".to_owned(),
        pattern: Some(PATTERN),
    };
    let gate = case.trigger.map(|text| {
        let shots = Shots::Repeated(None);
        Gate::new(text.parse().expect("a trigger"), layout(), Frames(100), Frames(100), shots).expect("a gate")
    });
    let setup = Setup {
        targets: vec!["a/x".into()],
        id: RecordingId([3; 16]),
        write: WriteSettings {
            block: Bytes(case.block),
            depth: 2,
            placement: BlockPlacement::LeastLoaded,
            volume: None,
            sync_every: Nanos::from_millis(5),
            sync_bytes: Bytes::mib(1),
            software: "test".to_owned(),
        },
        gate,
        gated: false,
        keep_on: None,
        opened: Beginning { realtime: Nanos::ZERO, monotonic: Instant::BOOT, within: Nanos::ZERO },
        channels: Vec::new(),
        clock: hairspring_recording::clock::ClockRecord::default(),
        series: None,
        resumed: None,
        stopwatch: || Instant::BOOT,
    };
    let Ok(mut recorder) = Recorder::open(Box::new(disk.store(10)), consumer, description, setup) else {
        return (None, disk);
    };
    let mut link = Link {
        producer,
        on_overrun: case.on_overrun,
        gaps: case.gaps,
        touching: case.touching,
        produced: 0,
        lost: 0,
        ended: false,
    };
    let (mut now, mut stop) = (disk.now(), false);
    for _ in 0..MOST_STEPS {
        link.serve(case.burst, stop);
        let step = recorder.step(now, link.counters());
        let ledger = recorder.ledger(link.counters());
        assert!(ledger.holds(), "{case:?}: {} bytes are unaccounted for: {ledger:?}", ledger.unaccounted_bytes());
        match step {
            Step::Done => return (Some(recorder.finish(now, link.counters())), disk),
            Step::StopSource => stop = true,
            Step::Wait(_) => {}
        }
        now = disk.next_due().unwrap_or(now).max(now) + Nanos::from_micros(1);
        disk.advance(now);
    }
    panic!("{case:?}: the recording does not end: {:?}", recorder.ledger(link.counters()));
}

/// The account in the files equals the account in the outcome.
#[track_caller]
fn agree(outcome: &Outcome, disk: &ScriptedDisk) {
    let ledger = outcome.ledger;
    assert!(ledger.holds() && ledger.is_settled(), "{ledger:?}");
    assert_ne!(outcome.verdict, RecordingVerdict::Unaccounted, "{}", outcome.reason);
    let lost: u64 = outcome.gaps.iter().map(|gap| gap.frames.0).sum();
    assert_eq!(lost, ledger.lost_bytes);
    let image = disk.image_after_kill(0);
    let contents = oracle::check(&image, &["a/x"], layout(), PATTERN, true);
    assert_eq!((contents.stored, contents.lost), (ledger.stored_bytes, lost));
    mended::check(&image, &["a/x"], ledger.stored_bytes);
}

const POLICIES: [OnOverrun; 4] = [OnOverrun::Block, OnOverrun::Gap, OnOverrun::Stop, OnOverrun::Overwrite];

#[test]
fn each_of_any_number_of_gaps_in_a_block_is_recorded() {
    for (gaps, on_overrun) in [1_025, 10_000].into_iter().flat_map(|gaps| POLICIES.map(|policy| (gaps, policy))) {
        let case = Case { gaps, on_overrun, ..Case::default() };
        let (outcome, disk) = run(&case);
        agree(&outcome, &disk);
        assert_eq!(outcome.end, End::Finished, "{case:?}: {}", outcome.reason);
        assert_eq!((outcome.ledger.stored_bytes, outcome.ledger.lost_bytes), (gaps * RUN, gaps), "{case:?}");
        assert_eq!(outcome.gaps.len() as u64, gaps, "{case:?}: gaps ran together");
    }
}

#[test]
fn a_source_that_declares_more_gaps_than_the_ring_holds_goes_on_once_they_are_seen() {
    for on_overrun in [OnOverrun::Gap, OnOverrun::Overwrite] {
        let case = Case { on_overrun, burst: 2_000, ..Case::default() };
        let (outcome, disk) = run(&case);
        agree(&outcome, &disk);
        assert_eq!(outcome.end, End::Finished, "{case:?}: {}", outcome.reason);
        assert_eq!(
            outcome.ledger.stored_bytes,
            10_000 * RUN,
            "{case:?}: the link ends after so many runs that were taken"
        );
    }
    let (outcome, disk) = run(&Case { on_overrun: OnOverrun::Stop, burst: 2_000, ..Case::default() });
    agree(&outcome, &disk);
    assert_eq!((outcome.end, outcome.ledger.stored_bytes), (End::Overrun, 1_025 * RUN), "{}", outcome.reason);
}

#[test]
fn a_gate_decides_before_each_of_any_number_of_gaps() {
    let (outcome, disk) = run(&Case { trigger: Some("level:ch0>0.99"), ..Case::default() });
    let ledger = outcome.ledger;
    assert!(ledger.holds() && ledger.is_settled(), "{ledger:?}");
    assert_eq!((outcome.end, outcome.gaps.len()), (End::Finished, 10_000), "{}", outcome.reason);
    assert!(!outcome.triggers.is_empty() && ledger.left_out_bytes > 0);
    oracle::check(&disk.image_after_kill(0), &["a/x"], layout(), PATTERN, true);
}

/// The gate held back the frames before the gaps for a trigger that might come in the frames after them, and none came.
#[test]
fn a_gate_decides_before_more_gaps_in_one_place_than_the_ring_holds() {
    for trigger in [None, Some("level:ch0>0.99")] {
        let (outcome, _) = run(&Case { gaps: 3, touching: 1_100, trigger, ..Case::default() });
        let ledger = outcome.ledger;
        assert!(ledger.holds() && ledger.is_settled(), "{ledger:?}");
        assert_eq!((outcome.end, ledger.lost_bytes), (End::Finished, 3 * 1_100), "{}", outcome.reason);
    }
}

/// Bytes before a gap that was entered ahead of its block have a place in the stored stream: they are lost there when
/// no target is left.
#[test]
fn bytes_before_a_gap_that_was_entered_ahead_are_accounted_for_when_the_last_target_fails() {
    for nth in 1..30 {
        for kind in [OpKind::Write, OpKind::Sync] {
            let what = What::Error(Errno(libc::EIO));
            let failing = Fault { kind: Some(kind), file: None, when: When::From(nth), what };
            let case = Case { gaps: 5_000, block: SMALL, faults: vec![failing], ..Case::default() };
            let outcome = run(&case).0;
            let ledger = outcome.ledger;
            assert!(ledger.holds() && ledger.is_settled(), "{case:?}: {ledger:?}");
            assert_ne!(outcome.verdict, RecordingVerdict::Unaccounted, "{case:?}: {}", outcome.reason);
            let lost: u64 = outcome.gaps.iter().map(|gap| gap.frames.0).sum();
            assert_eq!(lost, ledger.lost_bytes, "{case:?}");
        }
    }
}

/// A gap after the last block shows that there were bytes before it. Recovery ignored them: the account that it wrote
/// lacked them.
#[test]
fn recovery_counts_what_lay_before_a_gap_behind_the_last_block() {
    let case = Case { gaps: 5_000, block: SMALL, ..Case::default() };
    let (mut behind, operations) = (0, run(&case).1.operations());
    for at in (1..=operations).rev().step_by(3) {
        let (outcome, disk) = try_run(&Case { faults: vec![Fault::crash_at(at)], ..case.clone() });
        if outcome.is_none() {
            continue;
        }
        for image in [disk.image_after_kill(at), disk.image_after_power_cut(at)] {
            let (recovered, verified) = mended::check(&image, &["a/x"], 0);
            let (ledger, known) = (recovered.ledger, recovered.gaps.last().map_or(0, |gap| gap.end().0));
            assert!(
                ledger.stored_bytes + ledger.lost_bytes >= known,
                "crash at {at}: {ledger:?}, but frame {known} is known"
            );
            behind += u64::from(verified.bytes.0 + ledger.lost_bytes == known);
        }
    }
    assert!(behind > 0, "no crash left a gap behind the last block");
}
