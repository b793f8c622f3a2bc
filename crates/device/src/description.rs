//! [`Description`]: a device as written on a command line, `DRIVER:WHERE` and what is not the usual.
//!
//! ```text
//! virtual:/dev/shm/board                                        no access times, safe state all low, lock with inheritance
//! virtual:/dev/shm/board,read=1.25us,write=1.25us,init=3.75us   the board of FESA's latency note
//! virtual:/dev/shm/board,safe=0x00000004,lock=fifo
//! parport:/dev/parport0,safe=0x00000400                         data lines low, nInit high
//! gpio:/dev/gpiochip0,out=3+4,in=7                              lines of the chip: 3 is line 0 of the device, 4 is line 1
//! serial:/dev/ttyS0                                             modem control lines
//! comedi:/dev/comedi0,subdevice=2,out=0x000000ff                the first 8 lines of the subdevice are outputs
//! pci:0000:00:04.0,bar=0,out=0x8,in=0xc                         words of a window of a card, by their offset in bytes
//! ```
//!
//! Every driver takes `safe=` and 32 lines as a number. What stands behind the path of a virtual board is for who makes it, that is for
//! the first who opens it; the others get it as it is.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use hairspring_machine::{Machine, Nanos};
use hairspring_time::{POLL_MOST, Timebase};

use crate::comedi::Comedi;
use crate::device::{Device, DeviceError, Lines};
use crate::gpio::Gpio;
use crate::lock::Protocol;
use crate::parport::Parport;
use crate::pci::Pci;
use crate::serial::Serial;
use crate::virtual_board::{AccessTimes, VirtualBoard};

/// A device that was described and not yet opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// What it is, and where.
    pub driver: Driver,
    /// What the outputs are when nobody is in command.
    pub safe: Lines,
}

/// The kinds of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Driver {
    /// [`VirtualBoard`].
    Virtual {
        /// The file of the board.
        path: PathBuf,
        /// How long accesses take.
        times: AccessTimes,
        /// The lock between processes.
        lock: Protocol,
    },
    /// [`Parport`].
    Parport {
        /// The file of the port.
        path: PathBuf,
    },
    /// [`Gpio`].
    Gpio {
        /// The file of the chip.
        path: PathBuf,
        /// The chip's lines that are the outputs, in order.
        outputs: Vec<u32>,
        /// The chip's lines that are the inputs, in order.
        inputs: Vec<u32>,
    },
    /// [`Serial`].
    Serial {
        /// The file of the port.
        path: PathBuf,
    },
    /// [`Comedi`].
    Comedi {
        /// The file of the card.
        path: PathBuf,
        /// The part of the card.
        subdevice: u32,
        /// Lines that are outputs, where that can be chosen.
        outputs: Lines,
    },
    /// [`Pci`].
    Pci {
        /// The card, as `lspci -D` prints it.
        card: String,
        /// The window.
        bar: u8,
        /// The outputs' word, in bytes from the beginning of the window.
        output: Option<u32>,
        /// The inputs' word.
        input: Option<u32>,
    },
}

/// Every driver, with an example of each.
const DRIVERS: [(&str, &str); 6] = [
    ("virtual", "virtual:/dev/shm/board"),
    ("parport", "parport:/dev/parport0"),
    ("gpio", "gpio:/dev/gpiochip0,out=3+4,in=7"),
    ("serial", "serial:/dev/ttyS0"),
    ("comedi", "comedi:/dev/comedi0,subdevice=2"),
    ("pci", "pci:0000:00:04.0,bar=0,out=0x8"),
];
/// Windows of a card.
const BARS: u8 = 6;

/// Why a text describes no device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionError {
    part: String,
    why: String,
}

impl fmt::Display for DescriptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}': {}", self.part, self.why)
    }
}

impl std::error::Error for DescriptionError {}

impl Description {
    /// Opens the device, as its driver does.
    ///
    /// # Errors
    /// As there.
    pub fn open<'t, M: Machine + Send + Sync>(
        &self,
        timebase: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError> {
        let safe = self.safe;
        let offset = |word: &Option<u32>| word.map(|offset| offset as usize);
        Ok(match &self.driver {
            Driver::Virtual { .. } => Box::new(self.open_board(timebase)?),
            Driver::Parport { path } => Box::new(Parport::open(path, safe)?),
            Driver::Gpio { path, outputs, inputs } => Box::new(Gpio::open(path, outputs, inputs, safe)?),
            Driver::Serial { path } => Box::new(Serial::open(path, safe)?),
            Driver::Comedi { path, subdevice, outputs } => Box::new(Comedi::open(path, *subdevice, *outputs, safe)?),
            Driver::Pci { card, bar, output, input } => {
                Box::new(Pci::open(card, *bar, offset(output), offset(input), safe)?)
            }
        })
    }

