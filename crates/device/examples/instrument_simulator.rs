//! A simulated instrument: a voltmeter at a socket that can be slow, silent, or talk nonsense.
//!
//! `cargo run -p hairspring-device --example instrument_simulator -- [PORT [DELAY_MS [MANNER]]]`; port 0 means any free
//! port. Then, for instance, `hairspring expose 1s --device virtual:/dev/shm/board --instrument tcp:localhost:PORT`.
//! Without a port it asks itself two questions and ends. Manners: plain, silent, trickle, garbage, endless, hangup,
//! twice. It knows `*IDN?`, `MEAS:VOLT?`, `SYST:ERR?`, and for itself `SIM:DELAY seconds` and `SIM:NEXT manner`.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;

use hairspring_device::Instrument;
use hairspring_device::instrument::Address;
use hairspring_device::instrument::simulator::{MANNERS, NAME, Simulator};
use hairspring_time::{Host, Nanos, Timebase};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port = arguments.next();
    let delay = Duration::from_millis(arguments.next().as_deref().unwrap_or("0").parse()?);
    let named = arguments.next().unwrap_or_else(|| "plain".to_owned());
    let known = MANNERS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&named));
    let (_, manner) = known.ok_or_else(|| format!("there is no manner {named}"))?;
    // Loopback only, because it obeys every client.
    let listener = TcpListener::bind(("127.0.0.1", port.as_deref().unwrap_or("0").parse()?))?;
    let address = Address::Tcp { host: "127.0.0.1".to_owned(), port: listener.local_addr()?.port() };
    println!("{NAME} at {address}, {manner:?}, answers after {delay:?}");
    std::io::stdout().flush()?;
    let mut simulator = Simulator { delay, manner: *manner, ..Simulator::default() };
    if port.is_some() {
        return Ok(simulator.serve_all(&listener)?);
    }
    std::thread::spawn(move || simulator.serve_all(&listener));
    let timebase = Timebase::calibrate(Host)?;
    let mut instrument = Instrument::open(&address, Nanos::from_secs(1), &timebase)?;
    for question in ["*IDN?", "MEAS:VOLT?"] {
        let answer = instrument.query(question, Nanos::from_secs(1))?;
        println!("{question} → {} after {}", answer.text, answer.took);
    }
    Ok(())
}
