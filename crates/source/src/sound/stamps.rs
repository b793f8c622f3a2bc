//! [`Stamps`]: when frames of a sound card were taken, as far as its pointer shows it.
//!
//! A look that shows a frame says that it was taken by then. The look before, which did not show it, says that it had not been seen when that
//! look began. So each stamp is an interval. One that was found by looking until the pointer moved is narrow, and preferred for a while.

use hairspring_machine::{Instant, Nanos};
use hairspring_ring::units::Frames;

use crate::source::{FrameStamp, StampTime};

/// How often a narrow stamp is looked for.
const HUNT_EVERY: Nanos = Nanos::from_millis(250);
/// How long a narrow stamp is preferred to a newer one.
const KEPT_FOR: Nanos = Nanos::from_secs(5);

/// The stamps of a source.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    /// When the last look began.
    looked: Option<Instant>,
    first: Option<FrameStamp>,
    newest: Option<FrameStamp>,
    kept: Option<(Instant, FrameStamp)>,
    hunt_at: Option<Instant>,
    now: Option<Instant>,
}

impl Stamps {
    /// A look began, or the card was started. What it shows was passed to `shown` before this call.
    pub(super) fn not_shown(&mut self, began: Instant) {
        self.looked = Some(began);
    }

    /// A look showed this frame, and all before it, which the last look did not.
    pub(super) fn shown(&mut self, frame: Frames, latest: Instant) {
        let Some(earliest) = self.looked else { return };
        let taken = StampTime::Between(earliest, latest.max(earliest));
        self.first.get_or_insert(FrameStamp { frame: Frames(0), taken });
        self.newest = Some(FrameStamp { frame, taken });
    }

    /// Whether it is time to look for a narrow stamp; then the next time is set.
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
        assert!(stamps.is_hunt_due(at(6_000)));
        assert_eq!(stamps.newest(), Some(FrameStamp { frame: Frames(480), taken: between(3, 10) }));
    }
}
