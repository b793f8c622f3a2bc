//! Real datagrams over the loopback interface.

use std::io::Write as _;
use std::net::Ipv4Addr;

use super::*;
use crate::card::Card;
use crate::layout::Layout;
use crate::pattern::Pattern;
use crate::source::listener::{Listener, pair};
use crate::units::Frames;

const DATA: Pattern = Pattern::Noise { seed: 4 };

/// Frames of one datagram, of four bytes each.
const FRAMES: u64 = 250;

fn layout() -> Layout {
    Layout::analogue(2, 14).expect("exists")
}

fn about(frames: Option<u64>) -> About {
    let hardware = "udp test".to_owned();
    About { layout: layout(), rate: None, pattern: Some(DATA), frames: frames.map(Frames), hardware }
}

/// A sender, a source that hears it, and the ring between that and a listener.
struct Line {
    sender: UdpSocket,
    source: UdpSource,
    ring: Producer,
    listener: Listener,
}

fn line(sequence: Option<&str>, on_overrun: OnOverrun, ring: Bytes, frames: Option<u64>, fifo: Bytes) -> Line {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    socket.set_nonblocking(true).expect("possible");
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    sender.connect(socket.local_addr().expect("an address")).expect("possible");
    let sequence = sequence.map(|text| text.parse().expect("a number"));
    let source = UdpSource::new(socket, sequence, None, Some(fifo), about(frames)).expect("a source");
    let (ring, listener) = pair(layout(), DATA, ring, on_overrun);
    Line { sender, source, ring, listener }
}

fn usual(on_overrun: OnOverrun) -> Line {
    line(Some("u32be@1"), on_overrun, Bytes::mib(1), None, Bytes::mib(1))
}

/// The datagram with this number, of so many frames.
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
        let next = self.source.service(Nanos::ZERO, &mut self.ring);
        self.law();
        next
    }

    fn law(&self) {
        let counters = self.source.counters();
        assert_eq!(counters.produced_bytes, self.ring.position() + counters.lost_bytes);
    }

    #[track_caller]
    fn stop(&mut self, expected: End) {
        let end = loop {
            match self.source.stop(Nanos::ZERO, &mut self.ring) {
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
    fn gaps(&self) -> Vec<(u64, u64, Cause)> {
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
    assert_eq!(line.gaps(), [(2, 2, Cause::Source), (6, 3, Cause::Source)]);
    assert_eq!((line.source.repeated_datagrams(), line.listener.frame), (4, 11 * FRAMES));
}

#[test]
fn with_stop_the_first_loss_is_the_end() {
    let mut line = usual(OnOverrun::Stop);
    line.send([0, 1, 3, 4]);
    assert_eq!(line.serve(), Next::Ended(End::Overrun));
    line.stop(End::Overrun);
    assert_eq!((line.gaps(), line.listener.frame), (vec![(2, 1, Cause::Source)], 3 * FRAMES));
}

#[test]
fn what_is_no_whole_frame_or_of_another_size_than_the_others_is_a_failure() {
    for wrong in [&datagram(1, FRAMES)[..100], &datagram(1, FRAMES + 1), &datagram(1, 0), b"", b"x"] {
        let mut line = usual(OnOverrun::Gap);
        line.send([0]);
        line.sender.send(wrong).expect("sent");
        assert_eq!(line.serve(), Next::Ended(End::Failed(libc::EMSGSIZE)), "{}", wrong.len());
        line.stop(End::Failed(libc::EMSGSIZE));
        assert_eq!(line.listener.frame, FRAMES);
    }
    // A shorter one may be the last, and only that.
    let mut line = usual(OnOverrun::Gap);
    line.send([0]);
    line.sender.send(&datagram(1, 10)).expect("sent");
    assert!(matches!(line.serve(), Next::Readable(..)));
    line.send([2]);
    assert_eq!(line.serve(), Next::Ended(End::Failed(libc::EMSGSIZE)));
    line.stop(End::Failed(libc::EMSGSIZE));
    assert_eq!(line.listener.frame, FRAMES + 10);
}

#[test]
fn a_sender_that_begins_anew_is_a_failure_and_not_late_for_ever() {
    let mut line = usual(OnOverrun::Gap);
    line.send([u64::from(u32::MAX / 2)]);
    let end = (0..MOST_LATE).find_map(|number| {
        line.send([number.into()]);
        match line.serve() {
            Next::Ended(end) => Some((number, end)),
            _ => None,
        }
    });
    assert_eq!(end, Some((MOST_LATE - 1, End::Failed(libc::EPROTO))));
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

/// The kernel's buffer overflows while nobody takes anything. Without numbers its own count says how many are missing, and
/// where: the data behind the gap prove it. The last overflow is known from the count alone.
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
    assert!(gaps.iter().all(|(_, frames, cause)| *frames > 300 && *cause == Cause::ServedLate), "{gaps:?}");
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
    assert_eq!((first + frames, cause), (300, Cause::BufferFull));
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
            let _ = writeln!(io::stderr(), "test-skip: {name}: {error}");
            return;
        }
    };
    if let Err(error) = sender.send_to(&samples(0, FRAMES), ("239.255.77.88", free)) {
        let _ = writeln!(io::stderr(), "test-skip: {name}: {error}");
        return;
    }
    let (mut ring, mut listener) = pair(layout(), DATA, Bytes::kib(4), OnOverrun::Stop);
    assert!(matches!(source.service(Nanos::ZERO, &mut ring), Next::Readable(..)));
    listener.listen(u64::MAX);
    assert_eq!(listener.frame, FRAMES);
    let group_of_v6 = "udp:239.255.77.88:9,2ch,14bit,join=::1".parse::<Card>().expect("a card");
    assert!(group_of_v6.open(None).is_err());
}
