//! [`UdpSource`]: receives datagrams. It is a clocked source, because nobody can make the sender wait.
//!
//! A datagram is a header, which may hold its number, and whole grains. Which losses can be known:
//!
//! | lost | with numbers | without |
//! |---|---|---|
//! | on the network | a gap, cause `source` | **cannot be known**; the description says so |
//! | by this computer's kernel, whose receive buffer was full | a gap, cause `buffer_full` or `served_late` | the same, by the kernel's count |
//! | by this kernel after the last datagram | a gap of at least the kernel's count | a gap, by the kernel's count |
//! | before the first datagram, and on the network after the last | cannot be known | cannot be known |
//!
//! The frames of a lost datagram are computed from the size that all datagrams have. With numbers, all but the last must have the
//! same size. If a loss cannot be counted (the kernel dropped datagrams of a stream whose sizes vary), the source fails rather
//! than guess.
//!
//! **Accepted senders.** The named senders, or the sender of the first datagram that fits. Others are ignored.
//!
//! **Stray datagrams** never end the recording. A datagram is ignored and counted ([`Ignored`]) if it comes from another sender,
//! is not whole frames, is larger than the others, or comes late or twice. A shorter one is kept. If others follow, its missing
//! part becomes a gap, because the number of the next one tells its place.
//!
//! **Numbers out of sequence.** A number slightly ahead is a loss and becomes a gap at once. A lower number may be a late
//! datagram or a restarted sender; one far ahead may be a long loss or an error. Such datagrams are held until [`CONFIRM`] of
//! them have come in a row with consecutive numbers, and none that continues the old sequence:
//!
//! ```text
//!             1 number not due                    3 as many as confirm it
//!   going on ──────────────────→ held, counting ─────────────────────────→ going on from there, behind a gap
//!       ↑                            │
//!       └────────────────────────────┘ 2 a datagram that continues, or one out of the new sequence: ignore those held
//! ```
//!
//! Then the gap is as long as the numbers say, if they are ahead and the time since the last datagram has room for that much.
//! Otherwise the sender has restarted and the loss is unknown: the gap is as long as the rate says, at least one grain. A sender
//! that restarts within its first [`CONFIRM`] numbers looks like one that repeats itself. A sender at another port of the same
//! computer counts as the same sender, restarted, if its datagrams are numbered and confirm it in the same way.
//!
//! The kernel stamps each datagram when it comes, before it waits in the receive buffer. The stamps tell when the first frame of a
//! datagram arrived at this computer; how long it was on the network is unknown.
//!
//! One call of the kernel takes up to 32 messages (`recvmmsg`). Of a stream with numbers the kernel may join up to 128 datagrams that
//! come in a burst into one message (`UDP_GRO`). The first of them carries the stamp, and the kernel counts a message that it drops
//! once. So after the last datagram of a stream that it has joined, one datagram is declared lost for each message that the kernel
//! dropped, which is the least that it can be. Everywhere else the numbers say how many are missing. A stream without numbers is never
//! joined, because there the kernel's count is the only evidence.
//!
//! While datagrams come fast, more than 40,000 messages a second, the source lets several gather in the kernel's buffer: for at most
//! [`MOST_PAUSE`] after it has emptied the buffer. So the kernel need not wake the receiver for each of them. [`SourceCounters::pauses`] counts how
//! often it did. A slower stream is taken as soon as it comes.
//!
//! The kernel's receive buffer is the FIFO. Its contents do not count as produced before they are put into the ring. If the ring is
//! full, datagrams stay in the receive buffer until it overflows.

mod judgement;
mod pace;
mod peer;
mod sequence;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};

use hairspring_machine::{Host, Instant, Machine as _, Nanos};

use super::datagrams::{Batch, MOST_DATAGRAM_BYTES, MOST_JOINED, MOST_MESSAGES, Received};
use super::descriptor;
use super::reader::{StreamInfo, failed};
use super::{
    End, FrameStamp, Ignored, Next, OnOverrun, SenderCount, Source, SourceCounters, SourceDescription, StampTime,
};
use hairspring_ring::Producer;
use hairspring_ring::gap::{Gap, GapCause};
use hairspring_ring::units::{ByteRate, Bytes};

