//! Heaps: blocks of any size, and the order in which tasks get them.

use hairspring_exec_core::{
    By, Call, CallStatus, Core, Ending, HeapId, MOST_BLOCKS, MOST_UNITS, Priority, TaskId, Until, Waiting,
};

use crate::bench::{Bench, at, priority};

fn wait(heap: HeapId, units: u32) -> Call {
    wait_at(heap, units, None)
}

fn wait_at(heap: HeapId, units: u32, at: Option<Priority>) -> Call {
    Call::WaitBlock { heap, units, until: Until::Forever, at }
}

/// A heap of 8 units of which a task has 6, at the unit that is returned.
fn nearly_full(bench: &mut Bench) -> (HeapId, TaskId, u32) {
    let (heap, owner) = (bench.heap_of(8, 8), bench.started(30));
    let first = bench.outside(Call::GetBlock { heap, units: 6 }, CallStatus::Ok);
    (heap, owner, first)
}

#[test]
fn blocks_of_any_size_do_not_overlap_and_neighbours_become_one_again() {
    let mut bench = Bench::new();
    let heap = bench.heap_of(10, 4);
    let firsts = [3, 4, 3].map(|units| bench.outside(Call::GetBlock { heap, units }, CallStatus::Ok));
    assert_eq!(firsts, [0, 3, 7]);
    bench.outside(Call::GetBlock { heap, units: 1 }, CallStatus::Empty);
    bench.outside(Call::FreeBlock { heap, first: 0 }, CallStatus::Ok);
    bench.outside(Call::FreeBlock { heap, first: 7 }, CallStatus::Ok);
    bench.outside(Call::GetBlock { heap, units: 4 }, CallStatus::Empty);
    bench.outside(Call::FreeBlock { heap, first: 3 }, CallStatus::Ok);
    assert_eq!(bench.outside(Call::GetBlock { heap, units: 10 }, CallStatus::Ok), 0);
    let usage = bench.heap_usage(heap).expect("it exists");
    assert_eq!((usage.free, usage.least_free, usage.blocks, bench.block_units(heap, 0)), (0, 0, 1, Some(10)));
}

#[test]
fn a_block_that_is_freed_twice_or_was_never_given_is_refused_and_nothing_changes() {
    let mut bench = Bench::new();
    let (heap, _, first) = nearly_full(&mut bench);
    let before = bench.heap_usage(heap);
    for other in [first + 1, 6, 7, 8, u32::MAX] {
        bench.outside(Call::FreeBlock { heap, first: other }, CallStatus::NotInUse);
    }
    assert_eq!(bench.heap_usage(heap), before);
    bench.outside(Call::FreeBlock { heap, first }, CallStatus::Ok);
    bench.outside(Call::FreeBlock { heap, first }, CallStatus::NotInUse);
}

#[test]
fn requests_that_no_free_can_meet_are_refused_at_once() {
    let mut bench = Bench::new();
    let (heap, none, task) = (bench.heap_of(8, 1), bench.heap_of(8, 0), bench.started(20));
    bench.task(task, wait(heap, 9), CallStatus::TooLarge);
    bench.task(task, wait(none, 1), CallStatus::TooLarge);
    bench.outside(Call::CreateHeap { units: MOST_UNITS + 1, blocks: 1 }, CallStatus::Overflow);
    bench.outside(Call::CreateHeap { units: 1, blocks: MOST_BLOCKS + 1 }, CallStatus::Overflow);
    // No invariants are checked of the largest heap: it has 128 MiB of records.
    let largest = Core::new(1, ()).apply(By::Outside, Call::CreateHeap { units: MOST_UNITS, blocks: MOST_BLOCKS });
    assert_eq!(largest.status, CallStatus::Ok);
    // One block is all that may be in use.
    bench.task(task, Call::GetBlock { heap, units: 1 }, CallStatus::Ok);
    bench.task(task, Call::GetBlock { heap, units: 1 }, CallStatus::Empty);
}

#[test]
fn the_first_in_line_gets_its_block_before_any_that_wants_less() {
    let mut bench = Bench::new();
    let (heap, owner, first) = nearly_full(&mut bench);
    let (much, little) = (bench.started(10), bench.started(20));
    bench.task(much, wait(heap, 7), CallStatus::Blocked);
    // Two units are free, but another task stands before it.
    bench.outside(Call::GetBlock { heap, units: 1 }, CallStatus::Empty);
    bench.task(little, wait(heap, 2), CallStatus::Blocked);
    bench.task(owner, Call::FreeBlock { heap, first }, CallStatus::Ok);
    bench.runs(much);
    bench.came_out(much, CallStatus::Ok, 0);
    let taken = bench.task(much, Call::TakeBlock, CallStatus::Ok);
    assert_eq!((taken, bench.line(Waiting::Block(0, 0))), (0, vec![little]));
    bench.task(much, Call::FreeBlock { heap, first: taken }, CallStatus::Ok);
    assert_eq!(bench.granted_block(little), Some((heap, 0)));
}

