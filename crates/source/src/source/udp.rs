//! [`UdpSource`]: receives datagrams. It is a clocked source, because the receiver cannot make the sender wait.
//!
//! A datagram is a header, which may hold its number, and whole grains. Which losses can be known:
//!
//! | lost | with numbers | without |
//! |---|---|---|
//! | on the network | a gap, cause `source` | **cannot be known**; the description states it |
//! | by this kernel: buffer full | a gap, cause `buffer_full` or `served_late` | the same, by the kernel's count |
//! | by this kernel after the last datagram | a gap of at least the kernel's count | a gap, by the kernel's count |
//! | before the first datagram, and on the network after the last | cannot be known | cannot be known |
//!
//! The frames of a lost datagram are computed from the size that all datagrams have. With numbers, all but the last
//! must have the same size. If a loss cannot be counted (the kernel dropped datagrams of a stream whose sizes vary),
//! the source fails rather than guess.
//!
//! **Accepted senders.** The named senders, or the sender of the first datagram that fits. Others are ignored. Once one
//! sender is known, the kernel puts only its datagrams into the receive buffer, so that a stranger's flood makes no
//! loss (`udp/hearing.rs`).
//!
//! **Stray datagrams** never end the recording. A datagram is ignored and counted ([`Ignored`]) if it comes from
//! another sender, is not whole frames, is larger than the others, or comes late or twice. A shorter one is kept. If
//! others follow, its missing part becomes a gap, because the number of the next one gives its place.
//!
//! **Reordering.** A datagram whose number is slightly ahead waits until those before it have arrived, or are lost: see
//! [`window`].
//!
//! **Turns of the counter.** A number of 8 or 16 bits gives the count of missing datagrams only up to whole turns.
//! Those that fit the time since the last datagram are counted, or stated as bounds of the gap
//! ([`Source::gap_bounds`]): see `udp/turns.rs`.
//!
//! **Numbers out of sequence.** A number slightly ahead is a loss. A lower number may be a late datagram or a restarted
//! sender; one far ahead may be a long loss or an error. Such datagrams are held until [`CONFIRM`] of them have come in
//! a row with consecutive numbers, and none that continues the old sequence:
//!
//! ```text
//!             1 number not due                    3 as many as confirm it
//!   going on ──────────────────→ held, counting ─────────────────────────→ going on from there, behind a gap
//!       ↑                            │  │ 4 the source ends
//!       └────────────────────────────┘  └→ recorded behind a gap, unless they can be late ones or errors
//!         2 a datagram that continues, or one out of the new sequence: ignore those held
//! ```
//!
//! Then the gap is as long as the numbers state, if they are ahead and the time since the last datagram has room for
//! that much. Otherwise the sender has restarted and the loss is unknown: the gap is as long as the rate gives, at
//! least one grain, with bounds from nothing to the most that can have been sent. A counter of 8 bits, or one of 16
//! bits that goes on near 0, may have restarted even if its numbers fit: then the bounds begin at nothing, too. A
//! sender that restarts within its first [`CONFIRM`] numbers looks like one that repeats itself, and one whose first
//! number is at most 64 ahead of the old ones like a loss. A sender at another port of the same computer counts as the
//! same sender, restarted, if its datagrams are numbered and confirm it in the same way.
//!
//! At an end (4) the held datagrams are recorded if their numbers fit the time, or if two of them are from our sender
//! and cannot be late, or [`FEW`] are from another port. All others are counted as ignored.
//!
//! The kernel stamps each datagram on arrival, before it waits in the receive buffer. The stamps are the arrival times
//! of each datagram's first frame at this computer; the time on the network is unknown.
//!
//! One call of the kernel takes up to 32 messages (`recvmmsg`). Of a stream with numbers the kernel may join up to 128
//! datagrams that come in a burst into one message (`UDP_GRO`). The first of them carries the stamp, and the kernel
//! counts a message that it drops once. So after the last datagram of a stream that it has joined, one datagram is
//! declared lost for each message that the kernel dropped, which is the least that it can be. Everywhere else the
//! numbers give the count of missing datagrams. A stream without numbers is never joined, because there the kernel's
//! count is the only evidence.
//!
//! Above 40,000 messages a second the source pauses for at most [`MOST_PAUSE`] after it has emptied the kernel's
//! buffer, so that the kernel does not wake it for each datagram; [`SourceCounters::pauses`] counts the pauses.
//!
//! The kernel's receive buffer is the FIFO. Its contents do not count as produced before they are put into the ring. If
//! the ring is full, datagrams stay in the receive buffer until it overflows.

