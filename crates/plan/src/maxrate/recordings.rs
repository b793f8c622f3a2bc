//! A probe that records a virtual card to folders at a rate, reads the recording back to confirm it, and removes it.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::Nanos;

use super::{Probe, Purpose};
use hairspring_record::recorder::WriteSettings;
use hairspring_record::session::{Input, RecordConfig, RecordError, RecordProgress, Recorded, record};
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_recording::verify;
use hairspring_recording::verify::{VerifyOptions, verify};
use hairspring_recording::{Files, Recording, RecordingError};
use hairspring_ring::OnOverrun;
use hairspring_ring::gap::GapCause;
use hairspring_ring::units::{ByteRate, Bytes, SampleRate};
use hairspring_source::Source;
use hairspring_source::card::{Card, CardError, CardKind};
use hairspring_source::virtual_card::UnpacedCard;
use hairspring_store::best;

/// A run moves at least this many times the data that the buffers can hide.
const TIMES_THE_BUFFERS: u64 = 2;

/// Recordings of one card to the same folders at different rates.
#[derive(Clone, Debug)]
pub struct Recordings {
    /// The virtual card; its own rate does not matter.
    pub card: Card,
    /// Base paths of the recording's files, one in each folder. Existing files of these names are removed.
    pub targets: Vec<PathBuf>,
    /// The settings of a recording; the probe sets the policy, the length and the volume.
    pub config: RecordConfig,
    /// The least length of a recording.
    pub length: Nanos,
    /// The most bytes that one recording may write, in all folders together.
    pub volume: Bytes,
}

/// The phases of a probe.
#[derive(Clone, Copy, Debug)]
pub enum Doing<'a> {
    /// It records.
    Recording(&'a RecordProgress),
    /// It reads the recording back.
    Verifying(verify::ReadProgress),
}

