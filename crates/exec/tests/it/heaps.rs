//! Heaps: blocks of any size, the order in which tasks get them, and their release when tasks are killed.
#![expect(unsafe_code, reason = "blocks by their addresses, as callers in C have them")]

use hairspring_exec::errors::{BlockError, BlockWaitError, CreateError, InUseError, ParcelError};
use hairspring_exec::{
    Backend, Create, ExecConfig, Executive, HEAP_UNIT_BYTES, Heap, HeapMemory, HeapOrder, HeapParcel, HeapUse, Limit,
    MOST_BLOCKS, Services,
};
use hairspring_machine::Nanos;

use crate::backends::{Bench, FOREVER, LIMIT, ROOM, check, check_with, micros, nth, sim, urgency};

fn heap(bench: &Bench, bytes: usize, order: HeapOrder) -> Heap {
    bench.executive.heap(HeapMemory::allocate(bytes), 16, order).expect("few objects")
}

#[test]
fn blocks_have_the_size_that_was_asked_for_and_keep_what_is_written_into_them() {
    check("16 112 apart:true Err(Empty) Err(TooLarge) 7 = Finished", |bench| {
        let heap = heap(bench, 128, HeapOrder::Arrival);
        bench.start("task", 20, move |ctx, log| {
            let mut first = heap.try_get(ctx, 0).expect("all is free");
            let mut second = heap.get(ctx, 97, FOREVER).expect("it fits");
            (first[15], second[111]) = (7, 8);
            log.note(first.len());
            log.note(second.len());
            let ends = (first.as_ptr() as usize, second.as_ptr() as usize);
            log.note(format!("apart:{}", ends.0.abs_diff(ends.1) >= 16 && ends.0.is_multiple_of(HEAP_UNIT_BYTES)));
            log.note(format!("{:?}", heap.try_get(ctx, 1).map(drop)));
            log.note(format!("{:?}", heap.try_get(ctx, 129).map(drop)));
            drop(second);
            // A block holds the contents that its last user left.
            drop(first);
            let whole = heap.try_get(ctx, 128).expect("they are one again");
            log.note(whole[15]);
        });
    });
}

#[test]
fn tasks_wait_in_the_order_of_the_heap_and_the_first_gets_its_block_before_any_that_wants_less() {
    for (order, expected) in [
        (HeapOrder::Arrival, "passes:Err(Empty) free low:96 high:48 = Finished"),
        (HeapOrder::Priority, "passes:Err(Empty) free high:48 low:96 = Finished"),
    ] {
        check(expected, |bench| {
            let heap = heap(bench, 128, order);
            let (one, two, three) = (heap.clone(), heap.clone(), heap.clone());
            bench.start("owner", 10, move |ctx, log| {
                let block = one.try_get(ctx, 112).expect("all is free");
                ctx.wait(FOREVER).expect("both wait for it");
                log.tell("passes", one.try_get(ctx, 16).map(drop));
                log.note("free");
                drop(block);
            });
            bench.start("low", 30, move |ctx, log| {
                let block = two.get(ctx, 96, FOREVER).expect("it is freed");
                log.note(format!("low:{}", block.len()));
                ctx.delay(micros(100)).expect("nobody breaks it off");
            });
            bench.start("high", 20, move |ctx, log| {
                ctx.wait(FOREVER).expect("the other waits for a block");
                let block = three.get(ctx, 48, FOREVER).expect("it is freed");
                log.note(format!("high:{}", block.len()));
            });
            // It runs when all others wait.
            bench.start("waker", 40, move |ctx, _| {
                for task in [2, 0] {
                    ctx.wake(nth(task)).expect("it waits");
                }
            });
        });
    }
}