use judgement::{Judgement, Trial};
use pace::Pace;
use peer::{Peer, Sender};

pub use pace::MOST_PAUSE;
pub use sequence::{MOST_HEADER_BYTES, Sequence};

/// Most bytes that one call moves.
const MOST_PER_CALL: u64 = 4 << 20;

/// The longest wait for data.
const PATIENCE: Nanos = Nanos::from_millis(100);

/// When to look for room again.
const SOON: Nanos = Nanos::from_millis(1);

/// A number at most this far ahead is a loss. The limit is small, so that one wrong number makes no large gap.
const NEAR: u64 = 64;

/// This many consecutive numbers out of the old sequence start a new sequence.
pub const CONFIRM: u32 = 32;

/// A source that receives datagrams.
#[derive(Debug)]
pub struct UdpSource {
    about: StreamInfo,
    socket: UdpSocket,
    sequence: Option<Sequence>,
    header_bytes: usize,
    fifo: Bytes,
    peer: Peer,
    /// What the last call of the kernel brought.
    batch: Batch,
    /// How fast it came.
    pace: Pace,
    /// Whether the kernel may join datagrams, and so counts as one what may be [`MOST_JOINED`].
    joined: bool,
    /// Received samples that wait for room, in order; the bytes before `placed` are in the ring.
    ready: Vec<u8>,
    placed: usize,
    /// Bytes of samples in the first datagram.
    payload_bytes: Option<u64>,
    /// Whether other datagrams had other sizes.
    varies: bool,
    /// Bytes that the last datagram lacked to that size; only with numbers.
    short_bytes: u64,
    expected: Option<u64>,
    /// Where the numbers began.
    count: Option<SenderCount>,
    trial: Trial,
    /// When the first datagram that was kept came, and the last.
    first_at: Option<Instant>,
    last_at: Instant,
    /// The kernel's stamps of the first datagram, if its first frame is frame 0, and of the newest one.
    first_stamp: Option<FrameStamp>,
    newest_stamp: Option<FrameStamp>,
    /// The kernel's count of drops at the last datagram that was kept.
    drops: u32,
    /// Whether the ring was full at any time since the kernel's buffer was last empty, and whether that was so when the batch was taken.
    was_full: bool,
    batch_was_full: bool,
    committed: u64,
    lost: u64,
    ignored: Ignored,
    /// After a stop: the bytes that may still be received.
    stopping: Option<u64>,
    ended: Option<End>,
}

