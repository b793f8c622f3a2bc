//! Scheduling order: the most urgent task runs, at once.

use hairspring_exec_core::{By, Call, ResourceId, ResourceProtocol};
use hairspring_machine::{Host, Machine};

use super::*;
use crate::calls::{Limit, Services};
use crate::report::StopReason;
use crate::status::{Sample, Sampled};
use crate::system::clock::monotonic;
use crate::thread::bands::KERNEL;
use crate::thread::parking::ISSUED;

/// Exchanges of the proof that a wake preempts.
const WAKES: u64 = 10_000;

#[test]
fn a_wake_of_a_more_urgent_task_preempts_before_the_call_returns() {
    let threads = up();
    if !strict(&threads, "a_wake_of_a_more_urgent_task_preempts_before_the_call_returns") {
        return;
    }
    let (seen, before) = (Count::default(), Count::default());
    let ran = seen.clone();
    let high = start(&threads, "high", 10, move |ctx| {
        while ran.get() < WAKES {
            ctx.wait(Limit::Forever).expect("a wake");
            ran.add();
        }
    });
    let (ran, counted) = (seen.clone(), before.clone());
    start(&threads, "low", 20, move |ctx| {
        for turn in 1..=WAKES {
            ctx.wake(high).expect("it waits");
            if ran.get() == turn {
                counted.add();
            }
        }
    });
    let finish = threads.run(LIMIT);
    assert_eq!((finish.stopped, seen.get(), before.get()), (StopReason::Finished, WAKES, WAKES));
    assert!(finish.strict, "{finish:?}");
    clean(&threads, &finish);
}

/// Symptom: one of 80,000 wakes returned before the more urgent task had run, where a thread of another CPU took the
/// lock every 20 µs. Cause: the lock was handed to the task just before it slept for it, so it went on, and its wake
/// came late, from the other CPU. The kernel has a thread on one list of wakes at a time; in the meantime the wake of
/// this call did nothing.
#[test]
fn a_wake_preempts_also_while_another_cpu_hands_over_the_lock() {
    let threads = up();
    if !strict(&threads, "a_wake_preempts_also_while_another_cpu_hands_over_the_lock") {
        return;
    }
    const CONTENDED: u64 = 100_000;
    let (seen, missed) = (Count::default(), Count::default());
    let high = start_counting(&threads, &seen);
    let (ran, late) = (seen.clone(), missed.clone());
    start(&threads, "low", 20, move |ctx| {
        for turn in 1..=CONTENDED {
            ctx.wake(high).expect("it waits");
            if ran.get() + late.get() != turn {
                late.add();
            }
        }
    });
    let over = std::sync::atomic::AtomicBool::new(false);
    let finish = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut sample = Sample::default();
            while !over.load(Ordering::SeqCst) {
                threads.shared.sample(&mut sample);
                let next = monotonic().after_nanos(20_000);
                while monotonic() < next {}
            }
        });
        let finish = threads.run(RunLimit::For(Nanos::from_secs(60)));
        over.store(true, Ordering::SeqCst);
        finish
    });
    assert_eq!((seen.get(), missed.get()), (CONTENDED, 0), "{finish:?}");
    assert_eq!(threads.violations(), 0);
}

#[test]
fn a_task_makes_no_call_before_a_more_urgent_one_whose_wake_is_on_its_way() {
    a_call_waits("a_task_makes_no_call_before_a_more_urgent_one_whose_wake_is_on_its_way", 20, |ctx| {
        ctx.yield_now();
    });
}

#[test]
fn a_task_that_lowers_itself_waits_for_one_whose_wake_is_on_its_way() {
    a_call_waits("a_task_that_lowers_itself_waits_for_one_whose_wake_is_on_its_way", 5, |ctx| {
        ctx.set_priority(ctx.id(), priority(20)).expect("it exists");
    });
}

