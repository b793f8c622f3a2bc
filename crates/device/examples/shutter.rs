//! Opens a shutter for 100 ms, reads a light meter in the middle, and waits exactly for the rest.
//!
//! The shutter is a line of a virtual board; the meter takes 20 ms. `exposure.rs` does it with an instrument that may
//! be silent.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::time::Duration;

use hairspring_device::{AccessTimes, Device as _, Exposure, Lines, Protocol, VirtualBoard};
use hairspring_time::{Host, LongDelay, Nanos, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate_to(Host, 1.0, Nanos::from_secs(1))?;
    let folder = tempfile::tempdir()?;
    let mut board =
        VirtualBoard::open(&folder.path().join("board"), AccessTimes::FESA, Lines(0), Protocol::Inherit, &timebase)?;
    board.init()?;
    let mut delay = LongDelay::new(&timebase);
    let exposure = Exposure { lines: Lines::one(0), time: Nanos::from_millis(100) };
    let report = exposure.make(&mut board, &timebase, &mut delay, |_left| {
        std::thread::sleep(Duration::from_millis(20));
        Ok(())
    })?;
    println!("asked_ns {}", report.asked.count());
    println!("measured_exp_time_ns {}", report.measured_exp_time.count());
    println!("first_half_ns {}", report.parts.first_half.count());
    println!("reading_ns {}", report.parts.reading.count());
    println!("rest_ns {}", report.parts.rest.count());
    println!("late_ns {}", report.late().count());
    println!("verdict {}", report.name());
    Ok(())
}
