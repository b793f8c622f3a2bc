//! Results of tasks, waits that others break off, tickers, questions about tasks, and stops from other threads.

use std::sync::mpsc::channel;
use std::time::Duration;

use hairspring_exec::errors::{DelayError, JoinError};
use hairspring_exec::{Create, ExecConfig, Inspect, Limit, Nanos, ResourceProtocol, RunLimit, Services, StopReason};
use hairspring_exec::{TaskState, Waiting};

use crate::backends::{Bench, FOREVER, ROOM, all, alone, check, micros, nth, panic_on_purpose, priority, urgency};

#[test]
fn a_task_waits_for_the_result_of_another_and_the_other_is_deleted_with_it() {
    check("late:Err(TimedOut) works result:Ok(\"42\") gone:true again:Err(NoSuchObject) = Finished", |bench| {
        bench.start("waiter", 20, move |ctx, log| {
            let theirs = log.clone();
            let mut join = ctx
                .spawn("worker", priority(30), move |_| {
                    theirs.note("works");
                    42.to_string()
                })
                .expect("few objects");
            log.tell("late", join.wait(ctx, Limit::NoWait));
            log.tell("result", join.wait(ctx, FOREVER));
            log.note(format!("gone:{}", ctx.task_info(join.task()).is_none()));
            log.tell("again", join.wait(ctx, FOREVER));
        });
    });
}

#[test]
fn a_task_that_was_killed_or_panicked_leaves_no_result() {
    check("killed:Err(Empty) panicked:Err(Empty) = Finished worker:Killed worker:panicked(on purpose)", |bench| {
        bench.start("waiter", 20, move |ctx, log| {
            // It never ran.
            let mut join = ctx.spawn("worker", priority(30), |_| 1).expect("few objects");
            ctx.kill(join.task()).expect("it is in a run");
            log.tell("killed", join.wait(ctx, FOREVER));
            let mut join = ctx.spawn("worker", priority(30), |_| -> u32 { panic_on_purpose() }).expect("few objects");
            log.tell("panicked", join.wait(ctx, FOREVER));
        });
    });
}

#[test]
fn the_program_around_the_executive_takes_a_result_after_the_run() {
    for backend in all() {
        let _alone = backend.name().starts_with("thread").then(alone);
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let mut join = bench.executive.spawn("worker", priority(30), |_| 7).expect("few objects");
        assert_eq!(join.take(), None);
        assert!(bench.run().clean());
        assert_eq!((join.take(), join.take()), (Some(7), None));
    }
}

#[test]
fn a_wait_that_another_task_breaks_off_returns_cancelled() {
    let expected = "Err(Cancelled) Err(Cancelled) Err(Cancelled) Err(Cancelled) Err(Cancelled) Err(Cancelled) \
        none:Ok(false) = Finished";
    check(expected, |bench| {
        let executive = &bench.executive;
        let units = executive.semaphore(0, 1).expect("few objects");
        let queue = executive.message_queue::<u32>(1).expect("few objects");
        let data = executive.mutex(ResourceProtocol::Inherit, ()).expect("few objects");
        let theirs = data.clone();
        bench.start("waiter", 20, move |ctx, log| {
            log.note(format!("{:?}", ctx.wait(FOREVER)));
            log.note(format!("{:?}", ctx.delay(micros(60_000_000))));
            log.note(format!("{:?}", ctx.wait_semaphore(units, FOREVER)));
            log.note(format!("{:?}", queue.receive(ctx, FOREVER)));
            log.note(format!("{:?}", theirs.lock(ctx, FOREVER).map(drop)));
            log.note(format!("{:?}", ctx.wait_for_end(nth(1), FOREVER)));
            ctx.set_priority(ctx.id(), priority(40)).expect("it owns nothing");
        });
        bench.start("canceller", 30, move |ctx, log| {
            let _kept = data.lock(ctx, FOREVER).expect("it is free");
            for _ in 0..6 {
                assert_eq!(ctx.cancel_wait(nth(0)), Ok(true));
            }
            log.tell("none", ctx.cancel_wait(nth(0)));
        });
    });
}

#[test]
fn a_ticker_keeps_its_phase_and_tells_the_ticks_that_passed() {
    check("1:0 2:0 4:1 5:0 zero:Err(BadInterval) on_time:true = Finished", |bench| {
        bench.start("task", 20, move |ctx, log| {
            // Longer than a machine under load stops.
            let period = Nanos::from_millis(20);
            let mut ticker = ctx.ticker(period).expect("it is more than zero");
            let begun = ctx.now();
            let mut on_time = true;
            for rest in [0, 0, 50, 0] {
                ctx.delay(Nanos::from_millis(rest)).expect("nobody breaks it off");
                let tick = ticker.next(ctx).expect("nobody breaks it off");
                log.note(format!("{}:{}", tick.number, tick.missed));
                // The first tick lies one period after a moment just before `begun`.
                let whole = Nanos::new(i64::try_from(tick.number).expect("a few") * period.count());
                on_time &= tick.due <= begun + whole && tick.late >= Nanos::ZERO && ctx.now() >= tick.due;
            }
            log.tell("zero", ctx.ticker(Nanos::ZERO).map(drop));
            log.note(format!("on_time:{on_time}"));
        });
    });
}

