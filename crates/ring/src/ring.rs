//! The ring between a source and its recorder: bytes in a double-mapped memory, and marks where something is missing.
//!
//! One [`Producer`], one [`Consumer`], any number of [`Tap`]s that copy data as they pass. All pieces are contiguous,
//! also over the seam, so a source fills and a disk empties the ring in place. Positions count the bytes since the
//! beginning and never wrap; a position plus the gaps before it gives the frame number in the source.
//!
//! The producer never waits. Taps take nothing and block neither end: they copy, and check afterwards whether the copy
//! is whole.
//!
//! Real-time behaviour: no call allocates or locks, and none but [`Consumer::wait`] sleeps; waking the consumer costs
//! one system call each `notify` bytes.

#![expect(unsafe_code, reason = "slices of the mapped memory, owned by the protocol of the cursors")]

mod cursors;
mod tap;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hairspring_machine::Nanos;

use crate::gap::Gap;
use crate::memory::Memory;
use crate::notifier::Notifier;
use crate::page::{ClockPage, PageFacts, RingPage};
use crate::polling::{AdaptivePolling, POLL_MOST, WaitCounts};
use crate::units::Bytes;
use crate::{End, OnOverrun};

pub(crate) use cursors::CursorWords;
use cursors::{CursorPlace, Cursors};
pub use tap::{SharedRing, Tap};

/// Most gaps under way between producer and consumer. If one ringful has more, the last gap grows instead: the producer
/// accepts no data until the consumer has taken the oldest gap.
///
/// A consumer that waits for a given number of bytes must take the gaps meanwhile, or that number may never be reached.
/// Half of this number wakes the consumer, and the producer once half of them were taken.
const MARKS: usize = 1024;

/// State that both ends share.
#[derive(Debug)]
struct Shared {
    cursors: Cursors<Arc<RingPage>>,
    page: Arc<RingPage>,
    memory: Arc<Memory>,
    notify: u64,
    on_overrun: OnOverrun,
    /// Wakes the consumer: data, or the end.
    data: Notifier,
    /// Wakes the producer: room.
    room: Notifier,
    /// Most bytes that were in the ring at once. Written by the producer only.
    high_water: AtomicU64,
    /// Set once, when the stream has ended: the reason, the position, and the gap after the last byte.
    closed: OnceLock<Closing>,
}

#[derive(Clone, Copy, Debug)]
struct Closing {
    end: End,
    position: u64,
    last: Option<Gap>,
}

/// State of a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fill {
    /// Bytes in it now.
    pub now: Bytes,
    /// The most there were.
    pub high_water: Bytes,
    /// Size of the ring.
    pub capacity: Bytes,
}

impl Fill {
    /// Fill in thousandths.
    pub fn promille(&self) -> u64 {
        (u128::from(self.now.0) * 1000 / u128::from(self.capacity.0.max(1))) as u64
    }
}

/// Why there is no ring.
#[derive(Debug)]
pub enum RingError {
    /// The memory is not mirrored.
    NotMirrored,
    /// The memory is another ring's.
    InUse,
    /// The notify size is 0 or larger than the ring.
    Notify(Bytes, Bytes),
    /// No descriptor for the bells.
    Notifier(std::io::Error),
    /// No page for other processes.
    Page(std::io::Error),
}

impl std::fmt::Display for RingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotMirrored => f.write_str("a ring needs a mirrored memory"),
            Self::InUse => f.write_str("the memory belongs to another ring: give each ring a memory of its own"),
            Self::Notify(notify, size) => {
                write!(f, "a notify size of {notify} in a buffer of {size}: choose 1 B to {size}")
            }
            Self::Notifier(error) => write!(f, "no descriptor for waking the recorder: {error}"),
            Self::Page(error) => write!(f, "no memory for the page that shows where the ring stands: {error}"),
        }
    }
}

impl std::error::Error for RingError {}

