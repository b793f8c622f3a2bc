//! Consumes a source in tests.

use std::sync::Arc;

use hairspring_machine::{Instant, Nanos};

use super::{End, Next, OnOverrun, Source};
use crate::pattern::Pattern;
use hairspring_ring::gap::Gap;
use hairspring_ring::layout::Layout;
use hairspring_ring::memory::{Memory, Pages};
use hairspring_ring::units::{Bytes, Frames};
use hairspring_ring::{Consumer, Producer, ring};

/// Takes data out of the ring, and checks each byte and the place of each gap.
pub(crate) struct TestConsumer {
    pub(crate) consumer: Consumer,
    layout: Layout,
    pattern: Pattern,
    position: u64,
    /// The global index of the next frame.
    pub(crate) frame: u64,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) evicted_bytes: u64,
}

pub(crate) fn pair(layout: Layout, pattern: Pattern, size: Bytes, on_overrun: OnOverrun) -> (Producer, TestConsumer) {
    let memory = Memory::mirrored(size, size, Pages::Small).expect("memory");
    let (producer, consumer) = ring(Arc::new(memory), Bytes(1000), on_overrun).expect("a ring");
    let listener =
        TestConsumer { consumer, layout, pattern, position: 0, frame: 0, gaps: Vec::new(), evicted_bytes: 0 };
    (producer, listener)
}

impl TestConsumer {
    /// Advances to a position and checks the data before it; `bytes` are the data, or `None` if they were evicted.
    fn pass(&mut self, to: u64, bytes: Option<&[u8]>) {
        let from = self.position;
        loop {
            let stop = self.consumer.next_gap_at().filter(|at| *at <= to).unwrap_or(to);
            assert!(stop >= self.position, "a gap lies behind");
            if let Some(bytes) = bytes {
                let piece = &bytes[(self.position - from) as usize..(stop - from) as usize];
                assert_eq!(self.pattern.check(self.layout, Frames(self.frame), piece), None);
            }
            assert_eq!((stop - self.position) % self.layout.grain().bytes, 0, "no whole grains");
            self.frame += self.layout.frames_in(Bytes(stop - self.position)).0;
            self.position = stop;
            let Some((_, gap)) = self.consumer.gap_before(to) else { break };
            self.note(gap);
        }
    }

    fn note(&mut self, gap: Gap) {
        assert_eq!(gap.first, Frames(self.frame), "a gap is not where the data end");
        assert!(gap.frames.0 > 0);
        self.frame = gap.end().0;
        self.gaps.push(gap);
    }

    pub(crate) fn listen(&mut self, most: u64) {
        let grain = self.layout.grain().bytes;
        if self.consumer.on_overrun() == OnOverrun::Overwrite {
            let mut taken = None;
            self.consumer.take_held(most as usize, |position, bytes| {
                let used = bytes.len() as u64 / grain * grain;
                taken = Some((position, bytes[..used as usize].to_vec()));
                used as usize
            });
            let (position, bytes) = taken.expect("called");
            self.evicted_bytes += position - self.position;
            self.pass(position, None);
            return self.pass(position + bytes.len() as u64, Some(&bytes));
        }
        let length = self.consumer.available().min(most) / grain * grain;
        let bytes = self.consumer.view(self.position, length as usize).to_vec();
        self.consumer.take(length);
        self.pass(self.position + length, Some(&bytes));
        self.consumer.release(self.position);
    }

    /// Takes the rest after the producer has closed.
    pub(crate) fn finish(&mut self) -> End {
        self.listen(u64::MAX);
        let (end, position, last) = self.consumer.closed().expect("closed");
        assert_eq!(position, self.position);
        if let Some(gap) = last {
            self.note(gap);
        }
        end
    }

    pub(crate) fn lost(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.frames.0).sum()
    }
}

/// Serves a source that waits for descriptors until it ends, and consumes after each call.
pub(crate) fn hear_out(source: &mut dyn Source, ring: &mut Producer, listener: &mut TestConsumer) -> End {
    source.start(Instant::BOOT);
    loop {
        let next = source.service(Instant::BOOT, ring);
        let counters = source.counters();
        assert_eq!(counters.produced_bytes, ring.position() + counters.lost_bytes);
        listener.listen(u64::MAX);
        match next {
            Next::Ended(end) => {
                ring.close(end);
                assert_eq!(listener.finish(), end);
                return end;
            }
            // The next call finds out whether anything arrived.
            Next::Readable(_) => ring.notifier().wait(source.descriptor(), Nanos::from_secs(1)),
            Next::At(_) | Next::Room => {}
        }
    }
}
