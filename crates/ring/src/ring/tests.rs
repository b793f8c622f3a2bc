//! The ring, from one thread.

#![expect(unsafe_code, reason = "looks at what was reserved and not published")]

use super::*;
use crate::gap::GapCause;
use crate::memory::Pages;
use crate::units::Frames;

#[track_caller]
fn small(on_overrun: OnOverrun) -> (Producer, Consumer) {
    let memory = Memory::mirrored(Bytes::kib(4), Bytes::kib(4), Pages::Small).expect("4 KiB");
    ring(Arc::new(memory), Bytes(1024), on_overrun).expect("a ring")
}

fn put(producer: &mut Producer, length: usize, value: u8) {
    producer.reserve(length).expect("room").fill(value);
    producer.commit(length);
}

fn gap(first: u64, frames: u64) -> Gap {
    Gap {
        first: Frames(first),
        frames: Frames(frames),
        cause: GapCause::BufferFull,
        found: hairspring_machine::Instant::BOOT,
    }
}

#[test]
fn pieces_over_the_seam_are_contiguous() {
    let (mut producer, mut consumer) = small(OnOverrun::Stop);
    put(&mut producer, 3000, 1);
    consumer.take(3000);
    consumer.release(3000);
    put(&mut producer, 3000, 2);
    assert_eq!(consumer.available(), 3000);
    assert!(consumer.view(3000, 3000).iter().all(|byte| *byte == 2));
    assert!(producer.reserve(1097).is_none());
    assert_eq!(producer.fill().high_water, Bytes(3000));
}

#[test]
fn the_bell_rings_each_notify_size_and_at_the_end() {
    let (mut producer, consumer) = small(OnOverrun::Stop);
    put(&mut producer, 1023, 1);
    assert!(!consumer.notifier().clear());
    put(&mut producer, 1, 1);
    assert!(consumer.notifier().clear());
    put(&mut producer, 1, 1);
    assert!(!consumer.notifier().clear());
    producer.close(End::Finished);
    assert!(consumer.notifier().clear());
    assert_eq!(consumer.closed(), Some((End::Finished, 1025, None)));
}

#[test]
fn gaps_lie_where_they_were_declared_and_touching_ones_are_one() {
    let (mut producer, mut consumer) = small(OnOverrun::Gap);
    put(&mut producer, 10, 1);
    producer.gap(gap(10, 5));
    producer.gap(gap(15, 5));
    put(&mut producer, 10, 1);
    producer.gap(gap(30, 1));
    assert_eq!(consumer.gap_before(9), None);
    assert_eq!(consumer.gap_before(20), Some((10, gap(10, 10))));
    assert_eq!(consumer.gap_before(20), None);
    producer.close(End::Finished);
    assert_eq!(consumer.gap_before(20), Some((20, gap(30, 1))));
    assert_eq!(consumer.closed(), Some((End::Finished, 20, None)));
}

#[test]
fn too_many_gaps_stop_the_intake_and_are_told_all_the_same() {
    let (mut producer, mut consumer) = small(OnOverrun::Gap);
    let mut index = 0;
    for _ in 0..MARKS {
        producer.gap(gap(index, 1));
        put(&mut producer, 1, 0);
        index += 2;
    }
    producer.gap(gap(index, 1));
    assert_eq!(producer.room(), 0);
    producer.gap(gap(index + 1, 1));
    producer.close(End::Finished);
    let (_, _, last) = consumer.closed().expect("closed");
    assert_eq!(last, Some(gap(index, 2)));
    let mut seen = 0;
    while consumer.gap_before(u64::MAX).is_some() {
        seen += 1;
    }
    assert_eq!(seen, MARKS);
}

/// A consumer that waited for `notify` bytes was not woken when the list of gaps filled up first, and a source that
/// waited for room was not woken when that list was emptied.
#[test]
fn half_a_list_of_gaps_wakes_the_consumer_and_that_half_of_it_was_taken_wakes_the_producer() {
    let (mut producer, mut consumer) = small(OnOverrun::Block);
    // Adjacent gaps passed one by one: no byte is committed, and no notify size is reached.
    let declare = |producer: &mut Producer, count: u64| {
        for index in 0..count {
            producer.gap(gap(index, 1));
            assert!(producer.room() > 0);
        }
    };
    declare(&mut producer, 511);
    assert!(!consumer.notifier().clear());
    declare(&mut producer, 1);
    assert!(consumer.notifier().clear());
    declare(&mut producer, 512);
    assert!(consumer.notifier().clear());
    producer.gap(gap(1024, 1));
    assert_eq!((producer.room(), producer.notifier().clear()), (0, false));
    for taken in 1..=MARKS {
        assert!(consumer.gap_before(0).is_some());
        assert_eq!(producer.notifier().clear(), taken == MARKS / 2, "after {taken}");
    }
    assert!(producer.room() > 0);
    assert_eq!(consumer.gap_before(0), Some((0, gap(1024, 1))));
}

