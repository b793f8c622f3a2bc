//! Nothing on the hot paths allocates: an allocation can take the allocator's lock, or a system call.
#![expect(unsafe_code, reason = "on the ledger: the allocator of the test binary, which counts and passes on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use hairspring_machine::sim::Script;
use hairspring_time::{Host, LongDelay, Machine, Ordering, Profile, Sim, Timebase};

use super::{micros, millis};

struct Counting;

thread_local! {
    /// Allocations of this thread. `const` and without a destructor, so that counting does not allocate.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator with the arguments as they came; the count is a thread-local
// cell that neither allocates nor unwinds, so the contract of `System` is the contract of this one.
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

/// On a thread without real-time policy a preempted delay opens no file either, so this holds on a busy machine.
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

#[test]
fn delays_and_readings_allocate_nothing_on_sim() {
    check_machine(Sim::new(Script::default()));
}

#[test]
fn delays_and_readings_allocate_nothing_on_this_machine() {
    check_machine(Host);
}
