//! [`TapReader`]: reads the ring of another process without consuming.
//!
//! ```text
//!   positions   ─────┬───────────────┬──────────────┬────────►
//!             oldest │      next     │         head │
//!                    └ frontier − capacity          └ read() copies from `next` on
//! ```
//!
//! A reader copies first and looks at the producer's frontier afterwards. If the producer may have written there
//! meanwhile, the copy is thrown away; the reader goes on nearer to the newest data, and counts the frames between as
//! missed. It takes no lock and holds nothing, so it may be stopped for any time and goes on with what is there then.
//!
//! **Trust.** The reader trusts nothing that it receives. Both files must be files in memory, sealed against
//! truncation, so no access can fault. The page's numbers are checked. A malicious recorder can show wrong samples; it
//! cannot harm the reader.
//!
//! Real-time behaviour: [`TapReader::read`] makes no system call, does not allocate and does not wait. All others may.

use std::fmt;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use hairspring_machine::Nanos;
use hairspring_ring::memory::View;
use hairspring_ring::page::{PAGE_BYTES, PageClocks, PageFacts, PageGaps, RingPage};
use hairspring_ring::{Bytes, End, Frames, Layout, SampleRate, SharedRing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{SealFlags, fcntl_get_seals, fstat};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::greeting;
use crate::place::TapPlace;

/// Most time for a recorder to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest ring that a reader maps: it only takes addresses.
const RING_MOST: u64 = 1 << 44;
/// Copies of one read that the producer may spoil before the read gives up until the next call.
const TRIES: usize = 8;
/// Shortest and longest time between two checks for new frames.
const LOOK_LEAST: Nanos = Nanos::from_millis(1);
const LOOK_MOST: Nanos = Nanos::from_millis(20);

/// Why there is no tap.
#[derive(Debug)]
pub enum TapError {
    /// No recorder offers this tap.
    NotOffered(PathBuf),
    /// The system refuses.
    System(PathBuf, io::Error),
    /// The peer is not a tap that this reader can read; the text names the fault.
    Refused(PathBuf, String),
}

impl fmt::Display for TapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOffered(path) => {
                write!(
                    f,
                    "open the tap {}: no recorder offers it; start one with `hairspring record --tap`",
                    path.display()
                )
            }
            Self::System(path, error) if error.kind() == ErrorKind::PermissionDenied => write!(
                f,
                "open the tap {}: {error}; only the recorder's user and the group of the socket may look on",
                path.display()
            ),
            Self::System(path, error) => write!(f, "open the tap {}: {error}", path.display()),
            Self::Refused(path, why) => write!(f, "open the tap {}: {why}", path.display()),
        }
    }
}

impl std::error::Error for TapError {}

/// State of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapState {
    /// The recorder is running.
    Running,
    /// The source has ended. Data in the ring can still be read.
    Ended(End),
    /// The recorder has died, or ended without stating the end. Data in the ring can still be read.
    Gone,
}

impl TapState {
    /// Its stable name in JSON and in the bindings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended(end) => end.name(),
            Self::Gone => "gone",
        }
    }
}

/// Result of a read: consecutive frames in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TapPiece {
    /// Position of the first byte in the stream.
    pub position: u64,
    /// The number of the first frame, as the source counts; `None` if the reader was too far behind to know it.
    pub first_frame: Option<Frames>,
    /// Number of copied frames; 0 if there are none.
    pub frames: Frames,
    /// Frames that this reader was too slow for, between the frame before and this one.
    pub missed: Frames,
}

/// A reader of a live tap.
#[derive(Debug)]
pub struct TapReader {
    view: View,
    page: RingPage,
    facts: PageFacts,
    capacity: Bytes,
    /// Ends with the recorder.
    connection: OwnedFd,
    user: u32,
    process: i32,
    /// Position of the next byte to read: a whole number of grains.
    next: u64,
    missed: u64,
}

