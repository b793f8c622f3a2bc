//! Nudges that are owed: issued by the next thread that leaves the kernel.

use hairspring_exec_core::{By, Call, CallStatus, TaskState};

use super::super::mirror::RUNNER_PLACE;
use super::*;
use crate::calls::Limit;
use crate::status::{Sample, Sampled};

/// Waits, in little steps, until something is so; false if it never is.
fn comes(mut so: impl FnMut() -> bool) -> bool {
    (0..2_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(1));
        so()
    })
}

#[test]
fn a_nudge_whose_owner_was_preempted_is_issued_by_the_next_who_leaves() {
    let threads = up();
    let (woken, other) = (Count::default(), Count::default());
    let high = start_counting(&threads, &woken);
    let ran = other.clone();
    let low = make(&threads, "other", 30, move |_| {
        ran.add();
    });
    // Something that could still happen keeps the run alive.
    threads.shared.lock.hold().attached = 1;
    std::thread::scope(|scope| {
        let running = Threads { shared: Arc::clone(&threads.shared), own: None, owner: false };
        let run = scope.spawn(move || running.run(LIMIT));
        let place = threads.shared.lock.hold().core.observer.seats[high.index()].place;
        let asleep = || {
            let state = threads.shared.lock.hold();
            !state.places.at(place).may_run() && state.core.look(high).is_some_and(|look| !look.suspended)
        };
        assert!(comes(asleep), "it waits");
        std::thread::sleep(std::time::Duration::from_millis(5));

        // A caller that makes its call and is preempted between unlock and nudge.
        let owed = {
            let mut state = threads.shared.lock.hold();
            let call = Call::Wake { task: high };
            let reply = state.apply(By::Outside, call);
            assert_eq!(reply.status, CallStatus::Ok);
            state.conclude(None, &call, reply);
            state.nudges()
        };
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(woken.get(), 0, "nobody has issued the nudge");
        // Another call, which has nothing to do with it.
        trigger(&threads, low);
        assert!(comes(|| woken.get() == 1), "the nudge was issued by another");
        assert!(comes(|| other.get() == 1));
        // The thread that owed it comes late: nothing happens.
        owed.issue(&threads.shared.places);
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(woken.get(), 1);
        assert!(!threads.shared.lock.hold().core.observer.owes_any());
        threads.stop(By::Outside);
        run.join().expect("the run ends");
    });
}

#[test]
fn the_most_urgent_is_nudged_first_and_none_is_forgotten() {
    let threads = up();
    if !strict(&threads, "the_most_urgent_is_nudged_first_and_none_is_forgotten") {
        return;
    }
    let order: Arc<std::sync::Mutex<Vec<usize>>> = Arc::default();
    let events =
        hairspring_exec_core::EventsId::from_number(threads.call(By::Outside, Call::CreateEvents { bits: 0 }).value);
    // More than are issued in one go.
    for at in 0..20_usize {
        let order = Arc::clone(&order);
        start(&threads, "waiter", 40 - at as u8, move |ctx| {
            ctx.wait_events(events, hairspring_exec_core::Bits::Any(1), false, Limit::Forever).expect("the bit");
            order.lock().expect("no panic").push(at);
        });
    }
    start(&threads, "signal", 50, move |ctx| {
        use crate::calls::Services;
        ctx.signal_events(events, 1).expect("it exists");
    });
    let finish = threads.run(LIMIT);
    assert_eq!(*order.lock().expect("no panic"), (0..20).rev().collect::<Vec<_>>());
    clean(&threads, &finish);
}

/// Symptom: now and then a call that woke a more urgent task returned before that task had run. Cause: a thread of
/// another CPU took the lock for a look, issued the nudge of an earlier call, and so took the sleeper out of the
/// kernel's queue. The caller's own wake found no sleeper, and the other one's took microseconds to arrive.
#[test]
fn one_who_only_looks_issues_no_nudge_of_others() {
    let threads = up();
    let woken = Count::default();
    let high = start_counting(&threads, &woken);
    // Something that could still happen keeps the run alive.
    threads.shared.lock.hold().attached = 1;
    std::thread::scope(|scope| {
        let running = Threads { shared: Arc::clone(&threads.shared), own: None, owner: false };
        let run = scope.spawn(move || running.run(LIMIT));
        let waits = || threads.shared.lock.hold().core.look(high).is_some_and(|look| look.state == TaskState::Waiting);
        assert!(comes(waits), "it waits");
        let owed = {
            let mut state = threads.shared.lock.hold();
            let call = Call::Wake { task: high };
            let reply = state.apply(By::Outside, call);
            state.conclude(None, &call, reply);
            state.nudges()
        };
        threads.shared.sample(&mut Sample::default());
        // The thread that waits for the end of the run looks, too.
        let runner = threads.shared.places.at(RUNNER_PLACE);
        runner.allow();
        runner.nudge(0);
        assert!(comes(|| !runner.may_run()), "it has looked, and sleeps again");
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(woken.get(), 0, "a thread that owes nothing has issued a nudge");
        owed.issue(&threads.shared.places);
        assert!(comes(|| woken.get() == 1), "the one who owed it has issued it");
        threads.stop(By::Outside);
        run.join().expect("the run ends");
    });
}
