//! Long delays on machines that wake late, at every length and under every budget.

use hairspring_machine::sim::{Costs, Disturbance, Script};
use hairspring_time::{LongDelay, Machine, Nanos, Policy, Report, Sim, Timebase};

use super::{ODD_COSTS, calibrated, disturb_in, micros, millis};

/// Around every border in the method: nothing, the confirming stretch, the anchor, the window, both sleeps.
const REQUESTS: [i64; 23] = [
    0,
    1,
    799,
    801,
    5_000,
    19_999,
    20_001,
    50_000,
    80_001,
    199_999,
    200_001,
    249_999,
    299_999,
    399_999,
    400_001,
    500_000,
    649_999,
    650_001,
    1_000_000,
    4_250_001,
    10_000_000,
    100_000_000,
    1_000_000_000,
];

fn waking(late: (i64, i64), drift: i64, counter_trusted: bool) -> Script {
    Script {
        wake_late: (micros(late.0), micros(late.1)),
        kernel_drift_ppb: drift,
        counter_trusted,
        costs: ODD_COSTS,
        ..Script::default()
    }
}

/// Checks a long delay by the kernel's clock, and that its report agrees with itself.
#[track_caller]
fn check(sim: &Sim, long: &mut LongDelay<'_, Sim>, request: Nanos) -> Report {
    let before = sim.monotonic();
    let report = long.delay(request).expect("in bounds");
    let passed = sim.monotonic() - before;
    assert!(passed >= request, "{passed} of {request}, {report:?}");
    assert!(report.requested == request && report.actual >= request && report.actual <= passed, "{report:?}");
    assert_eq!(report.late, report.actual - request, "{report:?}");
    assert!(!report.slept.is_negative() && !report.polled.is_negative(), "{report:?}");
    assert!(report.slept + report.polled <= report.actual, "{report:?}");
    report
}

#[test]
fn a_long_delay_is_never_early_by_the_kernels_clock_however_late_it_is_woken() {
    for late in [(0, 0), (0, 3), (20, 60), (0, 500), (400, 700), (2_000, 5_000), (0, 20_000)] {
        for drift in [-500_000, 0, 500_000] {
            for trusted in [true, false] {
                let (sim, timebase) = calibrated(waking(late, drift, trusted));
                let mut long = LongDelay::new(&timebase);
                for request in REQUESTS {
                    check(&sim, &mut long, Nanos::new(request));
                }
            }
        }
    }
}

#[test]
fn a_long_delay_that_is_woken_in_time_ends_within_a_microsecond_at_any_length() {
    for drift in [-500_000, 0, 500_000] {
        let (sim, timebase) = calibrated(waking((20, 60), drift, true));
        let mut long = LongDelay::new(&timebase);
        for request in REQUESTS.into_iter().filter(|request| *request >= 50_000).chain([60_000_000_000]) {
            let report = check(&sim, &mut long, Nanos::new(request));
            assert!(report.late < micros(1) && report.verdict.is_clean(), "{report:?}");
        }
    }
}

#[test]
fn a_long_delay_sleeps_for_all_but_its_window() {
    let (sim, timebase) = calibrated(waking((20, 60), 0, true));
    let mut long = LongDelay::new(&timebase);
    for _ in 0..20 {
        let report = check(&sim, &mut long, millis(10));
        assert!(report.polled <= report.window + micros(2) && report.window <= millis(1), "{report:?}");
        assert!(report.slept >= millis(10) - report.window - micros(2), "{report:?}");
    }
}

#[test]
fn a_long_delay_that_learned_nothing_of_late_wake_ups_has_room_for_one() {
    let (sim, timebase) = calibrated(Script::default());
    let mut long = LongDelay::new(&timebase);
    for (request, before, late, has_room) in [
        (millis(100), micros(900), micros(700), false),
        (Nanos::from_secs(30), micros(1600), micros(1400), true),
        (Nanos::from_secs(60), micros(3100), micros(2900), true),
    ] {
        disturb_in(&sim, request - before, Disturbance::LateWake(late));
        let report = long.delay(request).expect("in bounds");
        assert_eq!(report.verdict.overslept == Nanos::ZERO, has_room, "{request}: {report:?}");
        assert!(report.polled <= millis(3), "{report:?}");
    }
}

#[test]
fn a_budget_caps_the_window_whatever_was_learned() {
    for budget in [micros(5), micros(30), micros(150), millis(1)] {
        let (sim, timebase) = calibrated(waking((0, 800), 0, true));
        let mut long = LongDelay::new(&timebase).with_budget(budget);
        for _ in 0..30 {
            let report = check(&sim, &mut long, millis(3));
            assert!(report.window <= budget && report.polled <= budget + micros(5), "{report:?}");
        }
    }
}

