//! Promises of `Host` about policy, affinity, timer slack and locked memory: granted, restored, or refused with a
//! remedy.

use hairspring_machine::{Cpu, CpuSet, Host, Machine, Nanos, Policy, Refused};
use testing::skip;

use super::held::{alone_with_the_memory, is_locked};
use super::on_own_thread;

#[track_caller]
fn check_refusal(result: Result<(), Refused>, attempted: &str) {
    let refused = result.expect_err("this must be refused");
    assert!(refused.attempted.contains(attempted), "{refused:?}");
    assert!(!refused.said.is_empty() && !refused.remedy.is_empty(), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains(&refused.said) && text.contains(&refused.remedy));
}

/// Sets the policy there and back.
#[track_caller]
fn check_policy(policy: Policy) -> Result<(), Refused> {
    let before = Host.policy();
    Host.set_policy(policy)?;
    let during = Host.policy();
    Host.set_policy(before).expect("going back is always allowed");
    assert_eq!(during, policy);
    assert_eq!(Host.policy(), before);
    Ok(())
}

#[test]
fn a_policy_that_was_set_is_read_back_and_can_be_given_back() {
    on_own_thread(|| {
        for policy in [Policy::Fifo(1), Policy::Fifo(50), Policy::RoundRobin(7), Policy::Other] {
            if let Err(refused) = check_policy(policy) {
                return skip("settings::a_policy_that_was_set_is_read_back_and_can_be_given_back", refused);
            }
        }
    });
}

#[test]
fn a_policy_of_unknown_name_is_reported_and_restored() {
    // SCHED_BATCH needs no permission, but for a thread of SCHED_IDLE.
    on_own_thread(|| {
        let idle = Host.policy() == Policy::Unknown(5);
        match check_policy(Policy::Unknown(3)) {
            Err(refused) if idle => skip("settings::a_policy_of_unknown_name_is_reported_and_restored", refused),
            result => result.expect("SCHED_BATCH"),
        }
    });
}

#[test]
fn a_priority_that_does_not_exist_is_refused_with_the_range() {
    let before = Host.policy();
    for priority in [0, 100, 255] {
        for policy in [Policy::Fifo(priority), Policy::RoundRobin(priority)] {
            let refused = Host.set_policy(policy).expect_err("no such priority");
            assert!(refused.remedy.contains("1 to 99"), "{refused:?}");
        }
    }
    assert_eq!(Host.policy(), before);
}

#[test]
fn a_thread_can_be_pinned_to_each_of_its_cpus_and_given_back() {
    on_own_thread(|| {
        let all = Host.affinity();
        assert!(!all.0.is_empty() && all.0.is_sorted(), "{all:?}");
        for &cpu in &all.0 {
            Host.set_affinity(&CpuSet(vec![cpu])).expect("one of our own CPUs");
            assert_eq!(Host.affinity(), CpuSet(vec![cpu]));
            // Without a sentinel the CPU is unknown; with it, it must be this one.
            assert!(Host.cpu().is_none_or(|now| now == cpu));
        }
        Host.set_affinity(&all).expect("what it was before");
        assert_eq!(Host.affinity(), all);
    });
}

#[test]
fn cpus_that_do_not_exist_are_refused_even_beside_one_that_does() {
    on_own_thread(|| {
        let all = Host.affinity();
        let first = all.0[0];
        let beyond = Cpu(1 << 20);
        let absent = Cpu(1_000);
        assert!(!all.0.contains(&absent), "a machine with a thousand CPUs needs another number here");
        for cpus in [vec![], vec![beyond], vec![absent], vec![first, beyond], vec![first, absent]] {
            check_refusal(Host.set_affinity(&CpuSet(cpus)), "pin to CPU");
            assert_eq!(Host.affinity(), all, "a refusal changes nothing");
        }
    });
}

#[test]
fn the_timer_slack_is_set_and_given_back_and_is_never_zero() {
    on_own_thread(|| {
        let before = Host.timer_slack();
        for (asked, granted) in [(1, 1), (70_000, 70_000), (0, 1), (-5, 1)] {
            Host.set_timer_slack(Nanos::new(asked));
            assert_eq!(Host.timer_slack(), Nanos::new(granted));
        }
        Host.set_timer_slack(before);
        assert_eq!(Host.timer_slack(), before);
    });
}

#[test]
fn memory_is_locked_and_unlocked_or_refused_with_the_limit() {
    let _alone = alone_with_the_memory();
    match Host.lock_memory() {
        Ok(()) => {
            assert!(is_locked());
            Host.unlock_memory();
            assert!(!is_locked(), "nobody is left who asked for it");
        }
        refused => {
            check_refusal(refused, "lock memory");
            assert!(!may_lock(), "this process has the permission");
        }
    }
}

/// Whether this process holds CAP_IPC_LOCK, which in a user namespace of its own would be none.
fn may_lock() -> bool {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    let status = read("status");
    let held = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    let outermost = read("uid_map").split_whitespace().eq(["0", "0", "4294967295"]);
    outermost && held.is_some_and(|held| held >> 14 & 1 == 1)
}

#[test]
fn memory_stays_locked_until_the_last_who_asked_for_it_unlocks() {
    // The kernel knows one lock for the whole process: the first of two to unlock took it from the other, too.
    let _alone = alone_with_the_memory();
    for _ in 0..2 {
        if let Err(refused) = Host.lock_memory() {
            return skip("settings::memory_stays_locked_until_the_last_who_asked_for_it_unlocks", refused);
        }
    }
    Host.unlock_memory();
    assert!(is_locked(), "one is left");
    Host.unlock_memory();
    Host.unlock_memory();
    Host.lock_memory().expect("granted before");
    assert!(is_locked(), "what was unlocked too often has no debts");
    Host.unlock_memory();
}

#[test]
fn a_policy_is_written_as_the_kernel_documents_it() {
    let written = |policy: Policy| policy.to_string();
    assert_eq!([Policy::Fifo(80), Policy::RoundRobin(1)].map(written), ["SCHED_FIFO 80", "SCHED_RR 1"]);
    assert_eq!([Policy::Other, Policy::Unknown(6)].map(written), ["SCHED_OTHER", "policy 6"]);
}
