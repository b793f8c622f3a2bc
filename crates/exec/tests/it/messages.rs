//! Mailboxes and exchanges: order, limits, types, acknowledgements.

use hairspring_exec::errors::{BufferError, CreateError, ParcelError, SendError};
use hairspring_exec::{Create, ExecConfig, Executive, Limit, Services, Urgency};

use crate::backends::{FOREVER, ROOM, all, check, check_with, micros, panic_on_purpose, priority, urgency};

#[test]
fn urgency_goes_first_and_within_one_urgency_the_order_is_that_of_sending() {
    check("m0 m10 m11 m20 m30 m31 = Finished", |bench| {
        let mailbox =
            bench.mail_task::<u32>("receiver", 20, ROOM, |_, log, _, message| log.note(format!("m{message}")));
        bench.start("sender", 10, move |ctx, _| {
            // The first starts the receiver and is handed over; the rest wait in the queues.
            for (number, message) in [(3, 0), (3, 30), (1, 10), (2, 20), (3, 31), (1, 11)] {
                ctx.send(mailbox, urgency(number), message).expect("there is room");
            }
        });
    });
}

#[test]
fn a_run_that_receives_takes_its_mail_in_the_same_order_and_of_the_urgency_it_asks_for() {
    check(
        "first:1 two:Ok(20) any:Ok(10) any:Ok(21) two:Err(TimedOut) any:Ok(30) none:Err(TimedOut) = Finished",
        |bench| {
            let mailbox = bench.mail_task::<u32>("receiver", 20, ROOM, |ctx, log, mailbox, message| {
                log.note(format!("first:{message}"));
                let two = Some(urgency(2));
                log.tell("two", ctx.receive(mailbox, two, FOREVER));
                log.tell("any", ctx.receive(mailbox, None, FOREVER));
                log.tell("any", ctx.receive(mailbox, None, FOREVER));
                log.tell("two", ctx.receive(mailbox, two, Limit::NoWait));
                log.tell("any", ctx.receive(mailbox, None, FOREVER));
                log.tell("none", ctx.receive(mailbox, None, Limit::For(micros(10))));
            });
            bench.start("sender", 10, move |ctx, _| {
                for (number, message) in [(0, 1), (2, 20), (1, 10), (3, 30), (2, 21)] {
                    ctx.send(mailbox, urgency(number), message).expect("there is room");
                }
            });
        },
    );
}

#[test]
fn a_full_mailbox_no_mailbox_and_no_envelope_are_told_apart() {
    let expected = "1:Ok(()) 2:Ok(()) 3:Err(MailboxFull) none:Err(NoMailbox) other:Ok(()) none_left:Err(NoEnvelope) \
        m1 m2 m3 again:Ok(()) m4 = Finished";
    check_with(&ExecConfig { envelopes: 3, ..ExecConfig::default() }, expected, |bench| {
        let receiver = |ctx: &hairspring_exec::TaskCtx<'_>, log: &crate::backends::Log, _, message: u32| {
            let _ = ctx;
            log.note(format!("m{message}"));
        };
        // The start takes an envelope, but no place in the queue.
        let mailbox = bench.mail_task::<u32>("receiver", 20, [0, 1, 0, 0], receiver);
        let other = bench.mail_task::<u32>("other", 21, ROOM, receiver);
        bench.start("sender", 10, move |ctx, log| {
            log.tell("1", ctx.send(mailbox, urgency(1), 1));
            log.tell("2", ctx.send(mailbox, urgency(1), 2));
            log.tell("3", ctx.send(mailbox, urgency(1), 9));
            log.tell("none", ctx.send(mailbox, urgency(0), 9));
            log.tell("other", ctx.send(other, urgency(3), 3));
            log.tell("none_left", ctx.send(other, urgency(3), 9));
            ctx.delay(micros(2_000)).expect("nobody kills it");
            log.tell("again", ctx.send(other, urgency(3), 4));
        });
        bench.run();
    });
}

