//! Many of everything: ten thousand tasks, timers and parked fibers.

use hairspring_machine::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use hairspring_exec::{Backend, Create, ExecConfig, Executive, RunLimit, Services, StopReason};

use crate::backends::{Bench, FOREVER, LIMIT, micros, priority, sim, sim_and_fiber};

const MANY: u32 = 10_000;

fn executive(backend: Backend) -> Executive {
    Executive::new(backend, &ExecConfig { stack_bytes: 16 * 1024, ..ExecConfig::default() }).expect("an executive")
}

/// A field of `/proc/self/status`, or the number of maps.
fn memory_kib(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with(field)).expect("a known field");
    line.split_whitespace().nth(1).expect("a number").parse().expect("a number")
}

fn maps() -> usize {
    std::fs::read_to_string("/proc/self/maps").expect("Linux").lines().count()
}

#[test]
fn ten_thousand_tasks_run_each_once_per_start_in_the_order_of_their_priorities() {
    for backend in sim_and_fiber() {
        let name = backend.name();
        let mut executive = executive(backend);
        let last = Arc::new(AtomicU64::new(0));
        let runs = Arc::new(AtomicU64::new(0));
        for number in 0..MANY {
            let urgency = (number * 7 % 64) as u8;
            let (last, runs) = (Arc::clone(&last), Arc::clone(&runs));
            let body = move |_: &hairspring_exec::TaskCtx<'_>| {
                assert!(last.swap(urgency.into(), Ordering::Relaxed) <= urgency.into());
                runs.fetch_add(1, Ordering::Relaxed);
            };
            let task = executive.task("one of many", priority(urgency), body).expect("few enough");
            executive.trigger(task).expect("it is idle");
        }
        let finish = executive.run(LIMIT);
        assert_eq!(
            (finish.stopped, finish.clean()),
            (StopReason::Finished, true),
            "on {name}: {:?}",
            finish.mishaps.first()
        );
        assert_eq!(runs.load(Ordering::Relaxed), u64::from(MANY), "on {name}");
    }
}

#[test]
fn ten_thousand_timers_go_off_each_once_and_in_the_order_of_their_deadlines() {
    for backend in sim_and_fiber() {
        let name = backend.name();
        let mut executive = executive(backend);
        let zero = executive.now() + Nanos::new(20_000_000);
        let last = Arc::new(AtomicI64::new(0));
        let runs = Arc::new(AtomicU64::new(0));
        for number in 0..i64::from(MANY) {
            let (last, runs) = (Arc::clone(&last), Arc::clone(&runs));
            let timer = executive.timer("one of many", move |ctx, expiry| {
                assert!(ctx.now() >= expiry.deadline);
                let deadline = expiry.deadline.as_monotonic().count();
                assert!(last.swap(deadline, Ordering::Relaxed) <= deadline);
                runs.fetch_add(1, Ordering::Relaxed);
            });
            let at = zero + Nanos::new(number * 7_919 % i64::from(MANY) * 5_000);
            executive.start_timer(timer.expect("few enough"), at).expect("it exists");
        }
        let finish = executive.run(LIMIT);
        assert_eq!((finish.stopped, finish.clean()), (StopReason::Finished, true), "on {name}");
        assert_eq!(runs.load(Ordering::Relaxed), u64::from(MANY), "on {name}");
    }
}

