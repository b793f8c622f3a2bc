//! Calls of tasks that act on other tasks, on both profiles.

use hairspring_exec_core::{By, Call, CallStatus, Ending, Urgency};

use super::*;
use crate::calls::{Limit, Services};
use crate::errors::{DeleteError, SuspendError, TriggerError, WaitError};
use crate::objects::Mailbox;
use crate::report::{Misfortune, StopReason};

#[test]
fn a_suspended_task_stands_still_at_its_next_call_and_makes_it_when_it_is_resumed() {
    let threads = up();
    if !strict(&threads, "a_suspended_task_stands_still_at_its_next_call_and_makes_it_when_it_is_resumed") {
        return;
    }
    let steps = Count::default();
    let mine = steps.clone();
    let tell = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let suspended = Arc::clone(&tell);
    let low = start(&threads, "low", 30, move |ctx| {
        mine.set(1);
        ctx.delay(Nanos::from_millis(1)).expect("not killed");
        // Suspended while it computes: it goes on.
        let begun = std::time::Instant::now();
        while !suspended.load(Ordering::SeqCst) && begun.elapsed().as_secs() < 2 {}
        mine.set(2);
        assert_eq!(ctx.wait(Limit::NoWait), Err(WaitError::TimedOut));
        mine.set(3);
    });
    let mine = steps.clone();
    start(&threads, "high", 10, move |ctx| {
        ctx.delay(Nanos::from_millis(2)).expect("not killed");
        ctx.suspend(low).expect("it is in a run");
        assert_eq!(ctx.suspend(low), Err(SuspendError::AlreadySuspended));
        tell.store(true, Ordering::SeqCst);
        ctx.delay(Nanos::from_millis(20)).expect("not killed");
        assert!(mine.get() < 3, "it stands still");
        ctx.resume(low).expect("it is suspended");
    });
    let finish = threads.run(LIMIT);
    assert_eq!((steps.get(), finish.stopped), (3, StopReason::Finished));
    clean(&threads, &finish);
}

/// Sets its mark when it is dropped.
struct Mark(Count);

impl Drop for Mark {
    fn drop(&mut self) {
        self.0.add();
    }
}

#[test]
fn a_killed_task_unwinds_at_its_next_call_and_can_be_started_again() {
    both(|threads| {
        let (dropped, runs, stuck) = (Count::default(), Count::default(), Arc::new(AtomicU64::new(0)));
        let (mark, turns, go_on) = (dropped.clone(), runs.clone(), Arc::clone(&stuck));
        let victim = start(&threads, "victim", 30, move |ctx| {
            let _mark = Mark(mark.clone());
            turns.add();
            if turns.get() == 1 {
                // No call: the kill has to wait.
                while go_on.load(Ordering::SeqCst) == 0 {
                    std::thread::sleep(std::time::Duration::from_micros(100));
                }
                ctx.wake_reset();
                turns.set(100);
            }
        });
        let mark = dropped.clone();
        start(&threads, "killer", 10, move |ctx| {
            ctx.delay(Nanos::from_millis(2)).expect("not killed");
            ctx.kill(victim).expect("it is there");
            assert_eq!(mark.get(), 0, "it has not made a call");
            stuck.store(1, Ordering::SeqCst);
            while mark.get() == 0 {
                ctx.delay(Nanos::from_millis(1)).expect("not killed");
            }
            ctx.trigger(victim).expect("it is idle");
        });
        let finish = threads.run(LIMIT);
        assert_eq!((dropped.get(), runs.get()), (2, 2));
        let what: Vec<_> = finish.mishaps.iter().map(|mishap| mishap.what.clone()).collect();
        assert_eq!(what, [Misfortune::Ended(Ending::Killed, String::new())]);
    });
}

#[test]
fn a_waiting_task_that_is_killed_unwinds_at_once_and_its_destructors_may_call() {
    both(|threads| {
        let resource = threads
            .call(By::Outside, Call::CreateResource { protocol: hairspring_exec_core::ResourceProtocol::Inherit });
        let resource = hairspring_exec_core::ResourceId::from_number(resource.value);
        let freed = Count::default();
        let victim = start(&threads, "victim", 10, move |ctx| {
            let _owned = ctx.reserve(resource, Limit::Forever).expect("it is free");
            ctx.wait(Limit::Forever).expect("never");
            unreachable!("a killed task does not come back from its wait");
        });
        let (mine, shared) = (freed.clone(), Arc::clone(&threads.shared));
        let state = move || shared.lock.hold().core.look(victim).expect("it exists").state;
        start(&threads, "killer", 20, move |ctx| {
            while state() != hairspring_exec_core::TaskState::Waiting {
                ctx.delay(Nanos::from_millis(1)).expect("not killed");
            }
            ctx.kill(victim).expect("it is there");
            let _owned = ctx.reserve(resource, Limit::For(SECOND)).expect("its guard was dropped");
            mine.add();
        });
        let finish = threads.run(LIMIT);
        assert_eq!((freed.get(), finish.mishaps.len()), (1, 1), "{finish:?}");
    });
}

