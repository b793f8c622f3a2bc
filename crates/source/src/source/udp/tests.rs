//! Real datagrams over the loopback interface.

mod losses;
mod pauses;

use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::card::Card;
use crate::pattern::Pattern;
use crate::source::descriptor;
use crate::source::test_consumer::{TestConsumer, pair};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Frames, SampleRate};

const DATA: Pattern = Pattern::Noise { seed: 4 };

/// Frames of one datagram, of four bytes each.
const FRAMES: u64 = 250;

fn layout() -> Layout {
    Layout::analogue(2, 14).expect("exists")
}

fn about(frames: Option<u64>) -> StreamInfo {
    let hardware = "udp test".to_owned();
    StreamInfo { layout: layout(), rate: None, pattern: Some(DATA), frames: frames.map(Frames), hardware }
}

/// A sender, a source that hears it, and the ring between that and a listener.
struct Line {
    sender: UdpSocket,
    source: UdpSource,
    ring: Producer,
    listener: TestConsumer,
}

/// A socket on which the kernel stamps datagrams. Waits until it does: it begins a moment after the request.
fn stamping() -> &'static UdpSocket {
    static STAMPING: std::sync::OnceLock<UdpSocket> = std::sync::OnceLock::new();
    STAMPING.get_or_init(|| {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        descriptor::tell_arrivals(&socket);
        let mut batch = Batch::new();
        loop {
            socket.send_to(b"x", socket.local_addr().expect("an address")).expect("sent");
            std::thread::sleep(std::time::Duration::from_millis(1));
            batch.receive(&socket).expect("received");
            if batch.next().is_some_and(|received| received.arrived.is_some()) {
                return socket;
            }
        }
    })
}

fn line(sequence: Option<&str>, on_overrun: OnOverrun, ring: Bytes, frames: Option<u64>, fifo: Bytes) -> Line {
    stamping();
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    socket.set_nonblocking(true).expect("possible");
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    sender.connect(socket.local_addr().expect("an address")).expect("possible");
    let sequence = sequence.map(|text| text.parse().expect("a number"));
    let source = UdpSource::new(socket, sequence, None, Some(fifo), Vec::new(), about(frames)).expect("a source");
    let (ring, listener) = pair(layout(), DATA, ring, on_overrun);
    Line { sender, source, ring, listener }
}

fn usual(on_overrun: OnOverrun) -> Line {
    line(Some("u32be@1"), on_overrun, Bytes::mib(1), None, Bytes::mib(1))
}

/// The datagram with this number, of `frames` frames.
fn datagram(number: u64, frames: u64) -> Vec<u8> {
    let mut bytes = vec![0xEE];
    bytes.extend_from_slice(&(number as u32).to_be_bytes());
    bytes.extend(samples(number, frames));
    bytes
}

fn samples(number: u64, frames: u64) -> Vec<u8> {
    let mut bytes = vec![0; frames as usize * 4];
    DATA.fill(layout(), Frames(number * FRAMES), &mut bytes);
    bytes
}

impl Line {
    fn send(&self, numbers: impl IntoIterator<Item = u64>) {
        for number in numbers {
            self.sender.send(&datagram(number, FRAMES)).expect("sent");
        }
    }

    fn serve(&mut self) -> Next {
        let next = self.source.service(Instant::BOOT, &mut self.ring);
        self.law();
        next
    }

    fn law(&self) {
        let counters = self.source.counters();
        assert_eq!(counters.produced_bytes, self.ring.position() + counters.lost_bytes);
    }

    /// Serves without checking the data, which do not match their places.
    fn serve_unchecked(&mut self) {
        let next = self.source.service(Instant::BOOT, &mut self.ring);
        assert!(matches!(next, Next::Readable(..)), "{next:?}");
        self.law();
    }

    fn end_unchecked(&mut self) {
        assert_eq!(self.source.stop(Instant::BOOT, &mut self.ring), Next::Ended(End::Stopped));
    }

    #[track_caller]
    fn stop(&mut self, expected: End) {
        let end = loop {
            match self.source.stop(Instant::BOOT, &mut self.ring) {
                Next::Ended(end) => break end,
                _ => self.listener.listen(u64::MAX),
            }
        };
        self.law();
        assert_eq!(end, expected);
        self.ring.close(end);
        self.listener.finish();
    }