#[test]
fn delay_until_ends_within_a_microsecond_on_a_scale_that_knows_the_kernels_rate() {
    for drift in [-500_000, 0, 500_000] {
        for trusted in [true, false] {
            let (_, timebase) = calibrated(waking((20, 60), drift, trusted));
            let mut long = LongDelay::new(&timebase);
            for request in REQUESTS {
                let deadline = timebase.now() + Nanos::new(request);
                let report = long.delay_until(deadline).expect("this epoch");
                assert!(timebase.now().since(deadline).expect("one epoch") >= Nanos::ZERO, "{report:?}");
                assert!(report.late >= Nanos::ZERO, "{report:?}");
                assert!(request < 50_000 || report.late < micros(1), "{report:?}");
            }
        }
    }
}

/// Regression: the kernel got the wake-up time of a sleeper once, at the beginning, although the deadline is on our
/// scale. After the kernel had changed its rate, our scale was far from its clock by then, and the lateness was
/// measured on the wrong one. Now the delay is late by the distance of the two and reports it; after a refinement,
/// which measures the distance, it is not late.
#[test]
fn delay_until_tells_how_far_its_scale_has_run_away_from_the_kernels_clock_until_it_is_refined() {
    for ppb in [-9_000, 9_000] {
        let (sim, timebase) = calibrated(waking((20, 60), 0, true));
        let mut long = LongDelay::new(&timebase);
        disturb_in(&sim, Nanos::ZERO, Disturbance::Drift(ppb));
        let report = long.delay_until(timebase.now() + Nanos::from_secs(10)).expect("this epoch");
        let apart = micros(90);
        assert!((report.late - apart).count().abs() < 1_500, "{ppb} {report:?}");
        assert_eq!(report.verdict.name(), "rerated", "{report:?}");
        // Once for the baseline that holds both rates, and once for the new one.
        let timebase = timebase.refine().timebase;
        sim.sleep_until(sim.monotonic() + millis(100));
        let timebase = timebase.refine().timebase;
        let report = LongDelay::new(&timebase).delay_until(timebase.now() + Nanos::from_secs(1)).expect("this epoch");
        assert!(report.late < micros(1) && report.verdict.is_clean(), "{ppb} {report:?}");
    }
}

#[test]
fn a_caller_prepares_once_when_it_is_awake_and_before_the_end_is_watched() {
    let (sim, timebase) = calibrated(waking((20, 60), 0, true));
    let mut long = LongDelay::new(&timebase);
    for request in REQUESTS {
        let (deadline, mut told) = (timebase.now() + Nanos::new(request), Vec::new());
        let report =
            long.delay_until_prepared(deadline, |left| told.push((left, deadline.since(timebase.now_ordered()))));
        let report = report.expect("this epoch");
        // A request of some hundred nanoseconds is over before.
        assert!(told.len() == 1 || request < 1_000 && told.is_empty(), "{request} {told:?}");
        for (left, found) in told {
            let found = found.expect("one epoch");
            assert!(left > Nanos::ZERO && left <= report.window.max(Nanos::new(request)), "{left} {report:?}");
            assert!((left - found).count().abs() < 1_000, "{left} was told when it was {found}");
        }
        assert!(request < 50_000 || report.late < micros(1), "{report:?}");
    }
    // Work that fits into the window costs nothing, and the excess is reported.
    for (work, late) in [(micros(40), micros(0)), (millis(5), millis(4))] {
        let window = micros(400);
        let mut long = LongDelay::new(&timebase).with_budget(window);
        for _ in 0..40 {
            check(&sim, &mut long, millis(20));
        }
        let deadline = timebase.now() + Nanos::from_secs(2);
        let report = long.delay_until_prepared(deadline, |_| sim.work(work)).expect("this epoch");
        assert!(report.late >= late && report.late < late + millis(1), "{work}: {report:?}");
        assert_eq!(late == Nanos::ZERO, report.verdict.is_clean(), "{report:?}");
    }
}

#[test]
fn a_deadline_that_has_passed_returns_at_once_with_its_lateness() {
    let (sim, timebase) = calibrated(Script::default());
    let mut long = LongDelay::new(&timebase);
    let deadline = timebase.now();
    sim.work(millis(3));
    let report = long.delay_until(deadline).expect("this epoch");
    assert!(report.late >= millis(3) && report.actual == Nanos::ZERO && report.slept == Nanos::ZERO, "{report:?}");
    assert_eq!(long.delay_until(timebase.now() - Nanos::MAX).expect("this epoch").late, Nanos::MAX);
}

