//! [`Gpio`]: lines of a GPIO chip through its character device, and [`GpioEdges`], their edges with the kernel's time
//! stamps.
//!
//! Outputs and inputs are lists of the chip's own line numbers. Line 0 of the device is the first of the list, line 1
//! the second, and so on; that makes a write of several lines one request that the chip's driver carries out as
//! simultaneously as it can.
//!
//! **What lasts.** The outputs keep their safe state until they are released, at the latest at the end of the process.
//! After that the kernel guarantees nothing: most chips keep the level, others make the line an input. Use a resistor
//! for lines that must be safe then.
//!
//! **Loss is counted.** The kernel numbers the edges, over all lines of a request and for each line. It keeps a limited
//! number until they are read and discards the oldest when more arrive; the gaps in the numbers give the count.
//! [`GpioEdges::lost`] adds them up.
//!
//! **Real-time behaviour.** One system call for a write or a read; no allocation after the first.

use std::fmt;
use std::path::{Path, PathBuf};

use gpiocdev::Request;
use gpiocdev::line::{EdgeDetection, EdgeKind, EventClock, Value, Values};
use hairspring_describe::{Described, DescriptionError, Snippet, grammar};
use hairspring_machine::{Instant, Machine, Nanos};
use hairspring_time::Timebase;

use crate::device::{Device, DeviceError, Lines};
use crate::driver::DriverOptions;
use crate::refusal::refusal;

const REMEDY: &str = "name a chip and its lines, for instance gpio:/dev/gpiochip0,out=3+4,in=7; gpioinfo lists them";
const CONSUMER: &str = "hairspring";
/// Most lines of one device: the width of `Lines`.
const MOST_LINES: usize = u32::BITS as usize;
/// Words of an edge in the second version of the kernel's interface, the one that is used.
const EDGE_WORDS: usize = 6;
/// The longest wait for an edge in one call, so that the time is within the range of the system's type.
const WAIT_MOST: std::time::Duration = std::time::Duration::from_secs(1 << 20);

/// The options of a description `gpio:PATH,out=LINES,in=LINES`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpioOptions {
    /// The file of the chip.
    pub path: PathBuf,
    /// The chip's lines that are the outputs, in order.
    pub outputs: Vec<u32>,
    /// The chip's lines that are the inputs, in order.
    pub inputs: Vec<u32>,
}

impl DriverOptions for GpioOptions {
    const KIND: &'static str = "gpio";
    const EXAMPLE: &'static str = "gpio:/dev/gpiochip0,out=3+4,in=7";
    const HINT: &'static str = "out= or in= and lines of the chip, like 3+4, or safe= and a number";

