//! [`Feed`]: the end of a ring from which a sink takes its frames, with gaps filled.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hairspring_ring::End;
use hairspring_ring::layout::Layout;
use hairspring_ring::notifier::Notifier;
use hairspring_ring::units::{Bytes, Frames};
use hairspring_ring::{Consumer, Fill};

/// The output where the recording has a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GapFill {
    /// Zeros for the length of the gap: later frames keep their time.
    #[default]
    Zero,
    /// The last frame before the gap, for the length of the gap.
    Hold,
    /// Nothing: later frames come early.
    Skip,
}

impl GapFill {
    /// Every way.
    pub const ALL: [Self; 3] = [Self::Zero, Self::Hold, Self::Skip];

    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Hold => "hold",
            Self::Skip => "skip",
        }
    }
}

impl fmt::Display for GapFill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for GapFill {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|gaps| gaps.name() == text);
        found.ok_or_else(|| format!("'{text}' is not a way to fill gaps: choose zero, hold or skip"))
    }
}

/// State shared by the two halves of a player, besides the ring.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The reader can do nothing until frames are taken.
    pub(crate) full: AtomicBool,
    /// Index in the output before which frames come too late, so that the reader may leave them out.
    pub(crate) due: AtomicU64,
    /// Frames of damaged blocks up to now.
    pub(crate) bad_frames: AtomicU64,
}

/// Frames that follow each other.
#[derive(Clone, Copy, Debug)]
pub struct FeedPiece<'a> {
    /// The index in the output of the first one.
    pub at: Frames,
    /// The index in the recording's source of the first one. In each round the same.
    pub frame: Frames,
    /// The frames.
    pub bytes: &'a [u8],
    /// Whether they are from the recording, not in place of missing ones.
    pub recorded: bool,
}

/// The properties of a feed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub(crate) layout: Layout,
    /// The index of the first frame that is played.
    pub(crate) origin: Frames,
    /// Frames of one round, missing ones included.
    pub(crate) round: Frames,
    /// Frames of the output; `None` without end.
    pub(crate) length: Option<Frames>,
}

/// Bytes of the ring that are no data: position and length.
pub(crate) type Padding = (u64, u64);

/// Bytes that are put in place of missing ones at once.
const FILL_BYTES: u64 = 64 << 10;

/// The end of a player's ring from which a sink takes its frames.
#[derive(Debug)]
pub struct Feed {
    consumer: Consumer,
    padding: rtrb::Consumer<Padding>,
    extent: Extent,
    gaps: GapFill,
    /// The index in the output of the next frame.
    at: u64,
    /// The same, counting the frames that were left out under [`GapFill::Skip`].
    frame: u64,
    /// Missing frames that come next.
    hole: u64,
    /// Whether the gap after the last byte was seen.
    ended: bool,
    fill: Vec<u8>,
    dropped: u64,
    shared: Arc<Shared>,
}

impl Feed {
    pub(crate) fn new(
        consumer: Consumer,
        padding: rtrb::Consumer<Padding>,
        extent: Extent,
        gaps: GapFill,
        shared: Arc<Shared>,
    ) -> Self {
        let grain = extent.layout.grain().bytes;
        let fill = vec![0; (FILL_BYTES / grain).max(1) as usize * grain as usize];
        Self { consumer, padding, extent, gaps, at: 0, frame: 0, hole: 0, ended: false, fill, dropped: 0, shared }
    }

    /// How the frames lie in the pieces.
    pub fn layout(&self) -> Layout {
        self.extent.layout
    }

    /// The index in the output of the next frame.
    pub fn at(&self) -> Frames {
        Frames(self.at)
    }

    /// How many frames the whole output has; `None` if it has no end.
    pub fn length(&self) -> Option<Frames> {
        let length = self.extent.length?;
        if self.gaps != GapFill::Skip {
            return Some(length);
        }
        // Known gaps are left out of it from the beginning; damage is found only now. Relaxed: it is counted before the
        // frames after it, whose publication orders it.
        let bad = self.shared.bad_frames.load(Ordering::Relaxed);
        Some(Frames(length.0.saturating_sub(bad)))
    }

    /// Frames that came too late and were discarded.
    pub fn dropped(&self) -> Frames {
        Frames(self.dropped)
    }

    /// The fill of the ring.
    pub fn ring(&self) -> Fill {
        self.consumer.fill()
    }

    /// The notifier of the ring; set when there are data.
    pub fn notifier(&self) -> &Notifier {
        self.consumer.notifier()
    }

    /// Whether nothing more will come into the ring.
    pub fn is_closed(&self) -> bool {
        self.consumer.closed().is_some()
    }