/// How late a delay of 1 ms looks from outside.
fn outer_late(timebase: &Timebase<Sim>, long: &mut LongDelay<'_, Sim>) -> Nanos {
    let before = timebase.stamp_ordered();
    long.delay(millis(1)).expect("in bounds");
    timebase.nanos(timebase.stamp_ordered().since(before)) - millis(1)
}

#[test]
fn tune_makes_the_average_exact_for_the_caller() {
    let (_, timebase) = calibrated(waking((20, 60), 0, true));
    let mut long = LongDelay::new(&timebase);
    let mut untuned: Vec<Nanos> = (0..101).map(|_| outer_late(&timebase, &mut long)).collect();
    untuned.sort_unstable();
    let longer = long.tune(millis(3)).expect("nobody cancels");
    assert!(longer > Nanos::ZERO && longer < micros(1), "{longer}");
    let lead = long.tune(millis(1)).expect("nobody cancels");
    assert!(lead > Nanos::ZERO && lead == long.lead());
    let mut tuned: Vec<Nanos> = (0..101).map(|_| outer_late(&timebase, &mut long)).collect();
    tuned.sort_unstable();
    assert!(untuned[0] > Nanos::ZERO, "without a lead it is never early");
    assert!(tuned[50] > Nanos::new(-30) && tuned[50] < Nanos::new(30), "{} instead of {}", tuned[50], untuned[50]);
}

#[test]
fn a_lead_is_the_median_of_as_many_delays_as_fit_into_a_second() {
    for (request, delays) in [(0, 51), (1, 51), (19_000_000, 51), (25_000_000, 40), (1_000_000_000, 11), (i64::MAX, 11)]
    {
        let mut made = 0;
        let lead = hairspring_time::lead_for::<()>(Nanos::new(request), || {
            made += 1;
            Ok(Nanos::new(made))
        });
        assert_eq!((made, lead), (delays, Ok(Nanos::new(delays / 2 + 1))), "{request}");
    }
    let sorted = |late: &[i64]| {
        let mut late = late.iter().cycle();
        hairspring_time::lead_for(Nanos::ZERO, || late.next().map(|&late| Nanos::new(late)).ok_or(()))
    };
    assert_eq!(sorted(&[9, 5, 700]), Ok(Nanos::new(9)));
    assert_eq!(sorted(&[-9]), Ok(Nanos::ZERO));
    assert_eq!(sorted(&[]), Err(()));
}

#[test]
fn a_delay_counts_from_the_reading_that_it_is_given() {
    let (sim, timebase) = calibrated(waking((20, 60), 0, true));
    let mut long = LongDelay::new(&timebase);
    for (work, late) in [(Nanos::ZERO, Nanos::ZERO), (millis(3), Nanos::ZERO), (millis(25), millis(15))] {
        let began = sim.monotonic();
        sim.work(work);
        let report = long.delay_since(began, millis(10), |_| ()).expect("in bounds");
        let took = sim.monotonic() - began;
        assert!(report.late >= late && report.late < late + micros(1), "{work}: {report:?}");
        assert!(took >= report.actual && took < report.actual + micros(1), "{took} {report:?}");
        assert_eq!(report.slept > Nanos::ZERO, late == Nanos::ZERO, "{report:?}");
        assert_eq!(report.verdict.overslept, Nanos::ZERO, "time that passed without a sleep: {report:?}");
    }
    assert!(long.delay_since(sim.monotonic(), Nanos::new(-1), |_| ()).is_err());
}

/// Readings of the clock take no time on this machine, so a delay of nothing begins exactly at its deadline.
#[test]
fn a_delay_whose_time_has_just_passed_neither_sleeps_nor_prepares() {
    let costs = Costs { ticks: 0, ticks_ordered: 0, clock: 0, system_call: 0, relax: 0 };
    let (sim, timebase) = calibrated(Script { costs, ..Script::default() });
    let mut long = LongDelay::new(&timebase);
    let mut prepared = Vec::new();
    let report = long.delay_since(sim.monotonic(), Nanos::ZERO, |left| prepared.push(left)).expect("in bounds");
    assert_eq!((report.slept, report.window, prepared), (Nanos::ZERO, Nanos::ZERO, vec![]));
}