    /// First frame, frames and cause of each gap, in datagrams.
    fn gaps(&self) -> Vec<(u64, u64, GapCause)> {
        let gaps = self.listener.gaps.iter();
        gaps.map(|gap| (gap.first.0 / FRAMES, gap.frames.0 / FRAMES, gap.cause)).collect()
    }
}

#[test]
fn datagrams_in_order_arrive_whole_and_numbers_may_wrap() {
    let mut line = line(Some("u8@4"), OnOverrun::Stop, Bytes::mib(1), None, Bytes::mib(4));
    for number in 0..600 {
        line.send([number]);
        assert!(matches!(line.serve(), Next::Readable(..)));
        line.listener.listen(u64::MAX);
    }
    line.stop(End::Stopped);
    assert_eq!((line.listener.frame, line.gaps()), (600 * FRAMES, vec![]));
    assert!(line.source.describe().clocked);
}

#[test]
fn what_the_network_lost_is_a_gap_and_what_comes_late_or_twice_is_dropped() {
    let mut line = usual(OnOverrun::Gap);
    line.send([0, 1, 4, 3, 3, 5, 5, 9, 1, 10]);
    line.serve();
    line.stop(End::Stopped);
    assert_eq!(line.gaps(), [(2, 1, GapCause::Source), (6, 3, GapCause::Source)]);
    assert_eq!((line.source.ignored.repeated, line.source.reordered, line.listener.frame), (3, 1, 11 * FRAMES));
}

#[test]
fn with_stop_the_first_loss_is_the_end() {
    let mut line = usual(OnOverrun::Stop);
    line.send([0, 1, 3, 4]);
    assert!(matches!(line.serve(), Next::Readable(_)), "it may still come");
    line.stop(End::Overrun);
    assert_eq!((line.gaps(), line.listener.frame), (vec![(2, 1, GapCause::Source)], 3 * FRAMES));
}

/// A datagram of three bytes from any sender once ended a recording.
#[test]
fn what_is_no_whole_frame_or_larger_than_the_others_is_ignored_and_counted() {
    let mut line = usual(OnOverrun::Stop);
    line.send([0]);
    for wrong in [&datagram(1, FRAMES)[..100], &datagram(1, FRAMES + 1), &datagram(1, 0), b"", b"x", b"xyz"] {
        line.sender.send(wrong).expect("sent");
    }
    line.send([1]);
    assert!(matches!(line.serve(), Next::Readable(..)));
    line.stop(End::Stopped);
    assert_eq!((line.listener.frame, line.gaps()), (2 * FRAMES, vec![]));
    assert_eq!(line.source.ignored, Ignored { malformed: 6, ..Ignored::default() });
}

#[test]
fn a_shorter_one_may_be_the_last_and_what_others_lack_is_a_gap() {
    let mut line = usual(OnOverrun::Gap);
    line.send([0]);
    line.sender.send(&datagram(1, 10)).expect("sent");
    line.serve();
    assert_eq!(line.source.ignored, Ignored::default());
    line.send([2, 4]);
    line.serve();
    line.stop(End::Stopped);
    let gaps: Vec<_> = line.listener.gaps.iter().map(|gap| (gap.first.0, gap.frames.0)).collect();
    assert_eq!(gaps, [(FRAMES + 10, FRAMES - 10), (3 * FRAMES, FRAMES)]);
    assert_eq!((line.listener.frame, line.source.ignored.malformed), (5 * FRAMES, 1));
}

/// Sends datagrams with numbers from 0 but continuing samples, as a restarted sender does; the listener checks each
/// sample against its frame.
fn anew(line: &Line, sender: &UdpSocket, numbers: std::ops::Range<u64>, first_frame: u64) {
    let to = line.source.local_address().expect("an address");
    for number in numbers {
        let mut bytes = datagram(number, 0);
        let mut samples = vec![0; FRAMES as usize * 4];
        DATA.fill(layout(), Frames(first_frame + number * FRAMES), &mut samples);
        bytes.extend(samples);
        sender.send_to(&bytes, to).expect("sent");
    }
}

/// Once 4095 datagrams were dropped as late, and then the recording failed.
#[test]
fn a_sender_that_begins_anew_is_a_gap_and_nothing_that_came_is_dropped() {
    for begins_at in [1000, u64::from(u32::MAX / 2)] {
        let mut line = usual(OnOverrun::Gap);
        line.send([begins_at]);
        line.serve_unchecked();
        let confirm = u64::from(CONFIRM);
        let sender = line.sender.try_clone().expect("a descriptor");
        anew(&line, &sender, 0..3 * confirm, 0);
        line.serve_unchecked();
        // For a gap of unknown length, one grain is declared.
        assert_eq!(line.source.lost, 4, "{begins_at}");
        assert_eq!(line.source.committed, (3 * confirm + 1) * FRAMES * 4);
        assert_eq!(line.source.ignored, Ignored { restarts: 1, ..Ignored::default() });
        assert_eq!(line.source.ended, None);
    }
}

