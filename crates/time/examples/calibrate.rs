//! Calibrates a time base and prints how far to trust it.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_time::{Host, Nanos, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate_to(Host, 1.0, Nanos::from_secs(1))?;
    let trust = timebase.trust();
    let reasons: Vec<&str> =
        trust.reasons.iter().filter(|r| r.supports == trust.trusted).map(|r| r.text.as_str()).collect();
    println!("frequency_hz {:.0}", timebase.calibration().rate_hz);
    println!("bound_ppm {:.3}", timebase.calibration().bound_ppm);
    println!("trust {}: {}", if trust.trusted { "trusted" } else { "not trusted" }, reasons.join("; "));
    Ok(())
}
