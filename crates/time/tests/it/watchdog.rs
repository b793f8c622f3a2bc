//! Protection against a delay that holds a CPU for ever: budgets, counters that stop, counters that are set back.

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_time::{CONFIRMED_FROM, Cpu, LongDelay, Machine, Nanos, Report, Sim, Timebase};

use super::{calibrated, delay_with_in_poll, disturb_in, micros, millis};

/// A day of the script's counter.
const DAY_TICKS: i64 = 86_400 * 2_600_000_000;

/// Runs a delay with a disturbance after 10 µs; checks it by the kernel's clock, from below and from far above.
#[track_caller]
fn check(
    script: &Script,
    disturbance: Disturbance,
    request: Nanos,
    delay: impl Fn(&Timebase<Sim>) -> Report,
) -> Report {
    let (sim, timebase) = calibrated(script.clone());
    disturb_in(&sim, micros(10), disturbance);
    let before = sim.monotonic();
    let report = delay(&timebase);
    let passed = sim.monotonic() - before;
    assert!(passed >= request, "early by the kernel's clock: {passed} of {request}, {report:?}");
    assert!(passed < request * 30 + millis(30), "held for {passed}, {request} asked for");
    assert!(report.late >= Nanos::ZERO && report.actual >= request, "{report:?}");
    assert_eq!(report.late, report.actual - report.requested, "{report:?}");
    report
}

#[test]
fn a_spent_budget_is_told_and_the_rest_is_slept() {
    for request in [micros(60), millis(1), millis(100)] {
        for budget in [Nanos::new(-5), Nanos::ZERO, Nanos::new(1), micros(50)] {
            let delay = |timebase: &Timebase<Sim>| timebase.delay_polling(request, budget).expect("in bounds");
            let report = check(&Script::default(), Disturbance::Drift(0), request, delay);
            assert!(report.verdict.budget_spent && report.verdict.name() == "budget_spent", "{report:?}");
            assert!(report.slept + budget >= request - micros(1), "{report:?}");
            assert!(report.polled <= budget.max(Nanos::ZERO) + micros(1), "{report:?}");
        }
    }
}

#[test]
fn a_sleep_that_signals_cut_short_is_slept_to_its_end() {
    let script = Script::default();
    let (sim, timebase) = calibrated(script);
    for wait in [100, 200, 300, 301, 302] {
        disturb_in(&sim, micros(wait), Disturbance::Signal);
    }
    let before = sim.monotonic();
    timebase.delay_polling(millis(1), micros(10)).expect("in bounds");
    assert!(sim.monotonic() - before >= millis(1));
}

#[test]
fn a_counter_that_stops_neither_holds_a_delay_nor_makes_it_early() {
    for rate in [0, 1, 1_000] {
        for request in [micros(19), micros(20), micros(50), millis(2)] {
            let stopped = Disturbance::CounterRate(rate);
            let report = check(&Script::default(), stopped, request, |t| t.delay(request).expect("short"));
            // Where the kernel's clock is looked at anyway, it ends the delay; else the kernel has to wait.
            let by_kernel = report.verdict.rerated && report.slept == Nanos::ZERO && report.late < millis(1);
            let slept = report.verdict.budget_spent && report.slept > Nanos::ZERO;
            assert!(if request < CONFIRMED_FROM { slept } else { by_kernel }, "{report:?}");
        }
    }
}

/// Every look at such a clock comes later than the shortest gap after the one before.
#[test]
fn a_clock_that_becomes_slow_to_read_does_not_hold_a_delay() {
    for picos in [1_000_000, 5_000_000] {
        let slow = Disturbance::ClockCost(picos);
        for request in [micros(20), micros(50), millis(2)] {
            let delays: [fn(&Timebase<Sim>, Nanos) -> Report; 3] = [
                |timebase, request| timebase.delay(request).expect("short"),
                |timebase, request| timebase.delay_until(timebase.now() + request).expect("short"),
                |timebase, request| LongDelay::new(timebase).delay(request).expect("short"),
            ];
            for delay in delays {
                let report = check(&Script::default(), slow, request, |timebase| delay(timebase, request));
                assert!(report.late < micros(200) && !report.verdict.is_clean(), "{report:?}");
            }
        }
    }
}

#[test]
fn a_counter_that_is_set_back_neither_holds_a_delay_nor_makes_it_early() {
    // Like a counter that begins anew after a suspend.
    for days in [1, 30, 3_000] {
        let script = Script { cpu_offsets: vec![0, -(days * DAY_TICKS)], ..Script::default() };
        let set_back = Disturbance::Migrate(Cpu(1));
        for request in [micros(20), micros(50), millis(2)] {
            let report = check(&script, set_back, request, |t| t.delay(request).expect("short"));
            assert!(report.verdict.migrated && report.verdict.lost() >= Nanos::ZERO, "{report:?}");
            check(&script, set_back, request, |t| t.delay_until(t.now() + request).expect("short"));
        }
    }
}