#[test]
fn a_wait_for_a_block_ends_by_its_limit_by_another_task_and_never_begins_for_more_than_there_is() {
    check("no:Err(TimedOut) large:Err(TooLarge) late:Err(TimedOut) off:Err(Cancelled) = Finished", |bench| {
        let heap = heap(bench, 64, HeapOrder::Priority);
        let theirs = heap.clone();
        bench.start("owner", 10, move |ctx, _| {
            let _block = theirs.try_get(ctx, 64).expect("all is free");
            ctx.wait(FOREVER).expect("the last wait is next");
            while !ctx.cancel_wait(nth(1)).expect("it is in a run") {
                ctx.delay(micros(50)).expect("nobody breaks it off");
            }
        });
        bench.start("waits", 20, move |ctx, log| {
            log.tell("no", heap.get(ctx, 1, Limit::NoWait).map(drop));
            log.tell("large", heap.get(ctx, 65, FOREVER).map(drop));
            log.tell("late", heap.get(ctx, 1, Limit::For(micros(50))).map(drop));
            ctx.wake(nth(0)).expect("it waits");
            log.tell("off", heap.get(ctx, 1, FOREVER).map(drop));
        });
    });
}

#[test]
fn a_task_that_is_killed_while_it_waits_or_while_it_owns_a_block_loses_none() {
    check("waits owner free:128 blocks:0 = Finished waits:Killed owner:Killed", |bench| {
        let heap = heap(bench, 128, HeapOrder::Priority);
        let (one, two) = (heap.clone(), heap.clone());
        bench.start("owner", 20, move |ctx, log| {
            let _block = one.try_get(ctx, 64).expect("all is free");
            let _noted = log.on_drop("owner");
            ctx.wait(FOREVER).expect("it is killed");
        });
        bench.start("waits", 21, move |ctx, log| {
            let _noted = log.on_drop("waits");
            let _block = two.get(ctx, 128, FOREVER).expect("it is killed");
        });
        bench.start("killer", 30, move |ctx, log| {
            for task in [1, 0] {
                ctx.kill(nth(task)).expect("it waits");
                ctx.wait_for_end(nth(task), FOREVER).expect("it unwinds");
            }
            let usage = heap.usage(ctx).expect("it exists");
            log.note(format!("free:{}", usage.free_bytes));
            log.note(format!("blocks:{}", usage.blocks));
        });
    });
}

#[test]
fn a_block_that_was_granted_to_a_task_that_is_killed_before_it_runs_goes_to_the_next() {
    check("next:64 = Finished first:Killed", |bench| {
        let heap = heap(bench, 64, HeapOrder::Priority);
        let (one, two, three) = (heap.clone(), heap.clone(), heap.clone());
        bench.start("first", 20, move |ctx, _| {
            let _block = one.get(ctx, 64, FOREVER).expect("it is killed");
        });
        bench.start("next", 21, move |ctx, log| {
            let block = two.get(ctx, 64, FOREVER).expect("the other was killed");
            log.note(format!("next:{}", block.len()));
        });
        bench.start("owner", 10, move |ctx, _| {
            let block = three.try_get(ctx, 64).expect("all is free");
            ctx.delay(micros(200)).expect("nobody breaks it off");
            // The first is granted the block, does not run yet, and is killed.
            drop(block);
            ctx.kill(nth(0)).expect("it is in a run");
        });
    });
}

#[test]
fn a_heap_is_whole_however_often_a_task_is_killed_while_it_waits_for_blocks() {
    // On threads the kill comes at any instruction: also after the block was granted, and before the task has it.
    check_with(&ExecConfig::default(), "lost:0 Asked", |bench| {
        const KILLS: u64 = 200;
        let heap = heap(bench, 128, HeapOrder::Priority);
        let (mine, theirs) = (heap.clone(), heap.clone());
        let victim = bench.task("victim", 20, move |ctx, _| {
            loop {
                let first = mine.get(ctx, 80, FOREVER);
                // There is none, so it waits for nothing but time.
                let second = mine.get(ctx, 80, Limit::For(micros(10)));
                drop((second, first));
            }
        });
        bench.start("killer", 10, move |ctx, _| {
            for number in 0.. {
                // At another point of the victim's loop each time, and at times with the memory in use.
                ctx.delay(Nanos::new(30_000 + number * 7_919 % 20_011)).expect("it unwinds with the run");
                let block = theirs.try_get(ctx, 64);
                ctx.kill(victim).expect("it exists");
                drop(block);
            }
        });
        bench.start("starts", 30, move |ctx, log| {
            let mut lost = 0;
            for _ in 0..KILLS {
                // Runs until it is killed.
                ctx.trigger(victim).expect("it is idle");
                ctx.wait_for_end(victim, FOREVER).expect("it is killed");
                lost += usize::from(heap.try_get(ctx, 128).is_err());
            }
            log.note(format!("lost:{lost}"));
            ctx.stop();
        });
        let finish = bench.executive.run(LIMIT);
        bench.log.note(format!("{:?}", finish.stopped));
    });
}

