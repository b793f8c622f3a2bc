//! The promises of the tap, between a real producer and real readers over a real socket.

mod hostile;
mod reading;

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use hairspring_machine::Instant;
use hairspring_ring::notifier::Notifier;
use hairspring_ring::page::PageFacts;
use hairspring_ring::{
    Bytes, Consumer, Frames, Gap, GapCause, Layout, Memory, OnOverrun, Pages, Producer, SampleRate, ring,
};
use hairspring_tap::{TapCounts, TapOffer, TapPlace, TapReader};

/// A ring whose samples are their own frame numbers, and its tap.
struct Recorder {
    producer: Option<Producer>,
    consumer: Consumer,
    frame: u32,
    place: TapPlace,
    stop: Arc<Notifier>,
    serving: Option<JoinHandle<TapCounts>>,
    _folder: tempfile::TempDir,
}

const LAYOUT_BYTES: u64 = 4;

impl Recorder {
    fn begin(capacity: Bytes) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = TapPlace::Path(folder.path().join("adc"));
        let memory = Memory::mirrored(capacity, capacity, Pages::Small).expect("memory");
        let (mut producer, consumer) = ring(Arc::new(memory), Bytes(1024), OnOverrun::Gap).expect("a ring");
        let layout = Layout::analogue(1, 32).expect("exists");
        let rate = SampleRate::hz(1_000_000);
        producer.state(&PageFacts { id: *b"the recording id", layout, rate, text: "[]".to_owned() });
        let offer = TapOffer::bind(&place).expect("a socket");
        let shared = consumer.tap().expect("a view").share().expect("sealed");
        let stop = Arc::new(Notifier::new().expect("a notifier"));
        let theirs = Arc::clone(&stop);
        let serving = std::thread::spawn(move || offer.serve(&shared, &theirs).expect("served"));
        let producer = Some(producer);
        Self { producer, consumer, frame: 0, place, stop, serving: Some(serving), _folder: folder }
    }

    fn socket(&self) -> PathBuf {
        self.place.to_read()
    }

    fn reader(&self) -> TapReader {
        TapReader::open(&self.place).expect("a tap")
    }

    fn producer(&mut self) -> &mut Producer {
        self.producer.as_mut().expect("it runs")
    }

    /// Produces this many frames, which the consumer takes at once.
    fn produce(&mut self, frames: u32) {
        let (first, length) = (self.frame, frames as usize * 4);
        let piece = self.producer().reserve(length).expect("room");
        for (number, word) in piece.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            *word = (first + number as u32).to_le_bytes();
        }
        self.producer().commit(length);
        self.frame += frames;
        self.consumer.take(length as u64);
        let taken = self.consumer.next();
        self.consumer.release(taken);
    }

    /// Loses this many frames.
    fn lose(&mut self, frames: u32) {
        let first = Frames(self.frame.into());
        let gap = Gap { first, frames: Frames(frames.into()), cause: GapCause::BufferFull, found: Instant::BOOT };
        self.producer().gap(gap);
        while self.consumer.gap_before(u64::MAX).is_some() {}
        self.frame += frames;
    }

    /// Ends the tap and returns its counts.
    fn counts(mut self) -> TapCounts {
        self.stop.notify();
        self.serving.take().expect("it runs").join().expect("no panic")
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop.notify();
    }
}

/// The samples of a piece.
fn samples(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
