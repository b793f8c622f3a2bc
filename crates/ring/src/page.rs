//! [`RingPage`]: the small page beside a ring, which states the positions and the contents of the ring for other
//! processes.
//!
//! The page is a file in memory of its own. It contains the two cursors of the ring that a reader needs, so the
//! producer does the same stores with and without readers: there is no second copy to keep up to date. The layout is
//! that of `docs/live-tap.md`; all numbers are 64-bit words in the byte order of the machine.
//!
//! ```text
//!    0  magic, version, id, capacity, layout, rate, length of the text      written once, before it is shared
//!  128  head                                                                 the producer
//!  256  frontier                                                             the producer
//!  384  end                                                                  the producer, once
//!  512  gaps          a sequence lock and the newest 32                      the producer
//! 2048  clocks        a sequence lock, the newest pairs and marks            the thread that serves the source
//! 4096  text          quantities of the channels, as JSON                    written once
//! ```
//!
//! A reader of another process trusts nothing in it: every number is checked before it is used.

#![expect(unsafe_code, reason = "looks at mapped memory as words")]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};

use hairspring_machine::{Instant, Nanos};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::End;
use crate::gap::{Gap, GapCause};
use crate::layout::{Container, Layout};
use crate::ring::CursorWords;
use crate::sequenced::Sequenced;
use crate::units::{Bytes, Frames, SampleRate};

/// The first word.
const MAGIC: u64 = u64::from_ne_bytes(*b"hairtap\0");
/// The version of the layout. A reader takes pages of its own version only.
pub const PAGE_VERSION: u64 = 1;
/// Bytes of the page.
pub const PAGE_BYTES: usize = 32 << 10;
/// Where the text begins.
const TEXT_AT: usize = 4096;
/// The longest text in bytes.
pub const TEXT_MOST: usize = PAGE_BYTES - TEXT_AT;
/// Most recent gaps that the page keeps. A reader that is further behind cannot compute frame numbers.
pub const PAGE_GAPS: usize = 32;
/// Pairs and marks that the page keeps, each.
pub const PAGE_CLOCKS: usize = 16;

const GAP_WORDS: usize = 2 + PAGE_GAPS * 4;
const CLOCK_WORDS: usize = 2 + PAGE_CLOCKS * 6;

/// Containers in the order of their numbers in the page, from 1.
const CONTAINERS: [Container; 8] = [
    Container::I8,
    Container::U8,
    Container::I16,
    Container::U16,
    Container::I32,
    Container::F32,
    Container::Packed12,
    Container::Bits,
];

/// Index of each word that the page states once. The numbers are part of the format.
#[derive(Clone, Copy)]
enum Fact {
    Magic = 0,
    Version = 1,
    Id = 2,
    Capacity = 4,
    Channels = 5,
    ResolutionBits = 6,
    Container = 7,
    RateFrames = 8,
    RateSeconds = 9,
    TextBytes = 10,
}

/// The words of the page, as laid out in memory.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct PageWords {
    facts: [AtomicU64; 16],
    pub(crate) cursors: CursorWords,
    end: AtomicU64,
    _room_after_end: [u64; 15],
    gaps: Sequenced<GAP_WORDS>,
    _room_after_gaps: [u64; 192 - 1 - GAP_WORDS],
    clocks: Sequenced<CLOCK_WORDS>,
    _room_after_clocks: [u64; 256 - 1 - CLOCK_WORDS],
    text: [AtomicU64; TEXT_MOST / 8],
}

// The offsets of the documented layout.
#[cfg(not(loom))]
const _: () = {
    assert!(size_of::<PageWords>() == PAGE_BYTES);
    assert!(std::mem::offset_of!(PageWords, cursors) == 128);
    assert!(std::mem::offset_of!(PageWords, end) == 384);
    assert!(std::mem::offset_of!(PageWords, gaps) == 512);
    assert!(std::mem::offset_of!(PageWords, clocks) == 2048);
    assert!(std::mem::offset_of!(PageWords, text) == TEXT_AT);
};

/// Identity, layout and rate of a stream, as its page states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFacts {
    /// The identity of the recording; zeros if the ring belongs to none.
    pub id: [u8; 16],
    /// How samples are stored.
    pub layout: Layout,
    /// Frames per second; `None` without a clock.
    pub rate: Option<SampleRate>,
    /// Quantities of the channels, as the JSON array `hairspring:channels` of a recording; empty if unknown.
    pub text: String,
}

/// A gap and its position in the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageGap {
    /// Position of the first byte after it.
    pub position: u64,
    /// The number of the first missing frame.
    pub first: Frames,
    /// Number of missing frames.
    pub frames: Frames,
    /// Cause of the gap; `None` for a cause that this reader does not know.
    pub cause: Option<GapCause>,
}

