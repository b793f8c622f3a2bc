//! Sessions on this machine whose parts fail: a panic anywhere ends the recording with an error, and never hangs.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use hairspring_machine::{Clock, Host, Instant, Machine as _, Nanos};
use hairspring_record::recorder::WriteSettings;
use hairspring_record::recover;
use hairspring_record::recover::recover;
use hairspring_record::session::{Input, RecordConfig, RecordError, Recorded, record};
use hairspring_recording::Recording;
use hairspring_recording::verify;
use hairspring_recording::verify::verify;
use hairspring_recording::{Ledger, RecordingVerdict};
use hairspring_ring::Producer;
use hairspring_ring::gap::{Gap, GapBounds, GapCause};
use hairspring_ring::layout::Layout;
use hairspring_ring::memory::Pages;
use hairspring_ring::units::{Bytes, Frames};
use hairspring_ring::{End, OnOverrun};
use hairspring_source::external::{ExternalBracket, ExternalClock, ExternalFacts, ExternalKind, ExternalStamp};
use hairspring_source::pattern::Pattern;
use hairspring_source::{Next, Source, SourceCounters, SourceDescription};
use hairspring_store::{Ways, best};

/// A session that takes longer has hung.
const WATCHDOG: Duration = Duration::from_secs(120);
const PATTERN: Pattern = Pattern::Counter;

/// A defect, and the number of bytes after which it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Defect {
    None,
    SourcePanics(u64),
    /// The source declares more lost frames than can be counted, on which the recorder's arithmetic panics.
    RecorderPanics(u64),
    ProgressPanics(u64),
    /// The source loses 10 to 30 frames.
    LosesSome(u64),
}

/// A source without a clock and without an end.
struct Endless {
    defect: Defect,
    produced: u64,
    lost: Vec<GapBounds>,
}

impl Endless {
    fn layout() -> Layout {
        Layout::analogue(2, 16).expect("exists")
    }
}

impl Source for Endless {
    fn describe(&self) -> SourceDescription {
        SourceDescription {
            layout: Self::layout(),
            rate: None,
            clocked: false,
            fifo: Bytes(0),
            hardware: "test".to_owned(),
            pattern: Some(PATTERN),
        }
    }

    fn start(&mut self, _now: Instant) {}

    fn service(&mut self, _now: Instant, ring: &mut Producer) -> Next {
        match self.defect {
            Defect::SourcePanics(at) if self.produced >= at => panic!("the source is broken"),
            Defect::RecorderPanics(at) if self.produced >= at => {
                let (first, frames) = (Self::layout().frames_in(Bytes(self.produced)), Frames(u64::MAX - 1000));
                ring.gap(Gap { first, frames, cause: GapCause::Source, found: Instant::BOOT });
                self.defect = Defect::None;
            }
            Defect::LosesSome(at) if self.produced >= at => {
                let (first, frames) = (Self::layout().frames_in(Bytes(self.produced)), Frames(10));
                ring.gap(Gap { first, frames, cause: GapCause::Source, found: Instant::BOOT });
                self.produced += Self::layout().bytes_of(frames).0;
                self.lost.push(GapBounds { first, least: frames, most: Frames(30) });
                self.defect = Defect::None;
            }
            _ => {}
        }
        let Some(room) = ring.reserve(16 * 1024) else { return Next::Room };
        PATTERN.fill(Self::layout(), Self::layout().frames_in(Bytes(self.produced)), room);
        ring.commit(16 * 1024);
        self.produced += 16 * 1024;
        Next::Room
    }

    /// Not before all data fit: a source whose recorder is gone would wait forever.
    fn stop(&mut self, now: Instant, ring: &mut Producer) -> Next {
        match self.service(now, ring) {
            Next::Room if ring.room() == 0 => Next::Room,
            _ => Next::Ended(End::Stopped),
        }
    }

    fn counters(&self) -> SourceCounters {
        let lost_bytes = 40 * self.lost.len() as u64;
        SourceCounters { produced_bytes: self.produced, lost_bytes, ..SourceCounters::default() }
    }

    fn gap_bounds(&self) -> &[GapBounds] {
        &self.lost
    }
}

/// Records until `bytes` are stored. The outcome, or none if it hangs.
fn recorded(target: &Path, cards: usize, defect: Defect, bytes: u64) -> Result<Vec<Recorded>, RecordError> {
    recorded_beside(target, cards, defect, bytes, None)
}

