//! Interrupt service procedures: software, descriptors, raw and conforming, lost ones, and those of virtual time.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hairspring_exec::{
    Bits, Create, ExecConfig, Executive, InterruptSource, Limit, RunLimit, Services, StopReason, WakeOutcome,
};
use hairspring_machine::Nanos;

use crate::backends::{
    Bench, FOREVER, LIMIT, ROOM, all, alone, check, check_on, micros, nth, panic_on_purpose, sim, sim_and_fiber,
    urgency,
};

#[test]
fn a_procedure_runs_above_all_tasks_and_whom_it_readies_runs_when_it_is_done() {
    check_on(sim_and_fiber(), &ExecConfig::default(), "isp_begins isp_ends high low = Asked", |bench| {
        bench.start("high", 10, |ctx, log| {
            ctx.wait(FOREVER).expect("the interrupt wakes it");
            log.note("high");
            // A source is attached: nothing else would end the run of fibers or threads.
            ctx.trigger(nth(2)).expect("it is idle");
        });
        let isp = bench.isp(|ctx, log| {
            log.note("isp_begins");
            assert_eq!(ctx.wake(nth(0)), Ok(WakeOutcome::Now));
            log.note("isp_ends");
        });
        bench.start("low", 20, move |ctx, log| {
            isp.post().expect("the ring is empty");
            ctx.preempt_point();
            log.note("low");
        });
        bench.task("ends", 30, |ctx, _| ctx.stop());
        bench.run();
    });
}

#[test]
fn every_call_of_an_interrupt_context_reaches_its_task() {
    let expected = "trigger wake signal mail:5 post:6 semaphore events timer buffer = Asked";
    check(expected, |bench| {
        let executive = &bench.executive;
        let semaphore = executive.semaphore(0, 1).expect("few objects");
        let events = executive.events(0).expect("few objects");
        let exchange = executive.exchange::<u32>(ROOM).expect("few objects");
        let pool = executive.pool(vec![0_u32]).expect("few objects");
        let log = bench.log.clone();
        let timer = executive.timer("timer", move |_, _| log.note("timer")).expect("few objects");
        let triggered = bench.task("trigger", 9, |_, log| log.note("trigger"));
        let waiter = bench.start("waiter", 10, move |ctx, log| {
            ctx.wait(FOREVER).expect("it comes");
            log.note("wake");
            ctx.wait_signals(Bits::Any(4), FOREVER).expect("it comes");
            log.note("signal");
        });
        let mailbox = bench.mail_task::<u32>("mail", 11, ROOM, |_, log, _, m| log.note(format!("mail:{m}")));
        bench.start("others", 12, move |ctx, log| {
            log.note(format!("post:{}", ctx.fetch(exchange, FOREVER).expect("it comes")));
            ctx.wait_semaphore(semaphore, FOREVER).expect("it comes");
            log.note("semaphore");
            ctx.wait_events(events, Bits::All(2), true, FOREVER).expect("it comes");
            log.note("events");
            ctx.delay(micros(2_000)).expect("nobody kills it");
            log.note("buffer");
            ctx.stop();
        });
        let isp = bench.isp(move |ctx, _| {
            drop(ctx.buffer(&pool).expect("it is free"));
            ctx.trigger(triggered).expect("it is idle");
            ctx.wake(waiter).expect("it waits");
            ctx.signal(waiter, 4).expect("it is in a run");
            ctx.send(mailbox, urgency(0), 5).expect("there is room");
            ctx.post(exchange, urgency(0), 6).expect("there is room");
            ctx.signal_semaphore(semaphore).expect("below its limit");
            ctx.signal_events(events, 3).expect("it exists");
            ctx.clear_events(events, 1).expect("it exists");
            ctx.start_timer(timer, ctx.now() + Nanos::new(500_000)).expect("it exists");
        });
        bench.start("low", 20, move |ctx, _| {
            isp.post().expect("the ring is empty");
            ctx.preempt_point();
        });
    });
}

#[test]
fn timer_and_interrupt_procedures_resume_a_suspended_task() {
    check("suspends by_isp:Ok(()) resumed again by_timer:Err(NotSuspended) by_timer:Ok(()) resumed = Asked", |bench| {
        let me = bench.start("self", 10, |ctx, log| {
            log.note("suspends");
            ctx.suspend(ctx.id()).expect("it runs");
            log.note("resumed");
            log.note("again");
            ctx.trigger(nth(1)).expect("it is idle");
            ctx.wait(FOREVER).expect("the timer wakes it");
            ctx.suspend(ctx.id()).expect("it runs");
            log.note("resumed");
            ctx.stop();
        });
        let log = bench.log.clone();
        let timer = bench.executive.timer("timer", move |ctx, _| {
            log.tell("by_timer", ctx.resume(me));
            // Refused the first time, while the task waits; then the task suspends itself.
            let _ = ctx.wake(me);
        });
        let timer = timer.expect("few objects");
        bench.task("starter", 20, move |ctx, _| {
            let now = ctx.now();
            ctx.start_periodic(timer, now + Nanos::from_millis(1), Nanos::from_millis(200)).expect("it exists");
        });
        let isp = bench.isp(move |ctx, log| log.tell("by_isp", ctx.resume(me)));
        bench.start("low", 30, move |ctx, _| {
            isp.post().expect("the ring is empty");
            ctx.preempt_point();
        });
    });
}

