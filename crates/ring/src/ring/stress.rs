//! Stress tests of the ring with threads that wait for each other as briefly as possible. A plain run finds gross
//! errors; `cargo xtask prove --only stream-sanitizers` runs all tests of this crate with threads under the sanitizers.

use std::sync::atomic::AtomicBool;

use hairspring_machine::Nanos;

use super::*;
use crate::gap::GapCause;
use crate::memory::Pages;
use crate::units::Frames;

/// Bytes that go through each ring.
const BYTES: u64 = 16 << 20;

/// A ring of one page: its threads meet all the time.
fn small(on_overrun: OnOverrun) -> (Producer, Consumer) {
    let memory = Memory::mirrored(Bytes::kib(4), Bytes::kib(4), Pages::Small).expect("4 KiB");
    ring(Arc::new(memory), Bytes(512), on_overrun).expect("a ring")
}

/// Word of the test stream at this position.
fn word(position: u64) -> u64 {
    (position / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn fill(bytes: &mut [u8], position: u64) {
    let words = bytes.as_chunks_mut::<8>().0.iter_mut().zip((position..).step_by(8));
    words.for_each(|(to, position)| *to = word(position).to_le_bytes());
}

#[track_caller]
fn check(bytes: &[u8], position: u64) {
    let wrong = bytes
        .as_chunks::<8>()
        .0
        .iter()
        .zip((position..).step_by(8))
        .find(|(seen, at)| **seen != word(*at).to_le_bytes());
    assert_eq!(wrong, None, "another word than was put there");
}

/// Lengths that do not divide each other, so that pieces begin and end everywhere.
fn lengths() -> impl Iterator<Item = u64> {
    [8_u64, 1000, 64, 504, 2048, 24, 1360].into_iter().cycle()
}

#[test]
fn every_byte_arrives_once_in_order() {
    let (mut producer, mut consumer) = small(OnOverrun::Block);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for length in lengths() {
                let position = producer.position();
                if position >= BYTES {
                    break;
                }
                while producer.room() < length {
                    producer.notifier().wait(None, Nanos::from_millis(1));
                    producer.notifier().clear();
                }
                fill(producer.reserve(length as usize).expect("room"), position);
                producer.commit(length as usize);
            }
            producer.close(End::Finished);
        });
        for most in lengths().map(|length| length * 3 / 8 * 8) {
            let next = consumer.next();
            let length = consumer.available().min(most);
            if length == 0 {
                if let Some((End::Finished, end, None)) = consumer.closed()
                    && end == next
                {
                    break;
                }
                consumer.notifier().wait(None, Nanos::from_millis(1));
                consumer.notifier().clear();
                continue;
            }
            check(consumer.view(next, length as usize), next);
            consumer.take(length);
            consumer.release(next + length);
        }
        assert!(consumer.next() >= BYTES);
    });
}

#[test]
fn gaps_and_bytes_add_up_where_the_producer_drops_what_does_not_fit() {
    let (mut producer, mut consumer) = small(OnOverrun::Gap);
    std::thread::scope(|scope| {
        // Each word contains its index in the source, so losses are counted, too.
        let produced = scope.spawn(move || {
            let (mut index, mut lost) = (0, 0);
            for length in lengths() {
                if index >= BYTES {
                    break;
                }
                match producer.reserve(length as usize) {
                    Some(piece) => {
                        fill(piece, index);
                        producer.commit(length as usize);
                    }
                    None => {
                        let gap = Gap {
                            first: Frames(index),
                            frames: Frames(length),
                            cause: GapCause::BufferFull,
                            found: hairspring_machine::Instant::BOOT,
                        };
                        producer.gap(gap);
                        lost += length;
                    }
                }
                index += length;
            }
            producer.close(End::Finished);
            (index, lost)
        });
        let (mut index, mut lost) = (0, 0);
        loop {
            let closed = consumer.closed();
            let available = consumer.available();
            let next = consumer.next();
            let length = consumer.next_gap_at().map_or(available, |at| available.min(at - next)).min(1024);
            check(consumer.view(next, length as usize), index);
            consumer.take(length);
            consumer.release(next + length);
            index += length;
            if let Some((_, gap)) = consumer.gap_before(next + length) {
                assert_eq!(gap.first, Frames(index));
                (index, lost) = (index + gap.frames.0, lost + gap.frames.0);
            } else if let Some((_, end, last)) = closed
                && end == next + length
            {
                let last = last.map_or(0, |gap| gap.frames.0);
                assert_eq!(produced.join().expect("it does not panic"), (index + last, lost + last));
                break;
            }
        }
    });
}

#[test]
fn what_is_left_after_evictions_is_right_for_the_consumer_and_for_taps() {
    let (mut producer, mut consumer) = small(OnOverrun::Overwrite);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let tap = producer.tap().expect("a view");
        let over = &over;
        scope.spawn(move || {
            let mut copy = [0; 1000];
            // Acquire: pairs with the Release below.
            while !over.load(Ordering::Acquire) {
                let head = tap.head() / 8 * 8;
                let position = head.saturating_sub(copy.len() as u64);
                let bytes = &mut copy[..(head - position) as usize];
                if tap.copy(position, bytes) {
                    check(bytes, position);
                }
            }
        });
        scope.spawn(move || {
            for length in lengths() {
                let position = producer.position();
                if position >= BYTES {
                    break;
                }
                // Never waits: while the consumer reads it retries, as a card does with its next data.
                if producer.evict(length, 8) >= length {
                    fill(producer.reserve(length as usize).expect("room"), position);
                    producer.commit(length as usize);
                }
            }
            producer.close(End::Finished);
        });
        let mut seen = 0;
        loop {
            let closed = consumer.closed();
            consumer.take_held(700, |position, bytes| {
                assert!(position >= seen, "given twice");
                let length = bytes.len() / 8 * 8;
                check(&bytes[..length], position);
                seen = position + length as u64;
                length
            });
            if let Some((_, end, _)) = closed
                && consumer.next() == end
            {
                break;
            }
        }
        // Release: pairs with the Acquire above.
        over.store(true, Ordering::Release);
        assert!(seen >= BYTES);
    });
}
