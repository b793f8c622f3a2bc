//! Verdicts on this machine, each provoked on purpose and compared with what the kernel counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hairspring_machine::{CpuSet, ThreadUsage};
use hairspring_time::{Cause, Cpu, Gaps, Host, Machine, Nanos, Timebase, Watch};
use testing::skip;

use super::{micros, millis};

/// How long a competitor keeps the CPU busy.
const SPAN: Duration = Duration::from_millis(300);

/// Runs `act` on a CPU that another thread keeps busy; returns its result and the kernel's counts.
fn beside_a_competitor<R: Send>(cpu: Cpu, act: impl FnOnce() -> R + Send) -> (R, ThreadUsage, ThreadUsage) {
    let pin = move || Host.set_affinity(&CpuSet(vec![cpu])).expect("our own CPU");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            pin();
            let start = Instant::now();
            while start.elapsed() < SPAN {
                std::hint::spin_loop();
            }
        });
        let acting = scope.spawn(move || {
            pin();
            let before = Host.usage();
            let result = act();
            (result, before, Host.usage())
        });
        acting.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn has_sentinel() -> bool {
    let there = Host.sentinel_arm();
    Host.sentinel_disarm();
    there
}

/// Compares the counts of a watch with the kernel's. The kernel counts a little more: from the first reading of its
/// counters to the last.
#[track_caller]
fn check(test: &str, preempted: Gaps, before: ThreadUsage, after: ThreadUsage) {
    let (Some(from), Some(to)) = (before.involuntary_switches, after.involuntary_switches) else {
        return skip(test, "the kernel does not tell how often a thread was taken off its CPU");
    };
    let switches = to - from;
    let count = u64::from(preempted.count);
    if switches < 5 {
        return skip(test, "the competitor for the CPU was not scheduled beside the test");
    }
    assert!(count * 2 >= switches && count <= switches * 2, "{preempted:?}, {switches} switches");
    let (Some(from), Some(to)) = (before.run_delay, after.run_delay) else { return };
    let waited = to - from;
    assert!(preempted.total * 2 >= waited && preempted.total <= waited * 2, "{preempted:?}, waited {waited}");
}

#[test]
fn a_watch_counts_preemptions_as_the_kernel_does() {
    const NAME: &str = "host_disturbed::a_watch_counts_preemptions_as_the_kernel_does";
    if !has_sentinel() {
        return skip(NAME, "this kernel or C library has no rseq");
    }
    let timebase = Timebase::calibrate(Host).expect("this machine has a counter");
    let (preempted, before, after) = beside_a_competitor(Host.affinity().0[0], || {
        let mut watch = Watch::begin(&timebase, timebase.stamp_ordered());
        let start = Instant::now();
        while start.elapsed() < SPAN {
            watch.look(timebase.stamp());
        }
        watch.end().gaps(Cause::Preempted)
    });
    check(NAME, preempted, before, after);
}

#[test]
fn delays_tell_their_preemptions_as_the_kernel_does() {
    const NAME: &str = "host_disturbed::delays_tell_their_preemptions_as_the_kernel_does";
    if !has_sentinel() {
        return skip(NAME, "this kernel or C library has no rseq");
    }
    let timebase = Timebase::calibrate(Host).expect("this machine has a counter");
    let (preempted, before, after) = beside_a_competitor(Host.affinity().0[0], || {
        let (start, mut all) = (Instant::now(), Gaps::default());
        while start.elapsed() < SPAN {
            let report = timebase.delay(millis(1)).expect("short");
            let gaps = report.verdict.gaps(Cause::Preempted);
            // The length of a preemption is in the lateness or in the time that the delay would have polled anyway.
            assert!(report.actual >= gaps.total, "{report:?}");
            all = Gaps { count: all.count + gaps.count, total: all.total + gaps.total, longest: gaps.longest };
        }
        all
    });
    check(NAME, preempted, before, after);
}

/// A delay of a millisecond during which another thread does something to this one.
fn delay_while(act: impl FnOnce(&Timebase)) -> hairspring_time::Verdict {
    let timebase = Timebase::calibrate(Host).expect("this machine has a counter");
    let mut watch = Watch::begin(&timebase, timebase.stamp_ordered());
    act(&timebase);
    watch.look(timebase.stamp_ordered());
    watch.look(timebase.stamp_ordered());
    watch.end()
}

#[test]
fn a_sleep_a_move_and_a_signal_under_watch_are_preemptions() {
    const NAME: &str = "host_disturbed::a_sleep_a_move_and_a_signal_under_watch_are_preemptions";
    if !has_sentinel() {
        return skip(NAME, "this kernel or C library has no rseq");
    }
    let count = |act: &dyn Fn()| delay_while(|_| act()).gaps(Cause::Preempted).count;
    assert!(count(&|| std::thread::sleep(Duration::from_micros(50))) >= 1, "a sleep");
    let handled = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGUSR2, Arc::clone(&handled)).expect("a handler");
    assert!(count(&|| signal_hook::low_level::raise(signal_hook::consts::SIGUSR2).expect("a signal")) >= 1, "a signal");
    // Relaxed: the handler ran on this thread.
    assert!(handled.load(Ordering::Relaxed));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let cpus = Host.affinity().0;
            let [first, second, ..] = cpus[..] else { return skip(NAME, "there is one CPU only, so no move") };
            Host.set_affinity(&CpuSet(vec![first])).expect("our own CPU");
            let verdict = delay_while(|_| Host.set_affinity(&CpuSet(vec![second])).expect("our own CPU"));
            assert!(verdict.gaps(Cause::Preempted).count >= 1 && verdict.migrated, "{verdict:?}");
        });
    });
}

#[test]
fn whatever_makes_a_delay_late_is_in_its_verdict() {
    let stands_still = |_| Host.ticks_ordered() == Host.ticks_ordered();
    if (0..1_000).any(stands_still) {
        return skip(
            "host_disturbed::whatever_makes_a_delay_late_is_in_its_verdict",
            "the counter moves in steps, between which no gap can be seen",
        );
    }
    let timebase = Timebase::calibrate(Host).expect("this machine has a counter");
    let (untold, late) = (0..20_000).fold((0_u32, 0_u32), |(untold, late), _| {
        let report = timebase.delay(micros(5)).expect("short");
        // Two gaps below the least, one in front of the other, can make up two microseconds.
        let is_late = report.late > micros(3);
        let told = report.verdict.lost() > Nanos::ZERO;
        (untold + u32::from(is_late && !told), late + u32::from(is_late))
    });
    assert_eq!(untold, 0, "of {late} late delays");
}
