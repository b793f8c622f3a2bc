//! [`AnyCard`]: what can be recorded: a card of the stream crate, or the analogue inputs of one behind the kernel's comedi.

use std::fmt;
use std::str::FromStr;

use hairspring_device::{AnalogCard, DeviceError};
use hairspring_stream::card::{Card, CardError};
use hairspring_stream::source::OnOverrun;
use hairspring_stream::{Frames, Layout, SampleRate, Source};

use crate::exit::Failure;

/// A source that was described and not yet opened.
#[derive(Clone, Debug)]
pub(crate) enum AnyCard {
    Stream(Card),
    Analog(AnalogCard),
}

impl AnyCard {
    /// Whether data that do not fit can be treated in this way.
    pub(crate) fn accepts(&self, on_overrun: OnOverrun) -> Result<(), CardError> {
        match self {
            Self::Stream(card) => card.accepts(on_overrun),
            Self::Analog(_) if on_overrun == OnOverrun::Block => Err(CardError::Policy(on_overrun)),
            Self::Analog(_) => Ok(()),
        }
    }

    pub(crate) fn layout(&self) -> Layout {
        match self {
            Self::Stream(card) => card.layout(),
            Self::Analog(card) => card.layout(),
        }
    }

    /// Frames per second, if it says.
    pub(crate) fn rate(&self) -> Option<SampleRate> {
        match self {
            Self::Stream(card) => card.rate(),
            Self::Analog(card) => Some(card.rate()),
        }
    }

    /// Frames after which it ends, if it says.
    pub(crate) fn frames(&self) -> Option<Frames> {
        match self {
            Self::Stream(card) => card.frames(),
            Self::Analog(card) => card.frames(),
        }
    }

    pub(crate) fn open(&self, limit: Option<Frames>) -> Result<Box<dyn Source>, Failure> {
        let refused = |error: DeviceError| Failure::bad_request(format!("failed to open {self}: {error}"));
        match self {
            Self::Stream(card) => card.open(limit).map_err(|error| match error {
                CardError::Open { .. } => Failure::bad_request(format!("failed to open {card}: {error}")),
                error => Failure::bad_request(error.to_string()),
            }),
            Self::Analog(card) => Ok(Box::new(card.open(limit).map_err(refused)?)),
        }
    }
}

impl FromStr for AnyCard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.split(':').next().unwrap_or_default().trim();
        if name == AnalogCard::NAME {
            return text
                .parse()
                .map(Self::Analog)
                .map_err(|error: hairspring_device::description::DescriptionError| error.to_string());
        }
        let is_known = hairspring_stream::card::Kind::ALL.iter().any(|kind| kind.name() == name);
        text.parse().map(Self::Stream).map_err(|error: CardError| match is_known {
            true => error.to_string(),
            false => format!("{error}, or comedi:/dev/comedi0,2ch,10kS/s"),
        })
    }
}

impl fmt::Display for AnyCard {
    /// As it is read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(card) => card.fmt(f),
            Self::Analog(card) => card.fmt(f),
        }
    }
}
