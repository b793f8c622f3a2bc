//! `Sim` to the picosecond: what each call takes, and how clocks, counter and sleepers follow the script.
//!
//! Every promise of a delay is tested against these clocks, so they are themselves held against plain arithmetic here.

use hairspring_machine::sim::{Costs, Disturbance, Script};
use hairspring_machine::{Clock, ClockCall, Cpu, Machine, Nanos, Policy, Sim, SleepCall, Woken};

const COSTS: Costs = Costs { ticks: 8_123, ticks_ordered: 13_007, clock: 18_211, system_call: 170_003, relax: 10_331 };
/// Calls that take no time.
const FREE: Costs = Costs { ticks: 0, ticks_ordered: 0, clock: 0, system_call: 0, relax: 0 };

fn micros(count: i64) -> Nanos {
    Nanos::from_micros(count)
}

fn free(script: Script) -> Sim {
    Sim::new(Script { costs: FREE, ..script })
}

#[test]
fn each_call_takes_what_the_script_says() {
    let sim = Sim::new(Script { costs: COSTS, ..Script::default() });
    let took = |act: &dyn Fn()| {
        let before = sim.true_picos();
        act();
        sim.true_picos() - before
    };
    assert_eq!(took(&|| _ = sim.ticks()), COSTS.ticks);
    assert_eq!(took(&|| _ = sim.ticks_ordered()), COSTS.ticks_ordered);
    assert_eq!(took(&|| sim.relax()), COSTS.relax);
    assert_eq!(took(&|| sim.set_timer_slack(micros(1))), COSTS.system_call);
    for clock in [Clock::Monotonic, Clock::Realtime, Clock::Boottime] {
        assert_eq!(took(&|| _ = sim.read(clock)), COSTS.clock);
        assert_eq!(took(&|| sim.call(ClockCall::ClockGettime(clock))), COSTS.clock);
    }
    for call in [ClockCall::Gettimeofday, ClockCall::StdInstant] {
        assert_eq!(took(&|| sim.call(call)), COSTS.clock);
    }
    assert_eq!(took(&|| _ = sim.read(Clock::ThreadCpu)), COSTS.system_call);
    assert!(took(&|| sim.fence()) > 0 && took(&|| _ = sim.sentinel_arm()) > 0);
    assert_eq!(took(&|| sim.work(micros(3))), 3_000_000);
}

#[test]
fn the_counter_counts_the_ticks_of_its_rate_and_forgets_no_part_of_one() {
    for (rate_hz, counter_step) in [(2_599_999_999_u64, 1), (24_000_001, 1), (1_000_000_000, 26)] {
        let counter_start = 1_000_003;
        let sim = Sim::new(Script { rate_hz, counter_step, counter_start, costs: COSTS, ..Script::default() });
        for turn in 0..200 {
            sim.work(Nanos::new(turn * 37));
            let ticks = sim.ticks().raw();
            let passed = (u128::from(sim.true_picos()) * u128::from(rate_hz) / 1_000_000_000_000) as u64;
            let counted = counter_start + passed;
            assert_eq!(ticks, counted - counted % counter_step, "{rate_hz} Hz, turn {turn}");
        }
    }
}

#[test]
fn the_kernels_clocks_run_at_their_own_rates_from_one_beginning() {
    for kernel_drift_ppb in [-500_001, 0, 123_457] {
        let sim = free(Script { kernel_drift_ppb, ..Script::default() });
        let start = sim.read(Clock::Monotonic);
        assert_eq!(sim.read(Clock::MonotonicRaw), start);
        for turn in 1..300 {
            sim.work(Nanos::new(turn * 7_919));
            let picos = i128::from(sim.true_picos());
            let drift = (picos * i128::from(kernel_drift_ppb)).div_euclid(1_000_000_000);
            let at = |picos: i128| start + Nanos::new((picos / 1_000) as i64);
            assert_eq!(sim.read(Clock::Monotonic), at(picos + drift), "{kernel_drift_ppb} in turn {turn}");
            assert_eq!(sim.read(Clock::MonotonicRaw), at(picos));
            assert_eq!(sim.read(Clock::Boottime), sim.read(Clock::Monotonic));
        }
    }
}

