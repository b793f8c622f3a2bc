//! [`AnalogCard`]: analogue inputs of a card on a command line.
//!
//! ```text
//! comedi:/dev/comedi0,2ch,10kS/s                           the first two channels of subdevice 0
//! comedi:/dev/comedi0,ch=0+3,10kS/s,subdevice=1,range=2    channels 0 and 3 of subdevice 1, its third voltage range
//! comedi:/dev/comedi0,2ch,10kS/s,frames=1000,fifo=1MiB     ends after 1000 frames; the kernel's buffer has 1 MiB
//! ```

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use hairspring_describe::{Catalogue, DescriptionError, PlaceForm, Syntax, grammar};
use hairspring_machine::Nanos;
use hairspring_ring::{Bytes, Container, Frames, Layout, SampleRate};
use hairspring_source::Source as _;

use super::input::{AnalogInput, Inputs};
use crate::device::DeviceError;

const EXAMPLE: &str = "comedi:/dev/comedi0,2ch,10kS/s";
const CARDS: Catalogue = Catalogue {
    noun: "card with analogue inputs",
    syntaxes: &[Syntax { kind: AnalogCard::NAME, place: PlaceForm::UpToComma, example: EXAMPLE }],
};
/// The greatest difference between the card's rate and the requested one.
const RATE_WITHIN: f64 = 0.01;
/// Channels at most; the library's recordings have no more.
const MOST_CHANNELS: u32 = 4096;

/// Described inputs, not open yet.
#[derive(Clone, Debug, PartialEq)]
pub struct AnalogCard {
    path: PathBuf,
    inputs: Inputs,
    rate: SampleRate,
    layout: Layout,
    /// The original text.
    text: String,
}

impl AnalogCard {
    /// Kind of card: the text before the colon of a description.
    pub const NAME: &'static str = "comedi";
    /// Example options, which follow channels and rate.
    pub const OPTIONS: [&'static str; 4] = ["subdevice=1", "range=2", "frames=1000", "fifo=1MiB"];

    /// Whether a description names such inputs, valid or not.
    pub fn is_named_in(text: &str) -> bool {
        CARDS.has_kind_of(text)
    }

    /// The layout of samples, without the resolution, which is known only after opening.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// The rate that was written.
    pub fn rate(&self) -> SampleRate {
        self.rate
    }

    /// Number of frames after which the recording ends, if the description limits it.
    pub fn frames(&self) -> Option<Frames> {
        self.inputs.frames
    }

    /// Opens the inputs, which end after `frames` frames.
    ///
    /// # Errors
    /// As [`AnalogInput::open`]; the card has no rate within 1 % of the requested one.
    pub fn open(&self, frames: Option<Frames>) -> Result<AnalogInput, DeviceError> {
        let input = AnalogInput::open(&self.path, &Inputs { frames, ..self.inputs.clone() })?;
        match input.describe().rate {
            Some(rate) if (rate.as_hz() / self.rate.as_hz() - 1.0).abs() > RATE_WITHIN => Err(DeviceError {
                attempted: format!("open {self}"),
                said: format!("the card's nearest rate is {rate}"),
                remedy: "write that rate",
            }),
            _ => Ok(input),
        }
    }
}

impl FromStr for AnalogCard {
    type Err = DescriptionError;

