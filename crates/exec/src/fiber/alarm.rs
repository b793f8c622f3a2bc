//! [`Alarm`]: a signal to the carrier shortly before a deadline that is far away.
//!
//! Problem: while a deadline is set, every call reads the processor's counter, which on a virtual machine can take
//! longer than the rest of the call. Solution: a timer of the kernel watches a deadline that is far away. It interrupts
//! the carrier [`LEAD_NS`] before that deadline and sets TIMED in the [attention word](super::attention). From then on
//! the calls read the counter, so the deadline is noticed as exactly as without the alarm.
//!
//! ```text
//!   a deadline is set                                     alarm             deadline
//!   ├─ PATIENCE ─┼───────────── calls read nothing ─────────┼──── LEAD ────────┤
//!   calls read the counter                                  calls read the counter
//! ```
//! Why a signal: the kernel delivers it to the running carrier itself, whatever the policy of the carrier and the load
//! of the machine. A thread that sets the word must first get a CPU. Why SIGURG: it is ignored by default, hardly used,
//! and its users expect it without a reason.
//!
//! Conditions: a setting costs a system call and a ring some microseconds, so there is none for a deadline closer than
//! [`FAR_NS`], and one in [`PATIENCE_NS`] at most. A carrier that sleeps has no alarm set. If the thread blocks the
//! signal there is no alarm. If a ring does not come in time, as when other code has replaced the handler, the engine
//! does not use the alarm again in this run.
#![expect(unsafe_code, reason = "a timer of the kernel and a signal handler")]

use std::cell::Cell;
use std::sync::Once;

use hairspring_exec_core::Moment;

use super::attention::{Attention, TIMED};

/// How long before its deadline an alarm rings. Long compared with the delivery of a signal (2 to 20 µs).
const LEAD_NS: u64 = 100_000;
/// The shortest time to a deadline for which an alarm is set.
const FAR_NS: u64 = 400_000;
/// How long the carrier must have run, and how old the last setting must be. Long compared with a setting (0.3 µs).
pub(super) const PATIENCE_NS: u64 = 50_000;
const SIGNAL: i32 = libc::SIGURG;

thread_local! {
    /// The word of the engine that runs on this thread. Const-initialised and without a destructor, so that reading it
    /// in a handler only loads from the thread's own block.
    static WORD: Cell<*const Attention> = const { Cell::new(std::ptr::null()) };
}

/// The alarm of the calling thread, during a run.
pub(super) struct Alarm {
    timer: libc::timer_t,
    outer: *const Attention,
    /// When it rings, in nanoseconds; `u64::MAX` if it is not set.
    rings_at: Cell<u64>,
    /// The time before which it is not set again.
    patience_ends: Cell<u64>,
}

impl Alarm {
    /// Rings into this word, which stays where it is while the alarm lives. None if the kernel has no timer or the
    /// thread blocks the signal.
    pub(super) fn new(word: *const Attention) -> Option<Self> {
        install();
        // SAFETY: all structures live during the calls; zero is a valid value of each. The kernel writes `timer` if it
        // returns 0.
        let timer = unsafe {
            let mut blocked: libc::sigset_t = std::mem::zeroed();
            if libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut blocked) != 0
                || libc::sigismember(&raw const blocked, SIGNAL) != 0
            {
                return None;
            }
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = SIGNAL;
            event.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::mem::zeroed();
            if libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) != 0 {
                return None;
            }
            timer
        };
        Some(Self { timer, outer: WORD.replace(word), rings_at: Cell::new(u64::MAX), patience_ends: Cell::new(0) })
    }

    /// Whether the alarm watches this deadline from now on, so that calls need not.
    pub(super) fn watches(&self, deadline: Moment, now: Moment) -> bool {
        let (deadline, now) = (deadline.as_nanos(), now.as_nanos());
        if deadline.saturating_sub(now) < FAR_NS {
            return false;
        }
        let at = deadline - LEAD_NS;
        if (now + 1..=at).contains(&self.rings_at.get()) {
            // It rings earlier than it must.
            return true;
        }
        if now < self.patience_ends.get() {
            return false;
        }
        self.patience_ends.set(now + PATIENCE_NS);
        self.set(at)
    }

    /// Whether the last ring has not come in time.
    pub(super) fn is_overdue(&self, now: Moment) -> bool {
        self.rings_at.get().saturating_add(LEAD_NS) <= now.as_nanos()
    }

    /// It has rung, or need not.
    pub(super) fn forget(&self, now: Moment) {
        if self.rings_at.get() <= now.as_nanos() {
            self.rings_at.set(u64::MAX);
        }
    }

    /// The carrier is about to sleep.
    pub(super) fn rest(&self) {
        if self.rings_at.get() != u64::MAX {
            self.set(u64::MAX);
        }
    }

    /// The carrier has slept until now.
    pub(super) fn wait_from(&self, now: Moment) {
        self.patience_ends.set(now.as_nanos() + PATIENCE_NS);
    }

    /// Sets the alarm; `u64::MAX`: stops it. Returns whether the kernel agreed.
    fn set(&self, at: u64) -> bool {
        let stops = at == u64::MAX;
        let (seconds, nanos) = if stops { (0, 0) } else { (at / 1_000_000_000, at % 1_000_000_000) };
        // The values fit: a moment is at most 584 years from the clock's beginning.
        let value = libc::timespec { tv_sec: seconds as _, tv_nsec: nanos as libc::c_long };
        let setting = libc::itimerspec { it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        // SAFETY: the timer lives until `drop`, the structure during the call.
        let set =
            unsafe { libc::timer_settime(self.timer, libc::TIMER_ABSTIME, &raw const setting, std::ptr::null_mut()) }
                == 0;
        self.rings_at.set(if set { at } else { u64::MAX });
        set
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        // SAFETY: the timer was made in `new` and is deleted only here. A ring that is still on its way finds the outer
        // word, or none.
        unsafe { libc::timer_delete(self.timer) };
        WORD.set(self.outer);
        // SAFETY: the outer engine runs on this thread, below this run. It may have missed a ring.
        if let Some(outer) = unsafe { self.outer.as_ref() } {
            outer.set(TIMED);
        }
    }
}

