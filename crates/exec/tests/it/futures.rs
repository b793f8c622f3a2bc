//! Futures both ways: a task waits for a future, and a future for a task, on every back-end.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use hairspring_exec::errors::{FutureError, JoinError};
use hairspring_exec::{Backend, Create, ExecConfig, Executive, Limit, Services, StopReason, TaskCtx, WakeOutcome};

use crate::backends::{
    FOREVER, LIMIT, OnDrop, alone, check, check_with, hush, micros, nth, panic_on_purpose, priority,
};

/// A value that any thread can hand over once.
struct Parcel<T>(Arc<Mutex<(Option<T>, Option<Waker>)>>);

impl<T> Clone for Parcel<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Parcel<T> {
    fn new() -> Self {
        Self(Arc::new(Mutex::new((None, None))))
    }

    fn hand_over(&self, value: T) {
        let waker = {
            let mut inside = self.0.lock().expect("nobody panics with it");
            inside.0 = Some(value);
            inside.1.take()
        };
        waker.into_iter().for_each(Waker::wake);
    }

    /// The waker of the waiting task.
    fn waker(&self) -> Option<Waker> {
        self.0.lock().expect("nobody panics with it").1.clone()
    }

    fn arrives(&self) -> impl Future<Output = T> {
        let own = self.clone();
        poll_fn(move |context| {
            let mut inside = own.0.lock().expect("nobody panics with it");
            if let Some(value) = inside.0.take() {
                return Poll::Ready(value);
            }
            inside.1 = Some(context.waker().clone());
            Poll::Pending
        })
    }
}

/// An executor: the calling thread alone.
fn on_this_thread<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Back-ends with real time, each with its tests alone.
fn in_real_time(run: impl Fn(&mut Executive, &str)) {
    for backend in crate::backends::all().into_iter().filter(|backend| backend.name() != "sim") {
        let (_alone, name) = (alone(), backend.name());
        run(&mut Executive::new(backend, &ExecConfig::default()).expect("it can be made"), name);
    }
}

#[test]
fn a_task_waits_for_a_future_that_a_task_a_timer_and_nobody_completes() {
    check("waits less_urgent at_once:Ok(1) by_task:Ok(2) by_timer:Ok(3) never:Err(TimedOut) = Finished", |bench| {
        let (from_task, from_timer, never) = (Parcel::new(), Parcel::new(), Parcel::<u8>::new());
        let timer = from_timer.clone();
        let timer = bench.executive.timer("completes", move |_, _| timer.hand_over(3)).expect("few objects");
        let parcel = from_task.clone();
        bench.start("urgent", 10, move |ctx, log| {
            let at_once = ctx.block_on(async { 1 }, Limit::NoWait);
            log.note("waits");
            let by_task = ctx.block_on(parcel.arrives(), FOREVER);
            log.tell("at_once", at_once);
            log.tell("by_task", by_task);
            ctx.start_timer(timer, ctx.now() + micros(200)).expect("it exists");
            log.tell("by_timer", ctx.block_on(from_timer.arrives(), FOREVER));
            log.tell("never", ctx.block_on(never.arrives(), Limit::For(micros(300))));
        });
        bench.start("less urgent", 20, move |ctx, log| {
            log.note("less_urgent");
            from_task.hand_over(2);
            ctx.preempt_point();
        });
    });
}

#[test]
fn a_future_does_not_touch_the_kept_wake_and_wakers_that_come_late_do_nothing() {
    let expected = "first:Err(TimedOut) kept:Ok(()) none:Err(TimedOut) second:Err(TimedOut) third:Ok(9) = Finished";
    check(expected, |bench| {
        bench.start("task", 10, |ctx, log| {
            let parcel = Parcel::<u8>::new();
            log.tell("first", ctx.block_on(parcel.arrives(), Limit::For(micros(100))));
            let late = parcel.waker().expect("it was polled");
            assert_eq!(ctx.wake(ctx.id()), Ok(WakeOutcome::Pending));
            late.wake_by_ref();
            ctx.preempt_point();
            log.tell("kept", ctx.wait(Limit::NoWait));
            log.tell("none", ctx.wait(Limit::NoWait));
            late.wake();
            // Polled again, at most, and waits on.
            let other = Parcel::<u8>::new();
            log.tell("second", ctx.block_on(other.arrives(), Limit::For(micros(100))));
            other.hand_over(9);
            log.tell("third", ctx.block_on(other.arrives(), Limit::NoWait));
        });
    });
}

