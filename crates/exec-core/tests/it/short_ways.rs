//! The short ways of calls, and the questions that back-ends ask between calls.
//!
//! A fast path returns whether it was taken. On false the back-end makes the whole call; on true it does not. So a
//! wrong true loses a call, and a false must have done nothing.

use hairspring_exec_core::{Bits, Call, CallStatus, Ending, Reply, TaskId, TaskState, TimerId, Until, Waiting};

use crate::bench::{Bench, ROOMY, at, urgency};

/// The id of a task that is gone, and of the task that has its slot now.
fn reborn(bench: &mut Bench) -> (TaskId, TaskId) {
    let stale = bench.idle(20);
    bench.outside(Call::DeleteTask { task: stale }, CallStatus::Ok);
    let task = bench.idle(20);
    assert_eq!((stale.index(), stale == task), (task.index(), false));
    (stale, task)
}

#[track_caller]
fn is(bench: &Bench, task: TaskId, state: TaskState, waiting: Waiting) {
    assert_eq!(bench.look(task).map(|look| (look.state, look.waiting)), Some((state, waiting)));
}

#[cfg(feature = "checks")]
#[test]
fn a_stale_id_takes_no_short_way() {
    let mut bench = Bench::new();
    let (stale, task) = reborn(&mut bench);
    assert!(!bench.trigger_simply(stale) && bench.send_simply(stale, urgency(0)).is_none());
    is(&bench, task, TaskState::Idle, Waiting::Nothing);
    assert!(bench.trigger_simply(task));
    assert!(!bench.wait_simply(stale) && !bench.end_simply(stale));
    let semaphore = bench.semaphore_of(1, 1);
    bench.outside(Call::Send { task, urgency: urgency(1) }, CallStatus::Ok);
    assert!(bench.leave_simply(stale, urgency(1)).is_none() && bench.hand_simply(stale, urgency(1)).is_none());
    assert!(bench.collect_simply(stale, None).is_none());
    assert!(!bench.take_unit_simply(stale, semaphore));
    let events = bench.events_of(1);
    assert!(bench.take_bits_simply(stale, events, Bits::Any(1), true).is_none());
    bench.task(task, Call::Receive { urgency: None, until: Until::NoWait }, CallStatus::Ok);
    assert!(!bench.take_simply(stale));
    assert!(bench.take_simply(task) && bench.take_unit_simply(task, semaphore));
    is(&bench, task, TaskState::Ready, Waiting::Nothing);
    assert!(bench.wait_simply(task) && !bench.wake_simply(stale));
    is(&bench, task, TaskState::Waiting, Waiting::Wake);
    assert!(bench.wake_simply(task) && bench.end_simply(task));
    is(&bench, task, TaskState::Idle, Waiting::Nothing);
}

#[cfg(feature = "checks")]
#[test]
fn a_task_that_does_not_run_neither_waits_nor_ends_by_the_short_way() {
    let mut bench = Bench::new();
    let (idle, waiting) = (bench.idle(20), bench.started(20));
    bench.waits(waiting);
    for task in [idle, waiting] {
        let before = bench.look(task);
        assert!(!bench.wait_simply(task) && !bench.end_simply(task));
        assert_eq!(bench.look(task).map(|look| look.state), before.map(|look| look.state));
    }
}

#[test]
fn a_wake_that_came_before_is_not_overslept_by_the_short_way() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.outside(Call::Wake { task }, CallStatus::WakePending);
    assert!(!bench.wait_simply(task));
    bench.task(task, Call::Wait { until: Until::Forever }, CallStatus::Ok);
    bench.runs(task);
}

#[test]
fn a_message_that_starts_a_task_is_in_its_hand_by_the_short_way_too() {
    let mut bench = Bench::new();
    let task = bench.idle(20);
    let envelope = bench.send_simply(task, urgency(1)).expect("it is idle and there is room");
    bench.came_out(task, CallStatus::Ok, u32::from(envelope));
    assert_eq!(bench.in_hand(task), Some(u32::from(envelope)));
    assert_eq!(bench.send_simply(task, urgency(1)), None, "it is not idle any more");
}

