//! Messages: mailboxes, exchanges, envelopes and acknowledgements.

use hairspring_exec_core::{Call, CallStatus, Ending, NO_ENVELOPE, TaskId, TaskState, Until, Waiting};

use crate::bench::{Bench, ENVELOPES, at, priority, urgency};

const RECEIVE: Call = Call::Receive { urgency: None, until: Until::NoWait };

#[test]
fn a_message_to_an_idle_task_starts_it_with_the_envelope_in_its_hand() {
    let mut bench = Bench::new();
    let (low, high) = (bench.started(20), bench.idle(10));
    let envelope = bench.task(low, Call::Send { task: high, urgency: urgency(3) }, CallStatus::Ok);
    bench.runs(high);
    bench.came_out(high, CallStatus::Ok, envelope);
    assert_eq!(bench.free_envelopes(), usize::from(ENVELOPES) - 1);
    bench.task(high, Call::Take, CallStatus::Ok);
    assert_eq!(bench.free_envelopes(), usize::from(ENVELOPES));
    bench.task(high, Call::Take, CallStatus::Empty);
    bench.ends(high);
    bench.runs(low);
}

#[test]
fn messages_of_urgency_0_go_before_those_of_3_and_equals_in_the_order_of_sending() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    let [c, a, d, b] =
        [3, 0, 3, 0].map(|number| bench.outside(Call::Send { task, urgency: urgency(number) }, CallStatus::Ok));
    assert_eq!((bench.mail_waiting(task), bench.letters(task, urgency(3))), (4, vec![c, d]));
    for expected in [a, b, c, d] {
        assert_eq!(bench.task(task, RECEIVE, CallStatus::Ok), expected);
        bench.task(task, Call::Take, CallStatus::Ok);
    }
    bench.task(task, RECEIVE, CallStatus::TimedOut);
}

#[test]
fn mail_of_one_urgency_can_be_asked_for_and_other_mail_does_not_end_the_wait() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.task(task, Call::Receive { urgency: Some(urgency(1)), until: at(9) }, CallStatus::Blocked);
    let other = bench.outside(Call::Send { task, urgency: urgency(0) }, CallStatus::Ok);
    bench.runs(None);
    let wanted = bench.outside(Call::Send { task, urgency: urgency(1) }, CallStatus::Ok);
    bench.runs(task);
    bench.came_out(task, CallStatus::Ok, wanted);
    assert_eq!(bench.letters(task, urgency(0)), [other]);
}

#[test]
fn a_message_to_a_task_that_waits_for_mail_is_handed_over_at_once() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.task(task, Call::Receive { urgency: None, until: Until::Forever }, CallStatus::Blocked);
    assert_eq!(bench.look(task).map(|look| look.waiting), Some(Waiting::Mail(4)));
    let envelope = bench.outside(Call::Send { task, urgency: urgency(2) }, CallStatus::Ok);
    bench.came_out(task, CallStatus::Ok, envelope);
    assert_eq!(bench.mail_waiting(task), 0);
}

#[test]
fn mail_that_waits_at_the_end_of_a_run_starts_the_next_before_a_counted_trigger_does() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    let envelope = bench.outside(Call::Send { task, urgency: urgency(0) }, CallStatus::Ok);
    bench.ends(task);
    bench.came_out(task, CallStatus::Ok, envelope);
    bench.ends(task);
    bench.came_out(task, CallStatus::Ok, NO_ENVELOPE);
    bench.ends(task);
    bench.runs(None);
    assert_eq!(bench.free_envelopes(), usize::from(ENVELOPES));
}

#[test]
fn a_full_mailbox_no_mailbox_and_no_envelope_are_told_apart() {
    let mut bench = Bench::new();
    let small = Call::CreateTask { priority: priority(20), mailboxes: [1, 0, 4, 0] };
    let task = hairspring_exec_core::TaskId::from_number(bench.outside(small, CallStatus::Ok));
    bench.outside(Call::Trigger { task }, CallStatus::Ok);
    let send = |number| Call::Send { task, urgency: urgency(number) };
    bench.outside(send(1), CallStatus::NoMailbox);
    bench.outside(send(0), CallStatus::Ok);
    bench.outside(send(0), CallStatus::MailboxFull);
    for _ in 1..ENVELOPES {
        bench.outside(send(2), CallStatus::Ok);
    }
    bench.outside(send(2), CallStatus::NoEnvelope);
    bench.outside(send(0), CallStatus::MailboxFull);
    bench.task(task, RECEIVE, CallStatus::Ok);
    bench.outside(send(2), CallStatus::NoEnvelope);
    bench.task(task, Call::Take, CallStatus::Ok);
    bench.outside(send(2), CallStatus::Ok);
}

