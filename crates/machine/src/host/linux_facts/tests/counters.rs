//! Steal and interrupts of one CPU, and the two questions that decide whether the TSC is trusted.

use super::super::{clocksource, counters_steal_and_interrupts, cpu_flags};
use super::tree::Tree;
use super::{virtual_machine, workstation};

#[test]
fn interrupts_of_a_cpu_are_its_column_without_what_is_counted_elsewhere() {
    let tree = workstation::tree();
    assert_eq!(counters_steal_and_interrupts(&tree.root(), 0).unwrap(), (0, 1 + 3 + 10_000 + 70));
    assert_eq!(counters_steal_and_interrupts(&tree.root(), 1).unwrap(), (0, 200 + 4 + 20_000 + 80));
}

/// A CPU that is offline has no column, so that the place of a column is not the number of its CPU.
#[test]
fn columns_are_found_by_name() {
    let tree = Tree::empty().file("proc/stat", "cpu  0 0 0 0 0 0 0 9\ncpu3 1 2 3 4 5 6 7 8 9 10\n").file(
        "proc/interrupts",
        "      CPU0  CPU3\nLOC:     5      6   Local timer interrupts\nIPI0:    7     8   Rescheduling interrupts\nErr:   0\n",
    );
    assert_eq!(counters_steal_and_interrupts(&tree.root(), 3).unwrap(), (8, 14));
    let unread = counters_steal_and_interrupts(&tree.root(), 1).unwrap_err();
    assert_eq!(tree.without_path(&unread.reason), "/proc/stat: no steal time of CPU 1");
}

/// With one CPU the error count of the whole machine looks like a column.
#[test]
fn the_error_count_is_no_interrupt_of_a_single_cpu() {
    let tree = Tree::empty()
        .file("proc/stat", "cpu0 0 0 0 0 0 0 0 0\n")
        .file("proc/interrupts", "  CPU0\nLOC: 5 Local timer interrupts\nERR: 1000\nMIS: 1000\n");
    assert_eq!(counters_steal_and_interrupts(&tree.root(), 0).unwrap(), (0, 5));
}

#[test]
fn a_kernel_without_a_steal_column_has_none_rather_than_zero() {
    let tree = Tree::empty().file("proc/stat", "cpu0 1 2 3 4 5 6 7\n").file("proc/interrupts", workstation::INTERRUPTS);
    let unread = counters_steal_and_interrupts(&tree.root(), 0).unwrap_err();
    assert_eq!(tree.without_path(&unread.reason), "/proc/stat: no steal time of CPU 0");
}

#[test]
fn clock_source_and_flags_are_read() {
    let tree = virtual_machine::tree();
    assert_eq!(clocksource(&tree.root()).unwrap(), "kvm-clock");
    assert_eq!(cpu_flags(&tree.root()).unwrap(), ["fpu", "tsc", "lm", "hypervisor"]);
    let nothing = Tree::empty();
    assert!(clocksource(&nothing.root()).unwrap_err().reason.ends_with("current_clocksource: not found"));
    assert!(cpu_flags(&nothing.root()).unwrap_err().reason.ends_with("/proc/cpuinfo: not found"));
    let without = Tree::empty().file("proc/cpuinfo", "processor : 0\n");
    assert!(cpu_flags(&without.root()).unwrap_err().reason.ends_with("/proc/cpuinfo: no `flags` line"));
}