#[test]
fn eviction_takes_the_oldest_and_the_consumer_sees_where_the_rest_begins() {
    let (mut producer, mut consumer) = small(OnOverrun::Overwrite);
    put(&mut producer, 4096, 1);
    assert_eq!(producer.evict(10, 6), 1026);
    put(&mut producer, 1000, 2);
    let mut begin = 0;
    consumer.take_held(usize::MAX, |position, bytes| {
        begin = position;
        assert_eq!(bytes.len(), 4070);
        assert_eq!((bytes[0], bytes[3069], bytes[3070]), (1, 1, 2));
        100
    });
    assert_eq!((begin, consumer.next()), (1026, 1126));
}

#[test]
#[should_panic(expected = "use take_held")]
fn what_may_be_evicted_cannot_be_looked_at() {
    let (mut producer, consumer) = small(OnOverrun::Overwrite);
    put(&mut producer, 100, 1);
    consumer.view(0, 100);
}

/// Two rings on one memory would hand out the same bytes twice for writing.
#[test]
fn a_memory_is_one_rings_at_a_time() {
    let memory = Arc::new(Memory::mirrored(Bytes::kib(4), Bytes::kib(4), Pages::Small).expect("4 KiB"));
    let first = ring(Arc::clone(&memory), Bytes(1), OnOverrun::Stop).expect("a ring");
    let tap = first.0.tap();
    let again = || ring(Arc::clone(&memory), Bytes(1), OnOverrun::Stop);
    assert!(matches!(again(), Err(RingError::InUse)));
    drop(first);
    assert!(matches!(again(), Err(RingError::InUse)), "somebody looks on");
    drop(tap);
    assert!(again().is_ok());
}

#[test]
fn taps_copy_what_is_there_and_know_what_is_not() {
    let (mut producer, mut consumer) = small(OnOverrun::Stop);
    let tap = consumer.tap().expect("a view");
    put(&mut producer, 100, 7);
    let mut bytes = [0; 50];
    assert!(tap.copy(50, &mut bytes) && bytes.iter().all(|byte| *byte == 7));
    assert!(!tap.copy(51, &mut bytes), "not yet there");
    consumer.take(100);
    consumer.release(100);
    put(&mut producer, 4096, 8);
    assert!(!tap.copy(50, &mut bytes), "not there any more");
}

#[test]
fn a_producer_that_is_dropped_closes_the_stream() {
    let (producer, consumer) = small(OnOverrun::Stop);
    drop(producer);
    assert_eq!(consumer.closed(), Some((End::Failed(0), 0, None)));
}

#[test]
fn pieces_that_are_filled_out_of_order_are_published_in_order() {
    let (mut producer, mut consumer) = small(OnOverrun::Stop);
    put(&mut producer, 3000, 1);
    consumer.take(3000);
    consumer.release(3000);
    let second = producer.reserve_ahead(2000, 1000).expect("room");
    let first = producer.reserve_ahead(0, 2000).expect("room");
    assert_eq!((first, second), (3000, 5000 - 4096));
    assert!(producer.reserve_ahead(3000, 1097).is_none());
    let both = producer.reserve(3000).expect("room");
    both[2000..].fill(3);
    both[..2000].fill(2);
    // SAFETY: there is no device.
    assert!(unsafe { producer.ahead(2000, 1000) }.iter().all(|byte| *byte == 3));
    assert_eq!(consumer.available(), 0);
    producer.commit(2000);
    assert!(consumer.available() == 2000 && consumer.view(3000, 2000).iter().all(|byte| *byte == 2));
    producer.commit(1000);
    assert!(consumer.view(5000, 1000).iter().all(|byte| *byte == 3));
}

