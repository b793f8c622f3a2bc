//! [`Attention`]: the word that says whether a call has more to do than the call itself.
//!
//! Problem: interrupts, deadlines, the limit of a run, the watchdog and a burst procedure all want the carrier, which gives its
//! attention at calls only; a call costs nanoseconds and cannot ask each of them. Solution: each sets its bit in one word. Every
//! call of a task and every end of a run loads it once; if it is zero nothing is due.
//!
//! ```text
//!   ARRIVED   a source has put something into the ring          set by any thread
//!   WATCHED   the watchdog wants to see the next call           set by the watchdog
//!   RUNAWAY   the watchdog has taken the carrier's priority     set by the watchdog, only where WATCHED still is
//!   TIMED     a deadline is set: the counter is read too        set by the carrier
//!   HOOK_PANIC     a hook has panicked: the run is to end            set by the carrier
//!   MEASURED  every call is to be measured                      set when the executive is made, and stays
//! ```
//! Why a runaway is never put down to the wrong task: a task that is switched to makes no call before the one it was switched
//! from has made one, and the first thing that call does is to take WATCHED away. So as long as WATCHED stays set one
//! stretch of code has the CPU, and the call that takes RUNAWAY away ends that stretch.

use std::sync::atomic::{AtomicU32, Ordering};

pub(super) const ARRIVED: u32 = 1;
pub(super) const WATCHED: u32 = 1 << 1;
pub(super) const RUNAWAY: u32 = 1 << 2;
pub(super) const TIMED: u32 = 1 << 3;
pub(super) const HOOK_PANIC: u32 = 1 << 4;
pub(super) const MEASURED: u32 = 1 << 5;

/// What a look takes away; TIMED and MEASURED are states and stay.
const EVENTS: u32 = ARRIVED | WATCHED | RUNAWAY | HOOK_PANIC;

#[derive(Default)]
pub(crate) struct Attention(AtomicU32);

impl Attention {
    /// Everything that is set. Relaxed: [`take`](Self::take) does the pairing, and a late look is only a later look.
    #[inline(always)]
    pub(super) fn bits(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets bits. Any thread.
    pub(super) fn set(&self, bits: u32) {
        // Release pairs with the Acquire in `take`: what the bit speaks of is there.
        self.0.fetch_or(bits, Ordering::Release);
    }

    /// Takes bits away that are states.
    pub(super) fn clear(&self, bits: u32) {
        // Relaxed: the carrier sets and clears its own states.
        self.0.fetch_and(!bits, Ordering::Relaxed);
    }

    /// What has happened since this was asked last.
    pub(super) fn take(&self) -> u32 {
        // Acquire pairs with the Release in `set`.
        self.0.fetch_and(!EVENTS, Ordering::AcqRel) & EVENTS
    }

    /// The watchdog asks to see the next call; whether it has asked already and seen none.
    pub(super) fn watch(&self) -> bool {
        // Relaxed: only whether the bit is still there counts.
        self.0.fetch_or(WATCHED, Ordering::Relaxed) & WATCHED != 0
    }

    /// The watchdog says that who has the CPU runs away; false if it has made a call meanwhile.
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
