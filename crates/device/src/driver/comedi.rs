//! Data acquisition cards through the kernel's `comedi`: [`Comedi`], the digital lines of a subdevice, and
//! [`AnalogInput`], its analogue inputs as a [`Source`](hairspring_source::Source).
//!
//! A card is a file, its parts are numbered subdevices. This driver uses the first 32 digital lines of a subdevice. If
//! a subdevice has lines, or groups of lines, with a selectable direction, opening sets the direction; fixed directions
//! stay. One output in a group makes the whole group outputs.
//!
//! **Real-time behaviour.** One system call for a write or a read, one access of the card within it.

mod card;
mod input;
mod kernel;

use std::io;
use std::path::{Path, PathBuf};

use hairspring_describe::{DescriptionError, Snippet};
use hairspring_machine::Machine;
use hairspring_time::Timebase;

use crate::device::{Device, DeviceError, Lines};
use crate::driver::node::Node;
use crate::driver::{DriverOptions, lines_of};
use crate::refusal::refusal;

pub use card::AnalogCard;
pub use input::{AnalogInput, Inputs};

const REMEDY: &str =
    "load the card's comedi driver, and name a digital subdevice, as in comedi:/dev/comedi0,subdevice=2";

const NO_DRIVER: &str = "no comedi driver is attached to it: load the card's driver, or connect the card again";

/// The options of a description `comedi:PATH,subdevice=NUMBER,out=LINES`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComediOptions {
    /// The file of the card.
    pub path: PathBuf,
    /// The part of the card.
    pub subdevice: u32,
    /// Lines that are outputs, where that can be chosen.
    pub outputs: Lines,
}

impl DriverOptions for ComediOptions {
    const KIND: &'static str = "comedi";
    const EXAMPLE: &'static str = "comedi:/dev/comedi0,subdevice=2";
    const HINT: &'static str = "subdevice= and its number, or out= or safe= and lines, like 0x000000ff";

    fn at(place: &str) -> Self {
        Self { path: place.into(), subdevice: 0, outputs: Lines(0) }
    }

    fn place(&self) -> String {
        self.path.display().to_string()
    }

