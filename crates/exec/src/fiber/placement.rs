//! [`Placement`]: the carrier's CPU, policy and timer slack during a run, and those of the threads that serve it.

use hairspring_machine::{CpuSet, Held, Machine, Nanos, Policy, Refused, Wish};

/// Real-time priority of the sources' threads, if the carrier has one: above the usual priority of a carrier.
pub(super) const SOURCES: u8 = 88;
/// Real-time priority of the watchdog, if the carrier has one: above all tasks and sources.
pub(super) const WATCHDOG: u8 = 95;
/// The highest real-time priority of Linux.
const MOST: u8 = 99;

/// The policy of a thread that serves the carrier: real-time only if the carrier's is, and then with this priority or
/// right above the carrier's.
pub(super) fn above(carrier: Policy, band: u8) -> Policy {
    match carrier {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => {
            Policy::Fifo(priority.saturating_add(1).clamp(band, MOST))
        }
        Policy::Other | Policy::Unknown(_) => Policy::Other,
    }
}

/// The carrier's settings, held by the calling thread for a run. Dropped, it releases them.
pub(super) struct Placement<'m, M: Machine> {
    // Released in this order: the policy first, so that the rest of the work is not done at high priority.
    policy: Option<Held<'m, M>>,
    slack: Option<Held<'m, M>>,
    cpus: Option<Held<'m, M>>,
}

impl<'m, M: Machine> Placement<'m, M> {
    /// Takes the settings. Refusals are appended to `refused`.
    pub(super) fn take(machine: &'m M, cpus: Option<&CpuSet>, policy: Policy, refused: &mut Vec<Refused>) -> Self {
        let mut take = |wish| Held::take(machine, wish).map_err(|refusal| refused.push(refusal)).ok();
        let cpus = cpus.and_then(|cpus| take(Wish::Affinity(cpus.clone())));
        // An ordinary thread's timers may be 50 µs late on purpose, to save power.
        let slack = take(Wish::TimerSlack(Nanos::new(1)));
        // If it is refused, hold the present policy: the watchdog may take it away, and it must be restored then.
        let policy = take(Wish::Policy(policy)).or_else(|| take(Wish::Policy(machine.policy())));
        Self { policy, slack, cpus }
    }

    /// Releases the settings and returns the refusals.
    pub(super) fn release(self) -> Vec<Refused> {
        let held = [self.policy, self.slack, self.cpus].into_iter().flatten();
        held.filter_map(|held| held.release().err()).flatten().collect()
    }
}
