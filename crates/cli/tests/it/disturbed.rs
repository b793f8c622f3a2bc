//! Other programs on the same CPU are seen.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hairspring_machine::{Cpu, CpuSet, Host, Machine, Policy};
use serde_json::Value;
use testing::skip;

use crate::{json, succeed};

/// The competitor runs for this long in each [`PERIOD`], and in all for no longer than [`BOUND`].
const BURST: Duration = Duration::from_millis(2);
const PERIOD: Duration = Duration::from_millis(7);
const BOUND: Duration = Duration::from_secs(3);

/// Makes delays of 5 ms while a competitor of this policy runs on the same CPU; none if the policy is refused.
fn disturbed(policy: Policy, arguments: &[&str]) -> Option<Value> {
    let cpu = Host.affinity().0.last().copied().unwrap_or(Cpu(0));
    let (ended, refused) = (AtomicBool::new(false), AtomicBool::new(false));
    let ready = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let placed = Host.set_affinity(&CpuSet(vec![cpu])).and_then(|()| Host.set_policy(policy));
            refused.store(placed.is_err(), Ordering::Relaxed);
            ready.wait();
            let start = Instant::now();
            while placed.is_ok() && start.elapsed() < BOUND && !ended.load(Ordering::Relaxed) {
                let burst = Instant::now();
                while burst.elapsed() < BURST {
                    std::hint::spin_loop();
                }
                std::thread::sleep(PERIOD - BURST);
            }
        });
        ready.wait();
        let cpu = cpu.0.to_string();
        let mut all = vec!["delay", "5ms", "--count", "100", "--format", "json", "--cpu", &cpu];
        all.extend(arguments);
        let found = (!refused.load(Ordering::Relaxed)).then(|| json(&succeed(&all)));
        ended.store(true, Ordering::Relaxed);
        found
    })
}

/// Checks that the competitor stands in the verdicts, and that no delay was early for it.
#[track_caller]
fn check(found: &Value) {
    assert!(found["verdicts"]["preempted"].as_u64() >= Some(5), "{found}");
    assert!(found["late_ns"]["max"].as_f64() >= Some(1e5), "{found}");
    assert_eq!(found["early"], 0);
}

#[test]
fn a_second_real_time_program_on_the_same_cpu_is_seen() {
    let Some(found) = disturbed(Policy::Fifo(30), &["--priority", "20"]) else {
        let test = "a_second_real_time_program_on_the_same_cpu_is_seen";
        return skip(test, "real-time priorities are not permitted here");
    };
    check(&found);
}

#[test]
fn an_ordinary_program_on_the_same_cpu_is_seen() {
    let found = disturbed(Policy::Other, &[]).expect("the ordinary policy is always permitted");
    check(&found);
}
