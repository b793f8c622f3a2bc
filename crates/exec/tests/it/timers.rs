//! Timers: once, periodic without drift, overruns that are counted, deletion, and ids that are not used twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hairspring_exec::errors::DeleteError;
use hairspring_exec::{Create, ExecConfig, RunLimit, Services, StopReason, TimerId};
use hairspring_machine::Nanos;

use crate::backends::{Bench, FOREVER, LIMIT, check, micros, sim};

#[test]
fn a_timer_goes_off_once_at_its_moment_and_never_before() {
    check("not_early:true missed:0 again:Ok(false) = Finished", |bench| {
        let log = bench.log.clone();
        let at = bench.executive.now() + Nanos::new(3_000_000);
        let timer = bench.executive.timer("once", move |ctx, expiry| {
            assert_eq!(expiry.deadline, at);
            log.note(format!("not_early:{}", ctx.now() >= at));
            log.note(format!("missed:{}", expiry.missed));
        });
        let timer = timer.expect("few objects");
        bench.executive.start_timer(timer, at).expect("it exists");
        bench.start("late", 20, move |ctx, log| {
            ctx.delay_until(at + Nanos::new(3_000_000)).expect("nobody kills it");
            log.tell("again", ctx.stop_timer(timer));
        });
    });
}

#[test]
fn a_period_of_zero_or_less_is_refused_and_a_stopped_timer_stays_quiet() {
    check("Err(BadInterval) Err(BadInterval) Ok(()) Ok(true) Ok(false) = Finished", |bench| {
        let log = bench.log.clone();
        let timer = bench.executive.timer("never", move |_, _| log.note("not_reached")).expect("few objects");
        bench.start("task", 20, move |ctx, log| {
            let soon = ctx.now() + Nanos::new(500_000_000);
            log.note(format!("{:?}", ctx.start_periodic(timer, soon, Nanos::ZERO)));
            log.note(format!("{:?}", ctx.start_periodic(timer, soon, Nanos::new(-1))));
            log.note(format!("{:?}", ctx.start_periodic(timer, soon, micros(100))));
            log.note(format!("{:?}", ctx.stop_timer(timer)));
            log.note(format!("{:?}", ctx.stop_timer(timer)));
            ctx.delay(micros(4_000)).expect("nobody kills it");
        });
    });
}

#[test]
fn a_hundred_thousand_periods_fall_on_t0_plus_n_p_exactly_and_none_is_early() {
    const PERIODS: u64 = 100_000;
    const PERIOD: Nanos = Nanos::new(10_007);
    let mut bench = Bench::new(sim(), &ExecConfig::default());
    let first = bench.executive.now() + Nanos::new(123_457);
    let [served, runs, missed] = std::array::from_fn(|_| Arc::new(AtomicU64::new(0)));
    let (count, ran, passed) = (Arc::clone(&served), Arc::clone(&runs), Arc::clone(&missed));
    let timer = bench.executive.timer("periodic", move |ctx, expiry| {
        let number = count.load(Ordering::Relaxed) + expiry.missed;
        // The deadline is the one that this run stands for last: t0 + n·p. The next has not come yet.
        assert_eq!(expiry.deadline, first + PERIOD * number.cast_signed());
        assert!(ctx.now() >= expiry.deadline, "early at {number}");
        count.store(number + 1, Ordering::Relaxed);
        ran.fetch_add(1, Ordering::Relaxed);
        passed.fetch_add(expiry.missed, Ordering::Relaxed);
        assert_eq!(expiry.overruns, passed.load(Ordering::Relaxed), "at {number}");
        if number + 1 >= PERIODS {
            ctx.stop();
        }
    });
    bench.executive.start_periodic(timer.expect("few objects"), first, PERIOD).expect("a sensible period");
    // Something that computes, so that expirations fall into the middle of work as well as into idle time.
    bench.start("works", 30, |ctx, _| {
        loop {
            ctx.work(micros(37));
            ctx.delay(micros(53)).expect("it unwinds with the run");
        }
    });
    let finish = bench.executive.run(RunLimit::Forever);
    assert_eq!(finish.stopped, StopReason::Asked);
    // A late wake-up of the simulated machine, 20 to 60 µs, passes periods; each is counted, none made up for. Those
    // that fall into the work, 37 of 90 µs and the wake-up less, have a run of their own: a period is missed only while
    // no task computes.
    let (runs, missed) = (runs.load(Ordering::Relaxed), missed.load(Ordering::Relaxed));
    assert_eq!((runs + missed, finish.timer_overruns), (served.load(Ordering::Relaxed), missed));
    let last = first + PERIOD * (served.load(Ordering::Relaxed) - 1).cast_signed();
    let behind = bench.executive.now() - last;
    assert!(behind < PERIOD, "{behind} after the last: a period that had passed was not counted");
    assert!(runs >= served.load(Ordering::Relaxed) / 4, "{runs} runs");
}

