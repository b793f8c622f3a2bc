//! Channels as a command line describes them: `0=name:pressure,unit:kPa,scale:0.02`.
//!
//! | part | meaning |
//! |---|---|
//! | `name:pressure` | the name; unique |
//! | `unit:kPa` | the unit in UCUM |
//! | `scale:0.02`, `offset:-1` | value = code × scale + offset |
//! | `range:0..500` | the input range, in the unit |
//! | `clip:-8192..8191` | the codes at which it clips |
//! | `justified:high` | where the bits are in a wider sample |
//! | `coupling:ac`, `sensor:PT100`, `note:…` | as written |
//! | `calibrated:2026-05-01`, `by:NAME`, `uncertainty:0.05` | the calibration |
//!
//! With several cards the card's number comes first: `1/0=name:…`.

use hairspring_describe::{Assignment, DescriptionError, Part, Snippet};
use hairspring_ring::layout::Layout;

use super::{ChannelCalibration, ChannelDescription, Justified, check_names};

/// An example, for errors and help.
pub const EXAMPLE: &str = "0=name:pressure,unit:kPa,scale:0.02";

/// Reads the descriptions of the channels of cards with these layouts. The result has a list for each card: all of its
/// channels, or empty if none is described.
///
/// # Errors
/// The description is invalid, or contradicts the card.
pub fn read(texts: &[String], layouts: &[Layout]) -> Result<Vec<Vec<ChannelDescription>>, DescriptionError> {
    let mut cards: Vec<Vec<ChannelDescription>> = layouts.iter().map(|_| Vec::new()).collect();
    for text in texts {
        let said = Assignment::read(text, EXAMPLE)?;
        let (card, number) = place(said.subject(), layouts)?;
        let channels = &mut cards[card];
        channels.resize(layouts[card].channels() as usize, ChannelDescription::default());
        if !channels[number].is_empty() {
            return Err(said.subject().wrong(format!("channel {number} is described twice: write all of it at once")));
        }
        channels[number] = channel(&said, layouts[card])?;
        if let Err((_, contradiction)) = check_names(channels) {
            return Err(pointing(&said, contradiction.key, contradiction.why));
        }
    }
    Ok(cards)
}

/// The numbers of the card and of the channel.
pub(super) fn place(subject: Snippet<'_>, layouts: &[Layout]) -> Result<(usize, usize), DescriptionError> {
    let (card, channel) = match subject.split_first('/') {
        Some((card, channel)) => (Some(card), channel),
        None => (None, subject),
    };
    let card = match card {
        Some(text) => {
            let most = layouts.len().saturating_sub(1);
            let wrong =
                format!("there is no such card: they are numbered 0 to {most}, in the order in which they are named");
            let number: usize = text.parse_or("write the number of a card before the slash")?;
            if number > most {
                return Err(text.wrong(wrong));
            }
            number
        }
        None if layouts.len() > 1 => {
            return Err(subject.wrong(format!("there are {} cards: write which, as in 0/{EXAMPLE}", layouts.len())));
        }
        None => 0,
    };
    let number: u32 = channel.parse_or(format!("write the number of a channel, as in {EXAMPLE}"))?;
    let of = layouts[card].channels();
    if number >= of {
        return Err(channel.wrong(format!("the card has {of} channels, numbered 0 to {}", of - 1)));
    }
    Ok((card, number as usize))
}

/// One channel, checked against its card.
fn channel(said: &Assignment<'_>, layout: Layout) -> Result<ChannelDescription, DescriptionError> {
    let mut channel = ChannelDescription::default();
    let mut calibration = None::<ChannelCalibration>;
    let mut keys = Vec::new();
    for part in said.parts() {
        let Some(key) = part.key() else {
            return Err(part.wrong(format!("write a key, a colon and a value, as in {EXAMPLE}")));
        };
        if keys.contains(&key) {
            return Err(part.unknown("it is said twice"));
        }
        keys.push(key);
        let text = || Some(part.value().text().to_owned());
        match key {
            "name" => channel.name = text(),
            "unit" => channel.unit = text(),
            "scale" => channel.scale = Some(number(part.value())?),
            "offset" => channel.offset = Some(number(part.value())?),
            "range" => channel.range = Some(ends(&part)?),
            "clip" => channel.clip = Some(ends(&part)?),
            "justified" => channel.justified = Some(justified(part.value())?),
            "coupling" => channel.coupling = text(),
            "sensor" => channel.sensor = text(),
            "note" => channel.note = text(),
            "calibrated" => calibration.get_or_insert_default().at = text(),
            "by" => calibration.get_or_insert_default().by = text(),
            "uncertainty" => calibration.get_or_insert_default().uncertainty = Some(number(part.value())?),
            _ => {
                return Err(part.unknown(
                    "there is no such key: choose name, unit, scale, offset, range, clip, justified, coupling, sensor, calibrated, by, \
                     uncertainty or note",
                ));
            }
        }
    }
    channel.calibration = calibration;
    completed(&mut channel);
    channel.check(layout).map_err(|wrong| pointing(said, wrong.key, wrong.why))?;
    Ok(channel)
}

