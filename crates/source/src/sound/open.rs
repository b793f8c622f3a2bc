//! Opening a stream: from its description to a configured, prepared one.

use std::io;
use std::path::{Path, PathBuf};

use hairspring_ring::units::Frames;
use zerocopy::FromZeros as _;

use super::abi::{self, CardInfo, PcmInfo, SwParams, text};
use super::card::{SoundCard, SoundPlace};
use super::input::SoundInput;
use super::kernel::Node;
use super::pcm::Pcm;
use super::{holder, mixer, setup};
use crate::card::CardError;

const DEVICES: &str = "/dev/snd";
const PROC: &str = "/proc/asound";

const NO_CARD: &str = "name a card of /proc/asound/cards; load its driver; be in the group audio, or root";
const BUSY: &str = "end that program, or let it release the card: a desktop's sound server does so when it is stopped";
const SETUP: &str = "write what the card has; `cat /proc/asound/card*/stream*` or its manual says that";

/// The direction of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Record,
    Play,
}

impl Direction {
    /// The letter at the end of the file's name.
    pub(super) fn letter(self) -> char {
        match self {
            Self::Record => 'c',
            Self::Play => 'p',
        }
    }
}

impl SoundCard {
    /// Opens it for recording. It ends after `limit` frames, or after its own limit if that is less.
    ///
    /// # Errors
    /// The system's refusal with a remedy. It names the program that has the card, or the settings that the card offers
    /// instead.
    pub fn open(&self, limit: Option<Frames>) -> Result<SoundInput, CardError> {
        let (pcm, hardware) = self.opened(Direction::Record)?;
        let frames = [self.frames(), limit].into_iter().flatten().min();
        Ok(SoundInput::new(pcm, self.layout(), hardware, frames))
    }

    /// Opens it for recording without a source: a prepared stream, and the name of the device with the state of its
    /// mixer.
    ///
    /// # Errors
    /// As [`SoundCard::open`].
    pub fn open_input(&self) -> Result<(Pcm, String), CardError> {
        self.opened(Direction::Record)
    }

    /// Opens it for playing: a prepared stream, and the name of the device with the state of its mixer.
    ///
    /// # Errors
    /// As [`SoundCard::open`].
    pub fn open_output(&self) -> Result<(Pcm, String), CardError> {
        self.opened(Direction::Play)
    }

    fn opened(&self, direction: Direction) -> Result<(Pcm, String), CardError> {
        let place = &self.place;
        let refused = |remedy| move |error| refusal(place, error, remedy);
        let number = number(&place.card).map_err(refused(NO_CARD))?;
        let control =
            Node::open(&Path::new(DEVICES).join(format!("controlC{number}")), true).map_err(refused(NO_CARD))?;
        let mut card = CardInfo::new_zeroed();
        control.exchange(&abi::CARD_INFO, &mut card).map_err(refused(NO_CARD))?;
        if let Some(subdevice) = place.subdevice {
            let mut wanted = i32::try_from(subdevice).unwrap_or(i32::MAX);
            control.exchange(&abi::PREFER_SUBDEVICE, &mut wanted).map_err(refused(NO_CARD))?;
        }
        let file = format!("pcmC{number}D{}{}", place.device, direction.letter());
        let opened = Node::open(&PathBuf::from(DEVICES).join(file), true);
        let node = opened.map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY) => busy(place, number, direction, error),
            _ => refusal(place, error, NO_CARD),
        })?;
        let mut info = PcmInfo::new_zeroed();
        node.exchange(&abi::PCM_INFO, &mut info).map_err(refused(NO_CARD))?;
        if place.subdevice.is_some_and(|wanted| wanted != info.subdevice) {
            return Err(busy(place, number, direction, io::Error::from_raw_os_error(libc::EBUSY)));
        }
        let pcm = self.set_up(node).map_err(refused(SETUP))?;
        let mixer = mixer::state(&control, direction == Direction::Record).unwrap_or_else(|error| error.to_string());
        let setup = pcm.setup();
        let hardware = format!(
            "sound card {} ({}), {} {place}, subdevice {}; {} of {} bits used; buffer {}, period {} frames; mixer: {mixer}",
            text(&card.id),
            text(&card.long_name),
            text(&info.name),
            info.subdevice,
            setup.significant_bits,
            self.layout().resolution_bits(),
            setup.buffer.0,
            setup.period.0,
        );
        Ok((pcm, hardware))
    }

    /// Sets a stream up so that the kernel never stops it.
    fn set_up(&self, node: Node) -> io::Result<Pcm> {
        let mut params = setup::negotiate(&self.wish, &mut |params| node.exchange(&abi::HW_REFINE, params))?;
        params.requested = u32::MAX;
        node.exchange(&abi::HW_PARAMS, &mut params)?;
        let (_, buffer) = params.intervals[abi::BUFFER_SIZE].ends();
        let mut software = SwParams::new_zeroed();
        software.tstamp_mode = abi::TSTAMP_ENABLE;
        (software.proto, software.tstamp_type) = (abi::VERSION, abi::TSTAMP_MONOTONIC);
        (software.period_step, software.xfer_align) = (1, 1);
        software.avail_min = params.intervals[abi::PERIOD_SIZE].ends().1.into();
        (software.start_threshold, software.stop_threshold) = (u64::from(buffer), u64::from(buffer));
        // The kernel returns the boundary at which its pointers wrap; as the stop threshold it keeps the stream from
        // being stopped.
        node.exchange(&abi::SW_PARAMS, &mut software)?;
        let setup = setup::checked(&self.wish, &params, software.boundary)?;
        (software.start_threshold, software.stop_threshold) = (software.boundary, software.boundary);
        // A playing stream that runs dry plays silence.
        (software.silence_threshold, software.silence_size) = (0, software.boundary);
        node.exchange(&abi::SW_PARAMS, &mut software)?;
        node.command(abi::PREPARE)?;
        Ok(Pcm::kernel(node, setup))
    }
}

/// The number of a card that is named by number or id.
fn number(card: &str) -> io::Result<u32> {
    if let Ok(number) = card.parse() {
        return Ok(number);
    }
    let link = std::fs::read_link(Path::new(PROC).join(card))?;
    let number = link.to_string_lossy().strip_prefix("card").and_then(|number| number.parse().ok());
    number.ok_or_else(|| io::ErrorKind::NotFound.into())
}

fn refusal(place: &SoundPlace, error: io::Error, remedy: &'static str) -> CardError {
    CardError::Open { what: format!("alsa {place}"), error, remedy }
}

fn busy(place: &SoundPlace, card: u32, direction: Direction, error: io::Error) -> CardError {
    let holders = holder::of(Path::new("/proc"), card, place.device, direction);
    let by = if holders.is_empty() { "a program that cannot be seen".to_owned() } else { holders.join(", ") };
    CardError::Open { what: format!("alsa {place}, held by {by}"), error, remedy: BUSY }
}
