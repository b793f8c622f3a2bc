//! Time: never early, without drift, and procedures that may do what they may.

use hairspring_exec_core::{By, Call, CallStatus, Moment};
use hairspring_machine::{Host, Machine};

use super::*;
use crate::calls::{Limit, Services};
use crate::errors::WaitError;
use crate::report::StopReason;
use crate::system::clock::{instant_of, monotonic};

#[test]
fn delays_and_time_outs_are_never_early() {
    both(|threads| {
        let (early, done) = (Count::default(), Count::default());
        for at in 0..8_u64 {
            let (early, done) = (early.clone(), done.clone());
            start(&threads, "sleeper", 10 + at as u8, move |ctx| {
                for turn in 0..30_u64 {
                    let span_ns = 20_000 + (at * 37 + turn * 101) % 700 * 1_000;
                    let until = instant_of(monotonic().after_nanos(span_ns));
                    if turn % 2 == 0 {
                        ctx.delay_until(until).expect("not killed");
                    } else {
                        assert_eq!(ctx.wait(Limit::Until(until)), Err(WaitError::TimedOut));
                    }
                    if Host.monotonic() < until {
                        early.add();
                    }
                    done.add();
                }
            });
        }
        let finish = threads.run(LIMIT);
        assert_eq!((early.get(), done.get(), finish.stopped), (0, 240, StopReason::Finished));
        clean(&threads, &finish);
    });
}

#[test]
fn a_periodic_timer_keeps_its_phase_and_stops_itself() {
    both(|threads| {
        let (runs, early) = (Count::default(), Count::default());
        let first = monotonic().after_nanos(2_000_000);
        let (turns, soon) = (runs.clone(), early.clone());
        let body = move |ctx: &crate::calls::TimerCtx<'_>, expiry: crate::Expiry| {
            let phase = (expiry.deadline - instant_of(first)).count();
            if Host.monotonic() < expiry.deadline || phase % 500_000 != 0 {
                soon.add();
            }
            if turns.add() == 20 {
                ctx.delete_timer(ctx.timer()).expect("it may delete itself");
            }
        };
        let timer = Program(&threads).timer("beat", body).expect("a timer");
        let call = Call::StartTimer { timer, at: first, period_ns: 500_000 };
        assert_eq!(threads.call(By::Outside, call).status, CallStatus::Ok);
        let finish = threads.run(LIMIT);
        assert_eq!((runs.get(), early.get(), finish.stopped), (20, 0, StopReason::Finished));
        assert_eq!(threads.delete_timer(By::Outside, timer).status, CallStatus::NoSuchObject);
    });
}

#[test]
fn a_timer_procedure_wakes_a_task_above_one_that_computes() {
    let threads = up();
    if !strict(&threads, "a_timer_procedure_wakes_a_task_above_one_that_computes") {
        return;
    }
    let (woken, done) = (Count::default(), Count::default());
    let mine = woken.clone();
    let high = start(&threads, "high", 10, move |ctx| {
        ctx.wait(Limit::Forever).expect("a wake");
        mine.add();
    });
    let (seen, mine) = (woken.clone(), done.clone());
    start(&threads, "busy", 20, move |_| {
        // No call: only preemption lets the other run.
        let begun = std::time::Instant::now();
        while seen.get() == 0 && begun.elapsed() < std::time::Duration::from_secs(2) {}
        mine.set(seen.get());
    });
    let body = move |ctx: &crate::calls::TimerCtx<'_>, _: crate::Expiry| {
        ctx.wake(high).expect("it waits");
    };
    let timer = Program(&threads).timer("once", body).expect("a timer");
    let at = monotonic().after_nanos(20_000_000);
    threads.call(By::Outside, Call::StartTimer { timer, at, period_ns: 0 });
    let finish = threads.run(LIMIT);
    assert_eq!((woken.get(), done.get()), (1, 1));
    clean(&threads, &finish);
}

