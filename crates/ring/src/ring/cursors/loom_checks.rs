//! All interleavings, and all orders in which stores may be seen, of a producer with a consumer and with an observer.
//!
//! The bytes of the ring are cells that loom watches: it reports two threads that touch one byte without an order
//! between them. The values are relaxed atomics, as weak as bytes that a device writes.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;

use super::{CursorPlace, CursorWords, Cursors};

/// Switches between threads that are not forced.
const PREEMPTIONS: usize = 3;
/// Size of the ring in bytes.
const CAPACITY: u64 = 2;

impl CursorPlace for CursorWords {
    fn words(&self) -> &CursorWords {
        self
    }
}

struct Ring {
    cursors: Cursors<CursorWords>,
    bytes: [(UnsafeCell<()>, AtomicU64); CAPACITY as usize],
}

impl Ring {
    fn new() -> Self {
        Self {
            cursors: Cursors::new(CAPACITY, CursorWords::default()),
            bytes: [(); CAPACITY as usize].map(|()| (UnsafeCell::new(()), AtomicU64::new(0))),
        }
    }

    fn write(&self, position: u64) {
        let (cell, value) = &self.bytes[(position % CAPACITY) as usize];
        cell.with_mut(|_| value.store(position + 1, Ordering::Relaxed));
    }

    fn read(&self, position: u64) {
        let (cell, value) = &self.bytes[(position % CAPACITY) as usize];
        let seen = cell.with(|_| value.load(Ordering::Relaxed));
        assert_eq!(seen, position + 1, "another byte than was written there");
    }
}

/// Explores all interleavings of a producer and one other thread.
fn explore(producer: fn(&Ring), other: fn(&Ring)) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(PREEMPTIONS);
    model.check(move || {
        let ring = Arc::new(Ring::new());
        let theirs = Arc::clone(&ring);
        let thread = thread::spawn(move || producer(&theirs));
        other(&ring);
        thread.join().expect("it does not panic");
    });
}

/// Bytes that pass through the ring: one full turn and the start of the next.
const BYTES: u64 = 4;

/// A producer of all bytes. While there is no room for a byte it calls `make_room`, and waits for the other thread if
/// that fails.
fn produce(ring: &Ring, make_room: fn(&Ring, u64) -> bool) {
    for position in 0..BYTES {
        while ring.cursors.tail() + CAPACITY == position {
            if !make_room(ring, position) {
                thread::yield_now();
            }
        }
        let tail = ring.cursors.tail();
        ring.cursors.announce(position + 1);
        ring.write(position);
        assert!(tail <= ring.cursors.tail(), "the tail moved back");
        ring.cursors.publish(position + 1);
    }
}

/// Under `overwrite` a producer never waits: data without room, which it cannot make by eviction, are lost. This test
/// retries instead.
fn evict(ring: &Ring, position: u64) -> bool {
    ring.cursors.evict(position - CAPACITY + 1)
}

#[test]
fn every_byte_is_handed_over_once_and_never_touched_by_both() {
    explore(
        |ring| produce(ring, |_, _| false),
        |ring| {
            let mut next = 0;
            while next < BYTES {
                let head = ring.cursors.head();
                if head == next {
                    thread::yield_now();
                    continue;
                }
                (next..head).for_each(|position| ring.read(position));
                ring.cursors.release(head);
                next = head;
            }
        },
    );
}

#[test]
fn what_is_evicted_is_not_being_read_and_what_is_read_is_not_evicted() {
    explore(
        |ring| produce(ring, evict),
        |ring| {
            let mut next = 0;
            for _ in 0..2 {
                ring.cursors.hold();
                let (tail, head) = (ring.cursors.tail(), ring.cursors.head());
                assert!(next <= tail && tail <= head && head - tail <= CAPACITY);
                // Take one byte only, so that the producer has something to evict.
                next = head.min(tail + 1);
                (tail..next).for_each(|position| ring.read(position));
                ring.cursors.release(next);
                ring.cursors.let_go();
            }
        },
    );
}

/// Under `overwrite` a consumer also returns bytes that it took earlier: after the last target has failed it passes
/// over new data unread. Meanwhile the producer evicts. If the tail moved back, the producer would find less room than
/// it had made, and the room that it counts on would belong to the consumer.
#[test]
fn what_was_evicted_is_never_given_back_a_second_time() {
    explore(
        |ring| produce(ring, evict),
        |ring| {
            for _ in 0..2 {
                let tail = ring.cursors.tail();
                let head = ring.cursors.head();
                if tail < head {
                    ring.cursors.give_back(tail + 1);
                }
            }
        },
    );
}

#[test]
fn a_copy_that_is_said_to_be_intact_is() {
    explore(
        |ring| {
            // This producer never waits; a tap must detect that it was overtaken.
            for position in 0..BYTES {
                ring.cursors.announce(position + 1);
                ring.bytes[(position % CAPACITY) as usize].1.store(position + 1, Ordering::Relaxed);
                ring.cursors.publish(position + 1);
            }
        },
        |ring| {
            for _ in 0..2 {
                let head = ring.cursors.head();
                let first = head.saturating_sub(CAPACITY);
                let copy: Vec<u64> = (first..head)
                    .map(|position| ring.bytes[(position % CAPACITY) as usize].1.load(Ordering::Relaxed))
                    .collect();
                if ring.cursors.is_intact(first) {
                    assert!(copy.into_iter().eq(first + 1..=head), "a torn copy");
                }
            }
        },
    );
}
