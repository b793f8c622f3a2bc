//! `hairspring record`: records cards to disk and accounts for every byte.

pub(crate) mod card;
mod channels;
pub(crate) mod json;
pub(crate) mod levels;
pub(crate) mod progress;
mod request;
mod segments;
mod taps;
pub(crate) mod text;
mod threads;
mod trigger_signal;
mod unit;

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::{Args, ValueEnum};
use hairspring_device::ReferenceDescription;
use hairspring_record::recorder::RecorderError;
use hairspring_record::session;
use hairspring_record::session::{RecordError, Recorded};
use hairspring_recording::RecordingVerdict;
use hairspring_ring::Frames;
use hairspring_ring::OnOverrun;
use hairspring_source::trigger::{Shots, Trigger};
use hairspring_tap::TapPlace;
use hairspring_time::Nanos;

use crate::arguments::{Plain, duration, parsed};
use crate::exit::{Exit, Failure};
use crate::page::{Example, Page};
use crate::progress_line::ProgressLine;
use crate::record::data_path::DataPath;
use crate::record::{FILES, frames, recording};
use crate::{interrupt, output};
use card::AnyCard;
use channels::ChannelArguments;
use levels::Levels;
use request::Request;
use segments::SegmentArguments;
use taps::Taps;
use threads::ThreadArguments;
use trigger_signal::TriggerSignal;

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "record",
    examples: &[
        Example {
            does: "Record a virtual card for two seconds",
            line: "hairspring record --card virtual:4ch,14bit,1MS/s --to run1 --for 2s",
        },
        Example {
            does: "Record to two disks at once, and continue after a loss with a declared gap",
            line: "hairspring record --card virtual:4ch,14bit,1MS/s --to disk1/run2,disk2/run2 --for 2s --on-overrun gap",
        },
        Example {
            does: "Keep 1000 frames before and 4000 after each of ten triggers",
            line: "hairspring record --card virtual:1ch,16bit,1MS/s --to shots --trigger 'rising:ch0@0.5' --pre 1000 --post 4000 --shots 10",
        },
        Example {
            does: "Say what a channel measures, so that exports and Python know volts or pascals",
            line: "hairspring record --card virtual:1ch,14bit,1MS/s --to run4 --for 1s --channel 0=name:pressure,unit:kPa,scale:0.02",
        },
        Example {
            does: "Let other programs look on while it records: scope --live adc, or hairspring.tap('adc') in Python",
            line: "hairspring record --card virtual:4ch,14bit,1MS/s --to run5 --for 2s --tap adc",
        },
        Example {
            does: "Record in segments of a second, and keep the newest ten",
            line: "hairspring record --card virtual:1ch,14bit,1MS/s --to run7 --for 3s --segment 1s --keep 10",
        },
        Example {
            does: "Keep the newest ten segments, and for ever those within 10 ms of a peak",
            line: "hairspring record --card virtual:1ch,14bit,1MS/s --to run8 --for 3s --segment 1s --keep 10 --keep-on 'level:ch0>0.9' --pre 10000 --post 10000",
        },
        Example {
            does: "Print a systemd unit that records so for ever, and goes on after a restart",
            line: "hairspring record --card virtual:1ch,14bit,1MS/s --to run6 --segment 10min --keep-time 7d --unit",
        },
        Example {
            does: "Compare the computer's clock and the card with the pulses of a receiver",
            line: "hairspring record --card virtual:1ch,14bit,1MS/s --to run9 --for 1h --reference pps:/dev/pps0,late=20us",
        },
        Example {
            does: "Record what a sender streams by UDP, and give up if it sends nothing for half a minute",
            line: "hairspring record --card udp:0.0.0.0:5000,4ch,16bit --to run3 --wait 30s",
        },
    ],
    files: &[
        FILES[0],
        FILES[1],
        FILES[2],
        ("$XDG_RUNTIME_DIR/hairspring/NAME.tap", "the socket of --tap; without the variable in /run/hairspring"),
        ("/proc/sys/vm/nr_hugepages", "how many 2 MiB pages are reserved; 128 hold a buffer of 256 MiB"),
    ],
    environment: &[("XDG_RUNTIME_DIR", "where the sockets of taps lie, in its folder hairspring")],
};

const CARD: &str = "Card to record, for instance virtual:4ch,14bit,40MS/s, comedi:/dev/comedi0,2ch,10kS/s or alsa:hw:0,0,2ch,16bit,48kS/s. May be repeated: \
                    each card becomes a recording of its own, NAME-card0, NAME-card1, ...";