/// A call of a task with this priority returns after a more urgent one has run, of which another CPU delivers the wake.
fn a_call_waits(test: &str, number: u8, call: fn(&TaskCtx<'_>)) {
    let threads = up();
    if !strict(&threads, test) {
        return;
    }
    const TRIES: u64 = 20;
    let (seen, waited_for) = (Count::default(), Count::default());
    let high = start_counting(&threads, &seen);
    let place = threads.shared.lock.hold().core.observer.seats[high.index()].place;
    let (shared, ran, counted) = (Arc::clone(&threads.shared), seen.clone(), waited_for.clone());
    let (tell, told) = std::sync::mpsc::channel();
    let mut tell = Some(tell);
    start(&threads, "low", number, move |ctx| {
        let tell = tell.take().expect("it runs once");
        for turn in 1..=TRIES {
            let mut state = shared.lock.hold();
            let wake = Call::Wake { task: high };
            let reply = state.apply(By::Outside, wake);
            state.conclude(None, &wake, reply);
            // As it is after a nudge that did nothing.
            shared.places.at(place).owe(ISSUED | 1);
            drop(state);
            tell.send(()).expect("the test listens");
            call(ctx);
            if ran.get() == turn {
                counted.add();
            }
            // The next try begins when the wake has come.
            while ran.get() < turn {
                ctx.delay(Nanos::from_millis(1)).expect("it waits");
            }
            ctx.set_priority(ctx.id(), priority(number)).expect("it exists");
        }
    });
    std::thread::scope(|scope| {
        let places = &threads.shared.places;
        scope.spawn(move || {
            Host.set_policy(KERNEL).expect("the executive has real-time priority");
            for () in told {
                std::thread::sleep(std::time::Duration::from_micros(500));
                places.at(place).nudge(0);
            }
        });
        threads.run(LIMIT);
    });
    // A wake comes too late if the machine stops that thread for longer than a task waits, and in time if it stops the
    // task.
    let waited_for = waited_for.get();
    assert!(waited_for > TRIES / 2, "of {TRIES} calls {waited_for} waited");
}

#[test]
fn a_trigger_preempts_and_its_task_has_ended_before_the_call_returns() {
    let threads = up();
    if !strict(&threads, "a_trigger_preempts_and_its_task_has_ended_before_the_call_returns") {
        return;
    }
    let (seen, missed) = (Count::default(), Count::default());
    let ran = seen.clone();
    let high = make(&threads, "high", 10, move |_| {
        ran.add();
    });
    let (ran, late) = (seen.clone(), missed.clone());
    start(&threads, "low", 20, move |ctx| {
        for turn in 1..=1_000 {
            ctx.trigger(high).expect("it is idle");
            if ran.get() != turn {
                late.add();
            }
        }
    });
    let finish = threads.run(LIMIT);
    assert_eq!((seen.get(), missed.get()), (1_000, 0));
    clean(&threads, &finish);
}

#[test]
fn a_wake_of_a_less_urgent_task_does_not_run_it() {
    let threads = up();
    if !strict(&threads, "a_wake_of_a_less_urgent_task_does_not_run_it") {
        return;
    }
    let order = Count::default();
    let mine = order.clone();
    let low = start(&threads, "low", 30, move |ctx| {
        ctx.wait(Limit::Forever).expect("a wake");
        mine.set(mine.get() * 10 + 2);
    });
    let mine = order.clone();
    start(&threads, "high", 40, move |ctx| {
        ctx.set_priority(ctx.id(), priority(5)).expect("it exists");
        ctx.wake(low).expect("it waits");
        ctx.work(Nanos::from_micros(200));
        mine.set(mine.get() * 10 + 1);
    });
    let finish = threads.run(LIMIT);
    assert_eq!(order.get(), 12);
    clean(&threads, &finish);
}

#[test]
fn a_yield_lets_equals_run_in_turn() {
    let threads = up();
    if !strict(&threads, "a_yield_lets_equals_run_in_turn") {
        return;
    }
    let order = Count::default();
    for digit in 1..=3 {
        let mine = order.clone();
        start(&threads, "equal", 20, move |ctx| {
            for _ in 0..2 {
                mine.set(mine.get() * 10 + digit);
                ctx.yield_now();
            }
        });
    }
    let finish = threads.run(LIMIT);
    assert_eq!(order.get(), 123_123);
    clean(&threads, &finish);
}

#[test]
fn a_task_that_lowers_itself_makes_way_at_once() {
    let threads = up();
    if !strict(&threads, "a_task_that_lowers_itself_makes_way_at_once") {
        return;
    }
    let order = Count::default();
    let mine = order.clone();
    start(&threads, "middle", 20, move |_| mine.set(mine.get() * 10 + 2));
    let mine = order.clone();
    start(&threads, "sinking", 10, move |ctx| {
        mine.set(mine.get() * 10 + 1);
        ctx.set_priority(ctx.id(), priority(30)).expect("it exists");
        mine.set(mine.get() * 10 + 3);
    });
    let finish = threads.run(LIMIT);
    assert_eq!(order.get(), 123);
    clean(&threads, &finish);
}

/// Symptom: a task that lowered itself continued milliseconds after the more urgent ones had let it, beside busy
/// ordinary programs. Cause: to get to the end of its new run queue its thread was made ordinary first, and there it
/// lost the CPU to them.
#[test]
fn a_task_that_lowers_itself_is_never_ordinary_and_goes_behind_its_equals() {
    let threads = up();
    if !strict(&threads, "a_task_that_lowers_itself_is_never_ordinary_and_goes_behind_its_equals") {
        return;
    }
    let (order, policy) = (Count::default(), Count::default());
    let mine = order.clone();
    let sinking = start(&threads, "sinking", 10, move |ctx| {
        mine.set(mine.get() * 10 + 1);
        ctx.set_priority(ctx.id(), priority(30)).expect("it exists");
        mine.set(mine.get() * 10 + 4);
    });
    let place = threads.shared.lock.hold().core.observer.seats[sinking.index()].place;
    let thread = threads.shared.places.at(place).thread();
    let (mine, seen) = (order.clone(), policy.clone());
    start(&threads, "middle", 20, move |_| {
        let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).expect("it lives");
        // Field 41 of proc_pid_stat(5); the third follows the name in parentheses.
        let field = text.rsplit(") ").next().and_then(|fields| fields.split(' ').nth(38)).expect("a policy");
        seen.set(field.parse().expect("a number"));
        mine.set(mine.get() * 10 + 2);
    });
    let mine = order.clone();
    start(&threads, "equal", 30, move |_| mine.set(mine.get() * 10 + 3));
    let finish = threads.run(LIMIT);
    assert_eq!((order.get(), policy.get()), (1234, libc::SCHED_FIFO.unsigned_abs().into()));
    clean(&threads, &finish);
}

