//! [`UdpSource`]: datagrams as a source. Nobody can make their sender wait: it is clocked.
//!
//! A datagram is a header, which may hold its number, and whole grains. What can be known about loss:
//!
//! | lost | with numbers | without |
//! |---|---|---|
//! | on the network | a gap, cause `source` | **cannot be known**; the description says so |
//! | by this computer's kernel, whose receive buffer was full | a gap, cause `buffer_full` or `served_late` | the same, by the kernel's count |
//! | before the first datagram, and on the network after the last | cannot be known | cannot be known |
//!
//! A lost datagram's frames are counted by the size that all have; where numbers are given, all but the last must have the
//! same. Where a loss cannot be counted (the kernel dropped datagrams of a stream whose sizes vary) the source fails rather than
//! guess. Datagrams that come late or twice are dropped and counted: their place has been declared lost, or is taken.
//!
//! The kernel's receive buffer is the FIFO. What is in it is not counted as produced before it is received. If there is no room
//! in the ring datagrams are left there, until it overflows.

mod sequence;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd as _;

use hairspring_machine::Nanos;

use super::descriptor;
use super::reader::{About, failed};
use super::{Counters, Description, End, Next, OnOverrun, Source};
use crate::gap::{Cause, Gap};
use crate::ring::Producer;
use crate::units::Bytes;

pub use sequence::{MOST_HEADER_BYTES, Sequence};

/// No datagram is larger.
const MOST_DATAGRAM_BYTES: usize = 65_536;

/// Most bytes that one call moves.
const MOST_PER_CALL: u64 = 4 << 20;

/// How long a wait for data lasts at most.
const PATIENCE: Nanos = Nanos::from_millis(100);

/// When to look for room again.
const SOON: Nanos = Nanos::from_millis(1);

/// So many late datagrams in a row are not late: the sender has begun anew.
const MOST_LATE: u32 = 4096;

/// A source that receives datagrams.
#[derive(Debug)]
pub struct UdpSource {
    about: About,
    socket: UdpSocket,
    sequence: Option<Sequence>,
    header_bytes: usize,
    fifo: Bytes,
    buffer: Vec<u8>,
    /// A datagram of this length is in the buffer and waits for room.
    waiting: Option<usize>,
    /// Bytes of samples of the first datagram …
    payload_bytes: Option<u64>,
    /// … and whether others had other sizes.
    varies: bool,
    expected: Option<u64>,
    /// The kernel's count when the last datagram came.
    drops: u32,
    /// Whether there was no room in the ring since the kernel's buffer was empty last.
    was_full: bool,
    committed: u64,
    lost: u64,
    repeated: u64,
    repeated_in_a_row: u32,
    /// Bytes that may still be received after it was told to stop.
    stopping: Option<u64>,
    ended: Option<End>,
}

/// What to do with a datagram.
enum Judgement {
    Keep,
    Drop,
    End(End),
}

