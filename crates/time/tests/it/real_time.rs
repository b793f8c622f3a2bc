//! Scheduling choices: each granted or refused with its reason, and all of them given back.

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_machine::{CpuSet, Machine};
use hairspring_time::{Cpu, Grant, Host, Nanos, Policy, RealTime, Sim};
use testing::skip;

use super::micros;

const ALL: RealTime = RealTime {
    policy: Some(Policy::Fifo(40)),
    cpu: Some(Cpu(1)),
    lock_memory: true,
    slack: Some(Nanos::new(1)),
    idle: Some(Nanos::ZERO),
};

/// The settings that a guard may change.
fn settings<M: Machine>(machine: &M) -> (Policy, CpuSet, Nanos) {
    (machine.policy(), machine.affinity(), machine.timer_slack())
}

fn words(grants: &[Grant]) -> Vec<(&'static str, bool)> {
    let word = |grant: &Grant| match grant {
        Grant::Granted(setting) => (*setting, true),
        Grant::Refused(setting, _) => (*setting, false),
    };
    grants.iter().map(word).collect()
}

#[test]
fn what_was_asked_for_is_in_force_while_the_guard_lives_and_gone_after() {
    let sim = Sim::new(Script::default());
    let before = settings(&sim);
    let guard = ALL.apply(&sim);
    // A real-time policy has no slack.
    assert_eq!(settings(&sim), (Policy::Fifo(40), CpuSet(vec![Cpu(1)]), Nanos::ZERO));
    assert!(sim.is_memory_locked());
    assert_eq!(sim.idle_limit(), Some(Nanos::ZERO));
    let granted = ["cpu", "lock_memory", "slack", "idle", "policy"].map(|setting| (setting, true));
    assert_eq!(words(guard.grants()), granted);
    assert!(guard.refused().is_none());
    drop(guard);
    assert_eq!(settings(&sim), before);
    assert!(!sim.is_memory_locked() && sim.idle_limit().is_none());
}

#[test]
fn nothing_is_applied_by_default() {
    let sim = Sim::new(Script::default());
    let before = settings(&sim);
    let guard = RealTime::default().apply(&sim);
    assert!(guard.grants().is_empty() && settings(&sim) == before);
}

#[test]
fn a_refusal_is_told_and_does_not_stop_the_rest() {
    let sim = Sim::new(Script { real_time_allowed: false, ..Script::default() });
    let before = settings(&sim);
    let guard = ALL.apply(&sim);
    let outcomes = [("cpu", true), ("lock_memory", false), ("slack", true), ("idle", false), ("policy", false)];
    assert_eq!(words(guard.grants()), outcomes);
    let refused = guard.refused().expect("two refusals");
    assert!(refused.attempted.contains("lock memory") && !refused.remedy.is_empty());
    assert_eq!(settings(&sim), (Policy::Other, CpuSet(vec![Cpu(1)]), Nanos::new(1)));
    drop(guard);
    assert_eq!(settings(&sim), before);
}

#[test]
fn a_cpu_that_does_not_exist_is_refused_and_nothing_changes() {
    let sim = Sim::new(Script::default());
    let before = settings(&sim);
    let guard = RealTime { cpu: Some(Cpu(9)), ..RealTime::default() }.apply(&sim);
    assert!(guard.refused().is_some() && settings(&sim) == before);
    drop(guard);
    assert_eq!(settings(&sim), before);
}

#[test]
fn permission_that_is_lost_meanwhile_does_not_keep_a_thread_at_real_time() {
    let sim = Sim::new(Script::default());
    let guard = ALL.apply(&sim);
    super::disturb_in(&sim, Nanos::ZERO, Disturbance::LoseRealTime);
    sim.work(micros(1));
    drop(guard);
    assert_eq!(sim.policy(), Policy::Other);
}

#[test]
fn guards_of_different_settings_can_end_in_any_order() {
    let parts = [
        RealTime { policy: Some(Policy::Fifo(3)), ..RealTime::default() },
        RealTime { cpu: Some(Cpu(1)), ..RealTime::default() },
        RealTime { slack: Some(micros(7)), ..RealTime::default() },
    ];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let sim = Sim::new(Script::default());
        let before = settings(&sim);
        let mut guards = parts.map(|part| Some(part.apply(&sim)));
        for index in order {
            guards[index] = None;
        }
        assert_eq!(settings(&sim), before, "{order:?}");
    }
}

