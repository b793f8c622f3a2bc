//! The promise of `Sim`: it is a machine like any other, in a time of its own that is the same in every run.

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_machine::{Clock, Cpu, CpuSet, Machine, Nanos, Policy, Sim, SleepCall, Woken};

fn micros(count: i64) -> Nanos {
    Nanos::from_micros(count)
}

/// A machine to which one thing happens 5 µs after its beginning.
fn sim_with(disturbance: Disturbance) -> Sim {
    Sim::new(Script::default().with(micros(5), disturbance))
}

#[test]
fn two_runs_of_a_script_are_equal_to_the_picosecond() {
    let run = || {
        let sim = sim_with(Disturbance::Preempt(micros(40)));
        let reads: Vec<_> = (0..500).map(|_| (sim.ticks(), sim.monotonic(), sim.true_picos())).collect();
        let sleeps: Vec<_> = (0..50).map(|_| (sim.sleep(SleepCall::Nanosleep, micros(9)), sim.true_picos())).collect();
        (reads, sleeps)
    };
    assert_eq!(run(), run());
}

#[test]
fn clones_are_the_same_machine() {
    let sim = Sim::new(Script::default());
    sim.clone().work(micros(3));
    assert_eq!(sim.true_time(), micros(3));
}

/// Checks that a sleeper is not woken before its deadline by its own clock.
#[track_caller]
fn check_sleep(script: Script, request: Nanos) {
    let sim = Sim::new(script);
    let deadline = sim.monotonic() + request;
    assert_eq!(sim.sleep_until(deadline), Woken::Expired);
    let now = sim.monotonic();
    assert!(now >= deadline, "woken at {now}, asked for {deadline}");
}

/// Regression: a sleeper under a kernel clock that ran 500 ppm slow was woken 500 µs early after a second, because the
/// sleep was counted in true time. This one sleeps long enough for the script's lateness not to hide it.
#[test]
fn a_sleeper_is_never_early_by_a_clock_that_runs_slow_or_is_set_back() {
    let punctual = Script { wake_late: (Nanos::ZERO, Nanos::ZERO), ..Script::default() };
    for drift in [-500_000, -499, 0, 1, 500_000] {
        for request in [Nanos::new(1), micros(7), Nanos::from_secs(1), Nanos::from_secs(100)] {
            check_sleep(Script { kernel_drift_ppb: drift, ..punctual.clone() }, request);
        }
    }
    check_sleep(punctual.with(micros(5), Disturbance::ClockStep(-micros(300))), micros(50));
}

#[test]
fn each_disturbance_shows_where_it_would_on_a_real_machine() {
    let shown = |disturbance| {
        let sim = sim_with(disturbance);
        sim.sentinel_arm();
        sim.work(micros(10));
        let took_long = sim.true_time() > micros(30);
        let switches = sim.usage().involuntary_switches.expect("Sim counts them");
        (took_long, sim.sentinel_intact(), switches)
    };
    let long = micros(100);
    assert_eq!(shown(Disturbance::Preempt(long)), (true, false, 1));
    assert_eq!(shown(Disturbance::Interrupt(long)), (true, true, 0));
    assert_eq!(shown(Disturbance::Steal(long)), (true, true, 0));
    assert_eq!(shown(Disturbance::Migrate(Cpu(1))), (false, false, 0));
    assert_eq!(shown(Disturbance::Signal), (false, false, 0));
    assert_eq!(shown(Disturbance::LateWake(long)), (false, true, 0));
}

#[test]
fn a_preemption_can_fall_into_the_look_at_the_sentinel() {
    let script = Script::default();
    let sim = Sim::new(script.with(Nanos::ZERO, Disturbance::Preempt(micros(100))));
    // The event at the very beginning falls into whatever is done first.
    assert!(!sim.sentinel_intact());
    assert!(sim.true_time() >= micros(100));
}

#[test]
fn a_signal_ends_a_sleep_and_says_so() {
    let sim = sim_with(Disturbance::Signal);
    assert_eq!(sim.sleep_until(sim.monotonic() + Nanos::from_secs(1)), Woken::Signal);
    assert!(sim.true_time() < micros(100));
}

#[test]
fn suspend_passes_for_boot_time_and_the_time_of_day_only() {
    let sim = sim_with(Disturbance::Suspend(Nanos::from_secs(60)));
    let read = || [Clock::Monotonic, Clock::MonotonicRaw, Clock::Boottime, Clock::Realtime].map(|c| sim.read(c));
    let (before, ticks) = (read(), sim.ticks());
    sim.work(micros(10));
    let passed: Vec<bool> = read().iter().zip(before).map(|(after, before)| *after - before > micros(1_000)).collect();
    assert_eq!(passed, [false, false, true, true]);
    assert!(sim.ticks().since(ticks) < 1_000_000);
}

#[test]
fn each_cpu_has_a_counter_with_its_own_offset() {
    let sim = Sim::new(Script { cpu_offsets: vec![0, 5_000, -5_000], ..Script::default() });
    let near = |ticks: i64, target: i64| (ticks - target).abs() < 1_000;
    let mut last = sim.ticks();
    for (cpu, step) in [(1, 5_000), (2, -10_000), (0, 5_000)] {
        sim.sentinel_arm();
        sim.set_affinity(&CpuSet(vec![Cpu(cpu)])).expect("it exists");
        assert!(!sim.sentinel_intact(), "a move breaks the sentinel");
        assert_eq!(sim.cpu(), Some(Cpu(cpu)));
        let now = sim.ticks();
        assert!(near(now.since(last), step));
        last = now;
    }
}

#[test]
fn cpus_that_do_not_exist_are_refused() {
    let sim = Sim::new(Script::default());
    for cpus in [vec![], vec![Cpu(2)], vec![Cpu(0), Cpu(7)]] {
        assert!(sim.set_affinity(&CpuSet(cpus)).is_err());
    }
    assert_eq!(sim.affinity(), CpuSet(vec![Cpu(0), Cpu(1)]));
}

#[test]
fn a_machine_without_a_sentinel_cannot_tell_its_cpu_either() {
    let sim = Sim::new(Script { sentinel: false, ..Script::default() });
    assert!(!sim.sentinel_arm() && !sim.sentinel_intact());
    assert_eq!(sim.cpu(), None);
}

#[test]
fn real_time_is_refused_from_the_moment_on_that_permission_is_lost() {
    let sim = sim_with(Disturbance::LoseRealTime);
    sim.set_policy(Policy::Fifo(10)).expect("permitted at first");
    sim.work(micros(10));
    assert_eq!(sim.policy(), Policy::Fifo(10), "the present policy stays");
    assert!(sim.set_policy(Policy::Fifo(11)).is_err() && sim.lock_memory().is_err());
    sim.set_policy(Policy::Other).expect("always allowed");
}

#[test]
fn slack_delays_ordinary_threads_only() {
    let woken_after = |policy, slack| {
        let sim = Sim::new(Script { wake_late: (Nanos::ZERO, Nanos::ZERO), ..Script::default() });
        sim.set_policy(policy).expect("permitted");
        sim.set_timer_slack(slack);
        let deadline = sim.monotonic() + micros(100);
        sim.sleep_until(deadline);
        sim.monotonic() - deadline
    };
    assert!(woken_after(Policy::Other, micros(50)) >= micros(50));
    assert!(woken_after(Policy::Other, Nanos::ZERO) < micros(1));
    assert!(woken_after(Policy::Fifo(1), micros(50)) < micros(1));
}
