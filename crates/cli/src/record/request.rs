//! What is to be recorded: the arguments, checked against each other and against the folders before anything is made.

use std::path::{Path, PathBuf};

use hairspring_stream::card::{Card, CardError};
use hairspring_stream::memory::free_memory;
use hairspring_stream::session::{Config, Input};
use hairspring_stream::store::Ways;
use hairspring_stream::trigger::{Shots, Trigger};
use hairspring_stream::{Bytes, Frames, Layout};
use hairspring_time::Nanos;

use crate::arguments::{EngineName, RecordArguments};
use crate::exit::Failure;
use crate::target;

/// The buffer of each card unless one is given.
const BUFFER: Bytes = Bytes::mib(256);
/// The most that comes together unless a size is given; larger writes are hardly faster on any disk.
const NOTIFY_MOST: u64 = 4 << 20;
/// The least: a page.
const NOTIFY_LEAST: u64 = 4096;
/// Unless a size is given, data wait no longer than a part of a second to be written.
const NOTIFIES_PER_S: f64 = 4.0;
/// So many writes fit into the buffer at least: one is filled while another is written.
const WRITES_IN_BUFFER: u64 = 4;
/// A request that makes sense.
pub(crate) struct Request {
    cards: Vec<(Card, Option<Frames>, Vec<PathBuf>)>,
    config: Config,
    length: Option<Nanos>,
}

impl Request {
    pub(crate) fn new(arguments: &RecordArguments) -> Result<Self, Failure> {
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
            return Err(Failure::bad_request(format!("{twice} is named twice: a stripe needs different folders")));
        }
        for target in cards.iter().flat_map(|(_, _, targets)| targets.iter()) {
            target::check(target)?;
        }
        if arguments.sync <= Nanos::ZERO {
            return Err(Failure::bad_request("--sync 0s: write the time between two syncs, for instance 1s"));
        }
        let config = config(arguments, &cards);
        let length = arguments.length.or_else(|| shown_length(&cards));
        Ok(Self { cards, config, length })
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// How long it will take, if that is known.
    pub(crate) fn length(&self) -> Option<Nanos> {
        self.length
    }

    pub(crate) fn is_triggered_from_outside(&self) -> bool {
        matches!(self.config.trigger, Some((Trigger::External, ..)))
    }

    /// The description of a card, as it was written.
    pub(crate) fn card(&self, number: usize) -> String {
        self.cards.get(number).map_or_else(String::new, |(card, ..)| card.to_string())
    }

    /// Opens the cards.
    pub(crate) fn open(&self) -> Result<Vec<Input>, Failure> {
        let open = |(card, limit, targets): &(Card, Option<Frames>, Vec<PathBuf>)| {
            let source = card.open(*limit).map_err(|error| match error {
                CardError::Open { .. } => Failure::bad_request(format!("failed to open {card}: {error}")),
                error => Failure::bad_request(error.to_string()),
            })?;
            Ok(Input { source, targets: targets.clone() })
        };
        self.cards.iter().map(open).collect()
    }
}

/// The frames after which a card ends; `None` if that is not known, or only a clock can tell.
fn limit(card: &Card, arguments: &RecordArguments) -> Result<Option<Frames>, Failure> {
    let asked = match (arguments.frames, arguments.length, card.rate()) {
        (Some(frames), ..) => Some(frames),
        (None, Some(length), Some(rate)) => Some(rate.frames_after(length)),
        _ => None,
    };
    if asked == Some(Frames(0)) {
        let why = "this is less than one frame: record for longer";
        return Err(Failure::bad_request(match arguments.length {
            Some(length) => format!("--for {length} of {card}: {why}"),
            None => format!("--frames 0: {why}"),
        }));
    }
    if arguments.length.is_some_and(|length| length <= Nanos::ZERO) {
        return Err(Failure::bad_request("--for 0s: write how long to record, for instance 10s"));
    }
    // What the card itself names is less, or it would not have been written.
    Ok([asked, card.frames()].into_iter().flatten().min())
}

/// The recording of one of several cards has the card's number in its name.
fn named(to: &Path, number: usize, of: usize) -> PathBuf {
    let mut name = to.as_os_str().to_owned();
    if of > 1 {
        name.push(format!("-card{number}"));
    }
    name.into()
}

fn config(arguments: &RecordArguments, cards: &[(Card, Option<Frames>, Vec<PathBuf>)]) -> Config {
    let pre = arguments.pre.unwrap_or(Frames(0));
    let held = cards.iter().map(|(card, ..)| volume(card.layout(), pre).0).max().unwrap_or(0);
    let (buffer, notify) = sizes(arguments, cards, if arguments.trigger.is_some() { held } else { 0 });
    // Space is reserved for all cards alike: for the least of what they will need.
    let volumes = cards.iter().map(|(card, limit, _)| limit.map(|limit| volume(card.layout(), limit)));
    let volume = volumes.min().flatten();
    let trigger = arguments.trigger.map(|trigger| {
        let shots = arguments.shots.unwrap_or(Shots::Single);
        (trigger, pre, arguments.post.unwrap_or(Frames(0)), shots)
    });
    Config {
        buffer,
        pages: arguments.pages.into(),
        notify,
        on_overrun: arguments.on_overrun.into(),
        depth: usize::from(arguments.depth),
        placement: arguments.placement.into(),
        ways: Ways { uring: arguments.engine == EngineName::IoUring, direct: !arguments.no_direct, ..Ways::default() },
        volume,
        // A card with a rate ends by its own count, to the frame.
        length: arguments.length.filter(|_| cards.iter().any(|(_, limit, _)| limit.is_none())),
        trigger,
        sync_every: arguments.sync,
        ..Config::default()
    }
}

