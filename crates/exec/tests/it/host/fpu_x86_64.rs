//! Floating-point control words: each task that asks has its own, a run begins with the carrier's, whatever task
//! switched to it.
#![expect(unsafe_code, reason = "control words are set in assembly")]

use hairspring_machine::Nanos;
use std::arch::asm;

use hairspring_exec::{Create, ExecConfig, Services};

use crate::backends::{Bench, FOREVER, sim_and_fiber};

/// MXCSR and the x87 control word.
type Words = (u32, u16);

/// Sticky flags of MXCSR, which calculations set.
const FLAGS: u32 = 0x3f;
const SWITCHES: u32 = 5_000;

fn read() -> Words {
    let (mut mxcsr, mut x87) = (0_u32, 0_u16);
    // SAFETY: both instructions only store, in full, to the locals whose addresses they are given.
    unsafe {
        asm!("stmxcsr [{}]", "fnstcw [{}]", in(reg) &raw mut mxcsr, in(reg) &raw mut x87, options(nostack, preserves_flags));
    }
    (mxcsr & !FLAGS, x87)
}

fn set((mxcsr, x87): Words) {
    // SAFETY: the words are the default ones but for their rounding mode; the tests compute nothing while they are in
    // force.
    unsafe {
        asm!("ldmxcsr [{}]", "fldcw [{}]", in(reg) &raw const mxcsr, in(reg) &raw const x87, options(nostack, preserves_flags, readonly));
    }
}

/// The default words with another rounding mode: 0 nearest, 1 down, 2 up, 3 to zero.
fn rounding(default: Words, mode: u16) -> Words {
    (default.0 & !0x6000 | u32::from(mode) << 13, default.1 & !0x0c00 | mode << 10)
}

#[test]
fn every_fiber_finds_its_own_words_after_thousands_of_switches() {
    for backend in sim_and_fiber() {
        let name = backend.name();
        let default = read();
        let mut bench = Bench::new(backend, &ExecConfig::default());
        for mode in 0..4_u16 {
            bench.start("peer", 20, move |ctx, _| {
                assert_eq!(read(), default, "a run begins with the default");
                ctx.keep_control_words();
                let mine = rounding(default, mode);
                set(mine);
                for _ in 0..SWITCHES {
                    ctx.yield_now();
                    assert_eq!(read(), mine);
                }
            });
        }
        let finish = bench.executive.run(crate::backends::LIMIT);
        assert!(finish.clean(), "on {name}: {:?}", finish.mishaps);
        assert_eq!(read(), default, "the carrier has its own back, on {name}");
    }
}

#[test]
fn a_task_that_preempts_one_with_other_words_begins_with_the_default() {
    // Symptom: a task that was started for the first time by one that had set its rounding mode began with that mode,
    // and with it all its later runs.
    for backend in sim_and_fiber() {
        let name = backend.name();
        let default = read();
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let mut runs = 0_u16;
        let high = bench.task("high", 10, move |ctx, log| {
            assert_eq!(read(), default, "in run {runs}");
            ctx.keep_control_words();
            set(rounding(default, 1 + runs % 3));
            runs += 1;
            if runs == 1_000 {
                log.note("high");
            }
        });
        bench.start("low", 20, move |ctx, log| {
            let mine = rounding(default, 3);
            ctx.keep_control_words();
            set(mine);
            for _ in 0..1_000 {
                ctx.trigger(high).expect("it is idle");
                assert_eq!(read(), mine);
            }
            log.note("low");
        });
        bench.run();
        assert_eq!(bench.log.text(), "high low = Finished", "on {name}");
        assert_eq!(read(), default, "on {name}");
    }
}

#[test]
fn words_survive_a_wait_and_the_next_run_begins_afresh() {
    for backend in sim_and_fiber() {
        let name = backend.name();
        let default = read();
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let waiter = bench.start("waiter", 10, move |ctx, _| {
            ctx.keep_control_words();
            for mode in 1..4 {
                assert_eq!(read() == default, mode == 1);
                let mine = rounding(default, mode);
                set(mine);
                ctx.wait(FOREVER).expect("it comes");
                assert_eq!(read(), mine);
            }
        });
        bench.start("waker", 20, move |ctx, _| {
            ctx.keep_control_words();
            set(rounding(default, 2));
            for _ in 0..2 {
                for _ in 0..3 {
                    ctx.wake(waiter).expect("it waits");
                }
                ctx.trigger(waiter).expect("it is idle");
                assert_eq!(read(), rounding(default, 2));
            }
            for _ in 0..3 {
                ctx.wake(waiter).expect("it waits");
            }
        });
        let finish = bench.executive.run(crate::backends::LIMIT);
        assert!(finish.clean(), "on {name}: {:?}", finish.mishaps);
    }
}

#[test]
fn procedures_find_the_default_and_leave_the_interrupted_tasks_words_alone() {
    // Symptom: a task that rounded down ran the timer and interrupt procedures that came in its calls with its own
    // words, and found theirs after.
    for backend in sim_and_fiber() {
        let name = backend.name();
        let default = read();
        let mut bench = Bench::new(backend, &ExecConfig::default());
        let check = move |log: &crate::backends::Log, who: &str| {
            log.note(format!("{who}:{}", read() == default));
            set(rounding(default, 2));
        };
        let log = bench.log.clone();
        let timer = bench.executive.timer("timer", move |_, _| check(&log, "timer")).expect("few objects");
        let isp = bench.isp(move |_, log| check(log, "isp"));
        let log = bench.log.clone();
        let raw =
            bench.executive.attach_raw("raw", hairspring_exec::InterruptSource::Software, move |_| check(&log, "raw"));
        let raw = raw.expect("software needs nothing");
        bench.start("task", 20, move |ctx, log| {
            let mine = rounding(default, 1);
            ctx.keep_control_words();
            set(mine);
            ctx.start_timer(timer, ctx.now()).expect("it exists");
            ctx.preempt_point();
            isp.post().expect("the ring is empty");
            ctx.yield_now();
            raw.post().expect("the ring is empty");
            ctx.preempt_point();
            log.note(format!("task:{}", read() == mine));
            // While no task runs they come on the carrier's own stack.
            ctx.start_timer(timer, ctx.now() + Nanos::new(1_000_000)).expect("it exists");
            ctx.delay(crate::backends::micros(2_000)).expect("nobody kills it");
            log.note(format!("task:{}", read() == mine));
            ctx.stop();
        });
        bench.run();
        let expected = "timer:true isp:true raw:true task:true timer:true task:true = Asked";
        assert_eq!(bench.log.text(), expected, "on {name}");
        assert_eq!(read(), default, "on {name}");
    }
}
