//! [`ParkingSpot`]: the words that stop one thread of the executive and let it run.
//!
//! ```text
//!                 wait, suspend (its `go` := 0, under the lock)
//!     RUNNING ─────────────────────────────────────────────────► STOPPED
//!        ▲        ready (`go` := 1, under the lock)                 │ futex wait while `go` is 0
//!        └──────────────────── nudge (futex wake, after unlock) ◄───┘
//! ```
//! `go` mirrors the core's decision on the task and is written only under the kernel lock. So it is a level and not a
//! token: a superfluous nudge does nothing, and a nudge before the sleep prevents the sleep. `due` is the number of the
//! nudge that is still owed. The thread that issues this nudge marks it as issued, if `due` still holds this number;
//! the thread clears it when it awakes.
//!
//! **A wake can be late.** The kernel has a thread on one list of wakes at a time. If a thread of another CPU hands it
//! the lock, and it sees that before it sleeps, it goes on, and still stands on that list. A nudge in that time wakes
//! no thread: the wake comes when the other CPU gets through its list, some microseconds later. So a less urgent task
//! of the same CPU waits until the nudge is answered.
#![expect(unsafe_code, reason = "a cell for the outcome of a call, handed over by the go word")]

use std::cell::UnsafeCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI32};

use hairspring_exec_core::{CallStatus, Moment, Reply};
use hairspring_machine::Nanos;

use crate::system::clock::monotonic;
use crate::system::sync::{AtomicU32, AtomicU64, Ordering, sleep_while, wake_one};
use crate::unwind::unwind_killed;

/// Marks the number of a nudge that was issued and is not answered yet.
pub(super) const ISSUED: u32 = 1 << 31;
/// The last number of a nudge.
pub(super) const LAST_NUMBER: u32 = ISSUED - 1;

/// How long a task waits for a more urgent one to answer a nudge. Another CPU takes microseconds to deliver it; a
/// hypervisor can stop that CPU for milliseconds. A thread that takes longer sleeps in the system for a reason of its
/// own.
const LONGEST_ANSWER: Nanos = Nanos::from_millis(10);

/// One cache line of a thread's own, so that stopping one does not slow another.
#[repr(align(64))]
pub(super) struct ParkingSpot {
    go: AtomicU32,
    due: AtomicU32,
    killed: AtomicBool,
    /// Its runs are not unwound when it is killed.
    refuses: AtomicBool,
    leave: AtomicBool,
    thread: AtomicI32,
    calls: AtomicU64,
    outcome: UnsafeCell<Reply>,
}

// SAFETY: all fields but the outcome are atomics; of that see `settle` and `outcome`.
unsafe impl Sync for ParkingSpot {}

impl ParkingSpot {
    fn new() -> Self {
        Self {
            go: AtomicU32::new(0),
            due: AtomicU32::new(0),
            killed: AtomicBool::new(false),
            refuses: AtomicBool::new(false),
            leave: AtomicBool::new(false),
            thread: AtomicI32::new(0),
            calls: AtomicU64::new(0),
            outcome: UnsafeCell::new(Reply { status: CallStatus::Ok, value: 0 }),
        }
    }

    /// Resets the place for another thread. Under the lock, while no thread has it.
    pub(super) fn renew(&self) {
        // Relaxed throughout: the thread that gets the place is started after this.
        self.go.store(0, Ordering::Relaxed);
        self.due.store(0, Ordering::Relaxed);
        self.killed.store(false, Ordering::Relaxed);
        self.refuses.store(false, Ordering::Relaxed);
        self.leave.store(false, Ordering::Relaxed);
        self.thread.store(0, Ordering::Relaxed);
        self.calls.store(0, Ordering::Relaxed);
    }

    /// Whether its thread may run.
    #[inline]
    pub(super) fn may_run(&self) -> bool {
        // Acquire pairs with the Release in `allow`: the outcome is there.
        self.go.load(Ordering::Acquire) != 0
    }

