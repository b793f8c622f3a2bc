//! Promises of `Host` about clocks and sleeps.

use std::time::Duration;

use hairspring_machine::{Clock, ClockCall, Cpu, CpuSet, Host, Instant, Machine, Nanos, SleepCall, Woken};
use testing::skip;

const CLOCKS: [Clock; 8] = [
    Clock::Monotonic,
    Clock::MonotonicRaw,
    Clock::MonotonicCoarse,
    Clock::Boottime,
    Clock::Realtime,
    Clock::Tai,
    Clock::ThreadCpu,
    Clock::ProcessCpu,
];

/// Uses the CPU for a while.
fn work(span: Duration) {
    let start = std::time::Instant::now();
    while start.elapsed() < span {
        std::hint::spin_loop();
    }
}

#[test]
fn every_clock_advances_while_the_thread_works() {
    // Longer than the step of the coarse clock at 100 Hz. CPU clocks need CPU time, which a busy machine gives late.
    for clock in CLOCKS {
        let before = Host.read(clock);
        for _ in 0..100 {
            work(Duration::from_millis(11));
            if Host.read(clock) > before {
                break;
            }
        }
        assert!(Host.read(clock) > before, "{clock:?} stands still");
    }
}

#[test]
fn monotonic_clocks_never_go_back() {
    for clock in [Clock::Monotonic, Clock::MonotonicRaw, Clock::MonotonicCoarse, Clock::Boottime] {
        let mut last = Host.read(clock);
        for _ in 0..20_000 {
            let now = Host.read(clock);
            assert!(now >= last, "{clock:?} went back from {last} to {now}");
            last = now;
        }
    }
}

#[test]
fn boot_time_is_not_behind_monotonic_time_and_coarse_time_not_ahead() {
    for _ in 0..1_000 {
        let coarse = Host.read(Clock::MonotonicCoarse);
        let monotonic = Host.read(Clock::Monotonic);
        let boot = Host.read(Clock::Boottime);
        assert!(coarse <= monotonic && monotonic <= boot, "{coarse} {monotonic} {boot}");
    }
}

#[test]
fn the_ordered_counter_never_goes_back() {
    let mut last = Host.ticks_ordered();
    for _ in 0..200_000 {
        let now = Host.ticks_ordered();
        assert!(now.since(last) >= 0, "{last:?} before {now:?}");
        last = now;
    }
}

#[test]
fn a_counter_read_between_two_ordered_ones_lies_between_them() {
    super::on_own_thread(|| {
        // The counters of two CPUs need not agree.
        Host.set_affinity(&CpuSet(vec![Host.affinity().0[0]])).expect("our own CPU");
        for round in 0..1_000 {
            let before = Host.ticks_ordered();
            Host.fence();
            let between = Host.ticks();
            Host.fence();
            let after = Host.ticks_ordered();
            assert!(between.since(before) >= 0 && after.since(between) >= 0, "round {round}");
        }
    });
}

/// The time that the hypervisor has taken from a CPU, from the eighth column of its line.
fn stolen(cpu: Cpu) -> Option<Nanos> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("cpu{} ", cpu.0)))?;
    Some(Nanos::from_millis(10 * line.split(' ').nth(7)?.parse::<i64>().ok()?))
}

#[test]
fn the_counters_of_a_cpu_are_those_of_the_kernel() {
    const TEST: &str = "host::the_counters_of_a_cpu_are_those_of_the_kernel";
    super::on_own_thread(|| {
        for cpu in Host.affinity().0 {
            Host.set_affinity(&CpuSet(vec![cpu])).expect("our own CPU");
            let (least, told, most) = (stolen(cpu), Host.cpu_counters(cpu), stolen(cpu));
            let before = match told {
                Ok(told) => told,
                Err(unread) => return skip(TEST, unread.reason),
            };
            assert!(least <= Some(before.steal) && Some(before.steal) <= most, "{least:?} {before:?} {most:?}");
            assert!(before.interrupts > 0);
            // Each sleep ends by an interrupt of the timer.
            for _ in 0..20 {
                Host.sleep_until(Host.monotonic() + Nanos::from_millis(1));
            }
            let after = Host.cpu_counters(cpu).expect("as before");
            assert!(after.interrupts > before.interrupts, "{before:?} {after:?}");
        }
    });
}