/// The newest gaps of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageGaps {
    /// All gaps since the beginning.
    pub count: u64,
    /// All frames that are missing.
    pub lost: Frames,
    /// The newest [`PAGE_GAPS`], oldest first.
    pub newest: Vec<PageGap>,
}

impl PageGaps {
    /// The number of the frame that begins at a position; `None` if gaps before it are no longer in the page.
    pub fn frame_at(&self, layout: Layout, position: u64) -> Option<Frames> {
        let before = self.newest.iter().rfind(|gap| gap.position <= position);
        let (from, first) = match before {
            Some(gap) => (gap.position, gap.first.0.checked_add(gap.frames.0)?),
            None if self.count == self.newest.len() as u64 => (0, 0),
            None => return None,
        };
        first.checked_add(layout.frames_in(Bytes(position - from)).0).map(Frames)
    }
}

/// A pair of readings of two clocks: at `monotonic`, give or take `within`, the time of day was `realtime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagePair {
    /// `CLOCK_MONOTONIC`.
    pub monotonic: Instant,
    /// `CLOCK_REALTIME`, since 1970.
    pub realtime: Nanos,
    /// Uncertainty of the reading.
    pub within: Nanos,
}

/// A frame, and the interval in which it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMark {
    /// The number of the frame.
    pub frame: Frames,
    /// Not earlier.
    pub earliest: Instant,
    /// Not later.
    pub latest: Instant,
}

/// The newest readings of the clocks, and times of frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageClocks {
    /// The newest pairs, oldest first.
    pub pairs: Vec<PagePair>,
    /// The first mark and the newest ones, oldest first.
    pub marks: Vec<PageMark>,
}

/// A mapped page.
#[derive(Debug)]
pub struct RingPage {
    words: NonNull<PageWords>,
    /// Present in the process that made the page.
    file: Option<OwnedFd>,
}

// SAFETY: the mapping belongs to this value, and everything in it is an atomic.
unsafe impl Send for RingPage {}
// SAFETY: shared users reach nothing but the atomics.
unsafe impl Sync for RingPage {}

impl RingPage {
    /// A new page, all zero, that this process may write to.
    ///
    /// # Errors
    /// The kernel refuses the file or the mapping.
    pub(crate) fn make() -> io::Result<Self> {
        let file = memfd_create(c"hairspring-tap", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, PAGE_BYTES as u64)?;
        let words = map(&file, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Self { words, file: Some(file) })
    }

    /// Maps the page of another process read-only. The caller has checked that the file has [`PAGE_BYTES`] and can
    /// never become shorter.
    ///
    /// # Errors
    /// The kernel refuses the mapping.
    pub fn of_other(file: impl AsFd) -> io::Result<Self> {
        Ok(Self { words: map(file, ProtFlags::READ)?, file: None })
    }

    /// The file behind a page that this process made.
    pub(crate) fn file(&self) -> Option<&OwnedFd> {
        self.file.as_ref()
    }

    pub(crate) fn words(&self) -> &PageWords {
        // SAFETY: the mapping has the size of the words, begins at a page and so is aligned, lives as long as `self`,
        // and its file cannot be truncated: `make` holds the only descriptor until it is sealed, and the caller of
        // `of_other` has seen the seal. All bytes are valid values, because the type consists of atomics and of padding
        // that is never read.
        unsafe { self.words.as_ref() }
    }

    fn fact(&self, fact: Fact) -> u64 {
        // Relaxed: ordered by the Acquire in `facts`, because these words are written once, before the magic.
        self.words().facts[fact as usize].load(Ordering::Relaxed)
    }

