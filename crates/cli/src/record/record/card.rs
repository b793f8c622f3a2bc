//! [`AnyCard`]: a source to record: a card, a sound card, or the analogue inputs of a comedi device.

use std::fmt;
use std::str::FromStr;

use hairspring_describe::DescriptionError;
use hairspring_device::{AnalogCard, DeviceError};
use hairspring_ring::OnOverrun;
use hairspring_ring::{Frames, Layout, SampleRate};
use hairspring_source::Source;
use hairspring_source::card::{Card, CardError, CardKind};
use hairspring_source::sound::SoundCard;

use crate::exit::Failure;

/// A described source, not open yet.
#[derive(Clone, Debug)]
pub(crate) enum AnyCard {
    Stream(Card),
    Analog(AnalogCard),
    Sound(SoundCard),
}

impl AnyCard {
    /// Checks that the card allows this policy for a full buffer.
    pub(crate) fn accepts(&self, on_overrun: OnOverrun) -> Result<(), CardError> {
        match self {
            Self::Stream(card) => card.accepts(on_overrun),
            Self::Analog(_) | Self::Sound(_) if on_overrun == OnOverrun::Block => Err(CardError::Policy(on_overrun)),
            Self::Analog(_) | Self::Sound(_) => Ok(()),
        }
    }

    pub(crate) fn layout(&self) -> Layout {
        match self {
            Self::Stream(card) => card.layout(),
            Self::Analog(card) => card.layout(),
            Self::Sound(card) => card.layout(),
        }
    }

    /// Frames per second, if the description states them.
    pub(crate) fn rate(&self) -> Option<SampleRate> {
        match self {
            Self::Stream(card) => card.rate(),
            Self::Analog(card) => Some(card.rate()),
            Self::Sound(card) => Some(card.rate()),
        }
    }

    /// The number of frames after which the card ends, if the description states one.
    pub(crate) fn frames(&self) -> Option<Frames> {
        match self {
            Self::Stream(card) => card.frames(),
            Self::Analog(card) => card.frames(),
            Self::Sound(card) => card.frames(),
        }
    }

    pub(crate) fn open(&self, limit: Option<Frames>) -> Result<Box<dyn Source>, Failure> {
        let refused = |error: DeviceError| Failure::bad_request(format!("failed to open {self}: {error}"));
        match self {
            Self::Stream(card) => card.open(limit).map_err(|error| card_refused(self, &error)),
            Self::Analog(card) => Ok(Box::new(card.open(limit).map_err(refused)?)),
            Self::Sound(card) => Ok(Box::new(card.open(limit).map_err(|error| card_refused(self, &error))?)),
        }
    }
}

fn card_refused(card: &AnyCard, error: &CardError) -> Failure {
    match error {
        CardError::Open { .. } => Failure::bad_request(format!("failed to open {card}: {error}")),
        error => Failure::bad_request(error.to_string()),
    }
}

/// The help of `--card`, with the options of each card. Cards with the same options are grouped.
pub(super) fn help(first: &str) -> String {
    let mut groups: Vec<(Vec<&str>, String)> = Vec::new();
    let streams = CardKind::ALL.map(|kind| (kind.name(), kind.options().collect::<Vec<_>>().join(", ")));
    for (name, options) in streams
        .into_iter()
        .chain([(AnalogCard::NAME, AnalogCard::OPTIONS.join(", ")), (SoundCard::NAME, SoundCard::OPTIONS.join(", "))])
    {
        match groups.iter_mut().find(|(_, known)| *known == options) {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], options)),
        }
    }
    let groups = groups.iter().map(|(names, options)| format!("{}: {options}", names.join(", ")));
    let first = format!("{first} Options follow the form, each after a comma:");
    [first].into_iter().chain(groups).collect::<Vec<_>>().join("\n\n")
}

impl FromStr for AnyCard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if AnalogCard::is_named_in(text) {
            return text.parse().map(Self::Analog).map_err(|error: DescriptionError| error.to_string());
        }
        if SoundCard::is_named_in(text) {
            return text.parse().map(Self::Sound).map_err(|error: DescriptionError| error.to_string());
        }
        text.parse().map(Self::Stream).map_err(|error| match error {
            CardError::Text(error) if !Card::is_named_in(text) => {
                error.also("or comedi:/dev/comedi0,2ch,10kS/s, or alsa:hw:0,0,2ch,16bit,48kS/s").to_string()
            }
            error => error.to_string(),
        })
    }
}

impl fmt::Display for AnyCard {
    /// In the form that `from_str` reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(card) => card.fmt(f),
            Self::Analog(card) => card.fmt(f),
            Self::Sound(card) => card.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_that_the_help_names_is_understood() {
        for kind in CardKind::ALL {
            for option in kind.options() {
                let place = match kind {
                    CardKind::File | CardKind::Pipe => "/tmp/x,",
                    CardKind::Tcp | CardKind::TcpListen | CardKind::Udp => "localhost:5000,",
                    CardKind::Virtual | CardKind::Unpaced | CardKind::Stdin => "",
                };
                let rate = if kind == CardKind::Virtual { ",1MS/s" } else { "" };
                let data = if option.starts_with("seed") { ",data=noise" } else { "" };
                let text = format!("{}:{place}1ch,16bit{rate}{data},{option}", kind.name());
                assert_eq!(text.parse::<AnyCard>().map(|_| ()), Ok(()), "{text}");
            }
        }
        let all = format!("comedi:/dev/comedi0,2ch,10kS/s,{}", AnalogCard::OPTIONS.join(","));
        assert_eq!(all.parse::<AnyCard>().map(|_| ()), Ok(()), "{all}");
        let all = format!("alsa:hw:0,0,2ch,16bit,48kS/s,{}", SoundCard::OPTIONS.join(","));
        assert_eq!(all.parse::<AnyCard>().map(|_| ()), Ok(()), "{all}");
    }
}
