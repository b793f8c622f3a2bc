//! Linux on every CPU: clocks, sleeps, placement and the kernel's counters, through libc.

use std::io::Error;
use std::mem::MaybeUninit;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Host, arch, linux_facts, linux_idle, sentinel};
use crate::facts::{Fact, Facts, Unread};
use crate::{
    Clock, ClockCall, CounterEvidence, Cpu, CpuCounters, CpuSet, Discipline, Heat, IdleLimit, Instant, Machine, Nanos,
    Policy, PublishedRate, Refused, SleepCall, ThreadSettings, ThreadUsage, Ticks, Woken,
};

/// The kernel's unit in /proc/stat: USER_HZ is 100 on every architecture that has a back-end here.
const USER_TICK: Nanos = Nanos::from_millis(10);

/// The memory locks in force.
static MEMORY_LOCKS: Mutex<MemoryLocks> = Mutex::new(MemoryLocks { process: 0, count: 0 });

/// How often memory was locked, and by which process. The kernel has one lock for a process, does not count, and gives
/// a forked child none.
struct MemoryLocks {
    process: u32,
    count: usize,
}

impl MemoryLocks {
    fn of(process: u32) -> MutexGuard<'static, Self> {
        let mut locks = MEMORY_LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
        locks.belong_to(process);
        locks
    }

    /// Forgets the locks of another process: this one was forked from it.
    fn belong_to(&mut self, process: u32) {
        if self.process != process {
            *self = Self { process, count: 0 };
        }
    }
}

/// Reads of the counter that measure its least cost; enough that one of them is undisturbed.
const COST_READS: usize = 64;

impl Machine for Host {
    #[inline(always)]
    fn ticks(&self) -> Ticks {
        arch::ticks()
    }

    #[inline(always)]
    fn ticks_ordered(&self) -> Ticks {
        arch::ticks_ordered()
    }

    #[inline(always)]
    fn fence(&self) {
        arch::fence();
    }

    #[inline(always)]
    fn read(&self, clock: Clock) -> Nanos {
        clock_gettime(match clock {
            Clock::Monotonic => libc::CLOCK_MONOTONIC,
            Clock::MonotonicRaw => libc::CLOCK_MONOTONIC_RAW,
            Clock::MonotonicCoarse => libc::CLOCK_MONOTONIC_COARSE,
            Clock::Boottime => libc::CLOCK_BOOTTIME,
            Clock::Realtime => libc::CLOCK_REALTIME,
            Clock::Tai => libc::CLOCK_TAI,
            Clock::ThreadCpu => libc::CLOCK_THREAD_CPUTIME_ID,
            Clock::ProcessCpu => libc::CLOCK_PROCESS_CPUTIME_ID,
        })
    }

    #[inline(always)]
    fn call(&self, call: ClockCall) {
        match call {
            ClockCall::ClockGettime(clock) => drop(std::hint::black_box(self.read(clock))),
            ClockCall::Gettimeofday => gettimeofday(),
            ClockCall::StdInstant => drop(std::hint::black_box(std::time::Instant::now())),
        }
    }

    #[inline(always)]
    fn relax(&self) {
        arch::relax();
    }

    fn sleep(&self, call: SleepCall, request: Nanos) -> Woken {
        match call {
            SleepCall::Nanosleep => {
                let span = timespec(request);
                // SAFETY: `span` outlives the call; no remainder is asked for.
                woken(unsafe { libc::nanosleep(&raw const span, std::ptr::null_mut()) })
            }
            SleepCall::Usleep => {
                let micros = request.count().max(0).cast_unsigned().div_ceil(1_000);
                // SAFETY: usleep takes a plain number; glibc accepts more than a second.
                woken(unsafe { libc::usleep(libc::useconds_t::try_from(micros).unwrap_or(libc::useconds_t::MAX)) })
            }
            SleepCall::StdSleep => {
                std::thread::sleep(request.try_into().unwrap_or_default());
                Woken::Expired
            }
            SleepCall::ClockNanosleep => self.sleep_until(self.monotonic() + request),
        }
    }

