//! The README's example: calibrate, wait 50 µs, sleep a quarter of a second, and see how late it was and why.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_time::{Host, LongDelay, Nanos, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?; // 4 ms, bound about 10 ppm
    let report = timebase.delay(Nanos::from_micros(50))?; // polls; never early
    println!("late by {}, {}", report.late, report.verdict.name());

    let mut long = LongDelay::new(&timebase); // learns how late the kernel wakes us
    let report = long.delay(Nanos::from_millis(250))?; // sleeps, polls only the end
    println!("late by {}, polled {}", report.late, report.polled);
    Ok(())
}
