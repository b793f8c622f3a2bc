//! Suspend and resume: the right to run is taken; waits, outcomes and mail go on underneath.

use hairspring_exec_core::{Call, CallStatus, TaskState, Until};

use crate::bench::{Bench, at, urgency};

#[test]
fn a_suspended_task_does_not_run_until_it_is_resumed_and_then_stands_behind_its_equals() {
    let mut bench = Bench::new();
    let (task, other) = (bench.started(20), bench.started(20));
    bench.outside(Call::Suspend { task }, CallStatus::Ok);
    assert_eq!((bench.ready_tasks(), bench.may_run(task)), (vec![other], false));
    bench.outside(Call::Suspend { task }, CallStatus::AlreadySuspended);
    bench.outside(Call::Resume { task }, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [other, task]);
    bench.outside(Call::Resume { task }, CallStatus::NotSuspended);
}

#[test]
fn the_wait_of_a_suspended_task_goes_on_and_its_end_does_not_let_it_run() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.waits(task);
    bench.outside(Call::Suspend { task }, CallStatus::Ok);
    bench.outside(Call::Wake { task }, CallStatus::Ok);
    bench.runs(None);
    assert_eq!(bench.look(task).map(|look| (look.state, look.suspended)), Some((TaskState::Ready, true)));
    bench.outside(Call::Resume { task }, CallStatus::Ok);
    bench.runs(task);
    bench.came_out(task, CallStatus::Ok, 0);
}

#[test]
fn resuming_a_task_that_waits_lets_its_wait_go_on() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.task(task, Call::Wait { until: at(10) }, CallStatus::Blocked);
    bench.outside(Call::Suspend { task }, CallStatus::Ok);
    bench.outside(Call::Resume { task }, CallStatus::Ok);
    bench.runs(None);
    bench.tick(10);
    bench.runs(task);
    bench.came_out(task, CallStatus::TimedOut, 0);
}

/// Symptom: a task suspended between the end of its wait and its next step came out of the wait with "as asked". Cause:
/// suspending set the outcome. Here the outcome has a status and a value that must survive.
#[test]
fn what_a_wait_came_out_as_survives_a_suspension_before_the_task_sees_it() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.task(task, Call::Wait { until: at(10) }, CallStatus::Blocked);
    bench.tick(10);
    bench.outside(Call::Suspend { task }, CallStatus::Ok);
    bench.outside(Call::Resume { task }, CallStatus::Ok);
    bench.came_out(task, CallStatus::TimedOut, 0);
}

/// The same for a run that was started with a message: the envelope's number was lost.
#[test]
fn the_message_a_run_was_started_with_survives_a_suspension_before_the_task_sees_it() {
    let mut bench = Bench::new();
    let (other, task) = (bench.idle(30), bench.idle(20));
    bench.outside(Call::Send { task: other, urgency: urgency(0) }, CallStatus::Ok);
    let envelope = bench.outside(Call::Send { task, urgency: urgency(0) }, CallStatus::Ok);
    assert_ne!(envelope, 0);
    bench.outside(Call::Suspend { task }, CallStatus::Ok);
    bench.outside(Call::Resume { task }, CallStatus::Ok);
    bench.came_out(task, CallStatus::Ok, envelope);
    assert_eq!(bench.in_hand(task), Some(envelope));
}

#[test]
fn a_task_may_suspend_itself_and_goes_on_as_asked() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.task(task, Call::Suspend { task }, CallStatus::Ok);
    bench.runs(None);
    bench.outside(Call::Resume { task }, CallStatus::Ok);
    bench.runs(task);
    bench.came_out(task, CallStatus::Ok, 0);
}

#[test]
fn a_task_that_lost_the_right_to_run_in_the_middle_of_its_code_cannot_begin_a_wait() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.outside(Call::Suspend { task }, CallStatus::Ok);
    bench.task(task, Call::Wait { until: Until::Forever }, CallStatus::AlreadySuspended);
    bench.outside(Call::Resume { task }, CallStatus::Ok);
    bench.waits(task);
}

#[test]
fn a_suspension_ends_with_the_run() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    bench.outside(Call::Suspend { task }, CallStatus::Ok);
    bench.ends(task);
    bench.runs(task);
    bench.outside(Call::Resume { task }, CallStatus::NotSuspended);
}

/// Symptom: a task that was killed and then suspended never unwound. Cause: only the kill lifted a suspension, nothing
/// kept one from coming after it.
#[test]
fn a_killed_task_is_resumed_and_cannot_be_suspended_again() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.outside(Call::Suspend { task }, CallStatus::Ok);
    bench.outside(Call::Kill { task }, CallStatus::Ok);
    bench.runs(task);
    bench.outside(Call::Suspend { task }, CallStatus::Killed);
    bench.runs(task);
}

#[test]
fn mail_and_triggers_reach_a_suspended_task() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.task(task, Call::Receive { urgency: None, until: Until::Forever }, CallStatus::Blocked);
    bench.outside(Call::Suspend { task }, CallStatus::Ok);
    let envelope = bench.outside(Call::Send { task, urgency: urgency(2) }, CallStatus::Ok);
    bench.runs(None);
    bench.outside(Call::Resume { task }, CallStatus::Ok);
    bench.came_out(task, CallStatus::Ok, envelope);
}
