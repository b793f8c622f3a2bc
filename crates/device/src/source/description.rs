//! [`Description`]: a source as written in a station file, `KIND:WHERE` and what is not the usual.
//!
//! ```text
//! timer:1ms                                every millisecond, by the kernel's timer
//! precise:1ms                              the same, polling the end of each wait
//! udp:0.0.0.0:5000    udp:239.0.0.1:5000   datagrams, to this host or to a group
//! fifo:/run/trigger                        lines written into a named pipe: echo 17 > /run/trigger
//! signal:/dev/shm/trigger                  a signal that some process fires, waited for asleep
//! poll:/dev/shm/trigger                    the same by polling
//! gpio:/dev/gpiochip0,line=3,edge=rising   edges of a line, stamped by the kernel
//! pps:/dev/pps0                            pulses of a clock, stamped by the kernel
//! parport:/dev/parport0                    interrupts of a parallel port
//! uio:/dev/uio0,card=0000:00:04.0          interrupts of a card
//! ```

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use hairspring_machine::{Machine, Nanos};
use hairspring_time::Timebase;

use super::interrupt::{Edge, Interrupt, Line};
use super::{Datagrams, EventSource, PERIOD_LEAST, Pps, PreciseTimer, Readable, Timer};
use crate::description::{DescriptionError, error};
use crate::device::DeviceError;
use crate::gpio::GpioEdges;
use crate::parport::Parport;
use crate::pci::PciInterrupt;
use crate::signal::{Poller, Signal, Sleeper};
use crate::stop::Stop;

/// A source that was described and not yet opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Description {
    /// [`Timer`].
    Timer(Nanos),
    /// [`PreciseTimer`].
    Precise(Nanos),
    /// [`Datagrams`].
    Udp(SocketAddr),
    /// [`Readable::fifo`].
    Fifo(PathBuf),
    /// [`Sleeper`].
    Signal(PathBuf),
    /// [`Poller`].
    Poll(PathBuf),
    /// [`Line::Gpio`].
    Gpio {
        /// The file of the chip.
        path: PathBuf,
        /// The chip's line.
        line: u32,
        /// Both directions if it is not said.
        edge: Option<Edge>,
    },
    /// [`Pps`].
    Pps(PathBuf),
    /// [`Line::Parport`].
    Parport(PathBuf),
    /// [`Line::Uio`].
    Uio {
        /// The file of its interrupt.
        path: PathBuf,
        /// The card, as `lspci -D` prints it.
        card: String,
    },
}

/// Every kind, with an example of each.
const KINDS: [(&str, &str); 10] = [
    ("timer", "timer:1ms"),
    ("precise", "precise:1ms"),
    ("udp", "udp:239.0.0.1:5000"),
    ("fifo", "fifo:/run/trigger"),
    ("signal", "signal:/dev/shm/trigger"),
    ("poll", "poll:/dev/shm/trigger"),
    ("gpio", "gpio:/dev/gpiochip0,line=3,edge=rising"),
    ("pps", "pps:/dev/pps0"),
    ("parport", "parport:/dev/parport0"),
    ("uio", "uio:/dev/uio0,card=0000:00:04.0"),
];

impl Description {
    /// Whether several who wait get every event, each through an opening of its own.
    pub fn reaches_all(&self) -> bool {
        match self {
            Self::Timer(_) | Self::Precise(_) | Self::Signal(_) | Self::Poll(_) | Self::Pps(_) => true,
            Self::Udp(address) => address.ip().is_multicast(),
            Self::Fifo(_) | Self::Gpio { .. } | Self::Parport(_) | Self::Uio { .. } => false,
        }
    }

    /// Opens the source, as its kind does.
    ///
    /// # Errors
    /// As there.
    pub fn open<'t, M: Machine + Send + Sync>(
        &self,
        timebase: &'t Timebase<M>,
        stop: &'t Stop,
    ) -> Result<Box<dyn EventSource + 't>, DeviceError> {
        let interrupt = |line| Box::new(Interrupt::new(line, &self.to_string(), timebase, stop));
        Ok(match self {
            Self::Timer(period) => Box::new(Timer::new(*period, timebase, stop)?),
            Self::Precise(period) => Box::new(PreciseTimer::new(*period, timebase, stop)?),
            Self::Udp(address) => Box::new(Datagrams::listen(*address, timebase, stop)?),
            Self::Fifo(path) => Box::new(Readable::fifo(path, timebase, stop)?),
            Self::Signal(path) => Box::new(Sleeper::new(Signal::open(path)?, timebase, stop)),
            Self::Poll(path) => Box::new(Poller::new(Signal::open(path)?, timebase, stop)?),
            Self::Gpio { path, line, edge } => interrupt(Line::Gpio(GpioEdges::watch(path, &[*line], 0)?, *edge)),
            Self::Pps(path) => Box::new(Pps::open(path, timebase, stop)?),
            Self::Parport(path) => interrupt(Line::Parport(Parport::listen(path)?)),
            Self::Uio { path, card } => interrupt(Line::Uio(PciInterrupt::open(path, card)?)),
        })
    }
}

