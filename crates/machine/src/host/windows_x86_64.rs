//! Windows on x86-64: the time-stamp counter against `QueryPerformanceCounter`, waitable timers, the real-time class.
//!
//! # The reference
//! [`Clock::Monotonic`] is `QueryPerformanceCounter`, which nothing disciplines: `MonotonicRaw` is the same clock, and
//! the two never part. It steps by 100 ns, which [`Machine::clock_step`] returns. It runs on in suspend; `Boottime` is
//! `Monotonic` plus the time in suspend, so that their distance still reveals a suspend.
//!
//! # Sleep
//! A waitable timer of high resolution (Windows 10, version 1803), one for each thread, set relative to a reading: an
//! absolute due time would be one of the time of day and would step with it. The deadline stays absolute all the same:
//! after each wake-up the reference is read, and what is left is waited for again. So a sleep is never early.
//!
//! # Priorities
//! A real-time policy is a level of `REALTIME_PRIORITY_CLASS`, 16 to 31: strictly by priority, with a time slice among
//! equals. Windows has no other; `Fifo` is granted as that and read back as `RoundRobin`. The class belongs to the
//! process and stays while any of its threads has such a policy (`windows_class.rs`); other threads are lifted with it,
//! but their reported policy does not change.
//!
//! # Under Wine
//! Wine answers all these calls and passes only some on. Calls that it does not pass on (priorities) are refused here.

use std::cell::Cell;
use std::io::Error;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

use windows_sys::Win32::Foundation::{CloseHandle, FILETIME, HANDLE, WAIT_OBJECT_0};
use windows_sys::Win32::System::Kernel::PROCESSOR_NUMBER;
use windows_sys::Win32::System::Performance::{QueryPerformanceCounter, QueryPerformanceFrequency};
use windows_sys::Win32::System::SystemInformation::{GROUP_AFFINITY, GetSystemTimePreciseAsFileTime, GetTickCount64};
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CreateWaitableTimerExW, GetCurrentProcess, GetCurrentProcessorNumberEx,
    GetCurrentThread, GetPriorityClass, GetProcessTimes, GetThreadGroupAffinity, GetThreadPriority, GetThreadTimes,
    INFINITE, NORMAL_PRIORITY_CLASS, REALTIME_PRIORITY_CLASS, SetPriorityClass, SetThreadGroupAffinity,
    SetThreadPriority, SetWaitableTimer, Sleep, THREAD_PRIORITY_NORMAL, TIMER_ALL_ACCESS, WaitForSingleObject,
};

use super::windows_class::{Class, System};
use super::windows_levels::{level_of, packed, priority_of, unpacked};
use super::{Host, windows_facts, x86_64};
use crate::facts::{Facts, Unread};
use crate::{
    Clock, ClockCall, CounterEvidence, Cpu, CpuCounters, CpuSet, Discipline, IdleLimit, Instant, Machine, Nanos,
    Policy, PublishedRate, Refused, SleepCall, ThreadSettings, ThreadUsage, Ticks, Woken,
};

/// The unit of Windows' times, in nanoseconds.
const UNIT_NS: i64 = 100;
/// 1970 as a file time, which counts from 1601.
const UNIX_EPOCH_UNITS: i64 = 116_444_736_000_000_000;
/// CPUs in one processor group.
const GROUP_CPUS: u32 = 64;
/// Reads of the counter between two of the reference, enough that a step of it hardly counts; and how often.
const COST_READS: i64 = 256;
const COST_TRIES: usize = 16;

impl Machine for Host {
    #[inline(always)]
    fn ticks(&self) -> Ticks {
        x86_64::ticks()
    }

    #[inline(always)]
    fn ticks_ordered(&self) -> Ticks {
        x86_64::ticks_ordered()
    }

    #[inline(always)]
    fn fence(&self) {
        x86_64::fence();
    }

