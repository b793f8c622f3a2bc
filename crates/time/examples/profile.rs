//! How long a piece of code takes, call by call, beside what the measurement itself costs.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_time::{Host, Nanos, Ordering, Profile, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    let mut profile = Profile::new(&timebase, Ordering::Ordered);
    let mut numbers = Vec::new();
    for number in 0..10_000_u64 {
        profile.span(|| numbers.push(number));
    }
    let summary = profile.summary();
    let text = |figure: Option<Nanos>| figure.map_or("-".to_owned(), |figure| figure.to_string());
    println!("{} pushes to a vector; the first took {}", summary.count, text(summary.first));
    println!("the rest: min {}, median {}", text(summary.min), text(summary.median));
    println!("          max {}, mean {}", text(summary.max), text(summary.mean));
    println!("a pair of stamps, contained in each: {}", summary.stamp_cost);
    Ok(())
}