#[test]
fn posts_of_another_thread_wake_a_sleeping_executive_and_none_is_lost_or_doubled() {
    const POSTS: u64 = 20_000;
    for backend in all().into_iter().filter(|backend| backend.name() != "sim") {
        let _alone = alone();
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let arrived = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&arrived);
        let isp = bench.executive.attach("software", InterruptSource::Software, move |ctx, arrival| {
            assert_eq!(arrival.count, 1);
            if count.fetch_add(1, Ordering::Relaxed) + 1 == POSTS {
                ctx.stop();
            }
        });
        let isp = isp.expect("software needs nothing");
        let poster = std::thread::spawn(move || {
            let mut refused = 0_u64;
            for _ in 0..POSTS {
                // One that was lost is posted again.
                while isp.post().is_err() {
                    refused += 1;
                    std::thread::yield_now();
                }
            }
            refused
        });
        let finish = bench.executive.run(LIMIT);
        let refused = poster.join().expect("it does not panic");
        assert_eq!((finish.stopped, arrived.load(Ordering::Relaxed)), (StopReason::Asked, POSTS));
        assert_eq!(finish.interrupts_lost, refused);
    }
}

#[test]
fn a_full_ring_loses_the_newest_and_counts_each_even_between_two_runs() {
    for backend in sim_and_fiber() {
        let name = backend.name();
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let arrived = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&arrived);
        let procedure = move |_: &hairspring_exec::IspCtx<'_>, _| {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let isp =
            bench.executive.attach("software", InterruptSource::Software, procedure).expect("software needs nothing");
        bench.start("stops", 20, |ctx, _| {
            ctx.preempt_point();
            ctx.stop();
        });
        let refused = (0..300).filter(|_| isp.post().is_err()).count() as u64;
        let finish = bench.executive.run(LIMIT);
        assert_eq!(finish.interrupts_lost, refused, "on {name}");
        assert_eq!(arrived.load(Ordering::Relaxed) + refused, 300, "on {name}");
        assert!(refused > 0 && !finish.clean());
        // Reported once.
        assert_eq!(bench.executive.run(RunLimit::For(micros(100))).interrupts_lost, 0, "on {name}");
    }
}

fn ns(instant: hairspring_exec::Instant) -> u64 {
    instant.as_monotonic().count().cast_unsigned()
}

#[test]
fn a_software_interrupt_in_virtual_time_carries_the_virtual_moment() {
    // Symptom: the moment of a post was read from this computer's clock, and no two runs of a simulation were alike.
    let mut bench = Bench::new(sim(), &ExecConfig::default());
    let at = Arc::new(AtomicU64::new(u64::MAX));
    let seen = Arc::clone(&at);
    let procedure = move |ctx: &hairspring_exec::IspCtx<'_>, arrival: hairspring_exec::Arrival| {
        assert!(arrival.at <= ctx.now());
        seen.store(ns(arrival.at), Ordering::Relaxed);
    };
    let isp = bench.executive.attach("software", InterruptSource::Software, procedure).expect("software needs nothing");
    bench.start("posts", 20, move |ctx, log| {
        let before = ctx.now();
        isp.post().expect("the ring is empty");
        ctx.preempt_point();
        log.note(ns(before));
    });
    bench.executive.run(LIMIT);
    let before: u64 = bench.log.text().parse().expect("a number");
    let at = at.load(Ordering::Relaxed);
    assert!((before..before + 1_000_000).contains(&at), "{at} is not soon after {before}");
}

#[test]
fn an_interrupt_of_virtual_time_preempts_work_at_its_very_moment() {
    let mut bench = Bench::new(sim(), &ExecConfig::default());
    let zero = bench.executive.now();
    let isp = bench.isp(move |ctx, log| {
        log.note(format!("isp@{}", (ctx.now() - zero).count() / 1_000));
        ctx.wake(nth(0)).expect("it waits, or will");
    });
    bench.start("high", 10, move |ctx, log| {
        for _ in 0..3 {
            ctx.wait(FOREVER).expect("it comes");
            log.note(format!("high@{}", (ctx.now() - zero).count() / 1_000));
        }
    });
    bench.start("low", 20, move |ctx, log| {
        ctx.work(Nanos::from_micros(1_000));
        log.note("low");
    });
    for at_us in [300, 100, 700] {
        assert!(bench.executive.interrupt_at(&isp, zero + Nanos::new(at_us * 1_000)));
    }
    bench.run();
    assert_eq!(bench.log.text(), "isp@100 high@100 isp@300 high@300 isp@700 high@700 low = Finished");
    let mut fiber = Bench::new(hairspring_exec::Backend::fiber(), &ExecConfig::default());
    let isp = fiber.isp(|_, _| {});
    assert!(!fiber.executive.interrupt_at(&isp, zero), "time that is real cannot be scripted");
}