    /// Lets the thread run; a nudge is then owed. Under the lock.
    #[inline]
    pub(super) fn allow(&self) {
        // Release pairs with the Acquire in `may_run`.
        self.go.store(1, Ordering::Release);
    }

    /// Stops the thread at its next look. Under the lock.
    #[inline]
    pub(super) fn forbid(&self) {
        // Relaxed: nothing is handed over by it; the lock orders it against `allow`.
        self.go.store(0, Ordering::Relaxed);
    }

    /// Sleeps until the thread may run. For its own thread only.
    #[inline]
    pub(super) fn park(&self) {
        while !self.may_run() {
            sleep_while(&self.go, 0, None);
        }
        self.answer();
    }

    /// Sleeps until the thread may run, which returns true, or until the moment has come. For its own thread only.
    pub(super) fn park_until(&self, moment: Moment) -> bool {
        while !self.may_run() {
            sleep_while(&self.go, 0, Some(moment));
            if !self.may_run() && monotonic() >= moment {
                return false;
            }
        }
        self.answer();
        true
    }

    /// Sleeps until the thread may run, at most until the moment; may return spuriously.
    pub(super) fn doze(&self, until: Option<Moment>) {
        if !self.may_run() {
            sleep_while(&self.go, 0, until);
        }
    }

    /// Notes that the thread is awake, so that no nudge is owed. For its own thread only.
    #[inline]
    pub(super) fn answer(&self) {
        // Relaxed: it only saves nudges. It cannot strike out a nudge owed for a later stop, because the thread stops
        // in this very code or in the kernel, after this.
        self.due.store(0, Ordering::Relaxed);
    }

    /// Notes that a nudge with this number is owed. Under the lock.
    #[inline]
    pub(super) fn owe(&self, number: u32) {
        // Relaxed: it publishes nothing; `go` does.
        self.due.store(number, Ordering::Relaxed);
    }

    /// The number of the nudge that is owed and not issued, or 0. Relaxed: see `owe`.
    #[inline]
    pub(super) fn owed(&self) -> u32 {
        let due = self.due.load(Ordering::Relaxed);
        if due & ISSUED == 0 { due } else { 0 }
    }