/// The same with an external clock.
fn recorded_beside(
    target: &Path,
    cards: usize,
    defect: Defect,
    bytes: u64,
    external: Option<Arc<Mutex<dyn ExternalClock>>>,
) -> Result<Vec<Recorded>, RecordError> {
    let (done, result) = mpsc::channel();
    let targets: Vec<_> = (0..cards).map(|card| target.with_file_name(format!("card{card}"))).collect();
    std::thread::spawn(move || {
        let config = RecordConfig {
            buffer: Bytes::mib(1),
            pages: Pages::Small,
            write: WriteSettings { block: Bytes::kib(64), ..WriteSettings::default() },
            on_overrun: OnOverrun::Block,
            external,
            ..RecordConfig::default()
        };
        // The first card has the defect.
        let inputs = targets.into_iter().enumerate().map(|(number, target)| {
            let defect = if number == 0 { defect } else { Defect::None };
            Input {
                source: Box::new(Endless { defect, produced: 0, lost: Vec::new() }),
                targets: vec![target],
                channels: Vec::new(),
            }
        });
        let stop = Arc::new(AtomicBool::new(false));
        let stored = AtomicU64::new(0);
        let outcome = record(inputs.collect(), &config, &stop, &mut |cards| {
            let least = cards.iter().map(|card| card.status.ledger.stored_bytes).min().unwrap_or(0);
            stored.fetch_max(least, Ordering::Relaxed);
            if matches!(defect, Defect::ProgressPanics(at) if least >= at) {
                panic!("the callback is broken");
            }
            stop.fetch_or(least >= bytes, Ordering::Relaxed);
        });
        drop(done.send(outcome));
    });
    result.recv_timeout(WATCHDOG).expect("the session hangs")
}

/// The verdict in the metadata of a card's files, `None` in the state `recording`, and their account.
#[track_caller]
pub(crate) fn read_back(target: &Path) -> (Option<RecordingVerdict>, Ledger) {
    let mut store = best(4, Ways::default());
    let paths = [target.to_owned()];
    let stated = Recording::open_in(&mut *store, &paths).expect("opens").closing().map(|closing| closing.verdict);
    recover(&mut *store, &paths, recover::RecoverOptions::default(), &mut |_| {}).expect("recovered");
    let recording = Recording::open_in(&mut *store, &paths).expect("opens");
    let options = verify::VerifyOptions { counters: true, sha512: false };
    let verified = verify(&mut *store, &recording, options, &mut |_| {}).expect("verified");
    assert_eq!((verified.damaged, verified.missing.0, verified.mismatch), (0, 0, None), "{:?}", verified.faults);
    (stated, verified.ledger)
}

#[test]
fn a_session_without_a_defect_ends_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = recorded(&folder.path().join("x"), 2, Defect::None, 1 << 20).expect("recorded");
    for (number, recorded) in all.iter().enumerate() {
        assert_eq!(recorded.outcome.verdict, RecordingVerdict::Stopped, "{}", recorded.outcome.reason);
        let (stated, ledger) = read_back(&folder.path().join(format!("card{number}")));
        assert_eq!(
            (stated, ledger.stored_bytes),
            (Some(RecordingVerdict::Stopped), recorded.outcome.ledger.stored_bytes)
        );
    }
}

/// Runs a session with a defect in the first of two cards; returns verdict and account of both cards' files.
#[track_caller]
fn panics(part: &str, said: &str, defect: Defect) -> [(Option<RecordingVerdict>, Ledger); 2] {
    let folder = tempfile::tempdir().expect("a folder");
    let error = recorded(&folder.path().join("x"), 2, defect, u64::MAX).expect_err("a panic is an error");
    assert!(matches!(&error, RecordError::Panicked(found, text) if *found == part && text.contains(said)), "{error}");
    [0, 1].map(|number| read_back(&folder.path().join(format!("card{number}"))))
}

#[test]
fn a_source_that_panics_ends_the_session_and_what_it_gave_is_recorded() {
    let [(stated, ledger), (other, _)] = panics("source", "the source is broken", Defect::SourcePanics(1 << 20));
    assert_eq!((stated, ledger.stored_bytes), (Some(RecordingVerdict::Incomplete), 1 << 20));
    assert_eq!(other, Some(RecordingVerdict::Stopped), "the other card ended in order");
}

#[test]
fn a_recorder_that_panics_ends_the_session_and_its_files_are_recoverable() {
    // `done` was not set when the recorder's thread panicked: the caller waited forever, and so did a source for room.
    let [(stated, ledger), (other, _)] = panics("recorder", "overflow", Defect::RecorderPanics(1 << 20));
    assert_eq!(stated, None, "its metadata say that it is still recorded");
    assert!(ledger.stored_bytes <= 1 << 20, "{ledger:?}");
    assert_eq!(other, Some(RecordingVerdict::Stopped), "the other card ended in order");
}

#[test]
fn a_progress_callback_that_panics_ends_the_session_in_order() {
    // The threads of the session waited for a stop.
    let defect = Defect::ProgressPanics(1 << 20);
    for (stated, ledger) in panics("progress callback", "the callback is broken", defect) {
        assert_eq!(stated, Some(RecordingVerdict::Stopped));
        assert!(ledger.stored_bytes >= 1 << 20, "{ledger:?}");
    }
}

