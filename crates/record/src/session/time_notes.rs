//! Hand-over from the source's thread to the recorder's besides the ring: findings about time, the sender's counter,
//! and gap lengths that are intervals.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};

use hairspring_ring::gap::GapBounds;
use hairspring_source::SenderCount;

use super::Board;
use crate::series::SeriesRecorder;
use hairspring_recording::clock::ClockNote;

/// The bounds up to now. Hardly any recording has some, so both sides check a flag before they lock.
#[derive(Default)]
pub(super) struct SharedBounds {
    bounds: Mutex<Vec<GapBounds>>,
    any: AtomicBool,
}

impl SharedBounds {
    /// Publishes all bounds of the source.
    pub(super) fn show(&self, bounds: &[GapBounds]) {
        let Some(newest) = bounds.last() else { return };
        let Ok(mut shown) = self.bounds.lock() else { return };
        if shown.last() != Some(newest) {
            bounds.clone_into(&mut shown);
            // Release: pairs with the Acquire of the recorder's thread.
            self.any.store(true, Ordering::Release);
        }
    }

    /// Passes the published bounds to the recorder.
    pub(super) fn tell(&self, recorder: &mut SeriesRecorder) {
        // Acquire: pairs with the Release of the source's thread.
        if self.any.load(Ordering::Acquire)
            && let Ok(bounds) = self.bounds.lock()
        {
            recorder.bound_gaps(&bounds);
        }
    }
}

/// The sender's counter now. Unlike a note it must not be lost: an old count would be wrong after the sender restarted.
#[derive(Default)]
pub(super) struct SharedCount {
    count: Mutex<Option<SenderCount>>,
    is_new: AtomicBool,
}

impl SharedCount {
    /// Publishes a new count.
    pub(super) fn show(&self, count: SenderCount) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) = Some(count);
        // Release: pairs with the Acquire of the recorder's thread.
        self.is_new.store(true, Ordering::Release);
    }

    /// Passes the published count to the recorder.
    fn tell(&self, recorder: &mut SeriesRecorder) {
        // Acquire: pairs with the Release of the source's thread.
        if self.is_new.load(Ordering::Acquire) {
            // Relaxed: the lock below orders it; a count that is shown meanwhile sets it again.
            self.is_new.store(false, Ordering::Relaxed);
            let count = *self.count.lock().unwrap_or_else(PoisonError::into_inner);
            count.into_iter().for_each(|count| recorder.note(ClockNote::Count(count)));
        }
    }
}

/// Passes the findings of the source's thread about time to the recorder.
pub(super) fn hand_over(recorder: &mut SeriesRecorder, board: &Board, notes: &Receiver<ClockNote>) {
    let began = board.began();
    // The count was published before the recording began, and a resumed series needs it to find its start.
    board.count.tell(recorder);
    if let Some(beginning) = began.filter(|began| recorder.beginning() != Some(*began)) {
        recorder.begins(beginning);
    }
    notes.try_iter().for_each(|note| recorder.note(note));
    board.bounds.tell(recorder);
}
