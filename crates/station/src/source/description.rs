//! [`EventSourceDescription`]: a source as written in a station file: `KIND:WHERE` and the options that differ from the
//! defaults.
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

use hairspring_describe::{Catalogue, DescriptionError, PlaceForm, Snippet, Syntax, exact_span};
use hairspring_device::{DeviceError, GpioEdges, Parport, PciInterrupt};
use hairspring_machine::{Machine, Nanos};
use hairspring_time::Timebase;

use super::interrupt::{EdgeDirection, InterruptLine, Interrupts};
use super::{Datagrams, EventSource, PERIOD_LEAST, Pps, PreciseTimer, Readable, Timer};
use crate::signal::{Poller, Signal, Sleeper};
use crate::stop::Stop;

/// A source that was described and not yet opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventSourceDescription {
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
    /// [`InterruptLine::Gpio`].
    Gpio {
        /// The file of the chip.
        path: PathBuf,
        /// The chip's line.
        line: u32,
        /// Both directions if `None`.
        edge: Option<EdgeDirection>,
    },
    /// [`Pps`].
    Pps(PathBuf),
    /// [`InterruptLine::Parport`].
    Parport(PathBuf),
    /// [`InterruptLine::Uio`].
    Uio {
        /// The file of its interrupt.
        path: PathBuf,
        /// The card, as `lspci -D` prints it.
        card: String,
    },
}

const fn source(kind: &'static str, example: &'static str) -> Syntax {
    Syntax { kind, place: PlaceForm::UpToComma, example }
}

/// Every kind, with an example of each.
const SOURCES: Catalogue = Catalogue {
    noun: "source",
    syntaxes: &[
        source("timer", "timer:1ms"),
        source("precise", "precise:1ms"),
        source("udp", "udp:239.0.0.1:5000"),
        source("fifo", "fifo:/run/trigger"),
        source("signal", "signal:/dev/shm/trigger"),
        source("poll", "poll:/dev/shm/trigger"),
        source("gpio", "gpio:/dev/gpiochip0,line=3,edge=rising"),
        source("pps", "pps:/dev/pps0"),
        source("parport", "parport:/dev/parport0"),
        source("uio", "uio:/dev/uio0,card=0000:00:04.0"),
    ],
};

impl EventSourceDescription {
    /// Whether several who wait get every event, each through an opening of its own.
    pub(crate) fn reaches_all(&self) -> bool {
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
    ) -> Result<Box<dyn EventSource<M> + 't>, DeviceError> {
        let interrupt = |line| Box::new(Interrupts::new(line, &self.to_string(), timebase, stop));
        Ok(match self {
            Self::Timer(period) => Box::new(Timer::new(*period, timebase, stop)?),
            Self::Precise(period) => Box::new(PreciseTimer::new(*period, timebase, stop)?),
            Self::Udp(address) => Box::new(Datagrams::listen(*address, timebase, stop)?),
            Self::Fifo(path) => Box::new(Readable::fifo(path, timebase, stop)?),
            Self::Signal(path) => Box::new(Sleeper::new(Signal::open(path)?, timebase, stop)),
            Self::Poll(path) => Box::new(Poller::new(Signal::open(path)?, timebase, stop)?),
            Self::Gpio { path, line, edge } => {
                interrupt(InterruptLine::Gpio(GpioEdges::watch(path, &[*line], 0)?, *edge))
            }
            Self::Pps(path) => Box::new(Pps::open(path, timebase, stop)?),
            Self::Parport(path) => interrupt(InterruptLine::Parport(Parport::listen(path)?)),
            Self::Uio { path, card } => interrupt(InterruptLine::Uio(PciInterrupt::open(path, card)?)),
        })
    }
}

impl FromStr for EventSourceDescription {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let read = SOURCES.read(text)?;
        let (place, example) = (read.place()?, read.example());
        if !matches!(read.kind(), "gpio" | "uio") {
            read.no_parts()?;
        }
        let path = PathBuf::from(place.text());
        let missing = |what: &str| read.missing(format!("name the {what}, as in {example}"));
        Ok(match read.kind() {
            "timer" => Self::Timer(period(place, example)?),
            "precise" => Self::Precise(period(place, example)?),
            "udp" => Self::Udp(place.parse_or(format!("write an address and a port, as in {example}"))?),
            "fifo" => Self::Fifo(path),
            "signal" => Self::Signal(path),
            "poll" => Self::Poll(path),
            "gpio" => {
                let (mut line, mut edge) = (None, None);
                for part in read.parts() {
                    match (part.key(), part.value().text()) {
                        (Some("line"), _) => {
                            line = Some(part.value().parse_or("write the number of a line of the chip")?);
                        }
                        (Some("edge"), "rising") => edge = Some(EdgeDirection::Rising),
                        (Some("edge"), "falling") => edge = Some(EdgeDirection::Falling),
                        (Some("edge"), "both") => edge = None,
                        (Some("edge"), _) => {
                            return Err(part.value().wrong("write edge=rising, edge=falling or edge=both"));
                        }
                        _ => return Err(part.unknown(format!("write it as in {example}"))),
                    }
                }
                Self::Gpio { path, line: line.ok_or_else(|| missing("line"))?, edge }
            }
            "pps" => Self::Pps(path),
            "parport" => Self::Parport(path),
            _ => {
                let mut card = None;
                for part in read.parts() {
                    match (part.key(), part.value().text()) {
                        (Some("card"), name) if !name.is_empty() => card = Some(name.to_owned()),
                        _ => return Err(part.unknown(format!("write it as in {example}"))),
                    }
                }
                Self::Uio { path, card: card.ok_or_else(|| missing("card"))? }
            }
        })
    }
}