/// Attaches a source on every back-end, makes it fire, and compares the count that arrives in all.
#[track_caller]
fn check_source(raw: bool, expected: u64, make: impl Fn() -> (InterruptSource, Box<dyn FnMut() + Send>)) {
    for backend in all() {
        let name = backend.name();
        if name == "sim" {
            // A descriptor lives in real time.
            continue;
        }
        let _alone = alone();
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let (source, fire) = make();
        let got = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&got);
        if raw {
            // A raw procedure makes no calls; a task looks.
            let procedure = move |arrival: hairspring_exec::Arrival| {
                count.fetch_add(arrival.count, Ordering::SeqCst);
            };
            bench.executive.attach_raw("raw", source, procedure).expect("a thread");
        } else {
            let procedure = move |ctx: &hairspring_exec::IspCtx<'_>, arrival: hairspring_exec::Arrival| {
                if count.fetch_add(arrival.count, Ordering::SeqCst) + arrival.count >= expected {
                    ctx.stop();
                }
            };
            bench.executive.attach("conforming", source, procedure).expect("a thread");
        }
        let seen = Arc::clone(&got);
        bench.start("looks", 20, move |ctx, _| {
            while raw && seen.load(Ordering::SeqCst) < expected {
                ctx.delay(micros(200)).expect("nobody kills it");
            }
            if raw {
                ctx.stop();
            }
        });
        let firing = std::thread::spawn(fire);
        let finish = bench.executive.run(LIMIT);
        firing.join().expect("it does not panic");
        assert_eq!((finish.stopped, got.load(Ordering::SeqCst)), (StopReason::Asked, expected), "on {name}");
    }
}

/// An eventfd that is written with 3, 4 and 5.
fn eventfd() -> (InterruptSource, Box<dyn FnMut() + Send>) {
    let counter = crate::interrupts_descriptors::eventfd();
    let mut writer = File::from(counter.try_clone().expect("a descriptor"));
    let fire = move || {
        for count in [3_u64, 4, 5] {
            writer.write_all(&count.to_ne_bytes()).expect("the counter is far from full");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    (InterruptSource::Counter(counter), Box::new(fire))
}

#[test]
fn an_eventfd_arrives_with_its_count_in_both_kinds_of_procedure() {
    check_source(false, 12, eventfd);
    check_source(true, 12, eventfd);
}

#[test]
fn a_timerfd_arrives_with_the_number_of_its_expirations() {
    for backend in all().into_iter().filter(|backend| backend.name() != "sim") {
        let name = backend.name();
        let _alone = alone();
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let (begun, counted) = (std::time::Instant::now(), Arc::new(AtomicU64::new(0)));
        let count = Arc::clone(&counted);
        let source = InterruptSource::Counter(crate::interrupts_descriptors::timerfd(1_000_000));
        let procedure = move |ctx: &hairspring_exec::IspCtx<'_>, arrival: hairspring_exec::Arrival| {
            if count.fetch_add(arrival.count, Ordering::Relaxed) + arrival.count >= 20 {
                ctx.stop();
            }
        };
        bench.executive.attach("timerfd", source, procedure).expect("a thread");
        let finish = bench.executive.run(LIMIT);
        let expirations = u128::from(counted.load(Ordering::Relaxed));
        assert_eq!(finish.stopped, StopReason::Asked, "on {name}");
        // Never more than time has passed.
        assert!((20..=begun.elapsed().as_millis()).contains(&expirations), "{expirations} on {name}");
    }
}

#[test]
fn a_pipe_arrives_once_for_each_read_and_its_data_are_dropped() {
    let pipe = || {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let fire = move || writer.write_all(b"x").expect("a reader");
        (InterruptSource::Readable(OwnedFd::from(reader)), Box::new(fire) as Box<dyn FnMut() + Send>)
    };
    check_source(false, 1, pipe);
    check_source(true, 1, pipe);
}

#[test]
fn a_panic_in_a_procedure_ends_the_run_and_goes_on_where_it_was_asked_for() {
    crate::backends::hush();
    for backend in sim_and_fiber() {
        let name = backend.name();
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let isp = bench.isp(|_, _| panic_on_purpose());
        let task = bench.start("task", 20, move |ctx, log| {
            let _dropped = log.on_drop("dropped");
            isp.post().expect("the ring is empty");
            ctx.preempt_point();
            ctx.wait(Limit::For(micros(100))).expect_err("nobody wakes it");
            log.note("not_reached");
        });
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bench.executive.run(LIMIT)));
        assert!(ended.is_err_and(|payload| payload.downcast_ref::<&str>() == Some(&"on purpose")), "on {name}");
        assert_eq!(bench.log.text(), "dropped", "on {name}");
        // The task whose stack it ran on is whole.
        assert_eq!(bench.executive.trigger(task), Ok(()), "on {name}");
    }
}

#[test]
fn an_executive_with_sources_can_be_dropped_without_ever_having_run() {
    for backend in all() {
        let mut executive = Executive::new(backend, &ExecConfig::default()).expect("an executive");
        let (source, _fire) = eventfd();
        executive.attach("never", source, |_, _| {}).expect("a thread");
    }
}