#[test]
fn a_sender_that_comes_back_at_another_port_is_heard_and_one_elsewhere_is_not() {
    let mut line = usual(OnOverrun::Gap);
    line.send([500]);
    line.serve_unchecked();
    let other = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).expect("a port");
    anew(&line, &other, 0..40, 0);
    line.serve_unchecked();
    assert_eq!((line.source.ignored.foreign, line.source.committed), (40, FRAMES * 4));
    let again = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    anew(&line, &again, 0..40, 0);
    line.serve_unchecked();
    assert_eq!((line.source.ignored.restarts, line.source.committed), (1, 41 * FRAMES * 4));
    // The old one is a stranger now.
    line.send([501]);
    line.serve_unchecked();
    line.end_unchecked();
    assert_eq!(line.source.ignored, Ignored { foreign: 41, restarts: 1, ..Ignored::default() });
}

#[test]
fn a_number_far_ahead_is_a_long_gap_only_if_those_after_it_and_the_clock_say_so() {
    // A single one is nonsense.
    let mut line = usual(OnOverrun::Gap);
    line.send([0, 1_000_000, 1, 2]);
    line.serve();
    line.stop(End::Stopped);
    assert_eq!((line.listener.frame, line.gaps()), (3 * FRAMES, vec![]));
    assert_eq!(line.source.ignored, Ignored { misnumbered: 1, ..Ignored::default() });
    // A large jump at once means that the sender restarted. After a time in which that many can have been sent, they
    // were lost.
    for (seconds, missing_datagrams, restarts) in [(0, 0, 1), (100, 9_999, 0)] {
        let mut line = usual(OnOverrun::Gap);
        line.source.about.rate = SampleRate::new(25_000, 1);
        line.send([0]);
        line.serve_unchecked();
        let numbers = 10_000..10_000 + u64::from(CONFIRM);
        line.send(numbers);
        line.source.service(Instant::BOOT + Nanos::from_secs(seconds), &mut line.ring);
        let missing = if restarts == 1 { 4 } else { missing_datagrams * FRAMES * 4 };
        assert_eq!((line.source.lost, line.source.ignored.restarts), (missing, restarts), "{seconds}");
    }
}

#[test]
fn a_source_that_is_bound_to_a_sender_hears_nobody_else() {
    let [ours, stranger] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"));
    for any_port in [false, true] {
        let mut line = usual(OnOverrun::Stop);
        let mut named = ours.local_addr().expect("an address");
        let foreign =
            if any_port { UdpSocket::bind("127.0.0.3:0").expect("a port") } else { stranger.try_clone().expect("it") };
        named.set_port(if any_port { 0 } else { named.port() });
        line.source.peer = Peer::Named(vec![named]);
        anew(&line, &foreign, 0..40, 0);
        anew(&line, &ours, 0..2, 0);
        anew(&line, &foreign, 2..4, 0);
        line.serve();
        line.stop(End::Stopped);
        assert_eq!((line.listener.frame, line.gaps()), (2 * FRAMES, vec![]));
        assert_eq!(line.source.ignored, Ignored { foreign: 42, ..Ignored::default() });
    }
    let card = "udp:127.0.0.1:0,2ch,14bit,from=localhost:7".parse::<Card>().expect("a card");
    assert!(card.open(None).is_ok());
    let unknown = "udp:127.0.0.1:0,2ch,14bit,from=no-such-host.invalid:7".parse::<Card>().expect("a card");
    assert!(unknown.open(None).err().expect("unknown").to_string().contains("from="));
}

/// One act of a hostile sender between two datagrams of the true one.
#[derive(Clone, Debug)]
enum Act {
    /// The next datagrams of the true stream: this many.
    True(u64),
    /// This many datagrams of the true stream are lost.
    Lost(u64),
    /// Bytes from elsewhere.
    Foreign(Vec<u8>),
    /// Bytes from the true sender that are not whole frames.
    Broken(usize),
    /// A datagram of the true sender again, this many numbers back.
    Repeated(u64),
    /// One with a number out of the blue.
    Misnumbered(u64),
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (1..6_u64).prop_map(Act::True),
        1 => (1..NEAR).prop_map(Act::Lost),
        2 => prop::collection::vec(any::<u8>(), 0..2000).prop_map(Act::Foreign),
        2 => (0..FRAMES as usize * 4).prop_filter("broken", |length| length % 4 != 0).prop_map(Act::Broken),
        2 => (1..100_u64).prop_map(Act::Repeated),
        1 => (1_000..1_000_000_u64).prop_map(Act::Misnumbered),
    ]
}

