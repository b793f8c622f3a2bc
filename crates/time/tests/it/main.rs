//! The promises of the time base, its delays and its profiles, on `Sim` and on `Host`, in one binary.
//!
//! `Sim` comes first: there true time is known to the picosecond, and every disturbance comes when the test asks for
//! it. On `Host` nothing is asserted about how long anything takes. A test that this machine does not allow calls
//! `testing::skip` and returns; `cargo xtask test` counts it as skipped.

mod adopt;
mod allocation;
mod calibration;
mod continuity;
mod disturbed;
mod host;
mod host_disturbed;
mod long_delay;
mod long_delay_disturbed;
mod migration;
mod minimum;
mod profile;
mod rate_changes;
mod real_time;
mod refused;
mod skew;
mod watchdog;

use hairspring_machine::sim::{Costs, Disturbance, Script};
use hairspring_time::{LongDelay, Machine, Nanos, Report, Sim, Timebase};

fn micros(count: i64) -> Nanos {
    Nanos::from_micros(count)
}

fn millis(count: i64) -> Nanos {
    Nanos::from_millis(count)
}

/// Costs that are no multiples of anything, so that delay after delay begins at another phase of every counter.
const ODD_COSTS: Costs =
    Costs { ticks: 8_123, ticks_ordered: 13_007, clock: 18_211, system_call: 170_003, relax: 10_331 };

/// A simulated machine and a time base on it.
fn calibrated(script: Script) -> (Sim, Timebase<Sim>) {
    let sim = Sim::new(script);
    let timebase = Timebase::calibrate(sim.clone()).expect("a counter that advances");
    (sim, timebase)
}

/// Schedules a disturbance `wait` from now.
fn disturb_in(sim: &Sim, wait: Nanos, disturbance: Disturbance) {
    sim.disturb(sim.true_time() + wait, disturbance);
}

/// A long delay of 2 ms, disturbed `before_end` before its end, while it polls.
fn delay_with_in_poll(script: &Script, before_end: Nanos, disturbance: Disturbance) -> Report {
    let (sim, timebase) = calibrated(Script { wake_late: (Nanos::ZERO, micros(60)), ..script.clone() });
    let mut long = LongDelay::new(&timebase);
    // A wake-up may come later than that, so delays are made until one does not.
    let mut happens = false;
    loop {
        let report = long.delay_since(sim.monotonic(), millis(2), |left| {
            happens = left > before_end + micros(2);
            if happens {
                disturb_in(&sim, left - before_end, disturbance);
            }
        });
        if happens {
            return report.expect("in bounds");
        }
    }
}

/// The time that passes by the simulated kernel's clock in `picos` of true time, in picoseconds, rounded up.
fn by_kernel_clock(picos: u64, drift_ppb: i64) -> u64 {
    let passed = u128::from(picos) * u128::from((1_000_000_000 + drift_ppb).unsigned_abs());
    u64::try_from(passed.div_ceil(1_000_000_000)).expect("a span that fits")
}

/// A span in picoseconds.
fn picos(span: Nanos) -> u64 {
    u64::try_from(span.count()).expect("a span that is not negative") * 1_000
}