    #[inline]
    fn read(&self, clock: Clock) -> Nanos {
        match clock {
            Clock::Monotonic | Clock::MonotonicRaw => performance_counter(),
            Clock::MonotonicCoarse => Nanos::from_millis(i64::try_from(tick_count()).unwrap_or(i64::MAX)),
            Clock::Boottime => performance_counter() + units(windows_facts::suspended_units()),
            Clock::Realtime | Clock::Tai => time_of_day(),
            Clock::ThreadCpu => thread_cpu(),
            Clock::ProcessCpu => process_cpu(),
        }
    }

    fn clock_step(&self) -> Nanos {
        let frequency = frequency();
        Nanos::new((1_000_000_000 + frequency - 1) / frequency)
    }

    #[inline]
    fn call(&self, call: ClockCall) {
        match call {
            ClockCall::ClockGettime(clock) => drop(std::hint::black_box(self.read(clock))),
            ClockCall::Gettimeofday => drop(std::hint::black_box(time_of_day())),
            ClockCall::StdInstant => drop(std::hint::black_box(std::time::Instant::now())),
        }
    }

    #[inline(always)]
    fn relax(&self) {
        x86_64::relax();
    }

    fn sleep(&self, call: SleepCall, request: Nanos) -> Woken {
        match call {
            SleepCall::Nanosleep | SleepCall::Usleep => {
                let millis = request.count().max(0).cast_unsigned().div_ceil(1_000_000);
                // SAFETY: Sleep takes a plain number.
                unsafe { Sleep(u32::try_from(millis).unwrap_or(INFINITE - 1)) };
            }
            SleepCall::StdSleep => std::thread::sleep(request.try_into().unwrap_or_default()),
            SleepCall::ClockNanosleep => return self.sleep_until(self.monotonic() + request),
        }
        Woken::Expired
    }

    fn sleep_until(&self, deadline: Instant) -> Woken {
        loop {
            let left = (deadline.as_monotonic() - performance_counter()).count();
            if left <= 0 {
                return Woken::Expired;
            }
            TIMER.with(|timer| timer.wait(left.cast_unsigned().div_ceil(UNIT_NS.cast_unsigned())));
        }
    }

    #[inline]
    fn cpu(&self) -> Option<Cpu> {
        let mut number = PROCESSOR_NUMBER { Group: 0, Number: 0, Reserved: 0 };
        // SAFETY: the call fills the structure whose address it is given, and cannot fail.
        unsafe { GetCurrentProcessorNumberEx(&raw mut number) };
        Some(Cpu(u32::from(number.Group) * GROUP_CPUS + u32::from(number.Number)))
    }

    #[inline(always)]
    fn sentinel_arm(&self) -> bool {
        false
    }

    #[inline(always)]
    fn sentinel_intact(&self) -> bool {
        false
    }

    #[inline(always)]
    fn sentinel_disarm(&self) {}

    fn policy(&self) -> Policy {
        match HOLDS_CLASS.with(|holds| CLASS.of(&Kernel, &holds.0)) {
            (NORMAL_PRIORITY_CLASS, THREAD_PRIORITY_NORMAL) => Policy::Other,
            (REALTIME_PRIORITY_CLASS, level) => Policy::RoundRobin(priority_of(level)),
            (class, level) => Policy::Unknown(packed(class, level)),
        }
    }

    fn set_policy(&self, policy: Policy) -> Result<(), Refused> {
        match policy {
            Policy::Fifo(priority) | Policy::RoundRobin(priority) => real_time(policy, priority),
            Policy::Other => ordinary(NORMAL_PRIORITY_CLASS, THREAD_PRIORITY_NORMAL),
            Policy::Unknown(number) => {
                let (class, level) = unpacked(number);
                ordinary(class, level)
            }
        }
        .map_err(|said| Refused {
            attempted: format!("set the scheduling policy to {policy}"),
            remedy: match policy {
                Policy::Fifo(p) | Policy::RoundRobin(p) if !(1..=99).contains(&p) => {
                    "choose a priority from 1 to 99".to_owned()
                }
                _ if windows_facts::wine().is_some() => "use it on Windows itself, or on the host of Wine".to_owned(),
                _ => "run as administrator, or grant the user the right \"Increase scheduling priority\"".to_owned(),
            },
            said,
        })
    }

