//! The arguments of the commands about devices.

use std::path::PathBuf;

use clap::Args;
use hairspring_device::Description;
use hairspring_device::instrument::Address;
use hairspring_time::Nanos;

use crate::arguments::parsed;
use crate::arguments::{Plain, duration};

#[derive(Args, Debug)]
pub(crate) struct PulseArguments {
    /// How long the line is up at least, for instance 10us
    #[arg(value_name = "WIDTH", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) width: Nanos,
    /// The device, for instance parport:/dev/parport0 or virtual:/dev/shm/board,write=1.25us; drivers: virtual, parport, gpio,
    /// serial, comedi, pci. It is initialised; a virtual board is made if it is not there
    #[arg(long, value_name = "DEVICE", value_parser = parsed::<Description>)]
    pub(crate) device: Description,
    /// The line, 0 to 31
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..32))]
    pub(crate) line: u32,
    /// How many pulses
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(crate) count: u64,
    /// From the beginning of one to that of the next [default: ten widths, at least 100 us]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) period: Option<Nanos>,
    /// Draw the pulses over each other into this file (.svg)
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Run under SCHED_FIFO with this priority, 1 to 99
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) priority: Option<u8>,
    /// Stay on this CPU
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) cpu: Option<u32>,
    /// The format
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ScopeArguments {
    /// The virtual board to watch; it is made if it is not there
    #[arg(long, value_name = "DEVICE", value_parser = parsed::<Description>)]
    pub(crate) device: Description,
    /// How long; Ctrl-C ends it earlier
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, default_value = "1s", allow_hyphen_values = true)]
    pub(crate) length: Nanos,
    /// Edges that there is room for
    #[arg(long, value_name = "N", default_value_t = 100_000, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub(crate) edges: u32,
    /// Watch from this CPU, which is busy with it all the time
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) cpu: Option<u32>,
    /// Write what was seen to this file, as a value change dump (.vcd) or as pulses drawn over each other (.svg)
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Mark these widths in the drawing, at most 4; what is shorter than the first is told apart
    #[arg(long, value_name = "DURATION", value_parser = duration, value_delimiter = ',', requires = "out")]
    pub(crate) marker: Vec<Nanos>,
    /// The format
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

#[derive(Args, Debug)]
pub(crate) struct ServeArguments {
    /// The file that describes the front end: its sources, devices and units
    #[arg(value_name = "STATION.toml")]
    pub(crate) station: PathBuf,
    /// How long [default: until Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) length: Option<Nanos>,
    /// Say how the file is understood, with everything that it does not say, and end
    #[arg(long)]
    pub(crate) check: bool,
    /// Do not show how it stands
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The format
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ExposeArguments {
    /// How long the shutter is open at least, for instance 10s
    #[arg(value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) time: Nanos,
    /// The shutter's device, for instance virtual:/dev/shm/board; it is initialised, and made if it is not there
    #[arg(long, value_name = "DEVICE", value_parser = parsed::<Description>)]
    pub(crate) device: Description,
    /// The shutter's line, 0 to 31; closed is its safe state, open the opposite
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(0..32))]
    pub(crate) line: u32,
    /// Read this instrument when half the time is over: tcp:HOST:PORT, serial:DEVICE,baud=N or usbtmc:DEVICE
    #[arg(long, value_name = "INSTRUMENT", value_parser = parsed::<Address>)]
    pub(crate) instrument: Option<Address>,
    /// What to ask it
    #[arg(long, value_name = "LINE", default_value = "MEAS:VOLT?", requires = "instrument")]
    pub(crate) query: String,
    /// How long to wait for its answer [default: until 5 ms before the shutter has to close, or half of what is left then]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true, requires = "instrument")]
    pub(crate) timeout: Option<Nanos>,
    /// How many exposures
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) count: u32,
    /// From the beginning of one to that of the next [default: each begins when the one before has ended]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) period: Option<Nanos>,
    /// Run under SCHED_FIFO with this priority, 1 to 99
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) priority: Option<u8>,
    /// Stay on this CPU
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) cpu: Option<u32>,
    /// The format
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}
