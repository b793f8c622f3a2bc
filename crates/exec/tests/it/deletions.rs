//! Deleting objects that tasks share, on every back-end: waiting tasks go on without the object, and every later use is
//! refused.

use std::sync::Arc;

use hairspring_exec::errors::{InUseError, ObjectError, ReserveError, SelectError, WaitError};
use hairspring_exec::{
    Bits, Create, ExecConfig, Inspect, Limit, ResourceProtocol, RunLimit, Selectable, Services, Urgency,
};
use hairspring_machine::Nanos;

use crate::backends::{Bench, FOREVER, check, sim, sim_and_fiber};

/// A task of priority 10 waits in `wait`; one of priority 20 deletes, and then uses it in vain.
macro_rules! waiter_is_told {
    ($object:ident = $make:expr, $wait:expr, $delete:expr, $later:expr) => {
        check("waiter:gone deleter:gone again:Err(NoSuchObject) = Finished", |bench| {
            let $object = ($make)(bench);
            bench.start("waiter", 10, {
                let $object = $object.clone();
                move |ctx, log| {
                    let told = ($wait)(ctx, &$object);
                    log.note(format!("waiter:{}", if told { "gone" } else { "served" }));
                }
            });
            bench.start("deleter", 20, move |ctx, log| {
                ($delete)(ctx, &$object).expect("it exists");
                log.note(format!("deleter:{}", if ($later)(ctx, &$object) { "gone" } else { "there" }));
                log.tell("again", ($delete)(ctx, &$object));
            });
        });
    };
}

#[test]
fn a_semaphore() {
    waiter_is_told!(
        semaphore = |bench: &mut Bench| bench.executive.semaphore(0, 1).expect("few"),
        |ctx: &hairspring_exec::TaskCtx<'_>, s: &_| ctx.wait_semaphore(*s, FOREVER) == Err(WaitError::NoSuchObject),
        |ctx: &hairspring_exec::TaskCtx<'_>, s: &_| ctx.delete_semaphore(*s),
        |ctx: &hairspring_exec::TaskCtx<'_>, s: &_| ctx.semaphore_count(*s).is_none()
    );
}

#[test]
fn an_event_group() {
    waiter_is_told!(
        events = |bench: &mut Bench| bench.executive.events(0).expect("few"),
        |ctx: &hairspring_exec::TaskCtx<'_>, e: &_| ctx.wait_events(*e, Bits::Any(1), true, FOREVER).is_err(),
        |ctx: &hairspring_exec::TaskCtx<'_>, e: &_| ctx.delete_events(*e),
        |ctx: &hairspring_exec::TaskCtx<'_>, e: &_| ctx.signal_events(*e, 1) == Err(ObjectError::NoSuchObject)
    );
}

#[test]
fn an_exchange() {
    waiter_is_told!(
        exchange = |bench: &mut Bench| bench.executive.exchange::<u32>([1; 4]).expect("few"),
        |ctx: &hairspring_exec::TaskCtx<'_>, x: &_| ctx.fetch(*x, FOREVER) == Err(WaitError::NoSuchObject),
        |ctx: &hairspring_exec::TaskCtx<'_>, x: &_| ctx.delete_exchange(*x),
        |ctx: &hairspring_exec::TaskCtx<'_>, x: &_| ctx.post(*x, Urgency::ALL[0], 1).is_err()
    );
}

#[test]
fn a_message_queue_by_its_receiver() {
    waiter_is_told!(
        queue = |bench: &mut Bench| bench.executive.message_queue::<String>(1).expect("few"),
        |ctx: &hairspring_exec::TaskCtx<'_>, q: &hairspring_exec::MessageQueue<String>| {
            q.receive(ctx, FOREVER) == Err(WaitError::NoSuchObject)
        },
        |ctx: &hairspring_exec::TaskCtx<'_>, q: &hairspring_exec::MessageQueue<String>| q.delete(ctx),
        |ctx: &hairspring_exec::TaskCtx<'_>, q: &hairspring_exec::MessageQueue<String>| {
            let unsent = q.send(ctx, "back".to_owned(), FOREVER).expect_err("it is gone");
            unsent.message == "back" && q.try_receive(ctx) == Err(WaitError::NoSuchObject)
        }
    );
}

