//! The first delay: calibrate, wait 50 µs, see how late it was and why.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_time::{Host, Nanos, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    let report = timebase.delay(Nanos::from_micros(50))?;
    println!("waited {}, {} late, {}", report.actual, report.late, report.verdict.name());
    Ok(())
}
