//! [`Request`]: the arguments of `hairspring record`, checked against each other and against the folders before a file
//! is created.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hairspring_device::{DeviceError, ReferenceDescription};
use hairspring_record::recorder::WriteSettings;
use hairspring_record::session::{Input, RecordConfig};
use hairspring_recording::channels::ChannelDescription;
use hairspring_ring::{Bytes, Frames, Layout};
use hairspring_source::card::CardKind;
use hairspring_source::external::ExternalClock;
use hairspring_source::trigger::{Shots, Trigger};
use hairspring_time::Nanos;

use super::Arguments;
use super::card::AnyCard;
use crate::exit::Failure;
use crate::record::{data_path, target};

/// A checked request.
pub(crate) struct Request {
    cards: Vec<(AnyCard, Option<Frames>, Vec<PathBuf>)>,
    /// Descriptions of each card's channels.
    channels: Vec<Vec<ChannelDescription>>,
    config: RecordConfig,
    length: Option<Nanos>,
}

impl Request {
    pub(crate) fn new(arguments: &Arguments) -> Result<Self, Failure> {
        let mut cards = Vec::new();
        for (number, card) in arguments.cards.iter().enumerate() {
            card.accepts(arguments.on_overrun.into()).map_err(|error| Failure::bad_request(error.to_string()))?;
            let limit = limit(card, arguments)?;
            let targets: Vec<_> = arguments.to.iter().map(|to| named(to, number, arguments.cards.len())).collect();
            cards.push((card.clone(), limit, targets));
        }
        for to in &arguments.to {
            target::check_name(to)?;
        }
        if let Some(twice) = arguments.to.iter().enumerate().find(|(place, to)| arguments.to[..*place].contains(to)) {
            let twice = twice.1.display();
            return Err(Failure::bad_request(format!("--to names {twice} twice: a stripe needs different folders")));
        }
        for target in cards.iter().flat_map(|(_, _, targets)| targets.iter()) {
            if arguments.segments.may_exist() && target::is_series(target) {
                target::check_folder(target)?;
            } else {
                target::check(target)?;
            }
        }
        let layouts: Vec<Layout> = cards.iter().map(|(card, ..)| card.layout()).collect();
        let channels = arguments.channels.read(&layouts)?;
        data_path::check(&arguments.data_path)?;
        let config = RecordConfig {
            series: arguments.segments.series(arguments.pre.unwrap_or_default(), arguments.post.unwrap_or_default())?,
            threads: arguments.threads.threads()?,
            ..config(arguments, &cards)
        };
        let length = arguments.length.or_else(|| shown_length(&cards));
        Ok(Self { cards, channels, config, length })
    }

    pub(crate) fn config(&self) -> &RecordConfig {
        &self.config
    }

    /// The settings with this external clock, opened.
    pub(crate) fn config_beside(&self, reference: Option<&ReferenceDescription>) -> Result<RecordConfig, Failure> {
        let refused = |error: DeviceError| Failure::bad_request(error.to_string());
        let opened = reference.map(|reference| reference.open().map_err(refused)).transpose()?;
        let external = opened.map(|clock| Arc::new(Mutex::new(clock)) as Arc<Mutex<dyn ExternalClock>>);
        Ok(RecordConfig { external, ..self.config.clone() })
    }

    /// Length of the recording, if known.
    pub(crate) fn length(&self) -> Option<Nanos> {
        self.length
    }

    pub(crate) fn is_triggered_from_outside(&self) -> bool {
        let pins = self.config.series.and_then(|series| series.keep_on);
        matches!(self.config.trigger, Some((Trigger::External, ..)))
            || pins.is_some_and(|keep| keep.trigger == Trigger::External)
    }

    /// The description of a card.
    pub(crate) fn card(&self, number: usize) -> String {
        self.cards.get(number).map_or_else(String::new, |(card, ..)| card.to_string())
    }

    /// Opens the cards.
    pub(crate) fn open(&self) -> Result<Vec<Input>, Failure> {
        let open = |((card, limit, targets), channels): (&(AnyCard, Option<Frames>, Vec<PathBuf>), &Vec<_>)| {
            Ok(Input { source: card.open(*limit)?, targets: targets.clone(), channels: channels.clone() })
        };
        self.cards.iter().zip(&self.channels).map(open).collect()
    }
}

