//! What the source's thread hands to the recorder's beside the ring: what it learns of time, and the lengths of gaps that are intervals.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;

use hairspring_ring::gap::GapBounds;

use super::Board;
use super::writer::Writer;
use crate::clock::ClockNote;

/// The bounds so far. Hardly any recording has some, so both sides look at a flag before they lock.
#[derive(Default)]
pub(super) struct SharedBounds {
    bounds: Mutex<Vec<GapBounds>>,
    any: AtomicBool,
}

impl SharedBounds {
    /// Shows all bounds of the source.
    pub(super) fn show(&self, bounds: &[GapBounds]) {
        let Some(newest) = bounds.last() else { return };
        let Ok(mut shown) = self.bounds.lock() else { return };
        if shown.last() != Some(newest) {
            bounds.clone_into(&mut shown);
            // Release: pairs with the Acquire of the recorder's thread.
            self.any.store(true, Ordering::Release);
        }
    }

    /// Gives the recorder what was shown.
    pub(super) fn tell(&self, recorder: &mut Writer) {
        // Acquire: pairs with the Release of the source's thread.
        if self.any.load(Ordering::Acquire)
            && let Ok(bounds) = self.bounds.lock()
        {
            recorder.bound_gaps(&bounds);
        }
    }
}

/// Gives the recorder what the source's thread has learnt of time.
pub(super) fn hand_over(recorder: &mut Writer, board: &Board, notes: &Receiver<ClockNote>) {
    if let Some(beginning) = board.began().filter(|began| recorder.beginning() != Some(*began)) {
        recorder.begins(beginning);
    }
    notes.try_iter().for_each(|note| recorder.note(note));
    board.bounds.tell(recorder);
}