/// Low owns what high waits for, and middle has work: with inheritance low goes before middle, without it middle goes
/// first.
fn inversion(threads: &Threads, protocol: ResourceProtocol) -> u64 {
    let reply = threads.call(By::Outside, Call::CreateResource { protocol });
    let resource = ResourceId::from_number(reply.value);
    let order = Count::default();
    let mine = order.clone();
    let high = make(threads, "high", 10, move |ctx| {
        let owned = ctx.reserve(resource, Limit::Forever).expect("it comes");
        mine.set(mine.get() * 10 + 1);
        drop(owned);
    });
    let mine = order.clone();
    let middle = make(threads, "middle", 20, move |_| mine.set(mine.get() * 10 + 2));
    let mine = order.clone();
    start(threads, "low", 30, move |ctx| {
        let owned = ctx.reserve(resource, Limit::Forever).expect("it is free");
        ctx.trigger(high).expect("it is idle");
        ctx.trigger(middle).expect("it is idle");
        mine.set(mine.get() * 10 + 3);
        drop(owned);
    });
    let finish = threads.run(LIMIT);
    clean(threads, &finish);
    order.get()
}

#[test]
fn an_owner_inherits_the_priority_of_its_waiter_and_gives_it_back() {
    let name = "an_owner_inherits_the_priority_of_its_waiter_and_gives_it_back";
    let threads = up();
    if !strict(&threads, name) {
        return;
    }
    assert_eq!(inversion(&threads, ResourceProtocol::Inherit), 312);
    assert_eq!(inversion(&threads, ResourceProtocol::None), 231);
    assert_eq!(inversion(&threads, ResourceProtocol::Ceiling(priority(10))), 312);
}

#[test]
fn two_hundred_tasks_hand_a_wake_round() {
    both(|threads| {
        let tasks: Arc<std::sync::Mutex<Vec<TaskId>>> = Arc::default();
        let laps = Count::default();
        let made: Vec<TaskId> = (0..200_usize)
            .map(|at| {
                let (tasks, laps) = (Arc::clone(&tasks), laps.clone());
                start(&threads, "ring", (at % 64) as u8, move |ctx| {
                    let next = tasks.lock().expect("no panic")[(at + 1) % 200];
                    for lap in 0..5 {
                        if at > 0 || lap > 0 {
                            ctx.wait(Limit::Forever).expect("a wake");
                        }
                        laps.add();
                        // The first has no lap left to wait for in the end.
                        let _ = ctx.wake(next);
                    }
                })
            })
            .collect();
        *tasks.lock().expect("no panic") = made;
        let finish = threads.run(LIMIT);
        assert_eq!((laps.get(), finish.stopped), (1_000, StopReason::Finished));
        clean(&threads, &finish);
    });
}
