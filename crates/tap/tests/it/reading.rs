//! Reading through a tap, and the counts of the reader.

use std::time::Duration;

use hairspring_ring::{Bytes, End, Frames};
use hairspring_tap::{TapPiece, TapState};

use super::{LAYOUT_BYTES, Recorder, samples};

/// Longer than any test machine needs.
const LONG: Duration = Duration::from_secs(60);

#[track_caller]
fn read(reader: &mut hairspring_tap::TapReader, most: usize) -> (TapPiece, Vec<u32>) {
    let mut bytes = vec![0; most * LAYOUT_BYTES as usize];
    let piece = reader.read(&mut bytes);
    bytes.truncate((piece.frames.0 * LAYOUT_BYTES) as usize);
    let samples = samples(&bytes);
    // Each sample is the number of its frame.
    if let Some(first) = piece.first_frame.filter(|_| piece.frames.0 > 0) {
        let expected: Vec<u32> = (0..piece.frames.0).map(|number| (first.0 + number) as u32).collect();
        assert_eq!(samples, expected);
    }
    (piece, samples)
}

#[test]
fn a_reader_gets_every_frame_from_when_it_came_with_its_number() {
    let mut recorder = Recorder::begin(Bytes::kib(64));
    recorder.produce(100);
    let mut reader = recorder.reader();
    assert_eq!(read(&mut reader, 10).0.frames, Frames(0));
    recorder.produce(1000);
    let (piece, _) = read(&mut reader, 300);
    assert_eq!((piece.first_frame, piece.frames, piece.missed), (Some(Frames(100)), Frames(300), Frames(0)));
    // Room for a part of a frame is no room.
    assert_eq!(reader.read(&mut [0; 3]).frames, Frames(0));
    assert_eq!(read(&mut reader, 5000).0.frames, Frames(700));
    assert_eq!((reader.missed(), reader.available()), (Frames(0), Frames(0)));
    assert_eq!((reader.channels_text(), &reader.id()), ("[]", b"the recording id"));
    assert_eq!(reader.recorder(), (rustix::process::geteuid().as_raw(), std::process::id().cast_signed()));
    let counts = recorder.counts();
    assert_eq!((counts.admitted, counts.users), (1, vec![rustix::process::geteuid().as_raw()]));
}

#[test]
fn a_reader_that_is_too_slow_counts_what_it_missed_to_the_frame() {
    let mut recorder = Recorder::begin(Bytes::kib(64));
    let mut reader = recorder.reader();
    let (mut seen, mut missed) = (0, 0);
    for turn in 1..=20_u32 {
        // More than the ring holds, in pieces, before the reader looks again.
        (0..turn).for_each(|_| recorder.produce(3000));
        loop {
            let (piece, _) = read(&mut reader, 2048);
            missed += piece.missed.0;
            if piece.frames.0 == 0 {
                break;
            }
            assert_eq!(piece.first_frame, Some(Frames(seen + missed)));
            seen += piece.frames.0;
        }
        assert_eq!(seen + missed, u64::from(recorder.frame), "every frame was read or counted");
    }
    assert!(missed > 0 && seen > 0);
    assert_eq!(reader.missed(), Frames(missed));
}

#[test]
fn a_piece_ends_at_a_gap_of_the_source_and_numbers_go_on_behind_it() {
    let mut recorder = Recorder::begin(Bytes::kib(64));
    let mut reader = recorder.reader();
    recorder.produce(10);
    recorder.lose(5);
    recorder.produce(10);
    let first = read(&mut reader, 100).0;
    let second = read(&mut reader, 100).0;
    assert_eq!((first.first_frame, first.frames), (Some(Frames(0)), Frames(10)));
    assert_eq!((second.first_frame, second.frames, second.missed), (Some(Frames(15)), Frames(10), Frames(0)));
    let gaps = reader.gaps().expect("whole");
    assert_eq!((gaps.lost, gaps.count), (Frames(5), 1));
}

#[test]
fn the_newest_frames_can_be_had_without_those_before_them() {
    let mut recorder = Recorder::begin(Bytes::kib(64));
    let mut reader = recorder.reader();
    recorder.produce(5000);
    assert_eq!(reader.skip_to_newest(Frames(100)), Frames(4900));
    assert_eq!(read(&mut reader, 1000).0.first_frame, Some(Frames(4900)));
    // The same once more.
    assert_eq!(reader.skip_to_newest(Frames(10)), Frames(0));
    assert_eq!(read(&mut reader, 1000).0.first_frame, Some(Frames(4990)));
    assert_eq!(reader.missed(), Frames(0));
}

/// The reader waits in another thread, without wake-ups from the recorder.
#[test]
fn waiting_ends_with_enough_frames_or_with_the_stream() {
    let mut recorder = Recorder::begin(Bytes::kib(64));
    let reader = recorder.reader();
    assert_eq!(reader.wait(Frames(1), Duration::ZERO), TapState::Running);
    let waiting = std::thread::spawn(move || (reader.wait(Frames(500), LONG), reader));
    recorder.produce(499);
    recorder.produce(1);
    let (state, reader) = waiting.join().expect("no panic");
    assert_eq!((state, reader.available()), (TapState::Running, Frames(500)));
    let waiting = std::thread::spawn(move || (reader.wait(Frames(501), LONG), reader));
    recorder.producer().close(End::Overrun);
    let (state, mut reader) = waiting.join().expect("no panic");
    assert_eq!(state, TapState::Ended(End::Overrun));
    assert_eq!(state.name(), "overrun");
    // Data in the ring can still be read.
    assert_eq!(read(&mut reader, 1000).0.frames, Frames(500));
}

/// As after SIGKILL: the connection ends without a message before.
#[test]
fn a_recorder_that_goes_without_a_word_is_noticed() {
    let mut recorder = Recorder::begin(Bytes::kib(64));
    let mut reader = recorder.reader();
    recorder.produce(7);
    // When dropped, the producer would state the end of the stream.
    let _silent = std::mem::ManuallyDrop::new(recorder.producer.take());
    let waiting = std::thread::spawn(move || (reader.wait(Frames(1000), LONG), read(&mut reader, 10).0));
    drop(recorder);
    let (state, piece) = waiting.join().expect("no panic");
    assert_eq!((state, piece.frames), (TapState::Gone, Frames(7)));
}

/// A producer at full speed, readers of several speeds: no copy is torn, and every frame is read or counted.
#[test]
fn no_reader_ever_sees_a_torn_frame() {
    let mut recorder = Recorder::begin(Bytes::kib(16));
    let over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let readers = [16, 512, 4096].map(|most| {
        let (mut reader, over) = (recorder.reader(), std::sync::Arc::clone(&over));
        std::thread::spawn(move || {
            let (mut seen, mut missed, mut ended) = (0, 0, false);
            loop {
                let piece = read(&mut reader, most).0;
                (seen, missed) = (seen + piece.frames.0, missed + piece.missed.0);
                if piece.frames.0 == 0 && piece.missed.0 == 0 && ended {
                    return (seen, missed);
                }
                ended = over.load(std::sync::atomic::Ordering::Acquire);
            }
        })
    });
    (0..60_000).for_each(|_| recorder.produce(256));
    over.store(true, std::sync::atomic::Ordering::Release);
    for reader in readers {
        let (seen, missed) = reader.join().expect("nothing is torn");
        assert!(seen > 0);
        assert_eq!(seen + missed, u64::from(recorder.frame));
    }
}