#[test]
fn futures_that_wake_themselves_or_wait_inside_of_each_other_come_to_their_ends() {
    check("yields:Ok(3) restless:Err(TimedOut) inner:5 outer:Ok(6) = Finished", |bench| {
        bench.start("task", 10, |ctx, log| {
            let mut left = 3;
            let yields = poll_fn(|context| {
                if left == 0 {
                    return Poll::Ready(3);
                }
                left -= 1;
                context.waker().wake_by_ref();
                Poll::Pending
            });
            log.tell("yields", ctx.block_on(yields, FOREVER));
            let restless = poll_fn(|context: &mut Context<'_>| -> Poll<()> {
                context.waker().wake_by_ref();
                ctx.work(micros(20));
                Poll::Pending
            });
            log.tell("restless", ctx.block_on(restless, Limit::For(micros(200))));
            // The outer one is woken while the inner one waits, and the inner wait must not swallow that.
            let (outer, inner) = (Parcel::new(), Parcel::new());
            let (to_outer, to_inner) = (outer.clone(), inner.clone());
            let helper = ctx.spawn("helper", priority(20), move |ctx| {
                to_outer.hand_over(6);
                ctx.preempt_point();
                to_inner.hand_over(5);
                ctx.preempt_point();
            });
            let mut arrives = pin!(outer.arrives());
            let mut first = true;
            let nested = poll_fn(|context| {
                let polled = arrives.as_mut().poll(context);
                if std::mem::take(&mut first) {
                    assert!(polled.is_pending());
                    let got = ctx.block_on(inner.arrives(), FOREVER).expect("it comes");
                    log.note(format!("inner:{got}"));
                }
                polled
            });
            log.tell("outer", ctx.block_on(nested, FOREVER));
            drop(helper);
        });
    });
}

#[test]
fn a_wait_that_is_killed_or_broken_off_drops_its_future() {
    check("waits cancelled:Err(Cancelled) waits dropped gone = Finished killed:Killed", |bench| {
        let waiting = |ctx: &TaskCtx<'_>, on_drop: Option<OnDrop>| {
            let never = poll_fn(move |_| {
                let _ = &on_drop;
                Poll::<()>::Pending
            });
            ctx.block_on(never, FOREVER)
        };
        bench.start("cancelled", 10, move |ctx, log| {
            log.note("waits");
            log.tell("cancelled", waiting(ctx, None));
        });
        let on_drop = Mutex::new(Some(bench.log.on_drop("dropped")));
        bench.task("killed", 10, move |ctx, log| {
            log.note("waits");
            let on_drop = on_drop.lock().expect("nobody panics with it").take();
            let _ = waiting(ctx, on_drop);
            log.note("not reached");
        });
        bench.start("ends them", 20, |ctx, log| {
            ctx.cancel_wait(nth(0)).expect("it waits");
            ctx.trigger(nth(1)).expect("it is idle");
            ctx.kill(nth(1)).expect("it waits");
            ctx.wait_for_end(nth(1), FOREVER).expect("it unwinds");
            log.note("gone");
        });
    });
}

#[test]
fn a_run_goes_on_while_another_thread_may_complete_a_future() {
    in_real_time(|executive, name| {
        let parcel = Parcel::new();
        let (asleep, wait_until_asleep) = channel();
        let taken = parcel.clone();
        let task = executive.task("waits", priority(10), move |ctx| {
            asleep.send(()).expect("the thread waits for it");
            assert_eq!(ctx.block_on(taken.arrives(), FOREVER), Ok(7));
        });
        executive.trigger(task.expect("few objects")).expect("it is idle");
        let other = std::thread::spawn(move || {
            wait_until_asleep.recv().expect("the task tells it");
            // Nothing depends on it: the task is usually asleep by then.
            std::thread::yield_now();
            parcel.hand_over(7);
        });
        let finish = executive.run(LIMIT);
        other.join().expect("it only completes");
        assert!(finish.clean() && finish.stopped == StopReason::Finished, "{name}: {finish:?}");
    });
}

#[test]
fn a_waker_outlives_its_task_its_run_and_its_executive() {
    in_real_time(|executive, name| {
        let parcel = Parcel::<u8>::new();
        let taken = parcel.clone();
        let task = executive.task("waits", priority(10), move |ctx| {
            let _ = ctx.block_on(taken.arrives(), FOREVER);
        });
        // It gets the CPU when the other waits, so the run ends in the middle of the wait.
        let stops = executive.task("stops", priority(20), |ctx| {
            ctx.stop();
        });
        for task in [task, stops] {
            executive.trigger(task.expect("few objects")).expect("it is idle");
        }
        assert_eq!(executive.run(LIMIT).stopped, StopReason::Asked, "{name}");
        let waker = parcel.waker().expect("it was polled");
        waker.wake_by_ref();
        // Nothing is left to wait for: the next run does not wait either.
        assert_eq!(executive.run(LIMIT).stopped, StopReason::Finished, "{name}");
        *executive = Executive::new(Backend::sim(), &ExecConfig::default()).expect("it can be made");
        waker.wake();
    });
}

