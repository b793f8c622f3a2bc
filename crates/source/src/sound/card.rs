//! [`SoundCard`]: a stream of a sound card as written on a command line.
//!
//! ```text
//! alsa:hw:0,0,2ch,16bit,48kS/s                    card 0, device 0
//! alsa:hw:PCH,0,2ch,32bit,96kS/s                  the card with this id (/proc/asound/cards)
//! alsa:hw:Loopback,1,3,8ch,float,48kS/s           its device 1, subdevice 3
//! alsa:hw:0,0,2ch,16bit,48kS/s,period=64,buffer=128,frames=48000
//! ```
//!
//! Only `hw:`: what other programs call `default` is a mixer that resamples: its counts and stamps are not those of a
//! converter.

use std::fmt;
use std::str::FromStr;

use hairspring_describe::{Catalogue, DescriptionError, Part, PlaceForm, Snippet, Syntax};
use hairspring_ring::layout::{Container, Layout};
use hairspring_ring::units::{Frames, SampleRate};

use super::setup::{PcmForm, PcmWish};

/// An example of a sound card.
pub(super) const EXAMPLE: &str = "alsa:hw:0,0,2ch,16bit,48kS/s";
const CARDS: Catalogue = Catalogue {
    noun: "sound card",
    syntaxes: &[Syntax { kind: SoundCard::NAME, place: PlaceForm::UpToComma, example: EXAMPLE }],
};
/// The largest period or buffer that can be written; no card has more.
const MOST_FRAMES: u32 = 1 << 28;
/// The highest rate; no sound card has more than 768 kS/s.
const MOST_RATE_HZ: f64 = 4e6;

/// Address of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SoundPlace {
    /// The number or the id of the card.
    pub(super) card: String,
    pub(super) device: u32,
    pub(super) subdevice: Option<u32>,
}

impl fmt::Display for SoundPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hw:{},{}", self.card, self.device)?;
        self.subdevice.map_or(Ok(()), |subdevice| write!(f, ",{subdevice}"))
    }
}

/// A described stream of a sound card, not open yet. It records, or plays.
#[derive(Clone, Debug, PartialEq)]
pub struct SoundCard {
    pub(super) place: SoundPlace,
    pub(super) wish: PcmWish,
    layout: Layout,
    rate: SampleRate,
    frames: Option<Frames>,
    /// The original text.
    text: String,
}

