//! [`Simulator`]: a simulated voltmeter that can be slow, silent, or talk nonsense.
//!
//! It replaces the device behind an [`Instrument`](super::Instrument) in a trial of a program, also with misbehaviour.
//! It knows `*IDN?`, `MEAS:VOLT?`, `SYST:ERR?`, and for itself `SIM:DELAY seconds` and `SIM:NEXT manner`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::time::Duration;

/// Identification of the simulator, its answer to `*IDN?`.
pub const NAME: &str = "Hairspring,Instrument simulator,0,1.0";
/// The longest line that it reads.
const LINE_MOST: u64 = 65_536;
/// The longest delay of an answer.
const DELAY_MOST_S: f64 = 3600.0;
/// The pause between two bytes of an answer that trickles.
const TRICKLE: Duration = Duration::from_millis(2);

/// Manner of an answer. The wire and the command line use the names in [`MANNERS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Manner {
    /// A correct answer.
    #[default]
    Plain,
    /// No answer.
    Silent,
    /// Byte by byte.
    Trickle,
    /// Bytes that are no text.
    Garbage,
    /// An endless line, for some megabytes.
    Endless,
    /// Half of it, then it hangs up.
    Hangup,
    /// Twice.
    Twice,
}

/// The names of the manners on the wire and on the command line.
pub const MANNERS: [(&str, Manner); 7] = [
    ("PLAIN", Manner::Plain),
    ("SILENT", Manner::Silent),
    ("TRICKLE", Manner::Trickle),
    ("GARBAGE", Manner::Garbage),
    ("ENDLESS", Manner::Endless),
    ("HANGUP", Manner::Hangup),
    ("TWICE", Manner::Twice),
];

/// A simulated voltmeter.
#[derive(Clone, Debug, Default)]
pub struct Simulator {
    /// Duration of every answer.
    pub delay: Duration,
    /// Manner of every answer …
    pub manner: Manner,
    /// … except the next one.
    pub next: Option<Manner>,
    /// Number of readings.
    pub readings: u32,
    /// Whether it received an unknown command.
    pub unknown: bool,
}

impl Simulator {
    /// The answer to a line, if it has one. Unknown lines have none, as with a real instrument; `SYST:ERR?` reports
    /// them.
    pub fn answer(&mut self, line: &str) -> Option<String> {
        let (command, argument) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match command.to_ascii_uppercase().as_str() {
            "" => None,
            "*IDN?" => Some(NAME.to_owned()),
            "MEAS:VOLT?" => {
                self.readings += 1;
                // Their last digits distinguish them.
                Some(format!("{:+.6}E+00", 1.0 + f64::from(self.readings) * 1e-6))
            }
            "SYST:ERR?" => {
                let told = if self.unknown { "-113,\"Undefined header\"" } else { "0,\"No error\"" };
                self.unknown = false;
                Some(told.to_owned())
            }
            "SIM:DELAY" => {
                let seconds = argument.parse().ok().filter(|seconds| (0.0..=DELAY_MOST_S).contains(seconds));
                seconds.map_or_else(|| self.unknown = true, |seconds| self.delay = Duration::from_secs_f64(seconds));
                None
            }
            "SIM:NEXT" => {
                let manner = MANNERS.iter().find(|(name, _)| name.eq_ignore_ascii_case(argument));
                manner.map_or_else(|| self.unknown = true, |(_, manner)| self.next = Some(*manner));
                None
            }
            _ => {
                self.unknown = true;
                None
            }
        }
    }

    /// Serves one client, until the client or the simulator hangs up. Blocks, and sleeps before each answer.
    ///
    /// # Errors
    /// The stream's.
    pub fn serve(&mut self, stream: impl Read + Write) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            if stream.by_ref().take(LINE_MOST).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            let Some(answer) = self.answer(&String::from_utf8_lossy(&line)) else { continue };
            std::thread::sleep(self.delay);
            let manner = self.next.take().unwrap_or(self.manner);
            let out = stream.get_mut();
            match manner {
                Manner::Plain => out.write_all(format!("{answer}\n").as_bytes())?,
                Manner::Silent => {}
                Manner::Trickle => {
                    for byte in format!("{answer}\r\n").bytes() {
                        out.write_all(&[byte])?;
                        std::thread::sleep(TRICKLE);
                    }
                }
                Manner::Garbage => out.write_all(b"\xff\x00\x80oops\xfe\n")?,
                Manner::Endless => {
                    for _ in 0..64 {
                        out.write_all(&[b'9'; 65_536])?;
                    }
                    out.write_all(b"\n")?;
                }
                Manner::Hangup => return out.write_all(&answer.as_bytes()[..answer.len() / 2]),
                Manner::Twice => out.write_all(format!("{answer}\n{answer}\n").as_bytes())?,
            }
            out.flush()?;
        }
    }

    /// Serves clients one after the other, for ever. Bind the listener to the loopback: the simulator obeys every
    /// client.
    ///
    /// # Errors
    /// The listener cannot accept any more connections.
    pub fn serve_all(&mut self, listener: &TcpListener) -> io::Result<()> {
        loop {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            // A client that hangs up early does not end the service.
            drop(self.serve(stream));
        }
    }
}
