//! Wait and wake, delays, time-outs, and the race between the two.

use hairspring_exec_core::{
    Bits, Call, CallStatus, EventsId, ExchangeId, Moment, ResourceId, SemaphoreId, TaskId, TaskState, TimerId, Until,
};

use crate::bench::{Bench, at, priority, urgency};

#[test]
fn a_wake_ends_a_wait_and_leaves_nothing_behind() {
    let mut bench = Bench::new();
    let (low, high) = (bench.started(20), bench.started(10));
    bench.waits(high);
    bench.runs(low);
    bench.task(low, Call::Wake { task: high }, CallStatus::Ok);
    bench.runs(high);
    bench.came_out(high, CallStatus::Ok, 0);
    assert_eq!(bench.look(high).map(|look| look.latch), Some(false));
    bench.waits(high);
}

#[test]
fn a_wake_before_the_wait_is_kept_one_deep_and_the_wait_then_returns_at_once() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.outside(Call::Wake { task }, CallStatus::WakePending);
    bench.outside(Call::Wake { task }, CallStatus::WakeAlreadyPending);
    bench.task(task, Call::Wait { until: Until::Forever }, CallStatus::Ok);
    bench.waits(task);
}

#[test]
fn a_kept_wake_satisfies_a_wait_that_may_not_wait() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.task(task, Call::Wait { until: Until::NoWait }, CallStatus::TimedOut);
    bench.outside(Call::Wake { task }, CallStatus::WakePending);
    bench.task(task, Call::Wait { until: Until::NoWait }, CallStatus::Ok);
    bench.task(task, Call::Wait { until: Until::NoWait }, CallStatus::TimedOut);
}

#[test]
fn wake_reset_forgets_a_kept_wake_and_says_whether_there_was_one() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    assert_eq!(bench.task(task, Call::WakeReset, CallStatus::Ok), 0);
    bench.outside(Call::Wake { task }, CallStatus::WakePending);
    assert_eq!(bench.task(task, Call::WakeReset, CallStatus::Ok), 1);
    bench.waits(task);
}

#[test]
fn a_wake_does_not_end_another_kind_of_wait_but_is_kept() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.task(task, Call::Delay { until: at(10) }, CallStatus::Blocked);
    bench.outside(Call::Wake { task }, CallStatus::WakePending);
    assert_eq!(bench.look(task).map(|look| look.state), Some(TaskState::Waiting));
    bench.tick(10);
    bench.task(task, Call::Wait { until: Until::Forever }, CallStatus::Ok);
}

#[test]
fn a_delay_ends_at_its_moment_and_not_a_nanosecond_before() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.task(task, Call::Delay { until: at(1_000) }, CallStatus::Blocked);
    assert_eq!(bench.next_deadline(), Some(Moment::from_nanos(1_000)));
    bench.tick(999);
    bench.runs(None);
    bench.tick(1_000);
    bench.runs(task);
    bench.came_out(task, CallStatus::Ok, 0);
    assert!(!bench.has_deadlines());
}

#[test]
fn a_delay_that_may_not_wait_is_over_and_one_for_ever_is_not() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.task(task, Call::Delay { until: Until::NoWait }, CallStatus::Ok);
    bench.task(task, Call::Delay { until: Until::Forever }, CallStatus::Blocked);
    bench.tick(u64::MAX);
    bench.runs(None);
}

#[test]
fn a_wait_until_a_moment_that_has_passed_ends_with_the_next_tick() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.tick(500);
    bench.task(task, Call::Wait { until: at(400) }, CallStatus::Blocked);
    assert_eq!(bench.next_deadline(), Some(Moment::from_nanos(400)));
    bench.tick(500);
    bench.came_out(task, CallStatus::TimedOut, 0);
    bench.runs(task);
}

#[test]
fn of_a_wake_and_a_time_out_at_the_same_moment_the_first_to_come_wins_and_the_wake_is_never_lost() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.task(task, Call::Wait { until: at(10) }, CallStatus::Blocked);
    bench.outside(Call::Wake { task }, CallStatus::Ok);
    bench.tick(10);
    bench.came_out(task, CallStatus::Ok, 0);

    bench.task(task, Call::Wait { until: at(20) }, CallStatus::Blocked);
    bench.tick(20);
    bench.outside(Call::Wake { task }, CallStatus::WakePending);
    bench.came_out(task, CallStatus::TimedOut, 0);
    bench.task(task, Call::Wait { until: Until::Forever }, CallStatus::Ok);
}

