//! Objects with data of any type: message queues, byte pipes, broadcasts, mutexes, conditions and selectors.

use hairspring_exec::errors::{ReserveError, SendError, WaitError};
use hairspring_exec::{Create, ExecConfig, Heard, Limit, ResourceProtocol, Services, Unsent};

use crate::backends::{AtEnd, Bench, FOREVER, all, alone, check, micros, nth, panic_on_purpose, priority, sim};

#[test]
fn a_queue_moves_messages_of_any_type_in_order_and_a_full_one_makes_the_sender_wait() {
    check("sent:1 sent:2 got:1 sent:3 got:2 got:3 = Finished", |bench| {
        let queue = bench.executive.message_queue::<Box<u32>>(1).expect("few objects");
        let from = queue.clone();
        bench.start("receiver", 20, move |ctx, log| {
            for _ in 0..3 {
                log.note(format!("got:{}", from.receive(ctx, FOREVER).expect("one comes")));
            }
        });
        bench.start("sender", 30, move |ctx, log| {
            ctx.set_priority(ctx.id(), priority(10)).expect("it owns nothing");
            queue.send(ctx, Box::new(1), FOREVER).expect("there is room");
            log.note("sent:1");
            for number in [2, 3] {
                // There is no room until the receiver has run, and the sender goes on as soon as there is.
                queue.send(ctx, Box::new(number), FOREVER).expect("it waits");
                ctx.set_priority(nth(0), priority(20)).expect("it owns nothing");
                log.note(format!("sent:{number}"));
            }
        });
    });
}

#[test]
fn a_message_that_is_not_sent_comes_back_and_a_limit_holds_for_the_whole_wait() {
    check(
        "full:Unsent(TimedOut):3 in_time:true full:Unsent(MailboxFull):4 left:1 cleared:1 none:Err(TimedOut) = Finished",
        |bench| {
            let queue = bench.executive.message_queue::<String>(1).expect("few objects");
            queue.try_send(&bench.executive, "2".to_owned()).expect("there is room");
            bench.start("sender", 20, move |ctx, log| {
                let begun = ctx.now();
                let unsent = queue.send(ctx, "3".to_owned(), Limit::For(micros(500))).expect_err("nobody receives");
                log.note(format!("full:{unsent:?}:{}", unsent.message));
                log.note(format!("in_time:{}", ctx.now() - begun >= micros(500)));
                let unsent = queue.try_send(ctx, "4".to_owned()).expect_err("it is full");
                log.note(format!("full:{unsent:?}:{}", unsent.message));
                log.note(format!("left:{}", queue.len(ctx)));
                log.note(format!("cleared:{}", queue.clear(ctx)));
                log.tell("none", queue.try_receive(ctx));
            });
        },
    );
}

#[test]
fn a_receiver_that_is_killed_when_a_message_came_for_it_leaves_the_message_to_the_next() {
    check("killed got:7 = Finished first:Killed", |bench| {
        let queue = bench.executive.message_queue::<u32>(4).expect("few objects");
        for (name, number) in [("first", 20), ("second", 21)] {
            let queue = queue.clone();
            bench.start(name, number, move |ctx, log| {
                let message = queue.receive(ctx, FOREVER).expect("one comes");
                log.note(format!("got:{message}"));
            });
        }
        bench.start("sender", 30, move |ctx, log| {
            ctx.set_priority(ctx.id(), priority(10)).expect("it owns nothing");
            queue.try_send(ctx, 7).expect("there is room");
            // The first has been let go and has not run.
            ctx.kill(nth(0)).expect("it is in a run");
            log.note("killed");
        });
    });
}

#[test]
fn a_sender_that_is_killed_when_there_is_room_for_it_leaves_the_room_to_the_next() {
    check("killed sent got:2 = Finished first:Killed", |bench| {
        let queue = bench.executive.message_queue::<u32>(1).expect("few objects");
        queue.try_send(&bench.executive, 0).expect("there is room");
        for (name, number, message) in [("first", 20, 1), ("second", 21, 2)] {
            let queue = queue.clone();
            bench.start(name, number, move |ctx, log| {
                queue.send(ctx, message, FOREVER).expect("there will be room");
                log.note("sent");
            });
        }
        bench.start("receiver", 30, move |ctx, log| {
            ctx.set_priority(ctx.id(), priority(10)).expect("it owns nothing");
            queue.try_receive(ctx).expect("one is there");
            ctx.kill(nth(0)).expect("it is in a run");
            log.note("killed");
            ctx.set_priority(ctx.id(), priority(40)).expect("it owns nothing");
            log.note(format!("got:{}", queue.receive(ctx, FOREVER).expect("the second's")));
        });
    });
}