#[test]
fn a_refused_message_starts_nobody_and_keeps_no_envelope() {
    let mut bench = Bench::new();
    let (task, other) = (bench.idle(20), bench.started(30));
    for number in [0, 0, 1, 1] {
        bench.outside(Call::Send { task: other, urgency: urgency(number) }, CallStatus::Ok);
    }
    bench.outside(Call::Send { task, urgency: urgency(0) }, CallStatus::NoEnvelope);
    let call = Call::SendWait { task, urgency: urgency(0), until: Until::Forever };
    bench.task(other, call, CallStatus::NoEnvelope);
    bench.runs(other);
    assert_eq!(bench.look(task).map(|look| look.state), Some(TaskState::Idle));
}

#[test]
fn a_sender_that_waits_goes_on_when_its_message_is_acknowledged_and_gets_the_value() {
    let mut bench = Bench::new();
    let (sender, receiver) = (bench.started(10), bench.idle(20));
    let call = Call::SendWait { task: receiver, urgency: urgency(0), until: Until::Forever };
    let envelope = bench.task(sender, call, CallStatus::Blocked);
    assert_eq!(bench.sender_of(envelope), Some(sender));
    bench.runs(receiver);
    bench.task(receiver, Call::Take, CallStatus::Ok);
    bench.runs(receiver);
    assert_eq!(bench.owed_by(receiver), Some(sender));
    bench.task(receiver, Call::Acknowledge { value: 77 }, CallStatus::Ok);
    bench.runs(sender);
    bench.came_out(sender, CallStatus::Ok, 77);
    bench.ends(sender);
    bench.task(receiver, Call::Acknowledge { value: 78 }, CallStatus::Empty);
}

#[test]
fn the_end_of_the_run_and_the_next_message_taken_acknowledge_what_was_not() {
    let mut bench = Bench::new();
    let (first, second, receiver) = (bench.started(10), bench.started(10), bench.idle(20));
    let call = Call::SendWait { task: receiver, urgency: urgency(0), until: Until::Forever };
    bench.task(first, call, CallStatus::Blocked);
    bench.task(second, call, CallStatus::Blocked);
    bench.task(receiver, Call::Take, CallStatus::Ok);
    bench.task(receiver, RECEIVE, CallStatus::Ok);
    bench.runs(receiver);
    bench.task(receiver, Call::Take, CallStatus::Ok);
    bench.runs(first);
    bench.came_out(first, CallStatus::Ok, 0);
    bench.ends(first);
    bench.ends(receiver);
    bench.runs(second);
    bench.came_out(second, CallStatus::Ok, 0);
}

#[test]
fn an_acknowledgement_to_a_sender_that_timed_out_reaches_nobody() {
    let mut bench = Bench::new();
    let (sender, receiver) = (bench.started(10), bench.idle(20));
    let call = Call::SendWait { task: receiver, urgency: urgency(0), until: at(10) };
    bench.task(sender, call, CallStatus::Blocked);
    bench.task(receiver, Call::Take, CallStatus::Ok);
    bench.tick(10);
    bench.came_out(sender, CallStatus::TimedOut, 0);
    bench.task(
        sender,
        Call::SendWait { task: receiver, urgency: urgency(1), until: Until::Forever },
        CallStatus::Blocked,
    );
    bench.task(receiver, Call::Acknowledge { value: 5 }, CallStatus::Empty);
    assert_eq!(bench.look(sender).map(|look| look.state), Some(TaskState::Waiting), "it waits for the second message");
    bench.task(receiver, RECEIVE, CallStatus::Ok);
    bench.task(receiver, Call::Take, CallStatus::Ok);
    bench.task(receiver, Call::Acknowledge { value: 6 }, CallStatus::Ok);
    bench.came_out(sender, CallStatus::Ok, 6);
}

