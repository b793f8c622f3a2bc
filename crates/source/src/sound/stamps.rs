//! [`Stamps`]: the times at which frames of a sound card were taken, as its pointer shows them.
//!
//! A look that shows a frame proves that it was taken by then. The look before, which did not show it, proves that the
//! frame had not arrived when that look began. So each stamp is an interval. A stamp that was found by polling until
//! the pointer moved is narrow, and preferred for a while.

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::units::Frames;

use crate::source::{FrameStamp, StampTime};

/// Time between two hunts for a narrow stamp.
const HUNT_EVERY: Nanos = Nanos::from_millis(250);
/// Time for which a narrow stamp is preferred to a newer one: two hunts. On a busy computer hunts can fail for seconds;
/// if a stamp were kept that long, all marks of a recording could be the same.
const KEPT_FOR: Nanos = Nanos::from_millis(500);

/// The stamps of a source.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// Beginning of the last look.
    looked: Option<Instant>,
    first: Option<FrameStamp>,
    newest: Option<FrameStamp>,
    kept: Option<(Instant, FrameStamp)>,
    hunt_at: Option<Instant>,
    now: Option<Instant>,
}

impl Stamps {
    /// Records that a look began, or that the card was started. The caller has passed the frames of that look to
    /// `shown` before.
    pub(super) fn not_shown(&mut self, began: Instant) {
        self.looked = Some(began);
    }

    /// Records a look that showed this frame, and all before it, which the last look did not.
    pub(super) fn shown(&mut self, frame: Frames, latest: Instant) {
        let Some(earliest) = self.looked else { return };
        let taken = StampTime::Between(earliest, latest.max(earliest));
        self.first.get_or_insert(FrameStamp { frame: Frames(0), taken });
        self.newest = Some(FrameStamp { frame, taken });
    }

    /// Whether a hunt for a narrow stamp is due; if so, sets the time of the next.
    pub(super) fn is_hunt_due(&mut self, now: Instant) -> bool {
        self.now = Some(now);
        let due = self.hunt_at.is_none_or(|at| now >= at);
        if due {
            self.hunt_at = Some(now + HUNT_EVERY);
        }
        due
    }

    /// Prefers the newest stamp for a while.
    pub(super) fn keep(&mut self, now: Instant) {
        self.kept = self.newest.map(|stamp| (now, stamp));
    }

    pub(super) fn first(&self) -> Option<FrameStamp> {
        self.first
    }

    pub(super) fn newest(&self) -> Option<FrameStamp> {
        let is_young = |at: Instant| self.now.is_none_or(|now| now - at < KEPT_FOR);
        self.kept.filter(|(at, _)| is_young(*at)).map(|(_, stamp)| stamp).or(self.newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_lies_between_the_look_that_missed_it_and_the_one_that_showed_it() {
        let at = |ms| Instant::BOOT + Nanos::from_millis(ms);
        let mut stamps = Stamps::default();
        stamps.not_shown(at(1));
        stamps.shown(Frames(47), at(2));
        stamps.not_shown(at(3));
        let between = |first, last| StampTime::Between(at(first), at(last));
        assert_eq!(stamps.first(), Some(FrameStamp { frame: Frames(0), taken: between(1, 2) }));
        assert!(stamps.is_hunt_due(at(3)) && !stamps.is_hunt_due(at(4)));
        stamps.shown(Frames(95), at(4));
        stamps.keep(at(4));
        stamps.shown(Frames(480), at(10));
        assert_eq!(stamps.newest(), Some(FrameStamp { frame: Frames(95), taken: between(3, 4) }));
        assert!(stamps.is_hunt_due(at(600)));
        assert_eq!(stamps.newest(), Some(FrameStamp { frame: Frames(480), taken: between(3, 10) }));
    }

    /// Marks of a recording of five seconds showed no progress: after one narrow stamp no hunt succeeded, and every
    /// query returned that stamp. The card's rate was then reported as -1,000,000 ppm.
    #[test]
    fn stamps_go_on_while_no_narrow_one_is_found() {
        let at = |ms| Instant::BOOT + Nanos::from_millis(ms);
        let mut stamps = Stamps::default();
        stamps.not_shown(at(0));
        stamps.shown(Frames(0), at(1));
        stamps.keep(at(1));
        let mut frames = Vec::new();
        for ms in (100..5_000).step_by(100) {
            let _ = stamps.is_hunt_due(at(ms));
            stamps.not_shown(at(ms - 50));
            stamps.shown(Frames(ms as u64 * 48), at(ms));
            if [300, 800, 1_800, 3_800, 4_900].contains(&ms) {
                frames.extend(stamps.newest().map(|stamp| stamp.frame.0));
            }
        }
        assert_eq!(frames, [0, 800 * 48, 1_800 * 48, 3_800 * 48, 4_900 * 48]);
    }
}
