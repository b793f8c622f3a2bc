//! Lower bounds: a bare coroutine switch for fibers, a bare futex pair for threads.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use corosensei::{Coroutine, CoroutineResult};
use hairspring_machine::{CpuSet, Host, Machine, Policy};
use hairspring_sheet::Absent;
use hairspring_suite::executive::Bench;
use hairspring_time::RealTime;

use super::meter::{Count, Meter, Outcome, believed, catch_up};
use super::posix::{futex_wait, futex_wake};

/// Rounds between two readings of the clock.
const CHUNK: u64 = 512;
/// Priorities of the thread that answers and of the one that measures.
const PRIORITIES: [u8; 2] = [44, 12];

/// Bare corosensei: resume and suspend.
pub(crate) fn corosensei(bench: &Bench) -> Outcome {
    let _placed =
        RealTime { policy: Some(Policy::Fifo(60)), cpu: Some(bench.place.cpu), ..RealTime::default() }.apply(&Host);
    let mut coroutine: Coroutine<u64, u64, ()> = Coroutine::new(|yielder, mut number| {
        loop {
            number = yielder.suspend(number + 1);
        }
    });
    let mut meter = Meter::start(bench.slice);
    let mut number = 0;
    while meter.goes_on() {
        for _ in 0..CHUNK {
            number += 1;
            let answer = coroutine.resume(black_box(number));
            meter.round(matches!(answer, CoroutineResult::Yield(next) if next == number + 1));
        }
    }
    let batch = meter.finish();
    if coroutine.started() {
        coroutine.force_unwind();
    }
    believed(batch)
}

/// Two threads on one CPU with two futexes: one wakes the more urgent one, which runs and waits, and then the first
/// continues.
pub(crate) fn futex(bench: &Bench) -> Outcome {
    #[derive(Default)]
    struct Words {
        /// Raised for each wake.
        wakes: AtomicU32,
        ended: AtomicBool,
        proof: Count,
    }
    let words = Arc::new(Words::default());
    let cpu = bench.place.cpu;
    let place =
        move |priority| Host.set_affinity(&CpuSet(vec![cpu])).and_then(|()| Host.set_policy(Policy::Fifo(priority)));
    let own = Arc::clone(&words);
    let high = std::thread::spawn(move || {
        if place(PRIORITIES[0]).is_err() {
            return;
        }
        let (mut seen, mut number) = (0, 0);
        loop {
            // Acquire pairs with the Release of the other; the kernel compares again before it sleeps.
            while own.wakes.load(Ordering::Acquire) == seen {
                futex_wait(&own.wakes, seen);
            }
            seen = seen.wrapping_add(1);
            if own.ended.load(Ordering::Acquire) {
                return;
            }
            number += 1;
            own.proof.set(number);
        }
    });
    let span = bench.slice;
    let low = std::thread::spawn(move || {
        let placed = place(PRIORITIES[1]);
        let mut batch = None;
        if placed.is_ok() {
            std::thread::sleep(std::time::Duration::from_millis(1));
            let mut meter = Meter::start(span);
            let mut number = 0;
            while meter.goes_on() {
                for _ in 0..CHUNK {
                    number += 1;
                    // Release pairs with the Acquire of the one that waits.
                    words.wakes.fetch_add(1, Ordering::Release);
                    futex_wake(&words.wakes);
                    meter.round(words.proof.now() == number || catch_up(&words.proof, number));
                }
            }
            batch = Some(meter.finish());
        }
        words.ended.store(true, Ordering::Release);
        words.wakes.fetch_add(1, Ordering::Release);
        futex_wake(&words.wakes);
        (placed, batch)
    });
    let (joined, _) = (low.join(), high.join());
    match joined {
        Ok((Ok(()), Some(batch))) => believed(batch),
        Ok((Err(refused), _)) => Err(Absent::new(format!("failed to {refused}"), &refused.remedy)),
        _ => Err(Absent::final_("the run came to no end")),
    }
}
