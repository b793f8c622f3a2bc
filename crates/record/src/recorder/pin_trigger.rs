//! [`KeepWatch`]: finds the frames that a trigger asks to keep, in the data that a recorder takes.
//!
//! ```text
//!            pre    post                    the segments that have any of these frames are pinned
//!          ├──────T──────┤
//!   ──┬──────────┬──────────┬──────────┬──
//!     │ pinned   │ pinned   │          │
//! ```
//!
//! The recorder enters each hit into the journal before the block that contains it. So a kill before the
//! segment is pinned loses nothing: `recover` pins it.
//!
//! Frames are examined in the pieces in which they are taken, a block at most. Only the first and the last trigger of a
//! piece matter, because a cut lies between two blocks. After [`MOST_HITS`] triggers the piece counts as one that
//! triggers up to its end.

use hairspring_ring::layout::Layout;
use hairspring_ring::units::Frames;
use hairspring_source::trigger::{ExternalTrigger, Gate, Shots, Trigger, TriggerError};

use super::Recorder;
use hairspring_recording::journal::{KeptFrames, Record};

/// The most triggers that are found separately in one piece. So a trigger that fires at each frame costs one comparison
/// a frame.
const MOST_HITS: u32 = 16;

/// Which segments a trigger pins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeepOn {
    /// The condition. An external trigger means the newest frames when the recorder sees the call.
    pub trigger: Trigger,
    /// Frames before the trigger to keep.
    pub pre: Frames,
    /// Frames to keep from the trigger on.
    pub post: Frames,
}

/// Looks for a trigger.
#[derive(Debug)]
pub struct KeepWatch {
    gate: Gate,
    layout: Layout,
    pre: Frames,
    post: Frames,
    /// The first frame not examined yet.
    next: Frames,
}

impl KeepWatch {
    /// A watch for this trigger in samples of this layout.
    ///
    /// # Errors
    /// The channel does not exist, or no sample can fulfil the trigger.
    pub fn new(keep: KeepOn, layout: Layout) -> Result<Self, TriggerError> {
        let gate = Gate::new(keep.trigger, layout, Frames(0), Frames(1), Shots::Repeated(None))?;
        Ok(Self { gate, layout, pre: keep.pre, post: keep.post, next: Frames(0) })
    }

    /// The handle that fires an external trigger; `None` for another trigger.
    pub fn external(&self) -> Option<ExternalTrigger> {
        self.gate.external()
    }

    /// Examines frames from this one on. Frames between this call and the previous one are missing. Returns the frames
    /// to keep because of triggers in them.
    pub(super) fn look(&mut self, first: Frames, bytes: &[u8]) -> Option<KeptFrames> {
        if first != self.next {
            self.gate.jump(first);
            self.next = first;
        }
        let end = Frames(first.0 + self.layout.frames_in(hairspring_ring::Bytes(bytes.len() as u64)).0);
        let (mut hits, mut found) = (0, None::<KeptFrames>);
        while self.next < end {
            let rest = &bytes[self.layout.bytes_of(Frames(self.next.0 - first.0)).0 as usize..];
            let (from, mut is_hit) = (self.next, true);
            if hits == MOST_HITS {
                self.gate.pass(from, rest);
                self.next = end;
            } else {
                let decision = self.gate.feed(from, rest, false);
                self.next.0 += decision.frames.0;
                is_hit = decision.keep.is_some();
            }
            if is_hit {
                hits += 1;
                let kept_from = Frames(from.0.saturating_sub(self.pre.0));
                let kept_to = Frames(self.next.0.saturating_add(self.post.0.saturating_sub(1)));
                found = Some(KeptFrames { first: found.map_or(kept_from, |found| found.first), end: kept_to });
            }
        }
        found
    }
}

impl Recorder {
    /// Enters frames to keep into the journals.
    pub(super) fn keep(&mut self, found: Option<KeptFrames>) {
        if let Some(kept) = found {
            self.record_all(&Record::Keep(kept));
            self.kept.push(kept);
        }
    }

