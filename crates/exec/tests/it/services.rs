//! Tasks and what they do to each other: starts, wakes, suspension, priorities, semaphores, events, signals, time-outs.

use hairspring_exec::errors::{BitsError, CreateError, WaitError};
use hairspring_exec::{
    Bits, Create, Ending, Limit, Observer, Priority, RunLimit, Services, TaskId, Waiting, WakeOutcome,
};
use hairspring_machine::Nanos;

use crate::backends::{FOREVER, LIMIT, Log, check, check_with, micros, nth, priority};

#[test]
fn a_more_urgent_task_preempts_inside_the_call_that_readies_it() {
    check("low1 high low2 = Finished", |bench| {
        let high = bench.task("high", 10, |_, log| log.note("high"));
        bench.start("low", 20, move |ctx, log| {
            log.note("low1");
            ctx.trigger(high).expect("it is idle");
            log.note("low2");
        });
    });
}

#[test]
fn equals_run_in_the_order_of_their_starts_and_never_preempt() {
    check("a1 a2 b c = Finished", |bench| {
        let [b, c] = ["b", "c"].map(|name| bench.task(name, 20, move |_, log| log.note(name)));
        bench.start("a", 20, move |ctx, log| {
            log.note("a1");
            ctx.trigger(b).expect("it is idle");
            ctx.trigger(c).expect("it is idle");
            log.note("a2");
        });
    });
}

#[test]
fn a_run_that_ends_with_another_start_pending_begins_again_behind_its_equals() {
    check("twice once twice = Finished", |bench| {
        let twice = bench.task("twice", 20, |_, log| log.note("twice"));
        let once = bench.task("once", 20, |_, log| log.note("once"));
        bench.start("starter", 10, move |ctx, _| {
            for task in [twice, twice, once] {
                ctx.trigger(task).expect("it is there");
            }
        });
    });
}

#[test]
fn a_preempted_task_keeps_its_place_before_its_equals() {
    check("a1 high a2 b = Finished", |bench| {
        let high = bench.task("high", 10, |_, log| log.note("high"));
        bench.start("a", 20, move |ctx, log| {
            log.note("a1");
            ctx.trigger(high).expect("it is idle");
            log.note("a2");
        });
        bench.start("b", 20, |_, log| log.note("b"));
    });
}

#[test]
fn yield_lets_equals_run_first_and_nobody_less_urgent() {
    check("a1 b1 a2 b2 low = Finished", |bench| {
        bench.start("low", 30, |_, log| log.note("low"));
        for (first, second) in [("a1", "a2"), ("b1", "b2")] {
            bench.start("peer", 20, move |ctx, log| {
                log.note(first);
                ctx.yield_now();
                log.note(second);
            });
        }
    });
}

#[test]
fn every_trigger_is_one_run() {
    check("maker run1 run2 run3 = Finished", |bench| {
        let mut runs = 0;
        let counted = bench.task("counted", 20, move |_, log| {
            runs += 1;
            log.note(format!("run{runs}"));
        });
        bench.start("maker", 10, move |ctx, log| {
            for _ in 0..3 {
                ctx.trigger(counted).expect("it exists");
            }
            log.note("maker");
        });
    });
}

#[test]
fn starts_count_up_to_their_limit_and_one_more_is_refused() {
    check("Err(TriggerOverflow) runs:65536 = Finished", |bench| {
        let mut runs = 0_u32;
        let counted = bench.task("counted", 10, move |ctx, log| {
            runs += 1;
            if runs == 1 {
                // This run is one start; as many more as can be counted, and one that cannot.
                (0..u16::MAX).for_each(|_| ctx.trigger(ctx.id()).expect("it can be counted"));
                log.note(format!("{:?}", ctx.trigger(ctx.id())));
            }
            if runs == 65_536 {
                log.note(format!("runs:{runs}"));
            }
        });
        bench.executive.trigger(counted).expect("it is idle");
    });
}

