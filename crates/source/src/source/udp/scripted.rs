//! Proof: a sender that skips, swaps, repeats, restarts and stops, in virtual time and without a socket. The recording,
//! with the gaps and their bounds, contains the truth.
//!
//! Each datagram's samples are its true index, so that the consumer knows how many are truly missing between two that
//! were recorded. Cases that are undetectable by design are left out: a restart whose first number looks like that of a
//! late or a lost datagram (see [`super`]), and a single late datagram after a silence.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;

use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};

use std::io::Write as _;

use super::*;
use hairspring_ring::layout::Layout;
use hairspring_ring::memory::{Memory, Pages};
use hairspring_ring::units::SampleRate;
use hairspring_ring::{Consumer, ring};

/// Frames of a datagram: of two bytes each, they hold its index.
const FRAMES: u64 = 4;

/// Datagrams from a script.
#[derive(Debug, Default)]
struct Script {
    coming: VecDeque<(Vec<u8>, Nanos)>,
}

fn sender() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 5000))
}

impl Hearing for Script {
    fn receive(&mut self, batch: &mut Batch) -> io::Result<u64> {
        if self.coming.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = self.coming.len().min(MOST_MESSAGES);
        let now: Vec<_> = self.coming.drain(..count).collect();
        Ok(batch.fill(now.iter().map(|(bytes, age)| (&bytes[..], 0, sender(), *age))))
    }