    /// Opens the virtual board, for what only such a one has: the lock between processes, and lines that an observer sees.
    ///
    /// # Errors
    /// It is another device; as [`VirtualBoard::open`].
    pub fn open_board<'t, M: Machine>(&self, timebase: &'t Timebase<M>) -> Result<VirtualBoard<'t, M>, DeviceError> {
        match &self.driver {
            Driver::Virtual { path, times, lock } => VirtualBoard::open(path, *times, self.safe, *lock, timebase),
            _ => Err(DeviceError {
                attempted: format!("watch {self}"),
                said: "only the lines of a virtual board can be watched".to_owned(),
                remedy: "write virtual:PATH, for instance virtual:/dev/shm/board",
            }),
        }
    }
}

pub(crate) fn error(part: &str, why: impl Into<String>) -> DescriptionError {
    DescriptionError { part: part.to_owned(), why: why.into() }
}

impl FromStr for Description {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some((name, example)) = DRIVERS.into_iter().find(|(known, _)| *known == name && text.contains(':')) else {
            let known = DRIVERS.map(|(known, _)| known).join(", ");
            return Err(error(
                text,
                format!("there is no such driver; there are {known}: write virtual:/dev/shm/board"),
            ));
        };
        let mut parts = rest.split(',');
        let place = parts.next().filter(|place| !place.is_empty());
        let place = place.ok_or_else(|| error(text, format!("write where it is behind the colon, as in {example}")))?;
        let mut described = Self { driver: Driver::plain(name, place), safe: Lines(0) };
        for part in parts {
            let Some((key, value)) = part.split_once('=') else {
                return Err(error(part, format!("write {}", described.driver.hint())));
            };
            match key {
                "safe" => described.safe = lines(part, value)?,
                _ => described.driver.set(part, key, value)?,
            }
        }
        described.driver.check(text, example)?;
        Ok(described)
    }
}

impl Driver {
    /// With everything as usual.
    fn plain(name: &str, place: &str) -> Self {
        let path = PathBuf::from(place);
        match name {
            "virtual" => Self::Virtual { path, times: AccessTimes::ZERO, lock: Protocol::Inherit },
            "parport" => Self::Parport { path },
            "gpio" => Self::Gpio { path, outputs: Vec::new(), inputs: Vec::new() },
            "serial" => Self::Serial { path },
            "comedi" => Self::Comedi { path, subdevice: 0, outputs: Lines(0) },
            _ => Self::Pci { card: place.to_owned(), bar: 0, output: None, input: None },
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Virtual { .. } => "virtual",
            Self::Parport { .. } => "parport",
            Self::Gpio { .. } => "gpio",
            Self::Serial { .. } => "serial",
            Self::Comedi { .. } => "comedi",
            Self::Pci { .. } => "pci",
        }
    }