#[test]
fn a_clock_is_read_at_the_part_of_the_call_that_the_script_says() {
    for percent in [0, 1, 50, 99, 100, 200] {
        let costs = Costs { clock: 2_000_000, ..FREE };
        let sim = Sim::new(Script { costs, ..Script::default() }.with(Nanos::ZERO, Disturbance::ReadAt(percent)));
        sim.work(Nanos::new(1));
        let start = sim.read(Clock::MonotonicRaw);
        // The first reading was at this part of its call, and the next one is at the begin of its own.
        sim.disturb(Nanos::ZERO, Disturbance::ReadAt(0));
        sim.work(Nanos::new(1));
        let part = Nanos::new(20 * i64::from(percent.min(100)));
        assert_eq!(sim.read(Clock::MonotonicRaw) - start, Nanos::new(2_000 + 1) - part, "{percent} %");
    }
}

#[test]
fn steps_and_suspends_add_up_and_show_in_the_clocks_that_they_concern() {
    let sim = free(Script::default());
    let clocks = [Clock::Monotonic, Clock::MonotonicRaw, Clock::Boottime, Clock::Realtime, Clock::Tai];
    let read = || clocks.map(|clock| sim.read(clock).count());
    let before = read();
    for (step, day_step, suspend) in [(3, 70, 40), (-1, -20, 500)] {
        sim.disturb(Nanos::ZERO, Disturbance::ClockStep(micros(step)));
        sim.disturb(Nanos::ZERO, Disturbance::DayStep(micros(day_step)));
        sim.disturb(Nanos::ZERO, Disturbance::Suspend(micros(suspend)));
        sim.work(micros(1));
    }
    let passed: Vec<i64> = read().iter().zip(before).map(|(after, before)| after - before).collect();
    assert_eq!(passed, [4_000, 2_000, 544_000, 594_000, 594_000]);
    assert_eq!((sim.true_time(), sim.suspended()), (micros(542), micros(540)));
    assert_eq!(sim.read(Clock::Tai) - sim.read(Clock::Realtime), Nanos::from_secs(37));
    assert_eq!(sim.clock_step(), Nanos::new(1));
    for _ in 0..50 {
        sim.work(micros(333));
        let (fine, coarse) = (sim.read(Clock::Monotonic).count(), sim.read(Clock::MonotonicCoarse).count());
        assert!(coarse <= fine && fine - coarse < 4_000_000 && coarse % 1_000_000 == 0, "{fine} {coarse}");
    }
}

#[test]
fn what_happens_meanwhile_neither_shortens_nor_lengthens_a_run_but_by_its_own_length() {
    use Disturbance::{ClockStep, Drift, Interrupt, LateWake, Migrate, Preempt, Signal, Steal};
    for (disturbance, longer) in [
        (ClockStep(micros(9)), 0),
        (Drift(5), 0),
        (LateWake(micros(9)), 0),
        (Migrate(Cpu(1)), 0),
        (Signal, 0),
        (Interrupt(micros(9)), 9),
        (Steal(micros(9)), 9),
        (Preempt(micros(9)), 9),
    ] {
        let sim = free(Script::default().with(micros(3), disturbance).with(micros(5), disturbance));
        sim.work(micros(10));
        assert_eq!(sim.true_time(), micros(10 + 2 * longer), "{disturbance:?}");
        assert_eq!(sim.usage().cpu, micros(10), "{disturbance:?}: the thread itself ran that long");
        assert_eq!(sim.read(Clock::ThreadCpu), micros(10));
    }
}

#[test]
fn the_kernel_counts_what_happened_to_a_cpu_and_to_a_thread() {
    let mut script = Script::default();
    for (at, disturbance) in [
        (1, Disturbance::Interrupt(micros(2))),
        (20, Disturbance::Steal(micros(3))),
        (40, Disturbance::Preempt(micros(5))),
        (60, Disturbance::Interrupt(micros(2))),
        (80, Disturbance::Steal(micros(4))),
        (100, Disturbance::Preempt(micros(6))),
    ] {
        script = script.with(micros(at), disturbance);
    }
    let sim = free(script.clone());
    sim.work(micros(200));
    let (counters, usage) = (sim.cpu_counters(Cpu(0)).expect("Sim counts"), sim.usage());
    assert_eq!((counters.interrupts, counters.steal), (2, micros(7)));
    assert_eq!((usage.involuntary_switches, usage.run_delay), (Some(2), Some(micros(11))));
    assert_eq!(usage.voluntary_switches, Some(0));
    // A sleeper notices none of it.
    let asleep = free(Script { wake_late: (Nanos::ZERO, Nanos::ZERO), ..script });
    asleep.set_policy(Policy::Fifo(1)).expect("permitted");
    assert_eq!(asleep.sleep_until(asleep.monotonic() + micros(200)), Woken::Expired);
    assert_eq!((asleep.true_time(), asleep.usage().involuntary_switches), (micros(200), Some(0)));
    assert_eq!((asleep.usage().voluntary_switches, asleep.usage().cpu), (Some(1), Nanos::ZERO));
    assert_eq!(asleep.cpu_counters(Cpu(0)).expect("Sim counts").interrupts, 2, "the CPU does");
}

