//! [`Script`]: the properties of a simulated machine and the events that happen to it.

use crate::{Cpu, Nanos};

/// The properties and the events of a simulated machine.
#[derive(Clone, Debug)]
pub struct Script {
    /// True rate of the counter, in hertz.
    pub rate_hz: u64,
    /// The value of the counter at the beginning.
    pub counter_start: u64,
    /// The step of the counter in ticks, at least 1.
    pub counter_step: u64,
    /// How much faster than true time the kernel's disciplined clocks run, in parts per 10⁹.
    pub kernel_drift_ppb: i64,
    /// The cost of each call.
    pub costs: Costs,
    /// How late the kernel wakes a sleeper: uniformly between these two, with the same sequence in every run.
    pub wake_late: (Nanos, Nanos),
    /// The counter's offset on each CPU, in ticks; its length is the number of CPUs, at least 1.
    pub cpu_offsets: Vec<i64>,
    /// Whether the counter looks trustworthy to the trust rules.
    pub counter_trusted: bool,
    /// Whether the machine reports that it is a guest.
    pub hypervisor: bool,
    /// Whether real-time policies, memory locking and limits on idle states are permitted.
    pub real_time_allowed: bool,
    /// Whether the kernel shares an area with the thread (rseq): both the sentinel and the number of the CPU come from
    /// it.
    pub sentinel: bool,
    /// The events, in any order.
    pub events: Vec<SimEvent>,
}

/// The cost of each call, in picoseconds of true time.
#[derive(Clone, Copy, Debug)]
pub struct Costs {
    /// An unordered counter read.
    pub ticks: u64,
    /// An ordered counter read.
    pub ticks_ordered: u64,
    /// A clock read without a system call.
    pub clock: u64,
    /// A system call.
    pub system_call: u64,
    /// A pause in a polling loop.
    pub relax: u64,
}

/// One thing that happens at one moment of true time since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimEvent {
    /// When.
    pub at: Nanos,
    /// The event.
    pub disturbance: Disturbance,
}

/// An event that can happen to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disturbance {
    /// Another thread runs on our CPU. Nothing happens to a sleeper.
    Preempt(Nanos),
    /// An interrupt is handled on our CPU.
    Interrupt(Nanos),
    /// The hypervisor runs another guest.
    Steal(Nanos),
    /// The thread moves to another CPU. This takes no time here but breaks the sentinel.
    Migrate(Cpu),
    /// The next wake-up is later by this much.
    LateWake(Nanos),
    /// The kernel's clocks jump, the monotonic ones included: a fault that a watchdog must see.
    ClockStep(Nanos),
    /// The time of day is set forward, or back, by this much: the real-time and the atomic clock, and no other.
    DayStep(Nanos),
    /// The machine is suspended: true time, boot time and time of day pass, monotonic time and the counter do not.
    Suspend(Nanos),
    /// From now on the kernel's disciplined clocks run fast by this much, in parts per 10⁹.
    Drift(i64),
    /// From now on the counter runs at this rate, in hertz.
    CounterRate(u64),
    /// From now on a clock read without a system call takes this many picoseconds, as when the kernel takes a slower
    /// clock source.
    ClockCost(u64),
    /// From now on a call reads the clock after this percentage of its duration; 50 at the beginning.
    ReadAt(u8),
    /// A signal is handled: sleeps end, the sentinel breaks.
    Signal,
    /// Real-time permission is lost from now on (the present policy stays).
    LoseRealTime,
    /// The kernel gives up the counter as its clock source.
    DistrustCounter,
}

impl Default for Script {
    /// A quiet 2.6 GHz machine with two CPUs that agree, costs like those of a current server, wake-ups 20–60 µs late.
    fn default() -> Self {
        Self {
            rate_hz: 2_600_000_000,
            counter_start: 1 << 40,
            counter_step: 1,
            kernel_drift_ppb: 0,
            costs: Costs { ticks: 8_000, ticks_ordered: 13_000, clock: 18_000, system_call: 170_000, relax: 10_000 },
            wake_late: (Nanos::from_micros(20), Nanos::from_micros(60)),
            cpu_offsets: vec![0, 0],
            counter_trusted: true,
            hypervisor: false,
            real_time_allowed: true,
            sentinel: true,
            events: Vec::new(),
        }
    }
}

impl Script {
    /// The name of the kernel's clock source.
    pub(super) fn clocksource(&self) -> &'static str {
        if self.counter_trusted { "tsc" } else { "hpet" }
    }

    /// The script with one more event.
    #[must_use]
    pub fn with(mut self, at: Nanos, disturbance: Disturbance) -> Self {
        self.events.push(SimEvent { at, disturbance });
        self
    }
}
