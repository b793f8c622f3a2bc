//! [`Threads`]: the back-end in the hands of one thread, and what all threads of an executive share.

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use hairspring_exec_core::Observer;
use hairspring_machine::{CpuSet, Host, Machine, Nanos, Policy, Refused};

use super::bands;
use super::gate::Gate;
use super::lock::Lock;
use super::parking::ParkingSpots;
use super::procedure::Interrupts;
use super::state::State;
use crate::config::{ExecConfig, ExecError, ThreadProfile};
use crate::message::Slots;
use crate::system::sync::whole;
use crate::trace::{Log, Trace};

/// The engine, in the hands of one thread: of the program that made it, of a task, or of an interrupt source.
pub(crate) struct Threads {
    pub(super) shared: Arc<Shared>,
    /// The place of the task whose thread this is.
    pub(super) own: Option<u32>,
    /// Dropping this one ends the executive.
    pub(super) owner: bool,
}

/// State that all threads of an executive share.
pub(super) struct Shared {
    pub(super) lock: Lock<State>,
    pub(super) places: Arc<ParkingSpots>,
    pub(super) slots: Slots,
    pub(super) gate: Arc<Gate>,
    pub(super) interrupts: Mutex<Interrupts>,
    pub(super) own_threads: Mutex<Option<[JoinHandle<()>; 2]>>,
    /// The CPUs of its threads; none: they are not moved.
    pub(super) cpus: Option<CpuSet>,
    pub(super) granted: bool,
    pub(super) refused: Vec<Refused>,
    pub(super) stack_bytes: usize,
    pub(super) watchdog: Nanos,
    pub(super) envelopes: u16,
    pub(super) backend: &'static str,
}

impl Threads {
    /// An executive with nothing in it but its kernel thread and its watchdog.
    pub(crate) fn new(config: &ExecConfig, profile: ThreadProfile) -> Result<Self, ExecError> {
        let (cpus, single, asked, backend) = placement(profile);
        let wanted = cpus.clone();
        // Asked on a thread that ends: the caller's own scheduling is left alone.
        let probe = std::thread::Builder::new().name("probe".to_owned()).spawn(move || {
            let placed = wanted.map_or(Ok(()), |cpus| Host.set_affinity(&cpus));
            (placed, Host.set_policy(bands::WATCHDOG))
        })?;
        let Ok((placed, scheduled)) = probe.join() else {
            return Err(ExecError::ExecConfig("a thread could not be tried"));
        };
        let mut refused = Vec::new();
        match placed {
            Err(refusal) if asked => return Err(ExecError::Refused(refusal)),
            Err(refusal) => refused.push(refusal),
            Ok(()) => {}
        }
        let granted = scheduled.map_err(|refusal| refused.push(refusal)).is_ok();

        let (places, gate) = (Arc::new(ParkingSpots::new()), Arc::new(Gate::new()));
        let log = config.trace.map(Log::new);
        let mut state = State::new(config.envelopes, Arc::clone(&places), Arc::clone(&gate), log);
        state.granted = granted;
        state.single = single;
        let shared = Arc::new(Shared {
            lock: Lock::new(state, config.measure_latency)?,
            places,
            slots: Slots::new(config.envelopes, config.message_bytes),
            gate,
            interrupts: Mutex::default(),
            own_threads: Mutex::new(None),
            cpus,
            granted,
            refused,
            stack_bytes: config.stack_bytes,
            watchdog: config.watchdog,
            envelopes: config.envelopes,
            backend,
        });
        let threads = Self { shared, own: None, owner: true };
        let beside = || Self { shared: Arc::clone(&threads.shared), own: None, owner: false };
        let (timekeeper, watcher) = (beside(), beside());
        let kernel = std::thread::Builder::new().name("kernel".to_owned()).spawn(move || timekeeper.keep_time())?;
        // Should this fail, the kernel thread ends with `threads`, which is dropped on the way out.
        let watchdog = std::thread::Builder::new().name("watchdog".to_owned()).spawn(move || watcher.watch())?;
        *whole(&threads.shared.own_threads) = Some([kernel, watchdog]);
        Ok(threads)
    }

    /// Passes every decision to the program's hooks.
    pub(super) fn use_hooks(&self, hooks: Box<dyn Observer + Send>) {
        self.shared.lock.hold().core.observer.hook_observer.hooks = Some(hooks);
    }

    /// The trace until now.
    pub(super) fn recorded(&self) -> Option<Trace> {
        let isps = whole(&self.shared.interrupts).procedures.iter().map(|isp| isp.name.clone()).collect();
        let state = self.shared.lock.hold();
        let mut trace = state.log.as_ref()?.trace(self.shared.backend, self.shared.envelopes);
        trace.tasks = state.core.observer.seats.iter().map(|seat| seat.name.clone()).collect();
        trace.timers = state.timers.iter().map(|seat| seat.name.clone()).collect();
        trace.isps = isps;
        Some(trace)
    }

    /// Calls by tasks that were not first though nothing was under way, in the last run.
    #[cfg(test)]
    pub(crate) fn violations(&self) -> u64 {
        self.shared.lock.hold().violations
    }
}

/// Placement of threads: the CPUs, whether it is one, whether the caller named them, and the back-end's name.
fn placement(profile: ThreadProfile) -> (Option<CpuSet>, bool, bool, &'static str) {
    match profile {
        ThreadProfile::Up { cpu } => {
            let chosen = cpu.or_else(|| Host.affinity().0.last().copied());
            (chosen.map(|cpu| CpuSet(vec![cpu])), chosen.is_some(), cpu.is_some(), "thread_up")
        }
        ThreadProfile::Smp { cpus } => {
            let asked = !cpus.0.is_empty();
            (Some(cpus).filter(|_| asked), false, asked, "thread_smp")
        }
    }
}

impl Shared {
    /// Puts the calling thread where the executive's threads are to run. Refusals were found when the executive was
    /// made.
    pub(super) fn take_cpus(&self) {
        if let Some(cpus) = &self.cpus {
            let _ = Host.set_affinity(cpus);
        }
    }

    /// The policy, if real-time priority was granted; else the ordinary one.
    pub(super) fn policy(&self, wanted: Policy) -> Policy {
        if self.granted { wanted } else { Policy::Other }
    }
}