mod acceptance;
mod hearing;
mod judgement;
mod pace;
mod peer;
mod sequence;
mod turns;
pub mod window;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::BorrowedFd;

use hairspring_machine::{Host, Instant, Machine as _, Nanos};

use super::datagrams::{Batch, MOST_DATAGRAM_BYTES, MOST_JOINED, MOST_MESSAGES, Received};
use super::reader::{StreamInfo, failed};
use super::{
    End, FrameStamp, Ignored, Next, OnOverrun, SenderCount, Source, SourceCounters, SourceDescription, StampTime,
};
use hairspring_ring::Producer;
use hairspring_ring::gap::{Gap, GapBounds, GapCause};
use hairspring_ring::units::{ByteRate, Bytes, Frames};

use hearing::Hearing;
use judgement::{Judgement, Placed, Trial};
use pace::Pace;
use peer::{Peer, Sender};
use turns::{Missing, NEAR, Sent};
use window::{Held, Window};

pub use hearing::Sockets;
pub use pace::MOST_PAUSE;
pub use sequence::{MOST_HEADER_BYTES, Sequence};

/// Most bytes that one call moves.
const MOST_PER_CALL: u64 = 4 << 20;

/// The longest wait for data.
const PATIENCE: Nanos = Nanos::from_millis(100);

/// Wait for room before the next attempt.
const SOON: Nanos = Nanos::from_millis(1);

/// This many consecutive numbers out of the old sequence start a new sequence.
pub const CONFIRM: u32 = 32;

/// At an end this many from another port of our sender's computer are enough.
pub const FEW: u32 = 8;

/// An average rate counts from this time on.
const LEAST_AVERAGE: Nanos = Nanos::from_millis(100);

/// A counter of 16 bits that continues below this number may have restarted.
const FRESH: u64 = 1024;

/// Most batches of other senders per call: more would let a flood take the time of the stream.
const MOST_OTHERS: u32 = 4;

/// A source that receives datagrams.
#[derive(Debug)]
pub struct UdpSource<H = Sockets> {
    about: StreamInfo,
    hearing: H,
    sequence: Option<Sequence>,
    header_bytes: usize,
    fifo: Bytes,
    peer: Peer,
    /// Whether the source has tried to connect the socket to one sender.
    tried_to_keep: bool,
    /// The batch of the last system call, and whether it came through the ear: from senders other than the kept one.
    batch: Batch,
    of_others: bool,
    /// One of them that is judged once the window is empty.
    again: Option<Received>,
    /// Whether datagrams of the kept sender still wait at the ear, where its first one came in.
    switching: bool,
    /// Rate at which the datagrams arrived.
    pace: Pace,
    /// Received samples that wait for room, in order; the bytes before `placed` are in the ring.
    ready: Vec<u8>,
    placed: usize,
    /// Bytes of samples in the first datagram.
    payload_bytes: Option<u64>,
    /// Whether later datagrams had other sizes.
    varies: bool,
    /// Bytes that the last datagram lacked to that size; only with numbers.
    short_bytes: u64,
    expected: Option<u64>,
    /// The number and the frame at which the numbers began.
    count: Option<SenderCount>,
    window: Window,
    reordered: u64,
    trial: Trial,
    /// Whether the datagrams on trial are accepted as soon as the window is empty.
    adopting: bool,
    /// Arrival of the last datagram that was kept.
    last_at: Instant,
    /// Start of the average rate: the first datagram, or the one after a gap of unknown length. And the average before.
    average_from: Option<(Instant, u64)>,
    average_before: Option<f64>,
    /// The kernel's stamps of the first datagram, if its first frame is frame 0, and of the newest one.
    first_stamp: Option<FrameStamp>,
    newest_stamp: Option<FrameStamp>,
    /// The kernel's count of drops at the last datagram that was kept.
    drops: u32,
    /// The kernel's count when the sender was kept: those before may have been a stranger's.
    strange_drops: u32,
    /// Whether the ring was full since the kernel's buffer was last empty, now and when the batch was taken.
    was_full: bool,
    batch_was_full: bool,
    committed: u64,
    lost: u64,
    /// The last gap.
    gap: Gap,
    bounds: Vec<GapBounds>,
    ignored: Ignored,
    /// After a stop: the bytes that may still be received.
    stopping: Option<u64>,
    ended: Option<End>,
}