    #[inline]
    fn sleep_until(&self, deadline: Instant) -> Woken {
        let deadline = timespec(deadline.as_monotonic());
        // SAFETY: `deadline` outlives the call; with TIMER_ABSTIME no remainder is written.
        woken(unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const deadline, std::ptr::null_mut())
        })
    }

    #[inline(always)]
    fn cpu(&self) -> Option<Cpu> {
        sentinel::cpu()
    }

    #[inline(always)]
    fn sentinel_arm(&self) -> bool {
        sentinel::arm()
    }

    #[inline(always)]
    fn sentinel_intact(&self) -> bool {
        sentinel::intact()
    }

    #[inline(always)]
    fn sentinel_disarm(&self) {
        sentinel::disarm();
    }

    fn policy(&self) -> Policy {
        let mut priority: libc::c_int = 0;
        // The kernel's own calls: musl's functions of these names always fail, because POSIX means whole processes by
        // them.
        // SAFETY: 0 is the calling thread; the kernel writes the structure whose address it is given, which is one int.
        let policy = unsafe {
            libc::syscall(libc::SYS_sched_getparam, 0, &raw mut priority);
            libc::syscall(libc::SYS_sched_getscheduler, 0) as libc::c_int
        };
        let priority = u8::try_from(priority).unwrap_or(0);
        match policy & !libc::SCHED_RESET_ON_FORK {
            libc::SCHED_OTHER => Policy::Other,
            libc::SCHED_FIFO => Policy::Fifo(priority),
            libc::SCHED_RR => Policy::RoundRobin(priority),
            other => Policy::Unknown(other),
        }
    }

    fn set_policy(&self, policy: Policy) -> Result<(), Refused> {
        let (number, priority) = match policy {
            Policy::Other => (libc::SCHED_OTHER, 0),
            Policy::Fifo(priority) => (libc::SCHED_FIFO, priority),
            Policy::RoundRobin(priority) => (libc::SCHED_RR, priority),
            Policy::Unknown(number) => (number, 0),
        };
        let parameter = libc::c_int::from(priority);
        // The flag is no part of the policy that is asked for, and to take it back needs a permission.
        // SAFETY: 0 is the calling thread; the call takes no pointers.
        let flag = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) } as libc::c_int & libc::SCHED_RESET_ON_FORK;
        // SAFETY: 0 is the calling thread; the structure, which is one int, outlives the call.
        let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, number | flag, &raw const parameter) };
        refusal(result as libc::c_int, || {
            (format!("set the scheduling policy to {policy}"), policy_remedy(policy).to_owned())
        })
    }

    fn affinity(&self) -> CpuSet {
        let set = affinity_set();
        let cpus = 0..u32::try_from(libc::CPU_SETSIZE).unwrap_or(0);
        // SAFETY: every number below CPU_SETSIZE lies inside the set.
        CpuSet(cpus.filter(|&cpu| unsafe { libc::CPU_ISSET(cpu as usize, &set) }).map(Cpu).collect())
    }

    fn set_affinity(&self, cpus: &CpuSet) -> Result<(), Refused> {
        let refused = |said: String| {
            let numbers: Vec<String> = cpus.0.iter().map(|cpu| cpu.0.to_string()).collect();
            Refused {
                attempted: format!("pin to CPU {}", numbers.join(",")),
                said,
                remedy: "choose among the CPUs in Cpus_allowed_list of /proc/self/status".to_owned(),
            }
        };
        // SAFETY: all zeros is a valid, empty set.
        let mut set: libc::cpu_set_t = unsafe { MaybeUninit::zeroed().assume_init() };
        for cpu in &cpus.0 {
            if i64::from(cpu.0) >= i64::from(libc::CPU_SETSIZE) {
                return Err(refused(format!("CPU {} is beyond what can be asked for", cpu.0)));
            }
            // SAFETY: the number lies inside the set, as just checked.
            unsafe { libc::CPU_SET(cpu.0 as usize, &mut set) };
        }
        let before = affinity_set();
        pin(&set).map_err(|error| refused(error.to_string()))?;
        // The kernel leaves out silently what does not exist or is not allowed, as long as one CPU remains.
        // SAFETY: both sets are initialised.
        if unsafe { libc::CPU_EQUAL(&affinity_set(), &set) } {
            return Ok(());
        }
        let _ = pin(&before);
        Err(refused("not all of these CPUs exist and are allowed".to_owned()))
    }

    fn lock_memory(&self) -> Result<(), Refused> {
        let mut locks = MemoryLocks::of(std::process::id());
        // A lock in force covers future memory, too: asking again would only walk through all pages.
        if locks.count == 0 {
            lock_all()?;
        }
        locks.count += 1;
        Ok(())
    }

    fn unlock_memory(&self) {
        let mut locks = MemoryLocks::of(std::process::id());
        let was = locks.count;
        locks.count = was.saturating_sub(1);
        if was == 1 {
            // SAFETY: munlockall changes no memory, only whether it may be paged out.
            unsafe { libc::munlockall() };
        }
    }

    fn limit_idle(&self, most: Nanos) -> Result<IdleLimit, Refused> {
        linux_idle::limit(most)
    }

    fn timer_slack(&self) -> Nanos {
        // SAFETY: PR_GET_TIMERSLACK takes no pointers; the result is the slack in nanoseconds.
        Nanos::new(i64::from(unsafe { libc::prctl(libc::PR_GET_TIMERSLACK, 0, 0, 0, 0) }))
    }

    fn set_timer_slack(&self, slack: Nanos) {
        // SAFETY: PR_SET_TIMERSLACK takes a plain number; 0 would mean "the default", hence at least 1.
        unsafe {
            libc::prctl(libc::PR_SET_TIMERSLACK, libc::c_ulong::try_from(slack.count().max(1)).unwrap_or(1), 0, 0, 0)
        };
    }

    fn thread_settings(&self) -> Option<ThreadSettings> {
        super::thread_settings()
    }

    fn usage(&self) -> ThreadUsage {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel fills the structure whose address it is given; a zeroed one is valid.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        let run_delay = std::fs::read_to_string("/proc/thread-self/schedstat")
            .ok()
            .and_then(|text| text.split_whitespace().nth(1)?.parse().ok())
            .map(Nanos::new);
        ThreadUsage {
            cpu: self.read(Clock::ThreadCpu),
            involuntary_switches: u64::try_from(usage.ru_nivcsw).ok(),
            voluntary_switches: u64::try_from(usage.ru_nvcsw).ok(),
            run_delay,
        }
    }

    fn cpu_counters(&self, cpu: Cpu) -> Result<CpuCounters, Unread> {
        let (steal_ticks, interrupts) =
            linux_facts::counters_steal_and_interrupts(&linux_facts::Root::default(), cpu.0)?;
        Ok(CpuCounters { steal: USER_TICK * i64::try_from(steal_ticks).unwrap_or(i64::MAX), interrupts })
    }

    fn heat(&self, cpu: Cpu) -> Heat {
        linux_facts::heat(&linux_facts::Root::default(), cpu.0)
    }

    fn real_time_throttle(&self) -> Option<(Nanos, Nanos)> {
        let micros = |name: &str| -> Option<i64> {
            std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?.trim().parse().ok()
        };
        let (runtime, period) = (micros("sched_rt_runtime_us")?, micros("sched_rt_period_us")?);
        throttle(runtime, period)
    }

    fn counter_evidence(&self) -> CounterEvidence {
        let readable = arch::counter_readable();
        CounterEvidence {
            name: arch::COUNTER_NAME,
            invariant: arch::invariant(),
            clocksource: self.clocksource(),
            kernel_says_constant: arch::ALWAYS_CONSTANT
                || linux_facts::cpu_flags(&linux_facts::Root::default()).is_ok_and(|flags| says_constant(&flags)),
            readable,
            read_cost: if readable { least_read_cost(*self) } else { Nanos::MAX },
            hypervisor: arch::hypervisor(),
        }
    }

    fn clocksource(&self) -> Result<String, Unread> {
        linux_facts::clocksource(&linux_facts::Root::default())
    }

    fn published_rates(&self) -> Vec<PublishedRate> {
        let mut rates = arch::published_rates();
        // Under an emulator a program reads another counter than the one in the kernel's log.
        if arch::COUNTER_NAME == "tsc" {
            rates.extend(kernel_rates());
        }
        rates
    }

    fn discipline(&self) -> Result<Discipline, Unread> {
        let mut state = MaybeUninit::<libc::timex>::zeroed();
        // SAFETY: with all modes zero the call only reads; the kernel fills the structure, and a zeroed one is valid.
        let (result, state) = unsafe {
            let result = libc::adjtimex(state.as_mut_ptr());
            (result, state.assume_init())
        };
        discipline_of(result, &state)
    }

    fn facts(&self) -> Facts {
        let mut facts = linux_facts::read(&linux_facts::Root::default());
        let after = facts.facts.iter().position(|fact| fact.id == "kernel.clocksources");
        let rate = self.discipline().map(rate_correction);
        let fact = Fact { id: "kernel.clock_rate", label: "Clock's rate correction", value: rate, private: false };
        facts.facts.insert(after.map_or(0, |at| at + 1), fact);
        facts
    }
}

