//! Resources: nesting, refusals, hand-over, and priority inversion under each of the three protocols.

use hairspring_exec::{Bits, Create, ExecConfig, Limit, ResourceProtocol, Services};

use crate::backends::{FOREVER, ROOM, check, check_on, micros, nth, priority, sim, urgency};

#[test]
fn a_resource_nests_and_is_handed_to_the_first_in_line_when_it_is_free_again() {
    check("low_owns still_mine high_owns middle_owns low_ends = Finished", |bench| {
        let resource = bench.executive.resource(ResourceProtocol::Inherit).expect("few objects");
        let [high, middle] = [("high_owns", 10), ("middle_owns", 20)].map(|(owns, number)| {
            bench.task(owns, number, move |ctx, log| {
                let _owned = ctx.reserve(resource, FOREVER).expect("it is handed over");
                log.note(owns);
            })
        });
        bench.start("low", 30, move |ctx, log| {
            let outer = ctx.reserve(resource, FOREVER).expect("it is free");
            let inner = ctx.reserve(resource, Limit::NoWait).expect("it nests");
            log.note("low_owns");
            ctx.trigger(middle).expect("it is idle");
            ctx.trigger(high).expect("it is idle");
            drop(inner);
            // Owned once yet.
            log.note("still_mine");
            drop(outer);
            log.note("low_ends");
        });
    });
}

/// The classic inversion: low owns the resource that high needs, and middle, which needs none, computes.
fn inversion(protocol: ResourceProtocol, expected: &str) {
    check(expected, move |bench| {
        let resource = bench.executive.resource(protocol).expect("few objects");
        bench.task("high", 10, move |ctx, log| {
            log.note("high_wants");
            let _owned = ctx.reserve(resource, FOREVER).expect("it comes");
            log.note("high_owns");
        });
        bench.task("middle", 20, |_, log| log.note("middle"));
        bench.start("low", 30, move |ctx, log| {
            let owned = ctx.reserve(resource, FOREVER).expect("it is free");
            ctx.trigger(nth(0)).expect("it is idle");
            log.note("low_goes_on");
            ctx.trigger(nth(1)).expect("it is idle");
            log.note("low_releases");
            drop(owned);
            log.note("low_ends");
        });
    });
}

#[test]
fn without_a_protocol_the_less_urgent_middle_task_delays_the_urgent_one() {
    inversion(ResourceProtocol::None, "high_wants low_goes_on middle low_releases high_owns low_ends = Finished");
}

#[test]
fn with_inheritance_the_owner_runs_at_its_waiters_priority_until_it_releases() {
    inversion(ResourceProtocol::Inherit, "high_wants low_goes_on low_releases high_owns middle low_ends = Finished");
}

#[test]
fn with_a_ceiling_the_urgent_one_does_not_even_begin() {
    inversion(
        ResourceProtocol::Ceiling(priority(10)),
        "low_goes_on low_releases high_wants high_owns middle low_ends = Finished",
    );
}

#[test]
fn inheritance_goes_through_a_chain_of_owners_and_ends_when_a_waiter_gives_up() {
    // Low owns A; middle owns B and waits for A; high waits for B, but not for ever. Busy is between middle and high.
    check_on(
        [sim()],
        &ExecConfig::default(),
        "low_at_10 high:Err(TimedOut) busy low_ends middle_ends = Finished",
        |bench| {
            let [a, b] = [0, 1].map(|_| bench.executive.resource(ResourceProtocol::Inherit).expect("few objects"));
            bench.task("high", 10, move |ctx, log| {
                let outcome = ctx.reserve(b, Limit::For(micros(500))).map(drop);
                log.tell("high", outcome);
            });
            bench.task("busy", 15, |_, log| log.note("busy"));
            bench.task("middle", 20, move |ctx, log| {
                let _b = ctx.reserve(b, FOREVER).expect("it is free");
                let _a = ctx.reserve(a, FOREVER).expect("it comes");
                log.note("middle_ends");
            });
            bench.start("low", 30, move |ctx, log| {
                let owned = ctx.reserve(a, FOREVER).expect("it is free");
                ctx.trigger(nth(2)).expect("it is idle");
                ctx.trigger(nth(0)).expect("it is idle");
                ctx.trigger(nth(1)).expect("it is idle");
                log.note("low_at_10");
                ctx.work(micros(1_000));
                log.note("low_ends");
                drop(owned);
            });
            bench.run();
        },
    );
}

