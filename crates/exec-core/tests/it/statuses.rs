//! Provokes every status: a new one does not compile until this file names a way to cause it.

use hairspring_exec_core::{
    Bits, By, Call, CallStatus, Ending, Moment, PoolId, Reply, ResourceProtocol, SemaphoreId, TimerId, Until,
};

use crate::bench::{Bench, ROOMY, priority, urgency};

pub(crate) const ALL: [CallStatus; 32] = [
    CallStatus::Ok,
    CallStatus::Blocked,
    CallStatus::WakePending,
    CallStatus::WakeAlreadyPending,
    CallStatus::TimedOut,
    CallStatus::TriggerOverflow,
    CallStatus::MailboxFull,
    CallStatus::NoEnvelope,
    CallStatus::NoMailbox,
    CallStatus::NotAcknowledged,
    CallStatus::NoSuchObject,
    CallStatus::NotStarted,
    CallStatus::Dead,
    CallStatus::Running,
    CallStatus::Killed,
    CallStatus::Cancelled,
    CallStatus::AlreadySuspended,
    CallStatus::NotSuspended,
    CallStatus::NotOwner,
    CallStatus::Deadlock,
    CallStatus::AboveCeiling,
    CallStatus::ResourceHeld,
    CallStatus::Overflow,
    CallStatus::NoBits,
    CallStatus::TooLarge,
    CallStatus::Empty,
    CallStatus::NotInUse,
    CallStatus::InUse,
    CallStatus::TooMany,
    CallStatus::NotATask,
    CallStatus::BadInterval,
    CallStatus::MessageTooBig,
];