/// Number of senders, multiplied by `HAIRSPRING_PROOF` if that is set.
fn cases() -> u32 {
    let times = std::env::var("HAIRSPRING_PROOF").ok().and_then(|times| times.parse::<u32>().ok()).unwrap_or(1);
    let cases = times.saturating_mul(64);
    println!("figure: hostile senders: {cases}");
    cases
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    /// Every true datagram is recorded at its place whatever else arrives, missing ones are gaps, and the rest is
    /// counted. The listener compares every byte with the expected frame.
    #[test]
    fn no_hostile_datagram_changes_what_is_recorded(acts in prop::collection::vec(any_act(), 1..60)) {
        let mut line = line(Some("u32be@1"), OnOverrun::Gap, Bytes::mib(4), None, Bytes::mib(4));
        let stranger = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, 2), 0)).expect("a port");
        let to = line.source.local_address().expect("an address");
        line.send([0]);
        let (mut next, mut lost, mut expected) = (1, 0, Ignored::default());
        let mut sent = std::collections::BTreeSet::from([0]);
        let mut lost_before_next = 0;
        // Datagrams still on trial at the end follow other rules; a last true one settles them.
        for act in acts.into_iter().chain([Act::True(1)]) {
            match act {
                Act::True(count) => {
                    line.send(next..next + count);
                    sent.extend(next..next + count);
                    next += count;
                    lost += std::mem::take(&mut lost_before_next);
                }
                // A larger jump than a plain loss would need confirmation.
                Act::Lost(count) if lost_before_next + count <= NEAR => {
                    next += count;
                    lost_before_next += count;
                }
                Act::Lost(_) => {}
                Act::Foreign(bytes) => {
                    stranger.send_to(&bytes, to).expect("sent");
                    expected.foreign += 1;
                }
                Act::Broken(length) => {
                    line.sender.send(&datagram(next, FRAMES)[..5 + length]).expect("sent");
                    expected.malformed += 1;
                }
                Act::Repeated(back) => {
                    let last = next - lost_before_next;
                    let number = last.saturating_sub(back);
                    // A lost number would look like a late one.
                    if sent.contains(&number) {
                        line.send([number]);
                        expected.repeated += 1;
                    }
                }
                Act::Misnumbered(far) => {
                    line.send([next + far]);
                    expected.misnumbered += 1;
                }
            }
            prop_assert!(matches!(line.serve(), Next::Readable(..)));
            line.listener.listen(u64::MAX);
        }
        line.stop(End::Stopped);
        prop_assert_eq!(line.listener.frame, (next - lost_before_next) * FRAMES);
        prop_assert_eq!(line.listener.lost(), lost * FRAMES);
        prop_assert_eq!(line.source.ignored, expected);
    }
}

#[test]
fn the_limit_is_kept_to_the_frame() {
    let mut line = line(None, OnOverrun::Stop, Bytes::mib(1), Some(2 * FRAMES + 7), Bytes::mib(1));
    for number in 0..4 {
        line.sender.send(&samples(number, FRAMES)).expect("sent");
    }
    assert_eq!(line.serve(), Next::Ended(End::Finished));
    line.stop(End::Finished);
    assert_eq!(line.listener.frame, 2 * FRAMES + 7);
    assert!(line.source.describe().hardware.contains("loss on the network cannot be seen"));
}

/// The kernel's buffer overflows while the source is not served. Without numbers the kernel's own count gives the
/// length and place of the gap: the data behind the gap prove it. The last overflow is known from the count alone.
#[test]
fn what_the_kernel_dropped_is_a_gap_of_its_true_length_also_without_numbers() {
    let mut line = line(None, OnOverrun::Gap, Bytes::mib(8), None, Bytes::kib(8));
    let send = |line: &Line, from: u64, to: u64| {
        (from..to).for_each(|number| assert!(line.sender.send(&samples(number, FRAMES)).is_ok()));
    };
    send(&line, 0, 500);
    assert!(matches!(line.serve(), Next::Readable(..)));
    send(&line, 500, 501);
    line.serve();
    line.listener.listen(u64::MAX);
    send(&line, 501, 1000);
    line.stop(End::Stopped);
    let gaps = line.gaps();
    assert_eq!(gaps.len(), 2, "{gaps:?}");
    assert!(gaps.iter().all(|(_, frames, cause)| *frames > 300 && *cause == GapCause::ServedLate), "{gaps:?}");
    assert_eq!(gaps[0].0 + gaps[0].1, 500);
    assert_eq!(line.listener.frame, 1000 * FRAMES);
}