fn period(place: Snippet<'_>, example: &str) -> Result<Nanos, DescriptionError> {
    let why = format!("write a period of at least {PERIOD_LEAST}, as in {example}");
    let period: Nanos = place.parse_or(why.as_str())?;
    if period >= PERIOD_LEAST { Ok(period) } else { Err(place.wrong(why)) }
}

impl fmt::Display for EventSourceDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timer(period) => write!(f, "timer:{}", exact_span(period.count())),
            Self::Precise(period) => write!(f, "precise:{}", exact_span(period.count())),
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
                    Some(EdgeDirection::Rising) => f.write_str(",edge=rising"),
                    Some(EdgeDirection::Falling) => f.write_str(",edge=falling"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_example_is_read_and_printed_so_that_it_is_read_again() {
        for Syntax { kind, example, .. } in SOURCES.syntaxes {
            let described: EventSourceDescription =
                example.parse().unwrap_or_else(|error| panic!("{example}: {error}"));
            let printed = described.to_string();
            assert!(printed.starts_with(kind), "{printed}");
            assert_eq!(printed, *example);
            assert_eq!(printed.parse(), Ok(described));
        }
        assert_eq!("timer:1ms".parse(), Ok(EventSourceDescription::Timer(Nanos::from_millis(1))));
        assert_eq!("udp:[::1]:80".parse::<EventSourceDescription>().map(|udp| udp.reaches_all()), Ok(false));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_to_write() {
        for (text, hint) in [
            ("tick", "there is no such source"),
            ("tick:1ms", "choose timer, precise, udp"),
            ("timer:", "as in timer:1ms"),
            ("timer:fast", "a period"),
            ("timer:1us", "at least"),
            ("timer:-1ms", "at least"),
            ("timer:1ms,2", "nothing follows"),
            ("udp:5000", "an address and a port"),
            ("udp:localhost", "an address and a port"),
            ("gpio:/dev/gpiochip0", "name the line"),
            ("gpio:/dev/gpiochip0,line=x", "number of a line"),
            ("gpio:/dev/gpiochip0,line=1,edge=up", "write edge=rising"),
            ("uio:/dev/uio0", "name the card"),
            ("uio:/dev/uio0,card=", "as in uio:"),
        ] {
            let error = text.parse::<EventSourceDescription>().expect_err(text).to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    fn any_source() -> impl Strategy<Value = EventSourceDescription> {
        let path = || prop_oneof![Just("/dev/shm/a trigger"), Just("/dev/pps0")].prop_map(PathBuf::from);
        let period = || (PERIOD_LEAST.count()..=i64::MAX / 2).prop_map(Nanos::new);
        let edge = prop_oneof![Just(None), Just(Some(EdgeDirection::Rising)), Just(Some(EdgeDirection::Falling))];
        prop_oneof![
            period().prop_map(EventSourceDescription::Timer),
            period().prop_map(EventSourceDescription::Precise),
            (any::<std::net::Ipv4Addr>(), any::<u16>()).prop_map(|at| EventSourceDescription::Udp(at.into())),
            (any::<std::net::Ipv6Addr>(), any::<u16>()).prop_map(|at| EventSourceDescription::Udp(at.into())),
            path().prop_map(EventSourceDescription::Fifo),
            path().prop_map(EventSourceDescription::Signal),
            path().prop_map(EventSourceDescription::Poll),
            (path(), any::<u32>(), edge).prop_map(|(path, line, edge)| EventSourceDescription::Gpio {
                path,
                line,
                edge
            }),
            path().prop_map(EventSourceDescription::Pps),
            path().prop_map(EventSourceDescription::Parport),
            (path(), "[0-9a-f:.]{1,12}").prop_map(|(path, card)| EventSourceDescription::Uio { path, card }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_again(source in any_source()) {
            prop_assert_eq!(source.to_string().parse(), Ok(source));
        }

        #[test]
        fn no_text_makes_it_panic(text in "(timer:|udp:|gpio:|uio:|fifo:|pps:)?[a-z/,=0-9.:µ -]{0,40}") {
            if let Ok(source) = text.parse::<EventSourceDescription>() {
                prop_assert_eq!(source.to_string().parse(), Ok(source));
            }
        }
    }
}
