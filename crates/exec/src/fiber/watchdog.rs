//! The watchdog over the carrier: a task that computes without a call for too long loses the carrier its real-time
//! priority, so that it cannot take the machine away from its users.
#![expect(unsafe_code, reason = "sets the policy of another thread, and borrows cells between switches")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use hairspring_exec_core::TaskId;
use hairspring_machine::{Host, Machine, Nanos, Policy};

use super::{Carrier, Fibers, cell};
use crate::interrupt::monotonic;
use crate::park::{sleep_while, wake_one};
use crate::report::{Misfortune, Mishap};

/// Above all tasks and sources.
const PRIORITY: u8 = 95;

/// A running watchdog.
pub(super) struct Watchdog {
    end: Arc<AtomicU32>,
    thread: JoinHandle<()>,
}

impl Watchdog {
    /// Watches the calling thread, unless the configuration says zero.
    pub(super) fn start<M: Carrier>(fibers: &Fibers<M>) -> Option<Self> {
        let limit = u64::try_from(fibers.config.watchdog.count()).ok().filter(|&limit| limit > 0)?;
        let (calls, looks) = (Arc::clone(&fibers.calls), Arc::clone(&fibers.looks));
        let arrivals = Arc::clone(&fibers.arrivals);
        let end = Arc::new(AtomicU32::new(0));
        let (ended, told) = (Arc::clone(&end), Arc::clone(&fibers.ran_away));
        // SAFETY: no arguments; names the calling thread, which outlives the watchdog (`end` joins it).
        let carrier = unsafe { libc::gettid() };
        let watch = move || {
            // Without the permission it watches at the priority it has: the carrier has none above it then either.
            let _ = Host.set_policy(Policy::Fifo(PRIORITY));
            let mut seen = (0, 0);
            let mut since = monotonic();
            // Acquire pairs with the Release in `end`.
            while ended.load(Ordering::Acquire) == 0 {
                sleep_while(&ended, 0, Some(monotonic().after_nanos(limit / 4)));
                let now = (calls.load(Ordering::Relaxed), looks.load(Ordering::Relaxed));
                if now != seen || arrivals.doorbell.is_asleep() {
                    seen = now;
                    since = monotonic();
                    continue;
                }
                let stretch = monotonic().as_nanos() - since.as_nanos();
                if stretch > limit {
                    demote(carrier);
                    // Relaxed: the carrier reads it at the task's next call, whenever that is.
                    told.fetch_max(stretch, Ordering::Relaxed);
                    // So that the very next call looks, and blames the right one.
                    arrivals.doorbell.ring();
                }
            }
        };
        let thread = std::thread::Builder::new().name("watchdog".to_owned()).spawn(watch).ok()?;
        Some(Self { end, thread })
    }

    /// Ends it.
    pub(super) fn end(self) {
        // Release pairs with the Acquire of its loop.
        self.end.store(1, Ordering::Release);
        wake_one(&self.end);
        let _ = self.thread.join();
    }
}

/// Takes a thread's real-time priority.
fn demote(thread: libc::pid_t) {
    let ordinary = libc::sched_param { sched_priority: 0 };
    // SAFETY: a live structure; the thread is the carrier, which outlives the watchdog.
    unsafe {
        libc::sched_setscheduler(thread, libc::SCHED_OTHER, &raw const ordinary);
    }
}

impl<M: Carrier> Fibers<M> {
    /// Whether the watchdog has seen a runaway that nobody has been blamed for.
    pub(super) fn has_runaway(&self) -> bool {
        // Relaxed: a late look blames the same task, for no other has run meanwhile.
        self.ran_away.load(Ordering::Relaxed) != 0
    }

    /// Reports the task that ran away, the one whose call or end comes first after, and gives the carrier its policy back.
    #[cold]
    pub(super) fn blame(&self, task: TaskId) {
        let stretch = self.ran_away.swap(0, Ordering::Relaxed);
        // It was granted when the run began, or refused, and then that has been told.
        let _ = self.machine.set_policy(self.placement.1);
        let name = self.fiber(task).name.clone();
        let what = Misfortune::RanAway(Nanos::new(stretch.min(i64::MAX as u64).cast_signed()));
        cell!(self.finish).add(Mishap { task, name, what });
    }
}
