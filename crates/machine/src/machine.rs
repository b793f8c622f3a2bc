//! [`Machine`]: the one seam between Hairspring and a computer.
//!
//! All other crates ask only a machine for ticks, clock readings, sleep, placement and facts. So they run on
//! [`Host`](crate::Host), this computer, and on [`Sim`](crate::Sim), a computer in virtual time with scripted
//! disturbances. Both implement the whole trait.
//!
//! The trait is object-safe. Hot paths take it as a type parameter, so that a tick read costs one instruction.

use std::fmt;

use crate::facts::{Facts, Unread};
use crate::{IdleLimit, Instant, Nanos, ThreadSettings, Ticks};

/// Number of a CPU, as the kernel counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu(pub u32);

/// The clocks of the kernel, by their Linux names, each with its counterpart on Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: the reference. Disciplined by NTP, stands still in suspend. On Windows
    /// `QueryPerformanceCounter`, which nothing disciplines and which runs on in suspend.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`: the monotonic clock without discipline. On Windows `QueryPerformanceCounter`, too.
    MonotonicRaw,
    /// `CLOCK_MONOTONIC_COARSE`: the monotonic time of the kernel's last tick. `GetTickCount64`.
    MonotonicCoarse,
    /// `CLOCK_BOOTTIME`: monotonic plus the time spent in suspend, on either system.
    Boottime,
    /// `CLOCK_REALTIME`: the time of day; may step. `GetSystemTimePreciseAsFileTime`.
    Realtime,
    /// `CLOCK_TAI`: international atomic time, if the leap seconds were set in the kernel; in Windows they are not.
    Tai,
    /// `CLOCK_THREAD_CPUTIME_ID`: CPU time of the calling thread; a system call. `GetThreadTimes`.
    ThreadCpu,
    /// `CLOCK_PROCESS_CPUTIME_ID`: CPU time of the process; a system call. `GetProcessTimes`.
    ProcessCpu,
}

/// The calls that read the time on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockCall {
    /// `clock_gettime` of one clock; on Windows the call that the clock names.
    ClockGettime(Clock),
    /// `gettimeofday`: the time of day in microseconds.
    Gettimeofday,
    /// `std::time::Instant::now`.
    StdInstant,
}

/// The calls that sleep for a span on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SleepCall {
    /// `nanosleep`, relative. On Windows `Sleep`, whole milliseconds (rounded up).
    Nanosleep,
    /// `usleep`, relative, whole microseconds (rounded up). On Windows `Sleep` again.
    Usleep,
    /// `std::thread::sleep`.
    StdSleep,
    /// `clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME)` to a reading taken just before. On Windows a waitable timer
    /// of high resolution.
    ClockNanosleep,
}

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The deadline has passed.
    Expired,
    /// A signal was handled; the deadline may not have passed.
    Signal,
}

/// How the kernel schedules a thread. Windows has one real-time policy: 16 levels of the process's real-time class. It
/// is reported as [`Policy::RoundRobin`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`, the default policy.
    Other,
    /// `SCHED_FIFO`: runs until it blocks or a higher priority is ready; priority 1–99.
    Fifo(u8),
    /// `SCHED_RR`: as `SCHED_FIFO`, with time slices among equal priorities; priority 1–99.
    RoundRobin(u8),
    /// Any other policy, by the kernel's number. It can be reported and restored, but not requested.
    Unknown(i32),
}

impl fmt::Display for Policy {
    /// As the kernel's documentation writes it, with its priority.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other => f.write_str("SCHED_OTHER"),
            Self::Fifo(priority) => write!(f, "SCHED_FIFO {priority}"),
            Self::RoundRobin(priority) => write!(f, "SCHED_RR {priority}"),
            Self::Unknown(number) => write!(f, "policy {number}"),
        }
    }
}

/// The CPUs that a thread may run on, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(pub Vec<Cpu>);

/// A setting that the system refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The attempted action, as a fragment that fits after "failed to".
    pub attempted: String,
    /// The system's error.
    pub said: String,
    /// The remedy, as a command if there is one.
    pub remedy: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} ({})", self.attempted, self.said, self.remedy)
    }
}

impl std::error::Error for Refused {}

/// The kernel's counters of the calling thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// CPU time used.
    pub cpu: Nanos,
    /// How often the kernel preempted the thread (`ru_nivcsw`), if the kernel reports it.
    pub involuntary_switches: Option<u64>,
    /// How often the thread gave up the CPU voluntarily (`ru_nvcsw`), if the kernel reports it.
    pub voluntary_switches: Option<u64>,
    /// Time that the thread was ready and waited for a CPU (`schedstat`), if the kernel counts it.
    pub run_delay: Option<Nanos>,
}