    /// How the stream ended, once all of it was taken.
    pub fn end(&mut self) -> Option<End> {
        self.settle();
        let (end, position, _) = self.consumer.closed()?;
        (self.ended && self.hole == 0 && self.consumer.next() == position).then_some(end)
    }

    /// Looks at the next frames, `most` bytes at most, whole grains; `None` if there are none now.
    pub fn peek(&mut self, most: usize) -> Option<FeedPiece<'_>> {
        let layout = self.extent.layout;
        let whole = |bytes: u64| bytes.min(most as u64) / layout.grain().bytes * layout.grain().bytes;
        let ready = self.settle();
        let hole = self.hole > 0;
        let length = if hole { layout.bytes_of(Frames(self.hole)).0.min(self.fill.len() as u64) } else { ready };
        // A piece does not reach into the next round: its frames have consecutive numbers.
        let in_round = self.frame % self.extent.round.0.max(1);
        let length = length.min(layout.bytes_of(Frames(self.extent.round.0 - in_round)).0);
        let length = usize::try_from(whole(length)).unwrap_or(0);
        if length == 0 {
            return None;
        }
        let bytes = if hole { &self.fill[..length] } else { self.consumer.view(self.consumer.next(), length) };
        let frame = Frames(self.extent.origin.0 + in_round);
        Some(FeedPiece { at: Frames(self.at), frame, bytes, recorded: !hole })
    }

    /// Takes bytes that [`Feed::peek`] showed, whole grains.
    pub fn advance(&mut self, length: usize) {
        let frames = self.extent.layout.frames_in(Bytes(length as u64)).0;
        if self.hole > 0 {
            self.hole -= frames;
        } else {
            let next = self.consumer.next();
            if self.gaps == GapFill::Hold && length > 0 {
                // Copied before its room is released; a gap may follow it.
                let grain = self.extent.layout.grain().bytes as usize;
                let last = self.consumer.view(next + (length - grain) as u64, grain);
                if self.fill[..grain] != *last {
                    self.fill.chunks_exact_mut(grain).for_each(|to| to.copy_from_slice(last));
                }
            }
            self.consumer.take(length as u64);
            self.consumer.release(next + length as u64);
        }
        self.at += frames;
        self.frame += frames;
    }

    /// Discards the available frames before `until` in the output, because they come too late. Asks the reader not to
    /// read more of them.
    pub fn pass(&mut self, until: Frames) {
        // Relaxed: a hint; frames that are read in vain are discarded here.
        self.shared.due.store(until.0, Ordering::Relaxed);
        while self.at < until.0 {
            let left = until.0 - self.at;
            let ready = self.settle();
            let frames = if self.hole > 0 {
                let frames = self.hole.min(left);
                self.hole -= frames;
                (self.at, self.frame) = (self.at + frames, self.frame + frames);
                frames
            } else {
                let frames = self.extent.layout.frames_in(Bytes(ready)).0.min(left);
                self.advance(self.extent.layout.bytes_of(Frames(frames)).0 as usize);
                frames
            };
            if frames == 0 {
                break;
            }
            self.dropped += frames;
        }
    }

    /// Whether there is a frame to take.
    pub fn has_frames(&mut self) -> bool {
        self.settle() >= self.extent.layout.grain().bytes || self.hole > 0
    }

    /// Skips padding. Returns the bytes of data that follow, 0 in a hole.
    fn settle(&mut self) -> u64 {
        loop {
            // Read the head first, then the marks, because a mark is set before the bytes after it are published.
            let closed = self.consumer.closed();
            let available = self.consumer.available();
            let next = self.consumer.next();
            if self.hole > 0 {
                return 0;
            }
            if let Some((_, gap)) = self.consumer.gap_before(next) {
                self.miss(gap.frames);
                continue;
            }
            let padding = self.padding.peek().ok().copied();
            if let Some((position, length)) = padding
                && position == next
            {
                if available < length {
                    return 0;
                }
                self.consumer.take(length);
                self.consumer.release(next + length);
                let _ = self.padding.pop();
                continue;
            }
            if let Some((_, position, last)) = closed
                && position == next
                && !self.ended
            {
                self.ended = true;
                if let Some(gap) = last {
                    self.miss(gap.frames);
                    continue;
                }
            }
            let until = [self.consumer.next_gap_at(), padding.map(|padding| padding.0)].into_iter().flatten().min();
            return until.map_or(available, |until| available.min(until - next));
        }
    }

    /// Frames are missing next.
    fn miss(&mut self, frames: Frames) {
        match self.gaps {
            GapFill::Zero | GapFill::Hold => self.hole += frames.0,
            GapFill::Skip => self.frame += frames.0,
        }
    }
}