#[test]
fn a_wake_is_kept_one_deep_and_the_second_is_told() {
    check("1:Ok(Pending) 2:Err(WakeAlreadyPending) kept:Ok(()) none:Err(TimedOut) = Finished", |bench| {
        bench.start("self", 20, |ctx, log| {
            log.tell("1", ctx.wake(ctx.id()));
            log.tell("2", ctx.wake(ctx.id()));
            log.tell("kept", ctx.wait(FOREVER));
            log.tell("none", ctx.wait(Limit::NoWait));
        });
    });
}

#[test]
fn a_wake_ends_a_wait_at_once_and_leaves_nothing() {
    check("waits woken:Ok(()) again:Err(TimedOut) waker:Ok(Now) = Finished", |bench| {
        let sleeper = bench.start("sleeper", 10, |ctx, log| {
            log.note("waits");
            log.tell("woken", ctx.wait(FOREVER));
            log.tell("again", ctx.wait(Limit::NoWait));
        });
        bench.start("waker", 20, move |ctx, log| log.tell("waker", ctx.wake(sleeper)));
    });
}

#[test]
fn a_wake_and_signals_are_forgotten_at_the_next_run() {
    check("run1 wake:Err(TimedOut) signals:Err(TimedOut) reset:false = Finished", |bench| {
        let mut first = true;
        let task = bench.start("twice", 20, move |ctx, log| {
            if std::mem::take(&mut first) {
                log.note("run1");
                ctx.wake(ctx.id()).expect("the first is kept");
                ctx.signal(ctx.id(), 7).expect("it runs");
            } else {
                log.tell("wake", ctx.wait(Limit::NoWait));
                log.tell("signals", ctx.wait_signals(Bits::Any(7), Limit::NoWait));
                log.tell("reset", ctx.wake_reset());
            }
        });
        bench.executive.trigger(task).expect("it can be counted");
    });
}

#[test]
fn wake_reset_forgets_the_wake_and_says_whether_there_was_one() {
    check("true false Err(TimedOut) = Finished", |bench| {
        bench.start("self", 20, |ctx, log| {
            ctx.wake(ctx.id()).expect("the first is kept");
            log.note(ctx.wake_reset());
            log.note(ctx.wake_reset());
            log.note(format!("{:?}", ctx.wait(Limit::NoWait)));
        });
    });
}

#[test]
fn an_idle_task_cannot_be_woken_signalled_or_suspended() {
    check(
        "wake:Err(NotStarted) signal:Err(NotStarted) suspend:Err(NotStarted) resume:Err(NotStarted) = Finished",
        |bench| {
            let idle = bench.task("idle", 30, |_, _| {});
            bench.start("self", 20, move |ctx, log| {
                log.tell("wake", ctx.wake(idle));
                log.tell("signal", ctx.signal(idle, 1));
                log.tell("suspend", ctx.suspend(idle));
                log.tell("resume", ctx.resume(idle));
            });
        },
    );
}

#[test]
fn end_from_deep_inside_drops_everything_on_the_stack_and_the_task_starts_again() {
    check("run1 inner outer run2 = Finished", |bench| {
        let mut runs = 0;
        let task = bench.start("deep", 20, move |ctx, log| {
            runs += 1;
            log.note(format!("run{runs}"));
            if runs == 1 {
                let _outer = log.on_drop("outer");
                fn dive(ctx: &hairspring_exec::TaskCtx<'_>, log: &crate::backends::Log, depth: u32) {
                    if depth == 0 {
                        let _inner = log.on_drop("inner");
                        ctx.end();
                    }
                    dive(ctx, log, depth - 1);
                    log.note("not reached");
                }
                dive(ctx, log, 20);
            }
        });
        bench.executive.trigger(task).expect("it can be counted");
    });
}

#[test]
fn a_suspended_task_waits_for_its_resumption_and_not_for_its_wait_alone() {
    check(
        "waits suspend:Ok(()) again:Err(AlreadySuspended) woke woken resume:Ok(()) again:Err(NotStarted) = Finished",
        |bench| {
            let other = bench.start("other", 20, |ctx, log| {
                log.note("waits");
                ctx.wait(FOREVER).expect("it is woken");
                log.note("woken");
            });
            bench.start("low", 30, move |ctx, log| {
                log.tell("suspend", ctx.suspend(other));
                log.tell("again", ctx.suspend(other));
                ctx.wake(other).expect("it waits");
                log.note("woke");
                log.tell("resume", ctx.resume(other));
                log.tell("again", ctx.resume(other));
            });
        },
    );
}