#[test]
fn a_gap_whose_length_is_an_interval_is_one_in_the_journal_and_in_the_metadata() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = folder.path().join("card0");
    let cards = recorded(&target, 1, Defect::LosesSome(1 << 20), 4 << 20).expect("recorded");
    let outcome = &cards[0].outcome;
    assert!(outcome.reason.contains("up to 20 frames more may be missing"), "{}", outcome.reason);
    let expected = [GapBounds { first: outcome.gaps[0].first, least: Frames(10), most: Frames(30) }];
    let mut store = best(4, Ways::default());
    let paths = [target.clone()];
    let whole = Recording::open_in(&mut *store, &paths).expect("opens");
    assert_eq!((whole.gaps().len(), whole.bounds()), (1, &expected[..]));
    assert_eq!(whole.closing().map(|closing| &closing.bounds[..]), Some(&expected[..]));
}

/// The behaviour of an external clock, and how often it was read.
#[derive(Debug)]
struct Reference {
    kind: ExternalKind,
    does: Does,
    reads: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Runs,
    /// Its driver refuses from the second reading on.
    Goes,
    /// From the second reading on.
    Panics,
    /// Its driver takes half a second for a reading.
    IsSlow,
}

impl ExternalClock for Reference {
    fn facts(&self) -> ExternalFacts {
        let (id, name) = ("/dev/x".to_owned(), "scripted".to_owned());
        ExternalFacts { kind: self.kind, id, name, late: Nanos::ZERO }
    }

    fn read(&mut self, most: Nanos) -> Result<Option<ExternalStamp>, String> {
        self.reads += 1;
        match self.does {
            Does::Goes if self.reads > 1 => return Err("it is gone".to_owned()),
            Does::Panics if self.reads > 1 => panic!("the clock is broken"),
            Does::IsSlow => std::thread::sleep(Duration::from_millis(500)),
            _ if self.kind == ExternalKind::Pps => {
                std::thread::sleep(Duration::from_nanos(most.count().unsigned_abs()));
            }
            _ => {}
        }
        let now = Host.read(Clock::Realtime);
        let ticks = if self.kind == ExternalKind::Pps { self.reads } else { now.count() };
        Ok(Some(ExternalStamp { ticks, earliest: now, latest: now, how: ExternalBracket::Plain }))
    }
}

#[test]
fn an_external_clock_is_read_from_before_the_first_data_to_the_end_and_never_ends_a_recording() {
    for (kind, does) in [
        (ExternalKind::Ptp, Does::Runs),
        (ExternalKind::Ptp, Does::Goes),
        (ExternalKind::Ptp, Does::Panics),
        (ExternalKind::Ptp, Does::IsSlow),
        (ExternalKind::Pps, Does::Runs),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let reference = Arc::new(Mutex::new(Reference { kind, does, reads: 0 }));
        let all =
            recorded_beside(&folder.path().join("x"), 2, Defect::None, 1 << 20, Some(reference)).expect("recorded");
        for (number, recorded) in all.iter().enumerate() {
            assert_eq!(recorded.outcome.verdict, RecordingVerdict::Stopped, "{}", recorded.outcome.reason);
            let mut store = best(4, Ways::default());
            let paths = [folder.path().join(format!("card{number}"))];
            let whole = Recording::open_in(&mut *store, &paths).expect("opens");
            let clock = &whole.about().clock;
            assert_eq!(clock.external.as_ref().map(|facts| facts.name.as_str()), Some("scripted"));
            let (readings, silences) = (clock.external_readings(), clock.external_silences());
            match (kind, does) {
                (ExternalKind::Ptp, Does::Runs) => {
                    let marks = clock.marks();
                    assert!(readings[0].latest <= marks[0].latest, "{readings:?} {marks:?}");
                    let last = (readings.last().map(|it| it.latest), marks.last().map(|it| it.latest));
                    assert!(readings.len() > 1 && last.0 >= last.1, "{readings:?} {marks:?}");
                    let rate = clock.external_rate().expect("a rate");
                    assert!(rate.ppb[0] <= 0.0 && rate.ppb[1] >= 0.0, "the time of day is the clock: {rate:?}");
                }
                (_, Does::Goes) => {
                    assert_eq!(readings.len(), 1);
                    assert!(silences.iter().all(|silence| silence.is_gone), "{silences:?}");
                    assert_eq!(silences.len(), 1);
                }
                (ExternalKind::Ptp, Does::Panics) => assert_eq!((readings.len(), silences), (1, &[][..])),
                (ExternalKind::Ptp, _) => assert!(!readings.is_empty() && silences.is_empty(), "{readings:?}"),
                // It lasts as long as the first data need, which may be less than a pulse.
                (ExternalKind::Pps, _) => assert!(readings.iter().all(|reading| reading.ticks >= 1)),
            }
        }
    }
}
