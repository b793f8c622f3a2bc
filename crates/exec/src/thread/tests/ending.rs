//! How runs end, and the executive itself.

use std::cell::RefCell;

use hairspring_exec_core::{By, Call, TaskState};
use hairspring_machine::{Host, Machine, Policy};

use super::*;
use crate::calls::{Limit, Services};
use crate::engine::InterruptProcedure;
use crate::interrupt::InterruptSource;
use crate::report::StopReason;

/// Counts itself out when it is dropped, wherever that is.
struct Inside(Count);

impl Inside {
    fn new(count: &Count) -> Self {
        count.0.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn a_run_with_nothing_to_do_is_finished_at_once() {
    both(|threads| {
        assert_eq!(threads.run(RunLimit::Forever).stopped, StopReason::Finished);
        make(&threads, "idle", 10, |_| {});
        assert_eq!(threads.run(RunLimit::Forever).stopped, StopReason::Finished);
    });
}

#[test]
fn nobody_runs_before_the_run() {
    let threads = up();
    let runs = Count::default();
    let mine = runs.clone();
    start(&threads, "early", 10, move |_| {
        mine.add();
    });
    std::thread::sleep(std::time::Duration::from_millis(10));
    assert_eq!(runs.get(), 0);
    assert_eq!(threads.run(RunLimit::Forever).stopped, StopReason::Finished);
    assert_eq!(runs.get(), 1);
}

#[test]
fn a_wait_that_nothing_can_end_is_stuck_and_unwinds() {
    both(|threads| {
        let inside = Count::default();
        let mine = inside.clone();
        let task = start(&threads, "waits", 10, move |ctx| {
            let _inside = Inside::new(&mine);
            let _ = ctx.wait(Limit::Forever);
        });
        assert_eq!(threads.run(RunLimit::Forever).stopped, StopReason::Stuck);
        assert_eq!(inside.get(), 0);
        let state = threads.shared.lock.hold().core.look(task).map(|look| look.state);
        assert_eq!(state, Some(TaskState::Idle));
    });
}

#[test]
fn the_limit_ends_a_run_of_tasks_that_wait_and_work_and_a_second_run_works() {
    both(|threads| {
        let (inside, runs) = (Count::default(), Count::default());
        let mut tasks = Vec::new();
        for number in 10..20 {
            let (inside, runs) = (inside.clone(), runs.clone());
            tasks.push(start(&threads, "task", number, move |ctx| {
                let _inside = Inside::new(&inside);
                runs.add();
                loop {
                    ctx.work(Nanos::from_micros(30));
                    ctx.delay(Nanos::from_millis(1)).expect("a killed task does not come back");
                }
            }));
        }
        for turn in 1..=3 {
            let finish = threads.run(RunLimit::For(Nanos::from_millis(20)));
            assert_eq!((finish.stopped, inside.get(), runs.get()), (StopReason::TimeUp, 0, turn * 10));
            clean(&threads, &finish);
            tasks.iter().for_each(|&task| trigger(&threads, task));
        }
    });
}

#[test]
fn stop_ends_tasks_that_wait_for_anything() {
    both(|threads| {
        let inside = Count::default();
        let semaphore = threads.call(By::Outside, Call::CreateSemaphore { count: 0, limit: 1 }).value;
        let semaphore = hairspring_exec_core::SemaphoreId::from_number(semaphore);
        for number in 10..40 {
            let inside = inside.clone();
            start(&threads, "waits", number, move |ctx| {
                let _inside = Inside::new(&inside);
                let _ = match number % 3 {
                    0 => ctx.wait(Limit::Forever).is_ok(),
                    1 => ctx.wait_semaphore(semaphore, Limit::Forever).is_ok(),
                    _ => ctx.delay(Nanos::from_secs(3_600)).is_ok(),
                };
            });
        }
        let mine = inside.clone();
        start(&threads, "stops", 50, move |ctx| {
            let _inside = Inside::new(&mine);
            ctx.delay(Nanos::from_millis(5)).expect("not killed");
            ctx.stop();
            unreachable!("its run ends with the executive's");
        });
        let finish = threads.run(LIMIT);
        assert_eq!((finish.stopped, inside.get()), (StopReason::Asked, 0));
        clean(&threads, &finish);
    });
}

#[test]
fn a_destructor_that_triggers_another_does_not_keep_the_run_alive() {
    both(|threads| {
        let late = Count::default();
        let mine = late.clone();
        let other = make(&threads, "late", 5, move |_| {
            mine.add();
        });
        start(&threads, "dying", 10, move |ctx| {
            struct Trigger<'c, 'k>(&'c TaskCtx<'k>, TaskId);
            impl Drop for Trigger<'_, '_> {
                fn drop(&mut self) {
                    let _ = self.0.trigger(self.1);
                }
            }
            let _trigger = Trigger(ctx, other);
            ctx.stop();
        });
        assert_eq!(threads.run(LIMIT).stopped, StopReason::Asked);
        assert_eq!(late.get(), 0, "it was killed before it began");
        assert_eq!(threads.run(LIMIT).stopped, StopReason::Finished);
    });
}

#[test]
fn dropping_an_executive_whose_tasks_were_started_and_never_run_ends_all_threads() {
    both(|threads| {
        let held = Count::default();
        for number in 0..30 {
            let inside = Inside::new(&held);
            start(&threads, "never", number, move |_| {
                let _ = &inside;
            });
        }
        assert_eq!(held.get(), 30);
        let shared = Arc::downgrade(&threads.shared);
        drop(threads);
        assert_eq!(shared.strong_count(), 0, "every thread has gone");
        assert_eq!(held.get(), 0, "what the tasks captured is dropped");
    });
}

#[test]
fn dropping_after_a_run_ends_all_threads() {
    both(|threads| {
        start(&threads, "waits", 10, |ctx| assert!(ctx.wait(Limit::Forever).is_err()));
        threads.attach("isp", &InterruptSource::Software, InterruptProcedure::Raw(Box::new(|_| {}))).expect("a thread");
        threads.run(RunLimit::For(Nanos::from_millis(2)));
        let shared = Arc::downgrade(&threads.shared);
        drop(threads);
        assert_eq!(shared.strong_count(), 0, "every thread has gone");
    });
}

/// Records, at the very end of its thread, whether that has the ordinary scheduling policy.
struct Last(Count);

impl Drop for Last {
    fn drop(&mut self) {
        if Host.policy() == Policy::Other {
            self.0.add();
        }
    }
}

#[test]
fn threads_of_tasks_end_without_real_time_priority() {
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    both(|threads| {
        let ordinary = Count::default();
        for number in [10, 20, 30] {
            let counts = ordinary.clone();
            start(&threads, "ends", number, move |_| LAST.set(Some(Last(counts.clone()))));
        }
        clean(&threads, &threads.run(LIMIT));
        assert_eq!(ordinary.get(), 0, "its threads live as long as a task");
        drop(threads);
        assert_eq!(ordinary.get(), 3);
    });
}
