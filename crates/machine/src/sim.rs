//! [`Sim`]: a computer in virtual time with scripted disturbances.
//!
//! Time passes only while the program makes calls. The [`Script`] states the cost of every call. Each [`SimEvent`] of
//! the script happens at its true time, also in the middle of a call. Two runs with the same script are equal to the
//! last picosecond.
//!
//! A `Sim` is cheap to clone; clones are the same machine. Threads can share it, but it simulates a single thread:
//! every caller is "the thread".
//!
//! ```
//! use hairspring_machine::sim::{Disturbance, Script};
//! use hairspring_machine::{Clock, Machine, Nanos, Sim};
//! let sim = Sim::new(Script::default().with(Nanos::from_micros(5), Disturbance::Preempt(Nanos::from_millis(3))));
//! let start = sim.read(Clock::Monotonic);
//! sim.sentinel_arm();
//! while sim.read(Clock::Monotonic) < start + Nanos::from_micros(10) {}
//! assert!(!sim.sentinel_intact());
//! assert!(sim.read(Clock::Monotonic) > start + Nanos::from_millis(3));
//! ```

mod script;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::facts::{Fact, Facts, Thread, Unread};
use crate::{
    Clock, ClockCall, CounterEvidence, Cpu, CpuCounters, CpuSet, Discipline, IdleLimit, Instant, Machine, Nanos,
    Policy, PublishedRate, Refused, SleepCall, ThreadSettings, ThreadUsage, Ticks, Woken,
};

pub use script::{Costs, Disturbance, Script, SimEvent};
use state::State;

/// The cost of a look at a word in memory, in picoseconds. It is not zero, so that a disturbance can fall into it.
const LOAD_PICOS: u64 = 500;

/// A computer in virtual time.
#[derive(Clone, Debug)]
pub struct Sim {
    state: Arc<Mutex<State>>,
    /// Separate from the state, because they change it.
    settings: ThreadSettings,
}

impl Sim {
    /// A machine at the beginning of its script.
    pub fn new(script: Script) -> Self {
        Self { state: Arc::new(Mutex::new(State::new(script))), settings: ThreadSettings::default() }
    }

    /// True time since the beginning. No real program can see it; tests check results against it.
    pub fn true_time(&self) -> Nanos {
        self.state().true_time()
    }

    /// True time in picoseconds; saturates after 213 days.
    pub fn true_picos(&self) -> u64 {
        self.state().true_picos()
    }

    /// Whether the memory of the program is locked.
    pub fn is_memory_locked(&self) -> bool {
        self.state().memory_locks > 0
    }

    /// The lowest limit on idle states that is held; none if no limit is.
    pub fn idle_limit(&self) -> Option<Nanos> {
        self.state().idle_limits.iter().filter_map(Weak::upgrade).map(|limit| *limit).min()
    }

    /// How often the program read a setting for which a real machine opens files.
    pub fn settings_read(&self) -> u64 {
        self.state().settings_read
    }

    /// Lets the program compute for a span, without a call.
    pub fn work(&self, span: Nanos) {
        self.state().run(u64::try_from(span.count()).unwrap_or(0).saturating_mul(1_000));
    }