#[test]
fn both_ends_tell_what_the_ring_was_made_with_and_how_it_stands() {
    for on_overrun in [OnOverrun::Stop, OnOverrun::Gap, OnOverrun::Block] {
        let (mut producer, mut consumer) = small(on_overrun);
        assert_eq!((producer.on_overrun(), consumer.on_overrun()), (on_overrun, on_overrun));
        assert_eq!((producer.notify(), consumer.offset(5000)), (Bytes(1024), 5000 - 4096));
        put(&mut producer, 3072, 1);
        consumer.skip_to(2048);
        assert_eq!((consumer.next(), consumer.head(), consumer.available()), (2048, 3072, 1024));
        assert_eq!(producer.room(), 4096 - 1024, "what was passed over is given back");
        let tap = consumer.tap().expect("a view");
        let expected = Fill { now: Bytes(1024), high_water: Bytes(3072), capacity: Bytes(4096) };
        assert_eq!([producer.fill(), consumer.fill(), tap.fill()], [expected; 3]);
        assert_eq!((expected.promille(), Fill::default().promille()), (250, 0));
        assert!(!tap.is_closed());
        producer.close(End::Finished);
        assert!(tap.is_closed());
    }
}

#[test]
fn a_ring_that_cannot_be_is_refused_with_the_reason() {
    let memory = || Memory::mirrored(Bytes::kib(4), Bytes::kib(4), Pages::Small).expect("4 KiB");
    let refused = |memory: Memory, notify: u64| {
        ring(Arc::new(memory), Bytes(notify), OnOverrun::Stop).map(|_| ()).map_err(|error| error.to_string())
    };
    let notify = |notify: &str| Err(format!("a notify size of {notify} in a buffer of 4 KiB: choose 1 B to 4 KiB"));
    assert_eq!(refused(memory(), 0), notify("0 B"));
    assert_eq!(refused(memory(), 4097), notify("4097 B"));
    assert_eq!((refused(memory(), 1), refused(memory(), 4096)), (Ok(()), Ok(())));
    let plain = Memory::plain(Bytes::kib(4), Bytes::kib(4), Pages::Small).expect("4 KiB");
    assert_eq!(refused(plain, 1), Err("a ring needs a mirrored memory".to_owned()));
}

/// A reader of the tap judges a copy by the producer's frontier. If that is too low, it accepts a torn copy; if too
/// high, it rejects every copy.
#[test]
fn the_frontier_is_the_end_of_what_is_reserved() {
    let (mut producer, _consumer) = small(OnOverrun::Stop);
    let frontier = |producer: &Producer| RingPage::words(&producer.shared.page).cursors.frontier();
    put(&mut producer, 10, 1);
    assert!(producer.reserve(20).is_some());
    assert_eq!(frontier(&producer), 30);
    assert!(producer.reserve_ahead(40, 60).is_some());
    assert_eq!(frontier(&producer), 110);
    assert!(producer.reserve(5).is_some());
    assert_eq!(frontier(&producer), 110, "a later piece may be being filled");
    assert!(producer.reserve_ahead(86, 4000).is_some() && producer.reserve_ahead(87, 4000).is_none());
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "a gap that does not touch the one before it")]
fn gaps_at_one_position_must_touch() {
    let (mut producer, _consumer) = small(OnOverrun::Gap);
    producer.gap(gap(10, 5));
    producer.gap(gap(16, 1));
}

#[test]
fn eviction_takes_what_is_asked_for_in_whole_grains_and_no_more_than_there_is() {
    let (mut producer, mut consumer) = small(OnOverrun::Overwrite);
    put(&mut producer, 3096, 1);
    // 2000 frames are missing, more than a notify size.
    assert_eq!(producer.evict(3000, 6), 1000 + 2004);
    drop(producer);
    consumer.take_held(usize::MAX, |position, _| usize::from(position != 2004) * 9);
    assert_eq!(consumer.next(), 2004);

    let (mut producer, mut consumer) = small(OnOverrun::Overwrite);
    put(&mut producer, 1000, 1);
    consumer.take_held(401, |_, bytes| bytes.len());
    // There are 599 bytes: 99 grains and part of one.
    assert_eq!(producer.evict(4096, 6), 4096 - 5);
}