#[test]
fn senders_are_told_when_the_receiver_is_killed_or_panics_before_or_after_taking() {
    for how in [Ending::Killed, Ending::Panicked] {
        for takes in [false, true] {
            let mut bench = Bench::new();
            let (first, second, receiver) = (bench.started(10), bench.started(10), bench.idle(20));
            for sender in [first, second] {
                let call = Call::SendWait { task: receiver, urgency: urgency(0), until: Until::Forever };
                bench.task(sender, call, CallStatus::Blocked);
            }
            if takes {
                bench.task(receiver, Call::Take, CallStatus::Ok);
            }
            bench.task(receiver, Call::End { how }, CallStatus::Ok);
            for sender in [first, second] {
                bench.came_out(sender, CallStatus::NotAcknowledged, 0);
            }
            assert_eq!(bench.ready_tasks(), [first, second]);
            assert_eq!(bench.free_envelopes(), usize::from(ENVELOPES));
        }
    }
}

#[test]
fn a_message_that_was_handed_over_and_never_opened_is_not_acknowledged() {
    let mut bench = Bench::new();
    let (sender, receiver) = (bench.started(10), bench.idle(20));
    let call = Call::SendWait { task: receiver, urgency: urgency(0), until: Until::Forever };
    bench.task(sender, call, CallStatus::Blocked);
    bench.ends(receiver);
    bench.came_out(sender, CallStatus::NotAcknowledged, 0);
    assert_eq!(bench.free_envelopes(), usize::from(ENVELOPES));
}

/// Symptom: after a task had asked for mail with an unopened envelope in its hand, one envelope was gone for good.
/// Cause: the new envelope took the place of the old one. Counting the free ones catches it.
#[test]
fn an_unopened_message_goes_back_when_the_next_is_asked_for() {
    for from_exchange in [false, true] {
        for waits in [false, true] {
            let mut bench = Bench::new();
            let (sender, receiver) = (bench.started(10), bench.idle(20));
            let exchange = bench.exchange_of([2; 4]);
            let put = |bench: &mut Bench| {
                let send = Call::Send { task: receiver, urgency: urgency(1) };
                let post = Call::Post { exchange, urgency: urgency(1) };
                bench.outside(if from_exchange { post } else { send }, CallStatus::Ok)
            };
            let call = Call::SendWait { task: receiver, urgency: urgency(0), until: Until::Forever };
            bench.task(sender, call, CallStatus::Blocked);
            if !waits {
                put(&mut bench);
            }
            let fetch = Call::Fetch { exchange, until: Until::Forever, at: None };
            let receive = Call::Receive { urgency: None, until: Until::Forever };
            let status = if waits { CallStatus::Blocked } else { CallStatus::Ok };
            bench.task(receiver, if from_exchange { fetch } else { receive }, status);
            bench.came_out(sender, CallStatus::NotAcknowledged, 0);
            if waits {
                put(&mut bench);
            }
            bench.task(receiver, Call::Take, CallStatus::Ok);
            assert_eq!(bench.free_envelopes(), usize::from(ENVELOPES));
        }
    }
}

#[test]
fn a_message_that_waits_for_its_own_sender_is_a_deadlock_and_one_that_does_not_wait_is_mail() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    let call = Call::SendWait { task, urgency: urgency(0), until: Until::Forever };
    bench.task(task, call, CallStatus::Deadlock);
    assert_eq!(bench.free_envelopes(), usize::from(ENVELOPES));
    bench.task(task, Call::Send { task, urgency: urgency(0) }, CallStatus::Ok);
    bench.task(task, RECEIVE, CallStatus::Ok);
}

#[test]
fn a_sender_that_may_not_wait_does_not_send() {
    let mut bench = Bench::new();
    let (sender, receiver) = (bench.started(10), bench.idle(20));
    let call = Call::SendWait { task: receiver, urgency: urgency(0), until: Until::NoWait };
    bench.task(sender, call, CallStatus::TimedOut);
    assert_eq!(bench.look(receiver).map(|look| look.state), Some(TaskState::Idle));
}

