//! How one time base follows another: without a step, with a smaller bound, or in a new epoch with a reason.

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_time::{Continuity, Machine, Nanos, Sim, TimeSource, Timebase};

use super::{ODD_COSTS, calibrated, disturb_in, micros, millis};

/// Checks that an instant now differs from the kernel's clock by no more than the time base states.
#[track_caller]
fn check_sandwich(sim: &Sim, timebase: &Timebase<Sim>) {
    let before = sim.monotonic();
    let now = timebase.now_ordered();
    let after = sim.monotonic();
    let bound = timebase.offset_bound(now);
    let (lower, upper) = (before - bound, after + bound);
    assert!((lower..=upper).contains(&now), "{now} not in {lower}..={upper}");
}

fn age(sim: &Sim, span: Nanos) {
    sim.sleep_until(sim.monotonic() + span);
}

#[test]
fn a_successor_continues_without_a_step_and_with_a_smaller_bound() {
    for rate_hz in [24_000_000, 1_000_000_000, 2_600_000_000] {
        let (sim, mut timebase) = calibrated(Script { rate_hz, costs: ODD_COSTS, ..Script::default() });
        for _ in 0..12 {
            age(&sim, millis(17));
            let refined = timebase.refine();
            assert_eq!(refined.continuity, Continuity::Continued);
            let successor = refined.timebase;
            let stamp = timebase.stamp_ordered();
            let step = successor.instant(stamp).since(timebase.instant(stamp)).expect("one epoch");
            assert!(step >= Nanos::new(-1) && step <= Nanos::new(1), "a step of {step}");
            assert!(successor.calibration().bound_ppm < timebase.calibration().bound_ppm);
            assert!(successor.calibration().baseline > timebase.calibration().baseline);
            timebase = successor;
            check_sandwich(&sim, &timebase);
        }
    }
}

#[test]
fn instants_stay_within_their_bound_of_the_kernels_clock_as_they_age() {
    for drift in [-500_000, 0, 500_000] {
        for rate_hz in [24_000_000, 2_600_000_000] {
            let script = Script { kernel_drift_ppb: drift, rate_hz, costs: ODD_COSTS, ..Script::default() };
            let (sim, mut timebase) = calibrated(script);
            for round in 1..40 {
                age(&sim, micros(round * 311));
                check_sandwich(&sim, &timebase);
                if round % 7 == 0 {
                    timebase = timebase.refine().timebase;
                    check_sandwich(&sim, &timebase);
                }
            }
        }
    }
}

/// The bound of an instant grows from the latest comparison on, and is as large before it as behind it.
#[test]
fn the_bound_of_an_instant_grows_from_the_latest_comparison_on() {
    let (sim, timebase) = calibrated(Script::default());
    age(&sim, Nanos::from_secs(10_000));
    let timebase = timebase.refine().timebase;
    let now = timebase.now();
    let least = timebase.offset_bound(now);
    let hour = Nanos::from_secs(3600);
    let drift = timebase.drift_in(hour);
    for moment in [now + hour, now - hour] {
        let more = timebase.offset_bound(moment) - least;
        assert!((more - drift).count().abs() <= 10, "{more} in an hour, in which the rate may be off by {drift}");
    }
}

#[test]
fn readings_never_go_back_through_a_hundred_refinements() {
    let (sim, mut timebase) = calibrated(Script { costs: ODD_COSTS, ..Script::default() });
    let mut last = timebase.now();
    for round in 0..100 {
        age(&sim, micros(500 + round * 37));
        timebase = timebase.refine().timebase;
        let now = timebase.now();
        assert!(now.since(last).expect("one epoch") >= Nanos::ZERO);
        last = now;
    }
}

/// How far the rate is from that of a 2.6 GHz counter under this drift.
fn error_ppm(timebase: &Timebase<Sim>, drift_ppb: i64) -> f64 {
    (2.6e9 / (1.0 + drift_ppb as f64 * 1e-9) / timebase.calibration().rate_hz - 1.0).abs() * 1e6
}

