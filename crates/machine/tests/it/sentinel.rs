//! The promise of the sentinel: it breaks when the thread leaves its CPU, and only then.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hairspring_machine::{CpuSet, Host, Machine, Nanos};
use testing::skip;

use super::{on_own_thread, with_competitor};

/// Sets the sentinel, runs `event`, and returns whether the sentinel still stands.
fn stands_after(event: impl FnOnce()) -> bool {
    assert!(Host.sentinel_arm());
    event();
    let stands = Host.sentinel_intact();
    Host.sentinel_disarm();
    stands
}

/// Runs a test of the sentinel on a thread of its own, or skips it.
fn try_sentinel(test: &str, body: impl FnOnce() + Send) {
    on_own_thread(|| {
        let there = Host.sentinel_arm();
        Host.sentinel_disarm();
        if there { body() } else { skip(test, "this kernel or C library has no rseq") }
    });
}

#[test]
fn a_thread_that_is_left_alone_keeps_its_sentinel() {
    try_sentinel("sentinel::a_thread_that_is_left_alone_keeps_its_sentinel", || {
        // A busy machine takes the CPU now and then; most spans of a microsecond go by in peace.
        let kept = (0..1_000).filter(|_| stands_after(|| (0..100).for_each(|_| Host.relax()))).count();
        assert!(kept > 500, "{kept} of 1000");
    });
}

#[test]
fn reading_clocks_and_counters_leaves_the_sentinel_alone() {
    try_sentinel("sentinel::reading_clocks_and_counters_leaves_the_sentinel_alone", || {
        let read = || {
            let _ = (Host.monotonic(), Host.ticks_ordered(), Host.cpu());
        };
        assert!((0..1_000).filter(|_| stands_after(read)).count() > 500);
    });
}

#[test]
fn a_sleep_breaks_the_sentinel() {
    try_sentinel("sentinel::a_sleep_breaks_the_sentinel", || {
        for _ in 0..20 {
            assert!(!stands_after(|| {
                Host.sleep_until(Host.monotonic() + Nanos::from_micros(200));
            }));
        }
    });
}

#[test]
fn a_move_to_another_cpu_breaks_the_sentinel() {
    const NAME: &str = "sentinel::a_move_to_another_cpu_breaks_the_sentinel";
    try_sentinel(NAME, || {
        let cpus = Host.affinity().0;
        if cpus.len() < 2 {
            return skip(NAME, "the thread may run on one CPU only");
        }
        for round in 0..20 {
            Host.set_affinity(&CpuSet(vec![cpus[0]])).expect("our own CPU");
            assert!(!stands_after(|| Host.set_affinity(&CpuSet(vec![cpus[1]])).expect("our own CPU")), "round {round}");
        }
    });
}

#[test]
fn a_handled_signal_breaks_the_sentinel() {
    try_sentinel("sentinel::a_handled_signal_breaks_the_sentinel", || {
        let signal = signal_hook::consts::SIGUSR1;
        let handled = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal, Arc::clone(&handled)).expect("a handler");
        assert!(!stands_after(|| signal_hook::low_level::raise(signal).expect("a signal")));
        // Relaxed: the handler ran on this thread.
        assert!(handled.load(Ordering::Relaxed));
    });
}

#[test]
fn a_sentinel_that_was_taken_away_does_not_stand_and_can_be_set_again() {
    try_sentinel("sentinel::a_sentinel_that_was_taken_away_does_not_stand_and_can_be_set_again", || {
        Host.sentinel_disarm();
        assert!(!Host.sentinel_intact());
        assert!(!stands_after(|| Host.sentinel_disarm()));
        let stood = (0..100).any(|_| stands_after(|| {}));
        assert!(stood, "a new sentinel stands");
    });
}

#[test]
fn each_thread_has_a_sentinel_of_its_own() {
    try_sentinel("sentinel::each_thread_has_a_sentinel_of_its_own", || {
        Host.sentinel_disarm();
        on_own_thread(|| {
            Host.sentinel_arm();
        });
        assert!(!Host.sentinel_intact());
    });
}

#[test]
fn breaks_are_as_many_as_the_kernel_counts_involuntary_switches() {
    const NAME: &str = "sentinel::breaks_are_as_many_as_the_kernel_counts_involuntary_switches";
    let span = Duration::from_millis(300);
    let cpu = Host.affinity().0[0];
    with_competitor(cpu, span, || {
        if !Host.sentinel_arm() {
            return skip(NAME, "this kernel or C library has no rseq");
        }
        let counted = || Host.usage().involuntary_switches.expect("a kernel with rseq counts them");
        let before = counted();
        Host.sentinel_arm();
        let (start, mut breaks) = (std::time::Instant::now(), 0_u64);
        while start.elapsed() < span {
            if !Host.sentinel_intact() {
                breaks += 1;
                Host.sentinel_arm();
            }
        }
        Host.sentinel_disarm();
        let switches = counted() - before;
        if switches >= 5 {
            assert!(breaks * 2 >= switches && breaks <= switches * 2, "{breaks} breaks, {switches} switches");
        } else {
            skip(NAME, "the competitor for the CPU was not scheduled beside the test");
        }
    });
}