/// The kernel's counters of one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCounters {
    /// Time that the hypervisor took from this CPU, in steps of the kernel (usually 10 ms).
    pub steal: Nanos,
    /// Interrupts handled, of all kinds.
    pub interrupts: u64,
}

/// How hot the machine is, and how fast a CPU runs, at one moment; none where the system does not show it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Heat {
    /// The temperature of the hottest thermal zone, in degrees Celsius.
    pub temperature_c: Option<f64>,
    /// The frequency of the CPU, in hertz.
    pub frequency_hz: Option<f64>,
}

/// The evidence for and against trusting the counter.
#[derive(Clone, Debug)]
pub struct CounterEvidence {
    /// The name of the counter, for instance `tsc`.
    pub name: &'static str,
    /// Whether the CPU promises a constant rate in all its states (CPUID 8000_0007h, EDX bit 8; always on aarch64).
    pub invariant: bool,
    /// The kernel's current clock source.
    pub clocksource: Result<String, Unread>,
    /// Whether the kernel lists `constant_tsc` and `nonstop_tsc` (always on aarch64).
    pub kernel_says_constant: bool,
    /// Whether this process may read the counter (`PR_GET_TSC`).
    pub readable: bool,
    /// The shortest time that a read took; microseconds mean that a hypervisor traps reads.
    pub read_cost: Nanos,
    /// The hypervisor by its own name, if there is one.
    pub hypervisor: Option<String>,
}

/// The discipline of the kernel's clock, as the kernel states it (`adjtimex`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Discipline {
    /// Whether NTP or PTP keeps the clock synchronized.
    pub synchronized: bool,
    /// The correction of the clock's rate, in parts per million.
    pub frequency_ppm: f64,
    /// The largest error of the time of day, by the kernel's own estimate.
    pub most_error: Nanos,
    /// The estimated error of the time of day.
    pub estimated_error: Nanos,
}

/// A rate of the counter that another source states.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRate {
    /// The source.
    pub source: &'static str,
    /// The rate in hertz.
    pub rate_hz: f64,
    /// The resolution of the statement, in hertz.
    pub step_hz: f64,
}

/// A computer: this one, or a simulated one.
///
/// All methods act on the calling thread. Only methods whose documentation mentions it allocate or lock.
pub trait Machine {
    /// Reads the counter. The CPU may move the read across neighbouring instructions. Real-time safe.
    fn ticks(&self) -> Ticks;

    /// Reads the counter after all earlier instructions have completed. Real-time safe.
    fn ticks_ordered(&self) -> Ticks;

    /// Waits until all earlier instructions have completed, reads of the counter included. No later instruction begins
    /// before. Real-time safe.
    fn fence(&self);

    /// Reads a clock of the kernel. Real-time safe; the CPU clocks are system calls.
    fn read(&self, clock: Clock) -> Nanos;

    /// The time now by the kernel's clock: a reading of [`Clock::Monotonic`]. Real-time safe.
    #[inline(always)]
    fn monotonic(&self) -> Instant {
        Instant::from_monotonic(self.read(Clock::Monotonic))
    }

    /// How long the machine has been suspended since it was started, by two readings that are some nanoseconds apart. 0
    /// on Windows, whose monotonic clock goes on.
    fn suspended(&self) -> Nanos {
        self.read(Clock::Boottime) - self.read(Clock::Monotonic)
    }

    /// The step of [`Clock::Monotonic`]. A reading can lag its true time by up to one step, and the difference of two
    /// readings can be wrong by one step.
    fn clock_step(&self) -> Nanos {
        Nanos::new(1)
    }

    /// Makes the call as a program would and drops its result. For measurements of its cost.
    fn call(&self, call: ClockCall);

    /// Hints to the CPU that this is a polling loop (`pause`, `yield`).
    fn relax(&self);

    /// Sleeps for `request` by the named call, exactly as a program would.
    fn sleep(&self, call: SleepCall, request: Nanos) -> Woken;

    /// Sleeps until `CLOCK_MONOTONIC` reads `deadline` or a signal is handled. May be late. Never early if it returns
    /// [`Woken::Expired`].
    fn sleep_until(&self, deadline: Instant) -> Woken;