#[test]
fn a_tick_that_is_broken_off_is_still_to_come() {
    check("broken:Err(Cancelled) tick:1 = Finished", |bench| {
        bench.start("task", 20, move |ctx, log| {
            let mut ticker = ctx.ticker(Nanos::from_millis(1)).expect("it is more than zero");
            let broken = ticker.next(ctx);
            assert_eq!(broken, Err(DelayError::Cancelled));
            log.tell("broken", broken);
            log.note(format!("tick:{}", ticker.next(ctx).expect("nobody breaks it off").number));
        });
        bench.start("canceller", 30, |ctx, _| assert_eq!(ctx.cancel_wait(nth(0)), Ok(true)));
    });
}

#[test]
fn questions_tell_what_tasks_and_objects_do() {
    check("asked = Finished", |bench| {
        let executive = &bench.executive;
        let units = executive.semaphore(2, 3).expect("few objects");
        let resource = executive.resource(ResourceProtocol::Inherit).expect("few objects");
        let events = executive.events(5).expect("few objects");
        let exchange = executive.exchange::<u32>(ROOM).expect("few objects");
        let pool = executive.pool(vec![0, 1]).expect("few objects");
        let timer = executive.timer("timer", |_, _| {}).expect("few objects");
        let mailbox = bench.mail_task::<u32>("mail", 40, ROOM, |_, _, _, _| {});
        let waits = bench.start("waits", 10, move |ctx, _| ctx.wait_semaphore(units, FOREVER).expect("there are two"));
        let sleeper = bench.start("sleeper", 20, |ctx, _| ctx.wait(Limit::For(Nanos::from_secs(10))).expect("woken"));
        bench.start("asks", 30, move |ctx, log| {
            assert_eq!(ctx.tasks().len(), 4);
            let info = ctx.task_info(sleeper).expect("it exists");
            assert_eq!((info.name.as_str(), info.state, info.waiting), ("sleeper", TaskState::Waiting, Waiting::Wake));
            assert!(info.wait_ends.is_some_and(|ends| ends > ctx.now()) && info.priority == priority(20));
            assert_eq!(ctx.task_info(waits).map(|info| info.state), Some(TaskState::Idle));
            assert_eq!((ctx.semaphore_count(units), ctx.event_bits(events)), (Some(1), Some(5)));
            let _reserved = ctx.reserve(resource, FOREVER).expect("it is free");
            assert_eq!(ctx.resource_owner(resource), Some(ctx.id()));
            ctx.post(exchange, urgency(2), 1).expect("there is room");
            ctx.send(mailbox, urgency(0), 1).expect("there is room");
            ctx.send(mailbox, urgency(1), 1).expect("there is room");
            // The first started the task.
            assert_eq!((ctx.exchange_len(exchange), ctx.mailbox_len(mailbox)), (1, 1));
            assert_eq!(ctx.free_envelopes(), 1024 - 3);
            let _buffer = ctx.buffer(&pool).expect("two are free");
            assert_eq!((ctx.free_buffers(&pool), ctx.timer_expires(timer)), (1, None));
            ctx.wake(sleeper).expect("it waits");
            log.note("asked");
        });
    });
}

#[test]
fn another_thread_ends_a_run_whatever_its_tasks_do() {
    for backend in all().into_iter().skip(1) {
        let name = backend.name();
        let _alone = name.starts_with("thread").then(alone);
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let stopper = bench.executive.stopper();
        let (tell, told) = channel();
        bench.start("task", 20, move |ctx, _| {
            tell.send(()).expect("the other thread waits");
            while ctx.delay(Nanos::from_millis(100)).is_ok() {}
        });
        let other = {
            let stopper = stopper.clone();
            std::thread::spawn(move || {
                told.recv_timeout(Duration::from_secs(20)).expect("the task runs");
                stopper.stop();
            })
        };
        assert_eq!(bench.run().stopped, StopReason::Asked, "on {name}");
        other.join().expect("it only stops");
        // Between two runs it ends the next, and only that.
        stopper.stop();
        bench.executive.trigger(nth(0)).expect("it exists");
        assert_eq!(bench.run().stopped, StopReason::Asked, "on {name}");
        assert_eq!(bench.run_for(RunLimit::For(Nanos::from_secs(20))).stopped, StopReason::Finished, "on {name}");
        drop(bench);
        stopper.stop();
    }
}

#[test]
fn a_join_of_oneself_and_of_a_deleted_task_is_refused() {
    check("done = Finished", |bench| {
        bench.task("other", 10, |_, _| {});
        bench.start("task", 20, |ctx, log| {
            assert_eq!(ctx.wait_for_end(ctx.id(), FOREVER), Err(JoinError::Deadlock));
            assert_eq!(ctx.wait_for_end(nth(0), FOREVER), Ok(hairspring_exec::Ending::Returned));
            ctx.delete_task(nth(0)).expect("it is idle");
            assert_eq!(ctx.wait_for_end(nth(0), FOREVER), Err(JoinError::NoSuchObject));
            log.note("done");
        });
    });
}