/// Fills in the defaults of a description by a user: offset 0 if there is a scale, and `user` as the source of a
/// calibration.
pub(super) fn completed(channel: &mut ChannelDescription) {
    if channel.scale.is_some() {
        channel.offset.get_or_insert(0.0);
    }
    if let Some(calibration) = &mut channel.calibration {
        calibration.source.get_or_insert_with(|| "user".to_owned());
    }
}

/// An error that points at the value of a key.
fn pointing(said: &Assignment<'_>, key: &str, why: String) -> DescriptionError {
    let part = said.parts().find(|part| part.key() == Some(key));
    part.map_or(said.whole(), |part| part.value()).wrong(why)
}

fn number(value: Snippet<'_>) -> Result<f64, DescriptionError> {
    value.parse_or("write a number, like 0.02")
}

fn justified(value: Snippet<'_>) -> Result<Justified, DescriptionError> {
    match value.text() {
        "low" => Ok(Justified::Low),
        "high" => Ok(Justified::High),
        _ => Err(value.wrong("write low or high")),
    }
}

/// Two numbers with two dots between them.
fn ends(part: &Part<'_>) -> Result<[f64; 2], DescriptionError> {
    let value = part.value();
    let wrong = "write two numbers, like -10..10";
    let (low, high) = value.text().split_once("..").ok_or_else(|| value.wrong(wrong))?;
    let read = |text: &str| text.trim().parse().map_err(|_| value.wrong(wrong));
    Ok([read(low)?, read(high)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cards() -> Vec<Layout> {
        [(4, 14), (1, 16)].map(|(channels, bits)| Layout::analogue(channels, bits).expect("exists")).into()
    }

    fn of(cards: &[Layout], texts: &[&str]) -> Result<Vec<Vec<ChannelDescription>>, DescriptionError> {
        read(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>(), cards)
    }

    #[test]
    fn a_channel_is_what_is_written_of_it() {
        let all = "2=name:pressure,unit:kPa,scale:0.02,range:-160..160,clip:-8192..8191,justified:low,coupling:dc,sensor:P 12,\
                   calibrated:2026-05-01,by:PTB,uncertainty:0.1,note:a:b";
        let cards = of(&cards()[..1], &[all]).expect("right");
        let [card] = &cards[..] else { panic!("{cards:?}") };
        assert_eq!(card.len(), 4);
        assert!(card[0].is_empty());
        let text = |text: &str| Some(text.to_owned());
        let expected = ChannelDescription {
            name: text("pressure"),
            unit: text("kPa"),
            scale: Some(0.02),
            offset: Some(0.0),
            range: Some([-160.0, 160.0]),
            justified: Some(Justified::Low),
            coupling: text("dc"),
            sensor: text("P 12"),
            calibration: Some(ChannelCalibration {
                at: text("2026-05-01"),
                by: text("PTB"),
                uncertainty: Some(0.1),
                source: text("user"),
            }),
            clip: Some([-8192.0, 8191.0]),
            note: text("a:b"),
        };
        assert_eq!(card[2], expected);
        assert_eq!(of(&[], &[]), Ok(vec![]));
    }

    #[track_caller]
    fn points(cards: &[Layout], texts: &[&str], at: &str, why: &str) {
        let error = of(cards, texts).expect_err("wrong");
        let text = texts.last().expect("a text");
        assert_eq!((&text[error.place()], error.why().contains(why)), (at, true), "{error}");
    }

    #[test]
    fn what_is_wrong_is_pointed_at() {
        let both = cards();
        let one = &both[..1];
        points(one, &["4=name:x"], "4", "has 4 channels");
        points(one, &["x=name:x"], "x", "number of a channel");
        points(one, &["0=scale:1k"], "1k", "number");
        points(one, &["0=scale:0"], "0", "other than 0");
        points(one, &["0=volume:1"], "volume", "no such key");
        points(one, &["0=name"], "name", "a colon");
        points(one, &["0=name:x,name:y"], "name", "twice");
        points(one, &["0=name:x", "0=unit:V"], "0", "twice");
        points(one, &["0=name:x", "1=name:x"], "x", "channel 0 has this name");
        points(one, &["0=clip:-9000..1"], "-9000..1", "-8192 to 8191");
        points(one, &["0=range:5"], "5", "two numbers");
        points(one, &["0=justified:left"], "left", "low or high");
        points(&both, &["0=name:x"], "0", "2 cards");
        points(&both, &["2/0=name:x"], "2", "0 to 1");
        points(&both, &["1/1=name:x"], "1", "1 channels");
        let cards = of(&both, &["1/0=name:x"]).expect("right");
        assert!(cards[0].is_empty() && cards[1][0].name.as_deref() == Some("x"));
    }
}