/// Record cards to disk, and account for every byte
///
/// The report gives the stored and the lost data, the causes of losses, and what would survive a power cut. Ctrl-C ends
/// the recording in order.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[arg(long = "card", value_name = "CARD", required = true, value_parser = parsed::<AnyCard>)]
    #[arg(help = CARD, long_help = card::help(CARD))]
    #[arg(allow_hyphen_values = true)]
    cards: Vec<AnyCard>,
    /// Name of the recording in an existing folder, without an ending. Several folders make a stripe
    #[arg(long, value_name = "DIR/NAME,...", value_delimiter = ',', required = true)]
    to: Vec<PathBuf>,
    /// How long to record, counted from the first data [default: until the card ends, or Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    length: Option<Nanos>,
    /// Number of frames of each card; a frame is one sample of every channel
    #[arg(long, value_name = "N", value_parser = frames, conflicts_with = "length", allow_hyphen_values = true)]
    frames: Option<Frames>,
    /// How long to wait for the first data; if none come, end with exit code 7 [default: until Ctrl-C]
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    wait: Option<Nanos>,
    /// What to do when the disks are too slow and the buffer is full
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = OverrunName::Stop)]
    on_overrun: OverrunName,
    /// Let other processes look on at the ring, read-only, under this name or through the socket of this path:
    /// `scope --live NAME`
    ///
    /// The socket is NAME.tap in $XDG_RUNTIME_DIR/hairspring, or in /run/hairspring without that variable. With several
    /// cards the names are NAME-card0, NAME-card1, ... Readers cost the recording nothing, whatever they do.
    #[arg(long, value_name = "NAME", value_parser = parsed::<TapPlace>)]
    tap: Option<TapPlace>,
    /// Clock outside the kernel with which to compare CLOCK_MONOTONIC: ptp:/dev/ptp0, or pulses, one each second:
    /// pps:/dev/pps0,late=20us
    ///
    /// It is read before the start, at spans that double up to a minute, and at the end; of pulses each one counts.
    /// `hairspring verify` shows how the kernel's clock and the card ran against it. The time of day and the samples
    /// stay as they are. A clock that goes away, steps or gives nothing is noted, and ends nothing.
    #[arg(long, value_name = "CLOCK", value_parser = parsed::<ReferenceDescription>)]
    reference: Option<ReferenceDescription>,
    /// Show the level of every channel in the progress line
    #[arg(long, conflicts_with = "quiet")]
    monitor: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    /// Also show what is normal: the ways to the disk, the pages, the processor time
    #[arg(long)]
    verbose: bool,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
    /// Keep only the frames around a trigger: level:ch0>0.5, level:ch0<-0.5, rising:ch0@0.5, falling:ch0@0.5~0.1, or
    /// external for the signal USR1
    #[arg(long, value_name = "TRIGGER", value_parser = parsed::<Trigger>, allow_hyphen_values = true)]
    #[arg(requires = "post", group = "event", help_heading = "Trigger")]
    trigger: Option<Trigger>,
    /// Frames to keep before each trigger [default: 0]
    #[arg(long, value_name = "N", value_parser = frames, requires = "event", allow_hyphen_values = true)]
    #[arg(help_heading = "Trigger")]
    pre: Option<Frames>,
    /// Frames to keep from each trigger on
    #[arg(long, value_name = "N", value_parser = frames, requires = "event", allow_hyphen_values = true)]
    #[arg(help_heading = "Trigger")]
    post: Option<Frames>,
    /// Number of shots: single, repeated, or a number [default: single]
    #[arg(long, value_name = "N", value_parser = parsed::<Shots>, requires = "trigger", allow_hyphen_values = true)]
    #[arg(help_heading = "Trigger")]
    shots: Option<Shots>,
    #[command(flatten)]
    channels: ChannelArguments,
    #[command(flatten)]
    segments: SegmentArguments,
    #[command(flatten)]
    threads: ThreadArguments,
    #[command(flatten)]
    data_path: DataPath,
}

/// The policy for data that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OverrunName {
    /// End at the first loss and keep everything before it
    Stop,
    /// Drop the newest data, declare the gap and continue
    Gap,
    /// Drop the oldest data, declare the gap and continue
    Overwrite,
    /// Make the card wait; refused for a card with a clock
    Block,
}

