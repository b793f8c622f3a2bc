//! [`Serial`]: the modem control lines of a serial port as digital lines.
//!
//! | line | out | in |
//! |---|---|---|
//! | 0 | DTR | CTS |
//! | 1 | RTS | DSR |
//! | 2 | – | RI |
//! | 3 | – | DCD |
//!
//! 1 means asserted, the positive voltage on an RS-232 port. Linux asserts both outputs when a port is opened: do not
//! use these lines if that could do harm. By default the kernel deasserts them when the last user closes the port,
//! whatever the safe state is. This driver switches that off when it opens the port, also for later users (`stty hupcl`
//! switches it on). So the safe state lasts until the port is opened again.
//!
//! A pseudo-terminal has no such lines: opening succeeds, but setting the lines fails with `ENOTTY`.
//!
//! **Real-time behaviour.** A write is at most two system calls, first the rising lines, then the falling ones; a read
//! is one. On a USB adapter each call is a bus transfer of a millisecond or more.

use std::io;
use std::path::{Path, PathBuf};

use hairspring_machine::Machine;
use hairspring_time::Timebase;
use rustix::termios::{ControlModes, OptionalActions, tcgetattr, tcsetattr};

use crate::device::{Device, DeviceError, Lines};
use crate::driver::DriverOptions;
use crate::driver::node::{EXCLUSIVE, MODEM_CLEAR, MODEM_GET, MODEM_SET, Node};
use crate::refusal::refusal;

const OUTPUTS: [libc::c_int; 2] = [libc::TIOCM_DTR, libc::TIOCM_RTS];
/// The lines that are outputs.
const OUTPUT_LINES: Lines = Lines((1 << OUTPUTS.len()) - 1);
const INPUTS: [libc::c_int; 4] = [libc::TIOCM_CTS, libc::TIOCM_DSR, libc::TIOCM_RI, libc::TIOCM_CD];
const REMEDY: &str = "name a serial port with modem control lines, for instance serial:/dev/ttyS0";

/// The options of a description `serial:PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerialOptions {
    /// The file of the port.
    pub path: PathBuf,
}

impl DriverOptions for SerialOptions {
    const KIND: &'static str = "serial";
    const EXAMPLE: &'static str = "serial:/dev/ttyS0";
    const HINT: &'static str = "safe= and a number, like 0x00000004";

    fn at(place: &str) -> Self {
        Self { path: place.into() }
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn output_lines(&self) -> Option<Lines> {
        Some(OUTPUT_LINES)
    }

    fn open<'t, M: Machine + Send + Sync>(
        &self,
        safe: Option<Lines>,
        _: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError> {
        Ok(Box::new(Serial::open(&self.path, safe.unwrap_or_default())?))
    }
}

/// The modem control lines of one port.
#[derive(Debug)]
pub struct Serial {
    node: Node,
    safe: Lines,
}

impl Serial {
    /// Opens a port for exclusive use by this process; root can open it nevertheless. Its lines go to the safe state.
    ///
    /// # Errors
    /// The port does not exist, is in use, a permission is missing, or it is not a port with such lines.
    pub fn open(path: &Path, safe: Lines) -> Result<Self, DeviceError> {
        let node = Node::open(path, "the serial port", REMEDY)?;
        let mut serial = Self { node, safe };
        serial.node.command(EXCLUSIVE).map_err(|error| serial.failed("take for itself", &error))?;
        serial.make_safe()?;
        serial.keep_when_closed().map_err(|error| serial.failed("keep the lines of", &error))?;
        Ok(serial)
    }

    /// Makes the outputs keep their levels when the port is closed.
    fn keep_when_closed(&self) -> io::Result<()> {
        let mut settings = tcgetattr(&self.node)?;
        settings.control_modes.remove(ControlModes::HUPCL);
        Ok(tcsetattr(&self.node, OptionalActions::Now, &settings)?)
    }

    /// Its file.
    pub fn path(&self) -> PathBuf {
        self.node.path().to_owned()
    }

    fn failed(&self, attempted: &str, error: &io::Error) -> DeviceError {
        refusal(format!("{attempted} the serial port {}", self.node.path().display()), error, REMEDY)
    }
}

impl Device for Serial {
    fn name(&self) -> String {
        format!("modem control lines of {}", self.node.path().display())
    }

    fn init(&mut self) -> Result<(), DeviceError> {
        self.make_safe()
    }

    fn output_lines(&self) -> Lines {
        OUTPUT_LINES
    }

    fn write(&mut self, mask: Lines, value: Lines) -> Result<(), DeviceError> {
        self.check_outputs(mask)?;
        let bits = |lines: u32| {
            (0..).zip(OUTPUTS).filter(|(line, _)| Lines(lines).is_high(*line)).fold(0, |bits, (_, bit)| bits | bit)
        };
        let (up, down) = (bits(mask.0 & value.0), bits(mask.0 & !value.0));
        for (request, bits) in [(MODEM_SET, up), (MODEM_CLEAR, down)] {
            if bits != 0 {
                self.node.put(request, bits).map_err(|error| self.failed("write to", &error))?;
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Lines, DeviceError> {
        let bits = self.node.ask(MODEM_GET).map_err(|error| self.failed("read from", &error))?;
        let high = (0..).zip(INPUTS).filter(|(_, bit)| bits & bit != 0);
        Ok(Lines(high.fold(0, |lines, (line, _)| lines | 1 << line)))
    }

    fn safe_state(&self) -> Lines {
        self.safe
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::node::Request;

    /// A pseudo-terminal: the one end, and the path of the other.
    fn terminal() -> (Node, String) {
        // TIOCSPTLCK and TIOCGPTN.
        let (lock, number) = (Request::<i32>::takes(b'T', 0x31), Request::<u32>::gives(b'T', 0x30));
        let master =
            Node::open(Path::new("/dev/ptmx"), "a pseudo-terminal", "mount devpts").expect("a pseudo-terminal");
        master.put(lock, 0).expect("unlocked");
        let path = format!("/dev/pts/{}", master.ask(number).expect("a number"));
        (master, path)
    }

    fn hangs_up(node: &Node) -> bool {
        tcgetattr(node).expect("its settings").control_modes.contains(ControlModes::HUPCL)
    }

    /// The report was "safe", but DTR was deasserted when the port was closed.
    #[test]
    fn a_port_that_is_closed_keeps_its_lines() {
        let (_master, path) = terminal();
        let node = Node::open(Path::new(&path), "a pseudo-terminal", "mount devpts").expect("a pseudo-terminal");
        let mut settings = tcgetattr(&node).expect("its settings");
        settings.control_modes.insert(ControlModes::HUPCL);
        tcsetattr(&node, OptionalActions::Now, &settings).expect("set");
        assert!(hangs_up(&node));
        let serial = Serial { node, safe: Lines(1) };
        serial.keep_when_closed().expect("set");
        assert!(!hangs_up(&serial.node));
    }

    #[test]
    fn a_pseudo_terminal_is_refused_because_it_has_no_such_lines() {
        let (_master, path) = terminal();
        let error = Serial::open(Path::new(&path), Lines(0)).expect_err("no lines");
        assert!(error.attempted.starts_with("write to the serial port /dev/pts/"), "{error}");
        // Which of the two depends on the kernel's version.
        let known = [libc::ENOTTY, libc::EINVAL].map(|number| io::Error::from_raw_os_error(number).to_string());
        assert!(known.contains(&error.said) && error.remedy == REMEDY, "{error}");
    }
}