/// The shortest way to a reply of this status; none for those that only the layer above gives.
fn provoke(status: CallStatus) -> Option<Reply> {
    let mut bench = Bench::new();
    let task = bench.started(20);
    let me = By::Task(task);
    let wait = Call::Wait { until: Until::Forever };
    let reply = match status {
        CallStatus::Ok => bench.apply(me, Call::Yield),
        CallStatus::Blocked => bench.apply(me, wait),
        CallStatus::WakePending => bench.apply(me, Call::Wake { task }),
        CallStatus::WakeAlreadyPending => {
            bench.apply(me, Call::Wake { task });
            bench.apply(me, Call::Wake { task })
        }
        CallStatus::TimedOut => bench.apply(me, Call::Wait { until: Until::NoWait }),
        CallStatus::TriggerOverflow => {
            for _ in 0..hairspring_exec_core::MOST_STARTS {
                bench.apply(me, Call::Trigger { task });
            }
            bench.apply(me, Call::Trigger { task })
        }
        CallStatus::MailboxFull => {
            for _ in 0..ROOMY[0] {
                bench.apply(me, Call::Send { task, urgency: urgency(0) });
            }
            bench.apply(me, Call::Send { task, urgency: urgency(0) })
        }
        CallStatus::NoEnvelope => {
            for number in [0, 0, 1, 1] {
                bench.apply(me, Call::Send { task, urgency: urgency(number) });
            }
            bench.apply(me, Call::Send { task, urgency: urgency(2) })
        }
        CallStatus::NoMailbox => {
            let exchange = bench.exchange_of([0; 4]);
            bench.apply(me, Call::Post { exchange, urgency: urgency(0) })
        }
        CallStatus::NotAcknowledged => {
            let receiver = bench.idle(10);
            bench.apply(me, Call::SendWait { task: receiver, urgency: urgency(0), until: Until::Forever });
            bench.apply(By::Task(receiver), Call::End { how: Ending::Killed });
            bench.outcome(task)
        }
        CallStatus::NoSuchObject => bench.apply(me, Call::StopTimer { timer: TimerId::from_number(0) }),
        CallStatus::NotStarted => {
            let task = bench.idle(10);
            bench.apply(me, Call::Wake { task })
        }
        CallStatus::Dead => {
            bench.apply(me, Call::End { how: Ending::Panicked });
            bench.apply(By::Outside, Call::Trigger { task })
        }
        CallStatus::Running => bench.apply(me, Call::DeleteTask { task }),
        CallStatus::Killed => bench.apply(me, Call::Kill { task }),
        CallStatus::Cancelled => {
            bench.apply(me, wait);
            bench.apply(By::Outside, Call::Cancel { task });
            bench.outcome(task)
        }
        CallStatus::AlreadySuspended => {
            bench.apply(me, Call::Suspend { task });
            bench.apply(By::Outside, Call::Suspend { task })
        }
        CallStatus::NotSuspended => bench.apply(me, Call::Resume { task }),
        CallStatus::NotOwner => {
            let resource = bench.resource_of(ResourceProtocol::None);
            bench.apply(me, Call::Release { resource })
        }
        CallStatus::Deadlock => bench.apply(me, Call::SendWait { task, urgency: urgency(0), until: Until::Forever }),
        CallStatus::AboveCeiling => {
            let resource = bench.resource_of(ResourceProtocol::Ceiling(priority(63)));
            bench.apply(me, Call::Reserve { resource, until: Until::Forever, at: None })
        }
        CallStatus::ResourceHeld => {
            let resource = bench.resource_of(ResourceProtocol::None);
            bench.apply(me, Call::Reserve { resource, until: Until::Forever, at: None });
            bench.apply(me, Call::End { how: Ending::Returned })
        }
        CallStatus::Overflow => {
            let semaphore = bench.semaphore_of(7, 7);
            bench.apply(me, Call::SignalSemaphore { semaphore })
        }
        CallStatus::NoBits => bench.apply(me, Call::WaitSignals { bits: Bits::Any(0), until: Until::Forever }),
        CallStatus::TooLarge => {
            let heap = bench.heap_of(4, 1);
            bench.apply(me, Call::GetBlock { heap, units: 5 })
        }
        CallStatus::Empty => bench.apply(By::Kernel, Call::NextTimer),
        CallStatus::NotInUse => {
            let pool = bench.pool_of(1);
            bench.apply(me, Call::FreeBuffer { pool, buffer: 0 })
        }
        CallStatus::InUse => {
            let pool = bench.pool_of(1);
            bench.apply(me, Call::GetBuffer { pool });
            bench.apply(me, Call::DeletePool { pool })
        }
        CallStatus::TooMany => {
            for _ in 0..hairspring_exec_core::MOST_OBJECTS {
                bench.apply(me, Call::CreatePool { buffers: 0 });
            }
            bench.apply(me, Call::CreatePool { buffers: 0 })
        }
        CallStatus::NotATask => bench.apply(By::Interrupt(3), wait),
        CallStatus::BadInterval | CallStatus::MessageTooBig => return None,
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
        Call::CreateResource { protocol: ResourceProtocol::None },
        Call::CreateEvents { bits: 0 },
        Call::CreateExchange { capacities: mailboxes },
        Call::CreatePool { buffers: 0 },
        Call::CreateHeap { units: 0, blocks: 0 },
        Call::CreateTimer,
    ] {
        let mut bench = Bench::new();
        for number in 0..hairspring_exec_core::MOST_OBJECTS as u32 {
            let reply = bench.apply(By::Outside, call);
            assert_eq!((reply.status, reply.value), (CallStatus::Ok, number), "{call:?}");
        }
        assert_eq!(bench.apply(By::Outside, call).status, CallStatus::TooMany, "{call:?}");
    }
}

#[test]
fn only_a_task_may_make_a_call_that_acts_on_the_caller() {
    let mut bench = Bench::new();
    let (semaphore, resource) = (bench.semaphore_of(1, 1), bench.resource_of(ResourceProtocol::None));
    let (events, exchange, task) = (bench.events_of(1), bench.exchange_of([1; 4]), bench.idle(9));
    let heap = bench.heap_of(1, 1);
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
            Call::WaitBlock { heap, units: 1, until, at: None },
            Call::TakeBlock,
            Call::Join { task, until },
        ] {
            bench.call(by, call, CallStatus::NotATask);
        }
    }
    let moment = Moment::START;
    assert!(bench.call(By::Kernel, Call::Tick { now: moment }, CallStatus::Ok) == 0);
    bench.outside(Call::GetBuffer { pool: PoolId::from_number(7) }, CallStatus::NoSuchObject);
    bench.outside(Call::SignalSemaphore { semaphore: SemaphoreId::from_number(7) }, CallStatus::NoSuchObject);
}