/// The handler that was there before.
static mut BEFORE: Option<libc::sigaction> = None;

fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the structures live; the handler is async-signal-safe as its comment shows. `BEFORE` is written only
        // here, once, before the handler that reads it can run.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = ring as *const () as usize;
            // On the thread's own signal stack, so that a fiber's stack need not have room for it; and the system's
            // calls go on.
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(SIGNAL, std::ptr::null(), &raw mut before) == 0 {
                BEFORE = Some(before);
                libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut());
            }
        }
    });
}

/// Only loads and one atomic operation. A ring without a reason lets the next call read the counter, no more.
extern "C" fn ring(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let word = WORD.get();
    if !word.is_null() {
        // SAFETY: the word belongs to the engine that runs on this thread, below this handler.
        unsafe { &*word }.set(TIMED);
    }
    // SAFETY: written once before this handler was installed; the kernel gives a handler with SA_SIGINFO a valid
    // structure. The handler that was there before is called as the kernel would have called it.
    unsafe {
        let before: Option<libc::sigaction> = (&raw const BEFORE).read();
        let Some(before) = before.filter(|_| (*info).si_code != libc::SI_TIMER) else { return };
        match before.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {}
            handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = std::mem::transmute(handler);
                handler(signal, info, context);
            }
            handler => {
                let handler: extern "C" fn(i32) = std::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::clock::monotonic;

    /// Lets time pass to this long after `from`.
    fn spin(from: Moment, nanos_ns: u64) {
        while monotonic() < from.after_nanos(nanos_ns) {}
    }

    #[test]
    fn an_alarm_rings_before_its_deadline_and_only_one_that_is_set_rings() {
        let word = Attention::default();
        let alarm = Alarm::new(&raw const word).expect("the test's thread blocks no signal");
        let now = monotonic();
        assert!(!alarm.watches(now.after_nanos(FAR_NS - 1), now), "too close");
        assert!(alarm.watches(now.after_nanos(60_000_000), now));
        assert!(alarm.watches(now.after_nanos(90_000_000), now), "it rings earlier than it must");
        assert!(!alarm.watches(now.after_nanos(30_000_000), now), "it was set a moment ago");
        spin(now, 10_000_000);
        let bits = word.bits();
        assert!(bits == 0 || monotonic() >= now.after_nanos(60_000_000 - LEAD_NS), "it has rung too early");
        spin(now, 60_000_000);
        assert_eq!(word.bits(), TIMED, "at its deadline it has rung");
        let now = monotonic();
        alarm.forget(now);
        assert!(!alarm.is_overdue(now));
        assert!(alarm.watches(now.after_nanos(5_000_000), now));
        alarm.rest();
        // On a busy machine it may have rung before.
        word.clear(TIMED);
        spin(now, 6_000_000);
        assert_eq!(word.bits(), 0, "a carrier that sleeps is left alone");
        let now = monotonic();
        assert!(alarm.watches(now.after_nanos(5_000_000), now));
        drop(alarm);
        word.clear(TIMED);
        spin(now, 6_000_000);
        assert_eq!(word.bits(), 0, "an alarm that is gone is silent");
    }

    #[test]
    fn an_engine_below_another_looks_at_its_deadlines_when_the_other_has_ended() {
        let (outer, inner) = (Attention::default(), Attention::default());
        let _below = Alarm::new(&raw const outer).expect("the test's thread blocks no signal");
        let above = Alarm::new(&raw const inner).expect("the test's thread blocks no signal");
        drop(above);
        assert_eq!(outer.bits(), TIMED);
    }
}
