//! The scenario for which the delays were made: open a shutter, wait half, read the light's power, wait out the exact
//! rest, close.
//!
//! `cargo run -p hairspring-device --example exposure`. The shutter is a line of a virtual board, the instrument a
//! simulator that takes 20 ms for an answer; the third time it is silent, but the shutter is still closed on time.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::net::TcpListener;
use std::time::Duration;

use hairspring_device::instrument::Address;
use hairspring_device::instrument::simulator::Simulator;
use hairspring_device::{AccessTimes, Device, Exposure, Instrument, Lines, Protocol, VirtualBoard};
use hairspring_time::{Host, LongDelay, Nanos, Timebase};

/// Time reserved for the end of the exposure if the instrument does not answer.
const SPARE: Nanos = Nanos::from_millis(5);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = Address::Tcp { host: "127.0.0.1".to_owned(), port: listener.local_addr()?.port() };
    let mut simulator = Simulator { delay: Duration::from_millis(20), ..Simulator::default() };
    std::thread::spawn(move || simulator.serve_all(&listener));

    let timebase = Timebase::calibrate_to(Host, 0.1, Nanos::from_secs(1))?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("board");
    let mut board = VirtualBoard::open(&file, AccessTimes::FESA, Lines(0), Protocol::Inherit, &timebase)?;
    board.init()?;
    let mut instrument = Instrument::open(&address, Nanos::from_secs(1), &timebase)?;
    let mut delay = LongDelay::new(&timebase);
    let exposure = Exposure { lines: Lines::one(0), time: Nanos::from_millis(200) };
    for number in 1..=4 {
        if number == 3 {
            instrument.tell("SIM:NEXT SILENT", Nanos::from_secs(1))?;
        }
        let reading = |left: Nanos| instrument.query("MEAS:VOLT?", left - SPARE);
        let report = exposure.make(&mut board, &timebase, &mut delay, reading)?;
        println!("measured_exp_time {:.9} s, {}", report.measured_exp_time.as_secs_f64(), report.name());
        println!("    {:?}", report.parts);
        match report.reading {
            Some(Ok(answer)) => println!("    {} after {}", answer.text, answer.took),
            Some(Err(error)) => println!("    {error}"),
            None => {}
        }
    }
    board.make_safe()?;
    Ok(())
}