    /// Writes the facts of the stream. Call once, before another process has the page. A text longer than [`TEXT_MOST`]
    /// is left out.
    pub(crate) fn state(&self, facts: &PageFacts, capacity: Bytes) {
        let words = self.words();
        // Relaxed: ordered by the Release of the magic, which is stored last.
        let put = |place: &AtomicU64, value: u64| place.store(value, Ordering::Relaxed);
        let set = |fact: Fact, value: u64| put(&words.facts[fact as usize], value);
        let (rate_frames, rate_seconds) = facts.rate.map_or((0, 0), SampleRate::as_fraction);
        let container = CONTAINERS.iter().position(|known| *known == facts.layout.container());
        let text = if facts.text.len() <= TEXT_MOST { facts.text.as_bytes() } else { &[] };
        let (id, _) = facts.id.as_chunks::<8>();
        id.iter()
            .enumerate()
            .for_each(|(at, half)| put(&words.facts[Fact::Id as usize + at], u64::from_ne_bytes(*half)));
        set(Fact::Version, PAGE_VERSION);
        set(Fact::Capacity, capacity.0);
        set(Fact::Channels, facts.layout.channels().into());
        set(Fact::ResolutionBits, facts.layout.resolution_bits().into());
        set(Fact::Container, container.map_or(0, |at| at as u64 + 1));
        set(Fact::RateFrames, rate_frames);
        set(Fact::RateSeconds, rate_seconds);
        set(Fact::TextBytes, text.len() as u64);
        for (place, chunk) in words.text.iter().zip(text.chunks(8)) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            put(place, u64::from_ne_bytes(word));
        }
        // Release: pairs with the Acquire in `facts`.
        words.facts[Fact::Magic as usize].store(MAGIC, Ordering::Release);
    }

    /// Identity, layout and rate of the stream.
    ///
    /// # Errors
    /// The memory is not such a page, has another version, or states something impossible.
    pub fn facts(&self, capacity: Bytes) -> Result<PageFacts, String> {
        // Acquire: pairs with the Release in `state`.
        if self.words().facts[Fact::Magic as usize].load(Ordering::Acquire) != MAGIC {
            return Err("it is no page of a tap".to_owned());
        }
        let version = self.fact(Fact::Version);
        if version != PAGE_VERSION {
            return Err(format!(
                "its layout has version {version}, and this reader knows version {PAGE_VERSION}: use a reader of the recorder's release"
            ));
        }
        if self.fact(Fact::Capacity) != capacity.0 {
            return Err(format!(
                "it states a ring of {}, and the ring has {capacity}",
                Bytes(self.fact(Fact::Capacity))
            ));
        }
        let number = |fact| u32::try_from(self.fact(fact)).unwrap_or(u32::MAX);
        let container =
            usize::try_from(self.fact(Fact::Container)).ok().and_then(|at| CONTAINERS.get(at.checked_sub(1)?));
        let container = container.ok_or("it states a container that this reader does not know")?;
        let layout = Layout::stored_as(number(Fact::Channels), number(Fact::ResolutionBits), *container);
        let layout = layout.map_err(|error| format!("it states {error}"))?;
        let (frames, seconds) = (self.fact(Fact::RateFrames), self.fact(Fact::RateSeconds));
        let rate = match (frames, seconds) {
            (0, 0) => None,
            (frames, seconds) => Some(SampleRate::new(frames, seconds).ok_or("it states an impossible rate")?),
        };
        let length = usize::try_from(self.fact(Fact::TextBytes)).ok().filter(|length| *length <= TEXT_MOST);
        let length = length.ok_or("it states a text longer than the page")?;
        // Relaxed: as in `fact`.
        let words = self.words().text.iter().take(length.div_ceil(8)).map(|word| word.load(Ordering::Relaxed));
        let mut text: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        text.truncate(length);
        let text = String::from_utf8(text).map_err(|_| "its text is not UTF-8")?;
        let half = |at: usize| self.words().facts[Fact::Id as usize + at].load(Ordering::Relaxed).to_ne_bytes();
        let mut id = [0; 16];
        id[..8].copy_from_slice(&half(0));
        id[8..].copy_from_slice(&half(1));
        Ok(PageFacts { id, layout, rate, text })
    }

    /// Position after the newest byte.
    pub fn head(&self) -> u64 {
        self.words().cursors.head()
    }

    /// The position up to which the producer may be writing now.
    pub fn frontier(&self) -> u64 {
        self.words().cursors.frontier()
    }

    /// Whether a copy from `position` on, made before this call, is intact in a ring of this capacity.
    pub fn is_intact(&self, position: u64, capacity: Bytes) -> bool {
        self.words().cursors.is_intact(position, capacity.0)
    }

    /// States how the stream has ended. For the producer, after its last byte.
    pub(crate) fn ended(&self, end: End) {
        let (kind, errno) = match end {
            End::Finished => (1, 0),
            End::Stopped => (2, 0),
            End::Overrun => (3, 0),
            End::Failed(errno) => (4, errno),
        };
        // Release: pairs with the Acquire in `end`; a reader that sees it sees the last head and the last gap.
        self.words().end.store(kind | u64::from(errno.cast_unsigned()) << 32, Ordering::Release);
    }

    /// End of the stream; `None` before.
    pub fn end(&self) -> Option<End> {
        // Acquire: pairs with the Release in `ended`.
        let word = self.words().end.load(Ordering::Acquire);
        match word as u32 {
            0 => None,
            1 => Some(End::Finished),
            2 => Some(End::Stopped),
            3 => Some(End::Overrun),
            _ => Some(End::Failed(((word >> 32) as u32).cast_signed())),
        }
    }

    /// Enters a gap before the byte at a position. For the producer, before it publishes that byte.
    pub(crate) fn gap(&self, position: u64, gap: Gap) {
        self.words().gaps.write(|words| {
            let count = words.get(0);
            words.set(0, count + 1);
            words.set(1, words.get(1).wrapping_add(gap.frames.0));
            let at = 2 + (count % PAGE_GAPS as u64) as usize * 4;
            let entry = [position, gap.first.0, gap.frames.0, gap.cause as u64];
            entry.into_iter().enumerate().for_each(|(number, value)| words.set(at + number, value));
        });
    }

    /// The newest gaps; `None` if the writer died during a change.
    pub fn gaps(&self) -> Option<PageGaps> {
        let words = self.words().gaps.read()?;
        let (count, kept) = (words[0], words[0].min(PAGE_GAPS as u64));
        let (entries, _) = words[2..].as_chunks::<4>();
        let newest = (count - kept..count).map(|number| {
            let [position, first, frames, cause] = entries[(number % PAGE_GAPS as u64) as usize];
            let cause = u8::try_from(cause).ok().and_then(GapCause::from_number);
            PageGap { position, first: Frames(first), frames: Frames(frames), cause }
        });
        Some(PageGaps { count, lost: Frames(words[1]), newest: newest.collect() })
    }

    /// The clocks; `None` if the writer died during a change.
    pub fn clocks(&self) -> Option<PageClocks> {
        let words = self.words().clocks.read()?;
        let (entries, _) = words[2..].as_chunks::<3>();
        let kept = |count: u64, first: u64| {
            let most = PAGE_CLOCKS as u64 - first;
            (0..first.min(count)).chain(count.saturating_sub(most).max(first)..count)
        };
        let pairs = kept(words[0], 0).map(|number| {
            let [monotonic, realtime, within] = entries[ring_place(number, 0)];
            let (monotonic, realtime, within) = (ns(monotonic), ns(realtime), ns(within));
            PagePair { monotonic: Instant::from_monotonic(monotonic), realtime, within }
        });
        let marks = kept(words[1], 1).map(|number| {
            let [frame, earliest, latest] = entries[PAGE_CLOCKS + ring_place(number, 1)];
            let [earliest, latest] = [earliest, latest].map(|word| Instant::from_monotonic(ns(word)));
            PageMark { frame: Frames(frame), earliest, latest }
        });
        Some(PageClocks { pairs: pairs.collect(), marks: marks.collect() })
    }
}

