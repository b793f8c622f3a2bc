//! The watchdog over the carrier. If a task computes too long without a call, the watchdog takes the carrier's
//! real-time priority, so that the machine stays usable.
//!
//! It measures the CPU time of the carrier since its last call, because a task that waits in the system, or a stopped
//! process, uses none. It asks for a sign of the next call by a bit of the [attention word](super::attention) and looks
//! again later. A step of CPU time longer than two looks counts as two looks, because the kernel charges the carrier
//! for time in which the hypervisor did not run the virtual machine.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use hairspring_exec_core::TaskId;
use hairspring_machine::{Host, Machine, Nanos, Policy, Refused, Setting, renew};

use super::attention::Attention;
use super::carrier::Carrier;
use super::fibers::Fibers;
use super::placement::{WATCHDOG, above};
use crate::report::{Misfortune, Mishap};
use crate::system::clock::monotonic;
use crate::system::futex::{sleep_while, wake_one};
use crate::system::scheduling::{cpu_time_of, own_number, set_policy_of};
use crate::system::sync::whole;

/// Looks within the allowed time, so that it notices a runaway at most a quarter of that time late.
const LOOKS: i64 = 4;
/// The shortest time between two looks.
const LEAST_PAUSE: Nanos = Nanos::from_millis(1);

/// A running watchdog. Dropped, it ends.
pub(super) struct Watchdog {
    end: Arc<AtomicU32>,
    thread: Option<JoinHandle<()>>,
}

/// The state of the watchdog's thread.
struct Watch {
    attention: Arc<Attention>,
    ran_away: Arc<Mutex<u64>>,
    carrier: i32,
    limit: Nanos,
    pause: Nanos,
    /// CPU time of the carrier at the last look, and how much of it in this stretch.
    used: Nanos,
    stretch: Nanos,
}

impl Watchdog {
    /// Watches the calling thread, unless the configured time is zero. The run's finish reports refusals.
    pub(super) fn start<M: Carrier>(fibers: &Fibers<M>) -> Option<Self> {
        let limit = Some(fibers.config.watchdog).filter(|&limit| limit > Nanos::ZERO)?;
        let mut watch = Watch {
            attention: Arc::clone(&fibers.attention),
            ran_away: Arc::clone(&fibers.ran_away),
            carrier: own_number(),
            limit,
            pause: Nanos::new(limit.count() / LOOKS).max(LEAST_PAUSE),
            used: Nanos::ZERO,
            stretch: Nanos::ZERO,
        };
        let policy = above(fibers.placement.1, WATCHDOG);
        let end = Arc::new(AtomicU32::new(0));
        let ended = Arc::clone(&end);
        let (in_place, placed) = sync_channel(1);
        let thread = std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            // The send fails only if the caller has gone.
            let _ = in_place.send(Host.set_policy(policy).err());
            // Acquire pairs with the Release in `drop`.
            while ended.load(Ordering::Acquire) == 0 {
                watch.look();
                sleep_while(&ended, 0, Some(monotonic().after_nanos(watch.pause.count().cast_unsigned())));
            }
        });
        let (watchdog, refused) = match thread {
            Ok(thread) => (Some(Self { end, thread: Some(thread) }), placed.recv().ok().flatten()),
            Err(error) => {
                let refused = Refused {
                    attempted: "start the watchdog".to_owned(),
                    said: error.to_string(),
                    remedy: "allow the process more threads".to_owned(),
                };
                (None, Some(refused))
            }
        };
        fibers.finish.borrow().refused.extend(refused);
        watchdog
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        // Release pairs with the Acquire of its loop.
        self.end.store(1, Ordering::Release);
        wake_one(&self.end);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Watch {
    fn look(&mut self) {
        let Some(used) = cpu_time_of(self.carrier) else { return };
        let step = (used - std::mem::replace(&mut self.used, used)).min(self.pause * 2);
        if !self.attention.watch() {
            self.stretch = Nanos::ZERO;
            return;
        }
        self.stretch += step;
        if self.stretch < self.limit {
            return;
        }
        // Held until the priority is taken; the caught task waits for the lock before it gives the priority back.
        let mut ran_away = whole(&self.ran_away);
        if self.attention.catch() {
            // At each look, because the runaway may have set another policy.
            set_policy_of(self.carrier, Policy::Other);
            *ran_away = self.stretch.count().cast_unsigned();
        }
    }
}

impl<M: Carrier> Fibers<M> {
    /// Reports the runaway: the task that makes the next call or end, or a procedure. Restores the carrier's policy.
    #[cold]
    pub(super) fn blame(&self, task: Option<TaskId>) {
        let stretch = self.pardon();
        let name = task.map(|task| (task, self.fiber(task).name.clone()));
        let mut finish = self.finish.borrow();
        match name {
            Some((task, name)) => finish.add(Mishap { task, name, what: Misfortune::RanAway(stretch) }),
            None => finish.procedure_ran_away = finish.procedure_ran_away.max(Some(stretch)),
        }
    }

    /// Restores the policy that the watchdog has taken: the most recent wish of the run or of a task. Returns the
    /// length of the runaway.
    pub(super) fn pardon(&self) -> Nanos {
        let stretch = std::mem::take(&mut *whole(&self.ran_away));
        let refused = renew(&self.machine, Setting::Policy).err();
        self.finish.borrow().refused.extend(refused);
        Nanos::new(stretch.min(i64::MAX as u64).cast_signed())
    }
}