/// Sends a few values of a type through a mailbox and an exchange, and compares what comes out.
#[track_caller]
fn check_type<M: Copy + PartialEq + Send + std::fmt::Debug + 'static>(values: [M; 3]) {
    let config = ExecConfig { message_bytes: 64, ..ExecConfig::default() };
    check_with(&config, "mail mail mail exchange exchange exchange = Finished", |bench| {
        let mut expected = values.into_iter();
        let mailbox = bench.mail_task::<M>("receiver", 20, ROOM, move |_, log, _, message| {
            assert_eq!(Some(message), expected.next());
            log.note("mail");
        });
        let exchange = bench.executive.exchange::<M>(ROOM).expect("it fits");
        for value in values {
            bench.executive.send(mailbox, urgency(0), value).expect("there is room");
            bench.executive.post(exchange, urgency(0), value).expect("there is room");
        }
        bench.start("fetcher", 30, move |ctx, log| {
            for value in values {
                assert_eq!(ctx.fetch(exchange, FOREVER), Ok(value));
                log.note("exchange");
            }
        });
        bench.run();
    });
}

#[test]
fn messages_of_every_size_arrive_as_they_were_sent() {
    check_type([(), (), ()]);
    check_type([0_u8, 1, 255]);
    check_type([[1_u32, 2, 3], [0, 0, 0], [u32::MAX; 3]]);
    check_type([[1_u64; 8], [2; 8], [u64::MAX; 8]]);
    check_type([(true, 'x', 1.5_f32), (false, '\u{10ffff}', -0.0), (true, 'z', f32::MAX)]);
    check_type([1_u128, 0, u128::MAX]);
}

#[test]
fn a_type_that_is_larger_than_an_envelope_is_refused_when_the_mailbox_is_made() {
    for backend in all() {
        let executive =
            Executive::new(backend, &ExecConfig { message_bytes: 12, ..ExecConfig::default() }).expect("an executive");
        // An envelope is rounded up to 16 bytes.
        assert_eq!(executive.exchange::<[u8; 17]>(ROOM).map(drop), Err(CreateError::MessageTooBig));
        let task = executive.mail_task::<[u8; 64]>("big", priority(1), ROOM, |_, _, _| {});
        assert_eq!(task.map(drop), Err(CreateError::MessageTooBig));
        assert!(executive.exchange::<[u8; 12]>(ROOM).is_ok());
    }
}

#[test]
fn a_handle_of_another_executive_is_refused() {
    // Symptom: a mailbox of large messages, used in an executive whose envelopes are small, wrote beyond the envelope;
    // one of another type read bytes that were no value of it. A handle knows whose it is now.
    for backend in all() {
        let large = Executive::new(backend.clone(), &ExecConfig { message_bytes: 64, ..ExecConfig::default() })
            .expect("an executive");
        let foreign = large.mail_task::<[u8; 64]>("large", priority(1), ROOM, |_, _, _| {}).expect("it fits");
        let exchange = large.exchange::<[u8; 64]>(ROOM).expect("it fits");
        let pool = large.pool(vec![1_u32]).expect("few objects");
        let small = Executive::new(backend, &ExecConfig::default()).expect("an executive");
        small.mail_task::<bool>("small", priority(1), ROOM, |_, _, _| {}).expect("it fits");
        small.exchange::<bool>(ROOM).expect("it fits");
        small.pool(vec![2_u32]).expect("few objects");
        assert_eq!(small.send(foreign, urgency(0), [7; 64]), Err(SendError::NoSuchObject));
        assert_eq!(small.post(exchange, urgency(0), [7; 64]), Err(SendError::NoSuchObject));
        assert_eq!(small.buffer(&pool).map(drop), Err(BufferError::NoSuchObject));
        let parcel = large.buffer(&pool).expect("it is free").into_parcel();
        assert_eq!(small.open_parcel(&pool, parcel).map(drop), Err(ParcelError::NoSuchObject));
        assert!(large.open_parcel(&pool, parcel).is_ok());
        assert!(large.send(foreign, urgency(0), [7; 64]).is_ok());
    }
}