    fn from_str(text: &str) -> Result<Self, DescriptionError> {
        let read = CARDS.read(text)?;
        let path = PathBuf::from(read.place()?.text());
        let (mut channels, mut rate) = (Vec::new(), None);
        let (mut subdevice, mut range, mut frames, mut buffer) = (0, 0, None, None);
        for part in read.parts() {
            let value = part.value();
            match part.key() {
                Some("ch") => {
                    channels = value.read(grammar::numbers, "write the numbers of channels, like ch=0+3")?;
                }
                Some("subdevice") => subdevice = value.parse_or("write the number of the subdevice, from 0")?,
                Some("range") => range = value.parse_or("write the number of the voltage range, from 0")?,
                Some("frames") => {
                    let why = "write a number of frames, like frames=1000";
                    match value.parse_or(why)? {
                        0 => return Err(value.wrong(why)),
                        number => frames = Some(Frames(number)),
                    }
                }
                Some("fifo") => buffer = Some(value.parse::<Bytes>()?),
                None if part.text().ends_with("S/s") => rate = Some(value.parse::<SampleRate>()?),
                None if part.text().ends_with("ch") => {
                    let count = part.text().trim_end_matches("ch").parse().ok();
                    let count = count.filter(|count| *count <= MOST_CHANNELS);
                    channels = (0..count.ok_or_else(|| part.wrong("write 1 to 4096 channels, like 2ch"))?).collect();
                }
                _ => {
                    let known = "2ch or ch=0+3, 10kS/s, subdevice=, range=, frames= or fifo=";
                    return Err(part.unknown(format!("there is no such part: write {known}")));
                }
            }
        }
        let whole = read.whole();
        let layout = Layout::stored_as(channels.len() as u32, u16::BITS, Container::U16);
        let layout = layout.map_err(|why| whole.wrong(format!("{why}, as in {EXAMPLE}")))?;
        let rate = rate.ok_or_else(|| read.missing(format!("write the rate, as in {EXAMPLE}")))?;
        // The kernel's interface has periods of 32 bits of nanoseconds.
        let period_ns = 1e9 / rate.as_hz();
        if !(1.0..=f64::from(u32::MAX)).contains(&period_ns) {
            return Err(whole.wrong("choose 0.24S/s to 1GS/s"));
        }
        let period = Nanos::new(period_ns.round() as i64);
        let inputs = Inputs { subdevice, channels, range, period, frames, buffer };
        Ok(Self { path, inputs, rate, layout, text: text.trim().to_owned() })
    }
}

impl fmt::Display for AnalogCard {
    /// The original text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_asked_of_the_driver() {
        let text = "comedi:/dev/comedi1,ch=0+3,2.5kS/s,subdevice=1,range=2,frames=10,fifo=64KiB";
        let card: AnalogCard = text.parse().expect(text);
        let expected = Inputs {
            subdevice: 1,
            channels: vec![0, 3],
            range: 2,
            period: Nanos::from_micros(400),
            frames: Some(Frames(10)),
            buffer: Some(Bytes::kib(64)),
        };
        assert_eq!((card.inputs.clone(), card.path.as_path()), (expected, std::path::Path::new("/dev/comedi1")));
        assert_eq!((card.to_string(), card.layout().channels()), (text.to_owned(), 2));
        let plain: AnalogCard = EXAMPLE.parse().expect(EXAMPLE);
        assert_eq!((plain.inputs.channels, plain.inputs.period), (vec![0, 1], Nanos::from_micros(100)));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_to_write() {
        for (text, hint) in [
            ("virtual:2ch", "as in comedi:"),
            ("comedi:", "write the place after the colon, as in comedi:/dev/comedi0"),
            ("comedi:/dev/comedi0,10kS/s", "0 channels: choose"),
            ("comedi:/dev/comedi0,0ch,10kS/s", "0 channels: choose"),
            ("comedi:/dev/comedi0,9999ch,10kS/s", "1 to 4096"),
            ("comedi:/dev/comedi0,2ch", "write the rate"),
            ("comedi:/dev/comedi0,2ch,0S/s", "sample rate"),
            ("comedi:/dev/comedi0,2ch,0.1S/s", "choose 0.24S/s"),
            ("comedi:/dev/comedi0,2ch,2GS/s", "to 1GS/s"),
            ("comedi:/dev/comedi0,ch=0+x,1kS/s", "like ch=0+3"),
            ("comedi:/dev/comedi0,2ch,1kS/s,14bit", "no such part"),
            ("comedi:/dev/comedi0,2ch,1kS/s,frames=0", "like frames=1000"),
            ("comedi:/dev/comedi0,2ch,1kS/s,fifo=4M", "MiB for"),
            ("comedi:/dev/comedi0,2ch,1kS/s,range=300", "voltage range"),
        ] {
            let error = text.parse::<AnalogCard>().expect_err(text).to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }
}
