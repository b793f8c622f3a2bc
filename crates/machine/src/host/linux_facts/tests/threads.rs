//! The table of threads.

use super::super::threads;
use super::tree::Tree;
use crate::facts::{THREADS_MAX, Thread};

/// A line of `/proc/<pid>/task/<tid>/stat`, with 52 fields.
fn stat(tid: u32, name: &str, ticks: [u64; 2], rt_priority: u32, policy: u32) -> String {
    let [user, kernel] = ticks;
    format!(
        "{tid} ({name}) S 1 1 1 0 -1 4194624 7 0 0 0 {user} {kernel} 0 0 20 0 1 0 33 0 0 18446744073709551615 0 0 0 0 0 \
         0 0 2147483647 0 0 0 0 17 1 {rt_priority} {policy} 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

/// A tree with the thread from which all processes are known to be seen.
fn tree() -> Tree {
    Tree::empty().file("proc/2/task/2/stat", stat(2, "kthreadd", [0, 5], 0, 0)).file("proc/version", "Linux\n")
}

#[test]
fn threads_are_read_with_policy_priority_and_time() {
    let tree = tree()
        .file("proc/10/task/11/stat", stat(11, "worker", [7, 1], 0, 3))
        .file("proc/10/task/10/stat", stat(10, "main", [100, 23], 80, 1));
    let (threads, unread) = threads::read(&tree.root());
    assert_eq!(unread, None);
    let thread = |pid, tid, name: &str, policy: &str, rt_priority, cpu_ms| Thread {
        pid,
        tid,
        name: name.to_owned(),
        policy: policy.to_owned(),
        rt_priority,
        cpu_ms,
    };
    let expected = [
        thread(2, 2, "kthreadd", "other", 0, 50),
        thread(10, 10, "main", "fifo", 80, 1230),
        thread(10, 11, "worker", "batch", 0, 80),
    ];
    assert_eq!(threads, expected);
}

#[test]
fn policies_have_their_names() {
    let names = [(0, "other"), (1, "fifo"), (2, "rr"), (3, "batch"), (5, "idle"), (6, "deadline"), (7, "ext")];
    for (number, name) in names {
        let tree = tree().file("proc/9/task/9/stat", stat(9, "x", [0, 0], 0, number));
        assert_eq!(threads::read(&tree.root()).0[1].policy, name);
    }
    let tree = tree().file("proc/9/task/9/stat", stat(9, "x", [0, 0], 0, 4));
    assert_eq!(threads::read(&tree.root()).0[1].policy, "policy 4");
}

#[test]
fn a_name_may_hold_what_ends_a_name() {
    for name in ["a b", "tmux: server", ") R 1 (", "((", "", ":-) S 0 0"] {
        let tree = tree().file("proc/9/task/9/stat", stat(9, name, [1, 1], 50, 2));
        let (threads, unread) = threads::read(&tree.root());
        assert_eq!(unread, None);
        let thread = &threads[1];
        let read = (thread.name.as_str(), thread.policy.as_str(), thread.rt_priority, thread.cpu_ms);
        assert_eq!(read, (name, "rr", 50, 20));
    }
}

#[test]
fn a_name_cannot_steer_a_terminal() {
    let tree = tree().file("proc/9/task/9/stat", stat(9, "\x1b[2J\n\tx", [0, 0], 0, 0));
    assert_eq!(threads::read(&tree.root()).0[1].name, "\u{fffd}[2J\u{fffd}\u{fffd}x");
}

#[test]
fn threads_that_have_ended_are_left_out_without_a_word() {
    let tree = tree().file("proc/9/task/9/stat", stat(9, "x", [0, 0], 0, 0)).file("proc/9/task/10/comm", "");
    let (threads, unread) = threads::read(&tree.root());
    assert_eq!((threads.len(), unread), (2, None));
}

#[test]
fn threads_that_cannot_be_read_are_counted() {
    let tree = tree().file("proc/8/task/8/stat", "8 (x) S 1\n").file("proc/9/task/9/stat", "");
    let (threads, unread) = threads::read(&tree.root());
    assert_eq!(threads.len(), 1);
    let reason = tree.without_path(&unread.unwrap().reason);
    assert_eq!(reason, "2 not read, the first /proc/8/task/8/stat: not the state of a thread");
}

#[test]
fn a_view_without_the_kernels_own_threads_is_a_part_and_says_so() {
    let tree = Tree::empty().file("proc/1/task/1/stat", stat(1, "init", [0, 0], 0, 0));
    let (threads, unread) = threads::read(&tree.root());
    assert_eq!(threads.len(), 1);
    let reason = tree.without_path(&unread.unwrap().reason);
    assert_eq!(reason, "/proc: no kthreadd, so only the processes of this container or user are seen");
}

/// In a container the second process can be any one, and any process can call itself by the name.
#[test]
fn the_kernels_own_threads_are_known_by_number_and_name() {
    for (pid, name) in [(2, "bash"), (9, "kthreadd")] {
        let path = format!("proc/{pid}/task/{pid}/stat");
        let tree = Tree::empty().file(&path, stat(pid, name, [0, 0], 0, 0));
        let (threads, unread) = threads::read(&tree.root());
        assert_eq!(threads.len(), 1);
        assert!(unread.is_some_and(|unread| unread.reason.contains("no kthreadd")), "{pid} {name}");
    }
}

#[test]
fn a_table_that_is_cut_says_so() {
    let mut tree = tree();
    for tid in 0..THREADS_MAX {
        tree = tree.file(&format!("proc/9/task/{}/stat", tid + 9), stat(9, "x", [0, 0], 0, 0));
    }
    let (threads, unread) = threads::read(&tree.root());
    assert_eq!(threads.len(), THREADS_MAX);
    assert_eq!(unread.unwrap().reason, "more than 4096 threads: the rest is not listed");
}

#[test]
fn times_beyond_all_measure_do_not_overflow() {
    let tree = tree().file("proc/9/task/9/stat", stat(9, "x", [u64::MAX, u64::MAX], 0, 0));
    assert_eq!(threads::read(&tree.root()).0[1].cpu_ms, u64::MAX);
}