#[test]
fn send_wait_returns_what_the_receiver_acknowledged_with_or_nothing_at_its_next_message_or_end() {
    let expected = "got:1 s1:Ok(17) got:2 got:3 s2:Ok(0) twice:Ok(()) twice:Err(Empty) s4:Ok(5) s3:Ok(0) = Finished";
    check(expected, |bench| {
        let mailbox = bench.mail_task::<u32>("receiver", 10, ROOM, |ctx, log, mailbox, first| {
            if first == 4 {
                log.tell("twice", ctx.acknowledge(5));
                log.tell("twice", ctx.acknowledge(6));
                return;
            }
            log.note(format!("got:{first}"));
            ctx.acknowledge(17).expect("its sender waits");
            let second = ctx.receive(mailbox, None, FOREVER).expect("it comes");
            log.note(format!("got:{second}"));
            // Taking the third acknowledges the second; the end acknowledges the third.
            let third = ctx.receive(mailbox, None, Limit::For(micros(60_000_000)));
            log.note(format!("got:{}", third.expect("it comes")));
        });
        bench.start("s1", 20, move |ctx, log| {
            log.tell("s1", ctx.send_wait(mailbox, urgency(0), 1, FOREVER));
        });
        bench.start("s2", 21, move |ctx, log| {
            log.tell("s2", ctx.send_wait(mailbox, urgency(0), 2, FOREVER));
            log.tell("s4", ctx.send_wait(mailbox, urgency(0), 4, FOREVER));
        });
        // Runs when the second has been received and its sender waits for the acknowledgement.
        bench.start("s3", 22, move |ctx, log| {
            log.tell("s3", ctx.send_wait(mailbox, urgency(0), 3, FOREVER));
        });
    });
}

#[test]
fn a_time_out_of_send_wait_leaves_the_message_and_a_late_acknowledgement_reaches_nobody() {
    check("sender:Err(TimedOut) got:1 late:Err(Empty) = Finished", |bench| {
        let mailbox = bench.mail_task::<u32>("receiver", 20, ROOM, |ctx, log, _, message| {
            log.note(format!("got:{message}"));
            log.tell("late", ctx.acknowledge(3));
        });
        bench.start("sender", 10, move |ctx, log| {
            // The receiver cannot run before this one is timed out and its equal is done.
            log.tell("sender", ctx.send_wait(mailbox, urgency(0), 1, Limit::For(micros(200))));
        });
        bench.start("busy", 15, |ctx, _| ctx.work(micros(3_000)));
    });
}

#[test]
fn a_receiver_that_is_killed_or_panics_tells_all_whose_messages_it_had_or_would_have_had() {
    let expected = "taken:Err(NotAcknowledged) queued:Err(NotAcknowledged) \
        again:Err(NotAcknowledged) dead:Err(Dead) = Finished receiver:Killed receiver:panicked(on purpose)";
    check(expected, |bench| {
        let mut kills = 0;
        let mailbox = bench.mail_task::<u32>("receiver", 20, ROOM, move |ctx, _, _, _| {
            kills += 1;
            if kills == 2 {
                panic_on_purpose();
            }
            ctx.wait(FOREVER).expect("it unwinds here");
        });
        bench.start("taken", 9, move |ctx, log| {
            log.tell("taken", ctx.send_wait(mailbox, urgency(0), 1, FOREVER));
        });
        bench.start("queued", 10, move |ctx, log| {
            log.tell("queued", ctx.send_wait(mailbox, urgency(0), 2, FOREVER));
            log.tell("again", ctx.send_wait(mailbox, urgency(0), 3, FOREVER));
            log.tell("dead", ctx.send_wait(mailbox, urgency(0), 4, FOREVER));
        });
        bench.start("killer", 30, move |ctx, _| ctx.kill(mailbox.id()).expect("it waits"));
    });
}