#[test]
fn a_wait_that_would_close_a_circle_is_refused_and_so_is_a_ceiling_below_the_task() {
    let expected = "low:Err(Deadlock) above:Err(AboveCeiling) not_owner:Err(NotOwner) no_wait:Err(TimedOut) \
        raise:Err(AboveCeiling) high_ends low_ends = Finished";
    check(expected, |bench| {
        let [a, b] = [0, 1].map(|_| bench.executive.resource(ResourceProtocol::Inherit).expect("few objects"));
        let ceiling = bench.executive.resource(ResourceProtocol::Ceiling(priority(20))).expect("few objects");
        let high = bench.task("high", 10, move |ctx, log| {
            let _b = ctx.reserve(b, FOREVER).expect("it is free");
            let _a = ctx.reserve(a, FOREVER).expect("it comes");
            log.tell("above", ctx.reserve(ceiling, FOREVER).map(drop));
            log.tell("not_owner", ctx.release(ceiling));
            log.tell("no_wait", ctx.reserve(ceiling, Limit::NoWait).map(drop).or(ctx.wait(Limit::NoWait)));
            log.tell("raise", ctx.set_priority(nth(1), priority(5)));
            log.note("high_ends");
        });
        bench.start("low", 30, move |ctx, log| {
            let owned = ctx.reserve(a, FOREVER).expect("it is free");
            let _ceiling = ctx.reserve(ceiling, FOREVER).expect("it is free");
            ctx.trigger(high).expect("it is idle");
            log.tell("low", ctx.reserve(b, FOREVER).map(drop));
            drop(owned);
            log.note("low_ends");
        });
    });
}

#[test]
fn a_wait_for_a_resource_that_times_out_leaves_it_with_its_owner() {
    check("waiter:Err(TimedOut) mine:Ok(()) = Finished", |bench| {
        let resource = bench.executive.resource(ResourceProtocol::Inherit).expect("few objects");
        bench.start("owner", 10, move |ctx, log| {
            ctx.reserve_unguarded(resource, FOREVER).expect("it is free");
            ctx.wait(FOREVER).expect("it comes");
            log.tell("mine", ctx.release(resource));
        });
        bench.start("waiter", 20, move |ctx, log| {
            log.tell("waiter", ctx.reserve(resource, Limit::For(micros(100))).map(drop));
            ctx.wake(nth(0)).expect("it waits");
        });
    });
}

#[test]
fn a_place_in_line_that_is_given_for_a_wait_counts_in_every_line() {
    let expected = "semaphore:b semaphore:a exchange:b exchange:a resource:b resource:a events:b events:a = Finished";
    check(expected, |bench| {
        let executive = &bench.executive;
        let semaphore = executive.semaphore(0, 9).expect("few objects");
        let exchange = executive.exchange::<u8>(ROOM).expect("few objects");
        let resource = executive.resource(ResourceProtocol::None).expect("few objects");
        let events = executive.events(0).expect("few objects");
        // The less urgent task asks for the better place.
        for (name, number, place) in [("a", 20, 31), ("b", 21, 30)] {
            bench.start(name, number, move |ctx, log| {
                let at = priority(place);
                ctx.wait_semaphore_at(semaphore, at, FOREVER).expect("it comes");
                log.note(format!("semaphore:{name}"));
                ctx.fetch_at(exchange, at, FOREVER).expect("it comes");
                log.note(format!("exchange:{name}"));
                let held = ctx.reserve_at(resource, at, FOREVER).expect("it comes");
                log.note(format!("resource:{name}"));
                drop(held);
                ctx.wait_events_at(events, Bits::Any(1), true, at, FOREVER).expect("it comes");
                log.note(format!("events:{name}"));
            });
        }
        bench.start("giver", 40, move |ctx, _| {
            (0..2).for_each(|_| ctx.signal_semaphore(semaphore).expect("below its limit"));
            let held = ctx.reserve(resource, FOREVER).expect("it is free");
            (0..2).for_each(|_| ctx.post(exchange, urgency(0), 1).expect("there is room"));
            drop(held);
            (0..2).for_each(|_| ctx.signal_events(events, 1).expect("it exists"));
        });
    });
}