/// Remedy for a refused policy.
fn policy_remedy(policy: Policy) -> &'static str {
    match policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) if !(1..=99).contains(&priority) => {
            "choose a priority from 1 to 99"
        }
        _ => {
            "run as root, or `sudo setcap cap_sys_nice+ep` the program, or raise the limit rtprio in /etc/security/limits.conf"
        }
    }
}

/// The kernel's two numbers as the limit that they make.
fn throttle(runtime_us: i64, period_us: i64) -> Option<(Nanos, Nanos)> {
    // -1 is no limit, and a runtime that fills the period is none either.
    (0..period_us).contains(&runtime_us).then(|| (Nanos::from_micros(runtime_us), Nanos::from_micros(period_us)))
}

/// Whether these flags of the CPU promise a counter of constant rate that never stops.
fn says_constant(flags: &[String]) -> bool {
    ["constant_tsc", "nonstop_tsc"].iter().all(|wanted| flags.iter().any(|flag| flag == wanted))
}

/// State of the clock's discipline, from the result of `adjtimex` and the structure that it filled.
fn discipline_of(result: libc::c_int, state: &libc::timex) -> Result<Discipline, Unread> {
    if result < 0 {
        return Err(Unread { reason: format!("adjtimex: {}", Error::last_os_error()), remedy: None });
    }
    Ok(Discipline {
        synchronized: state.status & libc::STA_UNSYNC == 0,
        // In units of 2⁻¹⁶ ppm.
        frequency_ppm: state.freq as f64 / 65_536.0,
        most_error: Nanos::from_micros(state.maxerror),
        estimated_error: Nanos::from_micros(state.esterror),
    })
}

