//! Ends that a task did not choose: kills in every state, panics, and destructors that make calls while the stack
//! unwinds.

use hairspring_exec::errors::TriggerError;
use hairspring_exec::{Create, Limit, ResourceProtocol, Services};

use crate::backends::{AtEnd, FOREVER, ROOM, check, micros, nth, panic_on_purpose, priority, urgency};

#[test]
fn a_waiting_task_that_is_killed_drops_its_stack_at_its_own_priority() {
    check("waits kill:Ok(()) still_first dropped next_run = Finished victim:Killed", |bench| {
        let mut runs = 0;
        let victim = bench.start("victim", 20, move |ctx, log| {
            runs += 1;
            if runs == 2 {
                return log.note("next_run");
            }
            let _dropped = log.on_drop("dropped");
            log.note("waits");
            ctx.wait(FOREVER).expect("it unwinds here");
            log.note("not_reached");
        });
        // Runs when the victim waits, and is the more urgent one from then on.
        bench.start("killer", 30, move |ctx, log| {
            ctx.set_priority(ctx.id(), priority(10)).expect("it owns nothing");
            log.tell("kill", ctx.kill(victim));
            log.note("still_first");
            ctx.set_priority(ctx.id(), priority(30)).expect("it owns nothing");
            ctx.trigger(victim).expect("it is idle again");
        });
    });
}

#[test]
fn every_kind_of_wait_is_broken_off_by_a_kill() {
    let expected = "wait delay signals mail semaphore resource events exchange acknowledgement \
        = Finished wait:Killed delay:Killed signals:Killed mail:Killed semaphore:Killed resource:Killed events:Killed \
        exchange:Killed acknowledgement:Killed";
    check(expected, |bench| {
        let executive = &bench.executive;
        let semaphore = executive.semaphore(0, 1).expect("few objects");
        let resource = executive.resource(ResourceProtocol::Inherit).expect("few objects");
        let events = executive.events(0).expect("few objects");
        let exchange = executive.exchange::<u32>(ROOM).expect("few objects");
        let deaf = bench.mail_task::<u32>("deaf", 60, ROOM, |_, _, _, _| {});
        let mut victims = Vec::new();
        macro_rules! victim {
            ($name:literal, |$ctx:ident| $wait:expr) => {
                victims.push(bench.start($name, 20, move |$ctx, log| {
                    let _dropped = log.on_drop($name);
                    let _ = $wait;
                    log.note("not_reached");
                }));
            };
        }
        victim!("wait", |ctx| ctx.wait(FOREVER));
        victim!("delay", |ctx| ctx.delay(micros(60_000_000)));
        victim!("signals", |ctx| ctx.wait_signals(hairspring_exec::Bits::Any(1), FOREVER));
        let mail = bench.mail_task::<u32>("mail", 20, ROOM, |ctx, log, mailbox, _| {
            let _dropped = log.on_drop("mail");
            let _ = ctx.receive(mailbox, None, FOREVER);
        });
        executive.send(mail, urgency(0), 1).expect("there is room");
        victims.push(mail.id());
        victim!("semaphore", |ctx| ctx.wait_semaphore(semaphore, FOREVER));
        victim!("resource", |ctx| ctx.reserve(resource, FOREVER).map(drop));
        victim!("events", |ctx| ctx.wait_events(events, hairspring_exec::Bits::Any(1), true, FOREVER));
        victim!("exchange", |ctx| ctx.fetch(exchange, FOREVER));
        victim!("acknowledgement", |ctx| ctx.send_wait(deaf, urgency(0), 7, FOREVER));
        let owner = bench.start("owner", 10, move |ctx, _| {
            let _owned = ctx.reserve(resource, FOREVER).expect("it is free");
            ctx.wait(FOREVER).expect("it comes");
        });
        // Runs when all of them wait, and before the deaf one.
        bench.start("killer", 50, move |ctx, _| {
            victims.iter().for_each(|&victim| ctx.kill(victim).expect("it waits"));
            ctx.wake(owner).expect("it waits");
        });
    });
}

