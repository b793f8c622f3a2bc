//! A fiber that overflows its stack: the process dies as it would, and its message names the task. Each child process
//! is this binary once more, with one test chosen and a word in the environment.
#![expect(unsafe_code, reason = "a test reads an address where nothing is")]

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use hairspring_exec::{Backend, ExecConfig};

use crate::backends::{Bench, FOREVER, LIMIT};

const ROLE: &str = "HAIRSPRING_OVERFLOW_TEST";

/// This test once more, in a process of its own that may die.
fn child(test: &str) -> Option<Output> {
    if std::env::var_os(ROLE).is_some() {
        return None;
    }
    let binary = std::env::current_exe().expect("its own path");
    let arguments = ["--exact", test, "--nocapture", "--test-threads=1"];
    Some(Command::new(binary).args(arguments).env(ROLE, "1").output().expect("a process"))
}

/// Recurses until the stack is full.
#[expect(unconditional_recursion, reason = "that is the point")]
fn dive(depth: u64) -> u64 {
    let ballast = std::hint::black_box([depth; 32]);
    dive(depth + 1) + std::hint::black_box(ballast)[3]
}

#[test]
fn an_overflow_is_told_with_the_task_and_the_remedy_and_ends_the_process_by_its_signal() {
    let Some(output) =
        child("overflow::an_overflow_is_told_with_the_task_and_the_remedy_and_ends_the_process_by_its_signal")
    else {
        let mut bench = Bench::new(Backend::fiber(), &ExecConfig::default());
        bench.start("innocent", 10, |ctx, _| ctx.wait(FOREVER).expect("it unwinds here"));
        bench.start("deep", 20, |_, _| {
            std::hint::black_box(dive(0));
        });
        bench.executive.run(LIMIT);
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("task T1 has overflowed its stack of 65536 bytes"), "{said}");
    assert!(said.contains("ExecConfig::stack_bytes"), "{said}");
    assert!(matches!(output.status.signal(), Some(libc::SIGSEGV | libc::SIGABRT)), "{:?}", output.status);
}

#[test]
fn any_other_bad_address_is_not_called_an_overflow() {
    let Some(output) = child("overflow::any_other_bad_address_is_not_called_an_overflow") else {
        let mut bench = Bench::new(Backend::fiber(), &ExecConfig::default());
        bench.start("bad", 20, |_, _| {
            let nowhere = std::hint::black_box(std::ptr::without_provenance::<u64>(64));
            // SAFETY: none: the process is to die of it, which is what the parent looks at.
            std::hint::black_box(unsafe { nowhere.read_volatile() });
        });
        bench.executive.run(LIMIT);
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("overflowed"), "{said}");
    assert_eq!(output.status.signal(), Some(libc::SIGSEGV), "{said}");
}

#[test]
fn after_a_run_an_overflow_of_the_programs_own_stack_is_not_blamed_on_a_task() {
    let Some(output) = child("overflow::after_a_run_an_overflow_of_the_programs_own_stack_is_not_blamed_on_a_task")
    else {
        let mut bench = Bench::new(Backend::fiber(), &ExecConfig::default());
        bench.start("brief", 20, |_, _| {});
        bench.executive.run(LIMIT);
        std::hint::black_box(dive(0));
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!said.contains("task T"), "{said}");
    assert!(output.status.signal().is_some(), "{:?}", output.status);
}