#[test]
fn a_byte_pipe_by_its_writer() {
    waiter_is_told!(
        pipe = |bench: &mut Bench| {
            let pipe = bench.executive.byte_pipe(1).expect("few");
            assert_eq!(pipe.try_write(&bench.executive, b"x"), Ok(1));
            pipe
        },
        |ctx: &hairspring_exec::TaskCtx<'_>, p: &hairspring_exec::BytePipe| {
            p.write(ctx, b"y", FOREVER) == Err(WaitError::NoSuchObject)
        },
        |ctx: &hairspring_exec::TaskCtx<'_>, p: &hairspring_exec::BytePipe| p.delete(ctx),
        |ctx: &hairspring_exec::TaskCtx<'_>, p: &hairspring_exec::BytePipe| p.try_read(ctx, &mut [0; 1]).is_err()
    );
}

#[test]
fn a_broadcast_by_its_subscriber() {
    waiter_is_told!(
        broadcast = |bench: &mut Bench| bench.executive.broadcast::<u32>(1).expect("few"),
        |ctx: &hairspring_exec::TaskCtx<'_>, b: &hairspring_exec::Broadcast<u32>| {
            let mut heard = b.subscribe(ctx).expect("it exists");
            heard.next(ctx, FOREVER) == Err(WaitError::NoSuchObject)
        },
        |ctx: &hairspring_exec::TaskCtx<'_>, b: &hairspring_exec::Broadcast<u32>| b.delete(ctx),
        |ctx: &hairspring_exec::TaskCtx<'_>, b: &hairspring_exec::Broadcast<u32>| {
            b.send(ctx, 1).is_err() && b.latest(ctx).is_none() && b.subscribe(ctx).is_err()
        }
    );
}

#[test]
fn a_condition() {
    waiter_is_told!(
        condition = |bench: &mut Bench| bench.executive.condition().expect("few"),
        |ctx: &hairspring_exec::TaskCtx<'_>, c: &hairspring_exec::Condition| {
            let seen = c.changes(ctx).expect("it exists");
            c.wait_for_change(ctx, seen, FOREVER) == Err(WaitError::NoSuchObject)
        },
        |ctx: &hairspring_exec::TaskCtx<'_>, c: &hairspring_exec::Condition| c.delete(ctx),
        |ctx: &hairspring_exec::TaskCtx<'_>, c: &hairspring_exec::Condition| c.notify_all(ctx).is_err()
    );
}

#[test]
fn a_selection_ends_when_one_of_its_objects_is_deleted() {
    check("select:Err(NoSuchObject) unused:Ok(()) again:Err(NoSuchObject) = Finished", |bench| {
        let queue = bench.executive.message_queue::<u8>(1).expect("few");
        let pipe = bench.executive.byte_pipe(1).expect("few");
        let mut selector = bench.executive.selector().expect("few");
        let doomed = pipe.clone();
        bench.start("waiter", 10, move |ctx, log| {
            let objects: [&dyn Selectable; 2] = [&queue, &pipe];
            let told = selector.wait(ctx, &objects, FOREVER);
            assert_eq!(told, Err(SelectError::NoSuchObject));
            log.tell("select", told);
            log.tell("unused", selector.delete(ctx));
            log.tell("again", selector.delete(ctx));
        });
        bench.start("deleter", 20, move |ctx, _| doomed.delete(ctx).expect("it exists"));
    });
}

