//! Times a function call by call; each figure contains the cost of the measurement.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::hint::black_box;

use hairspring_time::{Host, Nanos, Ordering, Profile, Timebase};

fn work(numbers: &[u64]) -> u64 {
    numbers.iter().sum()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    let mut profile = Profile::new(&timebase, Ordering::Ordered);
    let numbers: Vec<u64> = (0..100).collect();
    for _ in 0..1_000 {
        profile.span(|| black_box(work(black_box(&numbers))));
    }
    let summary = profile.summary();
    let nanos = |figure: Option<Nanos>| figure.unwrap_or(summary.stamp_cost).count();
    println!("calls {}", summary.count);
    println!("min_ns {}", nanos(summary.min));
    println!("median_ns {}", nanos(summary.median));
    println!("max_ns {}", nanos(summary.max));
    Ok(())
}
