//! A front end from a file: a timer releases pulses on a virtual board, and every event is accounted for.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::time::{Duration, Instant};

use hairspring_station::{Stop, file};
use hairspring_time::{Host, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let board = folder.path().join("board");
    let station = file::read(&format!(
        r#"
        [source.beat]
        from = "timer:1ms"

        [device.board]
        driver = "virtual:{}"

        [unit.strobe]
        on = "beat"
        device = "board"
        do = {{ pulse = {{ line = 3, width = "10us" }} }}
        late_after = "1ms"
        "#,
        board.display()
    ))?;
    let timebase = Timebase::calibrate(Host)?;
    let stop = Stop::new()?;
    let begun = Instant::now();
    let outcome = station.run(&timebase, &stop, &mut |_| {
        if begun.elapsed() > Duration::from_millis(300) {
            stop.set();
        }
    })?;
    for unit in &outcome.units {
        println!("{}: {:?}, the account holds: {}", unit.name, unit.counts, unit.counts.holds());
    }
    Ok(())
}
