//! `hairspring scope --live`: a running recording in the terminal, as one picture, or as JSON.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hairspring_ring::{Container, Frames};
use hairspring_tap::{TapPlace, TapState};
use hairspring_time::Nanos;
use serde_json::{Value, json};

use super::picture;
use super::watch::{POINTS, Watch};
use crate::arguments::Plain;
use crate::exit::{Exit, Failure};
use crate::record::record::levels::decibels;
use crate::{interrupt, output};

/// Length of the watch for a single picture.
const ONE_PICTURE: Nanos = Nanos::from_secs(1);
/// Time between two drawings.
const DRAW_EVERY: Duration = Duration::from_millis(100);
/// Rows of a picture that no terminal shows.
const ROWS: u16 = 40;

/// Parsed arguments.
pub(super) struct Request {
    pub(super) place: TapPlace,
    /// Length of the watch.
    pub(super) length: Option<Nanos>,
    /// The time that the picture covers.
    pub(super) span: Nanos,
    pub(super) format: Plain,
}

pub(super) fn run(request: &Request) -> Result<Exit, Failure> {
    let stop = interrupt::watch()?;
    let mut watch = Watch::open(&request.place, request.span, POINTS)?;
    let title = title(&request.place, &watch);
    let on_terminal = std::io::stdout().is_terminal() && request.format == Plain::Text;
    let length = request.length.or((!on_terminal).then_some(ONE_PICTURE.max(request.span)));
    let mut screen = on_terminal.then(Screen::open).transpose()?;
    let state = follow(&mut watch, length, &stop, &mut |watch| match &mut screen {
        Some(screen) => screen.show(|width, height, colour| picture::draw(watch, &title, width, height, colour)),
        None => Ok(()),
    })?;
    drop(screen);
    match request.format {
        Plain::Text if on_terminal => output::print(&format!("{}\n", picture::counts(&watch)))?,
        Plain::Text => {
            let width = u16::try_from(output::style(false).width).unwrap_or(u16::MAX);
            output::print(&picture::draw(&mut watch, &title, width, ROWS, false))?
        }
        Plain::Json => output::print(&report(request, &mut watch))?,
    };
    match state {
        TapState::Gone => Err(Failure::failed(gone(&request.place))),
        _ => Ok(Exit::Success),
    }
}

/// The message about a recorder that died.
pub(super) fn gone(place: &TapPlace) -> String {
    format!(
        "failed to watch {place} to the end: its recorder has died without ending the recording; `hairspring recover` puts the files in order"
    )
}

/// The first line of every picture.
pub(super) fn title(place: &TapPlace, watch: &Watch) -> String {
    let rate = watch.reader().rate().map_or_else(|| "no clock".to_owned(), |rate| rate.to_string());
    format!("{place}: {}, {rate}", watch.layout())
}

/// Reads until the stream ends, the time is over or `stop` is set, and draws now and then.
fn follow(
    watch: &mut Watch,
    length: Option<Nanos>,
    stop: &AtomicBool,
    draw: &mut dyn FnMut(&mut Watch) -> Result<(), Failure>,
) -> Result<TapState, Failure> {
    let begun = Instant::now();
    let length = length.and_then(|length| Duration::try_from(length).ok());
    let mut drawn = begun;
    loop {
        let came = watch.read();
        // Looked at after the read: all data that were there at the end have been read.
        let state = watch.state();
        if drawn.elapsed() >= DRAW_EVERY {
            drawn = Instant::now();
            draw(watch)?;
        }
        let over = length.is_some_and(|length| begun.elapsed() >= length);
        // Relaxed: a plain flag.
        if over || stop.load(Ordering::Relaxed) {
            return Ok(state);
        }
        if !came {
            if state != TapState::Running && !watch.read() {
                draw(watch)?;
                return Ok(state);
            }
            watch.reader().wait(Frames(1), DRAW_EVERY);
        }
    }
}

/// A terminal's alternate screen, which leaves the contents of the first one as they were.
struct Screen;

impl Screen {
    fn open() -> Result<Self, Failure> {
        // The other screen, without a cursor.
        write("\x1b[?1049h\x1b[?25l")?;
        Ok(Self)
    }

    fn show(&mut self, draw: impl FnOnce(u16, u16, bool) -> String) -> Result<(), Failure> {
        let size = terminal_size::terminal_size_of(std::io::stdout());
        let (width, height) = size.map_or((100, ROWS), |(width, height)| (width.0, height.0));
        let text = draw(width, height, output::style(false).colour);
        // From the first row on, each row cleared to its end, nothing scrolled.
        write(&format!("\x1b[H{}\x1b[J", text.trim_end().replace('\n', "\x1b[K\r\n")))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // The terminal is gone: there is no place to report an error.
        let _ = write("\x1b[?25h\x1b[?1049l");
    }
}

fn write(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(|error| Failure::failed(format!("failed to write to the terminal: {error}")))
}

/// One object: counts, and extremes and level of each channel.
fn report(request: &Request, watch: &mut Watch) -> String {
    let picture = watch.levels();
    let layout = watch.layout();
    let rate = watch.reader().rate();
    let channels: Vec<Value> = (0..layout.channels() as usize)
        .map(|number| {
            let described = watch.channels()[number].clone();
            let level = picture.channels.get(number).filter(|_| picture.frames.0 > 0);
            let spectrum = watch.spectrum(number).zip(rate);
            let peak = spectrum.and_then(|(lines, rate)| {
                let highest = (1..lines.len()).max_by(|one, other| lines[*one].total_cmp(&lines[*other]))?;
                Some((highest as f64 * rate.as_hz() / 2.0 / (lines.len() - 1) as f64, lines[highest]))
            });
            let extremes = watch.trace().points().filter_map(|point| point.extremes.get(number));
            let extremes = extremes.copied().reduce(|all, one| (all.0.min(one.0), all.1.max(one.1)));
            json!({
                "name": described.name,
                "unit": described.unit,
                "min_stored": extremes.map(|extremes| extremes.0),
                "max_stored": extremes.map(|extremes| extremes.1),
                "mean_stored": level.map(|level| level.mean),
                "level_db": level.and_then(|level| decibels(layout, level.mean, level.rms)),
                "peak_hz": peak.map(|peak| peak.0),
                "peak_db": peak.map(|peak| peak.1),
            })
        })
        .collect();
    let (recorder_user, recorder_process) = watch.reader().recorder();
    let value = json!({
        "schema": "hairspring.live/1",
        "tap": request.place.to_string(),
        "state": watch.state().name(),
        "channels": layout.channels(),
        "resolution_bits": layout.resolution_bits(),
        "container": layout.container().to_string(),
        "digital": layout.container() == Container::Bits,
        "rate_hz": rate.map(hairspring_ring::SampleRate::as_hz),
        "buffer_bytes": watch.reader().capacity().0,
        "read_frames": watch.seen().0,
        "missed_frames": watch.reader().missed().0,
        "lost_frames": watch.lost().map(|lost| lost.0),
        "recorder_user": recorder_user,
        "recorder_process": recorder_process,
        "levels": channels,
    });
    format!("{value:#}\n")
}
