//! Pools of buffers and the parcels that carry them.

use hairspring_exec::errors::CreateError;
use hairspring_exec::{Backend, Create, ExecConfig, Executive, Limit, Parcel, ResourceProtocol, Services};
use hairspring_machine::Nanos;

use crate::backends::{FOREVER, LIMIT, ROOM, check, check_on, check_with, nth, sim_and_fiber, urgency};

#[test]
fn a_pool_gives_each_buffer_once_and_takes_it_back_when_it_is_dropped() {
    check("1 2 Err(Empty) again:20 = Finished", |bench| {
        let pool = bench.executive.pool(vec![1_u32, 2]).expect("few objects");
        assert_eq!(pool.buffers(), 2);
        bench.start("task", 20, move |ctx, log| {
            let first = ctx.buffer(&pool).expect("two are free");
            let mut second = ctx.buffer(&pool).expect("one is free");
            log.note(*first);
            log.note(*second);
            log.note(format!("{:?}", ctx.buffer(&pool).map(drop)));
            *second = 20;
            drop(second);
            // A buffer holds the contents that its last user left.
            log.note(format!("again:{}", *ctx.buffer(&pool).expect("one is free")));
        });
    });
}

#[test]
fn a_buffer_without_a_guard_is_a_number_that_is_given_back_once() {
    check("0 1 Err(Empty) Ok(()) Err(NotInUse) Err(NotInUse) foreign:Err(NoSuchObject) 0 = Finished", |bench| {
        let pool = bench.executive.pool(vec![(); 2]).expect("few objects");
        let foreign = Executive::new(Backend::sim(), &ExecConfig::default()).expect("no shadow stack");
        let foreign = foreign.pool(vec![(); 2]).expect("few objects");
        bench.start("task", 20, move |ctx, log| {
            log.note(ctx.buffer_unguarded(&pool).expect("two are free"));
            log.note(ctx.buffer_unguarded(&pool).expect("one is free"));
            log.note(format!("{:?}", ctx.buffer_unguarded(&pool)));
            for number in [0, 0, 2] {
                log.note(format!("{:?}", ctx.give_back(&pool, number)));
            }
            log.tell("foreign", ctx.give_back(&foreign, 1));
            log.note(ctx.buffer_unguarded(&pool).expect("one came back"));
        });
    });
}

#[test]
fn a_parcel_carries_a_buffer_to_another_task_without_a_copy_and_is_opened_once() {
    check("sent sum:6 again:Err(NotInUse) foreign:Err(NotInUse) none:Err(Empty) = Finished", |bench| {
        let pool = bench.executive.pool(vec![Vec::with_capacity(3)]).expect("few objects");
        let other = bench.executive.pool(vec![Vec::<u32>::new()]).expect("few objects");
        let mine = pool.clone();
        let mailbox = bench.mail_task::<Parcel>("receiver", 20, ROOM, move |ctx, log, _, parcel| {
            let buffer = ctx.open_parcel(&mine, parcel).expect("it has just come");
            log.note(format!("sum:{}", buffer.iter().sum::<u32>()));
            log.tell("again", ctx.open_parcel(&mine, parcel).map(drop));
            log.tell("foreign", ctx.open_parcel(&other, parcel).map(drop));
            log.tell("none", ctx.buffer(&mine).map(drop));
        });
        bench.start("sender", 10, move |ctx, log| {
            let mut buffer = ctx.buffer(&pool).expect("it is free");
            buffer.extend([1, 2, 3]);
            ctx.send(mailbox, urgency(0), buffer.into_parcel()).expect("there is room");
            log.note("sent");
        });
    });
}

#[test]
fn a_parcel_that_was_opened_and_given_back_is_refused_though_its_buffer_is_in_use_again() {
    check("stale:Err(NotInUse) = Finished", |bench| {
        let pool = bench.executive.pool(vec![0_u32]).expect("few objects");
        bench.start("task", 20, move |ctx, log| {
            let parcel = ctx.buffer(&pool).expect("it is free").into_parcel();
            drop(ctx.open_parcel(&pool, parcel).expect("it is on its way"));
            let _in_use = ctx.buffer(&pool).expect("it came back");
            log.tell("stale", ctx.open_parcel(&pool, parcel).map(drop));
        });
    });
}

#[test]
fn a_task_that_is_killed_gives_its_buffers_back() {
    check("empty:Err(Empty) free:Ok(()) = Finished holder:Killed", |bench| {
        let pool = bench.executive.pool(vec![0_u32]).expect("few objects");
        let mine = pool.clone();
        let holder = bench.start("holder", 10, move |ctx, _| {
            let _buffer = ctx.buffer(&mine).expect("it is free");
            ctx.wait(FOREVER).expect("it unwinds here");
        });
        bench.start("low", 20, move |ctx, log| {
            log.tell("empty", ctx.buffer(&pool).map(drop));
            ctx.kill(holder).expect("it waits");
            log.tell("free", ctx.buffer(&pool).map(drop));
        });
    });
}