/// Regression: the baseline that held both rates was stated with a bound as if it held one.
#[test]
fn a_kernel_clock_that_changes_its_rate_is_noticed_and_learned_anew() {
    for drift in [-200_000, -8_000, 8_000, 200_000] {
        // How long after the last look, of 100 ms, the change comes. Later than half and no bound could cover it.
        for wait in [0, 10, 45] {
            let (sim, timebase) = calibrated(Script::default());
            age(&sim, millis(100));
            let timebase = timebase.refine().timebase;
            disturb_in(&sim, millis(wait), Disturbance::Drift(drift));
            age(&sim, millis(100));
            let refined = timebase.refine();
            assert_eq!(refined.continuity, Continuity::Rerated, "drift {drift}, after {wait} ms");
            let timebase = refined.timebase;
            let (error, bound) = (error_ppm(&timebase, drift), timebase.calibration().bound_ppm);
            assert!(error <= bound, "{error} ppm, bound {bound}, drift {drift}, after {wait} ms");
            let most = drift.abs() as f64 * 1e-3 + 2.0;
            assert!(bound <= most, "bound {bound} ppm for a change of {drift} ppb after {wait} ms");
            check_sandwich(&sim, &timebase);
            age(&sim, millis(100));
            check_sandwich(&sim, &timebase);
            let refined = timebase.refine();
            let (error, bound) = (error_ppm(&refined.timebase, drift), refined.timebase.calibration().bound_ppm);
            assert!(error <= bound && bound < 1.5, "{error} ppm, bound {bound}, {:?}", refined.continuity);
            assert_eq!(refined.timebase.epoch(), timebase.epoch());
        }
    }
}

#[test]
fn a_changed_rate_is_learned_from_a_first_baseline_on_and_not_from_less() {
    let (sim, timebase) = calibrated(Script::default());
    age(&sim, millis(100));
    let timebase = timebase.refine().timebase;
    disturb_in(&sim, Nanos::ZERO, Disturbance::Drift(200_000));
    for (wait, continuity) in [(2, Continuity::Continued), (1, Continuity::Continued), (2, Continuity::Rerated)] {
        age(&sim, millis(wait));
        let refined = timebase.refine();
        assert_eq!(refined.continuity, continuity);
        let unchanged = refined.timebase.calibration() == timebase.calibration();
        assert_eq!(unchanged, continuity == Continuity::Continued, "{:?}", refined.timebase.calibration());
    }
}

/// Lets something happen 50 ms after a refinement and refines 100 ms later.
fn refined_after(disturbance: Disturbance) -> (Sim, Timebase<Sim>, Timebase<Sim>, Continuity) {
    let (sim, timebase) = calibrated(Script::default());
    age(&sim, millis(100));
    let before = timebase.refine().timebase;
    disturb_in(&sim, millis(50), disturbance);
    age(&sim, millis(100));
    let refined = before.refine();
    (sim, before, refined.timebase, refined.continuity)
}

/// Checks that instants across the border have no difference and that the successor is a good time base.
#[track_caller]
fn check_new_epoch(sim: &Sim, before: &Timebase<Sim>, after: &Timebase<Sim>) {
    assert_ne!(before.epoch(), after.epoch());
    let (old, new) = (before.now(), after.now());
    assert!(new.since(old).is_err() && old.since(new).is_err());
    assert!(old.since(new).expect_err("two epochs").to_string().contains("epochs"));
    check_sandwich(sim, after);
    let start = sim.monotonic();
    after.delay(micros(30)).expect("short");
    assert!(sim.monotonic() - start >= micros(30));
}

#[test]
fn a_suspend_begins_a_new_epoch_and_says_how_long_it_was() {
    for length in [millis(2), Nanos::from_secs(3_600)] {
        let (sim, before, after, continuity) = refined_after(Disturbance::Suspend(length));
        let Continuity::Suspended(told) = continuity else { panic!("{continuity:?}") };
        assert!(told >= length - micros(1) && told <= length + micros(1), "{told}");
        check_new_epoch(&sim, &before, &after);
    }
}

#[test]
fn a_new_epoch_keeps_the_skew_that_was_measured_and_the_cost_of_the_first_calibration() {
    let (sim, timebase) = calibrated(Script::default());
    let before = timebase.with_skew(Nanos::new(77));
    disturb_in(&sim, millis(1), Disturbance::Suspend(millis(500)));
    age(&sim, millis(10));
    let after = before.refine().timebase;
    assert_ne!(after.epoch(), before.epoch());
    assert_eq!((after.skew(), after.cost()), (Nanos::new(77), before.cost()));
}