#[test]
fn guards_of_one_setting_nest() {
    let sim = Sim::new(Script::default());
    let before = settings(&sim);
    let outer = ALL.apply(&sim);
    let during = settings(&sim);
    let inner = RealTime { policy: Some(Policy::Fifo(70)), cpu: Some(Cpu(0)), ..ALL }.apply(&sim);
    drop(inner);
    assert_eq!(settings(&sim), during);
    drop(outer);
    assert_eq!(settings(&sim), before);
}

#[test]
fn this_machine_gives_back_what_it_granted() {
    // On a thread of its own, which shares its settings with no other test.
    let tried = std::thread::spawn(|| {
        let before = settings(&Host);
        let cpu = before.1.0.last().copied();
        let guard = RealTime { policy: Some(Policy::Fifo(2)), cpu, slack: Some(Nanos::new(1)), ..RealTime::default() };
        let guard = guard.apply(&Host);
        assert_eq!(Some(Host.affinity()), cpu.map(|cpu| CpuSet(vec![cpu])));
        let refused = guard.refused().map(ToString::to_string);
        assert_eq!(Host.policy(), if refused.is_none() { Policy::Fifo(2) } else { before.0 });
        drop(guard);
        assert_eq!(settings(&Host), before);
        refused
    });
    if let Some(refused) = tried.join().expect("the thread's own assertions") {
        skip("real_time::this_machine_gives_back_what_it_granted", &refused);
    }
}

#[test]
fn of_two_guards_that_end_in_their_order_of_making_the_second_stays_in_force() {
    // A thread held FIFO 50, then FIFO 60, and dropped the first: it got back what was before both, though the second
    // was still held. At the end the second put FIFO 50 back, which was not held any more.
    let sim = Sim::new(Script::default());
    let before = settings(&sim);
    let first = RealTime { policy: Some(Policy::Fifo(50)), ..ALL }.apply(&sim);
    let second = RealTime { policy: Some(Policy::Fifo(60)), cpu: Some(Cpu(0)), ..ALL }.apply(&sim);
    let during = settings(&sim);
    drop(first);
    assert_eq!(settings(&sim), during);
    drop(second);
    assert_eq!(settings(&sim), before);
}

#[test]
fn what_the_system_does_not_take_back_is_returned_by_release() {
    let sim = Sim::new(Script::default());
    sim.set_policy(Policy::RoundRobin(5)).expect("permitted");
    let before = settings(&sim);
    let guard = ALL.apply(&sim);
    let held = settings(&sim);
    super::disturb_in(&sim, Nanos::ZERO, Disturbance::LoseRealTime);
    sim.work(micros(1));
    let refusals = guard.release().expect_err("the policy cannot be restored without permission");
    assert!(refusals.len() == 1 && refusals[0].attempted.contains("policy"), "{refusals:?}");
    // The thread keeps what it has, and the rest is as it was.
    assert_eq!(settings(&sim), (held.0, before.1, before.2));
    assert_eq!(ALL.apply(&sim).release(), Ok(()), "without permission nothing but CPU and slack was granted");
}

/// The kernel's limit on idle states, in microseconds.
fn idle_limit_us() -> Option<i32> {
    let bytes = std::fs::read("/dev/cpu_dma_latency").ok()?;
    Some(i32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?))
}

#[test]
fn idle_states_are_off_while_the_guard_lives() {
    let guard = RealTime { idle: Some(Nanos::ZERO), ..RealTime::default() }.apply(&Host);
    if let Some(refused) = guard.refused() {
        assert!(refused.remedy.contains("udev"), "{refused}");
        return skip("idle_states_are_off_while_the_guard_lives", &refused.said);
    }
    assert_eq!(words(guard.grants()), [("idle", true)]);
    assert_eq!(idle_limit_us(), Some(0));
    // Any thread may drop the limit, and it is of this process: another guard keeps its own.
    let other = RealTime { idle: Some(micros(30)), ..RealTime::default() }.apply(&Host);
    drop(guard);
    // Other programs may hold a lower limit.
    assert!(idle_limit_us().is_some_and(|most_us| most_us <= 30));
    drop(other);
}