impl SoundCard {
    /// Kind of card: the text before the colon of a description.
    pub const NAME: &'static str = "alsa";
    /// Example options, which follow channels, form and rate.
    pub const OPTIONS: [&'static str; 3] = ["period=480", "buffer=48000", "frames=1000"];

    /// Whether a description names such a card, valid or not.
    pub fn is_named_in(text: &str) -> bool {
        CARDS.has_kind_of(text)
    }

    /// Channels and the form of samples.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The nominal rate.
    pub fn rate(&self) -> SampleRate {
        self.rate
    }

    /// Number of frames after which the recording ends, if the description limits it.
    pub fn frames(&self) -> Option<Frames> {
        self.frames
    }

    /// The card's place for a stream of another layout and rate, for playing a recording: `hw:0,0` with `period=` and
    /// `buffer=`.
    ///
    /// # Errors
    /// The text is no such place; sound cards have no samples of this layout, or not such a rate.
    pub fn for_output(text: &str, layout: Layout, rate: SampleRate) -> Result<Self, DescriptionError> {
        let whole = Snippet::of(text);
        let (frames, seconds) = rate.as_fraction();
        if !frames.is_multiple_of(seconds) || rate.as_hz() > MOST_RATE_HZ {
            return Err(whole.wrong(format!("sound cards have whole frames per second, and the recording has {rate}")));
        }
        let form = match layout.container() {
            Container::I8 => "8bit",
            Container::U8 => "8bit,u",
            Container::I16 => "16bit",
            Container::I32 if layout.resolution_bits() == 24 => "24bit",
            Container::I32 => "32bit",
            Container::F32 => "float",
            other => return Err(whole.wrong(format!("sound cards have no samples of {other}: export the recording"))),
        };
        let described: Self = format!("{text},{}ch,{form},{}S/s", layout.channels(), rate.as_hz()).parse()?;
        Ok(Self { text: text.trim().to_owned(), layout, rate, ..described })
    }
}

/// The number or id before the first comma, and the device and subdevice after it.
fn place(written: Snippet<'_>) -> Result<String, DescriptionError> {
    let why = format!("write the card's own stream, as in {EXAMPLE}: other names convert and mix");
    let card = written.text().strip_prefix("hw:").map(|card| card.strip_prefix("CARD=").unwrap_or(card));
    let is_id = |card: &&str| !card.is_empty() && card.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    card.filter(is_id).map(str::to_owned).ok_or_else(|| written.wrong(why))
}

fn once<T>(place: &mut Option<T>, part: &Part<'_>, value: T) -> Result<(), DescriptionError> {
    if place.replace(value).is_some() { Err(part.wrong("given twice: leave one out")) } else { Ok(()) }
}

impl FromStr for SoundCard {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let described = CARDS.read(text)?;
        let card = place(described.place()?)?;
        let (mut device, mut subdevice, mut channels, mut bits, mut rate) = (None, None, None, None, None);
        let (mut unsigned, mut float, mut period, mut buffer, mut frames) = (None, None, None, None, None);
        let mut is_place = true;
        for part in described.parts() {
            let value = part.value();
            let size = |why: &str| match value.parse_or::<u32>(why)? {
                size if (1..=MOST_FRAMES).contains(&size) => Ok(size),
                _ => Err(value.wrong(why)),
            };
            let word = part.text();
            match part.key() {
                Some("DEV") => once(&mut device, &part, value.parse_or("write the number of the device, from 0")?)?,
                Some("SUBDEV") => once(&mut subdevice, &part, value.parse_or("write its number, from 0")?)?,
                Some("period") => {
                    once(&mut period, &part, size("write frames between two interrupts, like period=480")?)?;
                }
                Some("buffer") => {
                    once(&mut buffer, &part, size("write frames of the card's buffer, like buffer=48000")?)?;
                }
                Some("frames") => {
                    let why = "write a number of frames, like frames=1000";
                    match value.parse_or(why)? {
                        0 => return Err(value.wrong(why)),
                        number => once(&mut frames, &part, Frames(number))?,
                    }
                }
                None if is_place && device.is_none() && word.parse::<u32>().is_ok() => device = word.parse().ok(),
                None if is_place && subdevice.is_none() && word.parse::<u32>().is_ok() => subdevice = word.parse().ok(),
                None if word.ends_with("S/s") => once(&mut rate, &part, value.parse::<SampleRate>()?)?,
                None if word.ends_with("ch") => {
                    let count = word.trim_end_matches("ch").trim().parse::<u32>().ok().filter(|count| *count > 0);
                    once(&mut channels, &part, count.ok_or_else(|| part.wrong("write 1 or more channels, like 2ch"))?)?;
                }
                None if word == "float" => once(&mut float, &part, ())?,
                None if word == "u" => once(&mut unsigned, &part, ())?,
                None if word.ends_with("bit") => match word {
                    "8bit" => once(&mut bits, &part, 8)?,
                    "16bit" => once(&mut bits, &part, 16)?,
                    "24bit" => once(&mut bits, &part, 24)?,
                    "32bit" => once(&mut bits, &part, 32)?,
                    _ => return Err(part.wrong("write 8bit, 16bit, 24bit or 32bit")),
                },
                _ => {
                    let known = "2ch, 16bit, 24bit, 32bit, float, 48kS/s, period=, buffer= or frames=";
                    return Err(part.unknown(format!("there is no such part: write {known}")));
                }
            }
            is_place &= part.key().is_none() && word.parse::<u32>().is_ok();
        }
        let whole = described.whole();
        let missing = |what: &str| described.missing(format!("{what} is missing: write it, as in {EXAMPLE}"));
        let form = match (float, unsigned, bits) {
            (Some(()), None, None) => PcmForm::F32,
            (None, Some(()), Some(8)) => PcmForm::U8,
            (None, None, Some(8)) => PcmForm::I8,
            (None, None, Some(16)) => PcmForm::I16,
            (None, None, Some(24)) => PcmForm::I24,
            (None, None, Some(32)) => PcmForm::I32,
            (None, None, None) => return Err(missing("the form of samples")),
            _ => return Err(whole.wrong("write one form of samples: 8bit, 8bit,u, 16bit, 24bit, 32bit or float")),
        };
        let channels = channels.ok_or_else(|| missing("the number of channels"))?;
        let rate = rate.ok_or_else(|| missing("the rate"))?;
        let device = device.ok_or_else(|| missing("the number of the device"))?;
        if rate.as_fraction().1 != 1 || rate.as_hz() > MOST_RATE_HZ {
            return Err(whole.wrong("sound cards have whole frames per second, up to 4 MS/s"));
        }
        let (container, bits) = form.stored();
        let layout = Layout::stored_as(channels, bits, container).map_err(|error| whole.wrong(error.to_string()))?;
        let wish = PcmWish { form, channels, rate_hz: rate.as_hz() as u32, period, buffer };
        let place = SoundPlace { card, device, subdevice };
        Ok(Self { place, wish, layout, rate, frames, text: text.trim().to_owned() })
    }
}