    fn set(&mut self, key: &str, value: Snippet<'_>) -> Result<bool, DescriptionError> {
        match key {
            "subdevice" => self.subdevice = value.parse_or("write the number of the subdevice, from 0")?,
            "out" => self.outputs = lines_of(value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = vec![("subdevice", self.subdevice.to_string())];
        if self.outputs != Lines(0) {
            settings.push(("out", self.outputs.to_string()));
        }
        settings
    }

    fn output_lines(&self) -> Option<Lines> {
        None
    }

    fn open<'t, M: Machine + Send + Sync>(
        &self,
        safe: Option<Lines>,
        _: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError> {
        Ok(Box::new(Comedi::open(&self.path, self.subdevice, self.outputs, safe.unwrap_or_default())?))
    }
}

/// Digital lines of a subdevice.
#[derive(Debug)]
pub struct Comedi {
    node: Node,
    subdevice: u32,
    /// Lines of the subdevice.
    lines: Lines,
    outputs: Lines,
    safe: Lines,
}

impl Comedi {
    /// Opens a subdevice of a card and makes these lines outputs, the others inputs. The outputs go to the safe state
    /// first.
    ///
    /// Cards are shared: other processes can use the same lines, which the kernel does not report.
    ///
    /// # Errors
    /// The card or subdevice does not exist or is in use, a permission is missing, or the subdevice lacks digital lines
    /// or these outputs.
    pub fn open(path: &Path, subdevice: u32, outputs: Lines, safe: Lines) -> Result<Self, DeviceError> {
        let node = Node::open(path, "the card", REMEDY)?;
        let info = find(&node, subdevice)?;
        let other = |said: String| DeviceError {
            attempted: format!("use subdevice {subdevice} of {} as digital lines", path.display()),
            said,
            remedy: REMEDY,
        };
        let lines = match info.channels {
            0..32 => Lines((1 << info.channels) - 1),
            _ => Lines(u32::MAX),
        };
        let outputs = match info.kind {
            kernel::Kind::DigitalInput if outputs.0 != 0 => {
                return Err(other("it has inputs only".to_owned()));
            }
            kernel::Kind::DigitalInput => Lines(0),
            kernel::Kind::DigitalOutput => lines,
            kernel::Kind::Digital if outputs.0 & !lines.0 != 0 => {
                return Err(other(format!("it has {} lines", info.channels)));
            }
            kernel::Kind::Digital => outputs,
            other_kind => return Err(other(format!("it is {other_kind}"))),
        };
        let mut card = Self { node, subdevice, lines, outputs, safe };
        if info.kind == kernel::Kind::Digital {
            card.direct()?;
        }
        card.make_safe()?;
        Ok(card)
    }

    /// Sets the directions, and finds out which lines have become outputs.
    fn direct(&mut self) -> Result<(), DeviceError> {
        let failed = |error| self.failed("set the direction of lines of", &error);
        // Sets the levels first, for all lines that may become outputs.
        kernel::bits(&self.node, self.subdevice, self.lines.0, self.safe.0).map_err(failed)?;
        let (lines, mut outputs) = (self.lines, self.outputs);
        let wanted =
            |output| (0..u32::BITS).filter(move |line| lines.is_high(*line) && outputs.is_high(*line) == output);
        let inputs: Vec<u32> = wanted(false).collect();
        // The outputs last: an input would take the other lines of its group with it.
        for (line, output) in inputs.iter().map(|line| (*line, false)).chain(wanted(true).map(|line| (line, true))) {
            kernel::direct(&self.node, self.subdevice, line, output).map_err(failed)?;
        }
        for line in inputs {
            // A driver without this query has no groups.
            if kernel::is_output(&self.node, self.subdevice, line).unwrap_or(false) {
                outputs.0 |= 1 << line;
            }
        }
        self.outputs = outputs;
        Ok(())
    }

    /// Its file.
    pub fn path(&self) -> PathBuf {
        self.node.path().to_owned()
    }

    fn failed(&self, attempted: &str, error: &io::Error) -> DeviceError {
        let what = format!("{attempted} subdevice {} of {}", self.subdevice, self.node.path().display());
        refusal(what, error, REMEDY)
    }
}

/// Kind and size of a subdevice, checked against the request.
fn find(node: &Node, subdevice: u32) -> Result<kernel::Subdevice, DeviceError> {
    let asked = kernel::subdevices(node).map_err(|error| {
        let attempted = format!("ask {} for its subdevices", node.path().display());
        match error.raw_os_error() {
            // The kernel creates files for cards without a driver, and keeps the files of removed cards.
            Some(libc::ENODEV) => DeviceError { attempted, said: error.to_string(), remedy: NO_DRIVER },
            _ => refusal(attempted, &error, REMEDY),
        }
    })?;
    asked.get(subdevice as usize).cloned().ok_or_else(|| DeviceError {
        attempted: format!("use subdevice {subdevice} of {}", node.path().display()),
        said: format!("there are {}", asked.len()),
        remedy: REMEDY,
    })
}

impl Device for Comedi {
    fn name(&self) -> String {
        format!("subdevice {} of {}", self.subdevice, self.node.path().display())
    }

    fn init(&mut self) -> Result<(), DeviceError> {
        self.make_safe()
    }

    fn output_lines(&self) -> Lines {
        self.outputs
    }

    fn write(&mut self, mask: Lines, value: Lines) -> Result<(), DeviceError> {
        self.check_outputs(mask)?;
        if mask == Lines(0) {
            return Ok(());
        }
        let written = kernel::bits(&self.node, self.subdevice, mask.0, value.0);
        written.map(drop).map_err(|error| self.failed("write to", &error))
    }

    fn read(&mut self) -> Result<Lines, DeviceError> {
        let read = kernel::bits(&self.node, self.subdevice, 0, 0);
        read.map(|bits| Lines(bits & self.lines.0)).map_err(|error| self.failed("read from", &error))
    }

    fn safe_state(&self) -> Lines {
        self.safe
    }
}
