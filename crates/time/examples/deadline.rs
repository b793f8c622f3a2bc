//! Works, then waits for the rest until a deadline 5 ms after the start.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::hint::black_box;

use hairspring_time::{Host, LongDelay, Nanos, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    let mut long = LongDelay::new(&timebase);
    let begin = timebase.now();
    let deadline = begin + Nanos::from_millis(5);
    black_box((0..10_000_u64).map(black_box).sum::<u64>());
    let done = timebase.now();
    let report = long.delay_until(deadline)?;
    println!("worked_ns {}", done.since(begin)?.count());
    println!("left_ns {}", deadline.since(done)?.count());
    println!("late_ns {}", report.late.count());
    Ok(())
}