#[test]
fn a_later_deadline_costs_the_kernel_thread_nothing() {
    let threads = up();
    let timer = |at: Moment| {
        let made = Program(&threads).timer("t", |_, _| {}).expect("a timer");
        threads.call(By::Outside, Call::StartTimer { timer: made, at, period_ns: 0 });
    };
    let far = |millis: u64| monotonic().after_nanos(millis * 1_000_000);
    timer(far(50));
    let calls = || threads.shared.places.at(super::super::mirror::KERNEL_PLACE).calls();
    std::thread::scope(|scope| {
        let running = Threads { shared: Arc::clone(&threads.shared), own: None, owner: false };
        let run = scope.spawn(move || running.run(LIMIT));
        std::thread::sleep(std::time::Duration::from_millis(10));
        let before = calls();
        (0..100).for_each(|at| timer(far(60 + at % 10)));
        let after = calls();
        run.join().expect("the run ends");
        assert!(after - before <= 1, "the kernel thread woke {} times", after - before);
    });
}

#[test]
fn a_delay_costs_the_kernel_thread_nothing_and_ends_above_one_that_computes() {
    both(|threads| {
        let (delays, woken) = (Count::default(), Count::default());
        let calls = Count::default();
        let shared = Arc::clone(&threads.shared);
        let (done, seen) = (delays.clone(), calls.clone());
        start(&threads, "sleeper", 10, move |ctx| {
            let kernel = shared.places.at(super::super::mirror::KERNEL_PLACE);
            let before = kernel.calls();
            for _ in 0..50 {
                ctx.delay(Nanos::from_micros(200)).expect("nobody breaks it off");
                done.add();
            }
            seen.set(kernel.calls() - before);
        });
        let (done, mine) = (delays.clone(), woken.clone());
        start(&threads, "busy", 20, move |_| {
            // No call: only preemption lets the other run.
            let begun = std::time::Instant::now();
            while done.get() < 50 && begun.elapsed() < std::time::Duration::from_secs(2) {}
            mine.set(done.get());
        });
        let finish = threads.run(LIMIT);
        assert_eq!((delays.get(), finish.stopped), (50, StopReason::Finished));
        if threads.shared.granted {
            assert_eq!((woken.get(), calls.get()), (50, 0));
        }
        clean(&threads, &finish);
    });
}

/// A timer and a delay end at the same moment. The task or the kernel thread serves both, and the timer's procedure
/// runs.
#[test]
fn a_timer_that_goes_off_at_the_end_of_a_delay_runs_its_procedure() {
    both(|threads| {
        let runs = Count::default();
        let ran = runs.clone();
        let timer = Program(&threads)
            .timer("with", move |_, _| {
                ran.add();
            })
            .expect("a timer");
        let counted = runs.clone();
        start(&threads, "sleeper", 10, move |ctx| {
            for turn in 1..=100 {
                let at = instant_of(monotonic().after_nanos(100_000));
                ctx.start_timer(timer, at).expect("it exists");
                ctx.delay_until(at).expect("nobody breaks it off");
                while counted.get() < turn {
                    ctx.delay(Nanos::from_micros(10)).expect("nobody breaks it off");
                }
            }
        });
        let finish = threads.run(LIMIT);
        assert_eq!((runs.get(), finish.stopped), (100, StopReason::Finished));
        clean(&threads, &finish);
    });
}

#[test]
fn what_a_timer_procedure_panics_with_comes_out_of_run() {
    let threads = up();
    let body = |_: &crate::calls::TimerCtx<'_>, _: crate::Expiry| {
        std::panic::resume_unwind(Box::new("a timer slipped"));
    };
    let timer = Program(&threads).timer("clumsy", body).expect("a timer");
    threads.call(By::Outside, Call::StartTimer { timer, at: Moment::START, period_ns: 0 });
    let ending = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| threads.run(LIMIT)));
    let payload = ending.expect_err("the panic goes on");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"a timer slipped"));
    assert_eq!(threads.run(LIMIT).stopped, StopReason::Finished, "the executive is whole");
}