    fn affinity(&self) -> CpuSet {
        let affinity = group_affinity();
        let first = u32::from(affinity.Group) * GROUP_CPUS;
        CpuSet((0..GROUP_CPUS).filter(|bit| affinity.Mask >> bit & 1 == 1).map(|bit| Cpu(first + bit)).collect())
    }

    fn set_affinity(&self, cpus: &CpuSet) -> Result<(), Refused> {
        let refused = |said: String| {
            let numbers: Vec<String> = cpus.0.iter().map(|cpu| cpu.0.to_string()).collect();
            Refused {
                attempted: format!("pin to CPU {}", numbers.join(",")),
                said,
                remedy: "choose among the CPUs of one processor group that the process may use: those of \
                         Process.ProcessorAffinity"
                    .to_owned(),
            }
        };
        let Some(first) = cpus.0.first() else { return Err(refused("no CPU was named".to_owned())) };
        let group = first.0 / GROUP_CPUS;
        if let Some(other) = cpus.0.iter().find(|cpu| cpu.0 / GROUP_CPUS != group) {
            return Err(refused(format!("CPU {} is in another processor group than CPU {}", other.0, first.0)));
        }
        let Ok(group) = u16::try_from(group) else {
            return Err(refused(format!("CPU {} is beyond what can be asked for", first.0)));
        };
        let mask = cpus.0.iter().fold(0, |mask, cpu| mask | 1_usize << (cpu.0 % GROUP_CPUS));
        let before = group_affinity();
        let wanted = GROUP_AFFINITY { Mask: mask, Group: group, Reserved: [0; 3] };
        // SAFETY: the structure outlives the call; the former affinity is not asked for.
        if unsafe { SetThreadGroupAffinity(GetCurrentThread(), &raw const wanted, null_mut()) } == 0 {
            return Err(refused(Error::last_os_error().to_string()));
        }
        let now = group_affinity();
        if (now.Mask, now.Group) == (mask, group) {
            return Ok(());
        }
        // SAFETY: the structure that the system filled before outlives the call.
        unsafe { SetThreadGroupAffinity(GetCurrentThread(), &raw const before, null_mut()) };
        Err(refused("not all of these CPUs exist and are allowed".to_owned()))
    }

    fn lock_memory(&self) -> Result<(), Refused> {
        Err(Refused {
            attempted: "lock memory".to_owned(),
            said: "Windows has no call that locks all memory of a process".to_owned(),
            remedy: "do without, or lock the buffers that matter with VirtualLock".to_owned(),
        })
    }

    fn unlock_memory(&self) {}

    fn limit_idle(&self, _most: Nanos) -> Result<IdleLimit, Refused> {
        Err(Refused {
            attempted: "limit idle states".to_owned(),
            said: "Windows has no call that does".to_owned(),
            remedy:
                "switch processor idle off in the power plan: powercfg /setacvalueindex scheme_current sub_processor \
                     IDLEDISABLE 1"
                    .to_owned(),
        })
    }

    fn timer_slack(&self) -> Nanos {
        // Timers of high resolution are not made late on purpose.
        Nanos::ZERO
    }

    fn set_timer_slack(&self, _slack: Nanos) {}

    fn thread_settings(&self) -> Option<ThreadSettings> {
        super::thread_settings()
    }

    fn usage(&self) -> ThreadUsage {
        ThreadUsage { cpu: thread_cpu(), ..ThreadUsage::default() }
    }

    fn cpu_counters(&self, _cpu: Cpu) -> Result<CpuCounters, Unread> {
        let reason = "Windows does not say what a hypervisor took from a CPU".to_owned();
        Err(Unread { reason, remedy: None })
    }

    fn real_time_throttle(&self) -> Option<(Nanos, Nanos)> {
        None
    }

    fn counter_evidence(&self) -> CounterEvidence {
        CounterEvidence {
            name: x86_64::COUNTER_NAME,
            invariant: x86_64::invariant(),
            clocksource: self.clocksource(),
            kernel_says_constant: windows_facts::kernel_says_constant(),
            // User mode may always read it on Windows.
            readable: true,
            read_cost: least_read_cost(),
            hypervisor: x86_64::hypervisor(),
        }
    }

