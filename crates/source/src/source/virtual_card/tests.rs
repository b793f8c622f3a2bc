//! The card in virtual time: under random schedules of service and consumption, and in scripted ones with a known
//! outcome.

use proptest::prelude::*;

use super::*;
use crate::source::test_consumer::TestConsumer;
use crate::source::test_consumer::pair;
use hairspring_ring::layout::Container;

#[track_caller]
fn law(card: &VirtualCard, ring: &Producer) {
    let counters = card.counters();
    assert_eq!(counters.produced_bytes, ring.position() + counters.lost_bytes + counters.fifo_bytes, "{counters:?}");
    assert!(counters.fifo_bytes <= card.describe().fifo.0);
}

/// Serves a card at the times that it requests, until it has ended; the consumer takes data after each service.
fn run(
    card: &mut VirtualCard,
    ring: &mut Producer,
    listener: &mut TestConsumer,
    mut now: Instant,
    most: u64,
) -> (End, Instant) {
    card.start(now);
    loop {
        let next = card.service(now, ring);
        law(card, ring);
        listener.listen(most);
        match next {
            Next::Ended(end) => {
                ring.close(end);
                assert_eq!(listener.finish(), end);
                return (end, now);
            }
            Next::At(at) => now = at.max(now),
            Next::Room | Next::Readable(..) => {}
        }
    }
}

fn settings() -> Settings {
    Settings {
        layout: Layout::analogue(4, 14).expect("exists"),
        rate: SampleRate::hz(1_000_000).expect("possible"),
        pattern: Pattern::Noise { seed: 1 },
        fifo: Bytes(80_000),
        jitter: Nanos::ZERO,
        hiccups: Vec::new(),
        bus: None,
        frames: Some(Frames(1_000_000)),
    }
}

const BEGIN: Instant = Instant::from_monotonic(Nanos::from_secs(1_000_000));

#[test]
fn a_card_that_is_served_in_time_loses_nothing_and_ends_on_time() {
    for (fifo, jitter) in [(80_000, 0), (80_000, 1_000_000), (8 * 100, 0)] {
        let settings = Settings { fifo: Bytes(fifo), jitter: Nanos::new(jitter), ..settings() };
        let (mut ring, mut listener) = pair(settings.layout, settings.pattern, Bytes::kib(64), OnOverrun::Stop);
        let mut card = VirtualCard::new(settings);
        let (end, at) = run(&mut card, &mut ring, &mut listener, BEGIN, u64::MAX);
        assert_eq!((end, listener.frame, listener.gaps.len()), (End::Finished, 1_000_000, 0));
        let late = at - BEGIN - Nanos::from_secs(1);
        assert!((Nanos::ZERO..=Nanos::new(jitter)).contains(&late), "{late}");
    }
}

/// Frame `n` is taken at the end of its period, whenever the card is served.
#[test]
fn a_card_stamps_its_frames_by_its_own_clock() {
    let (mut ring, _listener) = pair(settings().layout, settings().pattern, Bytes::kib(64), OnOverrun::Gap);
    let mut card = VirtualCard::new(settings());
    card.start(BEGIN);
    assert_eq!((card.first_stamp(), card.newest_stamp()), (None, None));
    card.service(BEGIN + Nanos::new(2_000_500), &mut ring);
    let stamp = |frame, us| {
        Some(FrameStamp { frame: Frames(frame), taken: StampTime::Monotonic(BEGIN + Nanos::from_micros(us)) })
    };
    assert_eq!((card.first_stamp(), card.newest_stamp()), (stamp(0, 1), stamp(1999, 2000)));
}

