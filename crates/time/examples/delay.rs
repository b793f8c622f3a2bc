//! Waits 50 µs by polling; never early, and reports how late.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_time::{Host, Nanos, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    let report = timebase.delay(Nanos::from_micros(50))?;
    println!("asked_ns {}", report.requested.count());
    println!("actual_ns {}", report.actual.count());
    println!("late_ns {}", report.late.count());
    println!("verdict {}", report.verdict.name());
    Ok(())
}