#[test]
fn what_was_lost_because_the_ring_was_full_says_so() {
    let mut line = line(Some("u32be@1"), OnOverrun::Gap, Bytes::kib(4), None, Bytes::kib(8));
    line.send(0..5);
    assert!(matches!(line.serve(), Next::At(_)), "the ring is full");
    line.send(5..300);
    assert!(matches!(line.serve(), Next::At(_)));
    while matches!(line.serve(), Next::At(_)) {
        line.listener.listen(u64::MAX);
    }
    line.send([300]);
    line.serve();
    line.stop(End::Stopped);
    let gaps = line.gaps();
    let [(first, frames, cause)] = gaps[..] else { panic!("{gaps:?}") };
    assert_eq!((first + frames, cause), (300, GapCause::BufferFull));
}

#[test]
fn with_overwrite_the_newest_are_kept() {
    let mut line = line(Some("u32be@1"), OnOverrun::Overwrite, Bytes::kib(4), None, Bytes::mib(1));
    for number in 0..100 {
        line.send([number]);
        line.serve();
    }
    line.stop(End::Stopped);
    assert_eq!((line.gaps(), line.listener.frame), (vec![], 100 * FRAMES));
    assert!(line.listener.evicted_bytes > 90 * FRAMES * 4);
}

#[test]
fn a_group_is_joined() {
    let name = "a_group_is_joined";
    let card = "udp:239.255.77.88:0,2ch,14bit,data=noise,seed=4,join=127.0.0.1";
    // The port is not known before: bind one, and take its number.
    let free = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port").local_addr().expect("an address").port();
    let card = card.replace(":0,", &format!(":{free},")).parse::<Card>().expect("a card");
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let mut source = match card.open(None) {
        Ok(source) => source,
        Err(error) => {
            testing::skip(name, error);
            return;
        }
    };
    if let Err(error) = sender.send_to(&samples(0, FRAMES), ("239.255.77.88", free)) {
        testing::skip(name, error);
        return;
    }
    let (mut ring, mut listener) = pair(layout(), DATA, Bytes::kib(4), OnOverrun::Stop);
    assert!(matches!(source.service(Instant::BOOT, &mut ring), Next::Readable(..)));
    listener.listen(u64::MAX);
    assert_eq!(listener.frame, FRAMES);
    // Another program on this computer listens to the same group, and both receive.
    let mut second = card.open(None).expect("a group is for many");
    let _ = sender.send_to(&samples(1, FRAMES), ("239.255.77.88", free));
    let (mut second_ring, _) = pair(layout(), DATA, Bytes::kib(4), OnOverrun::Stop);
    assert!(matches!(second.service(Instant::BOOT, &mut second_ring), Next::Readable(..)));
    source.service(Instant::BOOT, &mut ring);
    listener.listen(u64::MAX);
    assert_eq!((second_ring.position(), listener.frame), (FRAMES * 4, 2 * FRAMES));
    let group_of_v6 = "udp:239.255.77.88:9,2ch,14bit,join=::1".parse::<Card>().expect("a card");
    assert!(group_of_v6.open(None).is_err());
}

/// The kernel's stamp is the time of arrival, however late the datagram is read.
#[test]
fn each_datagram_has_the_stamp_of_the_kernel() {
    let now = || hairspring_machine::Machine::read(&hairspring_machine::Host, hairspring_machine::Clock::Realtime);
    let mut line = usual(OnOverrun::Gap);
    let taken = |stamp: Option<FrameStamp>| match stamp {
        Some(FrameStamp { frame, taken: StampTime::Realtime(time) }) => (frame.0, time),
        other => panic!("{other:?}"),
    };
    let before = now();
    line.send([0]);
    let between = now();
    line.send([1, 4]);
    let after = now();
    std::thread::sleep(std::time::Duration::from_millis(20));
    line.serve();
    // The last datagram waits for those before it.
    line.source.service(Instant::BOOT + window::LONGEST, &mut line.ring);
    let (first, newest) = (taken(line.source.first_stamp()), taken(line.source.newest_stamp()));
    assert!(first.0 == 0 && before <= first.1 && first.1 <= between, "{first:?} {before} {between}");
    // Two datagrams are missing before the newest, and frames count through the gap.
    assert!(newest.0 == 4 * FRAMES && between <= newest.1 && newest.1 <= after, "{newest:?} {between} {after}");
    // A datagram outside the stream leaves no stamp.
    line.sender.send(&[1, 2]).expect("sent");
    line.serve();
    assert_eq!(taken(line.source.newest_stamp()), newest);
}