impl UdpSource {
    /// Receives on a socket that is bound and has joined its group, if any. `fifo` is the requested size of the
    /// kernel's buffer. `from` are the accepted senders, with port 0 for all ports of a computer; if it is empty, the
    /// first sender is accepted.
    ///
    /// # Errors
    /// The system refuses a setting of the socket.
    pub fn new(
        socket: UdpSocket,
        sequence: Option<Sequence>,
        header_bytes: Option<u32>,
        fifo: Option<Bytes>,
        from: Vec<SocketAddr>,
        about: StreamInfo,
    ) -> io::Result<Self> {
        // Without numbers a loss is only counted by the kernel, which counts joined datagrams as one.
        let sockets = Sockets::new(socket, sequence.is_some(), fifo)?;
        let fifo = sockets.fifo();
        Ok(Self::hearing(sockets, sequence, header_bytes, fifo, from, about))
    }

    /// The address on which it listens.
    ///
    /// # Errors
    /// The system's error.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.hearing.main.local_addr()
    }
}

#[expect(private_bounds, reason = "from where datagrams come is chosen here; other crates have sockets")]
impl<H: Hearing> UdpSource<H> {
    fn hearing(
        hearing: H,
        sequence: Option<Sequence>,
        header_bytes: Option<u32>,
        fifo: Bytes,
        from: Vec<SocketAddr>,
        about: StreamInfo,
    ) -> Self {
        let header_bytes = header_bytes.unwrap_or_else(|| sequence.map_or(0, Sequence::end)) as usize;
        let held = if sequence.is_some() { CONFIRM as usize * MOST_DATAGRAM_BYTES } else { MOST_DATAGRAM_BYTES };
        let nothing = Placed { number: 0, cause: GapCause::Source, came: Instant::BOOT, arrived: None };
        let trial = Trial {
            from: SocketAddr::from(([0, 0, 0, 0], 0)),
            to: None,
            ours: false,
            behind: false,
            first: nothing,
            last_came: Instant::BOOT,
            next: 0,
            count: 0,
            samples: Vec::with_capacity(held),
        };
        Self {
            about,
            fifo,
            hearing,
            sequence,
            header_bytes,
            peer: if from.is_empty() { Peer::First } else { Peer::Named(from) },
            tried_to_keep: false,
            batch: Batch::new(),
            of_others: false,
            again: None,
            switching: false,
            pace: Pace::new(fifo),
            // Address space only, until it is used.
            ready: Vec::with_capacity(held),
            placed: 0,
            payload_bytes: None,
            varies: false,
            short_bytes: 0,
            expected: None,
            count: None,
            window: Window::default(),
            reordered: 0,
            trial,
            adopting: false,
            last_at: Instant::BOOT,
            average_from: None,
            average_before: None,
            first_stamp: None,
            newest_stamp: None,
            drops: 0,
            strange_drops: 0,
            was_full: false,
            batch_was_full: false,
            committed: 0,
            lost: 0,
            gap: Gap { first: Frames(u64::MAX), frames: Frames(0), cause: GapCause::Source, found: Instant::BOOT },
            bounds: Vec::new(),
            ignored: Ignored::default(),
            stopping: None,
            ended: None,
        }
    }