#[test]
fn the_message_of_a_killed_sender_is_still_delivered_and_its_acknowledgement_reaches_nobody() {
    let mut bench = Bench::new();
    let (sender, receiver) = (bench.started(10), bench.idle(20));
    let call = Call::SendWait { task: receiver, urgency: urgency(0), until: Until::Forever };
    bench.task(sender, call, CallStatus::Blocked);
    bench.outside(Call::Kill { task: sender }, CallStatus::Ok);
    bench.came_out(sender, CallStatus::Killed, 0);
    bench.ends(sender);
    bench.outside(Call::DeleteTask { task: sender }, CallStatus::Ok);
    let another = bench.started(10);
    bench.waits(another);
    bench.task(receiver, Call::Take, CallStatus::Ok);
    bench.task(receiver, Call::Acknowledge { value: 1 }, CallStatus::Empty);
    assert_eq!(bench.look(another).map(|look| look.state), Some(TaskState::Waiting), "it has the slot of the sender");
}

#[test]
fn an_exchange_hands_its_messages_out_by_urgency_and_to_its_waiters_by_their_places() {
    let mut bench = Bench::new();
    let exchange = bench.exchange_of([2, 0, 2, 2]);
    let (a, b, c) = (bench.started(10), bench.started(11), bench.started(12));
    let fetch = |at| Call::Fetch { exchange, until: Until::Forever, at };
    bench.task(a, fetch(Some(priority(30))), CallStatus::Blocked);
    bench.task(b, fetch(None), CallStatus::Blocked);
    bench.outside(Call::Post { exchange, urgency: urgency(1) }, CallStatus::NoMailbox);
    let first = bench.outside(Call::Post { exchange, urgency: urgency(3) }, CallStatus::Ok);
    bench.came_out(b, CallStatus::Ok, first);
    let second = bench.outside(Call::Post { exchange, urgency: urgency(3) }, CallStatus::Ok);
    bench.came_out(a, CallStatus::Ok, second);
    let third = bench.outside(Call::Post { exchange, urgency: urgency(3) }, CallStatus::Ok);
    let fourth = bench.outside(Call::Post { exchange, urgency: urgency(0) }, CallStatus::Ok);
    assert_eq!(bench.posted(exchange, urgency(3)), [third]);
    bench.outside(Call::Post { exchange, urgency: urgency(0) }, CallStatus::NoEnvelope);
    for expected in [fourth, third] {
        assert_eq!(bench.task(c, fetch(None), CallStatus::Ok), expected);
        bench.task(c, Call::Take, CallStatus::Ok);
    }
    bench.task(c, Call::Fetch { exchange, until: Until::NoWait, at: None }, CallStatus::TimedOut);
}

#[test]
fn an_exchange_can_be_full() {
    let mut bench = Bench::new();
    let exchange = bench.exchange_of([1, 1, 1, 1]);
    bench.outside(Call::Post { exchange, urgency: urgency(2) }, CallStatus::Ok);
    bench.outside(Call::Post { exchange, urgency: urgency(2) }, CallStatus::MailboxFull);
}

#[test]
fn an_executive_without_envelopes_sends_nothing() {
    let mut core = hairspring_exec_core::Core::new(0, ());
    let create = Call::CreateTask { priority: priority(1), mailboxes: [1; 4] };
    let by = hairspring_exec_core::By::Outside;
    let task = hairspring_exec_core::TaskId::from_number(core.apply(by, create).value);
    assert_eq!(core.apply(by, Call::Send { task, urgency: urgency(0) }).status, CallStatus::NoEnvelope);
}

/// In every build, also without the feature `checks`: the back-ends read a message as the type of the mailbox that it
/// was sent to.
#[test]
fn nothing_is_sent_by_the_id_of_a_deleted_task_even_when_its_slot_is_used_again() {
    let mut bench = Bench::new();
    let (stale, other) = (bench.idle(20), bench.started(40));
    bench.outside(Call::DeleteTask { task: stale }, CallStatus::Ok);
    for fresh_exists in [false, true] {
        if fresh_exists {
            let fresh = bench.idle(30);
            assert_eq!((fresh.index(), fresh != stale), (stale.index(), true));
        }
        let send_wait = Call::SendWait { task: stale, urgency: urgency(0), until: Until::Forever };
        bench.task(other, send_wait, CallStatus::NoSuchObject);
        bench.outside(Call::Send { task: stale, urgency: urgency(0) }, CallStatus::NoSuchObject);
        bench
            .outside(Call::Send { task: TaskId::from_number(u32::MAX), urgency: urgency(0) }, CallStatus::NoSuchObject);
    }
    assert_eq!(bench.free_envelopes(), usize::from(ENVELOPES));
}