#[test]
fn a_letter_to_a_task_that_runs_lies_in_its_box_by_the_short_way_too() {
    let mut bench = Bench::new();
    let (task, waiting) = (bench.started(20), bench.started(30));
    let letters = [(); 2].map(|()| u32::from(bench.leave_simply(task, urgency(1)).expect("there is room")));
    assert_eq!(bench.letters(task, urgency(1)), letters);
    assert_eq!(bench.leave_simply(task, urgency(1)), None, "the box is full");
    let free = bench.free_envelopes();
    let first = bench.collect_simply(task, Some(urgency(1))).map(u32::from);
    assert_eq!((first, bench.letters(task, urgency(1)).as_slice()), (Some(letters[0]), &letters[1..]));
    assert_eq!((bench.in_hand(task), bench.free_envelopes()), (None, free + 1));
    bench.task(task, Call::Receive { urgency: None, until: Until::NoWait }, CallStatus::Ok);
    assert_eq!(bench.collect_simply(task, None), None, "one is in the hand already");
    assert!(bench.take_simply(task) && !bench.take_simply(task));
    assert_eq!(bench.in_hand(task), None);
    bench.task(waiting, Call::Receive { urgency: None, until: Until::Forever }, CallStatus::Blocked);
    assert_eq!(bench.leave_simply(waiting, urgency(1)), None, "it waits, and the letter would end the wait");
    assert_eq!(bench.hand_simply(task, urgency(1)), None, "it does not wait");
    let handed = bench.hand_simply(waiting, urgency(1)).map(u32::from);
    bench.came_out(waiting, CallStatus::Ok, handed.expect("it waits for any"));
    assert_eq!((bench.in_hand(waiting), bench.may_run(waiting)), (handed, true));
}

#[test]
fn a_sender_who_waits_for_the_message_before_is_not_forgotten_by_the_short_way() {
    let mut bench = Bench::new();
    let (task, sender) = (bench.started(20), bench.started(30));
    let sent = Call::SendWait { task, urgency: urgency(1), until: Until::Forever };
    bench.task(sender, sent, CallStatus::Blocked);
    bench.outside(Call::Send { task, urgency: urgency(1) }, CallStatus::Ok);
    // The task takes the message whose sender waits: no sender waited for the one before.
    assert!(bench.collect_simply(task, None).is_some());
    assert_eq!(bench.owed_by(task), Some(sender));
    assert!(bench.collect_simply(task, None).is_none(), "now somebody does");
    bench.task(task, Call::Receive { urgency: None, until: Until::NoWait }, CallStatus::Ok);
    assert!(!bench.take_simply(task));
    bench.task(task, Call::Take, CallStatus::Ok);
    bench.came_out(sender, CallStatus::Ok, 0);
}

#[test]
fn a_unit_is_given_by_the_short_way_only_if_nobody_waits_for_it() {
    let mut bench = Bench::new();
    let (task, semaphore) = (bench.started(20), bench.semaphore_of(1, 1));
    assert!(!bench.give_unit_simply(semaphore), "it is at its limit");
    assert!(bench.take_unit_simply(task, semaphore) && !bench.take_unit_simply(task, semaphore));
    assert!(bench.give_unit_simply(semaphore) && bench.take_unit_simply(task, semaphore));
    bench.task(task, Call::WaitSemaphore { semaphore, until: Until::Forever, at: None }, CallStatus::Blocked);
    assert!(!bench.give_unit_simply(semaphore));
    bench.outside(Call::SignalSemaphore { semaphore }, CallStatus::Ok);
    bench.runs(task);
    bench.outside(Call::DeleteSemaphore { semaphore }, CallStatus::Ok);
    assert!(!bench.give_unit_simply(semaphore) && !bench.take_unit_simply(task, semaphore));
}

