//! Preemption thresholds, and the ends of time slices.

use hairspring_exec_core::{By, Call, CallStatus, Ending, Priority, ResourceProtocol, TaskId, Until};

use crate::bench::{Bench, priority};

const WAIT: Call = Call::Wait { until: Until::Forever };

/// Sets the threshold of a task; gives back the number of the one before.
#[track_caller]
fn set(bench: &mut Bench, task: TaskId, number: u8) -> u32 {
    bench.task(task, Call::SetThreshold { priority: priority(number) }, CallStatus::Ok)
}

#[test]
fn only_tasks_above_the_threshold_preempt_the_one_that_has_set_it() {
    let mut bench = Bench::new();
    let (low, middle, high) = (bench.started(20), bench.idle(10), bench.idle(5));
    assert_eq!(set(&mut bench, low, 10), 63, "it had none");
    bench.task(low, Call::Trigger { task: middle }, CallStatus::Ok);
    assert_eq!(bench.first(), Some(low), "an equal of the threshold waits");
    bench.task(low, Call::Trigger { task: high }, CallStatus::Ok);
    assert_eq!(bench.first(), Some(high), "a task above it preempts");
    bench.task(high, Call::End { how: Ending::Returned }, CallStatus::Ok);
    assert_eq!(bench.first(), Some(low), "it goes on before its new equals");
    assert_eq!(set(&mut bench, low, 63), 10);
    assert_eq!(bench.first(), Some(middle), "what was held off preempts now");
}

#[test]
fn a_threshold_below_the_tasks_own_priority_changes_nothing_and_a_wait_keeps_it() {
    let mut bench = Bench::new();
    let (low, middle) = (bench.started(20), bench.started(10));
    set(&mut bench, middle, 15);
    assert_eq!(bench.look(middle).map(|look| look.effective), Some(priority(10)));
    bench.task(middle, WAIT, CallStatus::Blocked);
    set(&mut bench, low, 5);
    bench.task(low, WAIT, CallStatus::Blocked);
    bench.outside(Call::Wake { task: middle }, CallStatus::Ok);
    bench.outside(Call::Wake { task: low }, CallStatus::Ok);
    assert_eq!(bench.first(), Some(low), "it is ready at its threshold");
}

#[test]
fn a_threshold_ends_with_the_run_however_that_ends() {
    for how in [Ending::Returned, Ending::Killed] {
        let mut bench = Bench::new();
        let (low, middle) = (bench.started(20), bench.idle(10));
        set(&mut bench, low, 5);
        bench.task(low, Call::Trigger { task: low }, CallStatus::Ok);
        bench.task(low, Call::End { how }, CallStatus::Ok);
        if how == Ending::Killed {
            bench.outside(Call::Trigger { task: low }, CallStatus::Ok);
        }
        bench.outside(Call::Trigger { task: middle }, CallStatus::Ok);
        assert_eq!(bench.first(), Some(middle), "after {how:?} the next run has none");
        assert_eq!(bench.look(low).map(|look| look.threshold), Some(Priority::LOWEST));
    }
}

#[test]
fn the_end_of_a_slice_puts_the_running_task_behind_its_equals_and_no_others() {
    let mut bench = Bench::new();
    let [first, second, third] = [10; 3].map(|number| bench.started(number));
    let low = bench.started(20);
    let told = bench.call(By::Kernel, Call::EndSlice, CallStatus::Ok);
    assert_eq!(TaskId::from_number(told), first);
    assert_eq!(bench.ready_tasks(), [second, third, first, low]);
    bench.task(second, WAIT, CallStatus::Blocked);
    bench.task(third, WAIT, CallStatus::Blocked);
    bench.call(By::Kernel, Call::EndSlice, CallStatus::Empty);
    assert_eq!(bench.ready_tasks(), [first, low], "without an equal it keeps the CPU");
}

#[test]
fn a_task_that_runs_above_its_own_priority_keeps_the_cpu_at_the_end_of_a_slice() {
    let mut bench = Bench::new();
    let (low, _other) = (bench.started(20), bench.started(20));
    let high = bench.idle(5);
    set(&mut bench, low, 5);
    bench.outside(Call::Trigger { task: high }, CallStatus::Ok);
    bench.call(By::Kernel, Call::EndSlice, CallStatus::Empty);
    assert_eq!(bench.first(), Some(low), "a threshold holds equals off");
    set(&mut bench, low, 63);
    bench.task(high, Call::End { how: Ending::Returned }, CallStatus::Ok);
    let resource = bench.resource_of(ResourceProtocol::Ceiling(priority(5)));
    bench.task(low, Call::Reserve { resource, until: Until::NoWait, at: None }, CallStatus::Ok);
    bench.outside(Call::Trigger { task: high }, CallStatus::Ok);
    bench.call(By::Kernel, Call::EndSlice, CallStatus::Empty);
    assert_eq!(bench.first(), Some(low), "so does a ceiling");
    let nobody = Bench::new().call(By::Kernel, Call::EndSlice, CallStatus::Empty);
    assert_eq!(nobody, 0);
}
