//! [`RealTime`]: scheduling choices for the calling thread. A guard holds them and lists what the system granted.

use hairspring_machine::{Cpu, CpuSet, Held, Machine, Nanos, Policy, Refused, Wish};

/// The settings to ask of the system for the calling thread. By default it asks for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RealTime {
    /// The scheduling policy with its priority.
    pub policy: Option<Policy>,
    /// The CPU to stay on.
    pub cpu: Option<Cpu>,
    /// Whether to lock the memory of the process.
    pub lock_memory: bool,
    /// The timer slack.
    pub slack: Option<Nanos>,
    /// The longest time that a CPU may take to leave an idle state, for all CPUs of the machine; zero turns idle states
    /// off ([`Machine::limit_idle`]).
    pub idle: Option<Nanos>,
}

/// One setting, and whether the system granted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// The setting is in force.
    Granted(&'static str),
    /// The system refused.
    Refused(&'static str, Refused),
}

/// Holds settings on the thread that made it. Dropping the guard releases them.
///
/// Guards can end in any order. For each setting the most recent wish that is still held is in force. After the last
/// one the thread is as it was before the first ([`Held`]).
///
/// Dropping a guard hides what could not be restored; [`release`](RealTimeGuard::release) returns it.
#[derive(Debug)]
#[must_use = "a guard that is dropped gives the settings back"]
pub struct RealTimeGuard<'m, M: Machine> {
    grants: Vec<Grant>,
    held: Vec<Held<'m, M>>,
}

impl RealTime {
    /// Applies the settings to the calling thread. The guard reports a refusal; the other settings are applied
    /// nevertheless. Not real-time safe.
    pub fn apply<'m, M: Machine>(&self, machine: &'m M) -> RealTimeGuard<'m, M> {
        let mut guard = RealTimeGuard { grants: Vec::new(), held: Vec::new() };
        // The policy last, so that the work before it is not done at high priority.
        let wishes = [
            ("cpu", self.cpu.map(|cpu| Wish::Affinity(CpuSet(vec![cpu])))),
            ("lock_memory", self.lock_memory.then_some(Wish::MemoryLock)),
            ("slack", self.slack.map(Wish::TimerSlack)),
            ("idle", self.idle.map(Wish::Idle)),
            ("policy", self.policy.map(Wish::Policy)),
        ];
        for (setting, wish) in wishes {
            match wish.map(|wish| Held::take(machine, wish)) {
                Some(Ok(held)) => {
                    guard.grants.push(Grant::Granted(setting));
                    guard.held.push(held);
                }
                Some(Err(refused)) => guard.grants.push(Grant::Refused(setting, refused)),
                None => {}
            }
        }
        guard
    }
}

impl<M: Machine> RealTimeGuard<'_, M> {
    /// The settings that were asked for, each with its outcome, in the order in which they were applied.
    pub fn grants(&self) -> &[Grant] {
        &self.grants
    }

    /// The first refusal, if there is one.
    pub fn refused(&self) -> Option<&Refused> {
        self.grants.iter().find_map(|grant| match grant {
            Grant::Granted(_) => None,
            Grant::Refused(_, refused) => Some(refused),
        })
    }

    /// Gives the settings back.
    ///
    /// # Errors
    /// The refusals of the system while the settings were restored. The other settings have been restored
    /// ([`Held::release`]).
    pub fn release(mut self) -> Result<(), Vec<Refused>> {
        // The policy first, as in `drop`.
        let released = std::mem::take(&mut self.held).into_iter().rev().map(Held::release);
        let refusals: Vec<Refused> = released.filter_map(Result::err).flatten().collect();
        if refusals.is_empty() { Ok(()) } else { Err(refusals) }
    }
}

impl<M: Machine> Drop for RealTimeGuard<'_, M> {
    fn drop(&mut self) {
        // The policy first, so that the rest of the work is not done at high priority.
        while self.held.pop().is_some() {}
    }
}
