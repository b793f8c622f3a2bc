//! The rate that is found lies inside the bound that is stated with it, whatever happens meanwhile.

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_time::{Anchors, Calibration, Continuity, FIRST_BASELINE, Machine, Nanos, Sim, Timebase};
use proptest::prelude::*;

use super::{ODD_COSTS, calibrated, disturb_in, micros, millis};

/// How far the stated rate is from the true one against the kernel's clock, in parts per million.
fn error_ppm(calibration: &Calibration, rate_hz: u64, drift_ppb: i64) -> f64 {
    let by_kernel_clock = rate_hz as f64 / (1.0 + drift_ppb as f64 * 1e-9);
    (by_kernel_clock / calibration.rate_hz - 1.0).abs() * 1e6
}

#[track_caller]
fn check(timebase: &Timebase<Sim>, rate_hz: u64, drift_ppb: i64) {
    let calibration = timebase.calibration();
    let error = error_ppm(calibration, rate_hz, drift_ppb);
    // Floating point of the test itself.
    assert!(error <= calibration.bound_ppm + 1e-7, "{error} ppm at {rate_hz} Hz, drift {drift_ppb}: {calibration:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn the_true_rate_is_inside_the_stated_bound(
        rate_hz in prop_oneof![8_200_000_u64..60_000_000, 900_000_000_u64..6_000_000_000, 1_u64 << 33..100_000_000_000],
        drift_ppb in -500_000_i64..=500_000,
        late in (0_i64..500, 0_i64..5_000),
        counter_start in any::<u64>(),
        tick_ps in 1_u64..60_000,
        clock_ps in 1_u64..2_000_000,
        read_at in (0_u8..=100, 0_u8..=100),
        interrupts in prop::collection::vec((0_i64..40_000_000, 1_i64..300_000, any::<bool>()), 0..40),
    ) {
        let mut script = Script {
            rate_hz,
            kernel_drift_ppb: drift_ppb,
            wake_late: (micros(late.0), micros(late.0 + late.1)),
            counter_start,
            costs: ODD_COSTS,
            ..Script::default()
        };
        (script.costs.ticks_ordered, script.costs.clock) = (tick_ps, clock_ps);
        for (at, length, preempt) in interrupts {
            let length = Nanos::new(length);
            let disturbance = if preempt { Disturbance::Preempt(length) } else { Disturbance::Interrupt(length) };
            script = script.with(Nanos::new(at), disturbance);
        }
        // Early in the calls of the first brackets, late in those of the last, or the other way round.
        script = script
            .with(Nanos::ZERO, Disturbance::ReadAt(read_at.0))
            .with(millis(2), Disturbance::ReadAt(read_at.1));
        let (sim, mut timebase) = calibrated(script);
        check(&timebase, rate_hz, drift_ppb);
        for _ in 0..3 {
            sim.sleep_until(sim.monotonic() + millis(8));
            timebase = timebase.refine().timebase;
            check(&timebase, rate_hz, drift_ppb);
        }
    }
}

/// The bracket of a slow counter is a tick wide or none; half the width of two brackets is then not all that can be
/// wrong. The sweep shifts the counter's phase against the kernel's clock by a nanosecond at a time, and the kernel
/// looks at its clock at the very beginning of the first brackets and at the very end of the last, or the other way
/// round.
#[test]
fn the_bound_holds_at_every_phase_and_wherever_in_a_bracket_the_kernel_looks_at_its_clock() {
    for rate_hz in [8_192_000, 19_200_000, 24_000_000, 25_000_000, 1_000_000_000, 2_600_000_000] {
        for (first, last) in [(0, 0), (0, 100), (100, 0)] {
            for clock in [1_000, 18_000, 60_000, 700_000] {
                for shift in 0..100 {
                    let mut script = Script { rate_hz, ..Script::default() };
                    script.costs.clock = clock;
                    script.costs.ticks_ordered = 1_000;
                    let script = script.with(Nanos::ZERO, Disturbance::ReadAt(first));
                    let sim = Sim::new(script.with(millis(2), Disturbance::ReadAt(last)));
                    sim.work(Nanos::new(shift));
                    check(&Timebase::calibrate(sim).expect("it advances"), rate_hz, 0);
                }
            }
        }
    }
}

#[test]
fn a_calibration_is_good_to_20_ppm_at_once_and_to_1_ppm_at_the_age_of_a_tenth_of_a_second() {
    let (sim, timebase) = calibrated(Script::default());
    assert!(timebase.calibration().bound_ppm <= 20.0, "{:?}", timebase.calibration());
    assert!(timebase.cost().cpu < millis(1) && timebase.cost().wall < millis(10), "{:?}", timebase.cost());
    sim.sleep_until(sim.monotonic() + millis(96));
    let refined = timebase.refine().timebase;
    assert!(refined.calibration().bound_ppm <= 1.0, "{:?}", refined.calibration());
    check(&refined, 2_600_000_000, 0);
}

