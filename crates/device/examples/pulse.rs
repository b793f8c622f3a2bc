//! A pulse: a line of a virtual board goes up, and comes down no earlier than after its width; ten of them in a train.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use hairspring_device::{AccessTimes, Device as _, Lines, Protocol, Pulse, VirtualBoard};
use hairspring_time::{Host, Nanos, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let timebase = Timebase::calibrate(Host)?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("board");
    let mut board = VirtualBoard::open(&file, AccessTimes::FESA, Lines(0), Protocol::Inherit, &timebase)?;
    board.init()?;
    let pulse = Pulse { lines: Lines::one(3), width: Nanos::from_micros(20) };
    for _ in 0..10 {
        let report = pulse.fire(&mut board, &timebase)?;
        println!("at least {}, at most {}", report.at_least, report.at_most);
    }
    board.make_safe()?;
    Ok(())
}
