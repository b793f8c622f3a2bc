//! CPU and policy of a proof for the life of a guard, with pauses so that the kernel does not throttle real-time
//! polling.

use hairspring_time::{Cpu, Host, Machine, Nanos, Policy, RealTime, RealTimeGuard};

/// Longest polling of a real-time thread without a pause; the kernel stalls it after 950 ms in each second.
pub(crate) const STRETCH: Nanos = Nanos::from_millis(30);
/// The length of the pause.
pub(crate) const PAUSE: Nanos = Nanos::from_millis(10);

/// The policies of the proofs, with their names.
pub(crate) const POLICIES: [(&str, Policy); 2] = [("other", Policy::Other), ("fifo", Policy::Fifo(50))];

/// Puts the calling thread on the last of its CPUs under this policy.
///
/// # Errors
/// The system refused the CPU or the policy.
pub(crate) fn take(policy: Policy) -> Result<RealTimeGuard<'static, Host>, String> {
    let wishes = RealTime { policy: Some(policy), cpu: Some(last_cpu()), lock_memory: false, slack: None, idle: None };
    let guard = wishes.apply(&Host);
    match guard.refused() {
        Some(refused) => Err(refused.to_string()),
        None => Ok(guard),
    }
}

/// The last CPU of this thread: the first ones get most of a machine's interrupts.
pub(crate) fn last_cpu() -> Cpu {
    Host.affinity().0.last().copied().unwrap_or(Cpu(0))
}