#[test]
fn a_task_that_kills_itself_unwinds_there_and_its_pending_starts_are_gone() {
    check("run dropped = Finished self:Killed run dropped = Finished self:Killed", |bench| {
        let task = bench.start("self", 20, |ctx, log| {
            log.note("run");
            let _dropped = log.on_drop("dropped");
            ctx.trigger(ctx.id()).expect("it can be counted");
            let _ = ctx.kill(ctx.id());
            log.note("not_reached");
        });
        bench.run();
        bench.executive.trigger(task).expect("it is idle");
    });
}

#[test]
fn killing_an_idle_task_is_nothing_and_a_started_one_never_runs() {
    check("idle:Ok(()) ready:Ok(()) = Finished ready:Killed", |bench| {
        let idle = bench.task("idle", 20, |_, log| log.note("not_reached"));
        let ready = bench.start("ready", 20, |_, log| log.note("not_reached"));
        bench.start("high", 10, move |ctx, log| {
            log.tell("idle", ctx.kill(idle));
            log.tell("ready", ctx.kill(ready));
        });
    });
}

#[test]
fn a_suspended_task_that_is_killed_unwinds_without_being_resumed() {
    check("dropped = Finished self:Killed", |bench| {
        let victim = bench.start("self", 10, |ctx, log| {
            let _dropped = log.on_drop("dropped");
            ctx.suspend(ctx.id()).expect("it runs");
            log.note("not_reached");
        });
        bench.start("low", 20, move |ctx, _| ctx.kill(victim).expect("it is suspended"));
    });
}

#[test]
fn a_preempted_task_that_is_killed_unwinds_in_the_call_it_was_preempted_in() {
    check("kill:Ok(()) high_ends dropped = Finished low:Killed", |bench| {
        let high = bench.task("high", 10, |ctx, log| {
            log.tell("kill", ctx.kill(nth(1)));
            log.note("high_ends");
        });
        bench.start("low", 20, move |ctx, log| {
            let _dropped = log.on_drop("dropped");
            ctx.trigger(high).expect("it is idle");
            log.note("not_reached");
        });
    });
}

#[test]
fn a_task_that_is_killed_again_while_it_unwinds_goes_on_unwinding() {
    check("destructor killer after_the_call outer = Finished victim:Killed", |bench| {
        let killer = bench.task("killer", 10, |ctx, log| {
            log.note("killer");
            ctx.kill(nth(1)).expect("it is in a run");
        });
        let victim = bench.start("victim", 20, move |ctx, log| {
            let _outer = log.on_drop("outer");
            let _destructor = AtEnd(|| {
                log.note("destructor");
                ctx.trigger(killer).expect("it is idle");
                log.note("after_the_call");
            });
            ctx.wait(FOREVER).expect("it unwinds here");
        });
        bench.start("low", 30, move |ctx, _| ctx.kill(victim).expect("it waits"));
    });
}

