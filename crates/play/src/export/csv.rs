//! CSV, for small cuts: a row for each frame, with its global index and its time. The heads state names and units.

use std::fmt::Write as _;
use std::path::Path;

use super::output::Output;
use super::piece::Piece;
use super::rows::scales;
use super::values::Number;
use super::{Cut, ExportError, ExportUnits, ExportedPiece};
use hairspring_recording::channels::ChannelDescription;
use hairspring_recording::verify::ReadProgress;
use hairspring_recording::{MissingFrames, Recording};
use hairspring_ring::units::{Frames, SampleRate};
use hairspring_store::Store;

/// Options of a CSV export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Csv {
    /// The exported frames.
    pub cut: Cut,
    /// The most rows; more are an error. CSV is about ten times as large as the recording.
    pub most_frames: Frames,
    /// The numbers.
    pub units: ExportUnits,
}

impl Csv {
    /// A cut of at most a million frames, as codes.
    pub fn of(cut: Cut) -> Self {
        Self { cut, most_frames: Frames(1_000_000), units: ExportUnits::Codes }
    }
}

/// Writes a cut as text. Missing frames are lines that begin with `#`. Times are seconds since the first frame of the
/// source, exact to a picosecond, where the rate is known.
///
/// # Errors
/// See [`ExportError`].
pub fn csv(
    store: &mut dyn Store,
    recording: &Recording,
    options: Csv,
    path: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<ExportedPiece, ExportError> {
    let about = recording.about();
    let piece = Piece::of(recording, options.cut)?;
    let frames = piece.frames_there();
    if frames > options.most_frames.0 {
        return Err(ExportError::Unsuitable(format!(
            "{frames} frames are more than the {} that are written as text: choose a smaller piece, npy or hdf5, or a \
             higher limit",
            options.most_frames.0
        )));
    }
    let scales = match options.units {
        ExportUnits::Codes => None,
        ExportUnits::Channels => Some(scales(recording)?),
    };
    let mut output = Output::create(path)?;
    let mut text = String::from("frame [1]");
    if about.rate.is_some() {
        text.push_str(",time [s]");
    }
    for number in 0..about.layout.channels() {
        let channel = about.channels.get(number as usize);
        let _ = write!(text, ",{}", quoted(&head(recording, number, channel, options.units)));
    }
    text.push('\n');
    let mut missing = piece.missing.iter().peekable();
    let columns = about.layout.channels() as usize;
    let stored = Number::of(about.layout);
    piece.read(store, recording, progress, &mut |first, rows| {
        while let Some(gap) = missing.next_if(|gap| gap.first < first) {
            told(&mut text, gap);
        }
        let (mut frame, mut column) = (first.0, 0);
        let mut begin = |text: &mut String, column: usize| {
            if column == 0 {
                let _ = write!(text, "{frame}");
                if let Some(rate) = about.rate {
                    let _ = write!(text, ",{}", seconds(rate, frame));
                }
                frame += 1;
            }
        };
        match &scales {
            None => stored.texts(rows, &mut |code| {
                begin(&mut text, column);
                let _ = write!(text, ",{code}");
                column = (column + 1) % columns;
                if column == 0 {
                    text.push('\n');
                }
            }),
            Some(scales) => stored.each(rows, &mut |code| {
                begin(&mut text, column);
                let [scale, offset] = scales[column];
                let _ = write!(text, ",{}", code * scale + offset);
                column = (column + 1) % columns;
                if column == 0 {
                    text.push('\n');
                }
            }),
        }
        output.write(text.as_bytes())?;
        text.clear();
        Ok(())
    })?;
    for gap in missing {
        told(&mut text, gap);
    }
    if let Some(frame) = piece.unknown_from() {
        let _ = writeln!(text, "# the recording was cut off: what came from frame {} on is not known", frame.0);
    }
    output.write(text.as_bytes())?;
    output.finish()?;
    Ok(ExportedPiece { first: Frames(piece.first_there()), ..piece.exported() })
}

/// The head of a channel's column: its name, and the unit of its numbers if known.
fn head(recording: &Recording, number: u32, channel: Option<&ChannelDescription>, units: ExportUnits) -> String {
    let nothing = ChannelDescription::default();
    let channel = channel.unwrap_or(&nothing);
    let unnamed = || match recording.is_complex() {
        false => format!("channel {number}"),
        true => format!("channel {} {}", number / 2, if number.is_multiple_of(2) { "I" } else { "Q" }),
    };
    let name = channel.name.clone().unwrap_or_else(unnamed);
    let value = channel.unit.as_deref().unwrap_or("value");
    match (units, channel.scale, channel.offset) {
        (ExportUnits::Channels, ..) => format!("{name} [{value}]"),
        (ExportUnits::Codes, Some(scale), Some(offset)) => {
            format!("{name} [code; {value} = {scale} * code + {offset}]")
        }
        _ => format!(
            "{name} [code{}]",
            channel.unit.as_ref().map_or(String::new(), |unit| format!("; {unit}, scale unknown"))
        ),
    }
}

/// A field of CSV, in quotes if it needs them.
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

fn told(text: &mut String, gap: &MissingFrames) {
    let _ = write!(text, "# frames {} to {} are missing: {}", gap.first.0, gap.end().0.saturating_sub(1), gap.cause);
    if let Some(bounds) = gap.bounds {
        let _ = match bounds.most {
            Frames(u64::MAX) => write!(text, "; in truth {} or more", bounds.least),
            most => write!(text, "; in truth {} to {most}", bounds.least),
        };
    }
    text.push('\n');
}

/// The time of a frame since the first, to a picosecond.
fn seconds(rate: SampleRate, frame: u64) -> String {
    let (frames, seconds) = rate.as_fraction();
    let elapsed = u128::from(frame) * u128::from(seconds);
    let (whole, rest) = (elapsed / u128::from(frames), elapsed % u128::from(frames));
    format!("{whole}.{:012}", rest * 1_000_000_000_000 / u128::from(frames))
}