    /// Wakes the thread and marks that nudge as issued. Outside the lock; one system call.
    #[inline]
    pub(super) fn nudge(&self, number: u32) {
        wake_one(&self.go);
        if number != 0 {
            // Relaxed: see `owe`. A nudge that became due meanwhile has another number and stays.
            let _ = self.due.compare_exchange(number, number | ISSUED, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Whether a nudge was issued and the thread has not answered it.
    #[inline]
    pub(super) fn is_on_its_way(&self) -> bool {
        // Relaxed: on one CPU, where this is asked, a thread sees what the more urgent one wrote before it slept.
        self.due.load(Ordering::Relaxed) & ISSUED != 0
    }

    /// Waits for the answer to a nudge that was issued, but not for long, and only once for each nudge. For a thread of
    /// the same CPU that is less urgent and does not hold the lock: while it polls, the wake arrives and the thread
    /// runs.
    #[cold]
    pub(super) fn wait_for_answer(&self) {
        let deadline = monotonic().after_nanos(LONGEST_ANSWER.count().cast_unsigned());
        let nudge = self.due.load(Ordering::Relaxed);
        while self.is_on_its_way() {
            if monotonic() >= deadline {
                // Relaxed: see `owe`.
                let _ = self.due.compare_exchange(nudge, 0, Ordering::Relaxed, Ordering::Relaxed);
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Whether the task was killed and must unwind.
    #[inline]
    pub(super) fn is_killed(&self) -> bool {
        // Relaxed: a kill takes effect at a call; this one or the next.
        self.killed.load(Ordering::Relaxed)
    }

    /// Whether the task can be unwound: not if its thread unwinds already, or if its code cannot. For its own thread
    /// only.
    pub(super) fn can_unwind(&self) -> bool {
        // Relaxed: written by this thread only.
        !std::thread::panicking() && !self.refuses.load(Ordering::Relaxed)
    }

    /// Marks the code of the task as unable to unwind. For its own thread only.
    pub(super) fn refuse(&self) {
        // Relaxed: see `can_unwind`.
        self.refuses.store(true, Ordering::Relaxed);
    }

    /// Unwinds the task if it was killed and can be unwound. For its own thread only.
    #[inline]
    pub(super) fn unwind_if_killed(&self) {
        if self.is_killed() && self.can_unwind() {
            unwind_killed();
        }
    }

    /// Under the lock.
    pub(super) fn set_killed(&self, killed: bool) {
        // Relaxed: see `is_killed`.
        self.killed.store(killed, Ordering::Relaxed);
    }

    /// Whether the thread must end. Acquire pairs with the Release in `dismiss`.
    pub(super) fn is_dismissed(&self) -> bool {
        self.leave.load(Ordering::Acquire)
    }

    /// Ends the thread when it runs next. Under the lock.
    pub(super) fn dismiss(&self) {
        // Release pairs with the Acquire in `is_dismissed`.
        self.leave.store(true, Ordering::Release);
        self.allow();
    }

    /// The kernel's number of its thread, 0 before it has started. Acquire pairs with the Release in `settle_in`.
    pub(super) fn thread(&self) -> i32 {
        self.thread.load(Ordering::Acquire)
    }

    /// Its thread has started.
    pub(super) fn settle_in(&self, thread: i32) {
        // Release pairs with the Acquire in `thread`.
        self.thread.store(thread, Ordering::Release);
    }

    /// Counts a call of its thread. Its own thread only, so no read-modify-write is needed.
    #[inline]
    pub(super) fn count(&self) {
        // Relaxed: for the watchdog, which only wants to see change.
        self.calls.store(self.calls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    /// How many calls its thread has made. Relaxed: see `count`.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Stores the outcome of the call in which the task is blocked.
    ///
    /// # Safety
    /// Under the lock, once for each blocked call, before `allow`.
    #[inline]
    pub(super) unsafe fn settle(&self, outcome: Reply) {
        // SAFETY: the thread is blocked in a call: it reads the cell only after the `allow` that follows (the caller's
        // promise), and other writers are kept out by the lock.
        unsafe { *self.outcome.get() = outcome }
    }

    /// The outcome of the blocked call.
    ///
    /// # Safety
    /// By its own thread, after a call that blocked and a `park` that followed.
    #[inline]
    pub(super) unsafe fn outcome(&self) -> Reply {
        // SAFETY: `park` saw the `allow` that followed the one write for this call (Acquire and Release of `go`), and
        // there is no other write until this thread blocks again.
        unsafe { *self.outcome.get() }
    }
}

/// ParkingSpots in one piece of the table.
const PIECE: usize = 64;
/// Pieces: room for as many places as the core has tasks, and a few for the executive's own threads.
const PIECES: usize = 65_536 / PIECE + 1;

/// All places, by number. A place stays at its address until the executive is dropped, so threads reach it without a
/// lock.
pub(super) struct ParkingSpots {
    pieces: Box<[OnceLock<Box<[ParkingSpot]>>]>,
}

impl ParkingSpots {
    pub(super) fn new() -> Self {
        Self { pieces: (0..PIECES).map(|_| OnceLock::new()).collect() }
    }

    /// The place with this number. The first access to a piece allocates it.
    #[inline]
    pub(super) fn at(&self, number: u32) -> &ParkingSpot {
        let number = number as usize;
        let piece = self.pieces[number / PIECE].get_or_init(|| (0..PIECE).map(|_| ParkingSpot::new()).collect());
        &piece[number % PIECE]
    }
}
