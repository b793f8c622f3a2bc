//! Resources: ownership, nesting, hand-over, inheritance, ceilings and deadlocks.

use hairspring_exec_core::{Call, CallStatus, Ending, ResourceProtocol, TaskState, Until};

use crate::bench::{Bench, at, priority};

const ALL: [ResourceProtocol; 3] =
    [ResourceProtocol::None, ResourceProtocol::Inherit, ResourceProtocol::Ceiling(priority_5())];

const fn priority_5() -> hairspring_exec_core::Priority {
    match hairspring_exec_core::Priority::new(5) {
        Some(priority) => priority,
        None => hairspring_exec_core::Priority::HIGHEST,
    }
}

#[test]
fn a_resource_nests_and_is_free_after_as_many_releases() {
    for protocol in ALL {
        let mut bench = Bench::new();
        let (task, resource) = (bench.started(20), bench.resource_of(protocol));
        for depth in 1..=3 {
            bench.reserves(task, resource, CallStatus::Ok);
            assert_eq!(bench.resource(resource), Some((Some(task), depth)));
        }
        for _ in 0..3 {
            bench.releases(task, resource);
        }
        assert_eq!(bench.resource(resource), Some((None, 0)));
        bench.task(task, Call::Release { resource }, CallStatus::NotOwner);
    }
}

#[test]
fn a_released_resource_goes_straight_to_the_first_waiter_and_the_releaser_cannot_take_it_back() {
    let mut bench = Bench::new();
    let (low, high, resource) = (bench.started(20), bench.started(10), bench.resource_of(ResourceProtocol::None));
    bench.waits(high);
    bench.reserves(low, resource, CallStatus::Ok);
    bench.task(low, Call::Wake { task: high }, CallStatus::Ok);
    bench.task(high, Call::Release { resource }, CallStatus::NotOwner);
    bench.reserves(high, resource, CallStatus::Blocked);
    bench.releases(low, resource);
    assert_eq!(bench.resource(resource), Some((Some(high), 1)));
    bench.runs(high);
    bench.came_out(high, CallStatus::Ok, 0);
    bench.task(low, Call::Reserve { resource, until: Until::NoWait, at: None }, CallStatus::TimedOut);
}

#[test]
fn without_a_protocol_the_owner_keeps_its_own_priority() {
    let mut bench = Bench::new();
    let (low, high, resource) = (bench.started(30), bench.started(10), bench.resource_of(ResourceProtocol::None));
    bench.reserves(low, resource, CallStatus::Ok);
    bench.reserves(high, resource, CallStatus::Blocked);
    bench.runs_at(low, 30);
}

#[test]
fn the_owner_inherits_the_priority_of_its_most_urgent_waiter_and_loses_it_with_the_release() {
    let mut bench = Bench::new();
    let resource = bench.resource_of(ResourceProtocol::Inherit);
    let (low, middle, high) = (bench.started(30), bench.idle(20), bench.started(10));
    bench.reserves(low, resource, CallStatus::Ok);
    bench.reserves(high, resource, CallStatus::Blocked);
    bench.runs_at(low, 10);
    bench.outside(Call::Trigger { task: middle }, CallStatus::Ok);
    bench.runs(low);
    bench.releases(low, resource);
    bench.runs_at(low, 30);
    assert_eq!(bench.ready_tasks(), [high, middle, low]);
}

#[test]
fn inheritance_goes_along_a_chain_and_back() {
    let mut bench = Bench::new();
    let [r0, r1] = [0, 0].map(|_| bench.resource_of(ResourceProtocol::Inherit));
    let (low, middle, high) = (bench.started(30), bench.started(20), bench.started(10));
    bench.reserves(low, r0, CallStatus::Ok);
    bench.reserves(middle, r1, CallStatus::Ok);
    bench.reserves(middle, r0, CallStatus::Blocked);
    bench.runs_at(low, 20);
    bench.task(high, Call::Reserve { resource: r1, until: at(10), at: None }, CallStatus::Blocked);
    bench.runs_at(middle, 10);
    bench.runs_at(low, 10);
    bench.tick(10);
    bench.came_out(high, CallStatus::TimedOut, 0);
    bench.runs_at(middle, 20);
    bench.runs_at(low, 20);
    bench.outside(Call::Kill { task: middle }, CallStatus::Ok);
    bench.runs_at(low, 30);
}

#[test]
fn a_chain_stops_inheriting_at_a_resource_without_inheritance() {
    let mut bench = Bench::new();
    let (plain, inherit) = (bench.resource_of(ResourceProtocol::None), bench.resource_of(ResourceProtocol::Inherit));
    let (low, middle, high) = (bench.started(30), bench.started(20), bench.started(10));
    bench.reserves(low, plain, CallStatus::Ok);
    bench.reserves(middle, inherit, CallStatus::Ok);
    bench.reserves(middle, plain, CallStatus::Blocked);
    bench.reserves(high, inherit, CallStatus::Blocked);
    bench.runs_at(middle, 10);
    bench.runs_at(low, 30);
}

