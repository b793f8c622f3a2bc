//! Tasks: starting, ending, killing, deleting, priorities, and the order in which they run.

use hairspring_exec_core::{By, Call, CallStatus, Ending, NO_ENVELOPE, TaskState, Until};

use crate::bench::{Bench, at, priority, urgency};

#[test]
fn the_most_urgent_ready_task_runs_and_equals_run_in_the_order_in_which_they_were_readied() {
    let mut bench = Bench::new();
    let (a, b, high) = (bench.idle(20), bench.idle(20), bench.idle(10));
    bench.runs(None);
    for task in [b, a] {
        bench.outside(Call::Trigger { task }, CallStatus::Ok);
        bench.runs(b);
    }
    bench.task(b, Call::Trigger { task: high }, CallStatus::Ok);
    bench.runs(high);
    bench.ends(high);
    bench.runs(b);
    bench.ends(b);
    bench.runs(a);
    bench.ends(a);
    bench.runs(None);
}

#[test]
fn a_preempted_task_goes_on_before_its_equals() {
    let mut bench = Bench::new();
    let (first, second, high) = (bench.started(20), bench.started(20), bench.started(10));
    bench.waits(high);
    bench.runs(first);
    bench.task(first, Call::Wake { task: high }, CallStatus::Ok);
    bench.runs(high);
    bench.waits(high);
    bench.runs(first);
    assert_eq!(bench.ready_tasks(), [first, second]);
}

#[test]
fn what_becomes_of_ready_tasks_that_do_not_run_does_not_touch_the_one_that_does() {
    // The running task floats: it stands in no list. Each of the others leaves the list, and comes back, while it does.
    let mut bench = Bench::new();
    let (first, equal, low) = (bench.started(20), bench.started(20), bench.started(30));
    for other in [equal, low] {
        bench.task(first, Call::Suspend { task: other }, CallStatus::Ok);
        bench.runs(first);
        bench.task(first, Call::Resume { task: other }, CallStatus::Ok);
        bench.runs(first);
    }
    assert_eq!(bench.ready_tasks(), [first, equal, low]);
    bench.task(first, Call::SetPriority { task: low, priority: priority(10) }, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [low, first, equal]);
    bench.task(low, Call::SetPriority { task: low, priority: priority(20) }, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [first, equal, low]);
}

#[test]
fn yield_lets_equals_run_first_and_nobody_else() {
    let mut bench = Bench::new();
    let (a, b, low) = (bench.started(20), bench.started(20), bench.started(30));
    bench.task(a, Call::Yield, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [b, a, low]);
    bench.task(b, Call::Yield, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [a, b, low]);
}

#[test]
fn triggers_of_a_task_that_is_not_idle_are_counted_and_each_makes_a_run() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.came_out(task, CallStatus::Ok, NO_ENVELOPE);
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    bench.waits(task);
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    assert_eq!(bench.look(task).map(|look| (look.state, look.starts)), Some((TaskState::Waiting, 2)));
    bench.outside(Call::Wake { task }, CallStatus::Ok);
    for left in [1, 0] {
        bench.ends(task);
        bench.runs(task);
        assert_eq!(bench.look(task).map(|look| look.starts), Some(left));
    }
    bench.ends(task);
    bench.runs(None);
}

#[test]
fn a_run_that_begins_at_once_stands_behind_its_equals() {
    let mut bench = Bench::new();
    let (again, other) = (bench.started(20), bench.started(20));
    bench.outside(Call::Trigger { task: again }, CallStatus::Ok);
    bench.ends(again);
    assert_eq!(bench.ready_tasks(), [other, again]);
}

#[test]
fn one_start_more_than_can_be_counted_is_told_and_lost() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    for _ in 0..hairspring_exec_core::MOST_STARTS {
        assert_eq!(bench.apply(By::Outside, Call::Trigger { task }).status, CallStatus::Ok);
    }
    bench.outside(Call::Trigger { task }, CallStatus::TriggerOverflow);
    assert_eq!(bench.look(task).map(|look| look.starts), Some(hairspring_exec_core::MOST_STARTS));
}

#[test]
fn a_new_run_knows_nothing_of_the_wakes_and_signals_of_the_last() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    bench.outside(Call::Wake { task }, CallStatus::WakePending);
    bench.outside(Call::Signal { task, bits: 5 }, CallStatus::Ok);
    bench.ends(task);
    assert_eq!(bench.look(task).map(|look| (look.latch, look.signals)), Some((false, 0)));
    bench.waits(task);
}

