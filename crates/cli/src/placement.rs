//! Where the calling thread runs and how urgently, as asked for by `--priority` and `--cpu`.

use hairspring_machine::{Cpu, Host, Machine};
use hairspring_suite::SheetError;
use hairspring_time::{Policy, RealTime, RealTimeGuard};

use crate::exit::Failure;

/// Puts the thread there; memory is locked for a real-time priority. Lasts until the guard is dropped.
pub(crate) fn apply(priority: Option<u8>, cpu: Option<u32>) -> Result<RealTimeGuard<'static, Host>, Failure> {
    let cpu = cpu.map(Cpu);
    if let Some(cpu) = cpu.filter(|cpu| !Host.affinity().0.contains(cpu)) {
        return Err(Failure::bad_request(SheetError::NoSuchCpu(cpu, Host.affinity().0).to_string()));
    }
    let settings = RealTime { policy: priority.map(Policy::Fifo), cpu, lock_memory: priority.is_some(), slack: None };
    let guard = settings.apply(&Host);
    match guard.refused() {
        // The CPU was checked; what is left to refuse is a permission, and the request was well written.
        Some(refused) => Err(Failure::failed(format!("failed to {refused}"))),
        None => Ok(guard),
    }
}