    /// Takes the frames to keep that were found since the last call.
    pub fn take_kept(&mut self) -> Vec<KeptFrames> {
        std::mem::take(&mut self.kept)
    }
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Instant;

    use super::*;

    /// Examines 8-bit samples in pieces of four; 100 and more triggers.
    #[track_caller]
    fn looks(text: &str, pre: u64, post: u64, samples: &[u8], expected: &[(u64, u64)]) {
        let keep = KeepOn { trigger: text.parse().expect("a trigger"), pre: Frames(pre), post: Frames(post) };
        let mut watch = KeepWatch::new(keep, Layout::analogue(1, 8).expect("exists")).expect("possible");
        let pieces = samples.chunks(4).enumerate();
        let found = pieces.filter_map(|(number, piece)| watch.look(Frames(number as u64 * 4), piece));
        assert_eq!(found.map(|kept| (kept.first.0, kept.end.0)).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_surrounds_a_trigger_is_kept_and_each_piece_is_told_once() {
        let samples = [0, 0, 100, 100, 0, 0, 0, 0, 100, 0, 0, 100, 100];
        looks("level:ch0>99cnt", 0, 0, &samples, &[(2, 4), (8, 12), (12, 13)]);
        looks("level:ch0>99cnt", 3, 5, &samples, &[(0, 8), (5, 16), (9, 17)]);
        // The last edge of the second piece is armed before it, and the last sample is no edge.
        looks("rising:ch0@99cnt", 1, 2, &samples, &[(1, 4), (7, 13)]);
    }

    #[test]
    fn a_trigger_from_outside_means_the_newest_frame() {
        let keep = KeepOn { trigger: "external".parse().expect("one"), pre: Frames(1), post: Frames(3) };
        let layout = Layout::analogue(1, 8).expect("exists");
        let mut watch = KeepWatch::new(keep, layout).expect("possible");
        let calls = watch.external().expect("from outside");
        assert_eq!(watch.look(Frames(0), &[0; 4]), None);
        assert!(calls.fire(Instant::BOOT));
        assert_eq!(watch.look(Frames(4), &[0; 4]), Some(KeptFrames { first: Frames(6), end: Frames(10) }));
        assert_eq!(watch.look(Frames(8), &[0; 4]), None);
        let keep = KeepOn { trigger: "level:ch0>99cnt".parse().expect("one"), ..keep };
        assert!(KeepWatch::new(keep, layout).expect("possible").external().is_none());
    }

    #[test]
    fn a_trigger_that_fires_at_each_frame_is_told_once_and_the_edge_after_it_is_seen() {
        let mut samples = vec![100_u8; 200];
        samples.extend([0; 100]);
        samples.push(100);
        let keep = KeepOn { trigger: "level:ch0>99cnt".parse().expect("one"), pre: Frames(0), post: Frames(1) };
        let layout = Layout::analogue(1, 8).expect("exists");
        let mut watch = KeepWatch::new(keep, layout).expect("possible");
        assert_eq!(watch.look(Frames(0), &samples), Some(KeptFrames { first: Frames(0), end: Frames(301) }));
        let dense: Vec<u8> = (0..200).map(|at| if at % 2 == 0 { 0 } else { 100 }).chain([0]).collect();
        let keep = KeepOn { trigger: "rising:ch0@99cnt".parse().expect("one"), ..keep };
        let mut watch = KeepWatch::new(keep, layout).expect("possible");
        assert_eq!(watch.look(Frames(0), &dense), Some(KeptFrames { first: Frames(1), end: Frames(201) }));
        assert_eq!(watch.look(Frames(201), &[100]), Some(KeptFrames { first: Frames(201), end: Frames(202) }));
        // Not after frames that are missing.
        assert_eq!(watch.look(Frames(202), &[0]), None);
        assert_eq!(watch.look(Frames(300), &[100]), None);
    }
}
