//! Containers: one in which nothing can be read, and control groups of which only a part is seen.

use super::tree::Tree;
use super::{check_form, workstation};

#[test]
fn where_nothing_can_be_read_every_fact_says_why() {
    let tree = Tree::empty();
    let facts = super::super::read(&tree.root());
    check_form(&facts);
    let many = super::super::read(&workstation::tree().root()).facts.len();
    assert_eq!(facts.facts.len(), many, "a fact was left out");
    for fact in &facts.facts {
        let reason = &fact.value.as_ref().expect_err(fact.id).reason;
        assert!(reason.ends_with("not found"), "{}: {reason}", fact.id);
        assert!(tree.without_path(reason).starts_with('/'), "{} names no file: {reason}", fact.id);
    }
    assert!(facts.threads.is_empty());
    assert!(facts.threads_unread.unwrap().reason.ends_with("/proc: not found"));
}

/// A read of a file that is not permitted. Nothing is forbidden to root, so this test checks the report of a refusal.
#[test]
fn a_refused_file_is_told_with_its_name_and_a_remedy() {
    let refused = std::io::Error::from_raw_os_error(libc::EACCES);
    let unread = super::super::root::unread("/sys/kernel/debug/sched/preempt".as_ref(), &refused);
    assert_eq!(unread.reason, "/sys/kernel/debug/sched/preempt: permission denied");
    assert_eq!(unread.remedy.as_deref(), Some("read it as root"));
    let other = std::io::Error::from_raw_os_error(libc::EOPNOTSUPP);
    let unread = super::super::root::unread("/proc/pressure/cpu".as_ref(), &other);
    assert_eq!(unread.reason, "/proc/pressure/cpu: operation not supported");
}

/// Checks the CPU limit of a tree with these files and no others.
#[track_caller]
fn check_limit(files: &[(&str, &str)], expected: super::Expected) {
    let tree = Tree::empty().files(files);
    let facts = super::super::read(&tree.root());
    let fact = facts.facts.iter().find(|fact| fact.id == "limits.cgroup_cpu").unwrap();
    let value = fact.value.clone().map_err(|unread| tree.without_path(&unread.reason));
    assert_eq!(value, expected.map(str::to_owned).map_err(str::to_owned));
}

#[test]
fn a_container_with_its_own_namespace_does_not_claim_to_be_unlimited() {
    let own = ("proc/self/cgroup", "0::/\n");
    let top = ("sys/fs/cgroup/cgroup.type", "domain\n");
    let none = "none that is visible from within the container";
    check_limit(&[own, top, ("sys/fs/cgroup/cpu.max", "max 100000\n")], Ok(none));
    let limit = "0.25 CPUs (25 ms in each 100 ms)";
    check_limit(&[own, top, ("sys/fs/cgroup/cpu.max", "25000 100000\n")], Ok(limit));
}

#[test]
fn a_group_outside_of_what_is_mounted_is_said_so() {
    let hidden = Err("/sys/fs/cgroup: the own control group is not in it");
    let mounted = ("sys/fs/cgroup/cgroup.controllers", "cpu\n");
    check_limit(&[("proc/self/cgroup", "0::/machine/42\n"), mounted], hidden);
    check_limit(&[("proc/self/cgroup", "0::/../../secret\n"), mounted], hidden);
    check_limit(
        &[("proc/self/cgroup", "0::/machine/42\n"), ("sys/fs/cgroup/cpu.max", "150500 100000\n")],
        Ok("1.50 CPUs (150.5 ms in each 100 ms)"),
    );
}

#[test]
fn the_top_of_the_hierarchy_has_no_limit() {
    check_limit(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/cgroup.controllers", "cpu\n")], Ok("none"));
    check_limit(
        &[
            ("proc/self/cgroup", "1:cpu:/\n0::/\n"),
            ("sys/fs/cgroup/cpu/release_agent", "\n"),
            ("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("sys/fs/cgroup/unified/cgroup.controllers", "\n"),
        ],
        Ok("none"),
    );
}

/// Of equal limits the group's own is reported: its period is the one that limits the program.
#[test]
fn the_tightest_limit_among_a_group_and_those_above_it_counts() {
    let own = ("proc/self/cgroup", "0::/a/b\n");
    let check = |above, below, expected| {
        check_limit(&[own, ("sys/fs/cgroup/a/cpu.max", above), ("sys/fs/cgroup/a/b/cpu.max", below)], Ok(expected));
    };
    check("50000 100000\n", "90000 100000\n", "0.50 CPUs (50 ms in each 100 ms)");
    check("90000 100000\n", "50000 100000\n", "0.50 CPUs (50 ms in each 100 ms)");
    check("100000 200000\n", "50000 100000\n", "0.50 CPUs (50 ms in each 100 ms)");
    check("50000 100000\n", "max 100000\n", "0.50 CPUs (50 ms in each 100 ms)");
}

#[test]
fn a_limit_of_version_1_has_a_period() {
    let check = |period, expected| {
        let group = "sys/fs/cgroup/cpu/cpu.cfs_";
        check_limit(
            &[
                ("proc/self/cgroup", "1:cpu:/\n"),
                (&format!("{group}quota_us"), "50000\n"),
                (&format!("{group}period_us"), period),
            ],
            expected,
        );
    };
    check("200000\n", Ok("0.25 CPUs (50 ms in each 200 ms)"));
    check("0\n", Err("cpu.cfs_quota_us: not a quota, or not one with a period"));
}

#[test]
fn a_malformed_limit_is_not_taken_for_none() {
    let own = ("proc/self/cgroup", "0::/\n");
    let file = "sys/fs/cgroup/cpu.max";
    check_limit(&[own, (file, "50000 0\n")], Err("cpu.max: not a quota and a period"));
    check_limit(&[own, (file, "much 100000\n")], Err("cpu.max: not a quota"));
    check_limit(&[own, (file, "")], Err("cpu.max: there, but not readable"));
    check_limit(&[("proc/self/cgroup", "nonsense\n")], Err("/proc/self/cgroup: no control group"));
}