#[test]
fn a_task_that_is_killed_while_it_takes_a_buffer_does_not_keep_it_for_good() {
    // Symptom: a pool lost a buffer for each task that was preempted inside `buffer()` and killed there. The core had
    // given the buffer, but no value whose drop gives it back existed yet. On threads the interrupt comes at any time.
    let expected = "free:true killer low:Ok(()) = Asked victim:Killed";
    check_on(sim_and_fiber(), &ExecConfig::default(), expected, |bench| {
        let pool = bench.executive.pool(vec![0_u32]).expect("few objects");
        let mine = pool.clone();
        bench.start("killer", 10, move |ctx, log| {
            ctx.wait(FOREVER).expect("the interrupt wakes it");
            log.note("killer");
            ctx.kill(nth(1)).expect("it is in a run");
        });
        let isp = bench.isp(|ctx, _| {
            ctx.wake(nth(0)).expect("it waits");
        });
        bench.start("victim", 20, move |ctx, log| {
            log.note(format!("free:{}", ctx.buffer(&mine).is_ok()));
            // Served at the end of the next call of fibers, and within it or at once by the others.
            isp.post().expect("the ring is empty");
            let _buffer = ctx.buffer(&mine);
            ctx.wait(Limit::NoWait).expect_err("nobody wakes it");
            log.note("not_reached");
        });
        bench.start("low", 30, move |ctx, log| {
            log.tell("low", ctx.buffer(&pool).map(drop));
            // An attached source keeps the run of the real back-ends going.
            ctx.stop();
        });
        bench.run();
    });
}

#[test]
fn a_task_that_is_killed_while_it_computes_gives_back_what_it_then_drops() {
    // Symptom: on threads a pool lost a buffer for each task that was killed between two calls, and a guard was
    // reported as a resource that its task had kept. Cause: the call of the destructor unwound the task instead of
    // giving back what it held.
    for guard_first in [false, true] {
        let expected = "killer buffer:Ok(()) resource:Ok(()) = Asked victim:Killed";
        check_with(&ExecConfig::default(), expected, |bench| {
            let pool = bench.executive.pool(vec![0_u32]).expect("few objects");
            let resource = bench.executive.resource(ResourceProtocol::None).expect("few objects");
            let mine = pool.clone();
            bench.start("killer", 10, move |ctx, log| {
                ctx.wait(FOREVER).expect("the interrupt wakes it");
                log.note("killer");
                ctx.kill(nth(1)).expect("it is in a run");
            });
            let isp = bench.isp(|ctx, _| {
                ctx.wake(nth(0)).expect("it waits");
            });
            bench.start("victim", 20, move |ctx, log| {
                let buffer = ctx.buffer(&mine).expect("it is free");
                let guard = ctx.reserve(resource, FOREVER).expect("it is free");
                // A post is no call: on threads the kill comes here, on fibers at the end of the call that follows.
                isp.post().expect("the ring is empty");
                if guard_first {
                    drop(guard);
                } else {
                    drop(buffer);
                }
                log.note("not_reached");
            });
            bench.start("low", 30, move |ctx, log| {
                log.tell("buffer", ctx.buffer(&pool).map(drop));
                log.tell("resource", ctx.reserve(resource, Limit::NoWait).map(drop));
                // An attached source keeps the run of the real back-ends going.
                ctx.stop();
            });
            bench.run();
        });
    }
}

#[test]
fn a_pool_is_whole_however_often_a_task_is_killed_while_it_takes_buffers() {
    // On threads the kill comes at any instruction: also after the buffer was given, and before the task has it.
    check_with(&ExecConfig::default(), "lost:0 Asked", |bench| {
        const KILLS: u64 = 200;
        let pool = bench.executive.pool(vec![0_u32, 1]).expect("few objects");
        let mine = pool.clone();
        let victim = bench.task("victim", 20, move |ctx, _| {
            loop {
                let first = ctx.buffer(&mine);
                let second = ctx.buffer(&mine);
                drop((second, first));
            }
        });
        bench.start("killer", 10, move |ctx, _| {
            for number in 0.. {
                // At another point of the victim's loop each time.
                ctx.delay(Nanos::new(30_000 + number * 7_919 % 20_011)).expect("it unwinds with the run");
                ctx.kill(victim).expect("it exists");
            }
        });
        bench.start("starts", 30, move |ctx, log| {
            let mut lost = 0;
            for _ in 0..KILLS {
                // Runs until it is killed.
                ctx.trigger(victim).expect("it is idle");
                let all = [ctx.buffer(&pool), ctx.buffer(&pool)];
                lost += all.iter().filter(|buffer| buffer.is_err()).count();
            }
            log.note(format!("lost:{lost}"));
            ctx.stop();
        });
        let finish = bench.executive.run(LIMIT);
        bench.log.note(format!("{:?}", finish.stopped));
    });
}

#[test]
fn an_empty_pool_and_a_pool_that_is_too_large_are_what_they_are() {
    check("none:Err(Empty) = Finished", |bench| {
        let none = bench.executive.pool(Vec::<u8>::new()).expect("few objects");
        assert_eq!(bench.executive.pool(vec![0_u8; 65_536]).map(drop), Err(CreateError::TooMany));
        bench.start("task", 20, move |ctx, log| log.tell("none", ctx.buffer(&none).map(drop)));
    });
}
