//! CSV, for small cuts: a row for each frame, with its global index and its time. The heads say what the codes stand for.

use std::fmt::Write as _;
use std::path::Path;

use super::output::Output;
use super::{Cut, ExportError, gaps_in, parts, read, values};
use hairspring_record::channels::ChannelDescription;
use hairspring_record::recording::Recording;
use hairspring_record::store::Store;
use hairspring_record::verify::ReadProgress;
use hairspring_ring::gap::Gap;
use hairspring_ring::units::{Frames, SampleRate};

/// Options of a CSV export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Csv {
    /// The exported frames.
    pub cut: Cut,
    /// The most rows; more are an error. CSV is about ten times as large as the recording.
    pub most_frames: Frames,
}

impl Csv {
    /// A cut of at most a million frames.
    pub fn of(cut: Cut) -> Self {
        Self { cut, most_frames: Frames(1_000_000) }
    }
}

/// Writes a cut as text; yields the number of rows. Gaps are lines that begin with `#`. Times are seconds since the first
/// frame of the source, exact to a picosecond, where the rate is known.
///
/// # Errors
/// See [`ExportError`].
pub fn csv(
    store: &mut dyn Store,
    recording: &Recording,
    options: Csv,
    path: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Frames, ExportError> {
    let (about, cut) = (recording.about(), options.cut);
    let frames: u64 = parts(recording, cut).iter().map(|part| part.frames.0).sum();
    if frames > options.most_frames.0 {
        return Err(ExportError::Unsuitable(format!(
            "{frames} frames are more than the {} that are written as text: choose a smaller piece, npy or hdf5, or a \
             higher limit",
            options.most_frames.0
        )));
    }
    let mut output = Output::create(path)?;
    let mut text = String::from("frame [1]");
    if about.rate.is_some() {
        text.push_str(",time [s]");
    }
    for channel in 0..about.layout.channels() {
        let _ = write!(text, ",{}", quoted(&head(channel, about.channels.get(channel as usize))));
    }
    text.push('\n');
    let mut gaps = gaps_in(recording, cut).copied().collect::<Vec<Gap>>();
    gaps.sort_by_key(|gap| gap.first);
    let mut gaps = gaps.into_iter().peekable();
    let channels = about.layout.channels() as usize;
    read(store, recording, cut, progress, &mut |first, bytes| {
        while let Some(gap) = gaps.next_if(|gap| gap.first < first) {
            comment(&mut text, &gap);
        }
        let (mut frame, mut column) = (first.0, 0);
        values::texts(about.layout, bytes, &mut |value| {
            if column == 0 {
                let _ = write!(text, "{frame}");
                if let Some(rate) = about.rate {
                    let _ = write!(text, ",{}", seconds(rate, frame));
                }
            }
            let _ = write!(text, ",{value}");
            column += 1;
            if column == channels {
                text.push('\n');
                (frame, column) = (frame + 1, 0);
            }
        });
        output.write(text.as_bytes())?;
        text.clear();
        Ok(())
    })?;
    for gap in gaps {
        comment(&mut text, &gap);
    }
    output.write(text.as_bytes())?;
    output.finish()?;
    Ok(Frames(frames))
}

/// The head of a channel's column: its name, and what a code stands for as far as that is known.
fn head(number: u32, channel: Option<&ChannelDescription>) -> String {
    let nothing = ChannelDescription::default();
    let channel = channel.unwrap_or(&nothing);
    let name = channel.name.clone().unwrap_or_else(|| format!("channel {number}"));
    let value = channel.unit.as_deref().unwrap_or("value");
    match (channel.scale, channel.offset) {
        (Some(scale), Some(offset)) => format!("{name} [code; {value} = {scale} * code + {offset}]"),
        _ => format!(
            "{name} [code{}]",
            channel.unit.as_ref().map_or(String::new(), |unit| format!("; {unit}, scale unknown"))
        ),
    }
}

/// A field of CSV, in quotes if it needs them.
fn quoted(field: &str) -> String {
    if field.contains([',', '"']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field.to_owned() }
}

fn comment(text: &mut String, gap: &Gap) {
    let _ = writeln!(text, "# frames {} to {} are missing: {}", gap.first.0, gap.end().0.saturating_sub(1), gap.cause);
}

/// The time of a frame since the first, to a picosecond.
fn seconds(rate: SampleRate, frame: u64) -> String {
    let (frames, seconds) = rate.as_fraction();
    let elapsed = u128::from(frame) * u128::from(seconds);
    let (whole, rest) = (elapsed / u128::from(frames), elapsed % u128::from(frames));
    format!("{whole}.{:012}", rest * 1_000_000_000_000 / u128::from(frames))
}
