//! [`ReaderSource`]: files, pipes, the standard input and TCP connections as sources.
//!
//! None of them is clocked: unread data wait in the file, or back-pressure stops the sender. So nothing is lost here
//! under any policy of the ring. A loss at a sender that cannot wait is not visible.
//!
//! A read may end within a frame; the next read brings the rest. If the stream ends within a frame, that incomplete
//! frame becomes a [`Gap`] of cause `source`. A broken connection ends with the system's error number, an orderly end
//! with `finished`.
//!
//! **A stop** takes the data that the kernel holds at that moment for a pipe or a connection, including a connection
//! that was not accepted yet. It does not wait for data that the sender writes later, or still holds because the
//! kernel's buffers are full.
//!
//! Data are read from the descriptor directly into the ring. The source first asks whether a read would block, so a
//! shared descriptor such as the standard input need not be made non-blocking.

use std::fs::File;
use std::io::{self, Read as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use hairspring_machine::{Instant, Nanos};

use super::descriptor::{is_readable, readable_bytes};
use super::{End, Next, Source, SourceCounters, SourceDescription};
use crate::pattern::Pattern;
use hairspring_ring::Producer;
use hairspring_ring::gap::{Gap, GapCause};
use hairspring_ring::layout::Layout;
use hairspring_ring::units::{Bytes, Frames, SampleRate};

/// Most bytes that one call moves.
const MOST_PER_CALL: u64 = 4 << 20;

/// Most bytes of one read.
const MOST_PER_READ: u64 = 1 << 20;

/// Longest wait for data.
const PATIENCE: Nanos = Nanos::from_millis(100);

/// The properties of a stream that its user states.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamInfo {
    /// Channels, resolution, container.
    pub layout: Layout,
    /// Frames per second.
    pub rate: Option<SampleRate>,
    /// The pattern of the data that the sender promises.
    pub pattern: Option<Pattern>,
    /// The stream ends after this many frames, rounded up to whole grains.
    pub frames: Option<Frames>,
    /// Its name.
    pub hardware: String,
}

impl StreamInfo {
    /// Bytes until the end.
    pub(super) fn total_bytes(&self) -> u64 {
        let grain = self.layout.grain();
        self.frames.map_or(u64::MAX, |frames| frames.0.div_ceil(grain.frames).saturating_mul(grain.bytes))
    }
}

#[derive(Debug)]
enum Input {
    Open(File),
    Listening(TcpListener),
}

/// A source that reads from a descriptor.
#[derive(Debug)]
pub struct ReaderSource {
    about: StreamInfo,
    input: Input,
    /// Bytes still wanted.
    wanted: u64,
    /// The beginning of an incomplete grain.
    begun: Vec<u8>,
    committed: u64,
    lost: u64,
    /// After a stop: the bytes that are still to be taken from the kernel.
    stopping: Option<u64>,
    ended: Option<End>,
}

impl ReaderSource {
    /// Reads from a file, a device, a pipe or the like.
    pub fn new(file: File, about: StreamInfo) -> Self {
        let begun = Vec::with_capacity(about.layout.grain().bytes as usize);
        let wanted = about.total_bytes();
        Self { about, input: Input::Open(file), wanted, begun, committed: 0, lost: 0, stopping: None, ended: None }
    }

    /// Reads from a connection.
    ///
    /// # Errors
    /// The system refuses to make it non-blocking.
    pub fn connected(stream: TcpStream, about: StreamInfo) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::new(File::from(OwnedFd::from(stream)), about))
    }

    /// Waits for a connection, and reads from the first one.
    ///
    /// # Errors
    /// As above.
    pub fn listening(listener: TcpListener, about: StreamInfo) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let begun = Vec::with_capacity(about.layout.grain().bytes as usize);
        let wanted = about.total_bytes();
        Ok(Self {
            about,
            input: Input::Listening(listener),
            wanted,
            begun,
            committed: 0,
            lost: 0,
            stopping: None,
            ended: None,
        })
    }

    fn finish(&mut self, end: End, now: Instant, ring: &mut Producer) -> Next {
        let grain = self.about.layout.grain();
        if !self.begun.is_empty() && end != End::Stopped {
            self.begun.clear();
            self.lost += grain.bytes;
            let first = self.about.layout.frames_in(Bytes(self.committed));
            ring.gap(Gap { first, frames: Frames(grain.frames), cause: GapCause::Source, found: now });
        }
        self.ended = Some(end);
        Next::Ended(end)
    }

    /// Bytes that have arrived but were not read. A file keeps its data, so it need not be drained.
    fn held_by_the_kernel(&self) -> u64 {
        match &self.input {
            Input::Open(file) if !file.metadata().is_ok_and(|about| about.is_file()) => readable_bytes(file.as_fd()),
            Input::Open(_) | Input::Listening(_) => 0,
        }
    }

    /// Waits for more data; after a stop ends instead.
    fn wait_or_stop(&mut self, now: Instant, ring: &mut Producer) -> Next {
        match &self.input {
            _ if self.stopping.is_some() => self.finish(End::Stopped, now, ring),
            Input::Open(_) | Input::Listening(_) => Next::Readable(now + PATIENCE),
        }
    }

    /// Accepts a connection, if there is one.
    fn accept(listener: &TcpListener) -> io::Result<File> {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        Ok(File::from(OwnedFd::from(stream)))
    }
}