    fn at(place: &str) -> Self {
        Self { path: place.into(), outputs: Vec::new(), inputs: Vec::new() }
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn set(&mut self, key: &str, value: Snippet<'_>) -> Result<bool, DescriptionError> {
        let lines = match key {
            "out" => &mut self.outputs,
            "in" => &mut self.inputs,
            _ => return Ok(false),
        };
        let why = "write the numbers of at most 32 lines of the chip, like 3+4";
        *lines = value.read(grammar::numbers, why)?;
        if lines.len() <= MOST_LINES { Ok(true) } else { Err(value.wrong(why)) }
    }

    fn check(&self, read: &Described<'_>) -> Result<(), DescriptionError> {
        let lines = [self.outputs.as_slice(), &self.inputs].concat();
        if lines.is_empty() {
            return Err(read.missing(format!("name the lines, as in {}", read.example())));
        }
        let is_twice = lines.iter().enumerate().any(|(index, line)| lines[..index].contains(line));
        if is_twice { Err(read.whole().wrong("a line is named twice")) } else { Ok(()) }
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let named = [("out", &self.outputs), ("in", &self.inputs)].into_iter().filter(|(_, lines)| !lines.is_empty());
        named.map(|(name, lines)| (name, lines.iter().map(u32::to_string).collect::<Vec<_>>().join("+"))).collect()
    }

    fn output_lines(&self) -> Option<Lines> {
        Some(Lines::first(self.outputs.len()))
    }

    fn open<'t, M: Machine + Send + Sync>(
        &self,
        safe: Option<Lines>,
        _: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError> {
        Ok(Box::new(Gpio::open(&self.path, &self.outputs, &self.inputs, safe.unwrap_or_default())?))
    }
}

/// Lines of a chip.
#[derive(Debug)]
pub struct Gpio {
    path: PathBuf,
    outputs: Option<(Request, Vec<u32>, Values)>,
    inputs: Option<(Request, Vec<u32>, Values)>,
    safe: Lines,
}

impl Gpio {
    /// Requests lines of a chip, the outputs in the safe state. They are this process's until it is dropped.
    ///
    /// # Errors
    /// The chip or a line does not exist, a permission is missing, a line is in use, or the file is not a chip.
    pub fn open(path: &Path, outputs: &[u32], inputs: &[u32], safe: Lines) -> Result<Self, DeviceError> {
        if outputs.len() > MOST_LINES || inputs.len() > MOST_LINES || (outputs.is_empty() && inputs.is_empty()) {
            return Err(DeviceError {
                attempted: format!("request lines of the chip {}", path.display()),
                said: format!("{} outputs and {} inputs", outputs.len(), inputs.len()),
                remedy: "name at least one line, and at most 32 of each kind",
            });
        }
        let failed = |error: gpiocdev::Error| refused(format!("request lines of the chip {}", path.display()), &error);
        let outputs = (!outputs.is_empty()).then(|| {
            let mut values = Values::default();
            for (line, offset) in (0..).zip(outputs) {
                values.set(*offset, state(safe.is_high(line)));
            }
            let request = Request::builder().on_chip(path).with_consumer(CONSUMER).with_output_lines(&values).request();
            request.map(|request| (request, outputs.to_vec(), values))
        });
        let inputs = (!inputs.is_empty()).then(|| {
            let mut values = Values::default();
            for offset in inputs {
                values.set(*offset, Value::Inactive);
            }
            let mut request = Request::builder();
            let request = request.on_chip(path).with_consumer(CONSUMER).with_lines(inputs).as_input().request();
            request.map(|request| (request, inputs.to_vec(), values))
        });
        let (outputs, inputs) = (outputs.transpose().map_err(failed)?, inputs.transpose().map_err(failed)?);
        Ok(Self { path: path.to_owned(), outputs, inputs, safe })
    }

    fn failed(&self, attempted: &str, error: &gpiocdev::Error) -> DeviceError {
        refused(format!("{attempted} the chip {}", self.path.display()), error)
    }
}

impl Device for Gpio {
    fn name(&self) -> String {
        format!("lines of {}", self.path.display())
    }

    fn init(&mut self) -> Result<(), DeviceError> {
        self.make_safe()
    }

    fn output_lines(&self) -> Lines {
        Lines::first(self.outputs.as_ref().map_or(0, |(_, offsets, _)| offsets.len()))
    }

    fn write(&mut self, mask: Lines, value: Lines) -> Result<(), DeviceError> {
        self.check_outputs(mask)?;
        let Some((request, offsets, values)) = &mut self.outputs else { return Ok(()) };
        for (line, offset) in (0..).zip(offsets.iter()).filter(|(line, _)| mask.is_high(*line)) {
            values.set(*offset, state(value.is_high(line)));
        }
        let written = request.set_values(values);
        written.map_err(|error| self.failed("write to", &error))
    }

    fn read(&mut self) -> Result<Lines, DeviceError> {
        let Some((request, offsets, values)) = &mut self.inputs else { return Ok(Lines(0)) };
        if let Err(error) = request.values(values) {
            return Err(self.failed("read from", &error));
        }
        let high = (0..).zip(offsets.iter()).filter(|(_, offset)| values.get(**offset) == Some(Value::Active));
        Ok(Lines(high.fold(0, |lines, (line, _)| lines | 1 << line)))
    }

    fn safe_state(&self) -> Lines {
        self.safe
    }
}

/// An edge of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpioEdge {
    /// The kernel's stamp, taken in the interrupt: `CLOCK_MONOTONIC`.
    pub at: Instant,
    /// The chip's own number of the line.
    pub line: u32,
    /// Whether it is rising.
    pub rising: bool,
    /// The number of the edge over all lines that are watched together, from 1.
    pub number: u32,
    /// The number of the edge on its line, from 1.
    pub line_number: u32,
}

/// The edges of some lines.
pub struct GpioEdges {
    request: Request,
    path: PathBuf,
    last: u32,
    lost: u64,
}

