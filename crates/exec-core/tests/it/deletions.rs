//! Deleting objects that tasks share: the tasks that wait, objects in use, and the ids.

use hairspring_exec_core::{
    Bits, By, Call, CallStatus, EventsId, ExchangeId, PoolId, ResourceId, ResourceProtocol, SemaphoreId, TaskId, Until,
};

use crate::bench::{Bench, ENVELOPES, urgency};

const FOREVER: Until = Until::Forever;

/// Lets three tasks wait in `wait`, deletes, and checks that all go on without it in the order of their line, and that
/// the id is refused.
#[track_caller]
fn check(wait: impl Fn(&mut Bench) -> (Call, Call)) {
    let mut bench = Bench::new();
    let (waits, delete) = wait(&mut bench);
    let tasks: Vec<TaskId> = [30, 10, 20].into_iter().map(|number| bench.started(number)).collect();
    for &task in &tasks {
        bench.task(task, waits, CallStatus::Blocked);
    }
    bench.runs(None);
    bench.outside(delete, CallStatus::Ok);
    assert_eq!(bench.ready_tasks(), [tasks[1], tasks[2], tasks[0]], "{delete:?}");
    for &task in &tasks {
        bench.came_out(task, CallStatus::NoSuchObject, 0);
    }
    bench.outside(delete, CallStatus::NoSuchObject);
    bench.task(tasks[1], waits, CallStatus::NoSuchObject);
    bench.runs(tasks[1]);
}

#[test]
fn who_waits_for_a_semaphore_that_is_deleted_goes_on_without_it() {
    check(|bench| {
        let semaphore = bench.semaphore_of(0, 1);
        (Call::WaitSemaphore { semaphore, until: FOREVER, at: None }, Call::DeleteSemaphore { semaphore })
    });
}

#[test]
fn who_waits_for_an_event_group_that_is_deleted_goes_on_without_it() {
    for take in [false, true] {
        check(|bench| {
            let events = bench.events_of(0);
            let wait = Call::WaitEvents { events, bits: Bits::All(5), take, until: FOREVER, at: None };
            (wait, Call::DeleteEvents { events })
        });
    }
}

#[test]
fn who_waits_for_an_exchange_that_is_deleted_goes_on_without_it() {
    check(|bench| {
        let exchange = bench.exchange_of([1; 4]);
        (Call::Fetch { exchange, until: FOREVER, at: None }, Call::DeleteExchange { exchange })
    });
}

#[test]
fn a_wait_with_a_limit_that_a_deletion_ended_does_not_time_out_any_more() {
    let mut bench = Bench::new();
    let (task, semaphore) = (bench.started(20), bench.semaphore_of(0, 1));
    bench.task(task, Call::WaitSemaphore { semaphore, until: crate::bench::at(50), at: None }, CallStatus::Blocked);
    bench.outside(Call::DeleteSemaphore { semaphore }, CallStatus::Ok);
    bench.tick(100);
    bench.came_out(task, CallStatus::NoSuchObject, 0);
}

#[test]
fn the_messages_of_an_exchange_that_is_deleted_give_their_envelopes_back() {
    let mut bench = Bench::new();
    let exchange = bench.exchange_of([2, 1, 0, 0]);
    for number in [0, 0, 1] {
        bench.outside(Call::Post { exchange, urgency: urgency(number) }, CallStatus::Ok);
    }
    assert_eq!(bench.free_envelopes(), usize::from(ENVELOPES) - 3);
    bench.outside(Call::DeleteExchange { exchange }, CallStatus::Ok);
    assert_eq!(bench.free_envelopes(), usize::from(ENVELOPES));
    bench.outside(Call::Post { exchange, urgency: urgency(0) }, CallStatus::NoSuchObject);
}

