//! The state of a simulated machine: how true time passes, and what each clock shows of it.

use std::collections::VecDeque;
use std::sync::Weak;

use super::script::{Costs, Disturbance, Script, SimEvent};
use crate::{Clock, Cpu, CpuCounters, CpuSet, Instant, Nanos, Policy, ThreadUsage, Ticks, Woken};

const PICOS: u64 = 1_000;
/// True time at the beginning, so that no clock starts at zero.
const MONOTONIC_START_NS: i64 = 1_000_000_000_000;
const REALTIME_START_NS: i64 = 1_700_000_000_000_000_000;
const TAI_LEAP_NS: i64 = 37_000_000_000;
/// Step of the coarse clock: a tick of 250 Hz.
const COARSE_STEP_NS: i64 = 4_000_000;
/// The timer slack that a thread begins with.
const SLACK: Nanos = Nanos::from_micros(50);
/// How often a sleeper checks its clock; after each try at most the clock's loss during that try is left.
const WAKE_TRIES: u32 = 64;

#[derive(Debug)]
pub(super) struct State {
    script: Script,
    /// Events to come, ascending.
    events: VecDeque<SimEvent>,
    /// True time since the beginning.
    elapsed_ps: u128,
    /// Counter: raw value and the fraction of a tick (in 1/10¹²) reached until now.
    counter: u64,
    counter_fraction: u64,
    /// Monotonic time since the beginning, in picoseconds, with the fraction (in 1/10⁹) that drift adds.
    monotonic_ps: i128,
    drift_fraction: i64,
    raw_ps: i128,
    suspended_ns: i64,
    stepped_ns: i64,
    day_stepped_ns: i64,
    cpu: Cpu,
    sentinel: Sentinel,
    late_wake: Nanos,
    read_at_percent: u8,
    signalled: bool,
    random: u64,
    pub(super) policy: Policy,
    pub(super) affinity: CpuSet,
    pub(super) slack: Nanos,
    pub(super) memory_locks: u32,
    pub(super) idle_limits: Vec<Weak<Nanos>>,
    pub(super) usage: ThreadUsage,
    pub(super) counters: CpuCounters,
    pub(super) settings_read: u64,
    cpu_ps: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Sentinel {
    Absent,
    Set,
    Broken,
}

/// State of the thread while time passes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Running,
    Sleeping,
}

impl State {
    pub(super) fn new(mut script: Script) -> Self {
        script.events.sort_by_key(|event| event.at);
        let events = std::mem::take(&mut script.events).into();
        let cpus = u32::try_from(script.cpu_offsets.len()).unwrap_or(1);
        Self {
            events,
            elapsed_ps: 0,
            counter: script.counter_start,
            counter_fraction: 0,
            monotonic_ps: 0,
            drift_fraction: 0,
            raw_ps: 0,
            suspended_ns: 0,
            stepped_ns: 0,
            day_stepped_ns: 0,
            cpu: Cpu(0),
            sentinel: Sentinel::Absent,
            late_wake: Nanos::ZERO,
            read_at_percent: 50,
            signalled: false,
            random: 0x9E37_79B9_7F4A_7C15,
            policy: Policy::Other,
            affinity: CpuSet((0..cpus).map(Cpu).collect()),
            slack: SLACK,
            memory_locks: 0,
            idle_limits: Vec::new(),
            usage: ThreadUsage {
                cpu: Nanos::ZERO,
                involuntary_switches: Some(0),
                voluntary_switches: Some(0),
                run_delay: Some(Nanos::ZERO),
            },
            counters: CpuCounters::default(),
            settings_read: 0,
            cpu_ps: 0,
            script,
        }
    }

    pub(super) fn script(&self) -> &Script {
        &self.script
    }

    pub(super) fn costs(&self) -> Costs {
        self.script.costs
    }

    pub(super) fn true_picos(&self) -> u64 {
        u64::try_from(self.elapsed_ps).unwrap_or(u64::MAX)
    }

    pub(super) fn true_time(&self) -> Nanos {
        Nanos::new(i64::try_from(self.elapsed_ps / u128::from(PICOS)).unwrap_or(i64::MAX))
    }

    pub(super) fn real_time_allowed(&self) -> bool {
        self.script.real_time_allowed
    }

    /// As Linux since 6.12: a real-time policy has no slack, and a thread that leaves it gets the default slack.
    pub(super) fn change_policy(&mut self, policy: Policy) {
        self.policy = policy;
        if self.is_real_time() {
            self.slack = Nanos::ZERO;
        } else if self.slack == Nanos::ZERO {
            self.slack = SLACK;
        }
    }