impl fmt::Debug for GpioEdges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GpioEdges").field("path", &self.path).field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl GpioEdges {
    /// Watches these lines of a chip for edges of both directions. The kernel keeps up to `kept` edges until they are
    /// read, 16 per line if it is 0.
    ///
    /// # Errors
    /// As [`Gpio::open`]; a chip whose lines have no interrupts.
    pub fn watch(path: &Path, lines: &[u32], kept: u32) -> Result<Self, DeviceError> {
        let mut request = Request::builder();
        request.on_chip(path).with_consumer(CONSUMER).with_lines(lines).as_input();
        request.with_edge_detection(EdgeDetection::BothEdges).with_event_clock(EventClock::Monotonic);
        let request = request.with_kernel_event_buffer_size(kept).request();
        let request =
            request.map_err(|error| refused(format!("watch lines of the chip {}", path.display()), &error))?;
        Ok(Self { request, path: path.to_owned(), last: 0, lost: 0 })
    }

    /// Waits at most `most` for the next edge; `None` if there was none. Blocks.
    ///
    /// # Errors
    /// The chip is gone.
    pub fn next(&mut self, most: Nanos) -> Result<Option<GpioEdge>, DeviceError> {
        let most = std::time::Duration::from_nanos(most.count().max(0).unsigned_abs()).min(WAIT_MOST);
        let failed =
            |error: gpiocdev::Error| refused(format!("read edges of the chip {}", self.path.display()), &error);
        if !self.request.wait_edge_event(most).map_err(failed)? {
            return Ok(None);
        }
        // Read one edge: the crate's own call for a single edge reads up to eight, and returns the first.
        let mut room = [0; EDGE_WORDS];
        let words = self.request.read_edge_events_into_slice(&mut room).map_err(failed)?;
        let event = self.request.edge_event_from_slice(room.get(..words).unwrap_or_default()).map_err(failed)?;
        self.lost += u64::from(missing(self.last, event.seqno));
        self.last = event.seqno;
        Ok(Some(GpioEdge {
            at: Instant::from_monotonic(Nanos::new(i64::try_from(event.timestamp_ns).unwrap_or(i64::MAX))),
            line: event.offset,
            rising: event.kind == EdgeKind::Rising,
            number: event.seqno,
            line_number: event.line_seqno,
        }))
    }

    /// Number of edges that the kernel discarded because they were not read in time; known from the number of a later
    /// edge.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

impl std::os::fd::AsFd for GpioEdges {
    /// Readable when there is an edge.
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.request.as_fd()
    }
}

/// Numbers between two that follow each other, which count on from the largest to 0.
fn missing(last: u32, next: u32) -> u32 {
    next.wrapping_sub(last).saturating_sub(1)
}

fn state(high: bool) -> Value {
    if high { Value::Active } else { Value::Inactive }
}

/// The crate's error. It contains the system's number only in its text, as `std::io::Error` writes it.
fn refused(attempted: String, error: &gpiocdev::Error) -> DeviceError {
    let said = error.to_string();
    match system_number(&said) {
        Some(number) => refusal(attempted, &std::io::Error::from_raw_os_error(number), REMEDY),
        None => DeviceError { attempted, said, remedy: REMEDY },
    }
}

fn system_number(said: &str) -> Option<i32> {
    said.rsplit_once("(os error ")?.1.split_once(')')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_missing_are_counted_over_the_largest() {
        assert_eq!([missing(0, 1), missing(1, 2), missing(1, 5), missing(u32::MAX, 0)], [0, 0, 3, 0]);
        assert_eq!(missing(u32::MAX, 2), 2);
    }

    #[test]
    fn what_is_no_chip_is_refused_with_what_to_write() {
        let folder = tempfile::tempdir().expect("a folder");
        let letter = folder.path().join("letter");
        std::fs::write(&letter, "Dear Sir or Madam").expect("written");
        for (path, said) in [
            (letter.as_path(), "not a character device"),
            (Path::new("/dev/null"), "not a GPIO"),
            (&folder.path().join("none"), "No such file"),
        ] {
            let error = Gpio::open(path, &[3], &[], Lines(0)).expect_err(said).to_string();
            assert!(error.contains(said) && error.contains("gpioinfo lists them"), "{error}");
            let error = GpioEdges::watch(path, &[3], 0).expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        }
        let error = Gpio::open(Path::new("/dev/null"), &[], &[], Lines(0)).expect_err("no lines").to_string();
        assert!(error.contains("at least one line"), "{error}");
        assert_eq!(system_number("uAPI GetLine returned: Device or resource busy (os error 16)"), Some(libc::EBUSY));
    }
}