#[test]
fn a_pipe_carries_a_stream_through_a_small_buffer_with_both_ends_waiting() {
    check("wrote read:abcdefghij empty:0 rest:Ok(3) = Finished", |bench| {
        let pipe = bench.executive.byte_pipe(3).expect("few objects");
        let from = pipe.clone();
        bench.start("reader", 20, move |ctx, log| {
            let (mut all, mut buffer) = (Vec::new(), [0; 2]);
            while all.len() < 10 {
                let count = from.read(ctx, &mut buffer, FOREVER).expect("more comes");
                all.extend_from_slice(&buffer[..count]);
            }
            ctx.wait(FOREVER).expect("the writer is done");
            log.note(format!("read:{}", String::from_utf8_lossy(&all)));
            log.note(format!("empty:{}", from.len(ctx)));
            log.tell("rest", from.try_write(ctx, b"1234"));
        });
        bench.start("writer", 30, move |ctx, log| {
            pipe.write_all(ctx, b"abcdefghij", FOREVER).expect("the reader reads");
            log.note("wrote");
            ctx.wake(nth(0)).expect("it waits");
        });
    });
}

#[test]
fn each_subscriber_of_a_broadcast_hears_every_value_or_how_many_it_missed() {
    check("fast:1:0 fast:2:0 fast:3:0 slow:2:1 slow:3:0 slow:none late:none latest:Some(3) = Finished", |bench| {
        let values = bench.executive.broadcast::<u32>(2).expect("few objects");
        let mut fast = values.subscribe(&bench.executive).expect("it is of this executive");
        let mut slow = values.subscribe(&bench.executive).expect("it is of this executive");
        bench.start("fast", 10, move |ctx, log| {
            for _ in 0..3 {
                let Heard { value, missed } = fast.next(ctx, FOREVER).expect("more comes");
                log.note(format!("fast:{value}:{missed}"));
            }
        });
        let theirs = values.clone();
        bench.start("slow", 30, move |ctx, log| {
            ctx.wait(FOREVER).expect("all values are sent");
            let mut late = theirs.subscribe(ctx).expect("it is of this executive");
            while let Some(Heard { value, missed }) = slow.try_next(ctx) {
                log.note(format!("slow:{value}:{missed}"));
            }
            log.note("slow:none");
            log.note(if late.try_next(ctx).is_none() { "late:none" } else { "late:some" });
            log.tell("latest", theirs.latest(ctx));
        });
        bench.start("sender", 40, move |ctx, _| {
            for value in 1..=3 {
                values.send(ctx, value).expect("it is of this executive");
            }
            ctx.wake(nth(1)).expect("it waits");
        });
    });
}

#[test]
fn a_mutex_lets_one_task_at_its_data_and_raises_it_above_those_between() {
    check("low_has high:[1,2] middle = Finished", |bench| {
        let data = bench.executive.mutex(ResourceProtocol::Inherit, vec![1]).expect("few objects");
        let theirs = data.clone();
        bench.start("low", 30, move |ctx, log| {
            let mut data = theirs.lock(ctx, FOREVER).expect("it is free");
            log.note("low_has");
            ctx.trigger(nth(2)).expect("it is idle");
            // The high one waits for us, so the middle one does not come in.
            ctx.trigger(nth(1)).expect("it is idle");
            data.push(2);
        });
        bench.task("middle", 20, |_, log| log.note("middle"));
        bench.task("high", 10, move |ctx, log| {
            let data = data.lock(ctx, FOREVER).expect("low unlocks it");
            log.tell("high", &*data);
        });
    });
}

#[test]
fn a_mutex_refuses_a_second_lock_by_its_owner_and_keeps_the_first() {
    check("again:Err(Deadlock) late:Err(TimedOut) after:Ok(()) = Finished", |bench| {
        let data = bench.executive.mutex(ResourceProtocol::None, 0_u32).expect("few objects");
        let theirs = data.clone();
        bench.start("owner", 30, move |ctx, log| {
            let locked = theirs.lock(ctx, FOREVER).expect("it is free");
            log.tell("again", theirs.lock(ctx, FOREVER).map(drop));
            ctx.trigger(nth(1)).expect("it is idle");
            drop(locked);
            log.tell("after", theirs.lock(ctx, FOREVER).map(drop));
        });
        bench.task("other", 10, move |ctx, log| log.tell("late", data.lock(ctx, Limit::NoWait).map(drop)));
    });
}

