//! The status that a running executive publishes for other processes.

use std::time::{Duration, Instant};

use hairspring_exec::status::{ExecStatus, PublishedStatus, StatusError, TaskStatus, published};
use hairspring_exec::{Backend, Create, ExecConfig, ExecError, Executive, Inspect, Limit, Nanos, RunLimit, Services};

use crate::backends::{FOREVER, all, alone, micros, priority, sim};

/// A name that no other test uses.
fn name(of: &str) -> String {
    format!("{of}-{}", std::process::id())
}

/// Reads until a state is as it should be.
#[track_caller]
fn until(found: &PublishedStatus, fits: impl Fn(&ExecStatus) -> bool) -> ExecStatus {
    let begun = Instant::now();
    loop {
        let status = found.read().expect("it is published");
        if fits(&status) {
            return status;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "after a minute it is {status:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn task<'s>(status: &'s ExecStatus, name: &str) -> &'s TaskStatus {
    status.tasks.iter().find(|task| task.name == name).expect("it is there")
}

#[test]
fn a_reader_sees_what_the_tasks_do_and_what_they_used() {
    for backend in all().into_iter().filter(|backend| backend.name() != "sim") {
        let _alone = alone();
        let (shown, named) = (backend.name(), name("seen"));
        let mut executive = Executive::new(backend, &ExecConfig::default()).expect("it can be made");
        let line = executive.semaphore(0, 1).expect("few objects");
        let waits = executive.task("waits", priority(5), move |ctx| {
            let _ = ctx.wait_semaphore(line, FOREVER);
        });
        let busy = executive.task("busy", priority(20), move |ctx| {
            // Uses a quarter of the CPU; touches a good part of its stack.
            let deep = std::hint::black_box([1_u8; 6_000]);
            while ctx.delay(Nanos::from_millis(3)).is_ok() {
                ctx.work(micros(1_000));
            }
            std::hint::black_box(deep);
        });
        let starved = executive.task("never", priority(60), |_| {});
        // Threads leave the CPU to other tests in between; on fibers the carrier is an ordinary thread.
        let fibers = shown == "fiber";
        let spins = executive.task("spins", priority(50), move |ctx| {
            loop {
                ctx.work(micros(if fibers { 10 } else { 2_000 }));
                if !fibers {
                    ctx.delay(micros(1_000)).expect("nobody breaks it off");
                }
            }
        });
        let tasks = [waits, busy, spins, starved].map(|task| task.expect("few objects"));
        for task in tasks {
            executive.trigger(task).expect("it is idle");
        }
        executive.publish(&named).expect("the name fits");
        assert!(executive.publish("no spaces").is_err());
        executive.publish(&named).expect("a second call replaces the first");
        let stopper = executive.stopper();
        let found = PublishedStatus::find(&named).expect("it is published");
        let watcher = std::thread::spawn(move || {
            let seen = until(&found, |status| {
                status.running
                    && status.tasks.len() == 4
                    && task(status, "busy").cpu > Nanos::from_millis(50)
                    // The one that never waits used more, once there are samples enough.
                    && task(status, "spins").cpu > task(status, "busy").cpu
                    && (!fibers || task(status, "never").starved > Nanos::from_millis(100))
                    && task(status, "busy").stack.is_some()
            });
            stopper.stop();
            (seen, found)
        });
        let finish = executive.run(RunLimit::For(Nanos::from_secs(100)));
        assert!(finish.floods == 0 && finish.stopped == hairspring_exec::StopReason::Asked, "{finish:?}");
        let (seen, found) = watcher.join().expect("it saw what it waited for");

        assert_eq!((seen.backend.as_str(), seen.pid), (shown, std::process::id()));
        let waits = task(&seen, "waits");
        assert_eq!((waits.state.as_str(), waits.waits_for.as_str(), waits.priority), ("waiting", "semaphore 0", 5));
        let busy = task(&seen, "busy");
        assert!(
            (!fibers || task(&seen, "never").state == "ready") && (busy.wait_ends.is_some() || busy.state == "ready"),
            "{seen:?}"
        );
        let stack = busy.stack.expect("it was waited for");
        assert!(stack.used_bytes >= 6_000 && stack.used_bytes <= stack.bytes, "{stack:?}");
        let own = executive.stack_use(tasks[1]).expect("it has run");
        assert!(own.used_bytes >= 6_000 && own.used_bytes <= own.bytes, "{own:?}");

        let over = until(&found, |status| !status.running);
        assert_eq!(over.tasks.len(), 4, "its tasks stay for another run");
        drop(executive);
        assert!(matches!(found.read(), Err(StatusError::NotPublished(_))));
        assert!(published().expect("the folder is there").iter().all(|one| one.name != named));
    }
}

#[test]
fn a_carrier_that_sleeps_answers_too() {
    let named = name("sleeps");
    let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default()).expect("it can be made");
    let sleeper = executive.task("sleeper", priority(10), |ctx| {
        let _ = ctx.wait(Limit::For(Nanos::from_secs(100)));
    });
    executive.trigger(sleeper.expect("few objects")).expect("it is idle");
    executive.publish(&named).expect("the name fits");
    let (found, stopper) = (PublishedStatus::find(&named).expect("it is published"), executive.stopper());
    let watcher = std::thread::spawn(move || {
        let seen = until(&found, |status| {
            status.idle.is_some_and(|samples| samples.idle > 20 && samples.idle > samples.taken / 2)
        });
        stopper.stop();
        seen
    });
    executive.run(RunLimit::For(Nanos::from_secs(200)));
    let seen = watcher.join().expect("it saw what it waited for");
    assert!(task(&seen, "sleeper").state == "waiting" && task(&seen, "sleeper").cpu < Nanos::from_secs(1), "{seen:?}");
}

#[test]
fn many_tasks_are_copied_in_turns_and_none_is_left_out() {
    for backend in [Backend::fiber(), Backend::thread_smp()] {
        let _alone = alone();
        let named = name("many");
        let config = ExecConfig { stack_bytes: 16 * 1024, ..ExecConfig::default() };
        let mut executive = Executive::new(backend, &config).expect("it can be made");
        for number in 0..150 {
            executive.task(&format!("task-{number}"), priority(30), |_| {}).expect("few objects");
        }
        let ticks = executive.task("ticks", priority(10), |ctx| while ctx.delay(Nanos::from_millis(1)).is_ok() {});
        executive.trigger(ticks.expect("few objects")).expect("it is idle");
        executive.publish(&named).expect("the name fits");
        let (found, stopper) = (PublishedStatus::find(&named).expect("it is published"), executive.stopper());
        let watcher = std::thread::spawn(move || {
            let seen = until(&found, |status| status.tasks.len() == 151);
            stopper.stop();
            seen
        });
        executive.run(RunLimit::For(Nanos::from_secs(200)));
        let seen = watcher.join().expect("it saw what it waited for");
        let mut names: Vec<_> = seen.tasks.iter().map(|task| task.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 151, "each once");
    }
}

#[test]
fn what_cannot_be_published_is_told() {
    let mut virtual_time = Executive::new(sim(), &ExecConfig::default()).expect("it can be made");
    assert!(matches!(virtual_time.publish("sim"), Err(ExecError::ExecConfig(_))));
    let new = || Executive::new(Backend::fiber(), &ExecConfig::default()).expect("it can be made");
    let (mut one, mut other) = (new(), new());
    let named = name("twice");
    one.publish(&named).expect("the name fits");
    let error = other.publish(&named).expect_err("it is taken").to_string();
    assert!(error.contains("already"), "{error}");
    let error = PublishedStatus::find(&name("nobody")).expect_err("nobody publishes that").to_string();
    assert!(error.contains("Executive::publish"), "{error}");
    other.publish(&name("other")).expect("the name fits");
    let error = PublishedStatus::find(&std::process::id().to_string()).expect_err("there are two").to_string();
    assert!(error.contains(&named) && error.contains("name a process"), "{error}");
}
