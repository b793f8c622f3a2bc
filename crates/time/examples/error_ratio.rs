//! Relative error of delays from 1 µs to 10 ms: the median of 21 each.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_time::{Host, Nanos, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    for (name, micros) in [("1us", 1), ("10us", 10), ("100us", 100), ("1ms", 1_000), ("10ms", 10_000)] {
        let request = Nanos::from_micros(micros);
        let mut late = [Nanos::ZERO; 21];
        for late in &mut late {
            *late = timebase.delay(request)?.late;
        }
        late.sort_unstable();
        let error_percent = 100.0 * late[10].count() as f64 / request.count() as f64;
        println!("error_at_{name}_percent {error_percent:.4}");
    }
    Ok(())
}
