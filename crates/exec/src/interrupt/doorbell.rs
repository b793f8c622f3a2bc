//! The doorbell: how sources tell the executive that the ring is not empty, and how it sleeps until they do.
//!
//! ```text
//!            ring                    answer
//!   QUIET ─────────► RUNG ─────────────────► QUIET
//!     │                ▲
//!     │ sleep          │ ring, and wake the sleeper
//!     ▼                │
//!   ASLEEP ────────────┘        (time is up: ASLEEP ─► QUIET)
//! ```
//! Why no ring is missed: a source pushes, then swaps RUNG in. The executive goes to sleep only by a compare-exchange from
//! QUIET; if the bell was rung before, that fails, and if it is rung after, the source sees ASLEEP and wakes it. The bell is
//! answered (set QUIET) before the ring is emptied, so a push after that rings again.

use hairspring_exec_core::Moment;

use crate::sync::{AtomicU32, Ordering, sleep_while, wake_one};

const QUIET: u32 = 0;
const RUNG: u32 = 1;
const ASLEEP: u32 = 2;

pub(crate) struct Doorbell {
    state: AtomicU32,
}

impl Doorbell {
    pub(crate) fn new() -> Self {
        Self { state: AtomicU32::new(QUIET) }
    }

    /// Rings. Any thread; one system call if the executive sleeps.
    pub(crate) fn ring(&self) {
        // AcqRel: Release pairs with the Acquire in `answer`, so that who answers sees what was pushed.
        if self.state.swap(RUNG, Ordering::AcqRel) == ASLEEP {
            wake_one(&self.state);
        }
    }

    /// Whether it was rung. One load; Relaxed, because `answer` does the pairing and a late look is only a later look.
    #[inline(always)]
    pub(crate) fn is_rung(&self) -> bool {
        self.state.load(Ordering::Relaxed) == RUNG
    }

    /// Whether the executive sleeps on it. Relaxed: for the watchdog, to which a late answer is as good.
    pub(crate) fn is_asleep(&self) -> bool {
        self.state.load(Ordering::Relaxed) == ASLEEP
    }

    /// Takes note of the ring, before the ring buffer is emptied.
    pub(crate) fn answer(&self) {
        // Acquire pairs with the Release in `ring`.
        self.state.swap(QUIET, Ordering::AcqRel);
    }

    /// Sleeps until it is rung or `deadline` has come. One thread only.
    pub(crate) fn sleep(&self, deadline: Option<Moment>) {
        if self.state.compare_exchange(QUIET, ASLEEP, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        sleep_while(&self.state, ASLEEP, deadline);
        // A ring that came meanwhile stays; only our own mark is taken away. Relaxed on failure: `answer` follows.
        let _ = self.state.compare_exchange(ASLEEP, QUIET, Ordering::AcqRel, Ordering::Relaxed);
    }
}
