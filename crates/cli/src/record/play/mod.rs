//! `hairspring play`: plays a recording to an output, at its rate or as fast as the output takes it.

mod report;
mod target;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use hairspring_play::player::{PlayConfig, PlayError, PlayProgress, Track, play};
use hairspring_play::sink::GapFill;
use hairspring_record::recorder::MOST_DEPTH;
use hairspring_ring::{Bytes, Frames, SampleRate};

use crate::arguments::{Plain, number, parsed};
use crate::exit::{Exit, Failure};
use crate::listing::clock;
use crate::page::{Example, Page};
use crate::progress_line::ProgressLine;
use crate::record::data_path::PagesName;
use crate::record::recording;
use crate::{interrupt, output};

pub(crate) use target::{Rounds, Speed, Target};

/// Examples and files, for help and manual.
pub(crate) const PAGE: Page = Page {
    name: "play",
    examples: &[
        Example {
            does: "Play it twice as fast as it was recorded, to an output with a clock",
            line: "hairspring play run1 --to virtual:fifo=4MiB --speed 2",
        },
        Example { does: "Give the samples to another program", line: "hairspring play run1 --to stdout | sha256sum" },
    ],
    files: &super::FILES,
    environment: &[],
};

/// Play a recording, at its own rate or as fast as possible
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Recording, with or without an ending. Name the parts of a stripe that were moved as well
    #[arg(value_name = "RECORDING", required = true)]
    recording: Vec<PathBuf>,
    /// Output: null, file:PATH, stdout, alsa:hw:0,0 for a sound card, or virtual:fifo=4MiB, which has a clock, too
    #[arg(long, value_name = "OUTPUT", value_parser = parsed::<Target>)]
    to: Target,
    /// Frames per second, for instance 40MS/s [default: the recorded rate for virtual and alsa, as fast as possible for
    /// the others]
    #[arg(long, value_name = "RATE", value_parser = parsed::<SampleRate>, allow_hyphen_values = true)]
    rate: Option<SampleRate>,
    /// Multiple of the recorded rate, for instance 0.5 or 2
    #[arg(long, value_name = "FACTOR", value_parser = parsed::<Speed>, conflicts_with = "rate")]
    #[arg(allow_hyphen_values = true)]
    speed: Option<Speed>,
    /// What to play where the recording has a gap: zero, hold (the last frame), or skip
    #[arg(long, value_name = "WHAT", value_parser = parsed::<GapFill>, default_value = "zero")]
    gaps: GapFill,
    /// How often to play it: a number, or forever
    #[arg(long = "loop", value_name = "N", value_parser = parsed::<Rounds>, default_value = "1")]
    #[arg(allow_hyphen_values = true)]
    rounds: Rounds,
    /// Fill of the buffer, in percent, at which the clock starts
    #[arg(long, value_name = "PERCENT", default_value_t = 100, allow_negative_numbers = true)]
    #[arg(value_parser = number::<u8>(0, 100))]
    preroll: u8,
    /// Size of the buffer between the disks and the output [default: 256MiB]
    #[arg(long, value_name = "SIZE", value_parser = parsed::<Bytes>, allow_hyphen_values = true)]
    buffer: Option<Bytes>,
    /// Pages of the buffer. Falls back to smaller pages, and reports it, if unavailable
    #[arg(long, value_enum, default_value_t = PagesName::Huge2m)]
    pages: PagesName,
    /// Most reads under way at once
    #[arg(long, value_name = "N", default_value_t = 8, allow_negative_numbers = true)]
    #[arg(value_parser = number::<u16>(1, MOST_DEPTH as u16))]
    depth: u16,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
    /// Also show what is normal: the ways to the disk, the pages, the processor time
    #[arg(long)]
    verbose: bool,
    /// Format of the report; it goes to the standard error if the samples go to the standard output
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    format: Plain,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let stop = interrupt::watch()?;
    let mut store = recording::store();
    let recorded = recording::open(&mut *store, &arguments.recording)?;
    let recorded = recorded.whole().map_err(|error| recording::refused(&error))?;
    let owner = recorded.holder().map(|holder| format!("the recording {holder}: this is what was in the files\n"));
    let track = Track::of(&recorded);
    let rate = rate(arguments, track.rate)?;
    let sink = arguments.to.open(track.layout, rate)?;
    let config = PlayConfig {
        buffer: arguments.buffer.unwrap_or(PlayConfig::default().buffer),
        pages: arguments.pages.into(),
        depth: usize::from(arguments.depth),
        preroll_promille: u64::from(arguments.preroll) * 10,
        gaps: arguments.gaps,
        rounds: arguments.rounds.0,
    };
    let mut live = ProgressLine::new(arguments.quiet);
    let mut show = |progress: &PlayProgress| live.show(progress.elapsed, || line(progress, &track, rate));
    let played = play(&track, sink, store, &config, &stop, &mut show);
    live.end();
    let played = played.map_err(|error| refused(&error))?;
    let text = match arguments.format {
        Plain::Text => {
            let report = report::text(&played, &track, arguments.verbose, output::style(false).width);
            format!("{report}{}", owner.unwrap_or_default())
        }
        Plain::Json => report::json(&played, &track),
    };
    if arguments.to == Target::Stdout {
        // The standard output has the samples. A failure here cannot be reported anywhere.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    } else {
        output::print(&text)?;
    }
    Ok(played.verdict.into())
}