/// Sizes of the buffer of each card and of what comes together in it.
fn sizes(arguments: &RecordArguments, cards: &[(Card, Option<Frames>, Vec<PathBuf>)], held: u64) -> (Bytes, Bytes) {
    let fastest = cards.iter().filter_map(|(card, ..)| Some(card.layout().byte_rate(card.rate()?).bytes_per_s()));
    let fastest = fastest.fold(None, |most: Option<f64>, rate| Some(most.map_or(rate, |most| most.max(rate))));
    let usual = fastest.map_or(NOTIFY_MOST, |rate| power_of_two_below((rate / NOTIFIES_PER_S) as u64));
    let usual = usual.clamp(NOTIFY_LEAST, NOTIFY_MOST);
    match (arguments.buffer, arguments.notify) {
        (Some(buffer), Some(notify)) => (buffer, notify),
        (Some(buffer), None) => {
            // The largest that divides it and leaves room for several.
            let mut notify = usual;
            while notify > NOTIFY_LEAST && (buffer.0 % notify != 0 || buffer.0 / notify < WRITES_IN_BUFFER) {
                notify /= 2;
            }
            (buffer, Bytes(notify))
        }
        (None, notify) => {
            let notify = notify.unwrap_or(Bytes(usual));
            let free = free_memory().map_or(BUFFER.0, |free| free.0 / 4 / cards.len().max(1) as u64);
            let wanted = BUFFER.0.min(free).max(held.saturating_mul(2)).max(notify.0.saturating_mul(WRITES_IN_BUFFER));
            let wanted = if notify.0 == 0 { wanted } else { wanted.div_ceil(notify.0).saturating_mul(notify.0) };
            (Bytes(wanted), notify)
        }
    }
}

fn power_of_two_below(number: u64) -> u64 {
    1 << number.max(1).ilog2()
}

/// Bytes of so many frames, in whole grains.
fn volume(layout: Layout, frames: Frames) -> Bytes {
    let grain = layout.grain();
    Bytes(frames.0.div_ceil(grain.frames).saturating_mul(grain.bytes))
}

/// How long the card that takes longest will take.
fn shown_length(cards: &[(Card, Option<Frames>, Vec<PathBuf>)]) -> Option<Nanos> {
    let lengths = cards.iter().map(|(card, limit, _)| Some(card.rate()?.time_of((*limit)?)));
    lengths.collect::<Option<Vec<_>>>()?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{Arguments, Command};

    /// The sizes for these arguments.
    fn sizes_of(arguments: &str) -> (Bytes, Bytes) {
        let words = format!("hairspring record --to /tmp/x {arguments}");
        let Command::Record(arguments) = Arguments::parse_from(words.split_whitespace()).command else {
            panic!("another command");
        };
        let cards: Vec<_> = arguments.cards.iter().map(|card| (card.clone(), None, Vec::new())).collect();
        sizes(&arguments, &cards, 0)
    }

    #[test]
    fn what_comes_together_is_written_within_a_part_of_a_second_and_divides_the_buffer() {
        for (card, notify) in [
            ("--card virtual:4ch,14bit,40MS/s", Bytes::mib(4)),
            ("--card virtual:1ch,16bit,1MS/s", Bytes::kib(256)),
            ("--card virtual:1ch,16bit,1kS/s", Bytes::kib(4)),
            ("--card unpaced:1ch,16bit", Bytes::mib(4)),
            ("--card unpaced:1ch,16bit --buffer 24MiB", Bytes::mib(4)),
            ("--card unpaced:1ch,16bit --buffer 1MiB", Bytes::kib(256)),
            ("--card virtual:1ch,16bit,1kS/s --card virtual:4ch,14bit,40MS/s", Bytes::mib(4)),
        ] {
            let sizes = sizes_of(card);
            assert_eq!(sizes.1, notify, "{card}");
            assert_eq!(sizes.0.0 % sizes.1.0, 0, "{card}");
        }
        let odd = sizes_of("--card unpaced:1ch,16bit --notify 3MB");
        assert_eq!((odd.0.0 % 3_000_000, odd.1), (0, Bytes(3_000_000)));
    }

    #[test]
    fn space_is_reserved_in_whole_grains() {
        let packed: Card = "unpaced:1ch,12bit,packed".parse().expect("a card");
        assert_eq!(volume(packed.layout(), Frames(3)), Bytes(6));
    }
}