#[test]
fn periods_that_passed_unserved_are_counted_and_not_made_up_for() {
    // The first procedure keeps all others from the CPU for five and a half periods.
    let mut bench = Bench::new(sim(), &ExecConfig::default());
    let zero = bench.executive.now() + Nanos::new(1_000_000);
    let log = bench.log.clone();
    let timer = bench.executive.timer("periodic", move |ctx, expiry| {
        let number = (expiry.deadline - zero).count() / 1_000_000;
        log.note(format!("{number}:missed{}of{}", expiry.missed, expiry.overruns));
        if number >= 9 {
            ctx.stop();
        }
    });
    bench.executive.start_periodic(timer.expect("few objects"), zero, micros(1_000)).expect("a sensible period");
    let machine_is_busy = zero + Nanos::new(1_200_000);
    let timer =
        bench.executive.timer("busy", move |ctx, _| while ctx.now() < machine_is_busy + Nanos::new(5_000_000) {});
    bench.executive.start_timer(timer.expect("few objects"), machine_is_busy).expect("it exists");
    let finish = bench.executive.run(LIMIT);
    assert_eq!(bench.log.text(), "0:missed0of0 1:missed0of0 6:missed4of4 7:missed0of4 8:missed0of4 9:missed0of4");
    assert_eq!((finish.timer_overruns, finish.clean()), (4, false));
}

#[test]
fn a_timer_may_delete_itself_in_its_procedure_and_its_id_is_refused_from_then_on() {
    check("runs deleted:Ok(()) again:Err(NoSuchObject) dropped start:Err(NoSuchObject) = Finished", |bench| {
        let (log, dropped) = (bench.log.clone(), bench.log.on_drop("dropped"));
        let timer = bench.executive.timer("itself", move |ctx, _| {
            let _ = &dropped;
            log.note("runs");
            log.tell("deleted", ctx.delete_timer(ctx.timer()));
            log.tell("again", ctx.delete_timer(ctx.timer()));
        });
        let timer = timer.expect("few objects");
        let soon = bench.executive.now() + Nanos::new(1_000_000);
        bench.executive.start_periodic(timer, soon, micros(500)).expect("a sensible period");
        bench.start("late", 20, move |ctx, log| {
            ctx.delay_until(soon + Nanos::new(2_000_000)).expect("nobody kills it");
            log.tell("start", ctx.start_timer(timer, ctx.now()));
        });
    });
}

#[test]
#[cfg_attr(not(feature = "checks"), ignore = "without parameter checks a stale id is taken at its word")]
fn slots_of_deleted_tasks_are_used_again_and_stale_ids_are_refused() {
    check(
        "1:Ok(()) running:Err(Running) trigger:Err(NoSuchObject) delete:Err(NoSuchObject) same_slot:true second = Finished",
        |bench| {
            bench.start("maker", 10, |ctx, log| {
                let note = log.clone();
                let first = ctx.task("first", crate::backends::priority(20), move |_| note.note("not_reached"));
                let first = first.expect("few objects");
                log.tell("1", ctx.delete_task(first));
                log.tell("running", ctx.delete_task(ctx.id()));
                let note = log.clone();
                let second = ctx.task("second", crate::backends::priority(20), move |_| note.note("second"));
                let second = second.expect("few objects");
                log.tell("trigger", ctx.trigger(first));
                log.tell("delete", ctx.delete_task(first));
                log.note(format!("same_slot:{}", first.index() == second.index() && first != second));
                ctx.trigger(second).expect("it is idle");
            });
        },
    );
}