impl TapReader {
    /// Opens a tap. The first read begins with the next frame. Waits at most five seconds for the recorder's answer.
    ///
    /// # Errors
    /// See [`TapError`].
    pub fn open(place: &TapPlace) -> Result<Self, TapError> {
        let path = place.to_read();
        let connection = dial(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => TapError::NotOffered(path.clone()),
            _ => TapError::System(path.clone(), error),
        })?;
        let peer = socket_peercred(&connection).map_err(|error| TapError::System(path.clone(), error.into()))?;
        let reader = Self::over(connection).map_err(|why| TapError::Refused(path, why))?;
        Ok(Self { user: peer.uid.as_raw(), process: peer.pid.as_raw_nonzero().get(), ..reader })
    }

    /// Opens the tap at the other end of a connection, for fuzzing: as [`Self::open`] after it has connected.
    #[doc(hidden)]
    pub fn over(connection: OwnedFd) -> Result<Self, String> {
        let shared = greeting::receive(&connection)?;
        Self::look_at(&shared, connection)
    }

    /// Checks the received files, and maps them.
    fn look_at(shared: &SharedRing, connection: OwnedFd) -> Result<Self, String> {
        let page_bytes = sealed_length(&shared.page, "page")?;
        if page_bytes != PAGE_BYTES as u64 {
            return Err(format!("its page has {}, and a tap's has {}", Bytes(page_bytes), Bytes(PAGE_BYTES as u64)));
        }
        let capacity = Bytes(sealed_length(&shared.ring, "ring")?);
        if capacity.0 == 0 || capacity.0 > RING_MOST {
            return Err(format!("its ring has {capacity}"));
        }
        let page = RingPage::of_other(&shared.page).map_err(|error| format!("its page cannot be mapped: {error}"))?;
        let facts = page.facts(capacity)?;
        let grain = facts.layout.grain().bytes;
        if capacity.0 < grain {
            return Err(format!("its ring has {capacity}, and a frame {}", Bytes(grain)));
        }
        let view = View::map(&shared.ring, capacity).map_err(|error| format!("its ring cannot be mapped: {error}"))?;
        let next = page.head() / grain * grain;
        Ok(Self { view, page, facts, capacity, connection, user: 0, process: 0, next, missed: 0 })
    }

    /// How samples are stored.
    pub fn layout(&self) -> Layout {
        self.facts.layout
    }

    /// Frames per second, as the card states it; `None` without a clock.
    pub fn rate(&self) -> Option<SampleRate> {
        self.facts.rate
    }

    /// The identity of the recording.
    pub fn id(&self) -> [u8; 16] {
        self.facts.id
    }

    /// Quantities of the channels, as the JSON array `hairspring:channels` of a recording; empty if unknown.
    pub fn channels_text(&self) -> &str {
        &self.facts.text
    }

    /// Size of the ring.
    pub fn capacity(&self) -> Bytes {
        self.capacity
    }

    /// The user and the process of the recorder, as the kernel states them.
    pub fn recorder(&self) -> (u32, i32) {
        (self.user, self.process)
    }

    /// Position after the newest byte.
    pub fn head(&self) -> u64 {
        self.page.head()
    }

    /// Frames that can be read now, including those that will turn out to be missed.
    pub fn available(&self) -> Frames {
        self.facts.layout.frames_in(Bytes(self.whole(self.page.head()).saturating_sub(self.next)))
    }

    /// Frames that this reader was too slow for since it was opened.
    pub fn missed(&self) -> Frames {
        Frames(self.missed)
    }

    /// The newest gaps of the source, and all frames that it lost; `None` if the recorder died during a change.
    pub fn gaps(&self) -> Option<PageGaps> {
        self.page.gaps()
    }

    /// The newest readings of the clocks and times of frames; `None` if the recorder died during a change.
    pub fn clocks(&self) -> Option<PageClocks> {
        self.page.clocks()
    }

    /// Current state of the stream. One system call.
    pub fn state(&self) -> TapState {
        let ended = || self.page.end().map(TapState::Ended);
        ended().unwrap_or_else(|| {
            let mut waits = [PollFd::new(&self.connection, PollFlags::empty())];
            let found = poll(&mut waits, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
            match found.is_ok_and(|count| count > 0) {
                // The end may have been written before the connection was closed.
                true => ended().unwrap_or(TapState::Gone),
                false => TapState::Running,
            }
        })
    }

    /// Skips to the newest data: the next read begins `frames` frames before the end, at most half of the ring; they
    /// may have been read before. Skipped frames do not count as missed. Returns their number.
    pub fn skip_to_newest(&mut self, frames: Frames) -> Frames {
        let grain = self.facts.layout.grain();
        let head = self.whole(self.page.head());
        let wanted = frames.0.div_ceil(grain.frames).saturating_mul(grain.bytes).min(self.whole(self.capacity.0 / 2));
        let target = head.saturating_sub(wanted);
        let over = target.saturating_sub(self.next);
        self.next = target;
        self.facts.layout.frames_in(Bytes(over))
    }

    /// Copies the next frames, at most as many as fit. Stops before a gap of the source, so that the frames of a piece
    /// follow each other. Copies nothing if there is no new frame. Never waits.
    pub fn read(&mut self, into: &mut [u8]) -> TapPiece {
        let layout = self.facts.layout;
        let most = self.whole((into.len() as u64).min(self.whole(self.capacity.0)));
        let mut missed = 0;
        let mut piece = TapPiece { position: self.next, ..TapPiece::default() };
        for _ in 0..TRIES {
            let head = self.whole(self.page.head());
            // A head before `next` comes from a malicious recorder.
            let length = head.saturating_sub(self.next).min(most);
            if length == 0 {
                break;
            }
            if !self.page.is_intact(self.next, self.capacity) {
                missed += self.fall_behind(head);
                continue;
            }
            let Some(gaps) = self.page.gaps() else { break };
            let stop = gaps.newest.iter().map(|gap| gap.position).find(|position| *position > self.next);
            let length = stop.map_or(length, |stop| self.whole(length.min(stop - self.next)));
            let Some(copy) = usize::try_from(length).ok().and_then(|length| into.get_mut(..length)) else { break };
            self.view.copy(self.next, copy);
            if !self.page.is_intact(self.next, self.capacity) {
                missed += self.fall_behind(self.whole(self.page.head()));
                continue;
            }
            piece.position = self.next;
            piece.first_frame = gaps.frame_at(layout, self.next);
            piece.frames = layout.frames_in(Bytes(length));
            self.next += length;
            break;
        }
        piece.missed = layout.frames_in(Bytes(missed));
        self.missed = self.missed.saturating_add(piece.missed.0);
        piece
    }

    /// Skips the overwritten bytes and half of the ring, so that the next copy has time. Returns the number of skipped
    /// bytes.
    fn fall_behind(&mut self, head: u64) -> u64 {
        let target = head.saturating_sub(self.whole(self.capacity.0 / 2)).max(self.next);
        let over = target - self.next;
        self.next = target;
        over
    }

    /// Waits until `frames` frames can be read, the stream has ended, or the time is over; returns the state of the
    /// stream. The recorder sends no wake-ups: this polls, at most once in a millisecond.
    pub fn wait(&self, frames: Frames, at_most: Duration) -> TapState {
        let until = std::time::Instant::now().checked_add(at_most);
        let most = self.facts.layout.frames_in(Bytes(self.capacity.0 / 2)).0.max(1);
        let wanted = frames.0.clamp(1, most);
        loop {
            let available = self.available().0;
            let state = self.state();
            let left = until.map(|until| until.saturating_duration_since(std::time::Instant::now()));
            if available >= wanted || state != TapState::Running || left.is_some_and(|left| left.is_zero()) {
                return state;
            }
            let due = self.facts.rate.map_or(LOOK_MOST, |rate| rate.time_of(Frames(wanted - available)));
            let due = due.clamp(LOOK_LEAST, LOOK_MOST);
            let due = Duration::try_from(due).unwrap_or(PATIENCE);
            // Ends at once when the recorder dies.
            let due = left.map_or(due, |left| left.min(due));
            let due = Timespec { tv_sec: 0, tv_nsec: due.subsec_nanos().into() };
            let mut waits = [PollFd::new(&self.connection, PollFlags::empty())];
            let _ = poll(&mut waits, Some(&due));
        }
    }

    /// Rounds a position down to whole grains.
    fn whole(&self, position: u64) -> u64 {
        let grain = self.facts.layout.grain().bytes;
        position / grain * grain
    }
}

/// Connects to a socket; its answers have a time limit.
pub(crate) fn dial(path: &Path) -> io::Result<OwnedFd> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    for direction in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(&socket, direction, Some(PATIENCE))?;
    }
    connect(&socket, &address)?;
    Ok(socket)
}

/// The length of a file in memory that is sealed against shrinking.
fn sealed_length(file: impl AsFd, name: &str) -> Result<u64, String> {
    let seals = fcntl_get_seals(&file).map_err(|_| format!("its {name} is no file in memory"))?;
    if !seals.contains(SealFlags::SHRINK) {
        return Err(format!("its {name} is not sealed, so it could be cut under the reader"));
    }
    let length = fstat(&file).map_err(|error| format!("its {name} has no length: {}", io::Error::from(error)))?.st_size;
    u64::try_from(length).map_err(|_| format!("its {name} has no length"))
}
