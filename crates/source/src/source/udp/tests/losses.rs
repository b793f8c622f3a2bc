//! Lost, reordered and delayed datagrams are counted truly.

use super::*;

/// Bonded links and cards with several queues let neighbours change places. The later one was discarded, and a loss was
/// declared.
#[test]
fn neighbours_that_changed_places_are_put_in_their_places_and_nothing_is_lost() {
    let mut line = usual(OnOverrun::Stop);
    line.send([0, 2, 1, 3, 6, 4, 5, 7]);
    assert!(matches!(line.serve(), Next::Readable(_)));
    // A waiting datagram is checked in time.
    line.send([9]);
    let next = line.serve();
    assert!(matches!(next, Next::Readable(when) if when <= Instant::BOOT + window::LONGEST), "{next:?}");
    line.send([8]);
    line.serve();
    line.stop(End::Stopped);
    assert_eq!((line.gaps(), line.listener.frame), (vec![], 10 * FRAMES));
    assert_eq!((line.source.ignored, line.source.reordered), (Ignored::default(), 4));
}

#[test]
fn one_that_does_not_come_in_time_or_before_many_others_is_lost() {
    let mut line = usual(OnOverrun::Gap);
    line.send([0, 2]);
    line.serve();
    assert_eq!(line.source.lost, 0);
    line.source.service(Instant::BOOT + window::LONGEST, &mut line.ring);
    assert_eq!(line.source.lost, FRAMES * 4);
    line.send((4..4 + window::MOST_HELD as u64).chain([1]));
    line.serve();
    assert_eq!(line.source.lost, FRAMES * 4);
    line.send([4 + window::MOST_HELD as u64]);
    line.serve();
    line.stop(End::Stopped);
    assert_eq!(line.gaps(), [(1, 1, GapCause::Source), (3, 1, GapCause::Source)]);
    assert_eq!(line.source.ignored, Ignored { repeated: 1, ..Ignored::default() });
}

/// A jump in the numbers shortly before the end was "without loss": the datagrams on trial were discarded.
#[test]
fn those_on_trial_at_an_end_are_recorded_behind_their_gap() {
    // Enough time has passed for the loss that the numbers state.
    let mut line = usual(OnOverrun::Gap);
    line.source.about.rate = SampleRate::new(250_000, 1);
    line.send(0..100);
    line.serve();
    line.send(1000..1020);
    line.source.service(Instant::BOOT + Nanos::from_secs(1), &mut line.ring);
    line.stop(End::Stopped);
    assert_eq!((line.gaps(), line.listener.frame), (vec![(100, 900, GapCause::Source)], 1020 * FRAMES));
    assert_eq!((line.source.ignored, line.source.gap_bounds()), (Ignored::default(), &[][..]));
    // Too little time has passed: the length of the loss is unknown, and the count by the numbers is one bound of it.
    let mut line = usual(OnOverrun::Gap);
    line.send(0..100);
    line.serve_unchecked();
    line.send(1000..1020);
    line.serve_unchecked();
    line.end_unchecked();
    assert_eq!((line.source.committed, line.source.lost), (120 * FRAMES * 4, 4));
    let [bounds] = line.source.gap_bounds() else { panic!("{:?}", line.source.bounds) };
    assert!(bounds.first.0 == 100 * FRAMES && bounds.least.0 == 0 && bounds.most.0 >= 900 * FRAMES, "{bounds:?}");
    // A few late datagrams, and one with a random number, do not start a new sequence.
    for (numbers, ignored) in [
        (97..100, Ignored { repeated: 3, ..Ignored::default() }),
        (5000..5001, Ignored { misnumbered: 1, ..Ignored::default() }),
    ] {
        let mut line = usual(OnOverrun::Gap);
        line.send(0..100);
        line.send(numbers);
        line.serve();
        line.stop(End::Stopped);
        assert_eq!((line.gaps(), line.listener.frame, line.source.ignored), (vec![], 100 * FRAMES, ignored));
    }
}

