//! Interrupt service procedures: software and descriptors, raw and conforming.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use super::*;
use crate::calls::{Limit, Services};
use crate::engine::InterruptProcedure;
use crate::interrupt::{InterruptSource, Isp};
use crate::report::StopReason;

const FIRINGS: u64 = 200;

/// A task that counts its wakes and stops the executive when it has all.
fn counting(threads: &Threads) -> (TaskId, Count) {
    let woken = Count::default();
    let mine = woken.clone();
    let task = start(threads, "served", 10, move |ctx| {
        loop {
            ctx.wait(Limit::Forever).expect("a wake");
            if mine.add() == FIRINGS {
                ctx.stop();
            }
        }
    });
    (task, woken)
}

fn waking(threads: &Threads, source: &InterruptSource, task: TaskId) -> Isp {
    let body = conforming(move |ctx, _| {
        let _ = ctx.wake(task);
    });
    threads.attach("fired", source, body).expect("a thread")
}

#[test]
fn posts_from_outside_wake_a_task_one_by_one() {
    both(|threads| {
        let (task, woken) = counting(&threads);
        let isp = waking(&threads, &InterruptSource::Software, task);
        let seen = woken.clone();
        let post = std::thread::spawn(move || {
            for turn in 0..FIRINGS {
                isp.post().expect("room");
                let begun = std::time::Instant::now();
                while seen.get() <= turn && begun.elapsed().as_secs() < 5 {
                    std::thread::yield_now();
                }
            }
        });
        let finish = threads.run(LIMIT);
        post.join().expect("no panic");
        assert_eq!((woken.get(), finish.stopped), (FIRINGS, StopReason::Asked));
        clean(&threads, &finish);
    });
}

#[test]
fn a_descriptor_wakes_a_task() {
    both(|threads| {
        let (task, woken) = counting(&threads);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        waking(&threads, &InterruptSource::Readable(OwnedFd::from(reader)), task);
        let seen = woken.clone();
        let mut writer = File::from(OwnedFd::from(writer));
        let post = std::thread::spawn(move || {
            for turn in 0..FIRINGS {
                writer.write_all(&[1]).expect("it is read");
                let begun = std::time::Instant::now();
                while seen.get() <= turn && begun.elapsed().as_secs() < 5 {
                    std::thread::yield_now();
                }
            }
            writer
        });
        let finish = threads.run(LIMIT);
        // Kept until here: the run would report the end of the pipe.
        let _writer = post.join().expect("no panic");
        assert_eq!((woken.get(), finish.stopped), (FIRINGS, StopReason::Asked));
        clean(&threads, &finish);
    });
}

#[test]
fn an_eventfd_tells_its_count() {
    let counter = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("a descriptor");
    let mut writer = File::from(counter.try_clone().expect("a descriptor"));
    let threads = up();
    let sum = Count::default();
    let mine = sum.clone();
    let raw = move |arrival: crate::interrupt::Arrival| mine.set(mine.get() + arrival.count);
    threads
        .attach("raw", &InterruptSource::Counter(counter), InterruptProcedure::Raw(Box::new(raw)))
        .expect("a thread");
    // Raw procedures run whatever the executive is doing: here it does not even run.
    writer.write_all(&5_u64.to_ne_bytes()).expect("an eventfd takes eight bytes");
    let begun = std::time::Instant::now();
    while sum.get() < 5 && begun.elapsed().as_secs() < 5 {
        std::thread::yield_now();
    }
    assert_eq!(sum.get(), 5);
}

#[test]
fn between_runs_a_conforming_procedure_waits_and_what_finds_the_ring_full_is_counted() {
    let threads = up();
    let served = Count::default();
    let mine = served.clone();
    let body = conforming(move |_, _| {
        mine.add();
    });
    let isp = threads.attach("flood", &InterruptSource::Software, body).expect("a thread");
    isp.post().expect("room");
    // Time enough for its thread to start and take the arrival.
    std::thread::sleep(std::time::Duration::from_millis(20));
    let mut lost = 0;
    for _ in 0..999 {
        lost += u64::from(isp.post().is_err());
    }
    assert_eq!(served.get(), 0, "no call is made between runs");
    assert!(lost >= 1_000 - crate::interrupt::RING_SLOTS as u64 - 1, "{lost}");
    let finish = threads.run(RunLimit::For(Nanos::from_millis(200)));
    assert_eq!((finish.interrupts_lost, served.get()), (lost, 1_000 - lost));
    assert_eq!(threads.run(RunLimit::For(Nanos::from_millis(1))).interrupts_lost, 0, "told once");
}

#[test]
fn a_procedure_may_end_the_run() {
    let threads = up();
    let body = conforming(|ctx, _| ctx.stop());
    let isp = threads.attach("stop", &InterruptSource::Software, body).expect("a thread");
    start(&threads, "waits", 10, |ctx| assert!(ctx.wait(Limit::Forever).is_err()));
    isp.post().expect("room");
    let finish = threads.run(LIMIT);
    assert_eq!(finish.stopped, StopReason::Asked);
    assert_eq!(threads.shared.lock.hold().core.observer.busy, 0);
}