#[test]
fn a_task_that_has_run_can_be_deleted_and_drops_what_it_captured_and_its_slot_lives_again() {
    check("run0 captured run1 captured run2 captured end = Finished", |bench| {
        bench.start("maker", 10, |ctx, log| {
            for number in 0..3 {
                let (note, captured) = (log.clone(), log.on_drop("captured"));
                let task = ctx.task("made", crate::backends::priority(5), move |ctx| {
                    let _ = &captured;
                    note.note(format!("run{number}"));
                    ctx.wait(FOREVER).expect("it comes");
                });
                let task = task.expect("few objects");
                ctx.trigger(task).expect("it is idle");
                assert_eq!(ctx.delete_task(task), Err(DeleteError::Running));
                ctx.wake(task).expect("it waits");
                ctx.delete_task(task).expect("it is idle");
            }
            log.note("end");
        });
    });
}

#[test]
fn timers_made_by_tasks_take_the_slots_of_deleted_ones_and_stale_ids_do_nothing() {
    check("same_slot:true stale:Err(NoSuchObject) gone_off = Finished", |bench| {
        let doomed = bench.executive.timer("doomed", |ctx, _| ctx.delete_timer(ctx.timer()).expect("it exists"));
        let doomed = doomed.expect("few objects");
        let soon = bench.executive.now() + Nanos::new(500_000);
        bench.executive.start_timer(doomed, soon).expect("it exists");
        bench.start("maker", 20, move |ctx, log| {
            ctx.delay_until(soon + Nanos::new(1_000_000)).expect("nobody kills it");
            let note = log.clone();
            let made: TimerId = ctx.timer("made", move |_, _| note.note("gone_off")).expect("few objects");
            log.note(format!("same_slot:{}", made.index() == doomed.index() && made != doomed));
            log.tell("stale", ctx.stop_timer(doomed));
            ctx.start_timer(made, ctx.now() + Nanos::new(500_000)).expect("it exists");
            ctx.delay(micros(2_000)).expect("nobody kills it");
        });
    });
}

#[test]
fn a_timer_runs_on_in_the_next_run_and_what_it_missed_between_is_counted() {
    let mut bench = Bench::new(sim(), &ExecConfig::default());
    let zero = bench.executive.now() + Nanos::new(1_000_000);
    let log = bench.log.clone();
    let timer = bench.executive.timer("periodic", move |_, expiry| {
        log.note((expiry.deadline - zero).count() / 1_000_000);
    });
    bench.executive.start_periodic(timer.expect("few objects"), zero, micros(1_000)).expect("a sensible period");
    bench.run_for(RunLimit::Until(zero + Nanos::new(2_500_000)));
    bench.run_for(RunLimit::Until(zero + Nanos::new(4_500_000)));
    assert_eq!(bench.log.text(), "0 1 2 = TimeUp 3 4 = TimeUp");
}

#[test]
fn a_signal_and_a_time_out_at_one_moment_have_one_outcome_and_the_unit_is_somewhere() {
    // Point 10, at every nanosecond around the deadline. A task computes meanwhile: an idle machine would wake late and
    // serve both at once, so that the time-out always came first.
    let given = Arc::new(AtomicU64::new(0));
    for offset_ns in -40..=40_i64 {
        let mut bench = Bench::new(sim(), &ExecConfig::default());
        bench.start("works", 20, |ctx, _| ctx.work(micros(200)));
        let units = bench.executive.semaphore(0, 1).expect("few objects");
        let deadline = bench.executive.now() + Nanos::new(100_000);
        let log = bench.log.clone();
        let timer = bench.executive.timer("giver", move |ctx, _| {
            ctx.signal_semaphore(units).expect("below its limit");
            log.note("given");
        });
        let at = deadline + Nanos::new(offset_ns);
        bench.executive.start_timer(timer.expect("few objects"), at).expect("it exists");
        let count = Arc::clone(&given);
        bench.start("waiter", 10, move |ctx, log| {
            let outcome = ctx.wait_semaphore(units, hairspring_exec::Limit::Until(deadline));
            ctx.delay_until(deadline + Nanos::new(10_000)).expect("nobody kills it");
            let left = ctx.wait_semaphore(units, hairspring_exec::Limit::NoWait);
            assert_eq!(outcome.is_ok(), left.is_err(), "given or left, at {offset_ns}");
            count.fetch_add(u64::from(outcome.is_ok()), Ordering::Relaxed);
            log.note("once");
        });
        bench.run();
        assert!(bench.log.text().ends_with("once = Finished"), "{}", bench.log.text());
    }
    // A look at the clock takes time, and serves whatever is due by then.
    let given = given.load(Ordering::Relaxed);
    assert!((1..=40).contains(&given), "the unit came in time at {given} of 40 moments before the deadline");
}