/// 256 lost datagrams of a counter of 8 bits counted as none, 300 as 44.
#[test]
fn turns_of_the_counter_that_fit_the_time_are_counted_and_bounds_say_what_else_may_be() {
    for (missing, bounds) in [(256, Some((0, 256))), (300, Some((44, 300))), (20, None), (0, None)] {
        let mut line = line(Some("u8@4"), OnOverrun::Gap, Bytes::mib(1), None, Bytes::mib(4));
        line.source.about.rate = SampleRate::new(250_000, 1);
        line.send(0..40);
        line.serve();
        line.send(40 + missing..60 + missing);
        let later = Instant::BOOT + Nanos::from_millis(missing as i64 + 1);
        line.source.service(later, &mut line.ring);
        line.source.service(later + window::LONGEST, &mut line.ring);
        line.stop(End::Stopped);
        let gaps: Vec<_> = [(40, missing, GapCause::Source)].into_iter().filter(|gap| gap.1 > 0).collect();
        assert_eq!((line.gaps(), line.listener.frame), (gaps, (60 + missing) * FRAMES));
        let expected: Vec<_> =
            bounds.iter().map(|(least, most)| (40 * FRAMES, least * FRAMES, most * FRAMES)).collect();
        let stated = line.source.gap_bounds().iter().map(|one| (one.first.0, one.least.0, one.most.0));
        assert_eq!(stated.collect::<Vec<_>>(), expected, "{missing}");
    }
}

/// Datagrams that the kernel dropped because of a stranger's flood were counted as a loss of the stream.
#[test]
fn a_strangers_flood_takes_no_room_from_the_stream_and_makes_no_loss() {
    let mut line = line(None, OnOverrun::Stop, Bytes::mib(8), None, Bytes::kib(8));
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let to = line.source.local_address().expect("an address");
    line.sender.send(&samples(0, FRAMES)).expect("sent");
    line.serve();
    (0..2000).for_each(|_| assert!(stranger.send_to(&[7; 200], to).is_ok()));
    (1..5).for_each(|number| assert!(line.sender.send(&samples(number, FRAMES)).is_ok()));
    line.serve();
    line.stop(End::Stopped);
    assert_eq!((line.gaps(), line.listener.frame), (vec![], 5 * FRAMES));
    assert!(line.source.ignored.foreign > 0, "they were heard beside it");
}

/// The flood arrived before the recorder's first look: the kernel's count then includes all senders.
#[test]
fn what_was_dropped_before_the_sender_was_known_is_no_certain_loss() {
    let mut line = line(None, OnOverrun::Gap, Bytes::mib(8), None, Bytes::kib(8));
    line.source.about.rate = SampleRate::new(250, 1);
    let stranger = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let to = line.source.local_address().expect("an address");
    line.sender.send(&samples(0, FRAMES)).expect("sent");
    (0..2000).for_each(|_| assert!(stranger.send_to(&[7; 200], to).is_ok()));
    line.serve_unchecked();
    line.sender.send(&samples(1, FRAMES)).expect("sent");
    line.serve_unchecked();
    line.end_unchecked();
    let [bounds] = line.source.gap_bounds() else { panic!("{:?}", line.source.bounds) };
    assert!(bounds.first.0 == FRAMES && bounds.least.0 == 0, "{bounds:?}");
    // One is sent in a second.
    assert!(bounds.most.0 < 1000 * FRAMES, "no more than fit the time: {bounds:?}");
}

/// Without numbers the kernel's count is the only evidence, so that each datagram must count.
#[test]
fn a_stream_without_numbers_is_not_joined() {
    let mut line = line(None, OnOverrun::Gap, Bytes::mib(8), None, Bytes::kib(8));
    descriptor::send_in_segments(&line.sender, FRAMES as usize * 4).expect("Linux 4.18");
    for start in (0..1000).step_by(50) {
        let bytes: Vec<u8> = (start..start + 50).flat_map(|number| samples(number, FRAMES)).collect();
        line.sender.send(&bytes).expect("sent");
    }
    line.stop(End::Stopped);
    let gaps = line.gaps();
    assert!(!line.source.hearing.joins() && gaps.len() == 1 && gaps[0].0 + gaps[0].1 == 1000, "{gaps:?}");
}