/// The rate of the output; none to play as fast as the output takes data.
fn rate(arguments: &Arguments, recorded: Option<SampleRate>) -> Result<Option<SampleRate>, Failure> {
    let unknown = || Failure::bad_request("the recording does not state its rate: set one, for instance --rate 1MS/s");
    if let Some(speed) = arguments.speed {
        let faster = speed.of(recorded.ok_or_else(unknown)?);
        return faster.map(Some).ok_or_else(|| {
            Failure::bad_request("--speed: the rate would be out of range; write a factor closer to 1")
        });
    }
    match (arguments.rate, &arguments.to) {
        (Some(rate), _) => Ok(Some(rate)),
        (None, Target::Virtual(_) | Target::Sound(_)) => recorded.map(Some).ok_or_else(unknown),
        (None, _) => Ok(None),
    }
}

/// The progress, in a line.
fn line(progress: &PlayProgress, track: &Track, rate: Option<SampleRate>) -> String {
    let counters = &progress.counters;
    let output = counters.recorded_frames + counters.filled_frames;
    let mut parts = vec![clock(progress.elapsed)];
    if !progress.playing {
        parts[0] = "filling the buffer".to_owned();
    }
    if let Some(length) = progress.length {
        parts.push(format!("{} %", u128::from(output) * 100 / u128::from(length.0.max(1))));
    }
    let megabytes = track.layout.bytes_of(Frames(output)).0 as f64 / 1e6;
    let seconds = progress.elapsed.as_secs_f64();
    let reached = if seconds > 0.0 { megabytes / seconds } else { 0.0 };
    parts.push(match rate {
        Some(rate) => format!("{reached:.1} of {:.1} MB/s", track.layout.byte_rate(rate).bytes_per_s() / 1e6),
        None => format!("{reached:.1} MB/s"),
    });
    parts.push(format!("buffer {} %", progress.ring.promille() / 10));
    parts.push(match counters.missing_frames {
        0 => "late 0".to_owned(),
        late => format!("LATE {late} frames"),
    });
    parts.join("  ")
}

fn refused(error: &PlayError) -> Failure {
    match error {
        PlayError::Memory(_) | PlayError::Ring(_) | PlayError::Thread(_) => {
            Failure::failed(format!("failed to start playing: {error}"))
        }
        PlayError::Store(error) => recording::refused(&error.clone().into()),
        PlayError::Empty | PlayError::Rounds | PlayError::Buffer { .. } => Failure::bad_request(error.to_string()),
    }
}