#[test]
fn a_killed_task_is_readied_out_of_every_kind_of_wait_and_told() {
    let waits: [fn(&mut Bench) -> Call; 9] = [
        |_| Call::Wait { until: Until::Forever },
        |_| Call::Delay { until: at(50) },
        |_| Call::WaitSignals { bits: hairspring_exec_core::Bits::Any(1), until: Until::Forever },
        |bench| Call::SendWait { task: bench.idle(30), urgency: urgency(0), until: at(50) },
        |_| Call::Receive { urgency: None, until: Until::Forever },
        |bench| Call::Fetch { exchange: bench.exchange_of([1; 4]), until: at(50), at: None },
        |bench| Call::WaitSemaphore { semaphore: bench.semaphore_of(0, 1), until: at(50), at: Some(priority(3)) },
        |bench| {
            let resource = bench.resource_of(hairspring_exec_core::ResourceProtocol::Inherit);
            let owner = bench.started(40);
            bench.reserves(owner, resource, CallStatus::Ok);
            Call::Reserve { resource, until: at(50), at: None }
        },
        |bench| Call::WaitEvents {
            events: bench.events_of(0),
            bits: hairspring_exec_core::Bits::All(3),
            take: true,
            until: Until::Forever,
            at: None,
        },
    ];
    for wait in waits {
        let mut bench = Bench::new();
        let call = wait(&mut bench);
        let task = bench.started(20);
        bench.task(task, call, CallStatus::Blocked);
        bench.outside(Call::Suspend { task }, CallStatus::Ok);
        bench.outside(Call::Kill { task }, CallStatus::Ok);
        bench.runs(task);
        bench.came_out(task, CallStatus::Killed, 0);
        assert!(bench.is_killed(task) && bench.wait_deadline(task).is_none(), "{call:?}");
        bench.task(task, call, CallStatus::Killed);
        bench.ends(task);
        assert_eq!(bench.look(task).map(|look| (look.state, look.killed)), Some((TaskState::Idle, false)));
        bench.tick(100);
        assert_eq!(bench.look(task).map(|look| look.state), Some(TaskState::Idle), "no time-out comes later: {call:?}");
    }
}

#[test]
fn a_killed_task_unwinds_before_its_next_run_and_its_pending_starts_are_gone() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    bench.outside(Call::Send { task, urgency: urgency(1) }, CallStatus::Ok);
    bench.outside(Call::Kill { task }, CallStatus::Ok);
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    bench.runs(task);
    bench.task(task, Call::End { how: Ending::Returned }, CallStatus::Ok);
    bench.runs(None);
    assert_eq!(bench.free_envelopes(), 4);
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    assert!(!bench.is_killed(task), "it can be started again");
}

#[test]
fn killing_an_idle_task_changes_nothing_and_killing_oneself_is_told_at_once() {
    let mut bench = Bench::new();
    let (idle, task) = (bench.idle(20), bench.started(20));
    bench.outside(Call::Kill { task: idle }, CallStatus::Ok);
    assert_eq!(bench.look(idle).map(|look| (look.state, look.killed)), Some((TaskState::Idle, false)));
    bench.task(task, Call::Kill { task }, CallStatus::Killed);
    bench.runs(task);
    bench.task(task, Call::Wait { until: Until::Forever }, CallStatus::Killed);
}

#[test]
fn a_wake_kept_for_a_killed_task_does_not_save_its_wait() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.outside(Call::Wake { task }, CallStatus::WakePending);
    bench.outside(Call::Kill { task }, CallStatus::Ok);
    bench.task(task, Call::Wait { until: Until::Forever }, CallStatus::Killed);
}

#[test]
fn a_task_that_panicked_is_dead_for_everything_but_deleting() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    bench.task(task, Call::End { how: Ending::Panicked }, CallStatus::Ok);
    assert_eq!(bench.look(task).map(|look| (look.state, look.starts)), Some((TaskState::Dead, 0)));
    let send = Call::Send { task, urgency: urgency(0) };
    let calls = [Call::Trigger { task }, Call::Wake { task }, Call::Signal { task, bits: 1 }, send];
    for call in calls.into_iter().chain([Call::Suspend { task }, Call::Resume { task }, Call::Kill { task }]) {
        bench.outside(call, CallStatus::Dead);
    }
    bench.outside(Call::DeleteTask { task }, CallStatus::Ok);
}

#[test]
fn what_needs_a_task_in_the_middle_of_a_run_refuses_an_idle_one() {
    let mut bench = Bench::new();
    let task = bench.idle(20);
    for call in [Call::Wake { task }, Call::Signal { task, bits: 1 }, Call::Suspend { task }, Call::Resume { task }] {
        bench.outside(call, CallStatus::NotStarted);
    }
}

#[test]
fn only_a_task_between_runs_can_be_deleted() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.outside(Call::DeleteTask { task }, CallStatus::Running);
    bench.waits(task);
    bench.outside(Call::DeleteTask { task }, CallStatus::Running);
    bench.outside(Call::Wake { task }, CallStatus::Ok);
    bench.ends(task);
    bench.outside(Call::DeleteTask { task }, CallStatus::Ok);
    assert!(bench.tasks().is_empty());
}

#[test]
fn set_priority_moves_a_ready_task_to_the_end_of_its_new_equals_up_or_down() {
    let mut bench = Bench::new();
    let (a, b, c) = (bench.started(10), bench.started(20), bench.started(30));
    bench.outside(Call::SetPriority { task: c, priority: priority(20) }, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [a, b, c]);
    bench.task(a, Call::SetPriority { task: a, priority: priority(20) }, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [b, c, a]);
    bench.task(b, Call::SetPriority { task: b, priority: priority(20) }, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [b, c, a], "no change, no move");
}

#[test]
fn set_priority_of_an_idle_task_holds_for_its_next_run() {
    let mut bench = Bench::new();
    let (task, other) = (bench.idle(30), bench.started(20));
    bench.outside(Call::SetPriority { task, priority: priority(10) }, CallStatus::Ok);
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [task, other]);
}
