//! Nothing on the hot paths allocates: an allocation can take the allocator's lock, or a system call.
#![expect(unsafe_code, reason = "on the ledger: the allocator of the test binary, which counts and passes on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use hairspring_machine::CpuSet;
use hairspring_machine::sim::{Disturbance, Script};
use hairspring_time::{Cause, Host, LongDelay, Machine, Ordering, Policy, Profile, Sim, Timebase};
use testing::skip;

use super::{disturb_in, micros, millis};

struct Counting;

thread_local! {
    /// Allocations of this thread. `const` and without a destructor, so that counting does not allocate.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator with the arguments as they came; the count is a
// thread-local cell that neither allocates nor unwinds, so the contract of `System` is the contract of this one.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`, which is that of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the contract of `realloc`; all our pointers came from `System`.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`; all our pointers came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[track_caller]
fn check<R>(what: &str, act: impl FnOnce() -> R) -> R {
    let before = ALLOCATIONS.get();
    let result = act();
    assert_eq!(ALLOCATIONS.get() - before, 0, "{what} allocated");
    result
}

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();
    drop(std::hint::black_box(vec![1, 2, 3]));
    assert!(ALLOCATIONS.get() > before);
}

/// Holds on a busy machine too: a delay that was preempted asks the kernel for the thread's policy and no more.
#[track_caller]
fn check_machine<M: Machine + Clone>(machine: M) {
    let timebase = Timebase::calibrate(machine).expect("a counter that advances");
    let mut long = LongDelay::new(&timebase);
    let mut profile = Profile::new(&timebase, Ordering::Ordered);
    check("now", || timebase.now());
    check("now_ordered", || timebase.now_ordered());
    check("offset_bound", || timebase.offset_bound(timebase.now()));
    for _ in 0..50 {
        check("delay", || timebase.delay(micros(3))).expect("short");
        check("delay_until", || timebase.delay_until(timebase.now() + micros(3))).expect("this epoch");
        check("a watchdog", || timebase.delay_polling(micros(300), micros(2))).expect("short");
        check("a refusal", || timebase.delay(-micros(3))).expect_err("negative");
        check("LongDelay", || long.delay(millis(1))).expect("in bounds");
        check("LongDelay until", || long.delay_until(timebase.now() + millis(1))).expect("this epoch");
        check("window", || long.window(millis(1)));
        check("a profiled span", || profile.span(|| ()));
    }
    check("summary", || profile.summary());
}

/// Regression: a preempted delay of a real-time thread read two files of /proc after its end, to find out whether it
/// had been throttled. That allocates and takes tens of microseconds, which no report contained.
#[test]
fn a_preempted_delay_of_a_real_time_thread_allocates_nothing_and_opens_no_file() {
    let sim = Sim::new(Script::default());
    let timebase = Timebase::calibrate(sim.clone()).expect("a counter that advances");
    sim.set_policy(Policy::Fifo(50)).expect("permitted");
    let (asked, mut throttled) = (sim.settings_read(), 0);
    for stall in [millis(3), millis(50)] {
        for request in [micros(10), micros(30)] {
            disturb_in(&sim, micros(5), Disturbance::Preempt(stall));
            let report = check("a preempted delay", || timebase.delay(request)).expect("short");
            assert_eq!(report.verdict.gaps(Cause::Preempted).count, 1, "{report:?}");
            throttled += u32::from(report.verdict.throttled);
        }
    }
    assert_eq!(throttled, 2, "a stall of 50 ms is told, and one of 3 ms is none");
    assert_eq!(sim.settings_read(), asked, "a delay has read settings of the machine");
}

/// On a thread with a real-time policy, which used to allocate when it was preempted. A competitor of the same policy
/// yields to it and comes back, so it is.
#[test]
fn delays_of_a_preempted_real_time_thread_allocate_nothing_on_this_machine() {
    const NAME: &str = "allocation::delays_of_a_preempted_real_time_thread_allocate_nothing_on_this_machine";
    let (refused, preempted) = std::thread::scope(|scope| {
        let run = scope.spawn(|| {
            let timebase = Timebase::calibrate(Host).expect("this machine has a counter");
            if let Err(refused) = Host.set_policy(Policy::RoundRobin(1)) {
                return (Some(refused.to_string()), 0);
            }
            let cpu = Host.affinity().0[0];
            Host.set_affinity(&CpuSet(vec![cpu])).expect("our own CPU");
            let ended = AtomicBool::new(false);
            let preempted = std::thread::scope(|inner| {
                // Inherits policy and CPU: the two take turns.
                inner.spawn(|| {
                    let limit = std::time::Instant::now() + std::time::Duration::from_secs(3);
                    // Relaxed: the flag carries no data. The limit is for a test that fails.
                    while !ended.load(Relaxed) && std::time::Instant::now() < limit {
                        std::hint::spin_loop();
                    }
                });
                let mut preempted = 0;
                for _ in 0..6 {
                    let report = check("a delay", || timebase.delay(millis(90))).expect("short");
                    preempted += report.verdict.gaps(Cause::Preempted).count;
                }
                ended.store(true, Relaxed);
                preempted
            });
            (None, preempted)
        });
        run.join().expect("no delay allocated")
    });
    if let Some(refused) = refused {
        return skip(NAME, &refused);
    }
    if preempted == 0 {
        skip(NAME, "the competitor for the CPU never preempted a delay, or nobody could tell");
    }
}

#[test]
fn delays_and_readings_allocate_nothing_on_sim() {
    check_machine(Sim::new(Script::default()));
}

#[test]
fn delays_and_readings_allocate_nothing_on_this_machine() {
    check_machine(Host);
}
