//! System calls about other threads: their scheduling policy and their CPU time.
#![expect(unsafe_code, reason = "scheduling calls of libc on other threads, by their numbers")]

use hairspring_machine::{Nanos, Policy};

/// The kernel's number of the calling thread.
pub(crate) fn own_number() -> i32 {
    // SAFETY: no arguments; cannot fail.
    unsafe { libc::gettid() }
}

/// Sets the scheduling policy of a thread of this process. False: the system refused.
pub(crate) fn set_policy_of(thread: i32, policy: Policy) -> bool {
    let (number, priority) = match policy {
        Policy::Fifo(priority) => (libc::SCHED_FIFO, priority),
        Policy::RoundRobin(priority) => (libc::SCHED_RR, priority),
        Policy::Other | Policy::Unknown(_) => (libc::SCHED_OTHER, 0),
    };
    let parameter = libc::c_int::from(priority);
    // The kernel's own call: musl's function of this name always fails, because POSIX means whole processes by it.
    // SAFETY: a live structure, which is one int. The thread is one of the executive's, which has not been joined (the
    // seats' doing).
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, number, &raw const parameter) == 0 }
}

/// Puts the calling thread behind the others of its priority.
pub(crate) fn give_way() {
    // SAFETY: no arguments; cannot fail on Linux.
    unsafe { libc::sched_yield() };
}

/// CPU time that a thread of this process has used; none if it has ended.
pub(crate) fn cpu_time_of(thread: i32) -> Option<Nanos> {
    // The kernel's own encoding of "CPU clock of that thread": the number's complement, the mark of a thread (4), and
    // the scheduler's clock (2). pthread_getcpuclockid computes the same from a pthread_t.
    let clock = !thread << 3 | 6;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live structure; the kernel refuses a clock of a thread that is gone.
    let code = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (code == 0).then(|| Nanos::from_secs(time.tv_sec) + Nanos::new(time.tv_nsec))
}

/// How often a thread of this process has left the CPU, of its own accord or preempted; none if it has ended. Reads a
/// file of the kernel.
pub(crate) fn switches_of(thread: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
    let counts = text.lines().filter(|line| line.contains("voluntary_ctxt_switches:"));
    counts.map(|line| line.rsplit('\t').next()?.trim().parse::<u64>().ok()).sum()
}

/// The first characters of a name, as the kernel shows it.
pub(crate) fn thread_name(name: &str) -> String {
    name.chars().filter(|&letter| letter != '\0').take(15).collect()
}
