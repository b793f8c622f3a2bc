//! Counting semaphores.

use hairspring_exec_core::{Call, CallStatus, SemaphoreId, Until};

use crate::bench::{Bench, priority};

#[test]
fn units_are_counted_up_to_the_limit_and_one_more_is_refused() {
    let mut bench = Bench::new();
    let semaphore = bench.semaphore_of(1, 2);
    bench.outside(Call::SignalSemaphore { semaphore }, CallStatus::Ok);
    bench.outside(Call::SignalSemaphore { semaphore }, CallStatus::Overflow);
    let task = bench.started(20);
    let take = Call::WaitSemaphore { semaphore, until: Until::NoWait, at: None };
    for status in [CallStatus::Ok, CallStatus::Ok, CallStatus::TimedOut] {
        bench.task(task, take, status);
    }
}

#[test]
fn a_semaphore_whose_limit_is_0_still_hands_a_unit_to_a_waiter() {
    let mut bench = Bench::new();
    let (task, semaphore) = (bench.started(20), bench.semaphore_of(0, 0));
    bench.outside(Call::SignalSemaphore { semaphore }, CallStatus::Overflow);
    bench.task(task, Call::WaitSemaphore { semaphore, until: Until::Forever, at: None }, CallStatus::Blocked);
    bench.outside(Call::SignalSemaphore { semaphore }, CallStatus::Ok);
    bench.runs(task);
}

#[test]
fn a_semaphore_that_begins_above_its_limit_is_refused() {
    Bench::new().outside(Call::CreateSemaphore { count: 2, limit: 1 }, CallStatus::Overflow);
}

#[test]
fn a_unit_goes_to_the_first_waiter_by_given_priority_and_not_through_the_count() {
    let mut bench = Bench::new();
    let (a, b, semaphore) = (bench.started(10), bench.started(20), bench.semaphore_of(0, 5));
    let wait = |at| Call::WaitSemaphore { semaphore, until: Until::Forever, at };
    bench.task(a, wait(Some(priority(50))), CallStatus::Blocked);
    bench.task(b, wait(None), CallStatus::Blocked);
    bench.outside(Call::SignalSemaphore { semaphore }, CallStatus::Ok);
    bench.runs(b);
    bench.came_out(b, CallStatus::Ok, 0);
    assert_eq!(bench.semaphore(semaphore), Some((0, Some(a))));
    bench.task(b, Call::WaitSemaphore { semaphore, until: Until::NoWait, at: None }, CallStatus::TimedOut);
}

#[test]
fn a_semaphore_that_does_not_exist_is_refused() {
    let mut bench = Bench::new();
    let (task, semaphore) = (bench.started(20), SemaphoreId::from_number(9));
    bench.outside(Call::SignalSemaphore { semaphore }, CallStatus::NoSuchObject);
    bench.task(task, Call::WaitSemaphore { semaphore, until: Until::Forever, at: None }, CallStatus::NoSuchObject);
    assert_eq!(bench.semaphore(semaphore), None);
}