/// The rate of the kernel's clock for people. In whole ppm, because a synchronized clock is corrected by a little all
/// the time.
fn rate_correction(discipline: Discipline) -> String {
    let synchronized = if discipline.synchronized { "synchronized" } else { "not synchronized" };
    format!("{:+} ppm, {synchronized}", discipline.frequency_ppm.round() as i64)
}

fn lock_all() -> Result<(), Refused> {
    // SAFETY: mlockall changes no memory, only whether it may be paged out.
    refusal(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }, || {
        (
            "lock memory".to_owned(),
            "run as root, or raise the limit memlock: `ulimit -l unlimited` or /etc/security/limits.conf".to_owned(),
        )
    })
}

fn affinity_set() -> libc::cpu_set_t {
    let mut set = MaybeUninit::<libc::cpu_set_t>::zeroed();
    // SAFETY: the kernel fills at most the stated size; a zeroed set is a valid, empty one.
    unsafe {
        libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), set.as_mut_ptr());
        set.assume_init()
    }
}

fn pin(set: &libc::cpu_set_t) -> Result<(), Error> {
    // SAFETY: the set outlives the call and has the stated size.
    let result = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) };
    if result == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

#[inline(always)]
fn clock_gettime(clock: libc::clockid_t) -> Nanos {
    let mut time = MaybeUninit::<libc::timespec>::uninit();
    // SAFETY: `time` is writable; the clocks named in `read` exist on every Linux that this crate supports, so the call
    // cannot fail and the structure is filled.
    let time = unsafe {
        libc::clock_gettime(clock, time.as_mut_ptr());
        time.assume_init()
    };
    // The kernel's clocks stay below 2⁶³ ns until the year 2262.
    Nanos::new(time.tv_sec * 1_000_000_000 + time.tv_nsec)
}

