//! Where a recording is played to, as written on the command line.

use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::str::FromStr;

use hairspring_stream::sink::{Null, Output, Sink, Unclocked, VirtualOutput, Writer};
use hairspring_stream::{Bytes, Layout, SampleRate};

use crate::exit::Failure;

/// The hardware FIFO of an output with a clock unless it names one.
const FIFO: Bytes = Bytes::mib(4);

/// Where to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// Nowhere.
    Null,
    /// A new file.
    File(PathBuf),
    /// The standard output.
    Stdout,
    /// A converter with a clock and a FIFO.
    Virtual(Bytes),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("null", "") => Ok(Self::Null),
            ("stdout", "") => Ok(Self::Stdout),
            ("virtual", "") => Ok(Self::Virtual(FIFO)),
            ("file", path) if !path.is_empty() => Ok(Self::File(path.into())),
            ("virtual", parts) => match parts.strip_prefix("fifo=").map(str::parse) {
                Some(Ok(fifo)) => Ok(Self::Virtual(fifo)),
                Some(Err(error)) => Err(format!("{error}")),
                None => Err(format!("'{parts}': a virtual output has a FIFO only: write virtual:fifo=4MiB")),
            },
            _ => Err("no such output: write null, file:PATH, stdout, virtual or virtual:fifo=4MiB".to_owned()),
        }
    }
}

impl Target {
    /// Opens it: with a clock of this rate, or as fast as it takes what comes.
    pub(crate) fn open(&self, layout: Layout, rate: Option<SampleRate>) -> Result<Box<dyn Sink>, Failure> {
        Ok(match self {
            Self::Null | Self::Virtual(_) => self.paced(Null, layout, rate),
            Self::Stdout => self.paced(Writer::new(std::io::stdout(), layout, "stdout"), layout, rate),
            Self::File(path) => {
                let shown = path.display();
                let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
                    Failure::bad_request(match error.kind() {
                        ErrorKind::AlreadyExists => {
                            format!("{shown} exists already: it is not overwritten, choose another name")
                        }
                        _ => format!("cannot write {shown}: {error}; choose another file"),
                    })
                })?;
                self.paced(Writer::new(file, layout, shown.to_string()), layout, rate)
            }
        })
    }

    fn paced<O: Output + 'static>(&self, output: O, layout: Layout, rate: Option<SampleRate>) -> Box<dyn Sink> {
        match (rate, self) {
            (Some(rate), Self::Virtual(fifo)) => Box::new(VirtualOutput::new(output, layout, rate, *fifo)),
            (Some(rate), _) => Box::new(VirtualOutput::new(output, layout, rate, FIFO)),
            (None, _) => Box::new(Unclocked::new(output)),
        }
    }
}

/// How many times as fast, as an exact fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speed(u64, u64);

impl Speed {
    /// This rate so many times as fast; none if that is no possible rate.
    pub(crate) fn of(self, rate: SampleRate) -> Option<SampleRate> {
        let (frames, seconds) = rate.as_fraction();
        SampleRate::new(frames.checked_mul(self.0)?, seconds.checked_mul(self.1)?)
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is no speed: write 0.5 for half, 2 for twice as fast");
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let below = 10_u64.checked_pow(u32::try_from(decimals.len()).map_err(|_| wrong())?).ok_or_else(wrong)?;
        match format!("{whole}{decimals}").parse() {
            Ok(above @ 1..) => Ok(Self(above, below)),
            _ => Err(wrong()),
        }
    }
}

/// How often: a number, or for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds(pub(crate) Option<u64>);

impl FromStr for Rounds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("forever", _) => Ok(Self(None)),
            (_, Ok(rounds @ 1..)) => Ok(Self(Some(rounds))),
            _ => Err("write how often, 1 or more, or forever".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_and_speeds_are_read_as_they_are_written() {
        assert_eq!("virtual".parse(), Ok(Target::Virtual(FIFO)));
        assert_eq!("virtual:fifo=1MiB".parse(), Ok(Target::Virtual(Bytes::mib(1))));
        assert_eq!("file:/a:b".parse(), Ok(Target::File("/a:b".into())));
        for wrong in ["", "nul", "null:x", "file:", "virtual:fifo=1M", "virtual:x"] {
            assert!(wrong.parse::<Target>().is_err(), "{wrong}");
        }
        let rate = SampleRate::hz(3).expect("possible");
        assert_eq!("0.5".parse::<Speed>().expect("a speed").of(rate), SampleRate::new(3, 2));
        for wrong in ["", "0", "0.0", "-1", "x", "1e3", "."] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
        assert_eq!(["1".parse(), "forever".parse()], [Ok(Rounds(Some(1))), Ok(Rounds(None))]);
        assert!("0".parse::<Rounds>().is_err());
    }
}
