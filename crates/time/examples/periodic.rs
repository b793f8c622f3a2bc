//! A loop with a period of 2 ms: deadlines are absolute, so lateness does not add up.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_time::{Host, LongDelay, Nanos, Timebase};

const PERIOD: Nanos = Nanos::from_millis(2);
const CYCLES: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    let mut long = LongDelay::new(&timebase);
    let mut late = [Nanos::ZERO; CYCLES];
    let mut missed = 0;
    let start = timebase.now();
    for (cycle, late) in (1..).zip(&mut late) {
        let report = long.delay_until(start + PERIOD * cycle)?;
        *late = report.late;
        // A deadline that had passed before the wait began was missed.
        missed += u32::from(report.slept + report.polled == Nanos::ZERO);
    }
    late.sort_unstable();
    println!("cycles {CYCLES}");
    println!("period_ns {}", PERIOD.count());
    println!("least_late_ns {}", late[0].count());
    println!("median_late_ns {}", late[CYCLES / 2].count());
    println!("most_late_ns {}", late[CYCLES - 1].count());
    println!("missed {missed}");
    Ok(())
}
