//! [`ChannelDescription`]: the quantity that a channel of a recording measures: name, unit, scale, range, sensor.
//!
//! A card delivers codes. The person who wired it knows their meaning: `value = code × scale + offset`, in `unit`. It
//! is written on a command line ([`written`]) or in a set-up file ([`mod@file`]), checked against the card, and stored
//! in the metadata.
//!
//! **Absent means unknown, never 1.** A reader asked for values of a channel without a scale must refuse. Only the
//! offset has a default: a scale without an offset means that code 0 is value 0, and the offset 0 is then stored.

pub mod file;
pub mod written;

use std::fmt;

use hairspring_ring::layout::{Container, Layout};
use serde::{Deserialize, Serialize};

/// The longest name, unit or other text, in bytes.
const MOST_TEXT: usize = 200;

/// The description of a channel. Every field may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelDescription {
    /// Its name; unique in its recording, without a slash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The unit of its values in UCUM: `V`, `kPa`, `Cel`, `1`; `FS` for a fraction of full scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The value of one code: `value = code × scale + offset`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// The value of code 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset: Option<f64>,
    /// The least and the greatest value that the input takes, in the unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Where the bits of the resolution are in a wider container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub justified: Option<Justified>,
    /// How the input is coupled: `dc`, `ac`, `iepe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coupling: Option<String>,
    /// The sensor: type and serial number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sensor: Option<String>,
    /// The origin of the scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibration: Option<ChannelCalibration>,
    /// The codes at which the input clips: at or below the first, at or above the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<[f64; 2]>,
    /// Anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Where the bits of the resolution are in a wider container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Justified {
    /// In the low bits: codes are numbers of the resolution, as the cards of this project deliver them.
    Low,
    /// In the high bits: codes are numbers of the container, whose lowest bits are zero.
    High,
}

/// The date, author and uncertainty of a channel's calibration.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ChannelCalibration {
    /// The date, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// The person or laboratory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The uncertainty of a value, in the unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertainty: Option<f64>,
    /// The source of this statement: `card`, `user` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// Why a description does not suit its card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelContradiction {
    /// The contradicting key, as written.
    pub key: &'static str,
    /// The reason and the remedy.
    pub why: String,
}

impl fmt::Display for ChannelContradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.why)
    }
}

impl ChannelDescription {
    /// Whether all fields are unknown.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The value of a code, if scale and offset are known.
    pub fn value_of(&self, code: f64) -> Option<f64> {
        Some(code * self.scale? + self.offset?)
    }

    /// Checks the description alone and against the layout of its card.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self, layout: Layout) -> Result<(), ChannelContradiction> {
        let wrong = |key, why: String| Err(ChannelContradiction { key, why });
        let texts = [
            ("name", &self.name),
            ("unit", &self.unit),
            ("coupling", &self.coupling),
            ("sensor", &self.sensor),
            ("note", &self.note),
        ];
        for (key, text) in texts.into_iter().filter_map(|(key, text)| Some((key, text.as_ref()?))) {
            if text.is_empty() || text.len() > MOST_TEXT || text.contains(char::is_control) {
                return wrong(key, format!("write 1 to {MOST_TEXT} bytes of text"));
            }
        }
        if self.name.as_ref().is_some_and(|name| name.contains('/')) {
            return wrong("name", "a name has no slash, because it names a data set in other formats".to_owned());
        }
        if self.unit.as_ref().is_some_and(|unit| !unit.bytes().all(|byte| byte.is_ascii_graphic())) {
            return wrong("unit", "write it in UCUM, in ASCII without spaces: uV, Ohm, Cel, m/s2, 1".to_owned());
        }
        if self.scale.is_some_and(|scale| scale == 0.0 || !scale.is_finite()) {
            return wrong("scale", "write a number other than 0: what one code is worth".to_owned());
        }
        if self.offset.is_some_and(|offset| !offset.is_finite()) {
            return wrong("offset", "write a number: the value of code 0".to_owned());
        }
        for (key, ends) in [("range", self.range), ("clip", self.clip)] {
            if ends.is_some_and(|[low, high]| !(low.is_finite() && high.is_finite() && low < high)) {
                return wrong(key, "write the lower number first, then the higher".to_owned());
            }
        }
        let bits = layout.resolution_bits();
        if layout.container() == Container::Bits {
            let numeric = [
                ("unit", self.unit.is_some()),
                ("scale", self.scale.is_some()),
                ("offset", self.offset.is_some()),
                ("range", self.range.is_some()),
                ("clip", self.clip.is_some()),
                ("justified", self.justified.is_some()),
            ];
            if let Some((key, _)) = numeric.into_iter().find(|(_, is_there)| *is_there) {
                return wrong(
                    key,
                    "the card's channels are digital lines, which have a name and a note only".to_owned(),
                );
            }
        }
        let is_integer = !matches!(layout.container(), Container::F32 | Container::F64 | Container::Packed12);
        if self.justified == Some(Justified::High) && (bits >= layout.container().bits() || !is_integer) {
            return wrong("justified", format!("the card's {bits} bits fill its samples: leave it out"));
        }
        let Some([least, most]) = self.codes(layout) else { return Ok(()) };
        if let Some([low, high]) = self.clip
            && (low < least || high > most)
        {
            return wrong("clip", format!("the card's codes are {least} to {most}"));
        }
        if let (Some([low, high]), Some(scale), Some(offset)) = (self.range, self.scale, self.offset) {
            let ends = [least * scale + offset, most * scale + offset];
            let (least, most) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
            // A range is often written up to the code after the greatest one.
            let step = scale.abs() * (1.0 + 1e-9);
            if low < least - step || high > most + step {
                return wrong(
                    "range",
                    format!("with this scale and offset the card's codes reach {least} to {most} only"),
                );
            }
        }
        Ok(())
    }

    /// The least and the greatest code of a card; none for floats.
    fn codes(&self, layout: Layout) -> Option<[f64; 2]> {
        let bits = layout.resolution_bits();
        let shift = match self.justified {
            Some(Justified::High) => layout.container().bits().saturating_sub(bits),
            _ => 0,
        };
        let power = |bits: u32| 2_f64.powi(i32::try_from(bits).unwrap_or(64));
        let ends = match layout.container() {
            Container::F32 | Container::F64 => return None,
            Container::Bits => [0.0, 1.0],
            Container::U8 | Container::U16 | Container::U32 => [0.0, power(bits) - 1.0],
            _ => [-power(bits - 1), power(bits - 1) - 1.0],
        };
        Some(ends.map(|end| end * power(shift)))
    }
}

