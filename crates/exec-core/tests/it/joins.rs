//! Waiting for the end of another task's run, and breaking off another task's wait.

use hairspring_exec_core::{By, Call, CallStatus, Ending, ResourceProtocol, TaskState, Until};

use crate::bench::{Bench, at, priority};

const FOREVER: Until = Until::Forever;

#[test]
fn a_join_waits_for_the_end_of_the_present_run_and_is_told_how_it_ended() {
    for (how, number) in [(Ending::Returned, 0), (Ending::Killed, 1), (Ending::Panicked, 2)] {
        let mut bench = Bench::new();
        let (worker, waiter) = (bench.started(20), bench.started(10));
        bench.task(waiter, Call::Join { task: worker, until: FOREVER }, CallStatus::Blocked);
        bench.runs(worker);
        bench.apply(By::Task(worker), Call::End { how });
        bench.runs(waiter);
        bench.came_out(waiter, CallStatus::Ok, number);
    }
}

#[test]
fn a_join_of_a_task_without_a_run_returns_at_once_and_one_of_oneself_is_refused() {
    let mut bench = Bench::new();
    let (idle, me) = (bench.idle(20), bench.started(10));
    assert_eq!(bench.task(me, Call::Join { task: idle, until: FOREVER }, CallStatus::Ok), 0);
    bench.task(me, Call::Join { task: me, until: FOREVER }, CallStatus::Deadlock);
    let dead = bench.started(20);
    bench.apply(By::Task(dead), Call::End { how: Ending::Panicked });
    assert_eq!(bench.task(me, Call::Join { task: dead, until: FOREVER }, CallStatus::Ok), 2);
}

#[test]
fn all_that_wait_for_one_end_go_on_in_their_order_and_those_of_another_wait_on() {
    let mut bench = Bench::new();
    let (worker, other) = (bench.started(30), bench.started(31));
    let waiters = [20, 20, 10].map(|number| bench.started(number));
    let apart = bench.started(5);
    bench.task(apart, Call::Join { task: other, until: FOREVER }, CallStatus::Blocked);
    for waiter in [waiters[2], waiters[0], waiters[1]] {
        bench.task(waiter, Call::Join { task: worker, until: FOREVER }, CallStatus::Blocked);
    }
    bench.task(worker, Call::End { how: Ending::Returned }, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [waiters[2], waiters[0], waiters[1], other]);
    assert_eq!(bench.look(apart).map(|look| look.state), Some(TaskState::Waiting));
}

#[test]
fn a_run_with_another_start_pending_ends_for_those_that_wait_for_it() {
    let mut bench = Bench::new();
    let (worker, waiter) = (bench.started(20), bench.started(10));
    bench.outside(Call::Trigger { task: worker }, CallStatus::Ok);
    bench.task(waiter, Call::Join { task: worker, until: FOREVER }, CallStatus::Blocked);
    bench.task(worker, Call::End { how: Ending::Returned }, CallStatus::Ok);
    bench.runs(waiter);
    assert_eq!(bench.look(worker).map(|look| look.state), Some(TaskState::Ready));
}

#[test]
fn a_join_can_time_out_and_then_the_end_is_nobody_s_business() {
    let mut bench = Bench::new();
    let (worker, waiter) = (bench.started(20), bench.started(10));
    bench.task(waiter, Call::Join { task: worker, until: Until::NoWait }, CallStatus::TimedOut);
    bench.task(waiter, Call::Join { task: worker, until: at(5) }, CallStatus::Blocked);
    bench.tick(5);
    bench.came_out(waiter, CallStatus::TimedOut, 0);
    bench.task(waiter, Call::Delay { until: at(9) }, CallStatus::Blocked);
    bench.task(worker, Call::End { how: Ending::Returned }, CallStatus::Ok);
    assert_eq!(bench.look(waiter).map(|look| look.state), Some(TaskState::Waiting));
}

#[test]
fn a_cancel_ends_every_kind_of_wait_and_tells_whether_there_was_one() {
    let mut bench = Bench::new();
    let (task, owner) = (bench.started(10), bench.started(20));
    let (semaphore, resource) = (bench.semaphore_of(0, 1), bench.resource_of(ResourceProtocol::Inherit));
    assert_eq!(bench.outside(Call::Cancel { task }, CallStatus::Ok), 0);
    bench.task(task, Call::Suspend { task }, CallStatus::Ok);
    bench.task(owner, Call::Reserve { resource, until: FOREVER, at: None }, CallStatus::Ok);
    bench.outside(Call::Resume { task }, CallStatus::Ok);
    for call in [
        Call::Wait { until: FOREVER },
        Call::Delay { until: at(1_000) },
        Call::WaitSemaphore { semaphore, until: at(1_000), at: Some(priority(3)) },
        Call::Receive { urgency: None, until: FOREVER },
        Call::Reserve { resource, until: FOREVER, at: None },
        Call::Join { task: owner, until: FOREVER },
    ] {
        bench.task(task, call, CallStatus::Blocked);
        assert_eq!(bench.outside(Call::Cancel { task }, CallStatus::Ok), 1, "{call:?}");
        bench.runs(task);
        bench.came_out(task, CallStatus::Cancelled, 0);
        assert_eq!(bench.wait_deadline(task), None, "{call:?}");
        // The owner no longer runs at the waiter's priority.
        assert_eq!(bench.look(owner).map(|look| look.effective), Some(priority(20)), "{call:?}");
    }
}

#[test]
fn a_cancelled_wait_of_a_suspended_task_is_over_and_the_task_stays_suspended() {
    let mut bench = Bench::new();
    let task = bench.started(10);
    bench.waits(task);
    bench.outside(Call::Suspend { task }, CallStatus::Ok);
    assert_eq!(bench.outside(Call::Cancel { task }, CallStatus::Ok), 1);
    assert_eq!(bench.first(), None);
    bench.outside(Call::Resume { task }, CallStatus::Ok);
    bench.came_out(task, CallStatus::Cancelled, 0);
}

#[test]
fn a_task_without_a_run_has_no_wait_to_break_off() {
    let mut bench = Bench::new();
    let (idle, dead) = (bench.idle(10), bench.started(10));
    bench.outside(Call::Cancel { task: idle }, CallStatus::NotStarted);
    bench.apply(By::Task(dead), Call::End { how: Ending::Panicked });
    bench.outside(Call::Cancel { task: dead }, CallStatus::Dead);
}