/// A ring in a mirrored memory. `notify` is the number of bytes after which the consumer is woken.
///
/// # Errors
/// See [`RingError`].
pub fn ring(memory: Arc<Memory>, notify: Bytes, on_overrun: OnOverrun) -> Result<(Producer, Consumer), RingError> {
    let size = memory.size();
    if (memory.reach() as u64) < size.0 * 2 {
        return Err(RingError::NotMirrored);
    }
    if notify.0 == 0 || notify > size {
        return Err(RingError::Notify(notify, size));
    }
    let (marks, marked) = rtrb::RingBuffer::new(MARKS);
    let (data, room) = (Notifier::new().map_err(RingError::Notifier)?, Notifier::new().map_err(RingError::Notifier)?);
    let page = Arc::new(RingPage::make().map_err(RingError::Page)?);
    if !memory.lend() {
        return Err(RingError::InUse);
    }
    let shared = Arc::new(Shared {
        cursors: Cursors::new(size.0, Arc::clone(&page)),
        page,
        memory,
        notify: notify.0,
        on_overrun,
        data,
        room,
        high_water: AtomicU64::new(0),
        closed: OnceLock::new(),
    });
    let producer = Producer {
        shared: Arc::clone(&shared),
        head: 0,
        reserved: 0,
        rung: 0,
        high_water: 0,
        pending: None,
        marked: 0,
        marks,
        has_clocks: true,
    };
    Ok((producer, Consumer { shared, next: 0, marks: marked, polling: AdaptivePolling::default() }))
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.memory.give_back();
    }
}

impl Shared {
    fn offset(&self, position: u64) -> usize {
        (position % self.cursors.capacity()) as usize
    }

    fn fill(&self) -> Fill {
        let tail = self.cursors.tail();
        Fill {
            now: Bytes(self.cursors.head().saturating_sub(tail)),
            // Relaxed: a statistic; no access is ordered by it.
            high_water: Bytes(self.high_water.load(Ordering::Relaxed)),
            capacity: Bytes(self.cursors.capacity()),
        }
    }
}

/// The end of a ring into which a source puts its data.
#[derive(Debug)]
pub struct Producer {
    shared: Arc<Shared>,
    /// Position up to which data are published.
    head: u64,
    /// End of the bytes ever reserved.
    reserved: u64,
    /// `head` when the consumer was woken last.
    rung: u64,
    high_water: u64,
    /// The gap at `head` that the consumer has not got yet.
    pending: Option<Gap>,
    /// Gaps passed to the consumer since it was last woken.
    marked: usize,
    marks: rtrb::Producer<(u64, Gap)>,
    /// Whether the clock part of the page is still free.
    has_clocks: bool,
}

impl Producer {
    /// Policy for data that find no room.
    pub fn on_overrun(&self) -> OnOverrun {
        self.shared.on_overrun
    }

    /// Number of bytes after which the consumer is woken.
    pub fn notify(&self) -> Bytes {
        Bytes(self.shared.notify)
    }

    /// Bytes that can be put in now. 0 while a gap waits for the consumer, because data after it would hide it.
    pub fn room(&mut self) -> u64 {
        if !self.push_pending() {
            return 0;
        }
        self.shared.cursors.tail() + self.shared.cursors.capacity() - self.head
    }

    /// Position of the next byte.
    pub fn position(&self) -> u64 {
        self.head
    }

