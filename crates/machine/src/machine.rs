//! [`Machine`]: the one seam between Hairspring and a computer.
//!
//! Everything above asks a machine for ticks, clock readings, sleep, placement and facts, and nothing else; so all of it
//! runs on [`Host`](crate::Host), this computer, and on [`Sim`](crate::Sim), a computer in virtual time whose
//! disturbances are scripted. The two are equal in rank: what one can do the other can.
//!
//! The trait is object-safe. Hot paths take it as a type parameter, so that a tick read costs one instruction.

use crate::facts::{Facts, Unread};
use crate::{Instant, Nanos, ThreadSettings, Ticks};

/// Number of a CPU, as the kernel counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cpu(pub u32);

/// The clocks of the kernel, by the names of Linux; each says what it is on Windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`: the reference. Disciplined by NTP, stands still in suspend. On Windows `QueryPerformanceCounter`,
    /// which nothing disciplines and which runs on in suspend.
    Monotonic,
    /// `CLOCK_MONOTONIC_RAW`: the same without discipline. On Windows the same.
    MonotonicRaw,
    /// `CLOCK_MONOTONIC_COARSE`: the monotonic time of the kernel's last tick. `GetTickCount64`.
    MonotonicCoarse,
    /// `CLOCK_BOOTTIME`: monotonic plus the time spent in suspend, on either system.
    Boottime,
    /// `CLOCK_REALTIME`: the time of day; may step. `GetSystemTimePreciseAsFileTime`.
    Realtime,
    /// `CLOCK_TAI`: international atomic time, if the kernel was told the leap seconds; Windows is not.
    Tai,
    /// `CLOCK_THREAD_CPUTIME_ID`: CPU time of the calling thread; a system call. `GetThreadTimes`.
    ThreadCpu,
    /// `CLOCK_PROCESS_CPUTIME_ID`: CPU time of the process; a system call. `GetProcessTimes`.
    ProcessCpu,
}

/// The calls by which a program on this machine can ask for the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClockCall {
    /// `clock_gettime` of one clock; on Windows the call that the clock names.
    ClockGettime(Clock),
    /// `gettimeofday`: the time of day in microseconds.
    Gettimeofday,
    /// `std::time::Instant::now`.
    StdInstant,
}

/// The ways to sleep for a while that a program on this machine has.
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
    /// Its time had come.
    Expired,
    /// A signal was handled; the time may not have come.
    Signal,
}

/// How the kernel schedules a thread. Windows has one real-time policy, which it reports as [`Policy::RoundRobin`]: a level
/// of the process's real-time class, which has 16 of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// `SCHED_OTHER`, the ordinary one.
    Other,
    /// `SCHED_FIFO`: runs until it blocks or a higher priority is ready; priority 1–99.
    Fifo(u8),
    /// `SCHED_RR`: the same with time slices among equals; priority 1–99.
    RoundRobin(u8),
    /// Any other policy, by the kernel's number; can be reported and restored, not asked for.
    Unknown(i32),
}

/// The CPUs that a thread may run on, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(pub Vec<Cpu>);

/// A setting that the system did not grant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What was attempted, as a fragment that fits after "failed to".
    pub attempted: String,
    /// What the system said.
    pub said: String,
    /// What to do about it; the very command where there is one.
    pub remedy: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {} ({})", self.attempted, self.said, self.remedy)
    }
}

impl std::error::Error for Refused {}

/// What the kernel counted for the calling thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// CPU time used.
    pub cpu: Nanos,
    /// Times the thread was taken off its CPU though it could have run on (`ru_nivcsw`), where the kernel tells.
    pub involuntary_switches: Option<u64>,
    /// Times it gave up the CPU itself (`ru_nvcsw`), where the kernel tells.
    pub voluntary_switches: Option<u64>,
    /// Time spent ready to run but waiting for a CPU, where the kernel keeps it (`schedstat`).
    pub run_delay: Option<Nanos>,
}

/// What the kernel counted for one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuCounters {
    /// Time that the hypervisor gave to others, in the kernel's steps (usually 10 ms).
    pub steal: Nanos,
    /// Interrupts handled, of all kinds.
    pub interrupts: u64,
}

/// What speaks for and against trusting the counter.
#[derive(Clone, Debug)]
pub struct CounterEvidence {
    /// What the counter is called, for instance `tsc`.
    pub name: &'static str,
    /// Whether the CPU promises a constant rate in all its states (CPUID 8000_0007h, EDX bit 8; always on aarch64).
    pub invariant: bool,
    /// The kernel's current clock source.
    pub clocksource: Result<String, Unread>,
    /// Whether the kernel lists `constant_tsc` and `nonstop_tsc` (always on aarch64).
    pub kernel_says_constant: bool,
    /// Whether this process may read the counter (`PR_GET_TSC`).
    pub readable: bool,
    /// The least time one read took; microseconds mean that a hypervisor traps it.
    pub read_cost: Nanos,
    /// The hypervisor by its own name, if there is one.
    pub hypervisor: Option<String>,
}

/// How the kernel's own clock is kept, as the kernel states it (`adjtimex`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Discipline {
    /// Whether something (NTP, PTP) keeps the clock synchronized.
    pub synchronized: bool,
    /// The correction of the clock's rate, in parts per million.
    pub frequency_ppm: f64,
    /// How far the time of day can be from true time, by the kernel's own book-keeping.
    pub most_error: Nanos,
    /// How far it is estimated to be.
    pub estimated_error: Nanos,
}