impl From<OverrunName> for OnOverrun {
    fn from(name: OverrunName) -> Self {
        match name {
            OverrunName::Stop => Self::Stop,
            OverrunName::Gap => Self::Gap,
            OverrunName::Overwrite => Self::Overwrite,
            OverrunName::Block => Self::Block,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let request = Request::new(arguments)?;
    if arguments.segments.unit {
        output::print(&unit::text(arguments)?)?;
        return Ok(Exit::Success);
    }
    // Before any file is opened, so that the first Ctrl-C always ends the recording in order, and the second at once.
    let stop = interrupt::watch()?;
    let mut external = request.is_triggered_from_outside().then(TriggerSignal::listen).transpose()?;
    let mut taps = arguments.tap.as_ref().map(|place| Taps::bind(place, arguments.cards.len())).transpose()?;
    let inputs = request.open()?;
    let config = request.config_beside(arguments.reference.as_ref())?;
    let mut live = ProgressLine::new(arguments.quiet);
    let mut levels = arguments.monitor.then(Levels::default);
    let mut warned = false;
    let recorded = session::record(inputs, &config, &stop, &mut |cards| {
        if let Some(external) = &mut external {
            external.hand_over(cards);
        }
        if let Some(taps) = &mut taps {
            taps.hand_over(cards);
        }
        let Some(first) = cards.first() else { return };
        if !warned && let Some(free) = cards.iter().filter_map(|card| card.low_space).min() {
            warned = true;
            arguments.segments.warning(free).iter().for_each(|warning| live.say(warning));
        }
        live.show(first.elapsed, || {
            let standing = progress::line(cards, request.length(), request.config().wait);
            levels.as_mut().map_or_else(|| standing.clone(), |levels| format!("{standing}  {}", levels.look(cards)))
        });
    });
    live.end();
    taps.into_iter().for_each(Taps::end);
    let recorded = recorded.map_err(refused)?;
    output::print(&match arguments.format {
        Plain::Text => text::report(&recorded, &request, arguments.verbose, output::style(false).width),
        Plain::Json => json::report(&recorded, &request),
    })?;
    // Relaxed: a plain flag.
    Ok(match waited_in_vain(arguments, &recorded, stop.load(Ordering::Relaxed)) {
        true => Exit::NoData,
        false if is_out_of_space(&recorded) => Exit::OutOfSpace,
        false if ended_early(&recorded) && worst(&recorded) <= RecordingVerdict::Stopped => Exit::Failed,
        false => worst(&recorded).into(),
    })
}

/// Whether a series ended before its time, because its next segment could not be made.
fn ended_early(recorded: &[Recorded]) -> bool {
    recorded.iter().any(|card| card.series.as_ref().is_some_and(|series| series.stopped.is_some()))
}

/// Whether too little free space ended the recording of a card, and nothing was lost.
fn is_out_of_space(recorded: &[Recorded]) -> bool {
    let ended = recorded.iter().any(|card| card.series.as_ref().is_some_and(|series| series.is_out_of_space));
    ended && worst(recorded) <= RecordingVerdict::Stopped
}

/// Whether the time of `--wait` passed before the first data of a card came.
fn waited_in_vain(arguments: &Arguments, recorded: &[Recorded], was_stopped: bool) -> bool {
    let nothing_came = recorded.iter().any(|card| card.began.is_none());
    arguments.wait.is_some() && !was_stopped && nothing_came && worst(recorded) == RecordingVerdict::Stopped
}

/// The worst verdict of all cards.
fn worst(recorded: &[Recorded]) -> RecordingVerdict {
    recorded.iter().map(|card| card.outcome.verdict).max().unwrap_or(RecordingVerdict::Complete)
}

/// The failure with the exit code of the error.
pub(crate) fn refused(error: RecordError) -> Failure {
    match &error {
        RecordError::Memory(_) | RecordError::Calibration(_) | RecordError::Thread(_) => {
            Failure::failed(format!("failed to start recording: {error}"))
        }
        RecordError::Recorder(RecorderError::Owned(error)) => recording::owned(error),
        RecordError::Panicked(..) => Failure::failed(error.to_string()),
        RecordError::Recorder(RecorderError::Store(refused)) => match refused.errno.kind() {
            ErrorKind::AlreadyExists => Failure::bad_request(error.to_string()),
            ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::StorageFull
            | ErrorKind::QuotaExceeded
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::FileTooLarge
            | ErrorKind::InvalidFilename => Failure::bad_request(format!("failed to {refused}")),
            _ => Failure::failed(format!("failed to {refused}")),
        },
        _ => Failure::bad_request(error.to_string()),
    }
}
