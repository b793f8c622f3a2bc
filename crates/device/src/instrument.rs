//! [`Instrument`]: a question in one line, the answer in another (SCPI), over a socket or a serial line.
//!
//! **Problem.** An instrument answers at any time, or never. A program that asks again after a time-out may get the
//! answer to the earlier question, and mistake it for the new one.
//!
//! **Solution.** At most one answer is outstanding, and none when a question is sent:
//!
//! | before the next question | socket | serial line, usbtmc |
//! |---|---|---|
//! | an answer is outstanding (time-out, half a line) | reconnected | the answer is awaited and discarded; or refused |
//! | there are unsolicited bytes | reconnected | discarded |
//! | the other side has hung up | reconnected | refused |
//!
//! The [`Answer`] counts the discarded bytes.
//!
//! **Conditions.** The instrument ends each answer with a line feed, answers each question once, and discards pending
//! answers when its connection ends. A second answer that arrives on a serial line after the next question was sent is
//! mistaken for its answer; this cannot be detected. The driver of usbtmc waits for its own time-out (5 s), not for
//! ours; it has not been tested.
//!
//! **Real-time behaviour.** None is claimed: an instrument takes milliseconds, so each answer has its duration.

pub mod address;
mod link;
pub mod simulator;

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use hairspring_machine::Nanos;
use hairspring_time::{HeldTimebase, Host, Timebase};

use crate::device::DeviceError;
pub use address::Address;
use link::{Link, Patience, Trouble};

/// The longest question, in bytes: as long as a line of a terminal may be.
pub(crate) const QUESTION_MOST: usize = 4096;
/// The longest answer, in bytes: thousands of readings in one line. It is reserved when the instrument is opened.
pub const ANSWER_MOST: usize = 65_536;
/// The longest patience, so that a mistake does not hang a program for days.
pub(crate) const PATIENCE_MOST: Nanos = Nanos::from_secs(3600);
/// How much of an answer that is not text an error shows.
const SHOWN_MOST: usize = 24;

/// An answer of an instrument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The line without its end.
    pub text: String,
    /// From before the question to after the answer, including the time to resynchronize.
    pub took: Nanos,
    /// Discarded bytes that arrived before it and did not belong to this question.
    pub discarded: u64,
}

/// An open instrument.
#[derive(Debug)]
pub struct Instrument<'t> {
    address: Address,
    timebase: HeldTimebase<'t, Host>,
    stop: Option<&'t AtomicBool>,
    /// The addresses of the host when it was opened; empty except for a socket.
    numbers: Vec<SocketAddr>,
    link: Option<Link>,
    /// Received bytes that are not used yet; a line end can only be the last byte.
    received: Vec<u8>,
    /// Whether a line, or the rest of one, of an earlier question is outstanding.
    is_owed: bool,
}

impl<'t> Instrument<'t> {
    /// Opens the instrument within `patience`; sends nothing. The system looks up the name of a host once, without this
    /// limit.
    ///
    /// # Errors
    /// No instrument at this address, or it cannot be opened in time.
    pub fn open(address: &Address, patience: Nanos, timebase: &'t Timebase) -> Result<Self, DeviceError> {
        let mut instrument = Self {
            address: address.clone(),
            timebase: HeldTimebase::Lent(timebase),
            stop: None,
            numbers: Vec::new(),
            link: None,
            received: Vec::with_capacity(ANSWER_MOST),
            is_owed: false,
        };
        if let Address::Tcp { host, port } = address {
            let numbers = (host.as_str(), *port).to_socket_addrs();
            instrument.numbers = numbers.map_err(|error| instrument.unopened(Trouble::System(error)))?.collect();
        }
        let patience = instrument.patience(patience);
        instrument.connect(patience)?;
        Ok(instrument)
    }

    /// Lets a flag end every wait early: it is checked ten times a second, and when a signal arrives.
    #[must_use]
    pub fn cancelled_by(self, flag: &'t AtomicBool) -> Self {
        Self { stop: Some(flag), ..self }
    }

    /// Uses this successor of its time base from now on, see [`HeldTimebase`].
    pub fn adopt(&mut self, successor: Timebase) {
        self.timebase.adopt(successor);
    }

    /// Its present time base.
    pub fn timebase(&self) -> &Timebase {
        &self.timebase
    }