#[test]
fn a_task_that_suspends_itself_goes_on_where_it_was_when_it_is_resumed() {
    check("before other after:Ok(()) resumed:Ok(()) = Finished", |bench| {
        let me = bench.start("self", 10, |ctx, log| {
            log.note("before");
            log.tell("after", ctx.suspend(ctx.id()));
        });
        bench.start("other", 20, move |ctx, log| {
            log.note("other");
            let resumed = ctx.resume(me);
            log.tell("resumed", resumed);
        });
    });
}

#[test]
fn a_preempted_task_that_is_suspended_stays_stopped_until_it_is_resumed() {
    check("low1 high low_is_still third low2 = Finished", |bench| {
        // High preempts low inside low's call, suspends it, and lets a third, less urgent than low, run.
        let high = bench.task("high", 10, |ctx, log| {
            log.note("high");
            ctx.suspend(nth(1)).expect("it is in a run");
            ctx.trigger(nth(2)).expect("it is idle");
            log.note("low_is_still");
        });
        let low = bench.start("low", 20, move |ctx, log| {
            log.note("low1");
            ctx.trigger(high).expect("it is idle");
            log.note("low2");
        });
        bench.task("third", 30, move |ctx, log| {
            log.note("third");
            ctx.resume(low).expect("it is suspended");
        });
    });
}

#[test]
fn set_priority_of_itself_goes_to_the_end_of_the_new_list_and_nowhere_for_the_same_priority() {
    check("a1 a2 b low low2 a3 = Finished", |bench| {
        bench.start("a", 20, |ctx, log| {
            log.note("a1");
            ctx.set_priority(ctx.id(), priority(20)).expect("it owns nothing");
            log.note("a2");
            ctx.set_priority(ctx.id(), priority(40)).expect("it owns nothing");
            log.note("a3");
        });
        bench.start("b", 20, |_, log| log.note("b"));
        bench.start("low", 30, |_, log| log.note("low"));
        bench.start("low2", 40, |_, log| log.note("low2"));
    });
}

#[test]
fn raising_another_above_oneself_lets_it_run_before_the_call_returns() {
    check("low1 other low2 = Finished", |bench| {
        let other = bench.task("other", 40, |_, log| log.note("other"));
        bench.start("low", 20, move |ctx, log| {
            ctx.trigger(other).expect("it is idle");
            log.note("low1");
            ctx.set_priority(other, priority(10)).expect("it owns nothing");
            log.note("low2");
        });
    });
}

#[test]
fn raising_a_waiter_moves_it_in_its_wait_list_unless_its_place_was_given() {
    check("second first given = Finished", |bench| {
        let line = bench.executive.semaphore(0, 9).expect("few objects");
        bench.start("first", 20, move |ctx, log| {
            ctx.wait_semaphore(line, FOREVER).expect("it comes");
            log.note("first");
        });
        bench.start("second", 21, move |ctx, log| {
            ctx.wait_semaphore(line, FOREVER).expect("it comes");
            log.note("second");
        });
        bench.start("given", 22, move |ctx, log| {
            ctx.wait_semaphore_at(line, Priority::LOWEST, FOREVER).expect("it comes");
            log.note("given");
        });
        bench.start("low", 30, move |ctx, _| {
            ctx.set_priority(nth(1), priority(5)).expect("it owns nothing");
            ctx.set_priority(nth(2), priority(4)).expect("it owns nothing");
            (0..3).for_each(|_| ctx.signal_semaphore(line).expect("below its limit"));
        });
    });
}