#[test]
fn of_a_unit_and_a_time_out_at_the_same_moment_the_first_to_come_wins_and_the_unit_is_never_lost() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    let semaphore = bench.semaphore_of(0, 1);
    let wait = |moment_ns| Call::WaitSemaphore { semaphore, until: at(moment_ns), at: None };
    bench.task(task, wait(10), CallStatus::Blocked);
    bench.outside(Call::SignalSemaphore { semaphore }, CallStatus::Ok);
    bench.tick(10);
    bench.came_out(task, CallStatus::Ok, 0);
    assert_eq!(bench.semaphore(semaphore), Some((0, None)));

    bench.task(task, wait(20), CallStatus::Blocked);
    bench.tick(20);
    bench.outside(Call::SignalSemaphore { semaphore }, CallStatus::Ok);
    bench.came_out(task, CallStatus::TimedOut, 0);
    assert_eq!(bench.semaphore(semaphore), Some((1, None)));
}

#[test]
fn waits_that_end_at_the_same_moment_end_in_the_order_in_which_they_began() {
    let mut bench = Bench::new();
    let tasks = [20, 20, 20].map(|number| bench.started(number));
    for task in [tasks[2], tasks[0], tasks[1]] {
        bench.task(task, Call::Delay { until: at(10) }, CallStatus::Blocked);
    }
    bench.tick(1_000_000);
    assert_eq!(bench.ready_tasks(), [tasks[2], tasks[0], tasks[1]]);
}

#[test]
fn a_tick_before_an_earlier_one_counts_as_that_one() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.tick(100);
    bench.task(task, Call::Delay { until: at(120) }, CallStatus::Blocked);
    for earlier_ns in [50, 60, 119] {
        bench.tick(earlier_ns);
        bench.runs(None);
    }
    bench.tick(120);
    bench.runs(task);
}

#[test]
fn a_wait_that_ended_otherwise_has_no_time_out_later() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.task(task, Call::Wait { until: at(10) }, CallStatus::Blocked);
    bench.outside(Call::Wake { task }, CallStatus::Ok);
    assert!(!bench.has_deadlines());
    bench.waits(task);
    bench.tick(10);
    bench.runs(None);
}

#[test]
fn the_place_in_a_line_is_kept_when_another_leaves_it() {
    let mut bench = Bench::new();
    let semaphore = bench.semaphore_of(0, 9);
    let tasks = [20, 21, 22].map(|number| bench.started(number));
    for (task, until) in tasks.into_iter().zip([Until::Forever, at(10), Until::Forever]) {
        bench.task(task, Call::WaitSemaphore { semaphore, until, at: Some(priority(5)) }, CallStatus::Blocked);
    }
    bench.tick(10);
    bench.runs(tasks[1]);
    bench.outside(Call::SignalSemaphore { semaphore }, CallStatus::Ok);
    bench.runs(tasks[0]);
    assert_eq!(bench.semaphore(semaphore), Some((0, Some(tasks[2]))));
}

#[test]
fn a_call_tells_the_deadline_that_it_sets() {
    let moment = Moment::from_nanos(5);
    let all = |until| {
        [
            Call::Wait { until },
            Call::Delay { until },
            Call::WaitSignals { bits: Bits::Any(1), until },
            Call::SendWait { task: TaskId::from_number(0), urgency: urgency(0), until },
            Call::Receive { urgency: None, until },
            Call::Fetch { exchange: ExchangeId::from_number(0), until, at: None },
            Call::WaitSemaphore { semaphore: SemaphoreId::from_number(0), until, at: None },
            Call::Reserve { resource: ResourceId::from_number(0), until, at: None },
            Call::WaitEvents { events: EventsId::from_number(0), bits: Bits::Any(1), take: false, until, at: None },
        ]
    };
    for (until, deadline) in [(Until::At(moment), Some(moment)), (Until::Forever, None), (Until::NoWait, None)] {
        for call in all(until) {
            assert_eq!(call.deadline(), deadline, "{call:?}");
        }
    }
    let timer = TimerId::from_number(0);
    assert_eq!(Call::StartTimer { timer, at: moment, period_ns: 0 }.deadline(), Some(moment));
    assert_eq!(Call::StopTimer { timer }.deadline(), None);
}