    /// Its address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Asks a question and waits for the answer, at most `patience` in all.
    ///
    /// # Errors
    /// It is silent, hangs up, sends no text or too long a line, or an earlier answer is outstanding; or the flag was
    /// set. The next question is possible once an earlier answer cannot be mistaken for its own.
    pub fn query(&mut self, question: &str, patience: Nanos) -> Result<Answer, DeviceError> {
        let patience = self.patience(patience);
        let begun = self.timebase.stamp_ordered();
        let discarded = self.say(question, patience)?;
        self.is_owed = true;
        let text = self.line(question, patience)?;
        let took = self.timebase.nanos(self.timebase.stamp_ordered().since(begun));
        Ok(Answer { text, took, discarded })
    }

    /// Sends a command without an answer.
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn tell(&mut self, command: &str, patience: Nanos) -> Result<(), DeviceError> {
        let patience = self.patience(patience);
        self.say(command, patience).map(drop)
    }

    fn patience(&self, patience: Nanos) -> Patience<'t> {
        let patience = patience.max(Nanos::ZERO).min(PATIENCE_MOST).count();
        Patience { until: Instant::now() + Duration::from_nanos(patience.unsigned_abs()), stop: self.stop }
    }

    /// Resynchronizes and sends a line. Returns the number of discarded bytes.
    fn say(&mut self, line: &str, patience: Patience<'_>) -> Result<u64, DeviceError> {
        if line.trim().is_empty() || line.len() > QUESTION_MOST || line.contains(['\n', '\r']) {
            return Err(DeviceError {
                attempted: format!("say {:?} to an instrument", shortened(line.as_bytes())),
                said: "that is not one line of text".to_owned(),
                remedy: "write one line of at most 4096 bytes, for instance MEAS:VOLT?",
            });
        }
        let discarded = self.come_in_step(patience)?;
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        let Some(link) = &mut self.link else { return Err(self.refused(Trouble::Closed, line)) };
        if let Err(trouble) = link.send(&bytes, patience) {
            // The number of bytes that arrived is unknown.
            self.is_owed = true;
            return Err(self.refused(trouble, line));
        }
        Ok(discarded)
    }

    /// Ensures that the next line is the answer to the next question.
    fn come_in_step(&mut self, patience: Patience<'_>) -> Result<u64, DeviceError> {
        let mut discarded = self.received.len() as u64;
        self.received.clear();
        let is_socket = matches!(self.address, Address::Tcp { .. });
        while self.is_owed && !is_socket {
            let (came, ended) = self.owed(patience)?;
            discarded += came;
            self.is_owed = !ended;
        }
        let mut room = [0; 4096];
        let mut trouble = None;
        while let Some(link) = self.link.as_mut().filter(|_| !self.is_owed) {
            match link.pending(&mut room) {
                Ok(0) => break,
                // An instrument that sends faster than this reads must not keep the loop running.
                Ok(_) if Instant::now() > patience.until => {
                    return Err(self.refused(Trouble::TimedOut, "the next question"));
                }
                Ok(came) => discarded += came as u64,
                Err(why) => {
                    trouble = Some(why);
                    break;
                }
            }
        }
        match trouble {
            Some(trouble) if !is_socket => Err(self.refused(trouble, "the next question")),
            None if !self.is_owed && discarded == 0 && self.link.is_some() => Ok(0),
            _ if is_socket => {
                // Data in flight are lost with the old connection.
                self.link = None;
                self.connect(patience)?;
                Ok(discarded)
            }
            _ => Ok(discarded),
        }
    }

    /// Discards the bytes of the outstanding line. Returns their number, and whether the line has ended.
    fn owed(&mut self, patience: Patience<'_>) -> Result<(u64, bool), DeviceError> {
        let mut room = [0; 4096];
        let received = match &mut self.link {
            Some(link) => link.receive(&mut room, patience),
            None => Err(Trouble::Closed),
        };
        match received {
            Ok(came) => Ok((came as u64, room[..came].contains(&b'\n'))),
            Err(Trouble::TimedOut) => Err(DeviceError {
                attempted: format!("ask {}", self.address),
                said: "the answer to an earlier question is still outstanding".to_owned(),
                remedy: "allow it more time, or reopen it once it cannot send anything more",
            }),
            Err(trouble) => Err(self.refused(trouble, "the next question")),
        }
    }

    fn connect(&mut self, patience: Patience<'_>) -> Result<(), DeviceError> {
        let link = Link::open(&self.address, &self.numbers, patience);
        self.link = Some(link.map_err(|trouble| self.unopened(trouble))?);
        self.received.clear();
        self.is_owed = false;
        Ok(())
    }

    fn unopened(&self, trouble: Trouble) -> DeviceError {
        let (attempted, remedy) = match &self.address {
            Address::Tcp { .. } => ("connect to", "check that the instrument is on and that host and port are right"),
            Address::Serial { .. } => ("open", "check the line's name, its speed, and its permissions (group dialout)"),
            Address::Usbtmc { .. } => {
                ("open", "check that the usbtmc driver is loaded, and the permissions of its device")
            }
        };
        let said = match trouble {
            Trouble::TimedOut => "no answer in time".to_owned(),
            Trouble::Stopped => "stopped".to_owned(),
            Trouble::Closed => "it hung up at once".to_owned(),
            Trouble::System(error) => error.to_string(),
        };
        DeviceError { attempted: format!("{attempted} {}", self.address), said, remedy }
    }

    /// Reads the outstanding line.
    fn line(&mut self, question: &str, patience: Patience<'_>) -> Result<String, DeviceError> {
        let mut room = [0; 4096];
        loop {
            let Some(link) = &mut self.link else { return Err(self.refused(Trouble::Closed, question)) };
            let came = match link.receive(&mut room, patience) {
                Ok(came) => &room[..came],
                Err(trouble) => return Err(self.refused(trouble, question)),
            };
            let (line, rest) = match came.iter().position(|byte| *byte == b'\n') {
                Some(end) => (&came[..end], Some(&came[end + 1..])),
                None => (came, None),
            };
            if self.received.len() + line.len() > ANSWER_MOST {
                self.is_owed = rest.is_none();
                return Err(DeviceError {
                    attempted: self.asking(question),
                    said: format!("it sent a line of more than {ANSWER_MOST} bytes"),
                    remedy: "ask for less at a time, and check that the instrument answers in lines",
                });
            }
            self.received.extend_from_slice(line);
            let Some(rest) = rest else { continue };
            self.is_owed = false;
            let text = self.text(question);
            self.received.clear();
            // Unsolicited; found before the next question.
            self.received.extend_from_slice(rest);
            return text;
        }
    }

    /// The line that has been received, if it is text.
    fn text(&self, question: &str) -> Result<String, DeviceError> {
        text_of(&self.received).map(str::to_owned).ok_or_else(|| DeviceError {
            attempted: self.asking(question),
            said: format!("the answer is not text: \"{}\"", shortened(&self.received)),
            remedy: "check the speed of a serial line, and that the instrument answers in text",
        })
    }

    fn asking(&self, question: &str) -> String {
        format!("ask {} {question}", self.address)
    }

    fn refused(&self, trouble: Trouble, question: &str) -> DeviceError {
        let (said, remedy) = match trouble {
            Trouble::TimedOut => (
                "no answer in time".to_owned(),
                "check that the instrument is on and knows this question, or allow it more time",
            ),
            Trouble::Stopped => ("stopped".to_owned(), "ask again"),
            Trouble::Closed => {
                ("it hung up".to_owned(), "check that the instrument is on and that no other program uses it")
            }
            Trouble::System(error) => (error.to_string(), "check the cable, and that the instrument is on"),
        };
        DeviceError { attempted: self.asking(question), said, remedy }
    }
}

/// A line that can be read, without the carriage return before its end.
fn text_of(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)).ok()?;
    (!text.contains(|c: char| c.is_control() && c != '\t')).then_some(text)
}

/// The beginning of arbitrary bytes, as printable text.
fn shortened(bytes: &[u8]) -> String {
    let shown = bytes[..bytes.len().min(SHOWN_MOST)].escape_ascii().to_string();
    if bytes.len() > SHOWN_MOST { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_text() {
        for (line, text) in [
            (&b"+1.5E+00\r"[..], Some("+1.5E+00")),
            (b"a\tb", Some("a\tb")),
            (b"", Some("")),
            (b"a\rb", None),
            (b"\0", None),
            (b"\xff", None),
        ] {
            assert_eq!(text_of(line), text, "{line:?}");
        }
        assert_eq!(shortened(&[0xff; 100]).chars().count(), 4 * SHOWN_MOST + 1);
    }
}