    /// The ring's memory, for a device that fills it.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.shared.memory
    }

    /// The next `length` bytes to fill; `None` if the ring has less room. Nothing is published before
    /// [`Producer::commit`].
    pub fn reserve(&mut self, length: usize) -> Option<&mut [u8]> {
        if length as u64 > self.room() {
            return None;
        }
        self.reserved = self.reserved.max(self.head + length as u64);
        self.shared.cursors.announce(self.reserved);
        let offset = self.shared.offset(self.head);
        // SAFETY: the bytes from `head` on, `length` of them, are before `tail + capacity`: by the cursors' protocol
        // they are this producer's until it publishes them, and there is one producer, borrowed mutably here.
        // `Memory::lend` excludes other rings, and code that attaches the memory to a store promises not to touch them.
        // They are within the reach of the memory, because `length` is at most its size and `offset` below it; the
        // memory lives as long as `shared`.
        Some(unsafe { std::slice::from_raw_parts_mut(self.shared.memory.address().as_ptr().add(offset), length) })
    }

    /// Makes room for `length` bytes that begin `skip` bytes behind the next one, for a device that fills pieces in any
    /// order: returns their offset in the memory, or `None` if there is not enough room. [`Producer::commit`] publishes
    /// them in order, with all bytes before them. Until then no other thread touches them.
    pub fn reserve_ahead(&mut self, skip: u64, length: usize) -> Option<usize> {
        let end = skip.checked_add(length as u64)?;
        if end > self.room() {
            return None;
        }
        // Never move the frontier back: a device may be filling a later piece already.
        self.reserved = self.reserved.max(self.head + end);
        self.shared.cursors.announce(self.reserved);
        Some(self.shared.offset(self.head + skip))
    }

    /// Bytes that were reserved and filled but not published yet.
    ///
    /// # Safety
    /// No device and no kernel call writes to these bytes while the slice exists.
    ///
    /// # Panics
    /// If the bytes were not reserved.
    pub unsafe fn ahead(&self, skip: u64, length: usize) -> &[u8] {
        let begin = self.head + skip;
        assert!(begin + length as u64 <= self.reserved, "looked at bytes that were not reserved");
        let offset = self.shared.offset(begin);
        // SAFETY: the bytes were reserved, so they are before `tail + capacity` (the tail only grows) and not before
        // `head`: they are this producer's, which is borrowed here. They are within the reach of the memory: `length`
        // is at most its size, because it was reserved, and `offset` below it. The caller promises that no device
        // writes there.
        unsafe { std::slice::from_raw_parts(self.shared.memory.address().as_ptr().add(offset).cast_const(), length) }
    }

    /// The same bytes, mutable until they are published.
    ///
    /// # Safety
    /// No device and no kernel call reads or writes these bytes while the slice exists.
    ///
    /// # Panics
    /// If the bytes were not reserved.
    pub unsafe fn ahead_mut(&mut self, skip: u64, length: usize) -> &mut [u8] {
        let begin = self.head + skip;
        assert!(begin + length as u64 <= self.reserved, "looked at bytes that were not reserved");
        let offset = self.shared.offset(begin);
        // SAFETY: as in `ahead`, and this producer is borrowed exclusively, so no other slice of them exists.
        unsafe { std::slice::from_raw_parts_mut(self.shared.memory.address().as_ptr().add(offset), length) }
    }

    /// Publishes bytes that were filled; wakes the consumer once per `notify` bytes.
    ///
    /// # Panics
    /// If there is not enough room: the bytes were not reserved.
    pub fn commit(&mut self, length: usize) {
        assert!(length as u64 <= self.room(), "committed more bytes than were reserved");
        self.head += length as u64;
        self.shared.cursors.publish(self.head);
        let fill = self.head - self.shared.cursors.tail();
        if fill > self.high_water {
            self.high_water = fill;
            // Relaxed: a figure for people.
            self.shared.high_water.store(fill, Ordering::Relaxed);
        }
        if self.head - self.rung >= self.shared.notify {
            self.flush();
        }
    }

    /// Wakes the consumer now.
    pub fn flush(&mut self) {
        (self.rung, self.marked) = (self.head, 0);
        self.shared.data.notify();
    }

    /// Declares that frames are missing before the next byte. Gaps that touch become one, with the cause of the first.
    pub fn gap(&mut self, gap: Gap) {
        match &mut self.pending {
            Some(pending) if pending.end() == gap.first => pending.frames.0 += gap.frames.0,
            pending => {
                debug_assert!(pending.is_none(), "a gap that does not touch the one before it at the same position");
                *pending = Some(gap);
            }
        }
    }

    fn push_pending(&mut self) -> bool {
        let Some(gap) = self.pending else { return true };
        let pushed = self.marks.push((self.head, gap)).is_ok();
        if pushed {
            self.shared.page.gap(self.head, gap);
            self.pending = None;
            self.marked += 1;
            if self.marked >= MARKS / 2 {
                self.flush();
            }
        }
        pushed
    }

    /// Evicts the consumer's oldest bytes so that `length` fit, unless the consumer is reading them now. Returns the
    /// room in bytes. Only for the policy [`OnOverrun::Overwrite`]. It evicts whole multiples of `grain` bytes; the
    /// consumer notices and declares the gap.
    pub fn evict(&mut self, length: u64, grain: u64) -> u64 {
        let room = self.room();
        if self.shared.on_overrun != OnOverrun::Overwrite || room >= length || self.pending.is_some() {
            return room;
        }
        let tail = self.shared.cursors.tail();
        // At least a notify size, so that the consumer does not see a thousand small gaps.
        let taken = (length - room).max(self.shared.notify).div_ceil(grain) * grain;
        let most = (self.head - tail) / grain * grain;
        self.shared.cursors.evict(tail + taken.min(most));
        self.room()
    }

    /// The present state of the ring.
    pub fn fill(&self) -> Fill {
        self.shared.fill()
    }

    /// Notified when the consumer has made room.
    pub fn notifier(&self) -> &Notifier {
        &self.shared.room
    }

    /// Declares the end of the stream and its reason. Later calls change nothing.
    pub fn close(&mut self, end: End) {
        self.push_pending();
        // Take it: `drop` calls this again, and this gap must not be reported as a mark as well.
        let last = self.pending.take();
        if let Some(gap) = last {
            self.shared.page.gap(self.head, gap);
        }
        if self.shared.closed.set(Closing { end, position: self.head, last }).is_ok() {
            self.shared.page.ended(end);
        }
        self.flush();
    }

    /// A tap, which reads without taking.
    pub fn tap(&self) -> Option<Tap> {
        Tap::new(&self.shared)
    }

    /// Writes the facts of the stream for other processes. Call this before [`Tap::share`].
    pub fn state(&mut self, facts: &PageFacts) {
        self.shared.page.state(facts, self.shared.memory.size());
    }

    /// The clock part of the page, for the thread that reads the clocks; `None` after the first call.
    pub fn take_clock_page(&mut self) -> Option<ClockPage> {
        std::mem::take(&mut self.has_clocks).then(|| ClockPage::new(Arc::clone(&self.shared.page)))
    }
}