    /// Adds an event to the script while it runs; one in the past takes place at once.
    pub fn disturb(&self, at: Nanos, disturbance: Disturbance) {
        self.state().add(SimEvent { at, disturbance });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic of another test thread leaves the state usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Machine for Sim {
    fn ticks(&self) -> Ticks {
        let mut state = self.state();
        let cost = state.costs().ticks;
        state.run(cost);
        state.counter()
    }

    fn ticks_ordered(&self) -> Ticks {
        let mut state = self.state();
        let cost = state.costs().ticks_ordered;
        state.run(cost);
        state.counter()
    }

    fn fence(&self) {
        self.state().run(LOAD_PICOS);
    }

    fn read(&self, clock: Clock) -> Nanos {
        let mut state = self.state();
        let cost = match clock {
            Clock::ThreadCpu | Clock::ProcessCpu => state.costs().system_call,
            _ => state.costs().clock,
        };
        // The kernel reads its counter somewhere inside the call.
        let before = state.until_read(cost);
        state.run(before);
        let reading = state.clock(clock);
        state.run(cost - before);
        reading
    }

    fn call(&self, call: ClockCall) {
        match call {
            ClockCall::ClockGettime(clock) => drop(self.read(clock)),
            ClockCall::Gettimeofday => drop(self.read(Clock::Realtime)),
            ClockCall::StdInstant => drop(self.read(Clock::Monotonic)),
        }
    }

    fn relax(&self) {
        let mut state = self.state();
        let cost = state.costs().relax;
        state.run(cost);
    }

    fn sleep(&self, _call: SleepCall, request: Nanos) -> Woken {
        self.sleep_until(self.monotonic() + request)
    }

    fn sleep_until(&self, deadline: Instant) -> Woken {
        self.state().sleep_until(deadline)
    }

    fn cpu(&self) -> Option<Cpu> {
        let mut state = self.state();
        state.run(LOAD_PICOS);
        state.script().sentinel.then(|| state.cpu())
    }

    fn sentinel_arm(&self) -> bool {
        let mut state = self.state();
        state.run(LOAD_PICOS);
        state.arm()
    }

    fn sentinel_intact(&self) -> bool {
        let mut state = self.state();
        state.run(LOAD_PICOS);
        state.sentinel_intact()
    }

    fn sentinel_disarm(&self) {
        self.state().disarm();
    }

    fn policy(&self) -> Policy {
        self.state().policy
    }

    fn set_policy(&self, policy: Policy) -> Result<(), Refused> {
        let mut state = self.state();
        if matches!(policy, Policy::Fifo(_) | Policy::RoundRobin(_)) && !state.real_time_allowed() {
            return Err(refused("set the scheduling policy", "run as root"));
        }
        if let Policy::Fifo(priority) | Policy::RoundRobin(priority) = policy
            && !(1..=99).contains(&priority)
        {
            return Err(refused("set the scheduling policy", "choose a priority from 1 to 99"));
        }
        state.change_policy(policy);
        Ok(())
    }

    fn affinity(&self) -> CpuSet {
        self.state().affinity.clone()
    }

    fn set_affinity(&self, cpus: &CpuSet) -> Result<(), Refused> {
        self.state().place(cpus).map_err(|()| refused("pin to a CPU", "choose a CPU that exists"))
    }

    fn lock_memory(&self) -> Result<(), Refused> {
        let mut state = self.state();
        if !state.real_time_allowed() {
            return Err(refused("lock memory", "run as root"));
        }
        state.memory_locks += 1;
        Ok(())
    }

    fn unlock_memory(&self) {
        let mut state = self.state();
        state.memory_locks = state.memory_locks.saturating_sub(1);
    }

    fn limit_idle(&self, most: Nanos) -> Result<IdleLimit, Refused> {
        let mut state = self.state();
        if !state.real_time_allowed() {
            return Err(refused("limit idle states", "run as root"));
        }
        if most.is_negative() {
            return Err(refused("limit idle states", "choose a limit of zero or more"));
        }
        let limit = Arc::new(most);
        state.idle_limits.retain(|limit| limit.upgrade().is_some());
        state.idle_limits.push(Arc::downgrade(&limit));
        Ok(IdleLimit { file: None, _simulated: Some(limit) })
    }

    fn timer_slack(&self) -> Nanos {
        self.state().slack
    }

    fn set_timer_slack(&self, slack: Nanos) {
        let mut state = self.state();
        let cost = state.costs().system_call;
        state.run(cost);
        state.change_slack(slack);
    }

    fn thread_settings(&self) -> Option<ThreadSettings> {
        Some(self.settings.clone())
    }

    fn usage(&self) -> ThreadUsage {
        self.state().usage
    }

    fn cpu_counters(&self, _cpu: Cpu) -> Result<CpuCounters, Unread> {
        Ok(self.state().counters)
    }

    fn real_time_throttle(&self) -> Option<(Nanos, Nanos)> {
        self.state().settings_read += 1;
        Some((Nanos::from_millis(950), Nanos::from_millis(1_000)))
    }

    fn counter_evidence(&self) -> CounterEvidence {
        let state = self.state();
        let script = state.script();
        CounterEvidence {
            name: "tsc",
            invariant: script.counter_trusted,
            clocksource: Ok(script.clocksource().to_owned()),
            kernel_says_constant: script.counter_trusted,
            readable: true,
            read_cost: Nanos::new(9),
            hypervisor: script.hypervisor.then(|| "Sim".to_owned()),
        }
    }

    fn clocksource(&self) -> Result<String, Unread> {
        Ok(self.state().script().clocksource().to_owned())
    }

    fn published_rates(&self) -> Vec<PublishedRate> {
        vec![PublishedRate { source: "script", rate_hz: self.state().script().rate_hz as f64, step_hz: 1.0 }]
    }

    fn discipline(&self) -> Result<Discipline, Unread> {
        Ok(Discipline {
            synchronized: false,
            frequency_ppm: 0.0,
            most_error: Nanos::from_secs(16),
            estimated_error: Nanos::from_secs(16),
        })
    }

    fn facts(&self) -> Facts {
        let fact = |id, label, value: &str| Fact { id, label, value: Ok(value.to_owned()), private: false };
        Facts {
            facts: vec![
                fact("cpu.model", "CPU", "Simulated processor"),
                fact("cpu.online", "CPUs online", "2"),
                fact("kernel.release", "Kernel", "sim"),
                fact("kernel.clocksource", "Clock source", "tsc"),
                Fact { private: true, ..fact("host.name", "Host name", "simulated") },
                Fact {
                    id: "cpu.governor",
                    label: "Governor",
                    value: Err(Unread { reason: "a simulated CPU has no governor".to_owned(), remedy: None }),
                    private: false,
                },
            ],
            threads: vec![Thread {
                pid: 1,
                tid: 1,
                name: "sim".to_owned(),
                policy: "other".to_owned(),
                rt_priority: 0,
                cpu_ms: 0,
            }],
            threads_unread: None,
        }
    }
}

fn refused(attempted: &str, remedy: &str) -> Refused {
    Refused {
        attempted: attempted.to_owned(),
        said: "not permitted by the script".to_owned(),
        remedy: remedy.to_owned(),
    }
}