/// 10,000 frames fit into the FIFO, 10 ms; the bus is away for 30 ms from 0.1 s on. The frames between the moment when
/// the FIFO was full and the moment when it was emptied are lost, to the frame.
#[test]
fn a_hiccup_longer_than_the_fifo_lasts_loses_exactly_what_did_not_fit() {
    let hiccup = Hiccup { at: Nanos::from_millis(100), lasts: Nanos::from_millis(30) };
    let settings = Settings { hiccups: vec![hiccup], ..settings() };
    let (mut ring, mut listener) = pair(settings.layout, settings.pattern, Bytes::kib(256), OnOverrun::Gap);
    let mut card = VirtualCard::new(settings);
    let (end, _) = run(&mut card, &mut ring, &mut listener, BEGIN, u64::MAX);
    assert_eq!((end, listener.frame), (End::Finished, 1_000_000));
    let [gap] = &listener.gaps[..] else { panic!("{:?}", listener.gaps) };
    assert_eq!(gap.cause, GapCause::ServedLate);
    // The last service before the hiccup is at most 1 ms before it: 1000 frames.
    assert!((109_000..=110_000).contains(&gap.first.0), "{gap:?}");
    assert_eq!(gap.end(), Frames(130_000));
    assert_eq!(card.counters().fifo_high_water_bytes, 80_000);
}

#[test]
fn a_hiccup_that_the_fifo_outlasts_loses_nothing() {
    let hiccup = Hiccup { at: Nanos::from_millis(100), lasts: Nanos::from_millis(8) };
    let settings = Settings { hiccups: vec![hiccup], ..settings() };
    let (mut ring, mut listener) = pair(settings.layout, settings.pattern, Bytes::kib(256), OnOverrun::Stop);
    let mut card = VirtualCard::new(settings);
    let (end, _) = run(&mut card, &mut ring, &mut listener, BEGIN, u64::MAX);
    assert_eq!((end, listener.gaps.len()), (End::Finished, 0));
    assert!(card.counters().fifo_high_water_bytes > 8 * 8_000);
}

#[test]
fn with_stop_everything_before_the_first_loss_is_kept_and_the_loss_is_the_end() {
    let settings = settings();
    let (mut ring, mut listener) = pair(settings.layout, settings.pattern, Bytes::kib(64), OnOverrun::Stop);
    let mut card = VirtualCard::new(settings);
    card.start(BEGIN);
    // No consumer: 8192 frames fit into the ring and 10,000 into the FIFO.
    let mut now = BEGIN;
    let next = loop {
        match card.service(now, &mut ring) {
            Next::At(at) => now = at,
            other => break other,
        }
        law(&card, &ring);
    };
    assert_eq!(next, Next::Room);
    let produced = card.counters().produced_bytes;
    assert!(card.service(now + Nanos::from_secs(1), &mut ring) == Next::Room);
    assert_eq!(card.counters().produced_bytes, produced, "it has stopped");
    let end = loop {
        listener.listen(1000);
        if let Next::Ended(end) = card.service(now, &mut ring) {
            break end;
        }
        law(&card, &ring);
    };
    ring.close(end);
    assert_eq!((end, listener.finish()), (End::Overrun, End::Overrun));
    let [gap] = &listener.gaps[..] else { panic!("{:?}", listener.gaps) };
    assert_eq!((gap.first, gap.cause), (Frames(18_192), GapCause::BufferFull));
    assert_eq!(gap.end().0 * 8, produced);
}

#[test]
fn with_overwrite_the_newest_are_kept() {
    let settings = settings();
    let (mut ring, mut listener) = pair(settings.layout, settings.pattern, Bytes::kib(64), OnOverrun::Overwrite);
    let mut card = VirtualCard::new(settings);
    card.start(BEGIN);
    let mut now = BEGIN;
    let end = loop {
        // The consumer takes data at the very end only.
        if card.counters().produced_bytes == 8_000_000 {
            listener.listen(4096);
        }
        match card.service(now, &mut ring) {
            Next::At(at) => now = at,
            Next::Ended(end) => break end,
            _ => {}
        }
        law(&card, &ring);
    };
    ring.close(end);
    assert_eq!((end, listener.finish(), listener.frame), (End::Finished, End::Finished, 1_000_000));
    assert_eq!((listener.gaps.len(), card.counters().lost_bytes), (0, 0), "the FIFO itself lost nothing");
    assert!(listener.evicted_bytes > 8_000_000 - 65_536 - 80_000 - 4096);
}

