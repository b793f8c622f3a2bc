//! Tasks whose stacks are in memory of the program.

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hairspring_exec::{Create, ExecConfig, Inspect, Priority, RunLimit, Services, StackMemory, TaskOptions, Urgency};
use hairspring_machine::Nanos;

use crate::backends::{Bench, FOREVER, all, alone, check, panic_on_purpose, sim_and_fiber};

const BYTES: usize = 256 * 1024;

/// Memory for a stack, and where it is.
fn memory() -> (StackMemory, Range<usize>) {
    let memory = Box::leak(vec![MaybeUninit::<u8>::uninit(); BYTES].into_boxed_slice());
    let low = memory.as_ptr() as usize;
    (StackMemory::new(memory).expect("it is large enough"), low..low + BYTES)
}

/// The address of the caller's frame.
#[inline(never)]
fn here() -> usize {
    let local = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&local)) as usize
}

#[test]
fn a_task_runs_in_the_memory_that_it_was_given_start_after_start() {
    check("inside:true inside:true other:false = Finished", |bench| {
        let (memory, range) = memory();
        let options = TaskOptions::default().with_stack(memory);
        let (log, place) = (bench.log.clone(), range.clone());
        let given = bench.executive.task_with("given", Priority::HIGHEST, options, move |ctx| {
            // Over a wait, too.
            ctx.delay(Nanos::from_micros(10)).expect("nobody kills it");
            log.note(format!("inside:{}", place.contains(&here())));
        });
        let given = given.expect("few");
        bench.start("other", 60, move |ctx, log| {
            for _ in 0..2 {
                ctx.trigger(given).expect("it is there");
                ctx.wait_for_end(given, FOREVER).expect("it ends");
            }
            log.note(format!("other:{}", range.contains(&here())));
        });
    });
}

/// Writes to every page of the range, as a program would. Ends the process if one is still a guard page.
#[expect(unsafe_code, reason = "the memory is the test's again")]
fn overwrite(range: &Range<usize>) {
    for address in range.clone().step_by(512) {
        // SAFETY: leaked memory that no task has any more.
        unsafe { std::ptr::write_volatile(address as *mut u8, 0x5a) };
    }
}

#[test]
fn the_memory_is_the_programs_again_when_the_task_is_deleted_and_serves_another() {
    check("first second:true used:true = Finished", |bench| {
        let (memory, range) = memory();
        let log = bench.log.clone();
        let options = TaskOptions::default().with_stack(memory);
        let first = bench.executive.task_with("first", Priority::HIGHEST, options, move |_| log.note("first"));
        let first = first.expect("few");
        bench.executive.trigger(first).expect("it is there");
        bench.start("maker", 60, move |ctx, log| {
            ctx.wait_for_end(first, FOREVER).expect("it ends");
            ctx.delete_task(first).expect("it is idle");
            overwrite(&range);
            #[expect(unsafe_code, reason = "the memory is the test's again")]
            // SAFETY: leaked memory that no task has any more.
            let memory = unsafe { StackMemory::from_raw(range.start as *mut u8, BYTES) }.expect("it is large enough");
            let (note, place) = (log.clone(), range.clone());
            let options = TaskOptions::default().with_stack(memory);
            let second = ctx.mail_task_with("second", Priority::HIGHEST, [1; 4], options, move |_, _, deep: u32| {
                let array = std::hint::black_box([1_u8; 60_000]);
                note.note(format!("second:{}", place.contains(&here()) && array[deep as usize] == 1));
            });
            let second = second.expect("few");
            ctx.send(second, Urgency::ALL[0], 59_999).expect("there is room");
            ctx.wait_for_end(second.id(), FOREVER).expect("it ends");
            let used = ctx.stack_use(second.id()).expect("it has run");
            // Pages that the test wrote to before do not count.
            log.note(format!("used:{}", (60_000..200_000).contains(&used.used_bytes) && used.bytes < BYTES));
        });
    });
}

#[test]
fn the_memory_comes_back_with_the_executive_after_a_panic_and_from_tasks_that_never_ran() {
    let drops = Arc::new(AtomicUsize::new(0));
    for backend in all() {
        let _alone = backend.name().starts_with("thread").then(alone);
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let places: Vec<_> = ["panics", "waits", "never"]
            .into_iter()
            .map(|name| {
                let (memory, range) = memory();
                let (options, drops) = (TaskOptions::default().with_stack(memory), Arc::clone(&drops));
                let task = bench.executive.task_with(name, Priority::HIGHEST, options, move |ctx| {
                    let _counts = crate::backends::AtEnd(|| {
                        drops.fetch_add(1, Ordering::Relaxed);
                    });
                    if name == "panics" {
                        panic_on_purpose();
                    }
                    let _ = ctx.wait(FOREVER);
                });
                if name != "never" {
                    bench.executive.trigger(task.expect("few")).expect("it is there");
                }
                range
            })
            .collect();
        let stopper = bench.executive.stopper();
        bench.start("stops", 60, move |_, _| stopper.stop());
        let finish = bench.executive.run(RunLimit::For(Nanos::from_secs(20)));
        assert!(finish.mishaps.iter().any(|mishap| mishap.name == "panics"), "{finish:?}");
        drop(bench);
        places.iter().for_each(overwrite);
    }
    assert!(drops.load(Ordering::Relaxed).is_multiple_of(2) && drops.load(Ordering::Relaxed) >= 4, "both unwound");
}

/// 1,000 tasks one after another on the same memory.
#[test]
fn memory_is_used_again_as_often_as_one_likes() {
    for backend in sim_and_fiber() {
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let (memory, range) = memory();
        drop(memory);
        bench.start("maker", 60, move |ctx, _| {
            for _ in 0..1_000 {
                #[expect(unsafe_code, reason = "the memory is the test's again")]
                // SAFETY: leaked memory that no task has any more.
                let memory =
                    unsafe { StackMemory::from_raw(range.start as *mut u8, BYTES) }.expect("it is large enough");
                let options = TaskOptions::default().with_stack(memory);
                let task = ctx.task_with("short", Priority::HIGHEST, options, |_| {}).expect("the last was deleted");
                ctx.trigger(task).expect("it is there");
                ctx.wait_for_end(task, FOREVER).expect("it ends");
                ctx.delete_task(task).expect("it is idle");
            }
            overwrite(&range);
        });
        assert!(bench.executive.run(RunLimit::Forever).clean());
    }
}