/// A counter rate that somebody else states.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRate {
    /// Who says so.
    pub source: &'static str,
    /// The rate in hertz.
    pub rate_hz: f64,
    /// The step in which it is stated, in hertz.
    pub step_hz: f64,
}

/// A computer: this one, or a simulated one.
///
/// All methods act on the calling thread. None allocates or locks unless its text says so.
pub trait Machine {
    /// Reads the counter. The CPU may move the read across neighbouring instructions. Real-time safe.
    fn ticks(&self) -> Ticks;

    /// Reads the counter after every earlier instruction has completed. Real-time safe.
    fn ticks_ordered(&self) -> Ticks;

    /// Waits until every earlier instruction has completed, reads of the counter among them; no later one begins before.
    /// Real-time safe.
    fn fence(&self);

    /// Reads a clock of the kernel. Real-time safe; the CPU clocks are system calls.
    fn read(&self, clock: Clock) -> Nanos;

    /// The time now by the kernel's clock: a reading of [`Clock::Monotonic`]. Real-time safe.
    #[inline(always)]
    fn monotonic(&self) -> Instant {
        Instant::from_monotonic(self.read(Clock::Monotonic))
    }

    /// The step of [`Clock::Monotonic`]: a reading can be so much older than the moment it was made at, and two readings
    /// so much nearer to each other than their moments.
    fn clock_step(&self) -> Nanos {
        Nanos::new(1)
    }

    /// Makes the call as a program would and drops its result; for measuring what the call costs.
    fn call(&self, call: ClockCall);

    /// Tells the CPU that this is a polling loop.
    fn relax(&self);

    /// Sleeps for `request` by the named call, exactly as a program would that calls it.
    fn sleep(&self, call: SleepCall, request: Nanos) -> Woken;

    /// Sleeps until `CLOCK_MONOTONIC` reads `deadline` or a signal is handled; may be late, is not early when it returns
    /// [`Woken::Expired`].
    fn sleep_until(&self, deadline: Instant) -> Woken;

    /// The CPU that the thread runs on now, if that can be told without a system call.
    fn cpu(&self) -> Option<Cpu>;

    /// Sets the sentinel: from now on [`sentinel_intact`](Machine::sentinel_intact) tells whether the thread has been off
    /// its CPU (or has handled a signal). False if this machine has no sentinel. Ends with
    /// [`sentinel_disarm`](Machine::sentinel_disarm), on the same thread.
    fn sentinel_arm(&self) -> bool;

    /// Whether the sentinel set before is untouched. Costs one load. False when none is set.
    fn sentinel_intact(&self) -> bool;

    /// Takes the sentinel away; harmless when none is set.
    fn sentinel_disarm(&self);

    /// How the thread is scheduled.
    fn policy(&self) -> Policy;

    /// Changes how the thread is scheduled, and nothing else: a thread whose children are not to inherit its policy
    /// (`SCHED_RESET_ON_FORK`) keeps that. On Windows takes a lock.
    ///
    /// # Errors
    /// The system refused; the remedy names the limit or capability.
    fn set_policy(&self, policy: Policy) -> Result<(), Refused>;

    /// The CPUs the thread may run on. Allocates.
    fn affinity(&self) -> CpuSet;

    /// Restricts the thread to these CPUs.
    ///
    /// # Errors
    /// A CPU does not exist or is not allowed here, or the set is empty.
    fn set_affinity(&self, cpus: &CpuSet) -> Result<(), Refused>;

    /// Locks all memory of the process, present and future, until as many [`unlock_memory`](Machine::unlock_memory). Any thread may
    /// make either call. The kernel has one lock: the last unlocking also ends the locks that others made by `mlock`.
    ///
    /// # Errors
    /// The limit on locked memory is too small.
    fn lock_memory(&self) -> Result<(), Refused>;

    /// Takes back one [`lock_memory`](Machine::lock_memory) that was granted; the last unlocks.
    fn unlock_memory(&self);

    /// How late the kernel may make the thread's timers on purpose.
    fn timer_slack(&self) -> Nanos;

    /// Sets the timer slack; at least 1 ns. Has no effect on real-time policies, which have none.
    fn set_timer_slack(&self, slack: Nanos);

    /// The wishes that are held on the thread, for [`Held`](crate::Held); none when the thread is ending. The first call of a
    /// thread allocates.
    fn thread_settings(&self) -> Option<ThreadSettings>;

    /// What the kernel counted for the thread so far. A few system calls; opens a file and allocates.
    fn usage(&self) -> ThreadUsage;

    /// What the kernel counted for a CPU so far. Opens files; allocates.
    ///
    /// # Errors
    /// The kernel's counters cannot be read here.
    fn cpu_counters(&self, cpu: Cpu) -> Result<CpuCounters, Unread>;

    /// How much of each period real-time threads may use a CPU before the kernel stalls them: (runtime, period);
    /// none if there is no such limit. Opens files.
    fn real_time_throttle(&self) -> Option<(Nanos, Nanos)>;

    /// What speaks for and against the counter. Opens files; takes some 100 µs.
    fn counter_evidence(&self) -> CounterEvidence;

    /// The kernel's current clock source. Opens a file.
    ///
    /// # Errors
    /// The file cannot be read here.
    fn clocksource(&self) -> Result<String, Unread>;

    /// Rates that others state for the counter, to compare ours with. Reads the kernel's log; slow.
    fn published_rates(&self) -> Vec<PublishedRate>;

    /// How the kernel's clock is kept.
    ///
    /// # Errors
    /// The system does not tell.
    fn discipline(&self) -> Result<Discipline, Unread>;

    /// What the machine says of itself. Opens many files; takes milliseconds.
    fn facts(&self) -> Facts;
}