#[test]
fn a_resource_that_a_task_owns_and_a_pool_in_use_are_not_deleted() {
    let mut bench = Bench::new();
    let (task, resource, pool) = (bench.started(20), bench.resource_of(ResourceProtocol::Inherit), bench.pool_of(2));
    bench.reserves(task, resource, CallStatus::Ok);
    let buffer = bench.task(task, Call::GetBuffer { pool }, CallStatus::Ok) as u16;
    bench.outside(Call::DeleteResource { resource }, CallStatus::InUse);
    // Nor may the owner.
    bench.task(task, Call::DeleteResource { resource }, CallStatus::InUse);
    bench.outside(Call::DeletePool { pool }, CallStatus::InUse);
    bench.releases(task, resource);
    bench.task(task, Call::FreeBuffer { pool, buffer }, CallStatus::Ok);
    bench.outside(Call::DeleteResource { resource }, CallStatus::Ok);
    bench.outside(Call::DeletePool { pool }, CallStatus::Ok);
    bench.reserves(task, resource, CallStatus::NoSuchObject);
    bench.task(task, Call::GetBuffer { pool }, CallStatus::NoSuchObject);
    bench.task(task, Call::FreeBuffer { pool, buffer }, CallStatus::NoSuchObject);
}

/// The id of an object that is made in the slot of a deleted one is another; the former one stays refused.
#[test]
fn an_id_never_means_two_objects() {
    let mut bench = Bench::new();
    let task = bench.started(20);
    let first = (bench.semaphore_of(0, 3), bench.resource_of(ResourceProtocol::None), bench.events_of(0));
    let (exchange, pool) = (bench.exchange_of([1; 4]), bench.pool_of(1));
    for delete in [
        Call::DeleteSemaphore { semaphore: first.0 },
        Call::DeleteResource { resource: first.1 },
        Call::DeleteEvents { events: first.2 },
        Call::DeleteExchange { exchange },
        Call::DeletePool { pool },
    ] {
        bench.outside(delete, CallStatus::Ok);
        bench.outside(delete, CallStatus::NoSuchObject);
    }
    let second = (bench.semaphore_of(0, 3), bench.resource_of(ResourceProtocol::None), bench.events_of(0));
    let later = (bench.exchange_of([1; 4]), bench.pool_of(1));
    assert_eq!((second.0.index(), second.1.index(), second.2.index()), (0, 0, 0));
    assert_eq!((later.0.index(), later.1.index()), (0, 0));
    for refused in [
        Call::SignalSemaphore { semaphore: first.0 },
        Call::SignalEvents { events: first.2, bits: 1 },
        Call::ClearEvents { events: first.2, bits: 1 },
        Call::Post { exchange, urgency: urgency(0) },
        Call::GetBuffer { pool },
        Call::WaitSemaphore { semaphore: first.0, until: FOREVER, at: None },
        Call::Reserve { resource: first.1, until: FOREVER, at: None },
        Call::Release { resource: first.1 },
        Call::WaitEvents { events: first.2, bits: Bits::Any(1), take: true, until: FOREVER, at: None },
        Call::Fetch { exchange, until: FOREVER, at: None },
    ] {
        bench.task(task, refused, CallStatus::NoSuchObject);
    }
    assert_eq!((bench.semaphore(second.0), bench.event_bits(second.2)), (Some((0, None)), Some(0)));
    bench.reserves(task, second.1, CallStatus::Ok);
    assert_eq!(bench.owned_by(task), [second.1]);
    // An id that is still to be handed out is not valid.
    let never = 1 << 17;
    bench.call(
        By::Task(task),
        Call::SignalSemaphore { semaphore: SemaphoreId::from_number(never) },
        CallStatus::NoSuchObject,
    );
    bench.reserves(task, ResourceId::from_number(never), CallStatus::NoSuchObject);
    bench.outside(Call::ClearEvents { events: EventsId::from_number(never), bits: 0 }, CallStatus::NoSuchObject);
    bench.outside(Call::DeleteExchange { exchange: ExchangeId::from_number(never) }, CallStatus::NoSuchObject);
    bench.outside(Call::DeletePool { pool: PoolId::from_number(never) }, CallStatus::NoSuchObject);
}
