//! [`DeviceDescription`]: a device on a command line: `DRIVER:WHERE`, and options that differ from the defaults.
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
//! Every driver takes `safe=` and 32 lines as a number. The first user of a virtual board makes it with the options after its
//! path. Later users are refused if their options differ from the board's; options that they leave out are the board's.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use hairspring_describe::{Catalogue, Described, DescriptionError, Part, PlaceForm, Snippet, Syntax, grammar};
use hairspring_machine::{Machine, Nanos};
use hairspring_time::{POLL_MOST, Timebase};

use crate::device::{Device, DeviceError, Lines, check_outputs};
use crate::driver::comedi::Comedi;
use crate::driver::gpio::Gpio;
use crate::driver::parport::{self, Parport};
use crate::driver::pci::Pci;
use crate::driver::serial::{self, Serial};
use crate::driver::virtual_board::{AccessTimes, VirtualBoard};
use crate::lock::Guarded;
use crate::lock::{LockFile, Lockable, Protocol};

/// A described device, not open yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDescription {
    /// Its driver and its place.
    pub driver: Driver,
    /// The safe state of the outputs. By default all low, or the state of an existing virtual board.
    pub safe: Option<Lines>,
}

/// The kinds of devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Driver {
    /// [`VirtualBoard`]. Missing options are those of the board; a new board has no access times, and a lock with inheritance.
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

const fn driver(kind: &'static str, example: &'static str) -> Syntax {
    Syntax { kind, place: PlaceForm::UpToComma, example }
}

/// Every driver, with an example of each.
const DRIVERS: Catalogue = Catalogue {
    noun: "driver",
    syntaxes: &[
        driver("virtual", "virtual:/dev/shm/board"),
        driver("parport", "parport:/dev/parport0"),
        driver("gpio", "gpio:/dev/gpiochip0,out=3+4,in=7"),
        driver("serial", "serial:/dev/ttyS0"),
        driver("comedi", "comedi:/dev/comedi0,subdevice=2"),
        driver("pci", "pci:0000:00:04.0,bar=0,out=0x8"),
    ],
};
/// Windows of a card.
const BARS: u8 = 6;

impl DeviceDescription {
    /// Refuses lines that are certainly not outputs, before the device is opened.
    ///
    /// # Errors
    /// Some of the lines are not outputs.
    pub fn check_outputs(&self, lines: Lines) -> Result<(), DeviceError> {
        let known = self.driver.output_lines();
        known.map_or(Ok(()), |outputs| check_outputs(outputs, lines, || self.to_string()))
    }

    /// Opens the device, as its driver does, to move these lines.
    ///
    /// # Errors
    /// As there; or these lines, or those of the safe state, are not outputs.
    pub fn open_to_move<'t, M: Machine + Send + Sync>(
        &self,
        lines: Lines,
        timebase: &'t Timebase<M>,
    ) -> Result<Box<dyn Device + 't>, DeviceError> {
        // Checks before any access as far as possible, and again with the outputs that only the device knows.
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

    /// Opens the device to move its lines, behind the lock that its users share: the board's own lock, else the lock in this
    /// file, else one of this process.
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

    /// Opens the device as a virtual board, for features that only virtual boards have: the lock between processes, and lines
    /// that an observer can watch.
    ///
    /// # Errors
    /// It is another device; as [`VirtualBoard::open`]; the board was made with other options.
    pub fn open_board<'t, M: Machine + Send + Sync>(
        &self,
        timebase: &'t Timebase<M>,
    ) -> Result<VirtualBoard<'t, M>, DeviceError> {
        /// The board's options, if they differ from the requested ones.
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
            remedy: "leave out the options that differ; or end all its users, and remove its file",
        })
    }

    /// The description with the options in force: those of a virtual board that differ from the defaults are filled in.
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

    /// The options after the place, in order.
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

impl FromStr for DeviceDescription {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let read = DRIVERS.read(text)?;
        let mut described = Self { driver: Driver::plain(read.kind(), read.place()?.text()), safe: None };
        for part in read.parts() {
            match part.key() {
                Some("safe") => described.safe = Some(lines(part.value())?),
                Some(key) => described.driver.set(key, &part)?,
                None => return Err(part.wrong(format!("write {}", described.driver.hint()))),
            }
        }
        described.driver.check(&read)?;
        Ok(described)
    }
}