#[test]
fn a_mutex_a_resource_and_a_pool_are_deleted_only_when_they_are_free() {
    let expected = "locked:Err(InUse) free:Ok(()) lock:NoSuchObject owned:Err(InUse) released:Ok(()) \
                    taken:Err(InUse) given:Ok(()) take:Empty:false = Finished";
    check(expected, |bench| {
        let mutex = bench.executive.mutex(ResourceProtocol::Inherit, 7).expect("few");
        let resource = bench.executive.resource(ResourceProtocol::None).expect("few");
        let pool = bench.executive.pool(vec![1_u8]).expect("few");
        bench.start("task", 20, move |ctx, log| {
            let locked = mutex.lock(ctx, FOREVER).expect("nobody has it");
            log.tell("locked", mutex.delete(ctx));
            drop(locked);
            log.tell("free", mutex.delete(ctx));
            let refused = mutex.lock(ctx, FOREVER).err();
            log.note(format!("lock:{}", refused.map_or_else(String::new, |why| format!("{why:?}"))));
            assert_eq!(refused, Some(ReserveError::NoSuchObject));
            let owned = ctx.reserve(resource, FOREVER).expect("nobody has it");
            log.tell("owned", ctx.delete_resource(resource));
            drop(owned);
            log.tell("released", ctx.delete_resource(resource));
            let buffer = ctx.buffer(&pool).expect("one is free");
            log.tell("taken", ctx.delete_pool(&pool));
            drop(buffer);
            log.tell("given", ctx.delete_pool(&pool));
            log.note(format!("take:Empty:{}", ctx.buffer(&pool).is_ok()));
            assert_eq!(ctx.delete_pool(&pool), Err(InUseError::NoSuchObject));
        });
    });
}

#[test]
fn a_timer_is_deleted_by_a_task_and_what_it_captured_is_dropped() {
    check("dropped deleted:Ok(()) start:Err(NoSuchObject) = Finished", |bench| {
        let (log, captured) = (bench.log.clone(), bench.log.on_drop("dropped"));
        let timer = bench.executive.timer("never", move |_, _| {
            let _ = &captured;
            log.note("not_reached");
        });
        let timer = timer.expect("few");
        bench.start("task", 20, move |ctx, log| {
            ctx.start_timer(timer, ctx.now() + Nanos::from_secs(3600)).expect("it exists");
            let deleted = ctx.delete_timer(timer);
            // The procedure is dropped before the call returns.
            log.note(format!("deleted:{deleted:?}"));
            log.tell("start", ctx.start_timer(timer, ctx.now()));
        });
    });
}

/// 70,000 of each: more than there are slots, and more than a slot has generations.
#[test]
fn making_and_deleting_does_not_use_anything_up() {
    for backend in sim_and_fiber() {
        let mut bench = Bench::new(backend, &ExecConfig::default());
        bench.start("task", 20, |ctx, _| {
            for number in 0..70_000_u32 {
                let queue = ctx.message_queue::<Arc<u32>>(1).expect("the last one was deleted");
                let message = Arc::new(number);
                queue.send(ctx, Arc::clone(&message), Limit::NoWait).expect("there is room");
                queue.delete(ctx).expect("it exists");
                assert_eq!(Arc::strong_count(&message), 1, "what was in the queue is dropped");
            }
        });
        assert!(bench.executive.run(RunLimit::Forever).clean());
    }
}

#[test]
fn handles_of_another_executive_delete_nothing() {
    let (bench, other) = (Bench::new(sim(), &ExecConfig::default()), Bench::new(sim(), &ExecConfig::default()));
    let here = &bench.executive;
    let queue = here.message_queue::<u8>(1).expect("few");
    let mut selector = here.selector().expect("few");
    let mutex = here.mutex(ResourceProtocol::None, ()).expect("few");
    let (exchange, pool) = (here.exchange::<u8>([1; 4]).expect("few"), here.pool(vec![0_u8]).expect("few"));
    // The other executive has objects with the same numbers.
    let there = &other.executive;
    let kept = there.message_queue::<u8>(1).expect("few");
    assert!(there.selector().is_ok() && there.mutex(ResourceProtocol::None, ()).is_ok());
    assert!(there.exchange::<u8>([1; 4]).is_ok() && there.pool(vec![0_u8]).is_ok());
    assert_eq!(queue.delete(there), Err(ObjectError::NoSuchObject));
    assert_eq!(selector.delete(there), Err(ObjectError::NoSuchObject));
    assert_eq!(mutex.delete(there), Err(InUseError::NoSuchObject));
    assert_eq!(there.delete_exchange(exchange), Err(ObjectError::NoSuchObject));
    assert_eq!(there.delete_pool(&pool), Err(InUseError::NoSuchObject));
    assert_eq!(kept.try_send(there, 1), Ok(()));
    assert_eq!((queue.delete(here), here.delete_pool(&pool)), (Ok(()), Ok(())));
}