#[test]
fn the_cost_of_a_calibration_is_that_of_the_calibration_alone() {
    let sim = Sim::new(Script::default());
    sim.work(millis(30));
    let cost = Timebase::calibrate(sim).expect("it advances").cost();
    assert!(cost.wall >= FIRST_BASELINE && cost.wall < millis(10), "{cost:?}");
    assert!(cost.cpu > Nanos::ZERO && cost.cpu < millis(1), "{cost:?}");
}

#[test]
fn calibrate_to_a_bound_reaches_it_or_the_end_of_its_patience() {
    let reached = Timebase::calibrate_to(Sim::new(Script::default()), 0.2, Nanos::from_secs(10)).expect("it advances");
    assert!(reached.calibration().bound_ppm <= 0.2 && reached.calibration().baseline < Nanos::from_secs(3));
    let tired = Timebase::calibrate_to(Sim::new(Script::default()), 0.0, millis(300)).expect("it advances");
    assert!(tired.calibration().baseline >= millis(300) && tired.calibration().baseline < millis(310));
}

#[test]
fn calibrate_to_a_bound_waits_no_longer_than_the_bound_needs() {
    for bound_ppm in [5.0, 1.0, 0.2] {
        let sim = Sim::new(Script::default());
        let timebase = Timebase::calibrate_to(sim.clone(), bound_ppm, Nanos::from_secs(60)).expect("it advances");
        let reached = timebase.calibration().bound_ppm;
        assert!(reached <= bound_ppm && reached > bound_ppm / 1.5, "{reached} ppm of {bound_ppm}");
        // Each wait makes the baseline up to four times as long.
        let waits = sim.usage().voluntary_switches.expect("a machine that counts them");
        assert!(waits <= 8, "{waits} waits for {bound_ppm} ppm");
        assert!(sim.usage().cpu < millis(2), "{} of computing for {bound_ppm} ppm", sim.usage().cpu);
    }
}

#[test]
fn a_time_base_goes_on_where_another_process_has_left_it() {
    let sim = Sim::new(Script::default());
    let before = Timebase::calibrate_to(sim.clone(), 0.5, Nanos::from_secs(1)).expect("it advances");
    let text = before.anchors().to_string();
    let wakes = sim.monotonic();
    let resumed = Timebase::resume(sim.clone(), text.parse().expect("as it was written")).expect("the same machine");
    assert!(sim.monotonic() - wakes < millis(1), "it does not sleep");
    assert_eq!(resumed.calibration(), before.calibration());
    let stamp = resumed.stamp();
    assert_eq!(resumed.instant(stamp), before.instant(stamp));
    // It knows the changes since then, and its baseline is the whole time.
    sim.sleep_until(sim.monotonic() + Nanos::from_secs(2));
    let refined = resumed.refine();
    assert_eq!(refined.continuity, Continuity::Continued);
    assert!(refined.timebase.calibration().bound_ppm < before.calibration().bound_ppm / 2.0);
    disturb_in(&sim, millis(1), Disturbance::ClockStep(millis(5)));
    sim.sleep_until(sim.monotonic() + millis(10));
    let stepped = Timebase::resume(sim, text.parse().expect("as it was written")).expect("the same machine").refine();
    assert!(matches!(stepped.continuity, Continuity::Stepped(_)), "{:?}", stepped.continuity);
    for wrong in ["", "1,2", &format!("{text},1"), &text.replacen(',', ";", 1)] {
        assert!(wrong.parse::<Anchors>().is_err(), "{wrong}");
    }
}

#[test]
fn what_the_kernel_does_to_its_clock_is_told_beside_the_rate() {
    for drift in [-100_000, 0, 250_000] {
        let (_, timebase) = calibrated(Script { kernel_drift_ppb: drift, ..Script::default() });
        let told = timebase.calibration().discipline_ppm;
        let true_ppm = -drift as f64 * 1e-3;
        let bound = 2.5 * timebase.calibration().bound_ppm + 0.1;
        // The sign: how far the raw clock runs from the disciplined one.
        assert!((told.abs() - true_ppm.abs()).abs() < bound, "{told} for {true_ppm}");
    }
}

#[test]
fn a_counter_or_clock_that_stands_still_is_no_time_base() {
    for rate_hz in [0, 1, 1_000_000, 200_000_000_000] {
        let refused = Timebase::calibrate(Sim::new(Script { rate_hz, ..Script::default() }));
        let error = refused.map(|_| rate_hz).expect_err("too slow or too fast");
        assert!(error.to_string().contains("8 MHz to 127 GHz"), "{error}");
    }
}

#[test]
fn an_untrusted_counter_is_not_calibrated_but_replaced() {
    let (_, timebase) = calibrated(Script { counter_trusted: false, ..Script::default() });
    let calibration = timebase.calibration();
    assert_eq!((calibration.rate_hz, calibration.bound_ppm), (1e9, 0.0));
    assert!(timebase.trust().reasons.iter().any(|reason| !reason.supports && reason.text.contains("hpet")));
}