#[test]
fn a_lead_ends_delays_that_much_earlier_and_no_more() {
    let (sim, timebase) = calibrated(waking((20, 60), 0, true));
    for lead in [Nanos::new(-5), Nanos::ZERO, micros(3), millis(30), Nanos::MAX, -Nanos::MAX] {
        let mut long = LongDelay::new(&timebase).with_lead(lead);
        let effective = lead.max(Nanos::ZERO).min(millis(10));
        let report = long.delay(millis(10)).expect("in bounds");
        assert!(report.late >= -effective && report.late < -effective + micros(2), "{lead}: {report:?}");
        let before = sim.true_time();
        let report = long.delay_until(timebase.now() + millis(10)).expect("in bounds");
        assert!(report.late >= -lead.max(Nanos::ZERO).min(millis(10)) - micros(1), "{lead}: {report:?}");
        assert!(sim.true_time() - before < millis(11));
    }
}

#[test]
fn the_window_is_learned_apart_for_real_time_and_given_back_with_the_slack() {
    let (sim, timebase) = calibrated(waking((20, 60), 0, true));
    let slack = sim.timer_slack();
    let mut long = LongDelay::new(&timebase);
    assert!(long.window(millis(10)) < micros(100), "{}", long.window(millis(10)));
    sim.set_policy(Policy::Fifo(10)).expect("permitted");
    let unknown = long.window(millis(10));
    check(&sim, &mut long, millis(10));
    assert!(long.window(millis(10)) < unknown, "nothing was learned");
    sim.set_policy(Policy::Other).expect("always allowed");
    assert_eq!(sim.timer_slack(), slack);
}

/// A machine that wakes late enough that only the budget limits the window.
#[test]
fn a_delay_polls_half_of_its_request_at_most_and_a_twenty_thousandth_of_a_long_one() {
    let (_, timebase) = calibrated(waking((10_000, 20_000), 0, true));
    let mut long = LongDelay::new(&timebase);
    long.delay(millis(100)).expect("in bounds");
    for (request, window) in [
        (micros(300), micros(200)),
        (micros(600), micros(300)),
        (micros(1500), micros(750)),
        (millis(2), millis(1)),
        (Nanos::from_secs(10), millis(1)),
        (Nanos::from_secs(30), micros(1500)),
        (Nanos::from_secs(60), millis(3)),
        (Nanos::from_secs(3600), millis(3)),
    ] {
        assert_eq!(long.window(request), window, "{request}");
    }
}

#[test]
fn the_lateness_is_that_of_the_deadline_and_not_of_the_lead_before_it() {
    let (_, timebase) = calibrated(waking((20, 60), 0, true));
    let lead = micros(50);
    let mut long = LongDelay::new(&timebase).with_lead(lead);
    let report = long.delay_until(timebase.now() + millis(5)).expect("in bounds");
    assert!(report.late >= -lead && report.late < -lead + micros(1), "{report:?}");
    // The deadline is ahead, and its lead has begun.
    let report = long.delay_until(timebase.now() + micros(20)).expect("in bounds");
    assert!(report.requested > micros(15) && report.requested <= micros(20), "{report:?}");
    assert!(report.late < -micros(15) && report.late >= -micros(20), "{report:?}");
    assert_eq!((report.slept, report.polled), (Nanos::ZERO, Nanos::ZERO));
}

#[test]
fn a_delay_gives_the_timer_slack_back_however_it_ends() {
    let (sim, timebase) = calibrated(waking((20, 60), 0, true));
    let flag = std::sync::atomic::AtomicBool::new(false);
    sim.set_timer_slack(micros(70));
    let mut long = LongDelay::new(&timebase).cancelled_by(&flag);
    assert_eq!(sim.timer_slack(), micros(70));
    long.delay(millis(3)).expect("in bounds");
    assert_eq!(sim.timer_slack(), micros(70));
    flag.store(true, std::sync::atomic::Ordering::Relaxed);
    long.delay(millis(3)).expect_err("cancelled");
    assert_eq!(sim.timer_slack(), micros(70));
}

/// A caller that can be cancelled is asleep for a tenth of a second at a time.
#[test]
fn a_delay_that_can_be_cancelled_sleeps_as_long_as_another() {
    let flag = std::sync::atomic::AtomicBool::new(false);
    let slept = |cancelled: bool| {
        let (sim, timebase) = calibrated(waking((20, 60), 0, true));
        let mut long = LongDelay::new(&timebase);
        if cancelled {
            long = long.cancelled_by(&flag);
        }
        let before = sim.usage().cpu;
        check(&sim, &mut long, Nanos::from_secs(1));
        sim.usage().cpu - before
    };
    let (plain, cancelled) = (slept(false), slept(true));
    assert!(cancelled < plain + millis(1), "{cancelled} of CPU time, and {plain} of one that cannot be cancelled");
}