#[test]
fn an_owner_of_two_keeps_what_it_inherits_by_the_other() {
    let mut bench = Bench::new();
    let [r0, r1] = [0, 0].map(|_| bench.resource_of(ResourceProtocol::Inherit));
    let (owner, a, b) = (bench.started(30), bench.started(20), bench.started(10));
    for (waiter, resource) in [(a, r0), (b, r1)] {
        bench.reserves(owner, resource, CallStatus::Ok);
        bench.reserves(waiter, resource, CallStatus::Blocked);
    }
    assert_eq!(bench.owned_by(owner), [r1, r0]);
    bench.releases(owner, r1);
    bench.runs_at(owner, 20);
    bench.releases(owner, r0);
    bench.runs_at(owner, 30);
}

#[test]
fn an_heir_inherits_from_those_that_still_wait() {
    let mut bench = Bench::new();
    let resource = bench.resource_of(ResourceProtocol::Inherit);
    let (owner, slow, fast) = (bench.started(30), bench.started(20), bench.started(10));
    bench.reserves(owner, resource, CallStatus::Ok);
    bench.task(slow, Call::Reserve { resource, until: Until::Forever, at: Some(priority(0)) }, CallStatus::Blocked);
    bench.reserves(fast, resource, CallStatus::Blocked);
    bench.releases(owner, resource);
    assert_eq!(bench.resource(resource), Some((Some(slow), 1)));
    bench.runs_at(slow, 10);
    bench.runs_at(owner, 30);
}

#[test]
fn a_task_that_becomes_less_urgent_by_a_release_stands_before_its_equals() {
    let mut bench = Bench::new();
    let resource = bench.resource_of(ResourceProtocol::Ceiling(priority(10)));
    let (task, equal) = (bench.started(20), bench.started(20));
    bench.reserves(task, resource, CallStatus::Ok);
    bench.releases(task, resource);
    assert_eq!(bench.ready_tasks(), [task, equal]);
}

#[test]
fn the_owner_of_a_ceiling_runs_at_it_at_once() {
    let mut bench = Bench::new();
    let resource = bench.resource_of(ResourceProtocol::Ceiling(priority(10)));
    let (task, middle) = (bench.started(20), bench.idle(15));
    bench.reserves(task, resource, CallStatus::Ok);
    bench.runs_at(task, 10);
    bench.outside(Call::Trigger { task: middle }, CallStatus::Ok);
    bench.runs(task);
    bench.releases(task, resource);
    bench.runs_at(task, 20);
    bench.runs(middle);
}

#[test]
fn a_ceiling_below_the_own_priority_refuses_and_one_at_it_does_not() {
    let mut bench = Bench::new();
    let resource = bench.resource_of(ResourceProtocol::Ceiling(priority(10)));
    let (above, same) = (bench.started(9), bench.started(10));
    bench.reserves(above, resource, CallStatus::AboveCeiling);
    bench.waits(above);
    bench.reserves(same, resource, CallStatus::Ok);
    bench.outside(Call::SetPriority { task: same, priority: priority(9) }, CallStatus::AboveCeiling);
    bench.runs_at(same, 10);
    bench.outside(Call::SetPriority { task: same, priority: priority(40) }, CallStatus::Ok);
    bench.runs_at(same, 10);
    bench.releases(same, resource);
    bench.runs_at(same, 40);
}

/// Symptom: a task more urgent than the ceiling came to own the resource. Cause: a new priority was checked against the
/// ceilings of owned resources, not against that of a resource for which the task waits.
#[test]
fn a_task_in_line_for_a_ceiling_cannot_be_raised_above_it() {
    let mut bench = Bench::new();
    let resource = bench.resource_of(ResourceProtocol::Ceiling(priority(10)));
    let (owner, waiter) = (bench.started(30), bench.started(20));
    bench.waits(waiter);
    bench.reserves(owner, resource, CallStatus::Ok);
    bench.outside(Call::Suspend { task: owner }, CallStatus::Ok);
    bench.outside(Call::Wake { task: waiter }, CallStatus::Ok);
    bench.reserves(waiter, resource, CallStatus::Blocked);
    bench.outside(Call::SetPriority { task: waiter, priority: priority(9) }, CallStatus::AboveCeiling);
    bench.outside(Call::SetPriority { task: waiter, priority: priority(10) }, CallStatus::Ok);
}

#[test]
fn a_wait_that_would_never_end_is_refused_however_long_the_circle() {
    for length in 2_usize..=6 {
        let mut bench = Bench::new();
        let resources: Vec<_> = ALL.into_iter().cycle().take(length).map(|p| bench.resource_of(p)).collect();
        let tasks: Vec<_> = (0..length).map(|_| bench.started(20)).collect();
        for (&task, &resource) in tasks.iter().zip(&resources) {
            bench.reserves(task, resource, CallStatus::Ok);
        }
        for index in 1..length {
            bench.reserves(tasks[index], resources[index - 1], CallStatus::Blocked);
        }
        bench.reserves(tasks[0], resources[length - 1], CallStatus::Deadlock);
        let until = at(10);
        bench.task(tasks[0], Call::Reserve { resource: resources[length - 1], until, at: None }, CallStatus::Deadlock);
        assert_eq!(bench.look(tasks[0]).map(|look| look.state), Some(TaskState::Ready));
        bench.releases(tasks[0], resources[0]);
        assert_eq!(bench.resource(resources[0]), Some((Some(tasks[1]), 1)));
    }
}