/// The place of an entry among [`PAGE_CLOCKS`]: the first `fixed` stay, the others go round.
fn ring_place(number: u64, fixed: u64) -> usize {
    let round = PAGE_CLOCKS as u64 - fixed;
    (if number < fixed { number } else { fixed + (number - fixed) % round }) as usize
}

fn ns(word: u64) -> Nanos {
    Nanos::new(word.cast_signed())
}

/// Writes readings of the clocks into a ring's page. One per ring.
#[derive(Debug)]
pub struct ClockPage(std::sync::Arc<RingPage>);

impl ClockPage {
    pub(crate) fn new(page: std::sync::Arc<RingPage>) -> Self {
        Self(page)
    }

    /// Enters a pair. Real-time safe.
    pub fn pair(&mut self, pair: PagePair) {
        let entry =
            [pair.monotonic.as_monotonic(), pair.realtime, pair.within].map(|time| time.count().cast_unsigned());
        self.enter(0, 0, 0, entry);
    }

    /// Enters a mark. Real-time safe.
    pub fn mark(&mut self, mark: PageMark) {
        let [earliest, latest] = [mark.earliest, mark.latest].map(|at| at.as_monotonic().count().cast_unsigned());
        self.enter(1, PAGE_CLOCKS, 1, [mark.frame.0, earliest, latest]);
    }

    fn enter(&self, counter: usize, table: usize, fixed: u64, entry: [u64; 3]) {
        self.0.words().clocks.write(|words| {
            let count = words.get(counter);
            words.set(counter, count + 1);
            let at = 2 + (table + ring_place(count, fixed)) * 3;
            entry.into_iter().enumerate().for_each(|(number, value)| words.set(at + number, value));
        });
    }
}

impl Drop for RingPage {
    fn drop(&mut self) {
        // SAFETY: `map` made this mapping for this value alone; no reference into it outlives `self`.
        let _ = unsafe { munmap(self.words.as_ptr().cast(), PAGE_BYTES) };
    }
}

fn map(file: impl AsFd, access: ProtFlags) -> io::Result<NonNull<PageWords>> {
    // SAFETY: maps a file at an address of the kernel's choice; nothing that exists is touched.
    let address = unsafe { mmap(std::ptr::null_mut(), PAGE_BYTES, access, MapFlags::SHARED, file, 0)? };
    Ok(NonNull::new(address.cast()).ok_or(Errno::NOMEM)?)
}

#[cfg(test)]
mod tests;
