//! Event groups and task signals.

use hairspring_exec_core::{Bits, Call, CallStatus, EventsId, Until};

use crate::bench::{Bench, at, priority};

#[test]
fn any_and_all_are_satisfied_by_what_they_say() {
    for (wish, set, satisfied) in [
        (Bits::Any(0b110), 0b010, Some(0b010)),
        (Bits::Any(0b110), 0b111, Some(0b110)),
        (Bits::Any(0b110), 0b001, None),
        (Bits::All(0b110), 0b111, Some(0b110)),
        (Bits::All(0b110), 0b011, None),
    ] {
        assert_eq!(wish.satisfied_by(set), satisfied, "{wish:?} by {set:b}");
    }
}

#[test]
fn bits_stay_set_unless_they_are_taken_and_each_waiter_sees_what_the_ones_before_it_left() {
    let mut bench = Bench::new();
    let events = bench.events_of(0);
    let tasks = [20, 20, 20, 20].map(|number| bench.started(number));
    let takes = [false, true, true, false];
    for (task, take) in tasks.into_iter().zip(takes) {
        let call = Call::WaitEvents { events, bits: Bits::Any(1), take, until: Until::Forever, at: None };
        bench.task(task, call, CallStatus::Blocked);
    }
    bench.outside(Call::SignalEvents { events, bits: 3 }, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [tasks[0], tasks[1]]);
    bench.came_out(tasks[1], CallStatus::Ok, 1);
    assert_eq!(bench.event_bits(events), Some(2));
}

#[test]
fn the_line_of_an_event_group_goes_by_the_given_priority() {
    let mut bench = Bench::new();
    let events = bench.events_of(0);
    let (a, b) = (bench.started(20), bench.started(20));
    for (task, at) in [(a, Some(priority(9))), (b, Some(priority(8)))] {
        let call = Call::WaitEvents { events, bits: Bits::All(1), take: true, until: Until::Forever, at };
        bench.task(task, call, CallStatus::Blocked);
    }
    bench.outside(Call::SignalEvents { events, bits: 1 }, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [b]);
}

#[test]
fn one_signal_satisfies_waiters_of_many_priorities_in_the_order_of_the_line() {
    let mut bench = Bench::new();
    let events = bench.events_of(0);
    let tasks = [63, 0, 31, 32].map(|number| bench.started(number));
    for task in tasks {
        let call = Call::WaitEvents { events, bits: Bits::Any(1), take: false, until: Until::Forever, at: None };
        bench.task(task, call, CallStatus::Blocked);
    }
    bench.outside(Call::SignalEvents { events, bits: 1 }, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [tasks[1], tasks[2], tasks[3], tasks[0]]);
}

#[test]
fn bits_that_are_there_satisfy_at_once_and_cleared_ones_do_not() {
    let mut bench = Bench::new();
    let (task, events) = (bench.started(20), bench.events_of(0b11));
    let wait = |take| Call::WaitEvents { events, bits: Bits::Any(0b111), take, until: Until::NoWait, at: None };
    assert_eq!(bench.task(task, wait(false), CallStatus::Ok), 0b11);
    bench.outside(Call::ClearEvents { events, bits: 0b01 }, CallStatus::Ok);
    assert_eq!(bench.task(task, wait(true), CallStatus::Ok), 0b10);
    bench.task(task, wait(true), CallStatus::TimedOut);
}

#[test]
fn an_empty_wish_is_refused() {
    let mut bench = Bench::new();
    let (task, events) = (bench.started(20), bench.events_of(u32::MAX));
    for bits in [Bits::Any(0), Bits::All(0)] {
        let call = Call::WaitEvents { events, bits, take: false, until: Until::Forever, at: None };
        bench.task(task, call, CallStatus::NoBits);
        bench.task(task, Call::WaitSignals { bits, until: Until::Forever }, CallStatus::NoBits);
    }
}

#[test]
fn signals_add_up_until_they_satisfy_and_only_those_are_taken() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    let wait = Call::WaitSignals { bits: Bits::All(0b011), until: at(10) };
    bench.task(task, wait, CallStatus::Blocked);
    bench.outside(Call::Signal { task, bits: 0b101 }, CallStatus::Ok);
    bench.runs(None);
    bench.outside(Call::Signal { task, bits: 0b010 }, CallStatus::Ok);
    bench.came_out(task, CallStatus::Ok, 0b011);
    assert_eq!(bench.look(task).map(|look| look.signals), Some(0b100));
    assert_eq!(
        bench.task(task, Call::WaitSignals { bits: Bits::Any(0b110), until: Until::NoWait }, CallStatus::Ok),
        0b100
    );
    assert_eq!(bench.look(task).map(|look| look.signals), Some(0));
    bench.task(task, wait, CallStatus::Blocked);
    bench.tick(10);
    bench.came_out(task, CallStatus::TimedOut, 0);
}

#[test]
fn an_event_group_that_does_not_exist_is_refused() {
    let mut bench = Bench::new();
    let (task, events) = (bench.started(20), EventsId::from_number(1));
    bench.outside(Call::SignalEvents { events, bits: 1 }, CallStatus::NoSuchObject);
    bench.outside(Call::ClearEvents { events, bits: 1 }, CallStatus::NoSuchObject);
    let call = Call::WaitEvents { events, bits: Bits::Any(1), take: true, until: Until::Forever, at: None };
    bench.task(task, call, CallStatus::NoSuchObject);
    assert_eq!(bench.event_bits(events), None);
}
