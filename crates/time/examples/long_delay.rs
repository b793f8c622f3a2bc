//! Delays that sleep: a tenth of a second to the microsecond for a thousandth of the CPU, and a train of deadlines.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_time::{Host, LongDelay, Nanos, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    let mut long = LongDelay::new(&timebase);
    let report = long.delay(Nanos::from_millis(100))?;
    println!("{} late, slept {}, polled {}, {}", report.late, report.slept, report.polled, report.verdict.name());

    // Absolute deadlines do not add up their lateness.
    let start = timebase.now();
    for tick in 1..=5 {
        let report = long.delay_until(start + Nanos::from_millis(20).times(tick))?;
        println!("tick {tick}: {} late, {}", report.late, report.verdict.name());
    }

    // An average around the target in place of a guaranteed minimum, on request.
    println!("a lead of {} would make the average exact", long.tune()?);
    Ok(())
}