#[test]
fn heat_is_told_where_the_kernel_shows_it() {
    let numbers = |path: String| std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<f64>().ok());
    let zones = (0..64).filter_map(|zone| numbers(format!("/sys/class/thermal/thermal_zone{zone}/temp")));
    let cpu = Host.affinity().0[0];
    let frequency = numbers(format!("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu.0));
    let heat = Host.heat(cpu);
    assert_eq!(heat.temperature_c.is_some(), zones.count() > 0, "{heat:?}");
    assert_eq!(heat.frequency_hz.is_some(), frequency.is_some(), "{heat:?}");
}

#[test]
fn facts_are_of_this_machine() {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("every Linux has one");
    let facts = Host.facts();
    let told = facts.facts.iter().find(|fact| fact.id == "kernel.release").expect("told of every machine");
    assert_eq!(told.value.as_deref(), Ok(release.trim()));
}

#[track_caller]
fn check_sleep(request: Nanos, sleep: impl Fn() -> Woken) {
    let before = Host.monotonic();
    let woken = sleep();
    let passed = Host.monotonic() - before;
    assert_eq!(woken, Woken::Expired);
    assert!(passed >= request, "{passed} instead of {request}");
}

#[test]
fn sleep_until_is_never_early() {
    for micros in (0..200).map(|n| n * 7) {
        let request = Nanos::from_micros(micros);
        check_sleep(request, || Host.sleep_until(Host.monotonic() + request));
    }
}

#[test]
fn sleep_until_a_moment_that_has_passed_returns() {
    let early = [Nanos::ZERO, Nanos::new(-1), -Nanos::MAX].map(Instant::from_monotonic);
    for deadline in early.into_iter().chain([Host.monotonic() - Nanos::new(1)]) {
        assert_eq!(Host.sleep_until(deadline), Woken::Expired);
    }
}

#[test]
fn every_sleep_call_lasts_at_least_what_it_was_asked_for() {
    for call in [SleepCall::Nanosleep, SleepCall::Usleep, SleepCall::StdSleep, SleepCall::ClockNanosleep] {
        for nanos in [0, 1, 999, 1_001, 50_000, 1_500_000] {
            check_sleep(Nanos::new(nanos), || Host.sleep(call, Nanos::new(nanos)));
        }
    }
}

#[test]
fn every_call_for_the_time_can_be_made() {
    for clock in CLOCKS {
        Host.call(ClockCall::ClockGettime(clock));
    }
    Host.call(ClockCall::Gettimeofday);
    Host.call(ClockCall::StdInstant);
}

#[test]
fn usage_counts_cpu_time_and_the_switches_of_a_sleeper() {
    super::on_own_thread(|| {
        let before = Host.usage();
        work(Duration::from_millis(5));
        for _ in 0..10 {
            Host.sleep(SleepCall::ClockNanosleep, Nanos::from_micros(100));
        }
        let after = Host.usage();
        assert!(after.cpu > before.cpu);
        let (slept, awake) = (after.voluntary_switches, before.voluntary_switches);
        assert!(slept >= awake.map(|count| count + 10), "{before:?} {after:?}");
        assert!(after.involuntary_switches >= before.involuntary_switches);
    });
}

#[test]
fn the_throttle_of_real_time_threads_is_a_part_of_its_period() {
    let text = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
    match (Host.real_time_throttle(), text.trim()) {
        (Some((runtime, period)), text) => {
            assert!(runtime < period);
            assert_eq!(Ok(runtime), text.parse().map(Nanos::from_micros));
        }
        (None, "" | "-1") => {}
        (None, text) => {
            let period = std::fs::read_to_string("/proc/sys/kernel/sched_rt_period_us").expect("beside the runtime");
            assert_eq!(text, period.trim(), "only a runtime that fills the period is no throttle");
        }
    }
}