#[test]
fn in_virtual_time_a_run_does_not_wait_for_other_threads() {
    let mut executive = Executive::new(Backend::sim(), &ExecConfig::default()).expect("it can be made");
    let task = executive.task("waits", priority(10), |ctx| {
        let _ = ctx.block_on(std::future::pending::<()>(), FOREVER);
    });
    executive.trigger(task.expect("few objects")).expect("it is idle");
    assert_eq!(executive.run(LIMIT).stopped, StopReason::Stuck);
}

#[test]
fn a_future_awaits_tasks_from_another_thread() {
    hush();
    in_real_time(|executive, name| {
        let units = executive.semaphore(0, 1).expect("few objects");
        // A task waits for an object of the executive, and the future waits for the task.
        let taken = executive.spawn("takes", priority(10), move |ctx| ctx.wait_semaphore(units, FOREVER).is_ok());
        let killed = executive.spawn("killed", priority(10), move |ctx| {
            let _ = ctx.wait(FOREVER);
        });
        let panicked = executive.spawn("panics", priority(10), |_| -> u8 { panic_on_purpose() });
        let (taken, killed, panicked) =
            (taken.expect("few objects"), killed.expect("few objects"), panicked.expect("few objects"));
        let victim = killed.task();
        let last = executive.spawn("last", priority(20), move |ctx| {
            ctx.kill(victim).expect("it waits");
            ctx.signal_semaphore(units).expect("there is room");
            u64::MAX
        });
        let last = last.expect("few objects");
        let elsewhere = std::thread::spawn(move || {
            on_this_thread(async { (taken.await, killed.await, panicked.await, last.await) })
        });
        let finish = executive.run(LIMIT);
        let told = elsewhere.join().expect("it only waits");
        assert_eq!(told, (Ok(true), Err(JoinError::Empty), Err(JoinError::Empty), Ok(u64::MAX)), "{name}: {finish:?}");
    });
}

#[test]
fn a_future_of_a_task_that_never_runs_ends_with_the_executive() {
    let executive = Executive::new(Backend::fiber(), &ExecConfig::default()).expect("it can be made");
    let never = executive.spawn("never", priority(10), |_| 1).expect("few objects");
    let elsewhere = std::thread::spawn(move || on_this_thread(never));
    drop(executive);
    assert_eq!(elsewhere.join().expect("it only waits"), Err(JoinError::Empty));
}

#[test]
fn tasks_await_each_other_as_futures_and_the_trace_of_it_replays() {
    let config = ExecConfig { trace: Some(10_000), ..ExecConfig::default() };
    check_with(&config, "first second both:Ok((1,2)) empty:Ok(Err(Empty)) = Finished", |bench| {
        let [mut first, mut second] = [(1, "first"), (2, "second")].map(|(number, text)| {
            let log = bench.log.clone();
            let made = bench.executive.spawn(text, priority(20), move |ctx| {
                ctx.delay(micros(100 * number)).expect("nobody breaks it off");
                log.note(text);
                number
            });
            made.expect("few objects")
        });
        let task = bench.task("awaits", 10, move |ctx, log| {
            let both = async { ((&mut first).await.expect("it ends"), (&mut second).await.expect("it ends")) };
            log.tell("both", ctx.block_on(both, FOREVER));
            log.tell("empty", ctx.block_on(&mut first, FOREVER));
        });
        bench.executive.trigger(task).expect("it is idle");
        bench.run();
        let trace = bench.executive.trace().expect("it was asked for");
        assert_eq!(trace.lost, 0);
        if let Err(mismatch) = trace.replay() {
            panic!("{mismatch}");
        }
    });
}

#[test]
fn a_destructor_of_a_killed_task_waits_for_no_future() {
    check("killed:Err(Killed) ended = Finished task:Killed", |bench| {
        bench.start("task", 10, |ctx, log| {
            let _at_end = crate::backends::AtEnd(|| {
                let refused: Result<(), FutureError> = ctx.block_on(std::future::pending(), FOREVER);
                log.tell("killed", refused);
            });
            let _ = ctx.wait(FOREVER);
        });
        bench.start("kills", 20, |ctx, log| {
            ctx.kill(nth(0)).expect("it waits");
            ctx.wait_for_end(nth(0), FOREVER).expect("it unwinds");
            log.note("ended");
        });
    });
}