    fn clocksource(&self) -> Result<String, Unread> {
        windows_facts::clocksource(frequency())
    }

    fn published_rates(&self) -> Vec<PublishedRate> {
        x86_64::published_rates()
    }

    fn discipline(&self) -> Result<Discipline, Unread> {
        Err(Unread {
            reason: "Windows does not say how far its clock may be off".to_owned(),
            remedy: Some("ask the time service: w32tm /query /status".to_owned()),
        })
    }

    fn facts(&self) -> Facts {
        windows_facts::read(frequency(), self.affinity().0.len())
    }
}

/// The rate of the reference in hertz; constant while the system runs.
#[inline]
fn frequency() -> i64 {
    static FREQUENCY: AtomicU64 = AtomicU64::new(0);
    // Relaxed: a constant of the system, computed by the first caller; nothing else depends on it.
    let known = FREQUENCY.load(Ordering::Relaxed).cast_signed();
    if known > 0 {
        return known;
    }
    let mut found = 0;
    // SAFETY: the call fills the number whose address it is given; since Windows XP it cannot fail.
    unsafe { QueryPerformanceFrequency(&raw mut found) };
    let found = found.max(1);
    FREQUENCY.store(found.cast_unsigned(), Ordering::Relaxed);
    found
}

#[inline]
fn performance_counter() -> Nanos {
    let mut count = 0_i64;
    // SAFETY: the call fills the number whose address it is given; since Windows XP it cannot fail.
    unsafe { QueryPerformanceCounter(&raw mut count) };
    let frequency = frequency();
    if frequency == 1_000_000_000 / UNIT_NS {
        return units(count);
    }
    let nanos = i128::from(count) * 1_000_000_000 / i128::from(frequency);
    Nanos::new(i64::try_from(nanos).unwrap_or(i64::MAX))
}

/// A span in units of 100 ns.
#[inline]
fn units(count: i64) -> Nanos {
    Nanos::new(count.saturating_mul(UNIT_NS))
}

fn file_time(time: FILETIME) -> i64 {
    i64::from(time.dwHighDateTime) << 32 | i64::from(time.dwLowDateTime)
}

fn tick_count() -> u64 {
    // SAFETY: the call takes nothing and cannot fail.
    unsafe { GetTickCount64() }
}

fn time_of_day() -> Nanos {
    let mut time = FILETIME::default();
    // SAFETY: the call fills the structure whose address it is given, and cannot fail.
    unsafe { GetSystemTimePreciseAsFileTime(&raw mut time) };
    units(file_time(time) - UNIX_EPOCH_UNITS)
}

/// CPU time that the scheduler has booked for the calling thread, in its own coarse steps.
fn thread_cpu() -> Nanos {
    let mut times = [FILETIME::default(); 4];
    let [created, ended, kernel, user] = &mut times;
    // SAFETY: the call fills the four structures whose addresses it is given; the handle means the calling thread.
    unsafe { GetThreadTimes(GetCurrentThread(), created, ended, kernel, user) };
    units(file_time(times[2]) + file_time(times[3]))
}

fn process_cpu() -> Nanos {
    let mut times = [FILETIME::default(); 4];
    let [created, ended, kernel, user] = &mut times;
    // SAFETY: the call fills the four structures whose addresses it is given; the handle means this process.
    unsafe { GetProcessTimes(GetCurrentProcess(), created, ended, kernel, user) };
    units(file_time(times[2]) + file_time(times[3]))
}

thread_local! {
    static TIMER: Timer = Timer::new();
    /// Whether this thread is one of those that the real-time class is held for.
    static HOLDS_CLASS: HoldsClass = const { HoldsClass(Cell::new(false)) };
}

/// Gives up the class when the thread ends.
struct HoldsClass(Cell<bool>);

impl Drop for HoldsClass {
    fn drop(&mut self) {
        CLASS.leave(&Kernel, &self.0);
    }
}