    /// The CPU that the thread runs on now, if the machine can determine it without a system call.
    fn cpu(&self) -> Option<Cpu>;

    /// Sets the sentinel. From now on [`sentinel_intact`](Machine::sentinel_intact) returns whether the thread has left
    /// its CPU or has handled a signal. Returns false if this machine has no sentinel.
    /// [`sentinel_disarm`](Machine::sentinel_disarm) on the same thread ends it.
    fn sentinel_arm(&self) -> bool;

    /// Whether the sentinel is still intact. Costs one load. False if none is set.
    fn sentinel_intact(&self) -> bool;

    /// Removes the sentinel; harmless if none is set.
    fn sentinel_disarm(&self);

    /// The thread's scheduling policy.
    fn policy(&self) -> Policy;

    /// Changes the thread's scheduling policy only. The flag `SCHED_RESET_ON_FORK` (children do not inherit the policy)
    /// stays as it is. On Windows takes a lock.
    ///
    /// # Errors
    /// The system refused. The remedy names the limit or capability.
    fn set_policy(&self, policy: Policy) -> Result<(), Refused>;

    /// The CPUs the thread may run on. Allocates.
    fn affinity(&self) -> CpuSet;

    /// Restricts the thread to these CPUs.
    ///
    /// # Errors
    /// A CPU does not exist or is not allowed here, or the set is empty.
    fn set_affinity(&self, cpus: &CpuSet) -> Result<(), Refused>;

    /// Locks all memory of the process, present and future. Each call needs one
    /// [`unlock_memory`](Machine::unlock_memory), which any thread may make. The kernel has one lock, so the last
    /// unlocking also ends locks that other code made by `mlock`.
    ///
    /// # Errors
    /// The limit on locked memory is too small.
    fn lock_memory(&self) -> Result<(), Refused>;

    /// Undoes one granted [`lock_memory`](Machine::lock_memory). The last call unlocks the memory.
    fn unlock_memory(&self);

    /// Limits the time that any CPU of the machine may take to leave an idle state, until the result is dropped. Zero
    /// keeps all CPUs out of all idle states: they poll. The lowest limit of all holders, of this program and of
    /// others, is in force. On Linux it is rounded down to whole microseconds, and ends with its last holder, also
    /// after SIGKILL. Opens a file and allocates.
    ///
    /// # Errors
    /// The program may not set such a limit, or the limit is negative.
    fn limit_idle(&self, most: Nanos) -> Result<IdleLimit, Refused>;

    /// The timer slack: how late the kernel may deliberately make the thread's timers.
    fn timer_slack(&self) -> Nanos;

    /// Sets the timer slack; at least 1 ns. Has no effect on real-time policies, which have none.
    fn set_timer_slack(&self, slack: Nanos);

    /// The wishes that the thread holds, for [`Held`](crate::Held); none if the thread is ending. The first call of a
    /// thread allocates.
    fn thread_settings(&self) -> Option<ThreadSettings>;

    /// The kernel's counters of the thread until now. Makes a few system calls, opens a file and allocates.
    fn usage(&self) -> ThreadUsage;

    /// The kernel's counters of a CPU until now. Opens files and allocates.
    ///
    /// # Errors
    /// This system does not let the process read the counters.
    fn cpu_counters(&self, cpu: Cpu) -> Result<CpuCounters, Unread>;

    /// How hot the machine is, and how fast this CPU runs. Opens files and allocates. Systems that show neither, as
    /// most virtual machines, keep this body.
    fn heat(&self, _cpu: Cpu) -> Heat {
        Heat::default()
    }

    /// The kernel's limit on real-time threads as (runtime, period): after `runtime` in a `period` it stalls them. None
    /// if there is no limit. Opens files.
    fn real_time_throttle(&self) -> Option<(Nanos, Nanos)>;

    /// The evidence for and against the counter. Opens files; takes about 100 µs.
    fn counter_evidence(&self) -> CounterEvidence;

    /// The kernel's current clock source. Opens a file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn clocksource(&self) -> Result<String, Unread>;

    /// The counter's rate as other sources state it, for comparison. Reads the kernel's log; slow.
    fn published_rates(&self) -> Vec<PublishedRate>;

    /// The discipline of the kernel's clock.
    ///
    /// # Errors
    /// The system does not report it.
    fn discipline(&self) -> Result<Discipline, Unread>;

    /// All facts about the machine. Opens many files; takes milliseconds.
    fn facts(&self) -> Facts;
}
