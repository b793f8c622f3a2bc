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
//! Every driver takes `safe=` and 32 lines as a number. What stands behind the path of a virtual board is what it is made with by whoever opens
//! it first. For the others it must be what the board has, or it is refused; what they do not write is as the board has it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hairspring_machine::{Machine, Nanos};
use hairspring_time::{POLL_MOST, Timebase};

use crate::comedi::Comedi;
use crate::device::{Device, DeviceError, Lines, check_outputs};
use crate::gpio::Gpio;
use crate::guarded::Guarded;
use crate::lock::{LockFile, Lockable, Protocol};
use crate::parport::{self, Parport};
use crate::pci::Pci;
use crate::serial::{self, Serial};
use crate::virtual_board::{AccessTimes, VirtualBoard};

/// A device that was described and not yet opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// What it is, and where.
    pub driver: Driver,
    /// What the outputs are when nobody is in command. If it is not said: all low, or as a virtual board has it.
    pub safe: Option<Lines>,
}

/// The kinds of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Driver {
    /// [`VirtualBoard`]. What is not said is as the board has it; a new one has no access times, and a lock with inheritance.
    Virtual {
        /// The file of the board.
        path: PathBuf,
        /// How long a read takes.
        read: Option<Nanos>,
        /// A write.
        write: Option<Nanos>,
        /// An initialisation.
        init: Option<Nanos>,
        /// The lock between processes.
        lock: Option<Protocol>,
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
    /// Refuses lines that are known to be no outputs before the device is opened.
    ///
    /// # Errors
    /// There are such lines among them.
    pub fn check_outputs(&self, lines: Lines) -> Result<(), DeviceError> {
        let known = self.driver.output_lines();
        known.map_or(Ok(()), |outputs| check_outputs(outputs, lines, || self.to_string()))
    }

    /// Opens the device, as its driver does, to move these lines.
    ///
    /// # Errors
    /// As there; these lines, or those of the safe state, are no outputs.
    pub fn open_to_move<'t, M: Machine + Send + Sync>(
        &self,
        lines: Lines,
        timebase: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError> {
        // Before anything is touched, as far as that is known; and by what only the device knows.
        let wanted = Lines(lines.0 | self.safe.unwrap_or_default().0);
        self.check_outputs(wanted)?;
        let device = self.open(timebase)?;
        device.check_outputs(wanted)?;
        Ok(device)
    }

    /// Opens the device, as its driver does.
    ///
    /// # Errors
    /// As there.
    pub fn open<'t, M: Machine + Send + Sync>(
        &self,
        timebase: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError> {
        let safe = self.safe.unwrap_or_default();
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

    /// Opens the device whose lines are to be moved, behind the lock that its users share: the board's own, else that of this file, else
    /// one of this process.
    ///
    /// # Errors
    /// As [`open_to_move`](Self::open_to_move); the lock cannot be opened.
    pub fn open_guarded<'t, M: Machine + Send + Sync>(
        &self,
        lines: Lines,
        lock: Option<&(PathBuf, Protocol)>,
        timebase: &'t Timebase<M>,
    ) -> Result<Guarded<'t>, DeviceError> {
        let device = self.open_to_move(lines, timebase)?;
        let lock: Box<dyn Lockable + Send + Sync + 't> = match (&self.driver, lock) {
            (Driver::Virtual { .. }, _) => Box::new(self.open_board(timebase)?),
            (_, Some((file, protocol))) => Box::new(LockFile::open(file, *protocol)?),
            (_, None) => Box::new(LockFile::of_process()?),
        };
        Ok(Guarded::new(device, lock))
    }

    /// Opens the virtual board, for what only such a one has: the lock between processes, and lines that an observer sees.
    ///
    /// # Errors
    /// It is another device; as [`VirtualBoard::open`]; the board was made with other settings than are said here.
    pub fn open_board<'t, M: Machine + Send + Sync>(
        &self,
        timebase: &'t Timebase<M>,
    ) -> Result<VirtualBoard<'t, M>, DeviceError> {
        /// What it has, if that is not what was said.
        fn other<T: Copy + PartialEq>(said: Option<T>, has: T) -> Option<T> {
            said.filter(|said| *said != has).and(Some(has))
        }
        let Driver::Virtual { path, read, write, init, lock } = &self.driver else {
            return Err(DeviceError {
                attempted: format!("watch {self}"),
                said: "only the lines of a virtual board can be watched".to_owned(),
                remedy: "write virtual:PATH, for instance virtual:/dev/shm/board",
            });
        };
        let [times_read, times_write, times_init] = [read, write, init].map(|span| span.unwrap_or(Nanos::ZERO));
        let times = AccessTimes { read: times_read, write: times_write, init: times_init };
        let board = VirtualBoard::open(path, times, self.safe.unwrap_or_default(), lock.unwrap_or_default(), timebase)?;
        let times = board.times();
        let driver = Driver::Virtual {
            path: path.clone(),
            read: other(*read, times.read),
            write: other(*write, times.write),
            init: other(*init, times.init),
            lock: other(*lock, board.lock().protocol()),
        };
        let has = Self { driver, safe: other(self.safe, board.safe_state()) }.settings();
        if has.is_empty() {
            return Ok(board);
        }
        Err(DeviceError {
            attempted: format!("open {self}"),
            said: format!("the board was made with {}", has.join(",")),
            remedy: "leave out what is not so; or end all its users, and remove its file",
        })
    }

    /// With what a virtual board has where that is not the usual and was not said: what is in force.
    ///
    /// # Errors
    /// As [`open_board`](Self::open_board).
    pub fn in_force<M: Machine + Send + Sync>(&self, timebase: &Timebase<M>) -> Result<Self, DeviceError> {
        fn say<T: PartialEq>(said: &mut Option<T>, has: T, usual: T) {
            if said.is_some() || has != usual {
                *said = Some(has);
            }
        }
        let mut described = self.clone();
        if let Driver::Virtual { read, write, init, lock, .. } = &mut described.driver {
            let board = self.open_board(timebase)?;
            let times = board.times();
            say(read, times.read, Nanos::ZERO);
            say(write, times.write, Nanos::ZERO);
            say(init, times.init, Nanos::ZERO);
            say(lock, board.lock().protocol(), Protocol::default());
            say(&mut described.safe, board.safe_state(), Lines(0));
        }
        Ok(described)
    }

    /// What stands behind the place, in its order.
    fn settings(&self) -> Vec<String> {
        let mut settings = Vec::new();
        let mut say = |name: &str, value: Option<&dyn fmt::Display>| {
            settings.extend(value.map(|value| format!("{name}={value}")));
        };
        match &self.driver {
            Driver::Virtual { read, write, init, .. } => {
                for (name, span) in [("read", read), ("write", write), ("init", init)] {
                    say(name, span.map(|span| format!("{}ns", span.count())).as_ref().map(|span| span as _));
                }
            }
            Driver::Gpio { outputs, inputs, .. } => {
                for (name, lines) in [("out", outputs), ("in", inputs)] {
                    let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
                    say(name, (!lines.is_empty()).then_some(&lines.join("+") as _));
                }
            }
            Driver::Comedi { subdevice, outputs, .. } => {
                say("subdevice", Some(subdevice));
                say("out", (*outputs != Lines(0)).then_some(outputs as _));
            }
            Driver::Pci { bar, output, input, .. } => {
                say("bar", Some(bar));
                for (name, offset) in [("out", output), ("in", input)] {
                    say(name, offset.map(|offset| format!("{offset:#x}")).as_ref().map(|offset| offset as _));
                }
            }
            Driver::Parport { .. } | Driver::Serial { .. } => {}
        }
        say("safe", self.safe.as_ref().map(|safe| safe as _));
        if let Driver::Virtual { lock, .. } = &self.driver {
            say("lock", lock.as_ref().map(|lock| lock as _));
        }
        settings
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
        let mut described = Self { driver: Driver::plain(name, place), safe: None };
        for part in parts {
            let Some((key, value)) = part.split_once('=') else {
                return Err(error(part, format!("write {}", described.driver.hint())));
            };
            match key {
                "safe" => described.safe = Some(lines(part, value)?),
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
            "virtual" => Self::Virtual { path, read: None, write: None, init: None, lock: None },
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

    /// The lines that are outputs, where that is known before it is opened.
    fn output_lines(&self) -> Option<Lines> {
        match self {
            Self::Virtual { .. } => Some(Lines(u32::MAX)),
            Self::Parport { .. } => Some(parport::OUTPUT_LINES),
            Self::Gpio { outputs, .. } => Some(Lines::first(outputs.len())),
            Self::Serial { .. } => Some(serial::OUTPUT_LINES),
            Self::Comedi { .. } => None,
            Self::Pci { output, .. } => Some(Lines::first(output.map_or(0, |_| u32::BITS as usize))),
        }
    }

    /// Whether it is the parallel port of this file.
    pub(crate) fn is_parport(&self, file: &Path) -> bool {
        matches!(self, Self::Parport { path } if path == file)
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
            span.map(Some).ok_or_else(|| error(part, "write a time of at most 100 ms, for instance 1.25us"))
        };
        let offset = || match number(value) {
            Some(offset) if offset % 4 == 0 => Ok(Some(offset)),
            _ => Err(error(part, "write the offset of a word in bytes, a multiple of four, like 0x8")),
        };
        match (&mut *self, key) {
            (Self::Virtual { read, .. }, "read") => *read = span()?,
            (Self::Virtual { write, .. }, "write") => *write = span()?,
            (Self::Virtual { init, .. }, "init") => *init = span()?,
            (Self::Virtual { lock, .. }, "lock") => {
                *lock = Some(value.parse().map_err(|why: String| error(part, why))?);
            }
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
    /// As it is read, with everything that was said and what drivers need.
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
        self.settings().iter().try_for_each(|setting| write!(f, ",{setting}"))
    }
}

#[cfg(test)]
mod tests;