#[test]
fn a_semaphore_counts_to_its_limit_and_hands_units_to_waiters_by_priority() {
    check("1:Ok(()) 2:Ok(()) 3:Err(Overflow) high low = Finished", |bench| {
        let units = bench.executive.semaphore(0, 2).expect("few objects");
        assert_eq!(bench.executive.semaphore(3, 2), Err(CreateError::Overflow));
        for (name, number) in [("low", 21), ("high", 20)] {
            bench.task(name, number, move |ctx, log| {
                ctx.wait_semaphore(units, FOREVER).expect("it comes");
                log.note(name);
            });
        }
        bench.start("giver", 10, move |ctx, log| {
            for name in ["1", "2", "3"] {
                log.tell(name, ctx.signal_semaphore(units));
            }
            // Both take what is there, and then wait: low first, and is passed over.
            ctx.wait_semaphore(units, FOREVER).expect("two are there");
            ctx.wait_semaphore(units, FOREVER).expect("two are there");
            ctx.trigger(nth(0)).expect("it is idle");
            ctx.delay(micros(500)).expect("nobody kills it");
            ctx.trigger(nth(1)).expect("it is idle");
            ctx.delay(micros(500)).expect("nobody kills it");
            ctx.signal_semaphore(units).expect("below its limit");
            ctx.signal_semaphore(units).expect("below its limit");
        });
    });
}

#[test]
fn events_are_looked_at_in_the_order_of_the_line_and_taken_by_the_first_that_takes() {
    check("all:Ok(3) any:Ok(4) left:Err(TimedOut) stays:Ok(8) stays:Ok(8) none:Err(NoBits) = Finished", |bench| {
        let group = bench.executive.events(0).expect("few objects");
        bench.start("all", 20, move |ctx, log| log.tell("all", ctx.wait_events(group, Bits::All(3), true, FOREVER)));
        bench.start("any", 21, move |ctx, log| log.tell("any", ctx.wait_events(group, Bits::Any(6), true, FOREVER)));
        bench.start("low", 30, move |ctx, log| {
            ctx.signal_events(group, 1).expect("it exists");
            ctx.signal_events(group, 2).expect("it exists");
            ctx.signal_events(group, 4).expect("it exists");
            log.tell("left", ctx.wait_events(group, Bits::Any(7), false, Limit::NoWait));
            ctx.signal_events(group, 8).expect("it exists");
            log.tell("stays", ctx.wait_events(group, Bits::Any(8), false, Limit::NoWait));
            log.tell("stays", ctx.wait_events(group, Bits::All(8), true, Limit::NoWait));
            log.tell("none", ctx.wait_events(group, Bits::Any(0), true, FOREVER));
        });
    });
}

#[test]
fn signals_of_a_task_are_its_own_and_taken_as_asked() {
    check("any:Ok(2) all:Ok(12) rest:Ok(1) none:Err(NoBits) = Finished", |bench| {
        let owner = bench.start("owner", 20, |ctx, log| {
            log.tell("any", ctx.wait_signals(Bits::Any(6), FOREVER));
            log.tell("all", ctx.wait_signals(Bits::All(12), FOREVER));
            log.tell("rest", ctx.wait_signals(Bits::Any(u32::MAX), Limit::NoWait));
            log.tell("none", ctx.wait_signals(Bits::All(0), FOREVER));
        });
        bench.start("low", 30, move |ctx, _| {
            for bits in [1, 2, 8, 4] {
                ctx.signal(owner, bits).expect("it is in a run");
            }
        });
    });
}

#[test]
fn a_span_of_zero_or_less_is_over_at_once_and_lets_nobody_less_urgent_run() {
    let expected = "wait:Err(TimedOut) negative:Err(TimedOut) past:Err(TimedOut) semaphore:Err(TimedOut) delay:Ok(()) \
        delay_negative:Ok(()) delay_past:Ok(()) low = Finished";
    check(expected, |bench| {
        let never = bench.executive.semaphore(0, 1).expect("few objects");
        bench.start("high", 10, move |ctx, log| {
            let past = ctx.now();
            log.tell("wait", ctx.wait(Limit::For(Nanos::ZERO)));
            log.tell("negative", ctx.wait(Limit::For(Nanos::new(-5))));
            log.tell("past", ctx.wait(Limit::Until(past)));
            log.tell("semaphore", ctx.wait_semaphore(never, Limit::For(Nanos::new(-1))));
            log.tell("delay", ctx.delay(Nanos::ZERO));
            log.tell("delay_negative", ctx.delay(Nanos::new(-1)));
            log.tell("delay_past", ctx.delay_until(past));
        });
        bench.start("low", 20, |_, log| log.note("low"));
    });
}