impl Source for ReaderSource {
    fn describe(&self) -> SourceDescription {
        SourceDescription {
            layout: self.about.layout,
            rate: self.about.rate,
            clocked: false,
            fifo: Bytes(0),
            hardware: self.about.hardware.clone(),
            pattern: self.about.pattern,
        }
    }

    fn start(&mut self, _now: Instant) {}

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(match &self.input {
            Input::Open(file) => file.as_fd(),
            Input::Listening(listener) => listener.as_fd(),
        })
    }

    fn begins_with_data(&self) -> bool {
        true
    }

    fn service(&mut self, now: Instant, ring: &mut Producer) -> Next {
        if let Some(end) = self.ended {
            return Next::Ended(end);
        }
        let grain_bytes = self.about.layout.grain().bytes;
        if ring.fill().capacity.0 < grain_bytes {
            return self.finish(End::Failed(libc::ENOBUFS), now, ring);
        }
        let mut moved = 0;
        while moved < MOST_PER_CALL {
            let file = match &mut self.input {
                Input::Open(file) => file,
                Input::Listening(listener) => match Self::accept(listener) {
                    Ok(file) => {
                        self.input = Input::Open(file);
                        continue;
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        return Next::Readable(now + PATIENCE);
                    }
                    Err(error) if is_passing(&error) => continue,
                    Err(error) => return self.finish(failed(&error), now, ring),
                },
            };
            let room = ring.room() / grain_bytes * grain_bytes;
            let most = (MOST_PER_READ / grain_bytes).max(1) * grain_bytes;
            let length = most.min(room).min(self.wanted) as usize;
            let Some(bytes) = (if length > 0 { ring.reserve(length) } else { None }) else { return Next::Room };
            if !is_readable(file.as_fd()) {
                return self.wait_or_stop(now, ring);
            }
            let begun = self.begun.len();
            let most = begun as u64 + self.stopping.unwrap_or(u64::MAX - begun as u64);
            let bytes = &mut bytes[..length.min(usize::try_from(most).unwrap_or(usize::MAX))];
            bytes[..begun].copy_from_slice(&self.begun);
            match file.read(&mut bytes[begun..]) {
                Ok(0) => return self.finish(End::Finished, now, ring),
                Ok(read) => {
                    let there = begun + read;
                    let whole = there / grain_bytes as usize * grain_bytes as usize;
                    self.begun.clear();
                    self.begun.extend_from_slice(&bytes[whole..there]);
                    ring.commit(whole);
                    self.committed += whole as u64;
                    self.wanted -= whole as u64;
                    moved += read as u64;
                    self.stopping = self.stopping.map(|left| left.saturating_sub(read as u64));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return self.wait_or_stop(now, ring),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.finish(failed(&error), now, ring),
            }
            if self.wanted == 0 {
                return self.finish(End::Finished, now, ring);
            }
            if self.stopping == Some(0) {
                return self.finish(End::Stopped, now, ring);
            }
        }
        Next::At(now)
    }

    fn stop(&mut self, now: Instant, ring: &mut Producer) -> Next {
        if self.stopping.is_none() && self.ended.is_none() {
            if let Input::Listening(listener) = &self.input
                && let Ok(file) = Self::accept(listener)
            {
                self.input = Input::Open(file);
            }
            self.stopping = Some(self.held_by_the_kernel());
        }
        match (self.ended, self.stopping) {
            (None, Some(1..)) => self.service(now, ring),
            (end, _) => self.finish(end.unwrap_or(End::Stopped), now, ring),
        }
    }

    fn counters(&self) -> SourceCounters {
        SourceCounters {
            produced_bytes: self.committed + self.lost,
            lost_bytes: self.lost,
            ..SourceCounters::default()
        }
    }
}

/// Whether an error of `accept` concerns only a single connection.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted)
}

pub(super) fn failed(error: &io::Error) -> End {
    End::Failed(error.raw_os_error().unwrap_or(libc::EIO))
}

#[cfg(test)]
mod tests;