/// Why a probe failed.
#[derive(Debug)]
pub enum ProbeError {
    /// The caller stopped it.
    Stopped,
    /// The card is not virtual, so its rate is fixed.
    NotVirtual,
    /// The card makes no such rate.
    Rate(ByteRate),
    /// The card does not open.
    Open(CardError),
    /// The allowed volume is less than a run must move: the volume needed.
    Volume(Bytes),
    /// The recording did not begin.
    Record(RecordError),
    /// A recording ended for another reason than a loss. A full or broken disk is no evidence about rates.
    Failed(String),
    /// It cannot be read back.
    Verify(RecordingError),
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stopped => f.write_str("stopped"),
            Self::NotVirtual => f.write_str("only a virtual card runs at any rate: write virtual:4ch,16bit,1MS/s"),
            Self::Rate(rate) => write!(f, "no card makes {rate}: the most is 100 GB/s"),
            Self::Open(error) => error.fmt(f),
            Self::Volume(needed) => write!(
                f,
                "a run must move {TIMES_THE_BUFFERS} times what the buffers hold, {needed}: allow that volume, or make the \
                 buffers smaller"
            ),
            Self::Record(error) => error.fmt(f),
            Self::Failed(reason) => write!(f, "a recording ended without being complete: {reason}"),
            Self::Verify(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ProbeError {}

impl Recordings {
    /// The least bytes that a run must move, so that the buffers cannot hide the disk.
    pub fn least_run(&self) -> Bytes {
        let fifo = self.card.fifo().unwrap_or(Bytes(0));
        // The granted size, which is whole pages.
        let buffer = self.config.buffer.0.next_multiple_of(self.config.pages.size().0);
        Bytes(buffer.saturating_add(fifo.0).saturating_mul(TIMES_THE_BUFFERS))
    }

    /// The rate of the same path with a card that waits. The search begins near it; it is neither a lossless rate nor a
    /// limit. Blocks as [`probe`](Self::probe) does.
    ///
    /// # Errors
    /// The recording did not begin, failed, or was stopped.
    pub fn unpaced(
        &self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Doing<'_>),
    ) -> Result<(ByteRate, Recorded), ProbeError> {
        self.check()?;
        let layout = self.card.layout();
        let pattern = self.card.pattern().unwrap_or(hairspring_source::pattern::Pattern::Noise { seed: 0 });
        let source = UnpacedCard::new(layout, pattern, Some(layout.frames_in(self.volume)));
        // The volume is unknown, and reserving all of the allowed volume could fill the disk.
        let config = RecordConfig { length: Some(self.length), ..self.config(OnOverrun::Block, None) };
        let recorded = self.one(Box::new(source), &config, stop, progress);
        self.remove();
        let recorded = recorded?;
        let outcome = &recorded.outcome;
        if !matches!(outcome.verdict, RecordingVerdict::Complete | RecordingVerdict::Stopped) {
            return Err(ProbeError::Failed(outcome.reason.clone()));
        }
        let rate = ByteRate::of(Bytes(outcome.ledger.stored_bytes), recorded.finished);
        rate.map(|rate| (rate, recorded)).ok_or_else(|| ProbeError::Failed("nothing was stored".to_owned()))
    }

    /// Records at the rate, and removes the recording. A confirming recording is read back first. Blocks; two threads
    /// run within the call.
    ///
    /// # Errors
    /// The recording could not be made or read, or [`ProbeError::Stopped`]. A loss is no error.
    pub fn probe(
        &self,
        rate: ByteRate,
        purpose: Purpose,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Doing<'_>),
    ) -> Result<Probe, ProbeError> {
        self.check()?;
        let layout = self.card.layout();
        let (frames, card) = self.card_at(rate)?;
        // The card's clock counts whole frames.
        let rate = layout.byte_rate(frames);
        let volume = Bytes(rate.volume_in(self.length).0.clamp(self.least_run().0, self.volume.0));
        let source = card.open(Some(layout.frames_in(volume))).map_err(ProbeError::Open)?;
        let result =
            self.one(source, &self.config(OnOverrun::Stop, Some(volume)), stop, progress).and_then(|recorded| {
                let is_proof = purpose == Purpose::Confirm && recorded.outcome.verdict == RecordingVerdict::Complete;
                let read_back = if is_proof { Some(self.is_readable(stop, progress)?) } else { None };
                Ok((recorded, read_back))
            });
        self.remove();
        let (Recorded { outcome, elapsed, .. }, read_back) = result?;
        let lost = outcome.gaps.first().map(|gap| gap.cause);
        if lost == Some(GapCause::WriteFailed) || (lost.is_none() && outcome.verdict != RecordingVerdict::Complete) {
            return Err(ProbeError::Failed(outcome.reason));
        }
        Ok(Probe {
            rate,
            purpose,
            elapsed,
            volume: Bytes(outcome.ledger.stored_bytes),
            lost,
            high_water_promille: outcome.high_water.0.saturating_mul(1000).div_ceil(outcome.buffer.0.max(1)),
            worst_stall: outcome.worst_stall,
            read_back,
        })
    }

    /// Checks that the card can run at this rate. Writes nothing.
    ///
    /// # Errors
    /// [`ProbeError::Rate`] if not.
    pub fn can_be(&self, rate: ByteRate) -> Result<(), ProbeError> {
        self.card_at(rate).map(drop)
    }

    fn card_at(&self, rate: ByteRate) -> Result<(SampleRate, Card), ProbeError> {
        let frames = self.card.layout().sample_rate(rate).ok_or(ProbeError::Rate(rate))?;
        Ok((frames, self.card.at_rate(frames).ok_or(ProbeError::Rate(rate))?))
    }

    fn check(&self) -> Result<(), ProbeError> {
        if self.card.kind() != CardKind::Virtual {
            return Err(ProbeError::NotVirtual);
        }
        if self.volume < self.least_run() { Err(ProbeError::Volume(self.least_run())) } else { Ok(()) }
    }

    fn config(&self, on_overrun: OnOverrun, volume: Option<Bytes>) -> RecordConfig {
        RecordConfig { on_overrun, write: WriteSettings { volume, ..self.config.write.clone() }, ..self.config.clone() }
    }

    fn one(
        &self,
        source: Box<dyn Source>,
        config: &RecordConfig,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Doing<'_>),
    ) -> Result<Recorded, ProbeError> {
        self.remove();
        let input = Input { source, targets: self.targets.clone(), channels: Vec::new() };
        let mut recorded = record(vec![input], config, stop, &mut |cards| {
            if let Some(card) = cards.first() {
                progress(Doing::Recording(card));
            }
        })
        .map_err(ProbeError::Record)?;
        if stop.load(Ordering::Relaxed) {
            return Err(ProbeError::Stopped);
        }
        recorded.pop().ok_or(ProbeError::Stopped)
    }

    /// Whether every byte on the disk is as the card made it.
    fn is_readable(&self, stop: &AtomicBool, progress: &mut dyn FnMut(Doing<'_>)) -> Result<bool, ProbeError> {
        let mut store = best(self.config.write.depth, self.config.ways);
        let recording = Recording::open_in(&mut *store, &self.targets).map_err(ProbeError::Verify)?;
        let options = VerifyOptions { counters: true, sha512: false };
        let verified = verify(&mut *store, &recording, options, &mut |at| progress(Doing::Verifying(at)));
        let verified = verified.map_err(ProbeError::Verify)?;
        if stop.load(Ordering::Relaxed) {
            return Err(ProbeError::Stopped);
        }
        Ok(verified.verdict == RecordingVerdict::Complete && verified.pattern.is_some())
    }

    fn remove(&self) {
        for target in &self.targets {
            Files::of(target).remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recordings(folder: &std::path::Path, card: &str) -> Recordings {
        Recordings {
            card: card.parse().expect("a card"),
            targets: vec![folder.join("probe")],
            config: RecordConfig {
                buffer: Bytes::mib(1),
                write: WriteSettings { block: Bytes::kib(64), ..WriteSettings::default() },
                pages: hairspring_ring::memory::Pages::Small,
                ..RecordConfig::default()
            },
            length: Nanos::from_millis(50),
            volume: Bytes::mib(64),
        }
    }

    fn rate(bytes_per_s: f64) -> ByteRate {
        ByteRate::new(bytes_per_s).expect("a rate")
    }

    #[test]
    fn a_probe_says_what_was_lost_and_leaves_nothing_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let stop = AtomicBool::new(false);
        let slow = recordings(folder.path(), "virtual:2ch,16bit,1MS/s,fifo=1MiB");
        let probe = slow.probe(rate(1e6), Purpose::Confirm, &stop, &mut |_| ()).expect("a probe");
        assert_eq!((probe.lost, probe.read_back), (None, Some(true)));
        assert!(probe.volume >= slow.least_run(), "the buffers cannot hide the disk: {}", probe.volume);
        assert!((probe.rate.bytes_per_s() / 1e6 - 1.0).abs() < 1e-3);
        // A bus that stands still for longer than the FIFO lasts.
        let stalled = recordings(folder.path(), "virtual:2ch,16bit,1MS/s,fifo=64KiB,hiccup=100ms+1s");
        let probe = stalled.probe(rate(4e6), Purpose::Confirm, &stop, &mut |_| ()).expect("a probe");
        assert!(probe.lost.is_some() && probe.read_back.is_none() && !probe.is_lossless());
        let (ceiling, _) = slow.unpaced(&stop, &mut |_| ()).expect("a ceiling");
        assert!(ceiling.bytes_per_s() > 0.0);
        assert_eq!(std::fs::read_dir(folder.path()).expect("it can be listed").count(), 0);
    }

    #[test]
    fn what_cannot_be_proven_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let stop = AtomicBool::new(false);
        let mut small = recordings(folder.path(), "virtual:2ch,16bit,1MS/s,fifo=1MiB");
        small.volume = Bytes::mib(3);
        assert!(matches!(
            small.probe(rate(1e6), Purpose::Search, &stop, &mut |_| ()),
            Err(ProbeError::Volume(needed)) if needed == Bytes::mib(4)
        ));
        let unpaced = recordings(folder.path(), "unpaced:2ch,16bit");
        assert!(matches!(unpaced.unpaced(&stop, &mut |_| ()), Err(ProbeError::NotVirtual)));
        stop.store(true, Ordering::Relaxed);
        let card = recordings(folder.path(), "virtual:2ch,16bit,1MS/s,fifo=1MiB");
        assert!(matches!(card.probe(rate(1e6), Purpose::Search, &stop, &mut |_| ()), Err(ProbeError::Stopped)));
        assert_eq!(std::fs::read_dir(folder.path()).expect("it can be listed").count(), 0);
    }
}