#[test]
fn bits_are_set_by_the_short_way_only_if_nobody_waits_for_them() {
    let mut bench = Bench::new();
    let (task, events) = (bench.started(20), bench.events_of(0));
    assert_eq!(bench.take_bits_simply(task, events, Bits::All(0), true), None, "no bits are asked for");
    assert!(bench.set_bits_simply(events, 0b011) && bench.set_bits_simply(events, 0b100));
    assert_eq!(bench.take_bits_simply(task, events, Bits::All(0b1001), true), None);
    assert_eq!(bench.take_bits_simply(task, events, Bits::Any(0b1001), false), Some(0b001));
    assert_eq!(bench.take_bits_simply(task, events, Bits::All(0b011), true), Some(0b011));
    assert_eq!(bench.event_bits(events), Some(0b100));
    let wait = Call::WaitEvents { events, bits: Bits::Any(1), take: true, until: Until::Forever, at: None };
    bench.task(task, wait, CallStatus::Blocked);
    assert!(!bench.set_bits_simply(events, 1));
    bench.outside(Call::SignalEvents { events, bits: 1 }, CallStatus::Ok);
    bench.runs(task);
    bench.outside(Call::DeleteEvents { events }, CallStatus::Ok);
    assert!(!bench.set_bits_simply(events, 1));
    assert_eq!(bench.take_bits_simply(task, events, Bits::Any(0b100), false), None);
}

#[test]
fn while_a_task_is_killed_nothing_moves_by_the_short_way() {
    let mut bench = Bench::new();
    let (task, other, semaphore) = (bench.started(20), bench.started(30), bench.semaphore_of(1, 2));
    let events = bench.events_of(1);
    bench.outside(Call::Send { task, urgency: urgency(1) }, CallStatus::Ok);
    bench.outside(Call::Kill { task: other }, CallStatus::Ok);
    assert!(!bench.take_unit_simply(task, semaphore) && !bench.give_unit_simply(semaphore));
    assert!(bench.leave_simply(task, urgency(1)).is_none() && bench.collect_simply(task, None).is_none());
    assert!(!bench.set_bits_simply(events, 2) && bench.take_bits_simply(task, events, Bits::Any(1), true).is_none());
    bench.task(other, Call::End { how: Ending::Killed }, CallStatus::Ok);
    assert!(bench.take_unit_simply(task, semaphore) && bench.collect_simply(task, None).is_some());
}

#[test]
fn a_run_ends_by_the_short_way_once_its_mail_is_read() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    for urgency in [urgency(1), urgency(1), urgency(2)] {
        bench.outside(Call::Send { task, urgency }, CallStatus::Ok);
    }
    for _ in 0..3 {
        assert!(!bench.end_simply(task));
        bench.task(task, Call::Receive { urgency: None, until: Until::NoWait }, CallStatus::Ok);
        bench.task(task, Call::Take, CallStatus::Ok);
    }
    assert!(bench.end_simply(task));
    // And the box takes letters again, in order.
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    let letters = [1, 1].map(|number| bench.outside(Call::Send { task, urgency: urgency(number) }, CallStatus::Ok));
    assert_eq!(bench.letters(task, urgency(1)), letters);
}

#[test]
fn the_slot_of_the_task_to_run_is_that_of_the_first() {
    let mut bench = Bench::new();
    assert_eq!(bench.first_index(), None);
    let tasks = [30, 20, 10].map(|number| bench.started(number));
    for task in tasks.into_iter().rev() {
        assert_eq!(bench.first_index(), Some(task.index()));
        assert_eq!(tasks.map(|other| bench.is_first(other)), tasks.map(|other| other == task));
        assert!(
            tasks
                .iter()
                .all(|other| bench.may_run(*other) == (bench.look(*other).expect("there").state == TaskState::Ready))
        );
        bench.waits(task);
        assert!(!bench.may_run(task));
    }
    assert_eq!(bench.first_index(), None);
}

