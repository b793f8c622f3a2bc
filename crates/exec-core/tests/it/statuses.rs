//! Every status there is, provoked: a new one does not compile until it says here how it comes about.

use hairspring_exec_core::{
    Bits, By, Call, Ending, Moment, PoolId, Protocol, Reply, SemaphoreId, Status, TimerId, Until,
};

use crate::bench::{Bench, ROOMY, priority, urgency};

pub(crate) const ALL: [Status; 29] = [
    Status::Ok,
    Status::Blocked,
    Status::WakePending,
    Status::WakeAlreadyPending,
    Status::TimedOut,
    Status::TriggerOverflow,
    Status::MailboxFull,
    Status::NoEnvelope,
    Status::NoMailbox,
    Status::NotAcknowledged,
    Status::NoSuchObject,
    Status::NotStarted,
    Status::Dead,
    Status::Running,
    Status::Killed,
    Status::AlreadySuspended,
    Status::NotSuspended,
    Status::NotOwner,
    Status::Deadlock,
    Status::AboveCeiling,
    Status::ResourceHeld,
    Status::Overflow,
    Status::NoBits,
    Status::Empty,
    Status::NotInUse,
    Status::TooMany,
    Status::NotATask,
    Status::BadInterval,
    Status::MessageTooBig,
];

/// The shortest way to a reply of this status; none for those that only the layer above gives.
fn provoke(status: Status) -> Option<Reply> {
    let mut bench = Bench::new();
    let task = bench.started(20);
    let me = By::Task(task);
    let wait = Call::Wait { until: Until::Forever };
    let reply = match status {
        Status::Ok => bench.apply(me, Call::Yield),
        Status::Blocked => bench.apply(me, wait),
        Status::WakePending => bench.apply(me, Call::Wake { task }),
        Status::WakeAlreadyPending => {
            bench.apply(me, Call::Wake { task });
            bench.apply(me, Call::Wake { task })
        }
        Status::TimedOut => bench.apply(me, Call::Wait { until: Until::NoWait }),
        Status::TriggerOverflow => {
            for _ in 0..hairspring_exec_core::MOST_STARTS {
                bench.apply(me, Call::Trigger { task });
            }
            bench.apply(me, Call::Trigger { task })
        }
        Status::MailboxFull => {
            for _ in 0..ROOMY[0] {
                bench.apply(me, Call::Send { task, urgency: urgency(0) });
            }
            bench.apply(me, Call::Send { task, urgency: urgency(0) })
        }
        Status::NoEnvelope => {
            for number in [0, 0, 1, 1] {
                bench.apply(me, Call::Send { task, urgency: urgency(number) });
            }
            bench.apply(me, Call::Send { task, urgency: urgency(2) })
        }
        Status::NoMailbox => {
            let exchange = bench.exchange_of([0; 4]);
            bench.apply(me, Call::Post { exchange, urgency: urgency(0) })
        }
        Status::NotAcknowledged => {
            let receiver = bench.idle(10);
            bench.apply(me, Call::SendWait { task: receiver, urgency: urgency(0), until: Until::Forever });
            bench.apply(By::Task(receiver), Call::End { how: Ending::Killed });
            bench.outcome(task)
        }
        Status::NoSuchObject => bench.apply(me, Call::StopTimer { timer: TimerId::from_number(0) }),
        Status::NotStarted => {
            let task = bench.idle(10);
            bench.apply(me, Call::Wake { task })
        }
        Status::Dead => {
            bench.apply(me, Call::End { how: Ending::Panicked });
            bench.apply(By::Outside, Call::Trigger { task })
        }
        Status::Running => bench.apply(me, Call::DeleteTask { task }),
        Status::Killed => bench.apply(me, Call::Kill { task }),
        Status::AlreadySuspended => {
            bench.apply(me, Call::Suspend { task });
            bench.apply(By::Outside, Call::Suspend { task })
        }
        Status::NotSuspended => bench.apply(me, Call::Resume { task }),
        Status::NotOwner => {
            let resource = bench.resource_of(Protocol::None);
            bench.apply(me, Call::Release { resource })
        }
        Status::Deadlock => bench.apply(me, Call::SendWait { task, urgency: urgency(0), until: Until::Forever }),
        Status::AboveCeiling => {
            let resource = bench.resource_of(Protocol::Ceiling(priority(63)));
            bench.apply(me, Call::Reserve { resource, until: Until::Forever, at: None })
        }
        Status::ResourceHeld => {
            let resource = bench.resource_of(Protocol::None);
            bench.apply(me, Call::Reserve { resource, until: Until::Forever, at: None });
            bench.apply(me, Call::End { how: Ending::Returned })
        }
        Status::Overflow => {
            let semaphore = bench.semaphore_of(7, 7);
            bench.apply(me, Call::SignalSemaphore { semaphore })
        }
        Status::NoBits => bench.apply(me, Call::WaitSignals { bits: Bits::Any(0), until: Until::Forever }),
        Status::Empty => bench.apply(By::Kernel, Call::NextTimer),
        Status::NotInUse => {
            let pool = bench.pool_of(1);
            bench.apply(me, Call::FreeBuffer { pool, buffer: 0 })
        }
        Status::TooMany => {
            for _ in 0..hairspring_exec_core::MOST_OBJECTS {
                bench.apply(me, Call::CreatePool { buffers: 0 });
            }
            bench.apply(me, Call::CreatePool { buffers: 0 })
        }
        Status::NotATask => bench.apply(By::Interrupt(3), wait),
        Status::BadInterval | Status::MessageTooBig => return None,
    };
    Some(reply)
}

