//! Calls that are refused only while parameter checks are compiled in: stale ids of tasks, and callers that are not
//! running.

use hairspring_exec_core::{By, Call, CallStatus, Ending, ResourceProtocol, TaskId, Until, Waiting};

use crate::bench::{Bench, priority, urgency};

#[test]
fn the_id_of_a_deleted_task_is_refused_by_every_call_even_when_its_slot_is_used_again() {
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
        for call in [
            Call::Trigger { task: stale },
            Call::Suspend { task: stale },
            Call::Resume { task: stale },
            Call::SetPriority { task: stale, priority: priority(1) },
            Call::Kill { task: stale },
            Call::DeleteTask { task: stale },
            Call::Wake { task: stale },
            Call::Signal { task: stale, bits: 1 },
            Call::Send { task: stale, urgency: urgency(0) },
        ] {
            bench.outside(call, CallStatus::NoSuchObject);
        }
        bench.task(stale, Call::Yield, CallStatus::NoSuchObject);
        assert_eq!(bench.look(stale), None);
    }
    let never = TaskId::from_number(u32::MAX);
    bench.outside(Call::Trigger { task: never }, CallStatus::NoSuchObject);
    bench.task(never, Call::Yield, CallStatus::NoSuchObject);
}

/// Symptom: a stale id meant a task again after 65,536 deletions of its slot. Cause: the generation went round. The
/// slot is now given up instead; here one slot goes through all its generations.
#[test]
fn an_id_never_means_two_tasks_however_often_a_slot_is_used_again() {
    let mut bench = Bench::new();
    let first = bench.idle(20);
    let mut task = first;
    for _ in 0..=u16::MAX {
        assert_eq!(task.index(), 0);
        assert_eq!(bench.apply(By::Outside, Call::DeleteTask { task }).status, CallStatus::Ok);
        task = bench.idle(20);
    }
    assert_eq!(task.index(), 1, "the slot is given up");
    bench.outside(Call::Trigger { task: first }, CallStatus::NoSuchObject);
}

#[test]
fn a_task_that_is_idle_or_waits_cannot_make_a_call() {
    let mut bench = Bench::new();
    let (idle, waiting) = (bench.idle(20), bench.started(20));
    let resource = bench.resource_of(ResourceProtocol::None);
    bench.waits(waiting);
    for task in [idle, waiting] {
        bench.task(task, Call::End { how: Ending::Returned }, CallStatus::NotStarted);
        bench.task(task, Call::Yield, CallStatus::NotStarted);
        bench.reserves(task, resource, CallStatus::NotStarted);
    }
    assert_eq!(bench.look(waiting).map(|look| look.waiting), Some(Waiting::Wake));
}