impl FromStr for Description {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some((kind, example)) = KINDS.into_iter().find(|(known, _)| *known == name && text.contains(':')) else {
            let known = KINDS.map(|(known, _)| known).join(", ");
            return Err(error(text, format!("there is no such source; there are {known}: write timer:1ms")));
        };
        let mut parts = rest.split(',');
        let place = parts.next().filter(|place| !place.is_empty());
        let place = place.ok_or_else(|| error(text, format!("write what is behind the colon, as in {example}")))?;
        let (mut line, mut edge, mut card) = (None, None, None);
        for part in parts {
            match (kind, part.split_once('=')) {
                ("gpio", Some(("line", number))) => {
                    line = Some(number.parse().map_err(|_| error(part, "write the number of a line of the chip"))?);
                }
                ("gpio", Some(("edge", "rising"))) => edge = Some(Edge::Rising),
                ("gpio", Some(("edge", "falling"))) => edge = Some(Edge::Falling),
                ("gpio", Some(("edge", "both"))) => edge = None,
                ("uio", Some(("card", name))) if !name.is_empty() => card = Some(name.to_owned()),
                ("gpio" | "uio", _) => return Err(error(part, format!("write it as in {example}"))),
                _ => return Err(error(part, format!("nothing follows: write it as in {example}"))),
            }
        }
        let path = PathBuf::from(place);
        let period = || {
            let period = place.parse::<Nanos>().ok().filter(|period| *period >= PERIOD_LEAST);
            period.ok_or_else(|| error(text, format!("write a period of at least {PERIOD_LEAST}, as in {example}")))
        };
        let named = |what: &str| error(text, format!("name the {what}, as in {example}"));
        Ok(match kind {
            "timer" => Self::Timer(period()?),
            "precise" => Self::Precise(period()?),
            "udp" => Self::Udp(
                place.parse().map_err(|_| error(text, format!("write an address and a port, as in {example}")))?,
            ),
            "fifo" => Self::Fifo(path),
            "signal" => Self::Signal(path),
            "poll" => Self::Poll(path),
            "gpio" => Self::Gpio { path, line: line.ok_or_else(|| named("line"))?, edge },
            "pps" => Self::Pps(path),
            "parport" => Self::Parport(path),
            _ => Self::Uio { path, card: card.ok_or_else(|| named("card"))? },
        })
    }
}

/// A period in the largest unit that leaves a whole number.
fn written(period: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    let whole = units.into_iter().find(|(nanos, _)| period.count() % nanos == 0);
    whole.map_or_else(String::new, |(nanos, unit)| format!("{}{unit}", period.count() / nanos))
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timer(period) => write!(f, "timer:{}", written(*period)),
            Self::Precise(period) => write!(f, "precise:{}", written(*period)),
            Self::Udp(address) => write!(f, "udp:{address}"),
            Self::Fifo(path) => write!(f, "fifo:{}", path.display()),
            Self::Signal(path) => write!(f, "signal:{}", path.display()),
            Self::Poll(path) => write!(f, "poll:{}", path.display()),
            Self::Pps(path) => write!(f, "pps:{}", path.display()),
            Self::Parport(path) => write!(f, "parport:{}", path.display()),
            Self::Uio { path, card } => write!(f, "uio:{},card={card}", path.display()),
            Self::Gpio { path, line, edge } => {
                write!(f, "gpio:{},line={line}", path.display())?;
                match edge {
                    Some(Edge::Rising) => f.write_str(",edge=rising"),
                    Some(Edge::Falling) => f.write_str(",edge=falling"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_read_and_printed_so_that_it_is_read_again() {
        for (kind, example) in KINDS {
            let described: Description = example.parse().unwrap_or_else(|error| panic!("{example}: {error}"));
            let printed = described.to_string();
            assert!(printed.starts_with(kind), "{printed}");
            assert_eq!(printed, example);
            assert_eq!(printed.parse(), Ok(described));
        }
        assert_eq!("timer:1ms".parse(), Ok(Description::Timer(Nanos::from_millis(1))));
        assert_eq!("udp:[::1]:80".parse::<Description>().map(|udp| udp.reaches_all()), Ok(false));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_to_write() {
        for (text, hint) in [
            ("tick", "there is no such source"),
            ("tick:1ms", "timer, precise, udp"),
            ("timer:", "as in timer:1ms"),
            ("timer:fast", "a period"),
            ("timer:1us", "at least"),
            ("timer:-1ms", "at least"),
            ("timer:1ms,2", "nothing follows"),
            ("udp:5000", "an address and a port"),
            ("udp:localhost", "an address and a port"),
            ("gpio:/dev/gpiochip0", "name the line"),
            ("gpio:/dev/gpiochip0,line=x", "number of a line"),
            ("gpio:/dev/gpiochip0,line=1,edge=up", "edge=rising"),
            ("uio:/dev/uio0", "name the card"),
            ("uio:/dev/uio0,card=", "as in uio:"),
        ] {
            let error = text.parse::<Description>().expect_err(text).to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}