    /// The bytes that are still wanted.
    fn wanted(&self) -> u64 {
        self.about.total_bytes() - self.committed - self.lost
    }

    fn end(&mut self, end: End) -> Next {
        self.forget_trial();
        self.ended = Some(end);
        Next::Ended(end)
    }

    /// Declares datagrams lost; the samples before must be in the ring. Returns the end of the source if the loss ends
    /// it.
    fn lose(&mut self, missing: Missing, cause: GapCause, now: Instant, ring: &mut Producer) -> Option<End> {
        if missing.most == 0 {
            return None;
        }
        let Some(payload_bytes) = self.payload_bytes.filter(|_| !self.varies) else {
            return Some(End::Failed(libc::EMSGSIZE));
        };
        let bytes = |datagrams: u64| datagrams.saturating_mul(payload_bytes);
        // For a gap of unknown length, declare one grain.
        let likely = missing.likely.map_or(self.about.layout.grain().bytes, bytes);
        self.lose_bytes(likely, [bytes(missing.least), bytes(missing.most)], cause, now, ring)
    }

    fn lose_bytes(
        &mut self,
        bytes: u64,
        [least, most]: [u64; 2],
        cause: GapCause,
        now: Instant,
        ring: &mut Producer,
    ) -> Option<End> {
        let bytes = bytes.min(self.wanted());
        let layout = self.about.layout;
        let first = layout.frames_in(Bytes(self.committed + self.lost));
        if bytes > 0 {
            let gap = Gap { first, frames: layout.frames_in(Bytes(bytes)), cause, found: now };
            ring.gap(gap);
            // Gaps that touch are one.
            let touches = self.gap.end() == first;
            let before = if touches { self.gap } else { Gap { frames: Frames(0), ..gap } };
            let is_bound = touches && self.bounds.last().is_some_and(|last| last.first == before.first);
            let [least, most] = [least, most].map(|bytes| match bytes {
                u64::MAX => Frames(u64::MAX),
                bytes => layout.frames_in(Bytes(bytes)),
            });
            if let Some(last) = self.bounds.last_mut().filter(|_| is_bound) {
                last.least.0 = last.least.0.saturating_add(least.0);
                last.most.0 = last.most.0.saturating_add(most.0);
            } else if least < most {
                let [least, most] = [least, most].map(|end| Frames(end.0.saturating_add(before.frames.0)));
                self.bounds.push(GapBounds { first: before.first, least, most });
            }
            self.gap = Gap { frames: Frames(before.frames.0 + gap.frames.0), ..before };
        }
        self.lost += bytes;
        let stops = matches!(ring.on_overrun(), OnOverrun::Stop | OnOverrun::Block);
        if stops { Some(End::Overrun) } else { None }
    }

    /// Puts samples into the ring, if there is room for all of them.
    fn put(&mut self, samples: &[u8], ring: &mut Producer) -> bool {
        let wanted = usize::try_from(self.wanted()).unwrap_or(usize::MAX);
        let samples = &samples[..samples.len().min(wanted)];
        if make_room(samples.len() as u64, self.about.layout.grain().bytes, ring)
            && let Some(place) = ring.reserve(samples.len())
        {
            place.copy_from_slice(samples);
            ring.commit(samples.len());
            self.committed += samples.len() as u64;
            return true;
        }
        false
    }