impl fmt::Display for SoundCard {
    /// The original text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn read(text: &str) -> SoundCard {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[track_caller]
    fn refuses(text: &str, part: &str, hint: &str) {
        let error = text.parse::<SoundCard>().expect_err(text);
        assert!(error.part() == part && error.to_string().contains(hint), "{text}: {error}");
    }

    #[test]
    fn cards_are_read_in_the_ways_in_which_they_are_named() {
        let card = read(EXAMPLE);
        assert_eq!(
            (card.place.to_string(), card.layout()),
            ("hw:0,0".to_owned(), Layout::analogue(2, 16).expect("is"))
        );
        assert_eq!((card.rate(), card.wish.period), (SampleRate::hz(48_000).expect("is"), None));
        let card = read("alsa: hw:Loopback, 1, 3, 8ch, float, 44.1kS/s, period=64, buffer=128, frames=7");
        assert_eq!(card.place.to_string(), "hw:Loopback,1,3");
        assert_eq!((card.wish.rate_hz, card.wish.period, card.wish.buffer), (44_100, Some(64), Some(128)));
        assert_eq!(card.frames(), Some(Frames(7)));
        assert_eq!(read("alsa:hw:CARD=PCH,DEV=2,SUBDEV=1,2ch,32bit,96kS/s").place.to_string(), "hw:PCH,2,1");
        assert_eq!(read("alsa:hw:0,0,1ch,8bit,u,8kS/s").layout().container(), Container::U8);
        assert_eq!(read("alsa:hw:1,0,2ch,24bit,48kS/s").layout(), Layout::analogue(2, 24).expect("is"));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_to_write_instead() {
        refuses("alsa:default,2ch,16bit,48kS/s", "default", "other names convert and mix");
        refuses("alsa:plughw:0,0,2ch,16bit,48kS/s", "plughw:0", "alsa:hw:0,0");
        refuses("alsa:hw:0,2ch,16bit,48kS/s", "alsa:hw:0,2ch,16bit,48kS/s", "the number of the device is missing");
        refuses("alsa:hw:0,0,16bit,48kS/s", "alsa:hw:0,0,16bit,48kS/s", "the number of channels is missing");
        refuses("alsa:hw:0,0,2ch,48kS/s", "alsa:hw:0,0,2ch,48kS/s", "the form of samples is missing");
        refuses("alsa:hw:0,0,2ch,16bit", "alsa:hw:0,0,2ch,16bit", "the rate is missing");
        refuses("alsa:hw:0,0,2ch,20bit,48kS/s", "20bit", "16bit, 24bit or 32bit");
        refuses("alsa:hw:0,0,2ch,16bit,float,48kS/s", "alsa:hw:0,0,2ch,16bit,float,48kS/s", "one form");
        refuses("alsa:hw:0,0,2ch,16bit,48kS/s,period=0", "period=0", "period=480");
        refuses("alsa:hw:0,0,2ch,16bit,48kS/s,5", "5", "no such part");
        refuses("alsa:hw:0,0,0ch,16bit,48kS/s", "0ch", "1 or more");
        refuses("alsa:hw:0,0,2ch,16bit,0.5S/s", "alsa:hw:0,0,2ch,16bit,0.5S/s", "whole frames");
    }

    #[test]
    fn an_output_has_the_form_and_rate_of_the_recording() {
        let layout = Layout::analogue(2, 14).expect("is");
        let rate = SampleRate::hz(44_100).expect("is");
        let card = SoundCard::for_output("alsa:hw:0,0,period=64", layout, rate).expect("is");
        assert_eq!((card.wish.form, card.wish.channels, card.wish.rate_hz), (PcmForm::I16, 2, 44_100));
        assert_eq!((card.wish.period, card.to_string().as_str()), (Some(64), "alsa:hw:0,0,period=64"));
        let deep = Layout::analogue(1, 24).expect("is");
        assert_eq!(SoundCard::for_output("alsa:hw:0,0", deep, rate).expect("is").wish.form, PcmForm::I24);
        let packed = Layout::stored_as(1, 12, Container::Packed12).expect("is");
        let why = SoundCard::for_output("alsa:hw:0,0", packed, rate).expect_err("packed").to_string();
        assert!(why.contains("no samples of packed12"), "{why}");
    }
}