/// Lets a counter fail 10 µs into a long delay.
#[track_caller]
fn check_long(
    disturbance: Disturbance,
    request: Nanos,
    delay: impl Fn(&Timebase<Sim>, &mut LongDelay<'_, Sim>) -> Report,
) {
    let script = Script { cpu_offsets: vec![0, -DAY_TICKS, -(3_000 * DAY_TICKS)], ..Script::default() };
    let (sim, timebase) = calibrated(script);
    let mut long = LongDelay::new(&timebase);
    disturb_in(&sim, micros(10), disturbance);
    let before = sim.monotonic();
    let report = delay(&timebase, &mut long);
    let passed = sim.monotonic() - before;
    assert!(passed >= request && report.late >= Nanos::ZERO, "{passed} of {request}, {report:?}");
    assert!(passed < request * 3 + millis(10), "held for {passed}, {request} asked for");
}

#[test]
fn a_counter_that_stops_or_is_set_back_neither_holds_a_long_delay_nor_makes_it_early() {
    for disturbance in [
        Disturbance::CounterRate(0),
        Disturbance::CounterRate(1_000),
        Disturbance::Migrate(Cpu(1)),
        Disturbance::Migrate(Cpu(2)),
    ] {
        for request in [micros(30), micros(200), millis(5), millis(300)] {
            check_long(disturbance, request, |_, long| long.delay(request).expect("in bounds"));
            check_long(disturbance, request, |t, long| long.delay_until(t.now() + request).expect("this epoch"));
        }
    }
}

#[test]
fn a_kernel_clock_that_is_set_back_is_waited_for_without_polling() {
    let (sim, timebase) = calibrated(Script::default());
    let mut long = LongDelay::new(&timebase);
    let began = sim.monotonic();
    disturb_in(&sim, millis(2) - micros(3), Disturbance::ClockStep(-millis(400)));
    let cpu = sim.usage().cpu;
    let report = long.delay(millis(2)).expect("in bounds");
    assert!(sim.monotonic() - began >= millis(2));
    assert!(report.verdict.budget_spent && report.slept > millis(390), "{report:?}");
    assert!(sim.usage().cpu - cpu < millis(210), "the CPU was held for the time by which the clock was set back");
}

/// The counter of the other CPU is a day ahead, so a poll has spent its budget as soon as the thread moves there.
#[test]
fn a_long_delay_counts_as_slept_what_it_sleeps_in_place_of_a_poll() {
    let script = Script { cpu_offsets: vec![0, DAY_TICKS], ..Script::default() };
    for before_end in [9, 15, 25, 35] {
        let report = delay_with_in_poll(&script, micros(before_end), Disturbance::Migrate(Cpu(1)));
        assert!(report.verdict.budget_spent && report.late > Nanos::ZERO, "{before_end}: {report:?}");
        // It sleeps, polls until the move, and sleeps until after the deadline.
        let polled_most = report.window - micros(before_end);
        assert!(report.polled > Nanos::ZERO && report.polled <= polled_most, "{before_end}: {report:?}");
        assert!(report.slept >= report.actual - polled_most - micros(1), "{before_end}: {report:?}");
    }
}

/// A suspend stops the kernel's clock and the counter, and a clock that is set back by an hour is the reference all the
/// same: the rest is slept, not polled.
#[test]
fn a_suspend_or_a_clock_set_back_by_an_hour_makes_no_delay_early_and_none_polls_through_it() {
    const HOUR: Nanos = Nanos::from_secs(3_600);
    for disturbance in [Disturbance::Suspend(HOUR), Disturbance::ClockStep(-HOUR)] {
        for request in [micros(30), millis(2), millis(90)] {
            for (part, polled) in [(1, false), (500, false), (990, request == micros(30)), (999, false)] {
                let (sim, timebase) = calibrated(Script::default());
                let mut long = LongDelay::new(&timebase);
                disturb_in(&sim, Nanos::new(request.count() / 1_000 * part), disturbance);
                let (before, cpu) = (sim.monotonic(), sim.usage().cpu);
                let report = if polled { timebase.delay(request) } else { long.delay(request) }.expect("in bounds");
                let (passed, used) = (sim.monotonic() - before, sim.usage().cpu - cpu);
                assert!(passed >= request && report.late >= Nanos::ZERO, "{passed}: {report:?}");
                assert!(used <= millis(210), "polled for {used}: {report:?}");
            }
        }
    }
}