#[test]
fn a_slow_bus_bounds_what_arrives() {
    let bus = ByteRate::new(4e6);
    let settings = Settings { bus, ..settings() };
    let (mut ring, mut listener) = pair(settings.layout, settings.pattern, Bytes::kib(256), OnOverrun::Gap);
    let mut card = VirtualCard::new(settings);
    let (end, at) = run(&mut card, &mut ring, &mut listener, BEGIN, u64::MAX);
    assert_eq!((end, listener.frame), (End::Finished, 1_000_000));
    let moved = ring.position();
    let carried = 4e6 * (at - BEGIN).as_secs_f64();
    assert!(moved as f64 <= carried + 8.0 && moved as f64 > carried * 0.95, "{moved} of {carried}");
    assert!(listener.lost() > 400_000);
}

#[test]
fn a_stop_ends_after_the_fifo_is_empty() {
    let settings = settings();
    let (mut ring, mut listener) = pair(settings.layout, settings.pattern, Bytes::kib(4), OnOverrun::Gap);
    let mut card = VirtualCard::new(settings);
    card.start(BEGIN);
    let now = BEGIN + Nanos::from_millis(3);
    let mut calls = 0;
    let end = loop {
        calls += 1;
        match card.stop(now + Nanos::from_millis(calls), &mut ring) {
            Next::Ended(end) => break end,
            next => assert_eq!(next, Next::Room),
        }
        law(&card, &ring);
        listener.listen(u64::MAX);
    };
    ring.close(end);
    assert_eq!((listener.finish(), listener.frame, listener.gaps.len()), (End::Stopped, 4000, 0));
}

#[test]
fn a_ring_smaller_than_a_frame_is_a_failure_and_not_a_wait() {
    let layout = Layout::analogue(4096, 32).expect("exists");
    let (mut ring, mut listener) = pair(layout, Pattern::Counter, Bytes::kib(4), OnOverrun::Gap);
    let rate = SampleRate::hz(1000).expect("possible");
    let mut card = VirtualCard::new(Settings { layout, rate, pattern: Pattern::Counter, ..settings() });
    card.start(BEGIN);
    assert_eq!(card.service(BEGIN + Nanos::from_millis(3), &mut ring), Next::Ended(End::Failed(libc::ENOBUFS)));
    law(&card, &ring);
    ring.close(End::Failed(libc::ENOBUFS));
    listener.finish();
    assert_eq!(listener.lost(), 3);
    assert_eq!(
        UnpacedCard::new(layout, Pattern::Zero, None).service(BEGIN, &mut ring),
        Next::Ended(End::Failed(libc::ENOBUFS))
    );
}

#[test]
fn an_unpaced_card_fills_what_room_there_is_and_ends_where_it_shall() {
    let layout = Layout::stored_as(3, 12, Container::Packed12).expect("exists");
    let (mut ring, mut listener) = pair(layout, Pattern::Prbs { seed: 0 }, Bytes::kib(8), OnOverrun::Block);
    let mut card = UnpacedCard::new(layout, Pattern::Prbs { seed: 0 }, Some(Frames(100_001)));
    while card.service(BEGIN, &mut ring) == Next::Room {
        assert_eq!(card.counters().produced_bytes, ring.position());
        listener.listen(5000);
    }
    ring.close(End::Finished);
    assert_eq!((listener.finish(), listener.frame), (End::Finished, 100_002), "whole grains, of two frames");
}

#[test]
fn an_unpaced_card_asks_for_room_only_where_there_is_none() {
    let layout = Layout::analogue(1, 16).expect("exists");
    let (mut ring, _listener) = pair(layout, Pattern::Zero, Bytes::mib(16), OnOverrun::Block);
    let mut card = UnpacedCard::new(layout, Pattern::Zero, None);
    while ring.room() > 0 {
        let next = card.service(BEGIN, &mut ring);
        assert!(next == Next::At(BEGIN) || ring.room() == 0, "{next:?} with room for {}", ring.room());
    }
    assert_eq!(card.service(BEGIN, &mut ring), Next::Room);
}

