//! Both ends of a tap: a producer that shares its frames, and a reader that connects to the socket.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::sync::Arc;
use std::time::Duration;

use hairspring_ring::notifier::Notifier;
use hairspring_ring::page::PageFacts;
use hairspring_ring::{Bytes, End, Frames, Layout, Memory, OnOverrun, Pages, SampleRate, ring};
use hairspring_tap::{TapOffer, TapPlace, TapReader, TapState};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let place = TapPlace::Path(folder.path().join("adc"));

    // The recorder: `hairspring record --tap NAME` does this.
    let memory = Memory::mirrored(Bytes::kib(256), Bytes::kib(64), Pages::Small)?;
    let (mut producer, mut consumer) = ring(Arc::new(memory), Bytes::kib(4), OnOverrun::Gap)?;
    let (layout, rate) = (Layout::analogue(2, 16)?, SampleRate::hz(100_000));
    producer.state(&PageFacts { id: [0; 16], layout, rate, text: String::new() });
    let offer = TapOffer::bind(&place)?;
    let shared = producer.tap().ok_or("no view")?.share()?;
    let stop = Arc::new(Notifier::new()?);
    let theirs = Arc::clone(&stop);
    let serving = std::thread::spawn(move || offer.serve(&shared, &theirs));

    // A reader, usually in another process.
    let mut tap = TapReader::open(&place)?;
    println!("{}, {:?}", tap.layout(), tap.rate());
    let recording = std::thread::spawn(move || {
        for block in 0..50_u8 {
            if let Some(room) = producer.reserve(4000) {
                room.fill(block);
                producer.commit(4000);
            }
            // A recorder writes them to the disk here.
            let head = consumer.head();
            consumer.skip_to(head);
            std::thread::sleep(Duration::from_millis(1));
        }
        producer.close(End::Finished);
    });
    let mut bytes = vec![0; layout.bytes_of(Frames(10_000)).0 as usize];
    loop {
        // Ends with frames, with the stream, or after a second.
        let state = tap.wait(Frames(10_000), Duration::from_secs(1));
        let piece = tap.read(&mut bytes);
        if piece.frames.0 > 0 {
            println!("{} from {:?} on; {} missed", piece.frames, piece.first_frame, piece.missed);
        } else if state != TapState::Running {
            println!("the stream is over: {}", state.name());
            break;
        }
    }
    recording.join().map_err(|_| "the recorder panicked")?;
    stop.notify();
    println!("{:?}", serving.join().map_err(|_| "the tap panicked")??);
    Ok(())
}