#[test]
fn a_panic_ends_its_task_and_nobody_else() {
    both(|threads| {
        let others = Count::default();
        start(&threads, "clumsy", 10, |_| std::panic::resume_unwind(Box::new("it slipped")));
        let mine = others.clone();
        start(&threads, "steady", 20, move |ctx| {
            for _ in 0..10 {
                ctx.delay(Nanos::from_micros(100)).expect("not killed");
                mine.add();
            }
        });
        let finish = threads.run(LIMIT);
        assert_eq!(others.get(), 10);
        let mishap = &finish.mishaps[0];
        assert_eq!((mishap.name.as_str(), finish.mishaps.len()), ("clumsy", 1));
        assert_eq!(mishap.what, Misfortune::Ended(Ending::Panicked, "it slipped".to_owned()));
        assert_eq!(threads.call(By::Outside, Call::Trigger { task: mishap.task }).status, CallStatus::Dead);
    });
}

#[test]
fn a_task_that_ends_as_owner_is_reported() {
    let threads = up();
    let resource =
        threads.call(By::Outside, Call::CreateResource { protocol: hairspring_exec_core::ResourceProtocol::None });
    let resource = hairspring_exec_core::ResourceId::from_number(resource.value);
    start(&threads, "keeper", 10, move |ctx| ctx.reserve_unguarded(resource, Limit::Forever).expect("it is free"));
    let finish = threads.run(LIMIT);
    assert_eq!(finish.mishaps[0].what, Misfortune::HeldResources);
}

#[test]
fn messages_arrive_whole_and_are_acknowledged() {
    both(|threads| {
        let sum = Count::default();
        let mine = sum.clone();
        let body = move |ctx: &TaskCtx<'_>, _: Mailbox<[u32; 3]>, [first, second, third]: [u32; 3]| {
            mine.set(mine.get() + u64::from(first + second + third));
            ctx.acknowledge(first).expect("its sender waits");
        };
        let mailbox = Program(&threads).mail_task("mail", priority(10), [4; 4], body).expect("a task");
        start(&threads, "sender", 20, move |ctx| {
            for turn in 1..=1_000 {
                let answer = ctx.send_wait(mailbox, Urgency::ALL[0], [turn, 1, 2], Limit::Forever);
                assert_eq!(answer, Ok(turn));
            }
        });
        let finish = threads.run(LIMIT);
        assert_eq!(sum.get(), 1_000 * 1_001 / 2 + 3_000);
        clean(&threads, &finish);
    });
}

#[test]
fn tasks_make_and_delete_tasks() {
    both(|threads| {
        let (runs, dropped) = (Count::default(), Count::default());
        let (turns, mark) = (runs.clone(), dropped.clone());
        start(&threads, "maker", 20, move |ctx| {
            for _ in 0..50 {
                let (turns, mark) = (turns.clone(), Mark(mark.clone()));
                let made = ctx.task("made", priority(10), move |_| {
                    let _ = &mark;
                    turns.add();
                });
                let made = made.expect("a task");
                ctx.trigger(made).expect("it is idle");
                while ctx.delete_task(made) == Err(DeleteError::Running) {
                    ctx.delay(Nanos::from_micros(50)).expect("not killed");
                }
                assert_eq!(ctx.trigger(made), Err(TriggerError::NoSuchObject));
            }
        });
        let finish = threads.run(LIMIT);
        assert_eq!((runs.get(), dropped.get()), (50, 50));
        clean(&threads, &finish);
    });
}

#[test]
fn the_trace_has_every_call_in_the_order_of_the_lock() {
    let config = ExecConfig { trace: Some(100_000), measure_latency: true, ..config() };
    let threads = Threads::new(&config, ThreadProfile::Smp { cpus: CpuSet::default() }).expect("an executive");
    let waiter = start(&threads, "waiter", 10, |ctx| while ctx.wait(Limit::For(SECOND)).is_ok() {});
    for _ in 0..4 {
        start(&threads, "waker", 20, move |ctx| {
            for _ in 0..200 {
                let _ = ctx.wake(waiter);
            }
        });
    }
    let finish = threads.run(RunLimit::For(Nanos::from_millis(200)));
    assert!(finish.longest_lock.is_some_and(|longest| longest > Nanos::ZERO), "{finish:?}");
    let trace = threads.trace().expect("it was asked for");
    assert_eq!(trace.tasks.len(), 5);
    let mut core = hairspring_exec_core::Core::new(config.envelopes, ());
    for record in &trace.records {
        assert_eq!(core.apply(record.by, record.call), record.reply, "{record:?}");
    }
    assert!(trace.records.iter().filter(|record| matches!(record.call, Call::Wake { .. })).count() == 800);
}