/// Sends datagrams of one size by one call; the kernel joins them for a receiver that allows it.
fn burst(line: &Line, numbers: impl IntoIterator<Item = u64>, frames: u64) {
    descriptor::send_in_segments(&line.sender, 5 + frames as usize * 4).expect("Linux 4.18");
    let bytes: Vec<u8> = numbers.into_iter().flat_map(|number| datagram(number, frames)).collect();
    line.sender.send(&bytes).expect("sent");
    descriptor::send_in_segments(&line.sender, 0).expect("possible");
}

#[test]
fn joined_datagrams_are_taken_apart_and_the_first_has_the_stamp() {
    let line = usual(OnOverrun::Stop);
    burst(&line, 0..40, FRAMES);
    line.send([40]);
    let mut batch = Batch::new();
    batch.receive(&line.source.hearing.main).expect("both messages are there");
    let sequence: Sequence = "u32be@1".parse().expect("a number");
    let (mut places, mut numbers, mut stamps) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(received) = batch.next() {
        places.push(received.at);
        numbers.extend(sequence.read(&batch.bytes[received.at..received.at + received.length]));
        stamps.push(received.arrived.is_some());
        assert_eq!((received.length, received.drops), (1005, 0));
    }
    assert_eq!(numbers, (0..41).collect::<Vec<u64>>());
    // The kernel delivered two messages: one stamp for the burst, one for the datagram after it.
    let joined = line.source.hearing.joins();
    assert!(joined, "this kernel is older than Linux 5.0");
    assert_eq!(stamps.iter().filter(|stamped| **stamped).count(), 2);
    assert!(stamps[0] && stamps[40] && places[39] == 39 * 1005);
}

#[test]
fn a_burst_is_judged_datagram_by_datagram() {
    let mut line = usual(OnOverrun::Gap);
    burst(&line, 0..10, FRAMES);
    line.serve();
    // Lost on the way, late, twice; then a burst of another size, and an unnumbered datagram.
    burst(&line, [10, 12, 11, 12, 13, 15], FRAMES);
    burst(&line, 16..20, 7);
    burst(&line, 100_000..100_003, FRAMES);
    burst(&line, 17..19, FRAMES);
    line.serve();
    line.stop(End::Stopped);
    let gaps: Vec<_> = line.listener.gaps.iter().map(|gap| (gap.first.0, gap.frames.0)).collect();
    // Datagram 16 had 7 frames, and the later ones of its burst have numbers that are due.
    let short = |number: u64| (number * FRAMES + 7, FRAMES - 7);
    assert_eq!(gaps, [(14 * FRAMES, FRAMES), short(16), short(17), short(18)]);
    assert_eq!(line.source.ignored, Ignored { repeated: 3, malformed: 3, misnumbered: 3, ..Ignored::default() });
    assert_eq!(line.source.reordered, 1);
}

/// The kernel counts a dropped message once, however many datagrams it has joined. The numbers give the count of
/// missing ones.
#[test]
fn dropped_bursts_are_gaps_of_their_true_length() {
    let mut line = line(Some("u32be@1"), OnOverrun::Gap, Bytes::mib(8), None, Bytes::kib(64));
    (0..20).for_each(|number| burst(&line, number * 50..(number + 1) * 50, FRAMES));
    line.serve();
    line.send([1000]);
    line.serve();
    line.stop(End::Stopped);
    let gaps = line.gaps();
    let [(first, frames, GapCause::ServedLate)] = gaps[..] else { panic!("{gaps:?}") };
    assert!(first > 0 && frames > NEAR && first.is_multiple_of(50) && first + frames == 1000, "{gaps:?}");
    assert_eq!((line.listener.frame, line.source.ignored), (1001 * FRAMES, Ignored::default()));
}