#[test]
fn what_a_task_owns_at_its_end_is_handed_on_and_told() {
    for how in [Ending::Returned, Ending::Killed, Ending::Panicked] {
        let mut bench = Bench::new();
        let [r0, r1] = [0, 0].map(|_| bench.resource_of(ResourceProtocol::Inherit));
        let (owner, waiter) = (bench.started(30), bench.started(10));
        for resource in [r0, r1, r1] {
            bench.reserves(owner, resource, CallStatus::Ok);
        }
        bench.reserves(waiter, r0, CallStatus::Blocked);
        bench.task(owner, Call::End { how }, CallStatus::ResourceHeld);
        assert_eq!((bench.resource(r0), bench.resource(r1)), (Some((Some(waiter), 1)), Some((None, 0))));
        bench.runs_at(owner, 30);
        bench.runs(waiter);
    }
}

#[test]
fn the_next_run_of_a_task_that_ended_owning_begins_at_its_own_priority() {
    let mut bench = Bench::new();
    let resource = bench.resource_of(ResourceProtocol::Ceiling(priority(1)));
    let (task, other) = (bench.started(30), bench.started(20));
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    bench.reserves(task, resource, CallStatus::Ok);
    bench.task(task, Call::End { how: Ending::Returned }, CallStatus::ResourceHeld);
    assert_eq!(bench.ready_tasks(), [other, task]);
}

#[test]
fn the_line_goes_by_the_given_priority_and_else_by_the_own() {
    let mut bench = Bench::new();
    let resource = bench.resource_of(ResourceProtocol::None);
    let owner = bench.started(60);
    bench.reserves(owner, resource, CallStatus::Ok);
    let given = [None, Some(3), None, Some(20), Some(3)];
    let tasks = given.map(|_| bench.started(20));
    for (task, given) in tasks.into_iter().zip(given) {
        let at = given.map(priority);
        bench.task(task, Call::Reserve { resource, until: Until::Forever, at }, CallStatus::Blocked);
    }
    let line = bench.line(hairspring_exec_core::Waiting::Resource(0));
    assert_eq!(line, [tasks[1], tasks[4], tasks[0], tasks[2], tasks[3]]);
}

#[test]
fn set_priority_moves_a_task_in_line_by_its_own_priority_and_not_one_by_a_given() {
    let mut bench = Bench::new();
    let semaphore = bench.semaphore_of(0, 9);
    let [own, given, other] = [20, 20, 20].map(|number| bench.started(number));
    for (task, at) in [(other, None), (own, None), (given, Some(priority(20)))] {
        bench.task(task, Call::WaitSemaphore { semaphore, until: Until::Forever, at }, CallStatus::Blocked);
    }
    for task in [given, own] {
        bench.outside(Call::SetPriority { task, priority: priority(5) }, CallStatus::Ok);
    }
    let line = |bench: &Bench| bench.line(hairspring_exec_core::Waiting::Semaphore(0));
    assert_eq!(line(&bench), [own, other, given]);
    bench.outside(Call::SetPriority { task: own, priority: priority(40) }, CallStatus::Ok);
    assert_eq!(line(&bench), [other, given, own]);
}

#[test]
fn an_inherited_priority_moves_its_heir_in_the_line_it_stands_in() {
    let mut bench = Bench::new();
    let (plain, inherit) = (bench.resource_of(ResourceProtocol::None), bench.resource_of(ResourceProtocol::Inherit));
    let (owner, a, b, high) = (bench.started(40), bench.started(30), bench.started(30), bench.started(10));
    bench.reserves(owner, plain, CallStatus::Ok);
    bench.reserves(b, inherit, CallStatus::Ok);
    bench.reserves(a, plain, CallStatus::Blocked);
    bench.reserves(b, plain, CallStatus::Blocked);
    bench.reserves(high, inherit, CallStatus::Blocked);
    bench.releases(owner, plain);
    assert_eq!(bench.resource(plain), Some((Some(b), 1)));
}

#[test]
fn a_killed_task_reserves_nothing_and_may_still_release() {
    let mut bench = Bench::new();
    let (task, resource, other) =
        (bench.started(20), bench.resource_of(ResourceProtocol::None), bench.resource_of(ResourceProtocol::None));
    bench.reserves(task, resource, CallStatus::Ok);
    bench.outside(Call::Kill { task }, CallStatus::Ok);
    bench.reserves(task, other, CallStatus::Killed);
    bench.releases(task, resource);
    bench.ends(task);
}

#[test]
fn a_resource_that_does_not_exist_is_refused() {
    let mut bench = Bench::new();
    let (task, resource) = (bench.started(20), hairspring_exec_core::ResourceId::from_number(3));
    bench.reserves(task, resource, CallStatus::NoSuchObject);
    bench.task(task, Call::Release { resource }, CallStatus::NoSuchObject);
    assert_eq!(bench.resource(resource), None);
}