#[test]
fn a_parcel_carries_a_block_to_another_task_and_is_opened_once_with_its_own_heap() {
    check("sent 48:5 again:Err(NotInUse) foreign:Err(NotInUse) all:true = Finished", |bench| {
        let (mine, other) = (heap(bench, 64, HeapOrder::Arrival), heap(bench, 64, HeapOrder::Arrival));
        let sends = mine.clone();
        let mailbox = bench.mail_task::<HeapParcel>("receiver", 20, ROOM, move |ctx, log, _, parcel| {
            let block = mine.open(ctx, parcel).expect("it has just come");
            log.note(format!("{}:{}", block.len(), block[47]));
            log.tell("again", mine.open(ctx, parcel).map(drop));
            log.tell("foreign", other.open(ctx, parcel).map(drop));
            drop(block);
            log.note(format!("all:{}", mine.try_get(ctx, 64).is_ok()));
        });
        bench.start("sender", 10, move |ctx, log| {
            let mut block = sends.try_get(ctx, 40).expect("all is free");
            block[47] = 5;
            ctx.send(mailbox, urgency(0), block.into_parcel()).expect("there is room");
            log.note("sent");
        });
    });
}

#[test]
fn a_second_free_and_an_address_of_no_block_are_refused_and_change_nothing() {
    let expected = "Ok(()) second:Err(NotInUse) inside:Err(NotInUse) foreign:Err(NotInUse) free:Err(NotInUse) \
                    before:Err(NotInUse) behind:Err(NotInUse) bytes:Some(48) none:None used:1 = Finished";
    check(expected, |bench| {
        let heap = heap(bench, 128, HeapOrder::Arrival);
        bench.start("task", 20, move |ctx, log| {
            let (gone, kept) =
                (heap.try_get_raw(ctx, 16).expect("free"), heap.get_raw(ctx, 40, FOREVER).expect("free"));
            // SAFETY: no task uses the blocks, and those that are named wrongly are refused.
            let free = |block: *mut u8| unsafe { heap.free_raw(ctx, block) };
            log.note(format!("{:?}", free(gone)));
            log.tell("second", free(gone));
            log.tell("inside", free(kept.wrapping_add(16)));
            log.tell("foreign", free(kept.wrapping_add(1)));
            log.tell("free", free(kept.wrapping_add(48)));
            log.tell("before", free(gone.wrapping_sub(16)));
            log.tell("behind", free(gone.wrapping_add(128)));
            log.tell("bytes", heap.block_bytes(ctx, kept));
            log.tell("none", heap.block_bytes(ctx, gone));
            log.note(format!("used:{}", heap.usage(ctx).expect("it exists").blocks));
        });
    });
}