/// Kills a task while a destructor makes a call in its unwinding that lets the killer run.
fn destructor_that_is_killed(bench: &mut crate::backends::Bench, how: fn(&hairspring_exec::TaskCtx<'_>)) {
    let killer = bench.task("killer", 10, |ctx, log| {
        log.note("killer");
        ctx.kill(nth(1)).expect("it is in a run");
    });
    bench.start("victim", 20, move |ctx, log| {
        let _outer = log.on_drop("outer");
        let _destructor = AtEnd(|| {
            log.note("destructor");
            ctx.trigger(killer).expect("it is idle");
            log.tell("wait", ctx.wait(FOREVER));
        });
        how(ctx);
    });
}

#[test]
fn a_task_that_is_killed_while_it_unwinds_by_end_goes_on_unwinding() {
    check("destructor killer wait:Err(Killed) outer = Finished victim:Killed", |bench| {
        destructor_that_is_killed(bench, |ctx| ctx.end());
    });
}

#[test]
fn a_task_that_is_killed_while_it_unwinds_by_a_panic_goes_on_unwinding() {
    check("destructor killer wait:Err(Killed) outer = Finished victim:panicked(on purpose)", |bench| {
        destructor_that_is_killed(bench, |_| panic_on_purpose());
    });
}

#[test]
fn a_task_that_is_killed_while_it_unwinds_by_its_own_kill_goes_on_unwinding() {
    check("destructor killer wait:Err(Killed) outer = Finished victim:Killed", |bench| {
        destructor_that_is_killed(bench, |ctx| assert_eq!(ctx.kill(ctx.id()), Ok(()), "it unwinds here"));
    });
}

#[test]
fn a_task_that_kills_itself_in_a_destructor_goes_on_unwinding() {
    check("itself:Err(Killed) outer = Finished victim:panicked(on purpose)", |bench| {
        bench.start("victim", 20, |ctx, log| {
            let _outer = log.on_drop("outer");
            let _destructor = AtEnd(|| log.tell("itself", ctx.kill(ctx.id())));
            panic_on_purpose();
        });
    });
}

#[test]
fn a_kill_reaches_a_task_while_another_is_in_the_middle_of_its_unwinding() {
    // The destructor of the dying task lets the heir run, which was killed too and must unwind, not go on with an
    // error.
    check("dying heir_dropped died = Finished heir:Killed dying:Killed", |bench| {
        let heir = bench.start("heir", 10, |ctx, log| {
            let _dropped = log.on_drop("heir_dropped");
            ctx.wait(FOREVER).expect("it unwinds here");
            log.note("not_reached");
        });
        let dying = bench.start("dying", 20, move |ctx, log| {
            let _destructor = AtEnd(|| {
                log.note("dying");
                let _ = ctx.kill(heir);
                log.note("died");
            });
            ctx.wait(FOREVER).expect("it unwinds here");
        });
        bench.start("low", 30, move |ctx, _| ctx.kill(dying).expect("it waits"));
    });
}

#[test]
fn a_task_that_panics_while_another_unwinds_is_caught_and_both_end() {
    check("dying panics died = Finished panics:panicked(on purpose) dying:Killed", |bench| {
        let panics = bench.task("panics", 10, |_, log| {
            log.note("panics");
            panic_on_purpose();
        });
        let dying = bench.start("dying", 20, move |ctx, log| {
            let _destructor = AtEnd(|| {
                log.note("dying");
                let _ = ctx.trigger(panics);
                log.note("died");
            });
            ctx.wait(FOREVER).expect("it unwinds here");
        });
        bench.start("low", 30, move |ctx, _| ctx.kill(dying).expect("it waits"));
    });
}

#[test]
fn a_destructor_of_a_killed_task_cannot_wait_but_can_do_everything_else() {
    let expected = "wait:Err(Killed) delay:Err(Killed) semaphore:Err(Killed) reserve:true signal:Ok(()) post:Ok(()) low \
        = Finished victim:Killed";
    check(expected, |bench| {
        let semaphore = bench.executive.semaphore(0, 9).expect("few objects");
        let resource = bench.executive.resource(ResourceProtocol::None).expect("few objects");
        let exchange = bench.executive.exchange::<u32>(ROOM).expect("few objects");
        let victim = bench.start("victim", 20, move |ctx, log| {
            let _destructor = AtEnd(|| {
                log.tell("wait", ctx.wait(FOREVER));
                log.tell("delay", ctx.delay(micros(1_000)));
                log.tell("semaphore", ctx.wait_semaphore(semaphore, FOREVER));
                log.note(format!("reserve:{}", ctx.reserve(resource, FOREVER).is_err()));
                log.tell("signal", ctx.signal_semaphore(semaphore));
                log.tell("post", ctx.post(exchange, urgency(1), 5));
            });
            ctx.wait(FOREVER).expect("it unwinds here");
        });
        bench.start("low", 30, move |ctx, log| {
            ctx.kill(victim).expect("it waits");
            assert_eq!(ctx.wait_semaphore(semaphore, Limit::NoWait), Ok(()));
            assert_eq!(ctx.fetch(exchange, Limit::NoWait), Ok(5));
            log.note("low");
        });
    });
}

#[test]
fn a_killed_owner_hands_its_resource_on_as_its_guard_is_dropped() {
    check("owner heir owner_dropped = Finished owner:Killed", |bench| {
        let resource = bench.executive.resource(ResourceProtocol::Inherit).expect("few objects");
        let owner = bench.start("owner", 20, move |ctx, log| {
            let _dropped = log.on_drop("owner_dropped");
            let _owned = ctx.reserve(resource, FOREVER).expect("it is free");
            log.note("owner");
            ctx.wait(FOREVER).expect("it unwinds here");
        });
        let heir = bench.task("heir", 10, move |ctx, log| {
            let _owned = ctx.reserve(resource, FOREVER).expect("it is handed over");
            log.note("heir");
        });
        bench.start("low", 30, move |ctx, _| {
            ctx.trigger(heir).expect("it is idle");
            ctx.kill(owner).expect("it waits");
        });
    });
}

#[test]
fn a_task_that_ends_as_an_owner_hands_on_and_is_reported() {
    check("owner heir = Finished owner:held", |bench| {
        let resource = bench.executive.resource(ResourceProtocol::None).expect("few objects");
        bench.start("owner", 10, move |ctx, log| {
            ctx.reserve_unguarded(resource, FOREVER).expect("it is free");
            ctx.reserve_unguarded(resource, FOREVER).expect("it nests");
            ctx.release(resource).expect("once");
            ctx.delay(micros(1_000)).expect("nobody kills it");
            log.note("owner");
        });
        bench.start("heir", 20, move |ctx, log| {
            let _owned = ctx.reserve(resource, FOREVER).expect("it is handed over");
            log.note("heir");
        });
    });
}

#[test]
fn when_a_waiter_is_killed_the_owner_loses_the_priority_it_inherited() {
    check("owner_is_boosted middle owner_goes_on = Finished waiter:Killed", |bench| {
        let resource = bench.executive.resource(ResourceProtocol::Inherit).expect("few objects");
        let waiter = bench.task("waiter", 10, move |ctx, _| drop(ctx.reserve(resource, FOREVER)));
        let middle = bench.task("middle", 20, |_, log| log.note("middle"));
        bench.start("owner", 30, move |ctx, log| {
            let _owned = ctx.reserve(resource, FOREVER).expect("it is free");
            ctx.trigger(waiter).expect("it is idle");
            ctx.trigger(middle).expect("it is idle");
            // Middle is more urgent than this task itself, but not than what it inherited.
            log.note("owner_is_boosted");
            ctx.kill(waiter).expect("it waits");
            log.note("owner_goes_on");
        });
    });
}

#[test]
fn a_panic_is_reported_the_others_go_on_and_the_task_is_dead() {
    let expected = "panics dropped other again:Err(Dead) mail:Err(Dead) wake:Err(Dead) kill:Err(Dead) deleted:Ok(()) \
        = Finished panics:panicked(on purpose) = Finished";
    check(expected, |bench| {
        let mailbox = bench.mail_task::<u32>("panics", 10, ROOM, |_, log, _, _| {
            log.note("panics");
            let _dropped = log.on_drop("dropped");
            panic_on_purpose();
        });
        let panics = mailbox.id();
        bench.executive.send(mailbox, urgency(0), 1).expect("there is room");
        bench.start("other", 20, move |ctx, log| {
            log.note("other");
            log.tell("again", ctx.trigger(panics));
            log.tell("mail", ctx.send(mailbox, urgency(0), 1));
            log.tell("wake", ctx.wake(panics));
            log.tell("kill", ctx.kill(panics));
            log.tell("deleted", ctx.delete_task(panics));
            // Without parameter checks it is the caller's error to use the id any more.
            if cfg!(feature = "checks") {
                assert_eq!(ctx.trigger(panics), Err(TriggerError::NoSuchObject));
            }
        });
        bench.run();
    });
}

#[test]
fn the_end_of_a_run_unwinds_every_task_and_reports_none_of_them() {
    check("waits suspends ready = Asked", |bench| {
        bench.start("waits", 10, |ctx, log| {
            let _dropped = log.on_drop("waits");
            ctx.wait(FOREVER).expect("it unwinds here");
        });
        bench.start("suspends", 20, |ctx, log| {
            let _dropped = log.on_drop("suspends");
            ctx.suspend(ctx.id()).expect("it runs");
        });
        bench.start("ready", 40, |_, log| log.note("not_reached"));
        bench.start("stops", 30, |ctx, log| {
            let _dropped = log.on_drop("ready");
            ctx.stop();
            log.note("not_reached");
        });
    });
}