    fn receive_others(&mut self, _batch: &mut Batch) -> io::Result<u64> {
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn drops(&self) -> Option<u32> {
        Some(0)
    }

    fn keep(&mut self, _sender: SocketAddr, _to: Option<IpAddr>) {}

    fn is_kept(&self) -> bool {
        true
    }

    fn joins(&self) -> bool {
        false
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A run: the sender, the source, and the findings of the consumer.
struct Run {
    source: UdpSource<Script>,
    producer: Producer,
    consumer: Consumer,
    position: u64,
    frame: u64,
    /// The true index and the frame of each datagram that was recorded.
    found: Vec<(u64, u64)>,
    /// First frame and frames of each gap.
    gaps: Vec<(u64, u64)>,
    now: Instant,
    period: Nanos,
    sequence: Sequence,
    number: u64,
    index: u64,
    /// Datagrams that were delivered and are not repetitions.
    delivered: u64,
    coming: Vec<(u64, u64, Instant)>,
    log: Vec<String>,
}

/// A number below `below`.
fn choose(random: &mut TestRng, below: u64) -> u64 {
    random.next_u64() % below.max(1)
}

/// A number up to `most`; all orders of magnitude are equally likely.
fn any_size(random: &mut TestRng, most: f64) -> u64 {
    let part = choose(random, 1 << 20) as f64 / f64::from(1 << 20);
    most.powf(part).round() as u64
}

impl Run {
    fn new(random: &mut TestRng) -> Self {
        let texts = ["u8", "u16be", "u16le", "u32be", "u64le"];
        let sequence: Sequence = texts[choose(random, 5) as usize].parse().expect("a number");
        let per_s = 50 + any_size(random, 20_000.0);
        let layout = Layout::analogue(1, 16).expect("exists");
        // The sender's clock is up to one per cent off.
        let off = 9_900 + choose(random, 200);
        let stated = SampleRate::new(per_s * FRAMES * off, 10_000).filter(|_| choose(random, 3) > 0);
        let about = StreamInfo { layout, rate: stated, pattern: None, frames: None, hardware: "script".to_owned() };
        let source = UdpSource::hearing(Script::default(), Some(sequence), None, Bytes::mib(1), Vec::new(), about);
        let memory = Memory::mirrored(Bytes::kib(64), Bytes::kib(64), Pages::Small).expect("memory");
        let (producer, consumer) = ring(Arc::new(memory), Bytes(1024), OnOverrun::Gap).expect("a ring");
        Self {
            source,
            producer,
            consumer,
            position: 0,
            frame: 0,
            found: Vec::new(),
            gaps: Vec::new(),
            now: Instant::BOOT + Nanos::from_secs(1000),
            period: Nanos::new(1_000_000_000 / per_s as i64),
            sequence,
            number: choose(random, u64::MAX),
            index: 0,
            delivered: 0,
            coming: Vec::new(),
            log: vec![format!("{sequence}, {per_s} a second, stated: {stated:?}")],
        }
    }

    /// The next datagram is sent now.
    fn send(&mut self) {
        self.now += self.period;
        self.coming.push((self.number, self.index, self.now));
        self.number = self.sequence.next(self.number);
        self.index += 1;
        self.delivered += 1;
    }

    /// Loses the next `count` datagrams on the way.
    fn skip(&mut self, count: u64) {
        self.deliver();
        // The receiver checks the waiting datagrams in time.
        let due = self.now + window::LONGEST + Nanos::from_millis(1);
        self.now += Nanos::new(self.period.count() * count as i64);
        self.number = self.number.wrapping_add(count) & self.sequence.highest();
        self.index += count;
        self.serve(due.min(self.now));
    }

    /// Delivers everything on the way.
    fn deliver(&mut self) {
        let last = self.coming.iter().map(|one| one.2).max().unwrap_or(self.now);
        for (number, index, at) in std::mem::take(&mut self.coming) {
            let bytes = number.to_le_bytes();
            let text = self.sequence.to_string();
            let length = self.sequence.end() as usize;
            let mut datagram = bytes[..length].to_vec();
            if text.ends_with("be") {
                datagram.reverse();
            }
            datagram.extend_from_slice(&index.to_le_bytes());
            self.source.hearing.coming.push_back((datagram, last - at));
        }
        self.serve(last);
    }

    fn serve(&mut self, now: Instant) {
        let next = self.source.service(now, &mut self.producer);
        assert!(!matches!(next, Next::Ended(_)), "{next:?}");
        self.consume();
    }

    fn consume(&mut self) {
        let counters = self.source.counters();
        assert_eq!(counters.produced_bytes, self.producer.position() + counters.lost_bytes);
        let end = self.position + self.consumer.available();
        loop {
            let stop = self.consumer.next_gap_at().filter(|at| *at <= end).unwrap_or(end);
            let bytes = self.consumer.view(self.position, (stop - self.position) as usize).to_vec();
            self.consumer.take(stop - self.position);
            for datagram in bytes.chunks_exact(8) {
                self.found.push((u64::from_le_bytes(datagram.try_into().expect("eight")), self.frame));
                self.frame += FRAMES;
            }
            self.position = stop;
            let Some((_, gap)) = self.consumer.gap_before(end) else { break };
            assert_eq!(gap.first.0, self.frame, "a gap is where the data end");
            self.gaps.push((gap.first.0, gap.frames.0));
            self.frame = gap.end().0;
        }
        self.consumer.release(self.position);
    }

    /// Performs one random act of the sender.
    fn act(&mut self, random: &mut TestRng) {
        match choose(random, 12) {
            0..4 => (0..1 + choose(random, 40)).for_each(|_| self.send()),
            4..7 => {
                let count = 1 + any_size(random, 1e6);
                self.log.push(format!("skip {count} before {}", self.number));
                self.skip(count);
                self.send();
            }
            7..9 => {
                let from = self.coming.len();
                (0..2 + choose(random, 6)).for_each(|_| self.send());
                // They arrive at the same times in another order.
                let times: Vec<_> = self.coming[from..].iter().map(|one| one.2).collect();
                for at in (from + 1..self.coming.len()).rev() {
                    self.coming.swap(at, from + choose(random, (at - from + 1) as u64) as usize);
                }
                self.coming[from..].iter_mut().zip(times).for_each(|(one, at)| one.2 = at);
                self.log.push(format!("swapped up to {}", self.number));
            }
            9 => {
                let back = 1 + choose(random, 60.min(self.index));
                self.send();
                self.deliver();
                // A late datagram during the trial of a loss looks like the one that is due.
                if self.index > back + 1 && self.source.expected == Some(self.number) {
                    let number = self.number.wrapping_sub(back) & self.sequence.highest();
                    self.coming.push((number, self.index - back, self.now));
                    self.log.push(format!("repeated {number}"));
                    // The one after it shows that it was a late one.
                    self.send();
                }
            }
            10 if self.sequence.bits() >= 32 => {
                let far = 1000 + any_size(random, 1e6);
                self.coming.push((self.number.wrapping_add(far) & self.sequence.highest(), u64::MAX, self.now));
                self.send();
            }
            _ => self.restart(random),
        }
        if choose(random, 3) > 0 {
            self.deliver();
        }
    }

    /// The sender is down for a while, and restarts at 0.
    fn restart(&mut self, random: &mut TestRng) {
        self.send();
        self.deliver();
        let (ahead, behind) = (self.sequence.forward(0, self.number), self.sequence.forward(self.number, 0));
        // During the trial of a loss the receiver compares with older numbers.
        let is_on_trial = self.source.expected != Some(self.number);
        if is_on_trial || ahead <= 2 * NEAR || behind <= 4 * NEAR && self.sequence.bits() > 8 || behind < 2 * NEAR {
            return;
        }
        // Without a stated rate only the average is known.
        let down = choose(random, if self.source.about.rate.is_some() { 2000 } else { self.index.min(2000) / 20 + 1 });
        self.now += Nanos::new(self.period.count() * down as i64);
        self.index += choose(random, down + 1);
        self.log.push(format!("restart of {} after {down}, index {}", self.number, self.index));
        self.number = 0;
        (0..CONFIRM + choose(random, 8) as u32).for_each(|_| self.send());
        self.deliver();
    }

    fn end(&mut self) {
        loop {
            let next = self.source.stop(self.now, &mut self.producer);
            self.consume();
            if let Next::Ended(end) = next {
                assert_eq!(end, End::Stopped);
                break;
            }
        }
        self.producer.close(End::Stopped);
        self.consume();
        if let Some((_, _, Some(gap))) = self.consumer.closed() {
            self.gaps.push((gap.first.0, gap.frames.0));
        }
    }

    /// Compares the recording with the truth. Returns the number of gaps with bounds.
    fn check(&self) -> Result<usize, String> {
        let bounds = self.source.gap_bounds();
        for pair in self.found.windows(2) {
            let [(before, at), (after, then)] = [pair[0], pair[1]];
            if after <= before {
                return Err(format!("datagram {after} after {before}"));
            }
            let truth = (after - before - 1) * FRAMES;
            let between = at + FRAMES..then;
            let gaps: Vec<_> = self.gaps.iter().filter(|gap| between.contains(&gap.0)).collect();
            let declared: u64 = gaps.iter().map(|gap| gap.1).sum();
            if declared != then - at - FRAMES {
                return Err(format!("{gaps:?} are not what lies between {before} and {after}"));
            }
            let of_them: Vec<_> = bounds.iter().filter(|one| between.contains(&one.first.0)).collect();
            let (least, most) = match of_them[..] {
                [] => (declared, declared),
                [one] => (one.least.0, one.most.0),
                _ => return Err(format!("several bounds {of_them:?} of {gaps:?}")),
            };
            if !(least..=most).contains(&truth) {
                return Err(format!(
                    "{truth} frames are missing between {before} and {after}, stated: {least} to {most}"
                ));
            }
        }
        // Datagrams after the last recorded one must be counted.
        let last = self.found.last().map_or(0, |last| last.0 + 1);
        let ignored = self.source.ignored;
        let counted = ignored.misnumbered + ignored.repeated;
        if self.index > last && self.found.is_empty()
            || self.index - last > 0 && counted == 0 && self.coming.is_empty() && self.tail()
        {
            return Err(format!("the last, {last} to {}, are gone without a word", self.index));
        }
        Ok(bounds.len())
    }

    /// Whether the last datagram was delivered.
    fn tail(&self) -> bool {
        !self.log.last().is_some_and(|last| last.starts_with("skip"))
    }
}

/// Number of runs, multiplied by `HAIRSPRING_PROOF` if that is set.
fn runs() -> u64 {
    let times = std::env::var("HAIRSPRING_PROOF").ok().and_then(|times| times.parse::<u64>().ok()).unwrap_or(1);
    times.saturating_mul(400)
}

#[test]
fn what_is_recorded_of_any_sender_contains_the_truth() {
    let runs = runs();
    let (mut datagrams, mut gaps, mut bounds, mut reordered, mut restarts) = (0, 0, 0, 0, 0);
    for seed in 0..runs {
        let mut random = TestRng::from_seed(
            RngAlgorithm::ChaCha,
            &std::array::from_fn::<u8, 32, _>(|at| seed.to_le_bytes()[at % 8]),
        );
        let mut run = Run::new(&mut random);
        (0..60).for_each(|_| run.send());
        // Without a stated rate the average is known after a while.
        while run.source.about.rate.is_none() && (run.index as i64 - 2) * run.period.count() <= LEAST_AVERAGE.count() {
            (0..30).for_each(|_| run.send());
            run.deliver();
        }
        run.deliver();
        for _ in 0..choose(&mut random, 25) {
            run.act(&mut random);
        }
        run.deliver();
        run.end();
        bounds += run.check().unwrap_or_else(|wrong| {
            panic!("run {seed}: {wrong}\n{:#?}\n{:?}\n{:?}", run.log, run.gaps, run.source.bounds)
        });
        datagrams += run.delivered;
        gaps += run.gaps.len();
        reordered += run.source.reordered;
        restarts += run.source.ignored.restarts;
    }
    // The proof reads them.
    if std::env::var_os("HAIRSPRING_PROOF").is_some() {
        let mut out = std::io::stdout();
        let figures = [
            ("scripted senders", runs),
            ("datagrams that came", datagrams),
            ("gaps", gaps as u64),
            ("of these with bounds", bounds as u64),
            ("datagrams put in their places", reordered),
            ("restarts seen", restarts),
        ];
        for (name, count) in figures {
            writeln!(out, "figure: {name}: {count}").expect("printed");
        }
    }
}