#[test]
fn nothing_is_evicted_while_the_consumer_reads_it() {
    let (mut producer, mut consumer) = small(OnOverrun::Overwrite);
    put(&mut producer, 4096, 1);
    consumer.take_held(100, |position, bytes| {
        assert_eq!((producer.evict(10, 1), position), (0, 0));
        bytes.len()
    });
    assert_eq!(producer.evict(101, 1), 100 + 1024, "and afterwards it is");
}

#[test]
fn the_consumer_reads_nothing_while_the_producer_evicts() {
    let (mut producer, mut consumer) = small(OnOverrun::Overwrite);
    put(&mut producer, 100, 1);
    assert!(producer.shared.cursors.try_hold());
    let stages = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            stages.store(1, Ordering::SeqCst);
            consumer.take_held(100, |_, bytes| {
                stages.store(2, Ordering::SeqCst);
                bytes.len()
            });
        });
        while stages.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        // It can never go on, however long this takes.
        (0..200).for_each(|_| std::thread::yield_now());
        assert_eq!(stages.load(Ordering::SeqCst), 1);
        producer.shared.cursors.let_go();
    });
    assert_eq!(stages.load(Ordering::SeqCst), 2);
}

#[test]
fn room_that_was_given_back_already_wakes_nobody() {
    let (mut producer, mut consumer) = small(OnOverrun::Block);
    put(&mut producer, 100, 1);
    consumer.take(100);
    consumer.release(100);
    assert!(producer.notifier().clear());
    consumer.release(100);
    assert!(!producer.notifier().clear());
}

#[test]
fn a_tap_copies_as_much_as_the_ring_holds() {
    let (mut producer, consumer) = small(OnOverrun::Stop);
    put(&mut producer, 4096, 7);
    let mut bytes = [0; 4097];
    let tap = consumer.tap().expect("a view");
    assert!(tap.copy(0, &mut bytes[..4096]) && bytes[..4096].iter().all(|byte| *byte == 7));
    assert!(!tap.copy(0, &mut bytes));
}

/// The consumer sleeps and wakes, or finds blocks by polling, depending on the producer's pauses. A lost wake-up would
/// make a wait last a minute.
#[test]
fn a_consumer_that_may_poll_gets_every_block_at_once() {
    const BLOCKS: u64 = 3000;
    let (mut producer, mut consumer) = small(OnOverrun::Block);
    let begin = std::time::Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for block in 0..BLOCKS {
                while producer.room() < 1024 {
                    producer.notifier().wait(None, Nanos::from_secs(60));
                    producer.notifier().clear();
                }
                put(&mut producer, 1024, block as u8);
                if block % 100 < 3 {
                    std::thread::sleep(std::time::Duration::from_micros(block % 7 * 30));
                }
            }
            producer.close(End::Finished);
        });
        while consumer.closed().is_none() || consumer.available() > 0 {
            consumer.wait(1024, Nanos::from_secs(60));
            while consumer.available() >= 1024 {
                let block = consumer.next() / 1024;
                assert!(consumer.view(consumer.next(), 1024).iter().all(|byte| *byte == block as u8));
                consumer.take(1024);
                consumer.release(consumer.next());
            }
        }
    });
    assert_eq!(consumer.next(), BLOCKS * 1024);
    assert!(begin.elapsed() < std::time::Duration::from_secs(60), "a wake-up was lost");
    assert_ne!(consumer.waits(), WaitCounts::default());
}

#[test]
fn a_wait_for_what_is_there_is_none_and_one_for_nothing_ends_in_time() {
    let (mut producer, mut consumer) = small(OnOverrun::Block);
    put(&mut producer, 100, 1);
    consumer.wait(100, Nanos::from_secs(60));
    assert_eq!(consumer.waits(), WaitCounts::default());
    consumer.wait(101, Nanos::from_millis(1));
    consumer.wait(101, Nanos::from_millis(1));
    assert_eq!(consumer.waits(), WaitCounts { polled: 0, polled_in_vain: 1, slept: 1 });
    // A notification that arrived before the sleep, for instance for a gap, ends it.
    let begin = std::time::Instant::now();
    producer.flush();
    (0..2).for_each(|_| consumer.wait(101, Nanos::from_secs(2)));
    let took = begin.elapsed().as_secs();
    assert_eq!((took, consumer.notifier().clear()), (2, false), "the first at once, the second not");
    producer.close(End::Finished);
    let waits = consumer.waits();
    consumer.wait(101, Nanos::from_secs(60));
    assert_eq!(consumer.waits(), waits, "the end is no wait");
}