impl UdpSource {
    /// Receives on a socket that is bound and has joined its group, if any. `fifo` is the requested size of the kernel's buffer.
    /// `from` are the accepted senders, with port 0 for all ports of a computer; if it is empty, the first sender is accepted.
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
        descriptor::tell_drops(&socket)?;
        descriptor::tell_arrivals(&socket);
        // Without numbers a loss is what the kernel's count says, and the kernel counts joined datagrams as one.
        let joined = sequence.is_some() && descriptor::join_datagrams(&socket);
        let header_bytes = header_bytes.unwrap_or_else(|| sequence.map_or(0, Sequence::end)) as usize;
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let fifo = descriptor::receive_buffer(&socket, fifo);
        let held = if sequence.is_some() { CONFIRM as usize * MOST_DATAGRAM_BYTES } else { MOST_DATAGRAM_BYTES };
        Ok(Self {
            about,
            fifo,
            socket,
            sequence,
            header_bytes,
            peer: if from.is_empty() { Peer::First } else { Peer::Named(from) },
            batch: Batch::new(),
            pace: Pace::new(fifo),
            joined,
            // Address space only, until it is used.
            ready: Vec::with_capacity(held),
            placed: 0,
            payload_bytes: None,
            varies: false,
            short_bytes: 0,
            expected: None,
            count: None,
            trial: Trial { from: nowhere, ours: false, ahead: 0, next: 0, count: 0, samples: Vec::with_capacity(held) },
            first_at: None,
            last_at: Instant::BOOT,
            first_stamp: None,
            newest_stamp: None,
            drops: 0,
            was_full: false,
            batch_was_full: false,
            committed: 0,
            lost: 0,
            ignored: Ignored::default(),
            stopping: None,
            ended: None,
        })
    }

    /// The address on which it listens.
    ///
    /// # Errors
    /// The system's error.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
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

    /// Declares this many datagrams lost. Returns the end of the source if the loss ends it.
    fn lose(&mut self, datagrams: u64, cause: GapCause, now: Instant, ring: &mut Producer) -> Option<End> {
        let Some(payload_bytes) = self.payload_bytes.filter(|_| !self.varies) else {
            return Some(End::Failed(libc::EMSGSIZE));
        };
        self.lose_bytes(datagrams.saturating_mul(payload_bytes), cause, now, ring)
    }

    fn lose_bytes(&mut self, bytes: u64, cause: GapCause, now: Instant, ring: &mut Producer) -> Option<End> {
        let bytes = bytes.min(self.wanted());
        let layout = self.about.layout;
        let first = layout.frames_in(Bytes(self.committed + self.lost));
        if bytes > 0 {
            ring.gap(Gap { first, frames: layout.frames_in(Bytes(bytes)), cause, found: now });
        }
        self.lost += bytes;
        let stops = matches!(ring.on_overrun(), OnOverrun::Stop | OnOverrun::Block);
        if stops { Some(End::Overrun) } else { None }
    }

    /// The cause of a drop by the kernel before a datagram of the batch.
    fn cause(&self) -> GapCause {
        if self.batch_was_full { GapCause::BufferFull } else { GapCause::ServedLate }
    }

    /// Judges a datagram of the batch, and declares the loss before it.
    fn judge(&mut self, received: Received, now: Instant, ring: &mut Producer) -> Judgement {
        let Received { at, length, drops, from, .. } = received;
        let sender = self.peer.knows(from);
        let payload_bytes = length.saturating_sub(self.header_bytes) as u64;
        let is_whole = payload_bytes > 0 && payload_bytes.is_multiple_of(self.about.layout.grain().bytes);
        let number = self.sequence.map(|sequence| (sequence, sequence.read(&self.batch.bytes[at..at + length])));
        let fits = match number {
            None => is_whole,
            // With numbers none may be larger, because the frames of a missing datagram would be unknown.
            Some((_, number)) => {
                is_whole && number.is_some() && self.payload_bytes.is_none_or(|usual| payload_bytes <= usual)
            }
        };
        if sender == Sender::Foreign || sender == Sender::Neighbour && !(fits && number.is_some()) {
            self.ignored.foreign += 1;
            return Judgement::Next;
        }
        if !fits {
            self.ignored.malformed += 1;
            return Judgement::Next;
        }
        if matches!(self.peer, Peer::First) {
            self.peer = Peer::Kept(from);
        }
        let dropped = drops.wrapping_sub(self.drops);
        let lost = match number {
            Some((sequence, Some(number))) => {
                let ahead = self.expected.map_or(0, |expected| sequence.ahead(number, expected));
                let dropped = u64::from(dropped).saturating_mul(if self.joined { MOST_JOINED } else { 1 });
                let goes_on = u64::try_from(ahead).is_ok_and(|ahead| ahead <= NEAR.max(dropped));
                if !goes_on || sender == Sender::Neighbour {
                    return self.hold(received, number, ahead, sender, now, ring);
                }
                self.forget_trial();
                let short_bytes = std::mem::take(&mut self.short_bytes);
                if short_bytes > 0 {
                    self.ignored.malformed += 1;
                    if let Some(end) = self.lose_bytes(short_bytes, GapCause::Source, now, ring) {
                        return Judgement::End(end);
                    }
                }
                self.expected = Some(number.wrapping_add(1));
                self.short_bytes = self.payload_bytes.map_or(0, |usual| usual - payload_bytes);
                (ahead.unsigned_abs(), if dropped > 0 { self.cause() } else { GapCause::Source })
            }
            _ => (u64::from(dropped), self.cause()),
        };
        self.drops = drops;
        // Drops before the very first datagram are not part of the stream.
        if lost.0 > 0
            && self.payload_bytes.is_some()
            && let Some(end) = self.lose(lost.0, lost.1, now, ring)
        {
            return Judgement::End(end);
        }
        self.varies |= number.is_none() && *self.payload_bytes.get_or_insert(payload_bytes) != payload_bytes;
        self.payload_bytes.get_or_insert(payload_bytes);
        if let (None, Some((_, Some(number)))) = (self.count, number) {
            self.counts(number);
        }
        self.first_at.get_or_insert(now);
        self.last_at = now;
        Judgement::Keep
    }

    /// Holds a datagram whose number is out of sequence, until enough of them have come.
    fn hold(
        &mut self,
        Received { at, length, drops, from, .. }: Received,
        number: u64,
        ahead: i64,
        sender: Sender,
        now: Instant,
        ring: &mut Producer,
    ) -> Judgement {
        let is_next = self.trial.count > 0 && (self.trial.from, self.trial.next) == (from, number);
        if !is_next {
            self.forget_trial();
            (self.trial.from, self.trial.ours, self.trial.ahead) = (from, sender == Sender::Ours, ahead);
        }
        let samples = &self.batch.bytes[at + self.header_bytes..at + length];
        if Some(samples.len() as u64) != self.payload_bytes {
            self.forget_trial();
            self.ignored.malformed += 1;
            return Judgement::Next;
        }
        self.trial.samples.extend_from_slice(samples);
        self.trial.next = self.sequence.map_or(0, |sequence| sequence.next(number));
        self.trial.count += 1;
        if self.trial.count < CONFIRM { Judgement::Next } else { self.adopt(drops, now, ring) }
    }

    /// The next frame has this number.
    fn counts(&mut self, number: u64) {
        let frames = |bytes| self.about.layout.frames_in(Bytes(bytes));
        let frame = frames(self.committed + self.lost);
        let frames_each = u32::try_from(frames(self.payload_bytes.unwrap_or(0)).0).unwrap_or(0);
        self.count = self.sequence.filter(|_| frames_each > 0).map(|sequence| SenderCount {
            frame,
            number,
            frames_each,
            bits: sequence.bits(),
        });
    }

    /// Continues with the held numbers.
    fn adopt(&mut self, drops: u32, now: Instant, ring: &mut Producer) -> Judgement {
        let usual = self.payload_bytes.unwrap_or(0);
        let by_clock = self.bytes_since_last(now);
        let ahead_bytes = u64::try_from(self.trial.ahead).ok().and_then(|ahead| ahead.checked_mul(usual));
        let is_loss = |bytes: &u64| *bytes <= by_clock.unwrap_or(0).saturating_mul(2).saturating_add(NEAR * usual);
        let bytes = match ahead_bytes.filter(|bytes| self.trial.ours && is_loss(bytes)) {
            Some(bytes) => bytes,
            None => {
                self.ignored.restarts += 1;
                let grain_bytes = self.about.layout.grain().bytes;
                let by_rate = by_clock.filter(|_| self.about.rate.is_some()).unwrap_or(0);
                let missing = by_rate.saturating_sub(self.trial.samples.len() as u64);
                (missing / grain_bytes * grain_bytes).max(grain_bytes)
            }
        };
        // The stream ended with a short datagram and restarted, so nothing is missing from that datagram.
        self.short_bytes = 0;
        if let Some(end) = self.lose_bytes(bytes, GapCause::Source, now, ring) {
            return Judgement::End(end);
        }
        if matches!(self.peer, Peer::Kept(_)) {
            self.peer = Peer::Kept(self.trial.from);
        }
        let (next, held) = (self.trial.next, self.trial.count);
        self.counts(self.sequence.map_or(0, |sequence| sequence.before(next, held)));
        std::mem::swap(&mut self.ready, &mut self.trial.samples);
        (self.expected, self.trial.count) = (Some(self.trial.next), 0);
        (self.drops, self.last_at) = (drops, now);
        Judgement::Next
    }

    /// The bytes that the sender must have sent since the last datagram that was kept, from its rate or its average so far.
    fn bytes_since_last(&self, now: Instant) -> Option<u64> {
        let layout = self.about.layout;
        if let Some(rate) = self.about.rate {
            return Some(layout.bytes_of(rate.frames_after(now - self.last_at)).0);
        }
        let rate = ByteRate::of(Bytes(self.committed + self.lost), self.last_at - self.first_at?)?;
        Some((rate.bytes_per_s() * (now - self.last_at).count() as f64 / 1e9) as u64)
    }

    /// Notes when the datagram came whose samples go into the ring next. A datagram that the kernel joined to another has no stamp.
    fn stamp(&mut self, arrived: Option<Nanos>) {
        let frame = self.about.layout.frames_in(Bytes(self.committed + self.lost));
        let Some(time) = arrived else { return };
        self.newest_stamp = Some(FrameStamp { frame, taken: StampTime::Realtime(time) });
        if frame.0 == 0 {
            self.first_stamp = self.newest_stamp;
        }
    }

    /// Counts the held datagrams as ignored and drops them.
    fn forget_trial(&mut self) {
        let count = u64::from(std::mem::take(&mut self.trial.count));
        self.trial.samples.clear();
        *match (self.trial.ours, self.trial.ahead) {
            (false, _) => &mut self.ignored.foreign,
            (true, ..0) => &mut self.ignored.repeated,
            (true, _) => &mut self.ignored.misnumbered,
        } += count;
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

    /// Puts the ready samples into the ring, datagram by datagram. Returns whether all of them are there.
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

    /// Waits, because the kernel has no more datagrams. `began` is when the call began by this computer's clock; `now` was passed to it.
    fn drained(&mut self, now: Instant, began: Instant, ring: &mut Producer) -> Next {
        let behind = match self.payload_bytes {
            Some(_) if self.was_full || self.stopping.is_some() => descriptor::drops(&self.socket),
            _ => None,
        };
        let behind = behind.map_or(0, |drops| drops.wrapping_sub(self.drops));
        if self.stopping.is_some() {
            self.batch_was_full = self.was_full;
            let end = if behind > 0 { self.lose(behind.into(), self.cause(), now, ring) } else { None };
            return self.end(end.unwrap_or(End::Stopped));
        }
        // Drops at the end of the queue show with the next datagram, so the reason is kept until then.
        self.was_full &= behind > 0;
        match self.pace.pause(now) {
            // This call has taken time since `now`.
            Some(pause) => Next::At(now + (Host.monotonic() - began) + pause),
            None => Next::Readable(now + PATIENCE),
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

impl Source for UdpSource {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
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
        // Whether a call of the kernel has just brought fewer messages than it could, because there were no more.
        let mut is_short = false;
        while self.ended.is_none() && moved < MOST_PER_CALL {
            if self.wanted() == 0 {
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
            let Some(received) = self.batch.next() else {
                // At a stop it must be sure that the kernel's buffer is empty: a signal makes a batch short, too.
                if is_short && self.stopping.is_none() || self.stopping == Some(0) {
                    return self.drained(now, began, ring);
                }
                match self.batch.receive(&self.socket) {
                    Ok(bytes) => {
                        self.pace.took(self.batch.messages(), bytes);
                        is_short = self.batch.messages() < MOST_MESSAGES;
                        moved += bytes;
                        self.stopping = self.stopping.map(|left| left.saturating_sub(bytes));
                        self.batch_was_full = self.was_full;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.drained(now, began, ring),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return self.end(failed(&error)),
                }
                continue;
            };
            match self.judge(received, now, ring) {
                Judgement::Keep => {
                    let bytes = std::mem::take(&mut self.batch.bytes);
                    let samples = &bytes[received.at + self.header_bytes..received.at + received.length];
                    self.stamp(received.arrived);
                    if self.wanted() > 0 && !self.put(samples, ring) {
                        self.ready.extend_from_slice(samples);
                    }
                    self.batch.bytes = bytes;
                }
                Judgement::Next => {}
                Judgement::End(end) => return self.end(end),
            }
        }
        self.ended.map_or(Next::At(now), Next::Ended)
    }

    fn stop(&mut self, now: Instant, ring: &mut Producer) -> Next {
        // The datagrams that have come are at most a bufferful; later ones are not waited for.
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

    fn counters(&self) -> SourceCounters {
        SourceCounters {
            produced_bytes: self.committed + self.lost,
            lost_bytes: self.lost,
            ignored: self.ignored,
            pauses: self.pace.pauses(),
            ..SourceCounters::default()
        }
    }
}

#[cfg(test)]
mod tests;