#[test]
fn a_more_urgent_task_passes_the_line_and_one_that_gives_the_same_priority_does_not() {
    let mut bench = Bench::new();
    let (heap, _, _) = nearly_full(&mut bench);
    let (waits, urgent) = (bench.started(20), bench.started(10));
    bench.waits(urgent);
    bench.task(waits, wait_at(heap, 7, Some(priority(20))), CallStatus::Blocked);
    bench.outside(Call::Wake { task: urgent }, CallStatus::Ok);
    bench.task(
        urgent,
        Call::WaitBlock { heap, units: 1, until: Until::NoWait, at: Some(priority(20)) },
        CallStatus::TimedOut,
    );
    bench.task(urgent, wait(heap, 1), CallStatus::Ok);
    bench.task(urgent, Call::TakeBlock, CallStatus::Ok);
    bench.task(urgent, Call::TakeBlock, CallStatus::Empty);
}

#[test]
fn the_next_in_line_is_served_when_the_first_leaves_or_another_becomes_first() {
    for how in 0..4 {
        let mut bench = Bench::new();
        let (heap, _, _) = nearly_full(&mut bench);
        let (much, little) = (bench.started(10), bench.started(20));
        let until = if how == 0 { at(50) } else { Until::Forever };
        bench.task(much, Call::WaitBlock { heap, units: 7, until, at: None }, CallStatus::Blocked);
        bench.task(little, wait(heap, 2), CallStatus::Blocked);
        match how {
            0 => drop(bench.tick(50)),
            1 => drop(bench.outside(Call::Cancel { task: much }, CallStatus::Ok)),
            2 => drop(bench.outside(Call::Kill { task: much }, CallStatus::Ok)),
            _ => drop(bench.outside(Call::SetPriority { task: little, priority: priority(5) }, CallStatus::Ok)),
        }
        assert_eq!(bench.granted_block(little), Some((heap, 6)), "way {how}");
        let out = [CallStatus::TimedOut, CallStatus::Cancelled, CallStatus::Killed];
        if let Some(&status) = out.get(how) {
            bench.came_out(much, status, 0);
        }
    }
}

#[test]
fn a_block_that_was_granted_and_not_taken_goes_back_at_the_end_of_the_run() {
    for how in [Ending::Returned, Ending::Killed, Ending::Panicked] {
        let mut bench = Bench::new();
        let (heap, _, first) = nearly_full(&mut bench);
        let (task, next) = (bench.started(10), bench.started(20));
        bench.task(task, wait(heap, 8), CallStatus::Blocked);
        bench.outside(Call::FreeBlock { heap, first }, CallStatus::Ok);
        // A block that was granted and not taken cannot be freed.
        bench.outside(Call::FreeBlock { heap, first: 0 }, CallStatus::NotInUse);
        bench.outside(Call::DeleteHeap { heap }, CallStatus::InUse);
        if how == Ending::Killed {
            bench.outside(Call::Kill { task }, CallStatus::Ok);
        }
        bench.task(next, wait(heap, 8), CallStatus::Blocked);
        bench.task(task, Call::End { how }, CallStatus::Ok);
        assert_eq!((bench.granted_block(task), bench.granted_block(next)), (None, Some((heap, 0))), "{how:?}");
    }
}

#[test]
fn another_wait_returns_a_block_that_was_not_taken() {
    let mut bench = Bench::new();
    let (heap, task) = (bench.heap_of(8, 2), bench.started(10));
    bench.task(task, wait(heap, 8), CallStatus::Ok);
    bench.task(task, wait(heap, 8), CallStatus::Ok);
    bench.task(task, Call::TakeBlock, CallStatus::Ok);
}

#[test]
fn a_heap_in_use_is_not_deleted_and_a_deleted_one_is_refused_everywhere() {
    let mut bench = Bench::new();
    let (heap, owner, first) = nearly_full(&mut bench);
    let waits = bench.started(10);
    bench.task(waits, wait(heap, 8), CallStatus::Blocked);
    bench.outside(Call::DeleteHeap { heap }, CallStatus::InUse);
    bench.outside(Call::Cancel { task: waits }, CallStatus::Ok);
    bench.outside(Call::FreeBlock { heap, first }, CallStatus::Ok);
    bench.outside(Call::DeleteHeap { heap }, CallStatus::Ok);
    let later = bench.heap_of(8, 8);
    assert_eq!((later.index(), bench.heap_usage(heap), bench.block_units(heap, 0)), (heap.index(), None, None));
    for call in [Call::GetBlock { heap, units: 1 }, Call::FreeBlock { heap, first: 0 }, Call::DeleteHeap { heap }] {
        bench.outside(call, CallStatus::NoSuchObject);
    }
    bench.call(By::Task(owner), wait(heap, 1), CallStatus::NoSuchObject);
}
