//! Guaranteed-minimum delays on an undisturbed machine: never early at any phase, and hardly late.

use hairspring_machine::sim::Script;
use hairspring_time::{Machine, Nanos, Timebase};

use super::{ODD_COSTS, by_kernel_clock, calibrated, micros, picos};

/// Counter rates from a slow ARM timer to the fastest x86 part.
const RATES: [u64; 4] = [24_000_000, 1_000_000_000, 2_600_000_000, 5_100_000_000];
/// The most that the kernel slews its clock, both ways, and some drifts between.
const DRIFTS: [i64; 5] = [-500_000, -17, 0, 333, 500_000];
/// A load from memory, as `Sim` charges it.
const LOAD_PICOS: u64 = 500;

/// The requests: every nanosecond up to 2 µs, and some longer ones.
fn requests() -> impl Iterator<Item = i64> {
    (0..=2_000).chain([2_001, 2_999, 5_003, 9_999, 12_345, 50_001, 99_999, 250_000])
}

/// The most that a delay may take, by true time: the request stretched by drift and bound, one poll step, the reads at
/// both ends, and the ticks by which the deadline is rounded up.
fn most(request: i64, rate_hz: u64, drift: i64, bound_ppm: f64) -> u64 {
    let stretch = 1.0 + 2.0 * bound_ppm * 1e-6 + drift.unsigned_abs() as f64 * 1e-9;
    let costs = 2 * ODD_COSTS.ticks_ordered + ODD_COSTS.relax + ODD_COSTS.ticks + 10 * LOAD_PICOS;
    let ticks = 4 * 1_000_000_000_000_u64.div_ceil(rate_hz);
    (request as f64 * 1e3 * stretch) as u64 + costs + ticks
}

#[track_caller]
fn check_sweep(rate_hz: u64, drift: i64) {
    let script = Script { rate_hz, kernel_drift_ppb: drift, costs: ODD_COSTS, ..Script::default() };
    let (sim, timebase) = calibrated(script);
    let mut phases = [false; 16];
    for (round, request) in (0..).zip(requests()) {
        // A delay ends right after a tick; the next must begin at any phase.
        sim.work(Nanos::new(round * 7_919 % 997));
        let before = sim.true_picos();
        phases[(u128::from(before) * u128::from(rate_hz) % 1_000_000_000_000 / 62_500_000_000) as usize] = true;
        let report = timebase.delay(Nanos::new(request)).expect("a request that may be polled");
        let took = sim.true_picos() - before;
        let passed = by_kernel_clock(took, drift);
        assert!(passed >= picos(Nanos::new(request)), "{request} ns took {took} ps at {rate_hz} Hz, drift {drift}");
        let most = most(request, rate_hz, drift, timebase.calibration().bound_ppm);
        assert!(took <= most, "{request} ns took {took} ps, more than {most}, at {rate_hz} Hz, drift {drift}");
        assert!(report.verdict.is_clean(), "{report:?}");
        assert_eq!(report.late, report.actual - report.requested);
        assert!(report.late >= Nanos::ZERO && report.polled == report.actual && report.slept == Nanos::ZERO);
    }
    assert!(phases.iter().all(|hit| *hit), "not every phase of a tick was met: {phases:?}");
}

#[test]
fn delay_is_never_early_at_any_phase_and_late_by_one_step() {
    for rate_hz in RATES {
        check_sweep(rate_hz, 0);
    }
}

/// A rehearsal of the end would make it late.
#[test]
fn a_delay_of_nothing_reads_the_counter_twice_and_no_more() {
    let (sim, timebase) = calibrated(Script { costs: ODD_COSTS, ..Script::default() });
    let before = sim.true_picos();
    timebase.delay(Nanos::ZERO).expect("short");
    let took = sim.true_picos() - before;
    assert!(took <= ODD_COSTS.ticks_ordered + ODD_COSTS.ticks + 10 * LOAD_PICOS, "{took} ps");
}

