//! [`Attention`]: the word that is not zero if a call must also serve something else.
//!
//! Problem: interrupts, deadlines, the limit of a run, the watchdog and a burst procedure all need the carrier, which
//! can serve them only at calls. A call costs nanoseconds and cannot ask each of them. Solution: each sets its bit in
//! one word. Every call of a task and every end of a run loads the word once. If it is zero, nothing is due.
//!
//! ```text
//!   ARRIVED   a source has put something into the ring          set by any thread
//!   WATCHED   the watchdog wants to see the next call           set by the watchdog
//!   RUNAWAY   the watchdog has taken the carrier's priority     set by the watchdog, only if WATCHED is still set
//!   TIMED     a deadline is set: read the counter, too          set by the carrier
//!   HOOK_PANIC     a hook has panicked: the run must end             set by the carrier
//!   MEASURED  every call is measured                            set when the executive is made, and stays
//!   ASKED     another process wants to see the tasks            set by the publisher
//! ```
//! Why a runaway is never blamed on the wrong task: a switch happens only in a call, and a call first clears WATCHED.
//! So while WATCHED stays set, one stretch of code has the CPU. The call that clears RUNAWAY ends that stretch.

use std::sync::atomic::{AtomicU32, Ordering};

pub(super) const ARRIVED: u32 = 1;
pub(super) const WATCHED: u32 = 1 << 1;
pub(super) const RUNAWAY: u32 = 1 << 2;
pub(super) const TIMED: u32 = 1 << 3;
pub(super) const HOOK_PANIC: u32 = 1 << 4;
pub(super) const MEASURED: u32 = 1 << 5;
pub(super) const ASKED: u32 = 1 << 6;

/// The bits that a look clears. TIMED and MEASURED are states and stay.
const EVENTS: u32 = ARRIVED | WATCHED | RUNAWAY | HOOK_PANIC | ASKED;

#[derive(Default)]
pub(crate) struct Attention(AtomicU32);

impl Attention {
    /// All set bits. Relaxed: [`take`](Self::take) does the pairing, and seeing a bit late only delays the look.
    #[inline(always)]
    pub(super) fn bits(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets bits. Any thread.
    pub(super) fn set(&self, bits: u32) {
        // Release pairs with the Acquire in `take`: the data that the bit announces are visible.
        self.0.fetch_or(bits, Ordering::Release);
    }

    /// Clears states.
    pub(super) fn clear(&self, bits: u32) {
        // Relaxed: the carrier sets and clears its own states.
        self.0.fetch_and(!bits, Ordering::Relaxed);
    }

    /// Takes the events since the last call.
    pub(super) fn take(&self) -> u32 {
        // Acquire pairs with the Release in `set`.
        self.0.fetch_and(!EVENTS, Ordering::AcqRel) & EVENTS
    }

    /// The watchdog asks for a sign of the next call. Returns whether an earlier request is still unanswered.
    pub(super) fn watch(&self) -> bool {
        // Relaxed: only whether the bit is still there counts.
        self.0.fetch_or(WATCHED, Ordering::Relaxed) & WATCHED != 0
    }

    /// The watchdog reports that the running code runs away; false if that code has made a call in the meantime.
    pub(super) fn catch(&self) -> bool {
        let caught = |bits: u32| (bits & WATCHED != 0).then_some(bits | RUNAWAY);
        // Release pairs with the Acquire in `take`.
        self.0.fetch_update(Ordering::Release, Ordering::Relaxed, caught).is_ok()
    }

    /// A hook has panicked.
    pub(crate) fn burst(&self) {
        self.set(HOOK_PANIC);
    }
}
