//! [`Target`]: the output of `hairspring play`, as written on the command line.

use std::fmt;
use std::fs::OpenOptions;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::str::FromStr;

use hairspring_describe::{Catalogue, DescriptionError, PlaceForm, Syntax};
use hairspring_play::sink::{Null, Output, Sink, SoundOutput, Unclocked, VirtualOutput, Writer};
use hairspring_ring::{Bytes, Layout, SampleRate};
use hairspring_source::sound::SoundCard;

use crate::exit::Failure;

/// Default FIFO of an output with a clock.
const FIFO: Bytes = Bytes::mib(4);

/// An output.
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
    /// A sound card, as it was written; its form and rate are those of the recording.
    Sound(String),
}

/// Every kind of output, with an example of each.
const OUTPUTS: Catalogue = Catalogue {
    noun: "output",
    syntaxes: &[
        Syntax { kind: "file", place: PlaceForm::Rest, example: "file:/tmp/samples" },
        Syntax { kind: "null", place: PlaceForm::Absent, example: "null" },
        Syntax { kind: "stdout", place: PlaceForm::Absent, example: "stdout" },
        Syntax { kind: "virtual", place: PlaceForm::Absent, example: "virtual:fifo=4MiB" },
        Syntax { kind: SoundCard::NAME, place: PlaceForm::Rest, example: "alsa:hw:0,0" },
    ],
};

impl FromStr for Target {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let read = OUTPUTS.read(text)?;
        if read.kind() == SoundCard::NAME {
            // Any recording: whether a card can play it is checked when it is opened.
            let (layout, rate) = (Layout::analogue(1, 16).ok(), SampleRate::hz(48_000));
            if let (Some(layout), Some(rate)) = (layout, rate) {
                SoundCard::for_output(text, layout, rate)?;
            }
            return Ok(Self::Sound(text.trim().to_owned()));
        }
        if read.kind() == "virtual" {
            let mut fifo = FIFO;
            for part in read.parts() {
                match part.key() {
                    Some("fifo") => fifo = part.value().parse()?,
                    _ => return Err(part.unknown("a virtual output has no option but fifo: write virtual:fifo=4MiB")),
                }
            }
            return Ok(Self::Virtual(fifo));
        }
        read.no_parts()?;
        Ok(match read.kind() {
            "file" => Self::File(read.place()?.text().into()),
            "stdout" => Self::Stdout,
            _ => Self::Null,
        })
    }
}

impl fmt::Display for Target {
    /// In the form that `from_str` reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Stdout => f.write_str("stdout"),
            Self::Virtual(fifo) => write!(f, "virtual:fifo={}B", fifo.0),
            Self::Sound(text) => f.write_str(text),
        }
    }
}

impl Target {
    /// Opens the output: with a clock of this rate, or without one, to play as fast as it takes data.
    pub(crate) fn open(&self, layout: Layout, rate: Option<SampleRate>) -> Result<Box<dyn Sink>, Failure> {
        Ok(match self {
            Self::Sound(text) => {
                let rate =
                    rate.ok_or_else(|| Failure::bad_request("a sound card needs a rate: write --rate 48kS/s"))?;
                let card = SoundCard::for_output(text, layout, rate);
                let card = card.map_err(|error| Failure::bad_request(error.to_string()))?;
                let refused = |error| Failure::bad_request(format!("failed to open {card}: {error}"));
                let (pcm, hardware) = card.open_output().map_err(refused)?;
                Box::new(SoundOutput::new(pcm, layout, hardware))
            }
            Self::Null | Self::Virtual(_) => self.paced(Null, layout, rate),
            Self::Stdout => self.paced(Writer::new(std::io::stdout(), layout, "stdout"), layout, rate),
            Self::File(path) => {
                let shown = path.display();
                let file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|error| {
                    Failure::bad_request(match error.kind() {
                        ErrorKind::AlreadyExists => {
                            format!("{shown} exists already and is never overwritten: choose another name")
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

/// A multiple of the recorded rate, as an exact fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speed(u64, u64);

impl Speed {
    /// The multiple of a rate; none if the result is out of range.
    pub(crate) fn of(self, rate: SampleRate) -> Option<SampleRate> {
        let (frames, seconds) = rate.as_fraction();
        SampleRate::new(frames.checked_mul(self.0)?, seconds.checked_mul(self.1)?)
    }
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a factor: write 0.5 for half, 2 for twice as fast");
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let below = 10_u64.checked_pow(u32::try_from(decimals.len()).map_err(|_| wrong())?).ok_or_else(wrong)?;
        match format!("{whole}{decimals}").parse() {
            Ok(above @ 1..) => Ok(Self(above, below)),
            _ => Err(wrong()),
        }
    }
}

/// Number of rounds, or forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds(pub(crate) Option<u64>);

impl FromStr for Rounds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("forever", _) => Ok(Self(None)),
            (_, Ok(rounds @ 1..)) => Ok(Self(Some(rounds))),
            _ => Err("write a number from 1 on, or forever".to_owned()),
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
        assert_eq!("file:/a:b,c=d".parse(), Ok(Target::File("/a:b,c=d".into())));
        for text in ["null", "stdout", "file:/a:b,c=d", "virtual:fifo=12345B", "alsa:hw:0,0", "alsa:hw:PCH,0,period=64"]
        {
            assert_eq!(text.parse::<Target>().map(|target| target.to_string()), Ok(text.to_owned()));
        }
        for wrong in ["", "nul", "null:x", "file:", "virtual:fifo=1M", "virtual:x", "alsa:default", "alsa:hw:0"] {
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