#[test]
fn wake_ups_are_late_by_any_time_between_the_two_of_the_script() {
    let sim = free(Script { wake_late: (micros(10), micros(30)), ..Script::default() });
    sim.set_policy(Policy::Fifo(1)).expect("permitted");
    let late = |add: Nanos| {
        let deadline = sim.monotonic() + micros(100);
        assert_eq!(sim.sleep_until(deadline), Woken::Expired);
        (sim.monotonic() - deadline - add).count()
    };
    let mut tenths = [0; 10];
    let mut before = 0;
    for _ in 0..2_000 {
        let late_ns = late(Nanos::ZERO);
        assert!((10_000..=30_000).contains(&late_ns) && late_ns != before, "{late_ns} after {before}");
        tenths[((late_ns - 10_000) / 2_001) as usize] += 1;
        before = late_ns;
    }
    assert!(tenths.iter().all(|times| (130..270).contains(times)), "{tenths:?}");
    // Late wake-ups add up, and strike one sleep.
    sim.disturb(Nanos::ZERO, Disturbance::LateWake(micros(500)));
    sim.disturb(Nanos::ZERO, Disturbance::LateWake(micros(200)));
    assert!((10_000..=30_000).contains(&late(micros(700))));
    assert!((10_000..=30_000).contains(&late(Nanos::ZERO)));
    // A deadline that has passed is no sleep.
    let sleeps = sim.usage().voluntary_switches;
    assert_eq!(sim.sleep_until(sim.monotonic()), Woken::Expired);
    assert_eq!(sim.usage().voluntary_switches, sleeps);
}

#[test]
fn the_shortest_and_the_longest_lateness_of_the_script_both_come() {
    let sim = free(Script { wake_late: (Nanos::new(5), Nanos::new(6)), ..Script::default() });
    sim.set_policy(Policy::Fifo(1)).expect("permitted");
    let mut times = [0; 2];
    for _ in 0..100 {
        let before = sim.monotonic();
        assert_eq!(sim.sleep(SleepCall::Nanosleep, micros(9)), Woken::Expired);
        times[usize::try_from((sim.monotonic() - before - micros(9)).count() - 5).expect("not earlier")] += 1;
    }
    assert!(times.iter().all(|times| *times > 20), "{times:?}");
}

#[test]
fn events_come_in_the_order_of_their_times_in_whatever_order_they_are_added() {
    for order in [[20, 5, 7], [5, 7, 20], [7, 20, 5]] {
        let sim = free(Script::default());
        for at in order {
            sim.disturb(micros(at), Disturbance::Interrupt(micros(1)));
        }
        sim.work(micros(10));
        assert_eq!(sim.true_time(), micros(12), "{order:?}");
    }
}

#[test]
fn a_simulated_machine_says_what_it_is() {
    let (trusted, other) =
        (Sim::new(Script::default()), Sim::new(Script { counter_trusted: false, ..Script::default() }));
    assert_eq!((trusted.clocksource(), other.clocksource()), (Ok("tsc".to_owned()), Ok("hpet".to_owned())));
    let rates = trusted.published_rates();
    assert_eq!(rates.iter().map(|rate| rate.rate_hz).collect::<Vec<_>>(), [2.6e9]);
    assert_eq!(trusted.settings_read(), 0);
    for reads in 1..4 {
        assert_eq!(trusted.real_time_throttle(), Some((Nanos::from_millis(950), Nanos::from_secs(1))));
        assert_eq!(trusted.settings_read(), reads);
    }
    let facts = trusted.facts();
    assert_eq!(facts.value("cpu.model"), Some("Simulated processor"));
    assert_eq!(facts.value("kernel.release"), Some("sim"));
    assert_eq!((facts.value("cpu.governor"), facts.value("no.such.fact")), (None, None));
    assert!(trusted.limit_idle(Nanos::new(-1)).is_err());
    let limits = [70, 30].map(|most| trusted.limit_idle(micros(most)).expect("permitted"));
    assert_eq!(trusted.idle_limit(), Some(micros(30)));
    drop(limits);
    assert_eq!(trusted.idle_limit(), None);
    trusted.sentinel_arm();
    trusted.sentinel_disarm();
    assert!(!trusted.sentinel_intact());
}