    /// Puts the ready samples into the ring, datagram by datagram. Returns whether all of them had room.
    fn put_ready(&mut self, ring: &mut Producer) -> bool {
        let ready = std::mem::take(&mut self.ready);
        let usual = self.payload_bytes.filter(|_| self.sequence.is_some());
        let length = usual.map_or(ready.len(), |usual| usual as usize);
        while self.placed < ready.len() {
            let end = ready.len().min(self.placed + length);
            if !self.put(&ready[self.placed..end], ring) {
                break;
            }
            self.placed = end;
        }
        let all = self.placed == ready.len();
        self.ready = ready;
        if all {
            self.ready.clear();
            self.placed = 0;
        }
        all
    }

    /// Waits because the kernel has no more datagrams; `None` if a held datagram can go on. `began` is the start of the
    /// call by this computer's clock; `now` is the time that the caller passed.
    fn drained(&mut self, now: Instant, began: Instant, ring: &mut Producer) -> Option<Next> {
        if self.stopping.is_some() {
            if !self.window.is_empty() {
                self.window.open();
                return None;
            }
            if self.trial.count > 0 && self.is_kept_at_end() {
                self.adopting = true;
                return None;
            }
        }
        let behind = match self.payload_bytes {
            Some(_) if self.was_full || self.stopping.is_some() => self.hearing.drops(),
            _ => None,
        };
        let behind = behind.map_or(0, |drops| drops.wrapping_sub(self.drops));
        if self.stopping.is_some() {
            self.batch_was_full = self.was_full;
            let mut missing = self.dropped(behind.into(), now, true);
            if self.hearing.joins() {
                missing.most = missing.most.saturating_mul(MOST_JOINED);
            }
            let end = self.lose(missing, self.cause(), now, ring);
            return Some(self.end(end.unwrap_or(End::Stopped)));
        }
        // Drops at the end of the queue show with the next datagram, so the reason is kept until then.
        self.was_full &= behind > 0;
        let due = self.window.due_at();
        Some(match self.pace.pause(now) {
            // This call has taken time since `now`.
            Some(pause) => Next::At(now + (Host.monotonic() - began) + pause),
            None => Next::Readable(due.into_iter().fold(now + PATIENCE, Instant::min)),
        })
    }

    /// Counts the datagrams of strangers at the end of the stream.
    fn hear_others(&mut self) {
        for _ in 0..MOST_OTHERS {
            if !matches!(self.hearing.receive_others(&mut self.batch), Ok(1..)) {
                return;
            }
            while let Some(received) = self.batch.next() {
                self.ignored.foreign += u64::from(self.peer.knows(received.from) != Sender::Ours);
            }
        }
    }

    /// Waits for room.
    fn full(&mut self, now: Instant) -> Next {
        self.was_full = true;
        if self.stopping.is_some() { Next::Room } else { Next::At(now + SOON) }
    }
}

/// Whether this many bytes fit into the ring; makes room if the policy allows it.
fn make_room(bytes: u64, grain_bytes: u64, ring: &mut Producer) -> bool {
    ring.room() >= bytes || (ring.on_overrun() == OnOverrun::Overwrite && ring.evict(bytes, grain_bytes) >= bytes)
}