#[test]
fn delay_is_never_early_on_a_counter_that_counts_in_steps() {
    // QEMU's for aarch64 moves by a microsecond at a time and states 62.5 MHz; real ones by 40 ticks of 1 GHz.
    for (rate_hz, counter_step) in [(62_500_000, 62), (1_000_000_000, 40), (62_500_000, 1)] {
        let script = Script { rate_hz, counter_step, costs: ODD_COSTS, ..Script::default() };
        let (sim, timebase) = calibrated(script);
        let calibration = timebase.calibration();
        let wrong = (calibration.rate_hz / rate_hz as f64 - 1.0).abs() * 1e6;
        assert!(wrong <= calibration.bound_ppm, "{wrong} ppm in steps of {counter_step}: {calibration:?}");
        for (round, request) in (0..).zip(requests()) {
            sim.work(Nanos::new(round * 7_919 % 997));
            let before = sim.true_picos();
            timebase.delay(Nanos::new(request)).expect("a request that may be polled");
            let took = sim.true_picos() - before;
            assert!(took >= picos(Nanos::new(request)), "{request} ns took {took} ps in steps of {counter_step}");
        }
    }
}

#[test]
fn delay_is_never_early_by_a_kernel_clock_that_ran_fast_or_slow_when_it_was_calibrated() {
    for rate_hz in RATES {
        for drift in DRIFTS {
            check_sweep(rate_hz, drift);
        }
    }
}

#[test]
fn delay_is_never_early_after_the_bound_has_shrunk() {
    let (sim, mut timebase) = calibrated(Script { costs: ODD_COSTS, ..Script::default() });
    for _ in 0..6 {
        sim.work(Nanos::from_millis(30));
        timebase = timebase.refine().timebase;
        for request in (1..=400).chain([100_000]) {
            let before = sim.true_picos();
            timebase.delay(Nanos::new(request)).expect("short");
            assert!(sim.true_picos() - before >= picos(Nanos::new(request)));
        }
    }
}

#[test]
fn delay_until_is_never_early_on_its_own_scale_or_by_the_kernels_clock() {
    for rate_hz in RATES {
        let (sim, timebase) = calibrated(Script { rate_hz, costs: ODD_COSTS, ..Script::default() });
        for ahead in requests() {
            let deadline = timebase.now() + Nanos::new(ahead);
            let report = timebase.delay_until(deadline).expect("this epoch");
            assert!(timebase.now().since(deadline).expect("one epoch") >= Nanos::ZERO, "{ahead} at {rate_hz}");
            let bound = timebase.offset_bound(deadline);
            let kernel = sim.read(hairspring_machine::Clock::Monotonic);
            assert!(kernel + bound >= deadline.as_monotonic(), "{ahead} at {rate_hz}");
            assert!(report.late >= Nanos::ZERO, "{report:?}");
        }
    }
}

#[test]
fn a_deadline_that_has_passed_returns_at_once_with_its_lateness() {
    let (sim, timebase) = calibrated(Script::default());
    let deadline = timebase.now();
    for wait in [1, 10, 1_000_000] {
        sim.work(micros(wait));
        let before = sim.true_time();
        let report = timebase.delay_until(deadline).expect("this epoch");
        assert!(report.late >= micros(wait) && report.actual == Nanos::ZERO, "{report:?}");
        assert!(sim.true_time() - before < Nanos::new(100), "it waited");
    }
    // A deadline at the beginning of time is as passed as any other.
    let report = timebase.delay_until(timebase.now() - Nanos::MAX).expect("this epoch");
    assert_eq!(report.late, Nanos::MAX);
    assert!(report.verdict.is_clean(), "{report:?}");
}

#[test]
fn an_untrusted_counter_leaves_the_kernels_clock_and_delays_are_never_early_by_it() {
    let script = Script { counter_trusted: false, costs: ODD_COSTS, kernel_drift_ppb: 400_000, ..Script::default() };
    let (sim, timebase) = calibrated(script);
    assert_eq!(timebase.source(), hairspring_time::TimeSource::KernelClock);
    assert!(!timebase.trust().trusted);
    for request in requests() {
        let before = sim.read(hairspring_machine::Clock::Monotonic);
        timebase.delay(Nanos::new(request)).expect("short");
        let passed = sim.read(hairspring_machine::Clock::Monotonic) - before;
        assert!(passed >= Nanos::new(request), "{passed} for {request} ns");
    }
}

/// Regression: with a clock source like the HPET a look at the clock takes more than a microsecond, and every round of
/// an undisturbed delay was reported as a gap.
#[test]
fn a_clock_that_is_slow_to_read_is_no_disturbance() {
    let mut script = Script { counter_trusted: false, ..Script::default() };
    script.costs.clock = 1_700_000;
    let sim = hairspring_time::Sim::new(script);
    let timebase = Timebase::calibrate(sim).expect("the kernel's clock advances");
    let report = timebase.delay(micros(100)).expect("short");
    assert!(report.verdict.is_clean(), "{report:?}");
}
