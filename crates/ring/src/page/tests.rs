//! The page, read through a mapping of its own as another process would.

use std::sync::Arc;

use super::*;
use crate::memory::{Memory, Pages, View};
use crate::{OnOverrun, Producer, SharedRing, Tap, ring};

fn facts() -> PageFacts {
    PageFacts {
        id: *b"0123456789abcdef",
        layout: Layout::stored_as(3, 12, Container::Packed12).expect("exists"),
        rate: SampleRate::new(44_100_001, 1000),
        text: "[{\"name\":\"pressure\",\"unit\":\"kPa\"}]".to_owned(),
    }
}

fn shared() -> (Producer, Tap, SharedRing, RingPage) {
    let memory = Memory::mirrored(Bytes::kib(4), Bytes::kib(4), Pages::Small).expect("4 KiB");
    let (mut producer, consumer) = ring(Arc::new(memory), Bytes(1), OnOverrun::Gap).expect("a ring");
    producer.state(&facts());
    let tap = consumer.tap().expect("a view");
    let shared = tap.share().expect("sealed");
    let page = RingPage::of_other(&shared.page).expect("a page");
    (producer, tap, shared, page)
}

fn gap(first: u64, frames: u64) -> Gap {
    Gap { first: Frames(first), frames: Frames(frames), cause: GapCause::ServedLate, found: Instant::BOOT }
}

#[test]
fn another_mapping_shows_what_the_stream_is_and_where_it_stands() {
    let (mut producer, _, shared, page) = shared();
    assert_eq!(page.facts(Bytes::kib(4)), Ok(facts()));
    assert!(page.facts(Bytes::kib(8)).is_err());
    assert_eq!((page.head(), page.end()), (0, None));
    producer.reserve(9).expect("room").copy_from_slice(b"123456789");
    assert_eq!((page.head(), page.frontier()), (0, 9));
    producer.commit(9);
    assert_eq!(page.head(), 9);
    let mut seen = [0; 9];
    View::map(&shared.ring, Bytes::kib(4)).expect("a view").copy(0, &mut seen);
    assert_eq!(&seen, b"123456789");
    assert!(page.is_intact(0, Bytes(9)) && !page.is_intact(0, Bytes(8)));
    producer.close(End::Failed(-5));
    producer.close(End::Finished);
    assert_eq!(page.end(), Some(End::Failed(-5)));
}

/// Otherwise a reader could write into the ring of a recorder, truncate it, or make the recorder's memory unusable.
#[test]
fn what_is_shared_can_be_neither_written_nor_cut() {
    let (_producer, tap, shared, _) = shared();
    for file in [&shared.ring, &shared.page] {
        // SAFETY: maps a file at an address of the kernel's choice; the mapping is refused.
        let mapped = unsafe { mmap(std::ptr::null_mut(), 4096, ProtFlags::WRITE, MapFlags::SHARED, file, 0) };
        assert_eq!(mapped.err(), Some(Errno::PERM));
        assert_eq!(rustix::io::pwrite(file, b"x", 0).err(), Some(Errno::PERM));
        assert_eq!(ftruncate(file, 0).err(), Some(Errno::PERM));
        assert_eq!(ftruncate(file, 1 << 20).err(), Some(Errno::PERM));
        let hole = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        assert_eq!(rustix::fs::fallocate(file, hole, 0, 4096).err(), Some(Errno::PERM));
        let more = rustix::fs::fcntl_add_seals(file, rustix::fs::SealFlags::WRITE);
        assert_eq!(more.err(), Some(Errno::PERM));
    }
    assert!(tap.share().is_ok(), "a second time");
}

#[test]
fn positions_have_frame_numbers_as_long_as_their_gaps_are_known() {
    let (mut producer, _, _shared, page) = shared();
    let layout = Layout::analogue(1, 16).expect("exists");
    let frame_at = |position| page.gaps().expect("whole").frame_at(layout, position);
    producer.reserve(4).expect("room").fill(0);
    producer.commit(4);
    producer.gap(gap(2, 10));
    producer.reserve(4).expect("room").fill(0);
    producer.commit(4);
    assert_eq!(frame_at(2), Some(Frames(1)));
    assert_eq!(frame_at(4), Some(Frames(12)));
    assert_eq!(frame_at(6), Some(Frames(13)));
    assert_eq!(frame_at(u64::MAX - 1).map(|frame| frame.0), Some((u64::MAX - 5) / 2 + 12));
    for number in 0..PAGE_GAPS as u64 {
        producer.gap(gap(14 + number * 11, 10));
        producer.reserve(2).expect("room").fill(0);
        producer.commit(2);
    }
    let gaps = page.gaps().expect("whole");
    assert_eq!((gaps.count, gaps.lost, gaps.newest.len()), (33, Frames(330), PAGE_GAPS));
    assert_eq!(frame_at(2), None);
    assert_eq!(
        gaps.newest[0],
        PageGap { position: 8, first: Frames(14), frames: Frames(10), cause: Some(GapCause::ServedLate) }
    );
    // A gap after the last byte.
    producer.gap(gap(366, 7));
    producer.close(End::Stopped);
    assert_eq!(page.gaps().expect("whole").lost, Frames(337));
}

#[test]
fn clocks_keep_the_first_mark_and_the_newest() {
    let (mut producer, _, _shared, page) = shared();
    let mut clocks = producer.take_clock_page().expect("the first");
    assert!(producer.take_clock_page().is_none());
    assert_eq!(page.clocks(), Some(PageClocks::default()));
    let at = |ns| Instant::from_monotonic(Nanos::new(ns));
    let pair = |ns| PagePair { monotonic: at(ns), realtime: Nanos::new(-ns), within: Nanos::new(7) };
    let mark = |frame| PageMark { frame: Frames(frame), earliest: at(-3), latest: at(frame as i64) };
    for number in 0..40 {
        clocks.pair(pair(number));
        clocks.mark(mark(number as u64));
    }
    let seen = page.clocks().expect("whole");
    assert_eq!(seen.pairs, (24..40).map(pair).collect::<Vec<_>>());
    assert_eq!(seen.marks, [0].into_iter().chain(25..40).map(mark).collect::<Vec<_>>());
}

#[test]
fn a_page_of_another_version_is_refused_with_what_to_do() {
    let (_producer, _, _shared, page) = shared();
    let made = RingPage::make().expect("a page");
    assert!(made.facts(Bytes::kib(4)).is_err_and(|error| error.contains("no page")));
    made.state(&facts(), Bytes::kib(4));
    made.words().facts[Fact::Version as usize].store(2, Ordering::Relaxed);
    let refused = made.facts(Bytes::kib(4)).expect_err("another version");
    assert!(refused.contains("version 2") && refused.contains("use a reader"), "{refused}");
    for (fact, value) in [
        (Fact::Container, 0),
        (Fact::Container, 99),
        (Fact::Channels, 0),
        (Fact::Channels, 1 << 40),
        (Fact::RateSeconds, 0),
        (Fact::TextBytes, u64::MAX),
    ] {
        let made = RingPage::make().expect("a page");
        made.state(&facts(), Bytes::kib(4));
        made.words().facts[fact as usize].store(value, Ordering::Relaxed);
        assert!(made.facts(Bytes::kib(4)).is_err(), "{} is {value}", fact as usize);
    }
    assert!(page.facts(Bytes::kib(4)).is_ok());
}