    /// What can be written behind its place.
    fn hint(&self) -> &'static str {
        match self {
            Self::Virtual { .. } => "read=, write= or init= and a time, safe= and a number, or lock=",
            Self::Parport { .. } | Self::Serial { .. } => "safe= and a number, like 0x00000004",
            Self::Gpio { .. } => "out= or in= and lines of the chip, like 3+4, or safe= and a number",
            Self::Comedi { .. } => "subdevice= and its number, or out= or safe= and lines, like 0x000000ff",
            Self::Pci { .. } => "bar= and 0 to 5, out= or in= and an offset, like 0x8, or safe= and a number",
        }
    }

    fn set(&mut self, part: &str, key: &str, value: &str) -> Result<(), DescriptionError> {
        let span = || {
            let span = value.parse::<Nanos>().ok().filter(|span| (Nanos::ZERO..=POLL_MOST).contains(span));
            span.ok_or_else(|| error(part, "write a time of at most 100 ms, for instance 1.25us"))
        };
        let offset = || match number(value) {
            Some(offset) if offset % 4 == 0 => Ok(Some(offset)),
            _ => Err(error(part, "write the offset of a word in bytes, a multiple of four, like 0x8")),
        };
        match (&mut *self, key) {
            (Self::Virtual { times, .. }, "read") => times.read = span()?,
            (Self::Virtual { times, .. }, "write") => times.write = span()?,
            (Self::Virtual { times, .. }, "init") => times.init = span()?,
            (Self::Virtual { lock, .. }, "lock") => *lock = value.parse().map_err(|why: String| error(part, why))?,
            (Self::Gpio { outputs, .. }, "out") => *outputs = offsets(part, value)?,
            (Self::Gpio { inputs, .. }, "in") => *inputs = offsets(part, value)?,
            (Self::Comedi { outputs, .. }, "out") => *outputs = lines(part, value)?,
            (Self::Comedi { subdevice, .. }, "subdevice") => {
                *subdevice = value.parse().map_err(|_| error(part, "write the number of the subdevice, from 0"))?;
            }
            (Self::Pci { bar, .. }, "bar") => {
                let known = value.parse().ok().filter(|bar| *bar < BARS);
                *bar = known.ok_or_else(|| error(part, "a card has windows 0 to 5"))?;
            }
            (Self::Pci { output, .. }, "out") => *output = offset()?,
            (Self::Pci { input, .. }, "in") => *input = offset()?,
            _ => return Err(error(part, format!("there is no {key} here: write {}", self.hint()))),
        }
        Ok(())
    }

    /// Whether all is there without which it is no device.
    fn check(&self, text: &str, example: &str) -> Result<(), DescriptionError> {
        let twice = |lines: &[u32]| lines.iter().enumerate().any(|(index, line)| lines[..index].contains(line));
        match self {
            Self::Gpio { outputs, inputs, .. } if outputs.is_empty() && inputs.is_empty() => {
                Err(error(text, format!("name the lines, as in {example}")))
            }
            Self::Gpio { outputs, inputs, .. } if twice(&[outputs.as_slice(), inputs].concat()) => {
                Err(error(text, "a line is named twice"))
            }
            Self::Pci { output: None, input: None, .. } => {
                Err(error(text, format!("name a word for the outputs or the inputs, as in {example}")))
            }
            _ => Ok(()),
        }
    }
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        // `from_str_radix` takes a sign.
        Some(hex) => u32::from_str_radix(hex, 16).ok().filter(|_| !hex.starts_with('+')),
        None => text.parse().ok(),
    }
}

fn lines(part: &str, text: &str) -> Result<Lines, DescriptionError> {
    number(text).map(Lines).ok_or_else(|| error(part, "write 32 lines as a number, like 0x00000004"))
}

fn offsets(part: &str, text: &str) -> Result<Vec<u32>, DescriptionError> {
    let parsed: Option<Vec<u32>> = text.split('+').map(|line| line.parse().ok()).collect();
    let parsed = parsed.filter(|lines| lines.len() <= u32::BITS as usize);
    parsed.ok_or_else(|| error(part, "write the numbers of at most 32 lines of the chip, like 3+4"))
}

impl fmt::Display for Description {
    /// As it is read, with everything that is not the usual.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.driver.name())?;
        match &self.driver {
            Driver::Virtual { path, .. }
            | Driver::Parport { path }
            | Driver::Gpio { path, .. }
            | Driver::Serial { path }
            | Driver::Comedi { path, .. } => write!(f, "{}", path.display())?,
            Driver::Pci { card, .. } => f.write_str(card)?,
        }
        match &self.driver {
            Driver::Virtual { times, .. } => {
                for (name, span) in [("read", times.read), ("write", times.write), ("init", times.init)] {
                    if span > Nanos::ZERO {
                        write!(f, ",{name}={}ns", span.count())?;
                    }
                }
            }
            Driver::Gpio { outputs, inputs, .. } => {
                for (name, lines) in
                    [("out", outputs), ("in", inputs)].into_iter().filter(|(_, lines)| !lines.is_empty())
                {
                    let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
                    write!(f, ",{name}={}", lines.join("+"))?;
                }
            }
            Driver::Comedi { subdevice, outputs, .. } => {
                write!(f, ",subdevice={subdevice}")?;
                if *outputs != Lines(0) {
                    write!(f, ",out={outputs}")?;
                }
            }
            Driver::Pci { bar, output, input, .. } => {
                write!(f, ",bar={bar}")?;
                for (name, offset) in [("out", output), ("in", input)] {
                    if let Some(offset) = offset {
                        write!(f, ",{name}={offset:#x}")?;
                    }
                }
            }
            Driver::Parport { .. } | Driver::Serial { .. } => {}
        }
        if self.safe != Lines(0) {
            write!(f, ",safe={}", self.safe)?;
        }
        if let Driver::Virtual { lock, .. } = &self.driver
            && *lock != Protocol::Inherit
        {
            write!(f, ",lock={lock}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