impl<H: Hearing> Source for UdpSource<H> {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.hearing.descriptor()
    }

    fn describe(&self) -> SourceDescription {
        let loss = match self.sequence {
            Some(_) => "",
            None => "; without numbers: loss on the network cannot be seen",
        };
        SourceDescription {
            layout: self.about.layout,
            rate: self.about.rate,
            clocked: true,
            fifo: self.fifo,
            hardware: format!("{}{loss}", self.about.hardware),
            pattern: self.about.pattern,
        }
    }

    fn start(&mut self, _now: Instant) {}

    fn begins_with_data(&self) -> bool {
        true
    }

    fn service(&mut self, now: Instant, ring: &mut Producer) -> Next {
        let began = Host.monotonic();
        let mut moved = 0;
        // Whether the kernel has no more of the stream, and the calls left for other senders.
        let (mut is_empty, mut others) = (false, MOST_OTHERS);
        while self.ended.is_none() && moved < MOST_PER_CALL {
            if self.wanted() == 0 {
                self.hear_others();
                return self.end(End::Finished);
            }
            if !self.put_ready(ring) {
                let datagram = self.payload_bytes.filter(|_| self.sequence.is_some());
                if ring.fill().capacity.0 < datagram.unwrap_or(self.ready.len() as u64) {
                    return self.end(End::Failed(libc::ENOBUFS));
                }
                return self.full(now);
            }
            if let Some(usual) = self.payload_bytes
                && !make_room(usual, self.about.layout.grain().bytes, ring)
            {
                return self.full(now);
            }
            let due = self.expected.and_then(|expected| self.window.take(expected, now));
            if let Some(Held { placed, samples, .. }) = due {
                if let Some(end) = self.settle(placed, samples.len() as u64, now, ring) {
                    return self.end(end);
                }
                self.ready = samples;
                continue;
            }
            if self.adopting {
                if let Some(end) = self.adopt(now, ring) {
                    return self.end(end);
                }
                continue;
            }
            let Some(received) = self.again.take().or_else(|| self.batch.next()) else {
                let of_others = self.switching || is_empty || self.stopping == Some(0);
                if of_others && !self.switching && others == 0 {
                    match self.drained(now, began, ring) {
                        Some(next) => return next,
                        None => continue,
                    }
                }
                let brought = match of_others {
                    true => self.hearing.receive_others(&mut self.batch),
                    false => self.hearing.receive(&mut self.batch),
                };
                self.of_others = of_others;
                match brought {
                    Ok(bytes) if of_others => {
                        moved += bytes;
                        others = others.saturating_sub(1);
                    }
                    Ok(bytes) => {
                        self.pace.took(self.batch.messages(), bytes);
                        // A short batch means an empty buffer, unless a signal came; a stop must be sure.
                        is_empty = self.batch.messages() < MOST_MESSAGES && self.stopping.is_none();
                        moved += bytes;
                        self.stopping = self.stopping.map(|left| left.saturating_sub(bytes));
                        self.batch_was_full = self.was_full;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => match of_others {
                        true => (self.switching, others) = (false, if self.switching { others } else { 0 }),
                        false => is_empty = true,
                    },
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return self.end(failed(&error)),
                }
                continue;
            };
            match self.judge(received, now, ring) {
                Judgement::Keep => {
                    let bytes = std::mem::take(&mut self.batch.bytes);
                    let samples = &bytes[received.at + self.header_bytes..received.at + received.length];
                    if self.wanted() > 0 && !self.put(samples, ring) {
                        self.ready.extend_from_slice(samples);
                    }
                    self.batch.bytes = bytes;
                }
                Judgement::Next => {}
                Judgement::Again => self.again = Some(received),
                Judgement::End(end) => return self.end(end),
            }
        }
        self.ended.map_or(Next::At(now), Next::Ended)
    }

    fn stop(&mut self, now: Instant, ring: &mut Producer) -> Next {
        // At most a bufferful has arrived; do not wait for later datagrams.
        self.stopping.get_or_insert(self.fifo.0 * 2);
        self.service(now, ring)
    }

    fn first_stamp(&self) -> Option<FrameStamp> {
        self.first_stamp
    }

    fn newest_stamp(&self) -> Option<FrameStamp> {
        self.newest_stamp
    }

    fn sender_count(&self) -> Option<SenderCount> {
        self.count
    }

    fn gap_bounds(&self) -> &[GapBounds] {
        &self.bounds
    }

    fn counters(&self) -> SourceCounters {
        SourceCounters {
            produced_bytes: self.committed + self.lost,
            lost_bytes: self.lost,
            ignored: self.ignored,
            pauses: self.pace.pauses(),
            reordered: self.reordered,
            ..SourceCounters::default()
        }
    }
}

#[cfg(test)]
mod scripted;
#[cfg(test)]
mod tests;