#[test]
fn a_call_comes_out_as_its_reply_unless_it_blocked_or_its_task_was_killed() {
    let mut bench = Bench::new();
    let (task, other) = (bench.started(20), bench.started(30));
    let blocked = Reply { status: CallStatus::Blocked, value: 0 };
    let full = Reply { status: CallStatus::MailboxFull, value: 3 };
    bench.waits(task);
    bench.outside(Call::Wake { task }, CallStatus::Ok);
    assert_eq!(bench.resumed(task, blocked), bench.outcome(task));
    assert_eq!(bench.resumed(task, full), full);
    bench.outside(Call::Kill { task: other }, CallStatus::Ok);
    assert_eq!((bench.is_killed(other), bench.is_killed(task)), (true, false));
    assert_eq!(bench.resumed(other, full).status, CallStatus::Killed);
    assert_eq!(bench.resumed(task, full), full, "another was killed");
    assert_eq!(Reply { status: CallStatus::Ok, value: 7 }.result(), Ok(7));
    assert_eq!(full.result(), Err(CallStatus::MailboxFull));
}

#[test]
fn a_killed_task_does_not_get_its_signals() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.outside(Call::Signal { task, bits: 1 }, CallStatus::Ok);
    bench.outside(Call::Kill { task }, CallStatus::Ok);
    bench.task(task, Call::WaitSignals { bits: Bits::Any(1), until: Until::Forever }, CallStatus::Killed);
}

#[test]
fn every_line_shows_who_stands_in_it() {
    let mut bench = Bench::new();
    let events = bench.events_of(0);
    let exchange = bench.exchange_of(ROOMY);
    let ended = bench.started(40);
    let calls = [
        Call::WaitEvents { events, bits: Bits::Any(1), take: false, until: Until::Forever, at: None },
        Call::Fetch { exchange, until: Until::Forever, at: None },
        Call::Join { task: ended, until: Until::Forever },
    ];
    for call in calls {
        let task = bench.started(20);
        bench.task(task, call, CallStatus::Blocked);
        let waiting = bench.look(task).expect("there").waiting;
        assert_eq!(bench.line(waiting), [task], "{call:?}");
    }
    assert_eq!(bench.line(Waiting::Wake), []);
}

#[test]
fn a_timer_is_one_until_it_is_deleted_and_another_may_have_its_slot_then() {
    let mut bench = Bench::new();
    let timer = bench.timer();
    assert!(bench.is_timer(timer) && !bench.is_timer(TimerId::from_number(timer.number() + 1)));
    bench.outside(Call::DeleteTimer { timer }, CallStatus::Ok);
    assert!(!bench.is_timer(timer));
    let next = bench.timer();
    assert_eq!(next.index(), timer.index());
    let moment = hairspring_exec_core::Moment::from_nanos(9);
    bench.outside(Call::StartTimer { timer: next, at: moment, period_ns: 0 }, CallStatus::Ok);
    assert_eq!((bench.is_timer(timer), bench.is_timer(next)), (false, true));
    assert_eq!((bench.timer_deadline(timer), bench.timer_deadline(next)), (None, Some(moment)));
}

#[test]
fn resources_leave_their_owner_in_any_order() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let held = [(); 3].map(|()| bench.resource_of(hairspring_exec_core::ResourceProtocol::Inherit));
        held.iter().for_each(|resource| bench.reserves(task, *resource, CallStatus::Ok));
        let mut left = vec![held[2], held[1], held[0]];
        assert_eq!(bench.owned_by(task), left);
        for at in order {
            bench.releases(task, held[at]);
            left.retain(|resource| *resource != held[at]);
            assert_eq!(bench.owned_by(task), left);
        }
    }
    bench.task(task, Call::End { how: Ending::Returned }, CallStatus::Ok);
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    bench.task(task, Call::Delay { until: at(5) }, CallStatus::Blocked);
}