impl CursorPlace for Arc<RingPage> {
    fn words(&self) -> &CursorWords {
        &RingPage::words(self).cursors
    }
}

impl Drop for Producer {
    /// A source that is dropped without an end has failed; the consumer must not wait for it any longer.
    fn drop(&mut self) {
        self.close(End::Failed(0));
    }
}

/// The consuming end of a ring, for a recorder.
///
/// The bytes between [`Consumer::next`] and the head are not taken yet. The bytes between the tail and `next` are taken
/// but still in use (on their way to the disk).
#[derive(Debug)]
pub struct Consumer {
    shared: Arc<Shared>,
    next: u64,
    marks: rtrb::Consumer<(u64, Gap)>,
    polling: AdaptivePolling,
}

impl Consumer {
    /// Position of the next byte to take.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Position after the newest byte.
    pub fn head(&self) -> u64 {
        self.shared.cursors.head()
    }

    /// Bytes that can be taken.
    pub fn available(&self) -> u64 {
        self.shared.cursors.head().saturating_sub(self.next)
    }

    /// Takes the next gap at or before a position, if any.
    ///
    /// Call this after [`Consumer::available`] has reported the bytes before that position: then all gaps before them
    /// are known.
    pub fn gap_before(&mut self, position: u64) -> Option<(u64, Gap)> {
        let at = self.marks.peek().ok()?.0;
        if at > position {
            return None;
        }
        let mark = self.marks.pop().ok();
        if self.marks.slots() == MARKS / 2 {
            self.shared.room.notify();
        }
        mark
    }

    /// Position of the next gap, if one is known.
    pub fn next_gap_at(&self) -> Option<u64> {
        self.marks.peek().ok().map(|mark| mark.0)
    }

    /// The reason and the position of the stream's end, and the gap after its last byte; `None` before the end. Data
    /// and gaps may still wait in the ring.
    pub fn closed(&self) -> Option<(End, u64, Option<Gap>)> {
        self.shared.closed.get().map(|closing| (closing.end, closing.position, closing.last))
    }

    /// Bytes that were not released yet. Under the policy `overwrite` use [`Consumer::take_held`].
    ///
    /// # Panics
    /// If they are not all between the tail and the head, or the policy is [`OnOverrun::Overwrite`].
    pub fn view(&self, position: u64, length: usize) -> &[u8] {
        assert!(self.shared.on_overrun != OnOverrun::Overwrite, "the producer may evict these bytes: use take_held");
        let end = position + length as u64;
        assert!(
            position >= self.shared.cursors.tail() && end <= self.shared.cursors.head(),
            "not the consumer's bytes"
        );
        // SAFETY: the bytes are between tail and head: by the cursors' protocol they are this consumer's until it
        // releases them, which needs a mutable borrow, and the producer evicts nothing under this policy. They are
        // within the reach of the memory.
        unsafe {
            let offset = self.shared.offset(position);
            std::slice::from_raw_parts(self.shared.memory.address().as_ptr().add(offset).cast_const(), length)
        }
    }

