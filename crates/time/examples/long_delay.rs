//! Waits 100 ms, asleep for all but the end.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_time::{Host, LongDelay, Nanos, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    let mut long = LongDelay::new(&timebase);
    let report = long.delay(Nanos::from_millis(100))?;
    println!("asked_ns {}", report.requested.count());
    println!("actual_ns {}", report.actual.count());
    println!("slept_ns {}", report.slept.count());
    println!("polled_ns {}", report.polled.count());
    println!("late_ns {}", report.late.count());
    println!("verdict {}", report.verdict.name());
    Ok(())
}