#[test]
fn a_task_cannot_wait_for_itself_or_receive_another_ones_mail() {
    check("self:Err(Deadlock) other:Err(NoMailbox) = Finished", |bench| {
        let other = bench.mail_task::<u32>("other", 30, ROOM, |_, _, _, _| {});
        let mailbox = bench.mail_task::<u32>("self", 20, ROOM, move |ctx, log, mailbox, _| {
            log.tell("self", ctx.send_wait(mailbox, urgency(0), 1, FOREVER));
            log.tell("other", ctx.receive(other, None, Limit::NoWait));
        });
        bench.executive.send(mailbox, urgency(0), 1).expect("there is room");
    });
}

#[test]
fn an_exchange_gives_to_the_waiters_by_priority_and_keeps_by_urgency_what_nobody_waits_for() {
    check(
        "high:Ok(1) low:Ok(2) late:Ok(10) late:Ok(30) late:Err(TimedOut) full:Err(MailboxFull) = Finished",
        |bench| {
            let exchange = bench.executive.exchange::<u32>([1, 1, 1, 1]).expect("few objects");
            for (name, number) in [("low", 11), ("high", 10)] {
                bench.start(name, number, move |ctx, log| log.tell(name, ctx.fetch(exchange, FOREVER)));
            }
            bench.start("poster", 20, move |ctx, log| {
                for (number, message) in [(3, 1), (3, 2), (3, 30), (0, 10)] {
                    ctx.post(exchange, urgency(number), message).expect("there is room");
                }
                for _ in 0..3 {
                    log.tell("late", ctx.fetch(exchange, Limit::NoWait));
                }
                ctx.post(exchange, urgency(2), 1).expect("there is room");
                log.tell("full", ctx.post(exchange, urgency(2), 2));
            });
        },
    );
}

#[test]
fn a_mail_task_that_is_triggered_does_nothing() {
    check("mail = Finished", |bench| {
        let mailbox = bench.mail_task::<u32>("receiver", 20, ROOM, |_, log, _, _| log.note("mail"));
        bench.executive.trigger(mailbox.id()).expect("it is idle");
        bench.executive.send(mailbox, Urgency::ALL[3], 1).expect("there is room");
    });
}

/// Symptom: without the feature `checks` a message of one type came out of a mailbox of another, in safe code. Cause:
/// the core took the id in a handle at its word, and the slot of a deleted task had been given to its successor. The
/// generation of an id must be checked in every build if a type depends on it; the step `unchecked` of
/// `cargo xtask test` builds without.
#[test]
fn a_handle_of_a_deleted_task_sends_nothing_to_its_successor_of_another_type() {
    check("same_slot:true send:Err(NoSuchObject) wait:Err(NoSuchObject) idle = Finished", |bench| {
        bench.start("maker", 10, |ctx, log| {
            let first = ctx.mail_task::<u64>("numbers", crate::backends::priority(20), ROOM, |_, _, _| {});
            let stale = first.expect("few objects");
            ctx.delete_task(stale.id()).expect("it is idle");
            let note = log.clone();
            let second = ctx.mail_task::<(u8, char)>("letters", crate::backends::priority(5), ROOM, move |_, _, _| {
                // Not looked at: the message may be a number.
                note.note("a_number_came");
            });
            let second = second.expect("few objects").id();
            log.note(format!("same_slot:{}", stale.id().index() == second.index() && stale.id() != second));
            log.tell("send", ctx.send(stale, urgency(0), u64::MAX));
            log.tell("wait", ctx.send_wait(stale, urgency(0), u64::MAX, FOREVER));
            log.note("idle");
        });
    });
}
