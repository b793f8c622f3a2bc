//! The same code on a machine in virtual time, with disturbances from a script.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_time::{Cause, Nanos, Sim, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sim = Sim::new(Script { kernel_drift_ppb: 12_000, ..Script::default() });
    let timebase = Timebase::calibrate(sim.clone())?;
    let calibration = timebase.calibration();
    println!("calibrated {:.0} Hz, within {:.1} ppm", calibration.rate_hz, calibration.bound_ppm);

    sim.disturb(sim.true_time() + Nanos::from_micros(30), Disturbance::Preempt(Nanos::from_millis(3)));
    let before = sim.true_time();
    let report = timebase.delay(Nanos::from_micros(50))?;
    println!("asked for {}, took {} of true time", report.requested, sim.true_time() - before);
    let gaps = report.verdict.gaps(Cause::Preempted);
    println!("{} late: {}, {} time, {}", report.late, report.verdict.name(), gaps.count, gaps.total);
    Ok(())
}