#[test]
fn every_status_comes_about_and_has_a_text_of_its_own() {
    let mut texts = Vec::new();
    for status in ALL {
        assert!(provoke(status).is_none_or(|reply| reply.status == status), "{status:?}");
        let text = status.to_string();
        assert!(!text.is_empty() && !text.ends_with('.') && !texts.contains(&text), "{status:?}: {text}");
        texts.push(text);
    }
}

#[test]
fn no_kind_of_object_grows_beyond_its_limit() {
    let mailboxes = [0; 4];
    for call in [
        Call::CreateTask { priority: priority(1), mailboxes },
        Call::CreateSemaphore { count: 0, limit: 0 },
        Call::CreateResource { protocol: Protocol::None },
        Call::CreateEvents { bits: 0 },
        Call::CreateExchange { capacities: mailboxes },
        Call::CreatePool { buffers: 0 },
        Call::CreateTimer,
    ] {
        let mut bench = Bench::new();
        for number in 0..hairspring_exec_core::MOST_OBJECTS as u32 {
            let reply = bench.apply(By::Outside, call);
            assert_eq!((reply.status, reply.value), (Status::Ok, number), "{call:?}");
        }
        assert_eq!(bench.apply(By::Outside, call).status, Status::TooMany, "{call:?}");
    }
}

#[test]
fn only_a_task_may_make_a_call_that_acts_on_the_caller() {
    let mut bench = Bench::new();
    let (semaphore, resource) = (bench.semaphore_of(1, 1), bench.resource_of(Protocol::None));
    let (events, exchange, task) = (bench.events_of(1), bench.exchange_of([1; 4]), bench.idle(9));
    let until = Until::NoWait;
    for by in [By::Interrupt(0), By::Kernel, By::Outside] {
        for call in [
            Call::End { how: Ending::Returned },
            Call::Yield,
            Call::Wait { until },
            Call::WakeReset,
            Call::Delay { until },
            Call::WaitSignals { bits: Bits::Any(1), until },
            Call::SendWait { task, urgency: urgency(0), until },
            Call::Receive { urgency: None, until },
            Call::Take,
            Call::Acknowledge { value: 0 },
            Call::Fetch { exchange, until, at: None },
            Call::WaitSemaphore { semaphore, until, at: None },
            Call::Reserve { resource, until, at: None },
            Call::Release { resource },
            Call::WaitEvents { events, bits: Bits::Any(1), take: true, until, at: None },
        ] {
            bench.call(by, call, Status::NotATask);
        }
    }
    let moment = Moment::START;
    assert!(bench.call(By::Kernel, Call::Tick { now: moment }, Status::Ok) == 0);
    bench.outside(Call::GetBuffer { pool: PoolId::from_number(7) }, Status::NoSuchObject);
    bench.outside(Call::SignalSemaphore { semaphore: SemaphoreId::from_number(7) }, Status::NoSuchObject);
}