#[test]
fn the_next_user_of_a_mutex_is_told_that_the_last_was_killed_or_panicked() {
    check(
        "abandoned:true:1 abandoned:false:1 abandoned:true:2 = Finished panics:panicked(on purpose) killed:Killed",
        |bench| {
            let data = bench.executive.mutex(ResourceProtocol::None, 0_u32).expect("few objects");
            let look = {
                let data = data.clone();
                move |ctx: &hairspring_exec::TaskCtx<'_>, log: &crate::backends::Log| {
                    let data = data.lock(ctx, FOREVER).expect("it is free");
                    log.note(format!("abandoned:{}:{}", data.was_abandoned(), *data));
                }
            };
            let (first, second) = (data.clone(), data);
            bench.start("panics", 10, move |ctx, _| {
                *first.lock(ctx, FOREVER).expect("it is free") += 1;
                let _locked = first.lock(ctx, FOREVER).expect("it is free");
                panic_on_purpose();
            });
            bench.start("looks", 20, move |ctx, log| {
                look(ctx, log);
                look(ctx, log);
                ctx.trigger(nth(2)).expect("it is idle");
                ctx.kill(nth(2)).expect("it waits");
                ctx.set_priority(ctx.id(), priority(40)).expect("it owns nothing");
                look(ctx, log);
            });
            bench.task("killed", 15, move |ctx, _| {
                *second.lock(ctx, FOREVER).expect("it is free") += 1;
                let _locked = second.lock(ctx, FOREVER).expect("it is free");
                ctx.wait(FOREVER).expect("it unwinds here");
            });
        },
    );
}

#[test]
fn a_task_waits_for_a_condition_without_missing_a_change_and_gives_up_in_time() {
    check("waits set:1 set:2 got:2 late:Err(TimedOut) free:Ok(()) = Finished", |bench| {
        let data = bench.executive.mutex(ResourceProtocol::Inherit, 0_u32).expect("few objects");
        let changed = bench.executive.condition().expect("few objects");
        let (theirs, condition) = (data.clone(), changed.clone());
        bench.start("waiter", 20, move |ctx, log| {
            log.note("waits");
            let locked = theirs.lock(ctx, FOREVER).expect("it is free");
            let locked = locked.wait_while(&condition, FOREVER, |data| *data < 2).expect("it is set");
            log.note(format!("got:{}", *locked));
            let late = locked.wait_while(&condition, Limit::For(micros(200)), |data| *data < 3);
            log.tell("late", late.map(drop));
            log.tell("free", theirs.lock(ctx, Limit::NoWait).map(drop));
        });
        bench.start("setter", 30, move |ctx, log| {
            for value in 1..=2 {
                *data.lock(ctx, FOREVER).expect("it is free") = value;
                log.note(format!("set:{value}"));
                changed.notify_all(ctx).expect("it is of this executive");
            }
        });
    });
}

#[test]
fn a_selector_waits_for_the_first_of_several_objects_and_takes_nothing() {
    let expected =
        "late:Err(TimedOut) select:Ok(1) message:Ok(5) select:Ok(0) bytes:Ok(1) select:Ok(2) heard:Some(9) = Finished";
    check(expected, |bench| {
        let executive = &bench.executive;
        let pipe = executive.byte_pipe(8).expect("few objects");
        let queue = executive.message_queue::<u32>(2).expect("few objects");
        let values = executive.broadcast::<u32>(1).expect("few objects");
        let mut heard = values.subscribe(executive).expect("it is of this executive");
        let mut selector = executive.selector().expect("few objects");
        let (stream, messages) = (pipe.clone(), queue.clone());
        bench.start("selects", 20, move |ctx, log| {
            log.tell("late", selector.wait(ctx, &[&stream, &messages, &heard], Limit::For(micros(100))));
            ctx.trigger(nth(1)).expect("it is idle");
            log.tell("select", selector.wait(ctx, &[&stream, &messages, &heard], FOREVER));
            log.tell("message", messages.try_receive(ctx));
            log.tell("select", selector.wait(ctx, &[&stream, &messages, &heard], FOREVER));
            log.tell("bytes", stream.try_read(ctx, &mut [0; 8]));
            log.tell("select", selector.wait(ctx, &[&stream, &messages, &heard], FOREVER));
            log.tell("heard", heard.try_next(ctx).map(|heard| heard.value));
        });
        bench.task("gives", 30, move |ctx, _| {
            queue.try_send(ctx, 5).expect("there is room");
            assert_eq!(pipe.try_write(ctx, b"x"), Ok(1));
            values.send(ctx, 9).expect("it is of this executive");
        });
    });
}