    /// Takes `length` bytes: `next` advances, and the bytes stay in use until they are released.
    ///
    /// # Panics
    /// If fewer bytes are available.
    pub fn take(&mut self, length: u64) {
        assert!(length <= self.available(), "took more than there is");
        self.next += length;
    }

    /// Takes and gives back everything before a position without looking at it.
    ///
    /// # Panics
    /// If fewer bytes are available.
    pub fn skip_to(&mut self, position: u64) {
        self.take(position.saturating_sub(self.next));
        self.release(position);
    }

    /// Gives everything before a position back to the producer, and wakes it.
    ///
    /// # Panics
    /// If the position was not taken yet.
    pub fn release(&mut self, position: u64) {
        assert!(position <= self.next, "released bytes that were not taken");
        if self.shared.cursors.give_back(position) {
            self.shared.room.notify();
        }
    }

    /// Takes, uses and releases up to `most` bytes at once, while the producer cannot evict them. For the policy
    /// `overwrite`. It first skips the bytes that the producer evicted since the last call. `use_them` gets the
    /// position and the bytes, and returns how many of them it used.
    pub fn take_held(&mut self, most: usize, use_them: impl FnOnce(u64, &[u8]) -> usize) {
        self.shared.cursors.hold();
        let tail = self.shared.cursors.tail();
        let length = usize::try_from(self.shared.cursors.head() - tail).unwrap_or(usize::MAX).min(most);
        let offset = self.shared.offset(tail);
        // SAFETY: the bytes are between tail and head, and the producer does not move the tail while this side holds
        // it, so they are this consumer's until it lets go below. They are within the reach of the memory.
        let bytes = unsafe { std::slice::from_raw_parts(self.shared.memory.address().as_ptr().add(offset), length) };
        let used = use_them(tail, bytes).min(length);
        self.next = tail + used as u64;
        self.shared.cursors.release(self.next);
        self.shared.cursors.let_go();
        self.shared.room.notify();
    }

    /// The ring's memory.
    pub fn memory(&self) -> &Arc<Memory> {
        &self.shared.memory
    }

    /// The offset of a position in the memory.
    pub fn offset(&self, position: u64) -> usize {
        self.shared.offset(position)
    }

    /// Policy for data that find no room.
    pub fn on_overrun(&self) -> OnOverrun {
        self.shared.on_overrun
    }

    /// The present state of the ring.
    pub fn fill(&self) -> Fill {
        self.shared.fill()
    }

    /// Notified on new data and at the end.
    pub fn notifier(&self) -> &Notifier {
        &self.shared.data
    }

    /// Waits until `bytes` can be taken, the stream has ended, or about `at_most` is over. May return early, so look
    /// again.
    ///
    /// Polls for up to 50 µs before it sleeps, if that found data lately: a fast stream then needs no wake-up, but uses
    /// all of this thread's CPU. For a slow stream one wait in a thousand polls. [`Notifier::wait`] sleeps at once, and
    /// also waits for another descriptor.
    pub fn wait(&mut self, bytes: u64, at_most: Nanos) {
        let Self { shared, next, polling, .. } = self;
        let is_there = || shared.cursors.head().saturating_sub(*next) >= bytes || shared.closed.get().is_some();
        let most = Duration::from_nanos(POLL_MOST.min(at_most).count().max(0).unsigned_abs());
        let mut begin = None;
        let is_over = || begin.get_or_insert_with(Instant::now).elapsed() >= most;
        if !is_there() && !polling.poll(is_there, is_over) {
            // Polling sets this as well; then the call returns at once.
            shared.data.wait(None, at_most);
            shared.data.clear();
        }
    }

    /// Statistics of the calls of [`Consumer::wait`] that had to wait.
    pub fn waits(&self) -> WaitCounts {
        self.polling.counts
    }

    /// A tap, which reads without taking.
    pub fn tap(&self) -> Option<Tap> {
        Tap::new(&self.shared)
    }
}

#[cfg(test)]
mod stress;
#[cfg(test)]
mod tests;