impl UdpSource {
    /// Receives on a socket that is bound, and joined if it is for a group. `fifo` is the wanted size of the kernel's buffer.
    ///
    /// # Errors
    /// The system does not let the socket be set up.
    pub fn new(
        socket: UdpSocket,
        sequence: Option<Sequence>,
        header_bytes: Option<u32>,
        fifo: Option<Bytes>,
        about: About,
    ) -> io::Result<Self> {
        descriptor::tell_drops(&socket)?;
        let header_bytes = header_bytes.unwrap_or_else(|| sequence.map_or(0, Sequence::end)) as usize;
        Ok(Self {
            about,
            fifo: descriptor::receive_buffer(&socket, fifo),
            socket,
            sequence,
            header_bytes,
            buffer: vec![0; MOST_DATAGRAM_BYTES],
            waiting: None,
            payload_bytes: None,
            varies: false,
            expected: None,
            drops: 0,
            was_full: false,
            committed: 0,
            lost: 0,
            repeated: 0,
            repeated_in_a_row: 0,
            stopping: None,
            ended: None,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system does not say.
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Datagrams that came late or twice, and were dropped.
    pub fn repeated_datagrams(&self) -> u64 {
        self.repeated
    }

    /// What is missing until the last frame that is wanted, in bytes.
    fn wanted(&self) -> u64 {
        self.about.total_bytes() - self.committed - self.lost
    }

    fn end(&mut self, end: End) -> Next {
        self.ended = Some(end);
        Next::Ended(end)
    }

    /// Declares the frames of so many datagrams lost; how it ends, if it does.
    fn lose(&mut self, datagrams: u64, cause: Cause, now: Nanos, ring: &mut Producer) -> Option<End> {
        let Some(payload_bytes) = self.payload_bytes.filter(|_| !self.varies) else {
            return Some(End::Failed(libc::EMSGSIZE));
        };
        let Some(bytes) = datagrams.checked_mul(payload_bytes) else { return Some(End::Failed(libc::EPROTO)) };
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

    /// Why the kernel dropped something.
    fn cause(&self) -> Cause {
        if self.was_full { Cause::BufferFull } else { Cause::ServedLate }
    }

    /// Looks at the datagram in the buffer, and declares what is missing before it.
    fn judge(&mut self, length: usize, drops: u32, now: Nanos, ring: &mut Producer) -> Judgement {
        let grain_bytes = self.about.layout.grain().bytes;
        let payload_bytes = length.saturating_sub(self.header_bytes) as u64;
        let number = self.sequence.map(|sequence| (sequence, sequence.read(&self.buffer[..length])));
        if payload_bytes == 0 || !payload_bytes.is_multiple_of(grain_bytes) || matches!(number, Some((_, None))) {
            return Judgement::End(End::Failed(libc::EMSGSIZE));
        }
        let dropped = drops.wrapping_sub(std::mem::replace(&mut self.drops, drops));
        let mut lost = (u64::from(dropped), self.cause());
        if let Some((sequence, Some(number))) = number {
            let ahead = self.expected.map_or(0, |expected| sequence.ahead(number, expected));
            if ahead < 0 {
                self.repeated += 1;
                self.repeated_in_a_row += 1;
                return if self.repeated_in_a_row < MOST_LATE {
                    Judgement::Drop
                } else {
                    Judgement::End(End::Failed(libc::EPROTO))
                };
            }
            // One of another size was not the last: how many frames the missing ones have is not known any more.
            if self.varies || self.payload_bytes.is_some_and(|usual| payload_bytes > usual) {
                return Judgement::End(End::Failed(libc::EMSGSIZE));
            }
            self.repeated_in_a_row = 0;
            self.expected = Some(number.wrapping_add(1));
            lost = (ahead.unsigned_abs(), if dropped > 0 { self.cause() } else { Cause::Source });
        }
        // What was dropped before the first of all is not part of the stream.
        if lost.0 > 0
            && self.payload_bytes.is_some()
            && let Some(end) = self.lose(lost.0, lost.1, now, ring)
        {
            return Judgement::End(end);
        }
        self.varies |= *self.payload_bytes.get_or_insert(payload_bytes) != payload_bytes;
        Judgement::Keep
    }

    /// Puts the datagram in the buffer into the ring, if there is room.
    fn place(&mut self, length: usize, ring: &mut Producer) -> bool {
        let samples = &self.buffer[self.header_bytes..length];
        let wanted = self.about.total_bytes() - self.committed - self.lost;
        let samples = &samples[..samples.len().min(usize::try_from(wanted).unwrap_or(usize::MAX))];
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

    /// The kernel has nothing more.
    fn drained(&mut self, now: Nanos, ring: &mut Producer) -> Next {
        let behind = match self.payload_bytes {
            Some(_) if self.was_full || self.stopping.is_some() => descriptor::drops(&self.socket),
            _ => None,
        };
        let behind = behind.map_or(0, |drops| drops.wrapping_sub(self.drops));
        if self.stopping.is_some() {
            let end = if behind > 0 { self.lose(behind.into(), self.cause(), now, ring) } else { None };
            return self.end(end.unwrap_or(End::Stopped));
        }
        // Those that were dropped at the end of the queue are found with the next datagram; the reason is kept until then.
        self.was_full &= behind > 0;
        Next::Readable(self.socket.as_raw_fd(), now + PATIENCE)
    }
}

/// Whether so many bytes fit into the ring; makes room by its policy.
fn make_room(bytes: u64, grain_bytes: u64, ring: &mut Producer) -> bool {
    ring.room() >= bytes || (ring.on_overrun() == OnOverrun::Overwrite && ring.evict(bytes, grain_bytes) >= bytes)
}

impl Source for UdpSource {
    fn describe(&self) -> Description {
        let loss = match self.sequence {
            Some(_) => "",
            None => "; without numbers: loss on the network cannot be seen",
        };
        Description {
            layout: self.about.layout,
            rate: self.about.rate,
            clocked: true,
            fifo: self.fifo,
            hardware: format!("{}{loss}", self.about.hardware),
            pattern: self.about.pattern,
        }
    }

    fn start(&mut self, _now: Nanos) {}

    fn service(&mut self, now: Nanos, ring: &mut Producer) -> Next {
        let mut moved = 0;
        while self.ended.is_none() && moved < MOST_PER_CALL {
            if self.wanted() == 0 {
                return self.end(End::Finished);
            }
            if let Some(length) = self.waiting {
                if ring.fill().capacity.0 < (length - self.header_bytes) as u64 {
                    return self.end(End::Failed(libc::ENOBUFS));
                }
                if !self.place(length, ring) {
                    self.was_full = true;
                    return if self.stopping.is_some() { Next::Room } else { Next::At(now + SOON) };
                }
                self.waiting = None;
            }
            if self.stopping == Some(0) {
                return self.drained(now, ring);
            }
            if let Some(usual) = self.payload_bytes
                && !make_room(usual, self.about.layout.grain().bytes, ring)
            {
                self.was_full = true;
                return if self.stopping.is_some() { Next::Room } else { Next::At(now + SOON) };
            }
            match descriptor::receive(&self.socket, &mut self.buffer) {
                Ok((length, drops)) => {
                    moved += length.max(1) as u64;
                    self.stopping = self.stopping.map(|left| left.saturating_sub(length.max(1) as u64));
                    match self.judge(length, drops, now, ring) {
                        Judgement::Keep => self.waiting = Some(length),
                        Judgement::Drop => {}
                        Judgement::End(end) => return self.end(end),
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.drained(now, ring),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.end(failed(&error)),
            }
        }
        self.ended.map_or(Next::At(now), Next::Ended)
    }

    fn stop(&mut self, now: Nanos, ring: &mut Producer) -> Next {
        // What had come until now is at most what the kernel's buffer holds; what goes on coming is not waited for.
        self.stopping.get_or_insert(self.fifo.0 * 2);
        self.service(now, ring)
    }

    fn counters(&self) -> Counters {
        Counters { produced_bytes: self.committed + self.lost, lost_bytes: self.lost, ..Counters::default() }
    }
}

#[cfg(test)]
mod tests;
