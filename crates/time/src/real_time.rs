//! [`RealTime`]: scheduling choices, applied for a while by a guard that says what was granted.

use hairspring_machine::{Cpu, CpuSet, Machine, Nanos, Policy, Refused};

/// What to ask of the system for the calling thread. Everything is the caller's choice; nothing is applied by default.
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
}

/// One setting and its fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grant {
    /// It is in force.
    Granted(&'static str),
    /// The system refused.
    Refused(&'static str, Refused),
}

/// Settings in force; dropping it restores what was before. Stays on the thread that made it.
#[derive(Debug)]
pub struct RealTimeGuard<'m, M: Machine> {
    machine: &'m M,
    grants: Vec<Grant>,
    policy: Option<Policy>,
    affinity: Option<CpuSet>,
    memory_locked: bool,
    slack: Option<Nanos>,
    // The settings are the thread's, so the guard must not leave it.
    _thread: std::marker::PhantomData<*const ()>,
}

impl RealTime {
    /// Applies what was asked for to the calling thread; a refusal is reported by the guard and does not stop the rest.
    /// Not real-time safe.
    pub fn apply<'m, M: Machine>(&self, machine: &'m M) -> RealTimeGuard<'m, M> {
        let mut guard = RealTimeGuard {
            machine,
            grants: Vec::new(),
            policy: None,
            affinity: None,
            memory_locked: false,
            slack: None,
            _thread: std::marker::PhantomData,
        };
        if let Some(cpu) = self.cpu {
            let before = machine.affinity();
            if guard.note("cpu", machine.set_affinity(&CpuSet(vec![cpu]))) {
                guard.affinity = Some(before);
            }
        }
        if self.lock_memory {
            guard.memory_locked = guard.note("lock_memory", machine.lock_memory());
        }
        if let Some(slack) = self.slack {
            guard.slack = Some(machine.timer_slack());
            machine.set_timer_slack(slack);
            guard.grants.push(Grant::Granted("slack"));
        }
        // Last, so that the work above is not done at high priority.
        if let Some(policy) = self.policy {
            let before = machine.policy();
            if guard.note("policy", machine.set_policy(policy)) {
                guard.policy = Some(before);
            }
        }
        guard
    }
}

impl<M: Machine> RealTimeGuard<'_, M> {
    fn note(&mut self, setting: &'static str, result: Result<(), Refused>) -> bool {
        let granted = result.is_ok();
        self.grants.push(match result {
            Ok(()) => Grant::Granted(setting),
            Err(refused) => Grant::Refused(setting, refused),
        });
        granted
    }

    /// What was asked for and what came of it, in the order in which it was applied.
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
}

impl<M: Machine> Drop for RealTimeGuard<'_, M> {
    fn drop(&mut self) {
        // Going back to what the thread had is never refused, except if that was given up meanwhile by somebody else.
        if let Some(policy) = self.policy {
            let _ = self.machine.set_policy(policy);
        }
        if let Some(slack) = self.slack {
            self.machine.set_timer_slack(slack);
        }
        if self.memory_locked {
            self.machine.unlock_memory();
        }
        if let Some(affinity) = &self.affinity {
            let _ = self.machine.set_affinity(affinity);
        }
    }
}