/// The real-time class of this process.
static CLASS: Class = Class::new();

/// A waitable timer of one thread.
struct Timer(HANDLE);

impl Timer {
    fn new() -> Self {
        let make = |flags| {
            // SAFETY: no security attributes and no name are valid arguments.
            unsafe { CreateWaitableTimerExW(null(), null(), flags, TIMER_ALL_ACCESS) }
        };
        let fine = make(CREATE_WAITABLE_TIMER_HIGH_RESOLUTION);
        // Before Windows 10, version 1803, there is only the kind that keeps to the system's ticks.
        Self(if fine.is_null() { make(0) } else { fine })
    }

    /// Waits for about `units` units of 100 ns; the caller reads the clock again.
    fn wait(&self, units: u64) {
        let due = i64::try_from(units).unwrap_or(i64::MAX).saturating_neg();
        // SAFETY: the handle is this thread's own timer, or null, which the calls refuse; `due` outlives the call.
        let waited = unsafe {
            SetWaitableTimer(self.0, &raw const due, 0, None, null(), 0) != 0
                && WaitForSingleObject(self.0, INFINITE) == WAIT_OBJECT_0
        };
        if !waited {
            // No timer could be had: the system's plain sleep, in whole milliseconds.
            // SAFETY: Sleep takes a plain number.
            unsafe { Sleep(u32::try_from(units / 10_000).unwrap_or(INFINITE - 1)) };
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the handle is this thread's own and is not used again; null is refused.
        unsafe { CloseHandle(self.0) };
    }
}

/// This process and the calling thread.
struct Kernel;

impl System for Kernel {
    fn class_and_level(&self) -> (u32, i32) {
        // SAFETY: the handles mean this process and the calling thread, which may always be asked.
        unsafe { (GetPriorityClass(GetCurrentProcess()), GetThreadPriority(GetCurrentThread())) }
    }

    fn set_class(&self, class: u32) -> Result<(), String> {
        // SAFETY: the handle means this process; the rest is a plain number.
        let done = unsafe { SetPriorityClass(GetCurrentProcess(), class) };
        if done != 0 { Ok(()) } else { Err(Error::last_os_error().to_string()) }
    }

    fn set_level(&self, level: i32) -> Result<(), String> {
        // SAFETY: the handle means the calling thread; the rest is a plain number.
        let done = unsafe { SetThreadPriority(GetCurrentThread(), level) };
        if done != 0 { Ok(()) } else { Err(Error::last_os_error().to_string()) }
    }
}

fn real_time(policy: Policy, priority: u8) -> Result<(), String> {
    if !(1..=99).contains(&priority) {
        return Err(format!("there is no {policy}"));
    }
    if let Some(wine) = windows_facts::wine() {
        return Err(format!("{wine} keeps priorities to itself: its host does not schedule by them"));
    }
    HOLDS_CLASS.with(|holds| CLASS.raise(&Kernel, &holds.0, level_of(priority)))
}

fn ordinary(class: u32, level: i32) -> Result<(), String> {
    HOLDS_CLASS.with(|holds| CLASS.lower(&Kernel, &holds.0, class, level))
}

fn group_affinity() -> GROUP_AFFINITY {
    let mut affinity = GROUP_AFFINITY { Mask: 0, Group: 0, Reserved: [0; 3] };
    // SAFETY: the call fills the structure whose address it is given; the handle means the calling thread.
    unsafe { GetThreadGroupAffinity(GetCurrentThread(), &raw mut affinity) };
    affinity
}

/// The least time that a counter read took, by the reference.
fn least_read_cost() -> Nanos {
    let cost = |reads: i64| {
        let start = performance_counter();
        for _ in 0..reads {
            std::hint::black_box(x86_64::ticks_ordered());
        }
        performance_counter() - start
    };
    let least = |reads| (0..COST_TRIES).map(|_| cost(reads)).min().unwrap_or(Nanos::MAX);
    Nanos::new((least(COST_READS + 1) - least(1)).count().max(0) / COST_READS)
}