#[test]
fn a_delay_is_never_early_and_neither_is_a_time_out() {
    check("ok ok ok = Finished", |bench| {
        bench.start("sleeper", 10, |ctx, log| {
            let deadline = ctx.now() + Nanos::new(2_000_000);
            ctx.delay_until(deadline).expect("nobody kills it");
            log.note(if ctx.now() >= deadline { "ok" } else { "early" });
            let deadline = ctx.now() + Nanos::new(1_000_000);
            assert_eq!(ctx.wait(Limit::For(micros(1_000))), Err(WaitError::TimedOut));
            log.note(if ctx.now() >= deadline { "ok" } else { "early" });
            let deadline = ctx.now() + Nanos::new(1_000);
            assert_eq!(ctx.wait_signals(Bits::Any(1), Limit::Until(deadline)), Err(BitsError::TimedOut));
            log.note(if ctx.now() >= deadline { "ok" } else { "early" });
        });
    });
}

/// Tasks with priorities that wait until moments, in milliseconds, after one and the same moment.
fn delays(bench: &crate::backends::Bench, tasks: [(&'static str, u8, i64); 4]) {
    let zero = std::sync::Arc::new(std::sync::OnceLock::new());
    for (name, number, after_ms) in tasks {
        let zero = std::sync::Arc::clone(&zero);
        bench.start(name, number, move |ctx, log| {
            let zero = zero.get_or_init(|| ctx.now() + Nanos::new(5_000_000));
            ctx.delay_until(*zero + Nanos::new(after_ms * 1_000_000)).expect("nobody kills it");
            log.note(name);
        });
    }
}

#[test]
fn delays_end_in_the_order_of_their_deadlines_and_equal_ones_by_priority() {
    // The more urgent end first, so that a machine that is late for several at once cannot change the order.
    check("c b2 b1 a = Finished", |bench| delays(bench, [("a", 40, 3), ("b1", 21, 2), ("b2", 20, 2), ("c", 10, 1)]));
}

#[test]
fn in_virtual_time_delays_end_in_the_order_of_their_deadlines_whatever_the_priorities() {
    let mut bench = crate::backends::Bench::new(crate::backends::sim(), &hairspring_exec::ExecConfig::default());
    delays(&bench, [("a", 10, 3), ("b1", 21, 2), ("b2", 20, 2), ("c", 40, 1)]);
    bench.run();
    assert_eq!(bench.log.text(), "c b2 b1 a = Finished");
}

#[test]
fn a_wait_that_was_satisfied_is_not_timed_out_afterwards() {
    // Point 10: the wake comes first, and the deadline passes while the task is ready but not running.
    check("high_done as_the_waker_was_told:true again:Err(TimedOut) = Finished", |bench| {
        let told = std::sync::Arc::new(std::sync::OnceLock::new());
        let deadline = bench.executive.now() + Nanos::new(30_000_000);
        let waker_told = std::sync::Arc::clone(&told);
        let waiter = bench.start("waiter", 20, move |ctx, log| {
            let outcome = ctx.wait(Limit::Until(deadline));
            // On a machine that was kept away for 30 ms the time-out came first, and the waker's result shows it.
            let woken = told.get() == Some(&Ok(WakeOutcome::Now));
            log.note(format!("as_the_waker_was_told:{}", outcome.is_ok() == woken));
            ctx.wake_reset();
            log.tell("again", ctx.wait(Limit::For(micros(10))));
        });
        bench.start("waker", 30, move |ctx, log| {
            ctx.set_priority(ctx.id(), priority(10)).expect("it owns nothing");
            waker_told.set(ctx.wake(waiter)).expect("set once");
            while ctx.now() <= deadline {
                ctx.work(micros(1_000));
            }
            log.note("high_done");
        });
    });
}

#[test]
fn a_unit_that_comes_after_the_time_is_not_given_to_who_was_told_timed_out() {
    check("waiter:Err(TimedOut) give:Ok(()) kept:Ok(()) = Finished", |bench| {
        let units = bench.executive.semaphore(0, 1).expect("few objects");
        bench.start("waiter", 10, move |ctx, log| {
            log.tell("waiter", ctx.wait_semaphore(units, Limit::For(micros(100))));
        });
        bench.start("giver", 20, move |ctx, log| {
            ctx.delay(micros(2_000)).expect("nobody kills it");
            log.tell("give", ctx.signal_semaphore(units));
            log.tell("kept", ctx.wait_semaphore(units, Limit::NoWait));
        });
    });
}

#[test]
fn a_run_ends_for_each_of_its_reasons_and_the_next_one_begins_afresh() {
    let expected = "run = Finished run dropped = TimeUp run dropped = Asked run dropped = Stuck run = Finished";
    check_with(&hairspring_exec::ExecConfig::default(), expected, |bench| {
        let mut runs = 0;
        let task = bench.task("task", 20, move |ctx, log| {
            runs += 1;
            log.note("run");
            let _dropped = (runs < 5 && runs > 1).then(|| log.on_drop("dropped"));
            match runs {
                2 => loop {
                    // A task that never waits: the limit ends it at a call.
                    ctx.yield_now();
                },
                3 => ctx.stop(),
                4 => ctx.wait(FOREVER).expect("it unwinds here"),
                _ => {}
            }
        });
        // The limit is looked at before a task has its turn, too: a busy machine needs time to get there.
        for limit in [LIMIT, RunLimit::For(micros(50_000)), LIMIT, RunLimit::Forever, RunLimit::Forever] {
            bench.executive.trigger(task).expect("it is idle");
            bench.run_for(limit);
        }
    });
}

#[test]
fn a_run_until_a_moment_that_has_passed_ends_at_once() {
    check_with(&hairspring_exec::ExecConfig::default(), "= TimeUp = TimeUp", |bench| {
        bench.start("task", 20, |ctx, _| while ctx.delay(micros(100)).is_ok() {});
        let now = bench.executive.now();
        bench.run_for(RunLimit::Until(now));
        bench.start("task", 20, |ctx, _| while ctx.delay(micros(100)).is_ok() {});
        bench.run_for(RunLimit::For(Nanos::new(-1)));
    });
}

#[test]
fn a_task_that_loops_on_preempt_points_or_work_ends_with_the_run() {
    check_with(&hairspring_exec::ExecConfig::default(), "= TimeUp = TimeUp", |bench| {
        bench.start("points", 20, |ctx, _| {
            loop {
                ctx.preempt_point();
                // In virtual time nothing else lets it pass.
                ctx.work(micros(1));
            }
        });
        bench.run_for(RunLimit::For(micros(500)));
        bench.start("works", 20, |ctx, _| ctx.work(Nanos::from_secs(3_600)));
        bench.run_for(RunLimit::For(micros(500)));
    });
}

/// Logs each call of a hook.
struct Hooks(Log);

impl Observer for Hooks {
    fn started(&mut self, task: TaskId) {
        self.0.note(format!("{task:?}:started"));
    }

    fn readied(&mut self, task: TaskId) {
        self.0.note(format!("{task:?}:readied"));
    }

    fn stopped(&mut self, task: TaskId, waiting: Waiting) {
        self.0.note(format!("{task:?}:{}", if waiting == Waiting::Wake { "waits" } else { "stopped" }));
    }

    fn ended(&mut self, task: TaskId, _how: Ending) {
        self.0.note(format!("{task:?}:ended"));
    }
}

#[test]
fn hooks_are_told_every_decision_in_order() {
    let expected = "T0:started T0:readied T1:started T1:readied T0:waits T0:readied T0:stopped T0:ended T1:stopped \
                    T1:ended = Finished";
    check(expected, |bench| {
        bench.executive.set_hooks(Hooks(bench.log.clone()));
        let high = bench.start("high", 10, |ctx, _| ctx.wait(FOREVER).expect("it comes"));
        bench.start("low", 20, move |ctx, _| {
            ctx.wake(high).expect("it waits");
        });
    });
}