#[test]
fn an_object_belongs_to_one_selector_at_a_time_and_is_free_when_its_task_is_killed() {
    check("second:Err(NotOwner) third:Err(TimedOut) = Finished first:Killed", |bench| {
        let queue = bench.executive.message_queue::<u32>(2).expect("few objects");
        for (name, number) in [("first", 10), ("second", 20), ("third", 40)] {
            let mut selector = bench.executive.selector().expect("few objects");
            let queue = queue.clone();
            bench.start(name, number, move |ctx, log| {
                let limit = if number == 10 { FOREVER } else { Limit::For(micros(10)) };
                log.tell(name, selector.wait(ctx, &[&queue], limit));
            });
        }
        bench.start("killer", 30, |ctx, _| ctx.kill(nth(0)).expect("it waits"));
    });
}

#[test]
fn objects_of_another_executive_are_refused() {
    let mut bench = Bench::new(sim(), &ExecConfig::default());
    let other = Bench::new(sim(), &ExecConfig::default());
    let queue = other.executive.message_queue::<u32>(1).expect("few objects");
    let data = other.executive.mutex(ResourceProtocol::None, 0).expect("few objects");
    let pipe = other.executive.byte_pipe(1).expect("few objects");
    let condition = other.executive.condition().expect("few objects");
    let values = other.executive.broadcast::<u32>(1).expect("few objects");
    bench.start("task", 20, move |ctx, _| {
        let unsent = Err(Unsent { message: 1, why: WaitError::NoSuchObject });
        assert_eq!(queue.send(ctx, 1, FOREVER), unsent);
        assert_eq!(queue.try_send(ctx, 1), Err(Unsent { message: 1, why: SendError::NoSuchObject }));
        assert_eq!(queue.receive(ctx, FOREVER), Err(WaitError::NoSuchObject));
        assert_eq!(queue.len(ctx), 0);
        assert_eq!(data.lock(ctx, FOREVER).map(drop), Err(ReserveError::NoSuchObject));
        assert_eq!(pipe.read(ctx, &mut [0], FOREVER), Err(WaitError::NoSuchObject));
        assert!(pipe.try_write(ctx, b"x").is_err() && condition.notify_all(ctx).is_err());
        assert!(values.send(ctx, 1).is_err() && values.subscribe(ctx).is_err());
        assert_eq!(ctx.selector().expect("few objects").wait(ctx, &[&queue], FOREVER).ok(), None);
    });
    assert!(bench.run().clean());
}

#[test]
fn a_destructor_of_a_killed_task_may_send_and_does_not_wait() {
    check("sent:Ok(()) full:Err(Unsent(Killed)) = Finished victim:Killed", |bench| {
        let queue = bench.executive.message_queue::<u32>(1).expect("few objects");
        bench.start("victim", 10, move |ctx, log| {
            let _at_end = AtEnd(|| {
                log.tell("sent", queue.send(ctx, 1, FOREVER));
                log.tell("full", queue.send(ctx, 2, FOREVER));
            });
            ctx.wait(FOREVER).expect("it unwinds here");
        });
        bench.start("killer", 20, |ctx, _| ctx.kill(nth(0)).expect("it waits"));
    });
}

/// Every value arrives once, in any order of preemptions; on threads that are on all CPUs, too.
#[test]
fn many_senders_and_receivers_lose_nothing() {
    const EACH: u64 = 300;
    let mut backends = all();
    backends.push(hairspring_exec::Backend::thread_smp());
    for backend in backends {
        let name = backend.name();
        let _alone = name.starts_with("thread").then(alone);
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let queue = bench.executive.message_queue::<Box<u64>>(3).expect("few objects");
        let total = bench.executive.mutex(ResourceProtocol::Inherit, (0, 0)).expect("few objects");
        for number in 0..3 {
            let (to, from, total) = (queue.clone(), queue.clone(), total.clone());
            bench.start("sender", 20 + number, move |ctx, _| {
                for value in 0..EACH {
                    to.send(ctx, Box::new(value), FOREVER).expect("receivers receive");
                    if value % 7 == 0 {
                        ctx.yield_now();
                    }
                }
            });
            bench.start("receiver", 21 + number, move |ctx, _| {
                for _ in 0..EACH {
                    let value = from.receive(ctx, FOREVER).expect("senders send");
                    let mut total = total.lock(ctx, FOREVER).expect("nobody keeps it");
                    *total = (total.0 + 1, total.1 + *value);
                }
            });
        }
        let finish = bench.run();
        assert!(finish.mishaps.is_empty(), "on {name}: {finish:?}");
        assert!(queue.is_empty(&bench.executive), "on {name}");
        drop(bench);
        assert_eq!(total.into_inner(), Some((3 * EACH, 3 * EACH * (EACH - 1) / 2)), "on {name}");
    }
}