#[test]
fn a_step_of_the_clock_begins_a_new_epoch_and_says_how_far_it_went() {
    for step in [millis(2), -millis(2), Nanos::from_secs(100), -Nanos::from_secs(100)] {
        let (sim, before, after, continuity) = refined_after(Disturbance::ClockStep(step));
        let Continuity::Stepped(told) = continuity else { panic!("{continuity:?}") };
        assert!(told >= step - micros(1) && told <= step + micros(1), "{told} for {step}");
        check_new_epoch(&sim, &before, &after);
    }
}

#[test]
fn a_counter_that_the_kernel_gives_up_is_given_up_here() {
    let (sim, before, after, continuity) = refined_after(Disturbance::DistrustCounter);
    assert_eq!((continuity, after.source()), (Continuity::Distrusted, TimeSource::KernelClock));
    assert!(!after.trust().trusted);
    check_new_epoch(&sim, &before, &after);
    // And that is that: the next look finds nothing new.
    age(&sim, millis(10));
    assert_eq!(after.refine().continuity, Continuity::Continued);
}

#[test]
fn a_counter_that_stops_is_replaced_by_the_kernels_clock_and_no_longer_trusted() {
    let (sim, before, after, continuity) = refined_after(Disturbance::CounterRate(0));
    assert!(matches!(continuity, Continuity::Stepped(_)), "{continuity:?}");
    assert_eq!((after.source(), after.trust().trusted), (TimeSource::KernelClock, false));
    check_new_epoch(&sim, &before, &after);
}

#[test]
fn a_counter_that_changes_its_rate_begins_a_new_epoch_and_is_calibrated_anew() {
    let (sim, before, after, continuity) = refined_after(Disturbance::CounterRate(1_300_000_000));
    assert!(matches!(continuity, Continuity::Stepped(_)), "{continuity:?}");
    assert!((after.calibration().rate_hz / 1.3e9 - 1.0).abs() < 1e-4);
    check_new_epoch(&sim, &before, &after);
}

#[test]
fn a_look_too_soon_after_the_last_changes_nothing_for_the_worse() {
    let (sim, timebase) = calibrated(Script::default());
    let mut current = timebase.clone();
    for _ in 0..50 {
        current = current.refine().timebase;
        check_sandwich(&sim, &current);
        assert!(current.calibration().bound_ppm <= timebase.calibration().bound_ppm * 1.001);
    }
}

/// Regression: an epoch was its predecessor's plus one, so two clones that were refined across different suspends were
/// in the same one, and their instants could be subtracted though their distance is unknown.
#[test]
fn clones_that_are_refined_across_different_suspends_are_in_different_epochs() {
    let (sim, timebase) = calibrated(Script::default());
    let clone = timebase.clone();
    let mut epochs = vec![timebase.epoch()];
    for timebase in [timebase, clone] {
        disturb_in(&sim, millis(1), Disturbance::Suspend(Nanos::from_secs(3_600)));
        age(&sim, millis(100));
        let refined = timebase.refine();
        assert!(matches!(refined.continuity, Continuity::Suspended(_)), "{:?}", refined.continuity);
        epochs.push(refined.timebase.epoch());
    }
    assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2] && epochs[0] != epochs[2], "{epochs:?}");
}

/// Regression: what the kernel may slew in a time was multiplied in 64 bits, which overflows after 178 days: a panic,
/// or in a release build a new epoch for nothing. The simulated machine's own clock overflowed after 106 days.
#[test]
fn a_time_base_that_is_refined_once_a_year_stays_in_its_epoch() {
    let (sim, mut timebase) = calibrated(Script::default());
    for year in 1..=3 {
        age(&sim, Nanos::from_secs(366 * 86_400));
        let refined = timebase.refine();
        assert_eq!(refined.continuity, Continuity::Continued, "year {year}");
        timebase = refined.timebase;
        check_sandwich(&sim, &timebase);
    }
    assert!(sim.true_time() >= Nanos::from_secs(3 * 366 * 86_400));
}
