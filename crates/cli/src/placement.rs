//! CPU and priority: `--cpu` and `--priority`.

use clap::Args;
use hairspring_machine::{Cpu, Host, Machine};
use hairspring_suite::SheetError;
use hairspring_time::{Policy, RealTime, RealTimeGuard};

use crate::arguments::number;
use crate::exit::Failure;

/// The CPU and the priority of the calling thread.
#[derive(Args, Clone, Debug)]
pub(crate) struct Placement {
    /// Run under SCHED_FIFO with this priority, 1 to 99
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = number::<u8>(1, 99))]
    priority: Option<u8>,
    /// Run on this CPU
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    cpu: Option<u32>,
}

/// The CPU and the priority of the threads that a command measures.
#[derive(Args, Clone, Debug)]
pub(crate) struct Measuring {
    /// CPU to measure on [default: the last one that this process may use]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) cpu: Option<u32>,
    /// Priority of the measured threads under SCHED_FIFO, 1 to 99
    #[arg(long, value_name = "P", default_value_t = 80, allow_negative_numbers = true)]
    #[arg(value_parser = number::<u8>(1, 99))]
    pub(crate) priority: u8,
}

impl Placement {
    /// Places the calling thread until the guard is dropped. With a real-time priority its memory is locked, too.
    pub(crate) fn apply(&self) -> Result<RealTimeGuard<'static, Host>, Failure> {
        let (priority, cpu) = (self.priority, self.cpu.map(Cpu));
        if let Some(cpu) = cpu.filter(|cpu| !Host.affinity().0.contains(cpu)) {
            return Err(Failure::bad_request(SheetError::NoSuchCpu(cpu, Host.affinity().0).to_string()));
        }
        let settings = RealTime {
            policy: priority.map(Policy::Fifo),
            cpu,
            lock_memory: priority.is_some(),
            slack: None,
            idle: None,
        };
        let guard = settings.apply(&Host);
        match guard.refused() {
            // The CPU was checked, so the refusal concerns a permission: the request itself was well formed.
            Some(refused) => Err(Failure::failed(format!("failed to {refused}"))),
            None => Ok(guard),
        }
    }
}