    pub(super) fn change_slack(&mut self, slack: Nanos) {
        if !self.is_real_time() {
            self.slack = slack.max(Nanos::new(1));
        }
    }

    fn is_real_time(&self) -> bool {
        matches!(self.policy, Policy::Fifo(_) | Policy::RoundRobin(_))
    }

    pub(super) fn cpu(&self) -> Cpu {
        self.cpu
    }

    pub(super) fn add(&mut self, event: SimEvent) {
        let place = self.events.partition_point(|other| other.at <= event.at);
        self.events.insert(place, event);
    }

    pub(super) fn place(&mut self, cpus: &CpuSet) -> Result<(), ()> {
        let exists = |cpu: &Cpu| (cpu.0 as usize) < self.script.cpu_offsets.len();
        let first = cpus.0.first().copied().ok_or(())?;
        if !cpus.0.iter().all(exists) {
            return Err(());
        }
        if !cpus.0.contains(&self.cpu) {
            self.break_sentinel();
            self.cpu = first;
        }
        self.affinity = cpus.clone();
        Ok(())
    }

    pub(super) fn arm(&mut self) -> bool {
        if self.script.sentinel {
            self.sentinel = Sentinel::Set;
        }
        self.script.sentinel
    }

    pub(super) fn disarm(&mut self) {
        self.sentinel = Sentinel::Absent;
    }

    pub(super) fn sentinel_intact(&self) -> bool {
        self.sentinel == Sentinel::Set
    }

    fn break_sentinel(&mut self) {
        if self.sentinel == Sentinel::Set {
            self.sentinel = Sentinel::Broken;
        }
    }

    /// The thread runs for this many picoseconds of its own time; disturbances come on top.
    pub(super) fn run(&mut self, picos: u64) {
        self.advance(picos, Doing::Running);
    }

    pub(super) fn sleep_until(&mut self, deadline: Instant) -> Woken {
        self.run(self.script.costs.system_call);
        let ahead = (deadline.as_monotonic() - self.clock(Clock::Monotonic)).count();
        if ahead <= 0 {
            return Woken::Expired;
        }
        self.break_sentinel();
        self.usage.voluntary_switches = self.usage.voluntary_switches.map(|count| count + 1);
        let (least, most) = (self.script.wake_late.0.count(), self.script.wake_late.1.count());
        let late = least + self.next_random((most - least).max(0)) + self.slack.count();
        // A clock that runs slow or was set back while the thread slept has not arrived at the first try.
        for _ in 0..WAKE_TRIES {
            let ahead = (deadline.as_monotonic() - self.clock(Clock::Monotonic)).count();
            if ahead <= 0 {
                break;
            }
            if self.doze(self.true_picos_in(ahead)) == Woken::Signal {
                return Woken::Signal;
            }
        }
        let late = late + std::mem::take(&mut self.late_wake).count();
        // Until the wake-up is complete, the thread counts as asleep; a signal then comes with the wake-up.
        self.doze(late.cast_unsigned().saturating_mul(PICOS))
    }

    /// The true time in which the monotonic clock advances by `nanos` at its present drift, at least 1 ps.
    fn true_picos_in(&self, nanos: i64) -> u64 {
        let picos = i128::from(nanos) * i128::from(PICOS) * 1_000_000_000;
        let rate = i128::from(self.script.kernel_drift_ppb) + 1_000_000_000;
        u64::try_from(picos / rate.max(1)).unwrap_or(u64::MAX).max(1)
    }

    fn doze(&mut self, picos: u64) -> Woken {
        self.signalled = false;
        self.advance(picos, Doing::Sleeping);
        if self.signalled { Woken::Signal } else { Woken::Expired }
    }

    fn advance(&mut self, picos: u64, doing: Doing) {
        let mut left = picos;
        while let Some(&event) = self.events.front() {
            let at = u128::from(event.at.count().max(0).cast_unsigned()) * u128::from(PICOS);
            let until = u64::try_from(at.saturating_sub(self.elapsed_ps)).unwrap_or(u64::MAX);
            if until >= left {
                break;
            }
            self.events.pop_front();
            left -= until;
            self.pass(until, doing == Doing::Running);
            self.happen(event.disturbance, doing);
            if doing == Doing::Sleeping && self.signalled {
                return;
            }
        }
        self.pass(left, doing == Doing::Running);
    }