#[derive(Clone, Debug)]
enum Step {
    /// Time passes, and the card is served.
    Serve(u64),
    /// The listener takes up to this many bytes.
    Listen(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0..40_000_u64).prop_map(Step::Serve),
        1 => (0..3_000_000_u64).prop_map(Step::Serve),
        3 => (0..20_000_u64).prop_map(Step::Listen),
    ];
    prop::collection::vec(step, 1..120)
}

fn layouts() -> impl Strategy<Value = Layout> {
    let layouts = [
        Layout::analogue(1, 8),
        Layout::analogue(3, 14),
        Layout::stored_as(3, 12, Container::Packed12),
        Layout::digital(17),
    ];
    (0..layouts.len()).prop_map(move |number| layouts[number].clone().expect("exists"))
}

proptest! {
    /// Checks the ledger after each call, every byte and gap at its place, and no frame before its time; at the end all
    /// that was produced has been consumed, evicted or declared lost.
    #[test]
    fn nothing_is_lost_without_a_word_whatever_the_schedule(
        layout in layouts(), policy in 0..3_usize, steps in steps(), fifo in 1..4000_u64, jitter in 0..50_000_i64,
        hiccups in prop::collection::vec((0..3_000_000_i64, 1..1_000_000_i64), 0..3),
        bus in prop::option::of(1e4..1e8_f64), frames in prop::option::of(1..20_000_u64),
    ) {
        let policy = [OnOverrun::Stop, OnOverrun::Gap, OnOverrun::Overwrite][policy];
        let rate = SampleRate::hz(3_333_333).expect("possible");
        let settings = Settings {
            layout,
            rate,
            pattern: Pattern::Noise { seed: 9 },
            fifo: Bytes(fifo),
            jitter: Nanos::new(jitter),
            hiccups: hiccups.into_iter().map(|(at, lasts)| Hiccup { at: Nanos::new(at), lasts: Nanos::new(lasts) }).collect(),
            bus: bus.and_then(ByteRate::new),
            frames: frames.map(Frames),
        };
        let (mut ring, mut listener) = pair(layout, settings.pattern, Bytes::kib(4), policy);
        let mut card = VirtualCard::new(settings);
        card.start(BEGIN);
        let mut now = BEGIN;
        let mut ended = None;
        for step in steps {
            match step {
                Step::Serve(after) => {
                    now += Nanos::new(after as i64);
                    match card.service(now, &mut ring) {
                        Next::Ended(end) => ended = Some(end),
                        Next::At(at) => assert!(at >= now),
                        Next::Room => assert!(ring.room() < layout.grain().bytes),
                        Next::Readable(..) => panic!("no descriptor"),
                    }
                    law(&card, &ring);
                    let heard = layout.frames_in(Bytes(ring.position())).0;
                    prop_assert!(heard + layout.frames_in(Bytes(card.counters().lost_bytes)).0 <= rate.frames_after(now - BEGIN).0);
                }
                Step::Listen(most) => listener.listen(most),
            }
        }
        while ended.is_none() {
            match card.stop(now, &mut ring) {
                Next::Ended(end) => ended = Some(end),
                Next::At(at) => now = at.max(now + Nanos::new(1)),
                _ => {}
            }
            law(&card, &ring);
            listener.listen(u64::MAX);
        }
        ring.close(ended.expect("ended"));
        listener.finish();
        let counters = card.counters();
        prop_assert_eq!(counters.fifo_bytes, 0);
        prop_assert_eq!(layout.bytes_of(Frames(listener.lost())).0, counters.lost_bytes);
        prop_assert_eq!(layout.bytes_of(Frames(listener.frame)).0, counters.produced_bytes);
        prop_assert_eq!(ended == Some(End::Overrun), policy == OnOverrun::Stop && counters.lost_bytes > 0);
    }
}