impl Driver {
    /// With all defaults.
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
    pub fn is_parport(&self, file: &Path) -> bool {
        matches!(self, Self::Parport { path } if path == file)
    }

    /// The possible options after its place.
    fn hint(&self) -> &'static str {
        match self {
            Self::Virtual { .. } => "read=, write= or init= and a time, safe= and a number, or lock=",
            Self::Parport { .. } | Self::Serial { .. } => "safe= and a number, like 0x00000004",
            Self::Gpio { .. } => "out= or in= and lines of the chip, like 3+4, or safe= and a number",
            Self::Comedi { .. } => "subdevice= and its number, or out= or safe= and lines, like 0x000000ff",
            Self::Pci { .. } => "bar= and 0 to 5, out= or in= and an offset, like 0x8, or safe= and a number",
        }
    }

    fn set(&mut self, key: &str, part: &Part<'_>) -> Result<(), DescriptionError> {
        let value = part.value();
        let span = || {
            let why = "write a time of at most 100 ms, for instance 1.25us";
            let span: Nanos = value.parse_or(why)?;
            if (Nanos::ZERO..=POLL_MOST).contains(&span) { Ok(Some(span)) } else { Err(value.wrong(why)) }
        };
        let offset = || {
            let why = "write the offset of a word in bytes, a multiple of four, like 0x8";
            let offset = value.read(grammar::number, why)?;
            if offset % 4 == 0 { Ok(Some(offset)) } else { Err(value.wrong(why)) }
        };
        match (&mut *self, key) {
            (Self::Virtual { read, .. }, "read") => *read = span()?,
            (Self::Virtual { write, .. }, "write") => *write = span()?,
            (Self::Virtual { init, .. }, "init") => *init = span()?,
            (Self::Virtual { lock, .. }, "lock") => *lock = Some(value.parse()?),
            (Self::Gpio { outputs, .. }, "out") => *outputs = offsets(value)?,
            (Self::Gpio { inputs, .. }, "in") => *inputs = offsets(value)?,
            (Self::Comedi { outputs, .. }, "out") => *outputs = lines(value)?,
            (Self::Comedi { subdevice, .. }, "subdevice") => {
                *subdevice = value.parse_or("write the number of the subdevice, from 0")?;
            }
            (Self::Pci { bar, .. }, "bar") => {
                let why = "a card has windows 0 to 5";
                *bar = value.parse_or(why)?;
                if *bar >= BARS {
                    return Err(value.wrong(why));
                }
            }
            (Self::Pci { output, .. }, "out") => *output = offset()?,
            (Self::Pci { input, .. }, "in") => *input = offset()?,
            _ => return Err(part.unknown(format!("there is no {key} here: write {}", self.hint()))),
        }
        Ok(())
    }

    /// Checks that all required options are given.
    fn check(&self, read: &Described<'_>) -> Result<(), DescriptionError> {
        let twice = |lines: &[u32]| lines.iter().enumerate().any(|(index, line)| lines[..index].contains(line));
        let example = read.example();
        match self {
            Self::Gpio { outputs, inputs, .. } if outputs.is_empty() && inputs.is_empty() => {
                Err(read.missing(format!("name the lines, as in {example}")))
            }
            Self::Gpio { outputs, inputs, .. } if twice(&[outputs.as_slice(), inputs].concat()) => {
                Err(read.whole().wrong("a line is named twice"))
            }
            Self::Pci { output: None, input: None, .. } => {
                Err(read.missing(format!("name a word for the outputs or the inputs, as in {example}")))
            }
            _ => Ok(()),
        }
    }
}

fn lines(value: Snippet<'_>) -> Result<Lines, DescriptionError> {
    value.read(grammar::number, "write 32 lines as a number, like 0x00000004").map(Lines)
}

fn offsets(value: Snippet<'_>) -> Result<Vec<u32>, DescriptionError> {
    let why = "write the numbers of at most 32 lines of the chip, like 3+4";
    let lines = value.read(grammar::numbers, why)?;
    if lines.len() <= u32::BITS as usize { Ok(lines) } else { Err(value.wrong(why)) }
}

impl fmt::Display for DeviceDescription {
    /// In the form that is read, with all given and all required options.
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