    fn happen(&mut self, disturbance: Disturbance, doing: Doing) {
        let running = doing == Doing::Running;
        match disturbance {
            Disturbance::Preempt(span) if running => {
                self.break_sentinel();
                self.usage.involuntary_switches = self.usage.involuntary_switches.map(|count| count + 1);
                self.usage.run_delay = self.usage.run_delay.map(|delay| delay + span);
                self.pass_nanos(span);
            }
            Disturbance::Interrupt(span) => {
                self.counters.interrupts += 1;
                if running {
                    self.pass_nanos(span);
                }
            }
            Disturbance::Steal(span) => {
                self.counters.steal += span;
                if running {
                    self.pass_nanos(span);
                }
            }
            Disturbance::Preempt(_) => {}
            Disturbance::Migrate(cpu) => {
                self.break_sentinel();
                self.cpu = cpu;
            }
            Disturbance::LateWake(span) => self.late_wake += span,
            Disturbance::ClockStep(span) => self.stepped_ns += span.count(),
            Disturbance::DayStep(span) => self.day_stepped_ns += span.count(),
            Disturbance::Suspend(span) => {
                self.suspended_ns += span.count();
                self.elapsed_ps += u128::from(span.count().cast_unsigned()) * u128::from(PICOS);
                self.break_sentinel();
            }
            Disturbance::Drift(ppb) => self.script.kernel_drift_ppb = ppb,
            Disturbance::CounterRate(rate_hz) => self.script.rate_hz = rate_hz,
            Disturbance::ClockCost(picos) => self.script.costs.clock = picos,
            Disturbance::ReadAt(percent) => self.read_at_percent = percent.min(100),
            Disturbance::Signal => {
                self.signalled = true;
                self.break_sentinel();
            }
            Disturbance::LoseRealTime => self.script.real_time_allowed = false,
            Disturbance::DistrustCounter => self.script.counter_trusted = false,
        }
    }

    fn pass_nanos(&mut self, span: Nanos) {
        self.pass(span.count().cast_unsigned().saturating_mul(PICOS), false);
    }

    /// True time passes, and every clock advances at its own rate.
    fn pass(&mut self, picos: u64, on_cpu: bool) {
        self.elapsed_ps += u128::from(picos);
        let ticks = u128::from(picos) * u128::from(self.script.rate_hz) + u128::from(self.counter_fraction);
        // Whole ticks of a span that fits 64 bits of picoseconds fit 64 bits too, at any rate below 10¹² Hz.
        self.counter = self.counter.wrapping_add((ticks / 1_000_000_000_000) as u64);
        self.counter_fraction = (ticks % 1_000_000_000_000) as u64;
        let drift = i128::from(picos) * i128::from(self.script.kernel_drift_ppb) + i128::from(self.drift_fraction);
        self.monotonic_ps += i128::from(picos) + drift.div_euclid(1_000_000_000);
        self.drift_fraction = drift.rem_euclid(1_000_000_000) as i64;
        self.raw_ps += i128::from(picos);
        if on_cpu {
            self.cpu_ps += picos;
            self.usage.cpu = Nanos::new((self.cpu_ps / PICOS).cast_signed());
        }
    }

    pub(super) fn counter(&self) -> Ticks {
        let offset = self.script.cpu_offsets.get(self.cpu.0 as usize).copied().unwrap_or(0);
        Ticks::new(self.counter - self.counter % self.script.counter_step.max(1)).plus(offset)
    }

    /// The part of a clock-reading call that has passed when it reads the counter.
    pub(super) fn until_read(&self, cost: u64) -> u64 {
        cost * u64::from(self.read_at_percent) / 100
    }

    pub(super) fn clock(&self, clock: Clock) -> Nanos {
        let since_start = |picos: i128| MONOTONIC_START_NS + (picos / i128::from(PICOS)) as i64;
        let monotonic = since_start(self.monotonic_ps) + self.stepped_ns;
        Nanos::new(match clock {
            Clock::Monotonic => monotonic,
            Clock::MonotonicRaw => since_start(self.raw_ps),
            Clock::MonotonicCoarse => monotonic - monotonic % COARSE_STEP_NS,
            Clock::Boottime => monotonic + self.suspended_ns,
            Clock::Realtime => REALTIME_START_NS + monotonic + self.suspended_ns + self.day_stepped_ns,
            Clock::Tai => REALTIME_START_NS + TAI_LEAP_NS + monotonic + self.suspended_ns + self.day_stepped_ns,
            Clock::ThreadCpu | Clock::ProcessCpu => self.usage.cpu.count(),
        })
    }

    /// The next number of a fixed sequence in `0..=most` (xorshift64, Marsaglia 2003).
    fn next_random(&mut self, most: i64) -> i64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((u128::from(self.random) * (u128::from(most.cast_unsigned()) + 1)) >> 64) as i64
    }
}