#[inline(always)]
fn gettimeofday() {
    let mut time = MaybeUninit::<libc::timeval>::uninit();
    // SAFETY: `time` is writable and no time zone is asked for; the call cannot fail.
    unsafe { libc::gettimeofday(time.as_mut_ptr(), std::ptr::null_mut()) };
    std::hint::black_box(&time);
}

fn timespec(span: Nanos) -> libc::timespec {
    let nanos = span.count().max(0);
    libc::timespec { tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 }
}

/// Zero means that the time is over; anything else (EINTR as result or as errno) that a signal came.
#[inline(always)]
fn woken(result: libc::c_int) -> Woken {
    if result == 0 { Woken::Expired } else { Woken::Signal }
}

fn refusal(result: libc::c_int, explain: impl FnOnce() -> (String, String)) -> Result<(), Refused> {
    if result == 0 {
        return Ok(());
    }
    let said = Error::last_os_error().to_string();
    let (attempted, remedy) = explain();
    Err(Refused { attempted, said, remedy })
}

/// The least time that a counter read took, by the kernel's clock.
fn least_read_cost(host: Host) -> Nanos {
    let cost = |reads: i64| {
        let start = host.read(Clock::Monotonic);
        for _ in 0..reads {
            std::hint::black_box(arch::ticks_ordered());
        }
        host.read(Clock::Monotonic) - start
    };
    let least = |reads| (0..COST_READS).map(|_| cost(reads)).min().unwrap_or(Nanos::MAX);
    cost_of_one(least(17), least(1))
}

/// The cost of a read, by the times of 17 reads and of 1 with the same frame around them.
fn cost_of_one(of_17: Nanos, of_1: Nanos) -> Nanos {
    Nanos::new((of_17 - of_1).count().max(0) / 16)
}

/// The rates of the TSC that the kernel logged at boot, if this process may read the log.
fn kernel_rates() -> Vec<PublishedRate> {
    const READ_ALL: libc::c_int = 3;
    let mut log = vec![0_u8; 1 << 18];
    let room = libc::c_int::try_from(log.len()).unwrap_or(0);
    // SAFETY: the kernel writes at most `room` bytes to the buffer, which has that many.
    let length = unsafe { libc::klogctl(READ_ALL, log.as_mut_ptr().cast(), room) };
    let Ok(length) = usize::try_from(length) else { return Vec::new() };
    rates_in_log(&String::from_utf8_lossy(&log[..length]))
}

fn rates_in_log(log: &str) -> Vec<PublishedRate> {
    [("tsc: Detected ", "kernel log: detected"), ("tsc: Refined TSC clocksource calibration: ", "kernel log: refined")]
        .into_iter()
        .filter_map(|(prefix, source)| {
            let rest = &log[log.rfind(prefix)? + prefix.len()..];
            let megahertz: f64 = rest.split_whitespace().next()?.parse().ok()?;
            // The log gives three decimals of a megahertz.
            Some(PublishedRate { source, rate_hz: megahertz * 1e6, step_hz: 1e3 })
        })
        .collect()
}

#[cfg(test)]
mod tests;