#[test]
fn ten_thousand_fibers_can_be_parked_at_once_and_are_all_woken() {
    let (maps_before, memory_before) = (maps(), memory_kib("VmRSS"));
    let mut executive = executive(Backend::fiber());
    let woken = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for _ in 0..MANY {
        let woken = Arc::clone(&woken);
        let body = move |ctx: &hairspring_exec::TaskCtx<'_>| {
            ctx.wait(FOREVER).expect("it comes");
            woken.fetch_add(1, Ordering::Relaxed);
        };
        let task = executive.task("parked", priority(20), body).expect("few enough");
        executive.trigger(task).expect("it is idle");
        tasks.push(task);
    }
    let measured = Arc::new(AtomicU64::new(0));
    let (measure, wake) = (Arc::clone(&measured), tasks);
    let body = move |ctx: &hairspring_exec::TaskCtx<'_>| {
        measure.store(memory_kib("VmRSS"), Ordering::Relaxed);
        // A stack and its guard page are two mappings each; the kernel allows 65,530 by default.
        assert!(maps() < 65_000);
        for &task in &wake {
            ctx.wake(task).expect("it waits");
        }
    };
    let waker = executive.task("waker", priority(30), body).expect("few enough");
    executive.trigger(waker).expect("it is idle");
    let finish = executive.run(LIMIT);
    assert_eq!((finish.stopped, finish.clean()), (StopReason::Finished, true), "{:?}", finish.mishaps.first());
    assert_eq!(woken.load(Ordering::Relaxed), u64::from(MANY));
    let bytes = measured.load(Ordering::Relaxed).saturating_sub(memory_before) * 1024 / u64::from(MANY);
    use std::io::Write;
    // Not through `eprintln!`, which the test harness captures.
    let _ = writeln!(std::io::stderr(), "a parked fiber takes {bytes} bytes; {maps_before} maps before");
    // Pages that were touched, and tables: other tests run meanwhile, so the bound is generous.
    assert!(bytes < 64 * 1024, "{bytes} bytes for each parked fiber");
}

#[test]
fn a_task_for_which_there_is_no_stack_ends_there_and_is_told() {
    // More address space than a process has: the tenth of these stacks cannot be mapped.
    let config = ExecConfig { stack_bytes: 1 << 45, ..ExecConfig::default() };
    let mut executive = Executive::new(Backend::fiber(), &config).expect("an executive");
    for _ in 0..10 {
        let task = executive.task("huge", priority(20), |ctx| ctx.wait(FOREVER).expect("it unwinds here"));
        executive.trigger(task.expect("few enough")).expect("it is idle");
    }
    let finish = executive.run(RunLimit::For(micros(1_000)));
    let told = finish.mishaps.iter().filter(|mishap| format!("{mishap:?}").contains("no memory for a stack")).count();
    assert!(told > 0 && told == finish.mishaps.len(), "{:?}", finish.mishaps);
}

#[test]
fn latencies_are_measured_if_that_was_asked_for_and_only_then() {
    for backend in crate::backends::all() {
        let name = backend.name();
        for measure_latency in [false, true] {
            let mut bench = Bench::new(backend.clone(), &ExecConfig { measure_latency, ..ExecConfig::default() });
            bench.start("task", 20, |ctx, _| (0..100).for_each(|_| ctx.yield_now()));
            let finish = bench.executive.run(LIMIT);
            assert_eq!(finish.longest_lock.is_some(), measure_latency, "on {name}");
            // Only fibers can leave an interrupt unpolled.
            let polls = measure_latency && !name.starts_with("thread");
            assert_eq!(finish.longest_unpolled.is_some(), polls, "on {name}");
        }
    }
}

#[test]
fn the_longest_time_unpolled_is_that_of_the_longest_stretch_of_a_tasks_own_code() {
    let mut bench = Bench::new(sim(), &ExecConfig { measure_latency: true, ..ExecConfig::default() });
    bench.start("task", 20, |ctx, _| {
        ctx.yield_now();
        // Reading a simulated clock lets time pass, and is no call.
        let until = ctx.now() + Nanos::new(1_000_000);
        while ctx.now() < until {}
        ctx.yield_now();
    });
    let finish = bench.executive.run(LIMIT);
    let longest = finish.longest_unpolled.expect("it was asked for");
    assert!(longest >= micros(1_000), "{longest:?}");
    assert!(finish.longest_lock.expect("it was asked for") < longest);
}
