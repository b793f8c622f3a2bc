//! Datagrams of a card, over the loopback interface: with any content in any order, every frame is in the ring or in a
//! gap, and gaps lie where data end.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Arc, OnceLock};

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::{Bytes, Consumer, Frames, Layout, Memory, OnOverrun, Pages, Producer, ring};
use hairspring_source::reader::StreamInfo;
use hairspring_source::udp::UdpSource;
use hairspring_source::{Next, Source};

use crate::Input;

const RING: Bytes = Bytes(16 << 10);
const NUMBERS: [Option<&str>; 4] = [None, Some("u8"), Some("u16be@1"), Some("u32le@2")];
const POLICIES: [OnOverrun; 3] = [OnOverrun::Gap, OnOverrun::Stop, OnOverrun::Overwrite];
/// Datagrams of one input.
const DATAGRAMS_MOST: usize = 256;

/// Frames that have come out of the ring.
struct Heard {
    consumer: Consumer,
    layout: Layout,
    position: u64,
    frame: u64,
}

impl Heard {
    /// Takes the available frames, gap by gap.
    fn listen(&mut self) {
        let grain = self.layout.grain().bytes;
        let to = if self.consumer.on_overrun() == OnOverrun::Overwrite {
            let mut seen = self.position;
            self.consumer.take_held(usize::MAX, |position, bytes| {
                let used = bytes.len() as u64 / grain * grain;
                seen = position + used;
                used as usize
            });
            seen
        } else {
            let length = self.consumer.available() / grain * grain;
            self.consumer.take(length);
            self.consumer.release(self.position + length);
            self.position + length
        };
        while let Some((at, gap)) = self.consumer.gap_before(to) {
            assert!(at >= self.position && (at - self.position).is_multiple_of(grain), "a gap lies behind");
            self.frame += self.layout.frames_in(Bytes(at - self.position)).0;
            self.position = at;
            assert_eq!(gap.first, Frames(self.frame), "a gap is not where the data end");
            self.frame = gap.end().0;
        }
        self.frame += self.layout.frames_in(Bytes(to - self.position)).0;
        self.position = to;
    }
}

fn made(policy: OnOverrun, layout: Layout) -> (Producer, Heard) {
    static MEMORY: OnceLock<Arc<Memory>> = OnceLock::new();
    let memory = MEMORY.get_or_init(|| Arc::new(Memory::mirrored(RING, RING, Pages::Small).expect("memory")));
    let (producer, consumer) = ring(Arc::clone(memory), Bytes(1000), policy).expect("a ring");
    (producer, Heard { consumer, layout, position: 0, frame: 0 })
}

/// Checks the module's promise.
///
/// # Panics
/// The bytes break it.
pub fn check(bytes: &[u8]) {
    let mut input = Input(bytes);
    let (choice, header) = (usize::from(input.byte()), input.byte());
    let (numbers, policy) = (NUMBERS[choice % 4], POLICIES[choice / 4 % 3]);
    let layout = Layout::analogue(1, 16).expect("exists");
    let rate = if choice >= 128 { hairspring_ring::SampleRate::hz(1000) } else { None };
    let about = StreamInfo { layout, rate, pattern: None, frames: None, hardware: String::new() };
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    socket.set_nonblocking(true).expect("possible");
    let to = socket.local_addr().expect("an address");
    let senders = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"));
    let sequence = numbers.map(|text| text.parse().expect("a number"));
    let header = (header & 1 == 1).then_some(u32::from(header / 2).max(6));
    let source = UdpSource::new(socket, sequence, header, Some(Bytes::kib(256)), Vec::new(), about);
    let mut source = source.expect("a source");
    let (mut ring, mut heard) = made(policy, layout);
    let mut now = Instant::BOOT;
    source.start(now);
    for _ in 0..DATAGRAMS_MOST {
        if input.is_empty() {
            break;
        }
        // The byte selects the sender, whether the source and the recorder look now, and the time that passes.
        let (what, length) = (input.byte(), usize::from(input.byte()));
        let datagram = input.take(length);
        let _ = senders[usize::from(what & 1)].send_to(datagram, to);
        now += Nanos::from_millis(i64::from(what >> 3));
        if what & 2 == 0 && matches!(source.service(now, &mut ring), Next::Ended(_)) {
            break;
        }
        law(&source, &ring);
        if what & 4 == 0 {
            heard.listen();
        }
    }
    let end = loop {
        match source.stop(now, &mut ring) {
            Next::Ended(end) => break end,
            _ => heard.listen(),
        }
    };
    law(&source, &ring);
    ring.close(end);
    heard.listen();
    let (_, position, last) = heard.consumer.closed().expect("closed");
    assert_eq!(position, heard.position);
    if let Some(gap) = last {
        assert_eq!(gap.first, Frames(heard.frame), "the last gap is not where the data end");
        heard.frame = gap.end().0;
    }
    assert_eq!(layout.bytes_of(Frames(heard.frame)).0, source.counters().produced_bytes);
}

/// Everything that came is in the ring or counted as lost.
fn law(source: &UdpSource, ring: &Producer) {
    let counters = source.counters();
    assert_eq!(counters.produced_bytes, ring.position() + counters.lost_bytes);
}