/// The frames after which a card ends; `None` if unknown, or if a clock decides.
fn limit(card: &AnyCard, arguments: &Arguments) -> Result<Option<Frames>, Failure> {
    let asked = match (arguments.frames, arguments.length, card.rate()) {
        (Some(frames), ..) => Some(frames),
        // The clock of a real card differs slightly from its nominal rate, so this computer's clock decides.
        (None, Some(_), _) if matches!(card, AnyCard::Analog(_)) => None,
        (None, Some(length), Some(rate)) => Some(rate.frames_after(length)),
        _ => None,
    };
    if asked == Some(Frames(0)) {
        let why = "less than one frame: record for longer";
        return Err(Failure::bad_request(match arguments.length {
            Some(length) => format!("--for {length} of {card}: {why}"),
            None => format!("--frames 0: {why}"),
        }));
    }
    if arguments.length.is_some_and(|length| length <= Nanos::ZERO) {
        return Err(Failure::bad_request("--for 0s: write how long to record, for instance 10s"));
    }
    if arguments.wait.is_some_and(|wait| wait <= Nanos::ZERO) {
        return Err(Failure::bad_request("--wait 0s: write how long to wait, for instance 30s"));
    }
    // The shorter of the two.
    Ok([asked, card.frames()].into_iter().flatten().min())
}

/// The name of a card's recording; with several cards it ends in the card's number.
fn named(to: &Path, number: usize, of: usize) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    if of > 1 {
        name.push(format!("-card{number}"));
    }
    name.into()
}

fn config(arguments: &Arguments, cards: &[(AnyCard, Option<Frames>, Vec<PathBuf>)]) -> RecordConfig {
    let pre = arguments.pre.unwrap_or(Frames(0));
    let held = cards.iter().map(|(card, ..)| volume(card.layout(), pre).0).max().unwrap_or(0);
    let rates = cards.iter().filter_map(|(card, ..)| Some(card.layout().byte_rate(card.rate()?)));
    let fastest = rates.max_by(|one, other| one.bytes_per_s().total_cmp(&other.bytes_per_s()));
    let held = Bytes(if arguments.trigger.is_some() { held } else { 0 });
    // Every card gets the same reserved space: the least that one of them needs.
    let volumes = cards.iter().map(|(card, limit, _)| limit.map(|limit| volume(card.layout(), limit)));
    let volume = volumes.min().flatten();
    let trigger = arguments.trigger.map(|trigger| {
        let shots = arguments.shots.unwrap_or(Shots::Single);
        (trigger, pre, arguments.post.unwrap_or(Frames(0)), shots)
    });
    let usual = data_path::config(&arguments.data_path, cards.len(), fastest, held);
    RecordConfig {
        wait: arguments.wait,
        on_overrun: arguments.on_overrun.into(),
        write: WriteSettings { volume, ..usual.write.clone() },
        // A card with a rate ends by its own count of frames, unless it falls silent.
        length: arguments
            .length
            .filter(|_| cards.iter().any(|(card, limit, _)| limit.is_none() || may_be_silent(card))),
        by_frames: cards.iter().all(|(_, limit, _)| limit.is_some()),
        trigger,
        ..usual
    }
}

/// Whether a card may be silent for a while. A virtual card has the computer's own clock, and a file is read as fast as
/// possible.
fn may_be_silent(card: &AnyCard) -> bool {
    match card {
        AnyCard::Stream(card) => match card.kind() {
            CardKind::Virtual | CardKind::Unpaced => false,
            // A device is no file.
            CardKind::File => !std::fs::metadata(card.address()).is_ok_and(|found| found.is_file()),
            CardKind::Pipe | CardKind::Stdin | CardKind::Tcp | CardKind::TcpListen | CardKind::Udp => true,
        },
        AnyCard::Analog(_) | AnyCard::Sound(_) => true,
    }
}

/// Bytes of this many frames, rounded up to whole grains.
fn volume(layout: Layout, frames: Frames) -> Bytes {
    let grain = layout.grain();
    Bytes(frames.0.div_ceil(grain.frames).saturating_mul(grain.bytes))
}

/// The length of the longest card, if all are known.
fn shown_length(cards: &[(AnyCard, Option<Frames>, Vec<PathBuf>)]) -> Option<Nanos> {
    let lengths = cards.iter().map(|(card, limit, _)| Some(card.rate()?.time_of((*limit)?)));
    lengths.collect::<Option<Vec<_>>>()?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn space_is_reserved_in_whole_grains() {
        let packed: hairspring_source::card::Card = "unpaced:1ch,12bit,packed".parse().expect("a card");
        assert_eq!(volume(packed.layout(), Frames(3)), Bytes(6));
    }
}
