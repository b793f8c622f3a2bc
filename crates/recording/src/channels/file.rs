//! Channels as a set-up file describes them, in TOML. This file alone knows the format.
//!
//! ```toml
//! [channel.0]
//! name = "pressure"
//! unit = "kPa"
//! scale = 0.02
//! range = [-160, 160]
//! calibration = { at = "2026-05-01", by = "PTB", uncertainty = 0.1 }
//!
//! [channel."1/0"]          # channel 0 of card 1, if there are several cards
//! name = "temperature"
//! ```

use std::collections::BTreeMap;

use hairspring_describe::Snippet;
use hairspring_ring::layout::Layout;
use toml::Spanned;

use super::written::{completed, place};
use super::{ChannelCalibration, ChannelDescription, Justified, check_names};

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct SetUp {
    #[serde(default)]
    channel: BTreeMap<Spanned<String>, Spanned<Channel>>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Channel {
    name: Option<String>,
    unit: Option<String>,
    scale: Option<f64>,
    offset: Option<f64>,
    range: Option<[f64; 2]>,
    justified: Option<Justified>,
    coupling: Option<String>,
    sensor: Option<String>,
    calibration: Option<Calibrated>,
    clip: Option<[f64; 2]>,
    note: Option<String>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Calibrated {
    at: Option<String>,
    by: Option<String>,
    uncertainty: Option<f64>,
}

/// Reads a set-up file for cards with these layouts, as [`super::written::read`] does.
///
/// # Errors
/// The contradiction or syntax error, with its line and the place in it.
pub fn read(text: &str, layouts: &[Layout]) -> Result<Vec<Vec<ChannelDescription>>, String> {
    let set_up: SetUp = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut cards: Vec<Vec<ChannelDescription>> = layouts.iter().map(|_| Vec::new()).collect();
    for (number, channel) in set_up.channel {
        let at = number.span().start;
        let (card, number) =
            place(Snippet::of(number.get_ref()), layouts).map_err(|error| in_line(text, at, &error.in_one_line()))?;
        let channels = &mut cards[card];
        channels.resize(layouts[card].channels() as usize, ChannelDescription::default());
        let Channel { name, unit, scale, offset, range, justified, coupling, sensor, calibration, clip, note } =
            channel.into_inner();
        let calibration = calibration.map(|Calibrated { at, by, uncertainty }| ChannelCalibration {
            at,
            by,
            uncertainty,
            source: None,
        });
        if !channels[number].is_empty() {
            return Err(in_line(text, at, &format!("channel {number} is described twice")));
        }
        let mut described = ChannelDescription {
            name,
            unit,
            scale,
            offset,
            range,
            justified,
            coupling,
            sensor,
            calibration,
            clip,
            note,
        };
        completed(&mut described);
        described.check(layouts[card]).map_err(|wrong| in_line(text, at, &wrong.to_string()))?;
        channels[number] = described;
        check_names(channels).map_err(|(_, wrong)| in_line(text, at, &wrong.to_string()))?;
    }
    Ok(cards)
}

/// An error with the line in which it is.
fn in_line(text: &str, at: usize, why: &str) -> String {
    let before = text.get(..at).unwrap_or(text);
    let number = before.matches('\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or("");
    let column = before.rsplit('\n').next().unwrap_or("").chars().count();
    let margin = number.to_string().len();
    format!("line {number}, column {}: {why}\n{number} | {line}\n{:margin$} | {:column$}^", column + 1, "", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layouts() -> Vec<Layout> {
        vec![Layout::analogue(2, 14).expect("exists")]
    }

    #[test]
    fn a_file_says_the_same_as_a_command_line() {
        let file = "[channel.1]\nname = \"pressure\"\nunit = \"kPa\"\nscale = 0.02\nrange = [-160, 160]\n\
                    calibration = { at = \"2026-05-01\", uncertainty = 0.1 }\n";
        let line =
            "1=name:pressure,unit:kPa,scale:0.02,range:-160..160,calibrated:2026-05-01,uncertainty:0.1".to_owned();
        let expected = super::super::written::read(&[line], &layouts()).expect("right");
        assert_eq!(read(file, &layouts()), Ok(expected));
    }

    #[test]
    fn the_example_of_the_book_is_right() {
        let example = include_str!("../../../../examples/channels.toml");
        let names: Vec<_> =
            read(example, &layouts()).expect("right")[0].iter().map(|channel| channel.name.clone()).collect();
        assert_eq!(names, [Some("pressure".to_owned()), Some("level".to_owned())]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (file, line, why) in [
            ("\n[channel.2]\nname = \"x\"\n", "line 2, column 10", "has 2 channels"),
            ("[channel.0]\nclip = [-9000, 1]\n", "line 1, column 10", "-8192 to 8191"),
            ("[channel.0]\nvolume = 1\n", "line 2, column 1", "volume"),
            ("[channel.0]\nname = \"x\"\n[channel.1]\nname = \"x\"\n", "line 3, column 10", "this name"),
            ("[chanel.0]\n", "line 1, column 2", "chanel"),
            ("channel = { 0 = { name = \"é\" }, 1 = { name = \"é\" } }\n", "line 1, column 33", "this name"),
        ] {
            let error = read(file, &layouts()).expect_err(file);
            assert!(error.contains(line) && error.contains(why), "{error}");
        }
    }
}