#[test]
fn a_heap_in_use_is_not_deleted_also_not_while_tasks_wait_and_a_deleted_one_is_refused_everywhere() {
    let expected = "used:Err(InUse) waits:true given:Ok(()) again:Err(NoSuchObject) try:Err(NoSuchObject) \
                    get:Err(NoSuchObject) raw:Err(NoSuchObject) = Finished";
    check(expected, |bench| {
        let heap = heap(bench, 64, HeapOrder::Arrival);
        let theirs = heap.clone();
        bench.start("deletes", 20, move |ctx, log| {
            let block = heap.try_get(ctx, 64).expect("all is free");
            ctx.delay(micros(100)).expect("nobody breaks it off");
            log.tell("used", heap.delete(ctx));
            drop(block);
            ctx.delay(micros(100)).expect("nobody breaks it off");
            log.tell("given", heap.delete(ctx));
            log.tell("again", heap.delete(ctx));
            log.tell("try", heap.try_get(ctx, 1).map(drop));
            log.tell("get", heap.get(ctx, 1, FOREVER).map(drop));
            // SAFETY: it is refused.
            log.tell(
                "raw",
                unsafe { heap.free_raw(ctx, heap.try_get_raw(ctx, 1).unwrap_or(std::ptr::null_mut())) }
                    .map_err(|_| BlockError::NoSuchObject),
            );
            assert_eq!(heap.usage(ctx), None);
        });
        bench.start("waits", 30, move |ctx, log| {
            log.note(format!("waits:{}", theirs.get(ctx, 16, FOREVER).is_ok()));
        });
    });
}

#[test]
fn a_heap_lies_in_memory_of_the_program_and_its_handles_are_good_for_one_executive() {
    let memory: &'static mut [u8] = Box::leak(vec![3_u8; 100].into_boxed_slice());
    let range = memory.as_ptr_range();
    let memory = HeapMemory::new(&mut memory[1..]);
    assert!((64..100).contains(&memory.bytes()) && memory.bytes().is_multiple_of(16));
    let bytes = memory.bytes();
    let mut here = Executive::new(sim(), &ExecConfig::default()).expect("no threads");
    let there = Executive::new(Backend::fiber(), &ExecConfig::default()).expect("no threads");
    let heap = here.heap(memory, 4, HeapOrder::Arrival).expect("few objects");
    let block = heap.try_get(&here, bytes).expect("all is free");
    assert!(range.contains(&block.as_ptr()) && range.contains(&(&raw const block[bytes - 1])));
    assert!(block.as_ptr().addr().is_multiple_of(16) && block.iter().all(|&byte| byte == 3));
    let usage = heap.usage(&here);
    let expected = HeapUse { bytes, free_bytes: 0, largest_bytes: 0, least_free_bytes: 0, blocks: 1, most_blocks: 4 };
    assert_eq!((usage, heap.usage(&there)), (Some(expected), None));
    drop(block);
    assert_eq!(heap.try_get(&there, 1).map(drop), Err(BlockError::NoSuchObject));
    assert_eq!(heap.delete(&there), Err(InUseError::NoSuchObject));
    let parcel = heap.try_get(&here, 1).expect("all is free").into_parcel();
    assert_eq!(heap.open(&there, parcel).map(drop), Err(ParcelError::NoSuchObject));
    assert!(heap.open(&here, parcel).is_ok());
    let other = heap.clone();
    here.task("task", hairspring_exec::Priority::LOWEST, move |ctx| drop(other.get(ctx, 1, FOREVER))).expect("few");
    here.trigger(nth(0)).expect("it is idle");
    assert!(here.run(LIMIT).clean());
    assert_eq!(heap.usage(&here).map(|usage| usage.free_bytes), Some(bytes));
    assert_eq!(heap.delete(&here), Ok(()));
}

#[test]
fn a_heap_for_too_many_blocks_is_refused_and_one_for_none_gives_none() {
    check("wait:Err(TooLarge) = Finished", |bench| {
        let most = usize::from(MOST_BLOCKS);
        for blocks in [most + 1, usize::MAX] {
            let made = bench.executive.heap(HeapMemory::allocate(64), blocks, HeapOrder::Arrival);
            assert_eq!(made.map(drop), Err(CreateError::Overflow));
        }
        let none = bench.executive.heap(HeapMemory::allocate(0), most, HeapOrder::Arrival).expect("few objects");
        bench.start("task", 20, move |ctx, log| {
            assert_eq!(none.get(ctx, 0, FOREVER).map(drop), Err(BlockWaitError::TooLarge));
            log.tell("wait", none.get(ctx, usize::MAX, FOREVER).map(drop));
        });
    });
}
