//! Time slices among equals, and thresholds that keep other tasks off the CPU.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hairspring_exec::{Create, ExecConfig, ExecError, Executive, Nanos, Priority, Services, StopReason, TaskOptions};

use crate::backends::{FOREVER, LIMIT, all, alone, check, check_with, micros, nth, priority, sim};

fn sliced() -> ExecConfig {
    ExecConfig { slice: Some(Nanos::from_millis(1)), ..ExecConfig::default() }
}

#[test]
fn equals_that_never_wait_take_turns_and_the_run_still_ends() {
    for backend in all() {
        let _alone = alone();
        let shown = backend.name();
        let mut executive = Executive::new(backend, &sliced()).expect("it can be made");
        let counts: Arc<[AtomicU32; 3]> = Arc::default();
        for me in 0..3 {
            let counts = Arc::clone(&counts);
            let task = executive.task("turns", priority(20), move |ctx| {
                for round in 1..=2 {
                    counts[me].store(round, Ordering::Relaxed);
                    // Only if the others get the CPU can this end.
                    while counts.iter().any(|count| count.load(Ordering::Relaxed) < round) {
                        ctx.work(micros(20));
                    }
                }
            });
            executive.trigger(task.expect("few objects")).expect("it is idle");
        }
        let finish = executive.run(LIMIT);
        assert!(finish.clean() && finish.stopped == StopReason::Finished, "{shown}: {finish:?}");
        assert!(counts.iter().all(|count| count.load(Ordering::Relaxed) == 2), "{shown}: {counts:?}");
    }
}

#[test]
fn without_slices_an_equal_waits_for_the_end_of_the_one_before() {
    let expected = "first_ends second third = Finished";
    check(expected, |bench| {
        bench.start("first", 20, |ctx, log| {
            ctx.work(Nanos::from_millis(3));
            log.note("first_ends");
        });
        bench.start("second", 20, |_, log| log.note("second"));
        bench.start("third", 20, |_, log| log.note("third"));
    });
}

#[test]
fn in_virtual_time_each_slice_is_exact() {
    let mut executive = Executive::new(sim(), &sliced()).expect("it can be made");
    let begun = executive.now();
    let seen: Arc<std::sync::Mutex<Vec<(usize, i64)>>> = Arc::default();
    for me in 0..2 {
        let seen = Arc::clone(&seen);
        let task = executive.task("part", priority(20), move |ctx| {
            for _ in 0..5 {
                ctx.work(micros(500));
                seen.lock().expect("nobody panics").push((me, (ctx.now() - begun).count() / 10_000));
            }
        });
        executive.trigger(task.expect("few objects")).expect("it is idle");
    }
    assert!(executive.run(LIMIT).clean());
    let seen = seen.lock().expect("nobody panics").clone();
    let who: Vec<_> = seen.iter().map(|&(me, _)| me).collect();
    let when: Vec<_> = seen.iter().map(|&(_, at)| at).collect();
    // In tens of microseconds: readings of the clock take some nanoseconds. A part that ends with the slice is noted
    // when its task has the CPU again.
    assert_eq!(when, [50, 150, 200, 250, 300, 350, 400, 450, 450, 500], "{seen:?}");
    assert_eq!(who, [0, 1, 0, 0, 1, 1, 0, 0, 1, 1]);
}

#[test]
fn a_lock_of_the_scheduler_holds_off_equals_and_more_urgent_tasks_alike() {
    let expected = "calm_begins calm_ends urgent:Ok(()) equal = Finished";
    check_with(&sliced(), expected, |bench| {
        let urgent = bench.task("urgent", 5, |ctx, log| log.tell("urgent", ctx.delay(Nanos::ZERO)));
        bench.start("calm", 20, move |ctx, log| {
            let calm = ctx.lock_scheduler();
            log.note("calm_begins");
            ctx.trigger(urgent).expect("it is idle");
            ctx.trigger(nth(2)).expect("it is idle");
            ctx.work(Nanos::from_millis(4));
            log.note("calm_ends");
            drop(calm);
        });
        bench.task("equal", 20, |_, log| log.note("equal"));
        bench.run();
    });
}

#[test]
fn thresholds_nest_and_let_only_more_urgent_tasks_through() {
    let expected = "above inner above middle outer low_ends below = Finished";
    check(expected, |bench| {
        let above = bench.task("above", 5, |_, log| log.note("above"));
        let middle = bench.task("middle", 15, |_, log| log.note("middle"));
        let below = bench.task("below", 25, |_, log| log.note("below"));
        bench.start("low", 30, move |ctx, log| {
            let outer = ctx.threshold(priority(20));
            ctx.trigger(below).expect("it is idle");
            let inner = ctx.threshold(priority(10));
            // One that is less urgent than what is in force changes nothing.
            let vain = ctx.threshold(priority(40));
            ctx.trigger(middle).expect("it is idle");
            ctx.trigger(above).expect("it is idle");
            drop(vain);
            log.note("inner");
            ctx.trigger(above).expect("it is idle");
            drop(inner);
            log.note("outer");
            log.note("low_ends");
            drop(outer);
        });
    });
}

#[test]
fn a_task_made_with_a_threshold_has_it_in_each_run_and_loses_it_between() {
    let expected = "calm_1 urgent calm_2 urgent = Finished";
    check(expected, |bench| {
        let urgent = bench.task("urgent", 5, |_, log| log.note("urgent"));
        let options = TaskOptions::default().with_threshold(Priority::HIGHEST);
        let log = bench.log.clone();
        let mut run = 0;
        let calm = bench.executive.task_with("calm", priority(30), options, move |ctx| {
            run += 1;
            ctx.trigger(urgent).expect("it is idle");
            log.note(format!("calm_{run}"));
        });
        let calm = calm.expect("few objects");
        bench.executive.trigger(calm).expect("it is idle");
        bench.executive.trigger(calm).expect("one more start");
    });
}

#[test]
fn a_killed_task_keeps_nobody_off() {
    check("calm urgent after = Finished calm:Killed", |bench| {
        bench.start("calm", 30, |ctx, log| {
            std::mem::forget(ctx.threshold(priority(10)));
            log.note("calm");
            let _ = ctx.wait(FOREVER);
        });
        bench.start("killer", 40, move |ctx, log| {
            ctx.kill(nth(0)).expect("it runs");
            ctx.trigger(nth(2)).expect("it is idle");
            log.note("after");
        });
        bench.task("urgent", 20, |_, log| log.note("urgent"));
    });
}

#[test]
fn a_slice_that_is_too_short_is_refused() {
    let config = ExecConfig { slice: Some(micros(99)), ..ExecConfig::default() };
    assert!(matches!(Executive::new(sim(), &config), Err(ExecError::ExecConfig(what)) if what.contains("100 µs")));
}
