//! An instrument that is not there: a voltmeter at a socket that can be slow, silent, or talk nonsense.
//!
//! `cargo run -p hairspring-device --example instrument_simulator -- [PORT [DELAY_MS [MANNER]]]`; without a port it takes
//! one that is free and says which. Then, for instance, `hairspring expose 1s --device virtual:/dev/shm/board --instrument
//! tcp:localhost:PORT`. Manners: plain, silent, trickle, garbage, endless, hangup, twice. It knows `*IDN?`, `MEAS:VOLT?`,
//! `SYST:ERR?`, and for itself `SIM:DELAY seconds` and `SIM:NEXT manner`.
#![expect(clippy::print_stdout, reason = "an example shows what came of it")]

mod simulator;

use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;

use simulator::{MANNERS, NAME, Simulator};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().as_deref().unwrap_or("0").parse()?;
    let delay = Duration::from_millis(arguments.next().as_deref().unwrap_or("0").parse()?);
    let named = arguments.next().unwrap_or_else(|| "plain".to_owned());
    let known = MANNERS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&named));
    let (_, manner) = known.ok_or_else(|| format!("there is no manner {named}"))?;
    // For this machine alone: it obeys whoever connects.
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    println!("{NAME} at tcp:{}, {manner:?}, answers after {delay:?}", listener.local_addr()?);
    std::io::stdout().flush()?;
    Simulator { delay, manner: *manner, ..Simulator::default() }.serve_all(&listener)?;
    Ok(())
}