/// The layout by which a trigger reads a channel. Left-justified codes are numbers of the whole container, whose
/// full scale is the converter's.
pub fn layout_of_codes(layout: Layout, channels: &[ChannelDescription], channel: Option<u32>) -> Layout {
    let described = channel.and_then(|channel| channels.get(channel as usize));
    let container = layout.container();
    let filled = Layout::stored_as(layout.channels(), container.bits(), container);
    filled.ok().filter(|_| described.is_some_and(|it| it.justified == Some(Justified::High))).unwrap_or(layout)
}

/// Why a set of descriptions is refused: the number of the channel, and the contradiction.
pub(super) fn check_names(channels: &[ChannelDescription]) -> Result<(), (usize, ChannelContradiction)> {
    for (number, channel) in channels.iter().enumerate() {
        let twin = channels[..number].iter().position(|other| channel.name.is_some() && other.name == channel.name);
        if let Some(twin) = twin {
            let why = format!("channel {twin} has this name already");
            return Err((number, ChannelContradiction { key: "name", why }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hairspring_ring::units::Frames;

    use super::*;

    fn layout(bits: u32, container: Container) -> Layout {
        Layout::stored_as(2, bits, container).expect("exists")
    }

    #[track_caller]
    fn refused(channel: ChannelDescription, layout: Layout, key: &str, why: &str) {
        let found = channel.check(layout).expect_err("contradicts");
        assert!(found.key == key && found.why.contains(why), "{found}");
    }

    /// Regression: a trigger at a part of the full scale fired at a sixteenth of it, if 12 bits were the highest of 16.
    #[test]
    fn a_trigger_reads_left_justified_codes_as_numbers_of_the_container() {
        let layout = layout(12, Container::I16);
        let justified = |justified| ChannelDescription { justified, ..ChannelDescription::default() };
        let channels = [justified(Some(Justified::High)), justified(Some(Justified::Low))];
        let bits = |channel| layout_of_codes(layout, &channels, channel).resolution_bits();
        assert_eq!([Some(0), Some(1), Some(2), None].map(bits), [16, 12, 12, 12]);
        assert_eq!(layout_of_codes(layout, &channels, Some(0)).bytes_of(Frames(1)), layout.bytes_of(Frames(1)));
    }

    #[test]
    fn a_description_that_contradicts_the_card_is_refused_at_its_key() {
        let signed = layout(14, Container::I16);
        let of = |change: fn(&mut ChannelDescription)| {
            let mut channel = ChannelDescription::default();
            change(&mut channel);
            channel
        };
        refused(of(|c| c.clip = Some([-8193.0, 0.0])), signed, "clip", "-8192 to 8191");
        refused(of(|c| c.clip = Some([-1.0, 0.0])), layout(12, Container::U16), "clip", "0 to 4095");
        refused(of(|c| c.scale = Some(0.0)), signed, "scale", "other than 0");
        refused(of(|c| c.scale = Some(f64::NAN)), signed, "scale", "number");
        refused(of(|c| c.range = Some([1.0, 1.0])), signed, "range", "lower");
        refused(of(|c| c.name = Some("a/b".to_owned())), signed, "name", "slash");
        refused(of(|c| c.name = Some(String::new())), signed, "name", "text");
        refused(of(|c| c.unit = Some("µV".to_owned())), signed, "unit", "uV");
        refused(of(|c| c.justified = Some(Justified::High)), layout(16, Container::I16), "justified", "fill");
        refused(of(|c| c.unit = Some("V".to_owned())), Layout::digital(3).expect("exists"), "unit", "digital");
        let ranged = of(|c| (c.scale, c.offset, c.range) = (Some(0.001), Some(0.0), Some([-10.0, 10.0])));
        refused(ranged, signed, "range", "-8.192 to 8.191");
        for fits in [
            of(|c| (c.scale, c.offset, c.range) = (Some(10.0 / 8192.0), Some(0.0), Some([-10.0, 10.0]))),
            of(|c| (c.scale, c.offset, c.range) = (Some(-10.0 / 8192.0), Some(0.0), Some([-10.0, 10.0]))),
            of(|c| (c.justified, c.clip) = (Some(Justified::High), Some([-32768.0, 32764.0]))),
            ChannelDescription::default(),
        ] {
            assert_eq!(fits.check(signed), Ok(()), "{fits:?}");
        }
    }

    #[test]
    fn a_channel_without_a_scale_has_no_values() {
        let channel = ChannelDescription { offset: Some(1.0), ..ChannelDescription::default() };
        assert_eq!(channel.value_of(3.0), None);
        let channel = ChannelDescription { scale: Some(2.0), ..channel };
        assert_eq!(channel.value_of(3.0), Some(7.0));
    }
}
