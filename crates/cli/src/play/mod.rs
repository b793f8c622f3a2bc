//! `hairspring play`: plays a recording to an output, at its rate or as fast as the output takes it.

mod report;
mod target;

use std::io::Write;

use hairspring_stream::player::{Config, PlayError, Progress, Track, play};
use hairspring_stream::{Frames, SampleRate};

use crate::arguments::{Plain, PlayArguments};
use crate::exit::{Exit, Failure};
use crate::listing::clock;
use crate::live::Live;
use crate::{interrupt, output, recording};

pub(crate) use target::{Rounds, Speed, Target};

pub(crate) fn run(arguments: &PlayArguments) -> Result<Exit, Failure> {
    let stop = interrupt::watch()?;
    let mut store = recording::store();
    let recorded = recording::open(&mut *store, &arguments.recording)?;
    let recorded = recorded.whole().map_err(|error| recording::refused(&error))?;
    let track = Track::of(&recorded);
    let rate = rate(arguments, track.rate)?;
    let sink = arguments.to.open(track.layout, rate)?;
    let config = Config {
        buffer: arguments.buffer.unwrap_or(Config::default().buffer),
        pages: arguments.pages.into(),
        depth: usize::from(arguments.depth),
        preroll_promille: u64::from(arguments.preroll) * 10,
        gaps: arguments.gaps,
        rounds: arguments.rounds.0,
    };
    let mut live = Live::new(arguments.quiet);
    let mut show = |progress: &Progress| live.show(progress.elapsed, || line(progress, &track, rate));
    let played = play(&track, sink, store, &config, &stop, &mut show);
    live.end();
    let played = played.map_err(|error| refused(&error))?;
    let text = match arguments.format {
        Plain::Text => report::text(&played, &track, output::style(false).width),
        Plain::Json => report::json(&played, &track),
    };
    if arguments.to == Target::Stdout {
        // The standard output has the samples. Nobody is left to be told if even this fails.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    } else {
        output::print(&text)?;
    }
    Ok(played.verdict.into())
}

/// The rate of the output; none if it takes what comes.
fn rate(arguments: &PlayArguments, recorded: Option<SampleRate>) -> Result<Option<SampleRate>, Failure> {
    let unknown = || {
        Failure::bad_request(
            "the rate of this recording is not known: say how fast to play it, for instance --rate 1MS/s",
        )
    };
    if let Some(speed) = arguments.speed {
        let faster = speed.of(recorded.ok_or_else(unknown)?);
        return faster
            .map(Some)
            .ok_or_else(|| Failure::bad_request("--speed makes no possible rate of this recording's"));
    }
    match (arguments.rate, &arguments.to) {
        (Some(rate), _) => Ok(Some(rate)),
        (None, Target::Virtual(_)) => recorded.map(Some).ok_or_else(unknown),
        (None, _) => Ok(None),
    }
}

/// How it stands, in a line.
fn line(progress: &Progress, track: &Track, rate: Option<SampleRate>) -> String {
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
            Failure::failed(format!("failed to begin: {error}"))
        }
        PlayError::Store(error) => recording::refused(&error.clone().into()),
        PlayError::Empty | PlayError::Rounds | PlayError::Buffer { .. } => Failure::bad_request(error.to_string()),
    }
}
