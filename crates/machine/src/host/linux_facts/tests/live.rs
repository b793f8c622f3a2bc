//! The machine that runs the tests.

use super::super::{Root, clocksource, counters_steal_and_interrupts, cpu_flags, read};
use super::check_form;

#[test]
fn the_machine_under_the_tests_tells_its_facts() {
    let root = Root::default();
    let facts = read(&root);
    check_form(&facts);
    // Facts that every Linux with /proc gives.
    for id in ["kernel.release", "kernel.version", "load.uptime", "limits.rtprio", "limits.cap_sys_nice"] {
        assert!(facts.value(id).is_some(), "{id}: {:?}", facts.facts.iter().find(|fact| fact.id == id));
    }
}

#[test]
fn the_thread_of_this_test_is_in_the_table_or_the_table_is_cut() {
    let facts = read(&Root::default());
    let own = facts.threads.iter().any(|thread| thread.pid == std::process::id());
    assert!(own || facts.threads_unread.is_some());
    assert!(!facts.threads.is_empty() || facts.threads_unread.is_some());
}

#[test]
fn counters_of_this_machine_do_not_run_backwards() {
    let root = Root::default();
    match (counters_steal_and_interrupts(&root, 0), counters_steal_and_interrupts(&root, 0)) {
        (Ok(before), Ok(after)) => {
            assert!(before.0 <= after.0, "steal");
            // A single 32-bit row may have wrapped in between.
            assert!(before.1 <= after.1 || before.1 - after.1 > u64::from(u32::MAX) / 2, "interrupts");
        }
        // A container may hide them.
        (before, after) => {
            let mut reasons = [before.err(), after.err()].into_iter().flatten();
            assert!(reasons.all(|unread| !unread.reason.is_empty()));
        }
    }
}

#[test]
fn clock_source_and_flags_are_words_or_reasons() {
    let root = Root::default();
    match clocksource(&root) {
        Ok(name) => assert!(!name.is_empty() && !name.contains(char::is_whitespace)),
        Err(unread) => assert!(!unread.reason.is_empty()),
    }
    match cpu_flags(&root) {
        Ok(flags) => assert!(!flags.is_empty()),
        Err(unread) => assert!(!unread.reason.is_empty()),
    }
}
