//! [`Placement`]: the carrier's CPU, policy and timer slack during a run, and those of the threads that serve it.
#![expect(unsafe_code, reason = "cells that are borrowed between switches")]

use hairspring_machine::{CpuSet, Nanos, Policy};

use super::{Carrier, Fibers, cell};

/// Real-time priority of the sources' threads, if the carrier has one: above what it is likely to be.
pub(super) const SOURCES: u8 = 88;
/// The same of the watchdog: above all tasks and sources.
pub(super) const WATCHDOG: u8 = 95;
/// The most that Linux has.
const MOST: u8 = 99;

/// How a thread that serves the carrier is scheduled: at real-time priority only where the carrier is, and then in this band
/// or right above it.
pub(super) fn above(carrier: Policy, band: u8) -> Policy {
    match carrier {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => {
            Policy::Fifo(priority.saturating_add(1).clamp(band, MOST))
        }
        Policy::Other | Policy::Unknown(_) => Policy::Other,
    }
}

/// The calling thread is where the carrier is to run; dropped, it is where it was.
pub(super) struct Placement<'f, M: Carrier> {
    fibers: &'f Fibers<M>,
    cpus: CpuSet,
    policy: Policy,
    slack: Nanos,
}

impl<'f, M: Carrier> Placement<'f, M> {
    /// What is refused is told in the run's finish.
    pub(super) fn take(fibers: &'f Fibers<M>) -> Self {
        let machine = &fibers.machine;
        let (cpus, policy) = &fibers.placement;
        let before = Self { fibers, cpus: machine.affinity(), policy: machine.policy(), slack: machine.timer_slack() };
        let refused = &mut cell!(fibers.finish).refused;
        if let Some(cpus) = cpus {
            refused.extend(machine.set_affinity(cpus).err());
        }
        if *policy != before.policy {
            refused.extend(machine.set_policy(*policy).err());
        }
        // An ordinary thread's timers may be 50 µs late on purpose, to save power.
        machine.set_timer_slack(Nanos::new(1));
        before
    }
}

impl<M: Carrier> Drop for Placement<'_, M> {
    fn drop(&mut self) {
        let machine = &self.fibers.machine;
        machine.set_timer_slack(self.slack);
        // What was in force before was granted before. The watchdog may have changed it.
        if machine.policy() != self.policy {
            let _ = machine.set_policy(self.policy);
        }
        if self.fibers.placement.0.is_some() {
            let _ = machine.set_affinity(&self.cpus);
        }
    }
}
