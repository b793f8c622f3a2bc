//! A view for HDF5: a small file whose datasets lie in the data files of the recording (external storage). No sample is
//! copied; programs that read HDF5 read the recording in place.
//!
//! Each run of frames without a gap is a dataset of frames × channels: `data` if there is one run only, else `frames_N`
//! with N the global index of its first frame. The pieces of a striped run are listed one after the other.
//!
//! The view names the data files by absolute paths. It does not check the samples: `verify` does.
//!
//! A copy has the same datasets, with values in the units of the channels, in the file itself.

mod file;

use std::path::Path;

use super::output::Output;
use super::piece::{BlockPiece, Piece, pieces_of};
use super::rows::{RowPiece, Rows};
use super::{ArrayCut, Cut, ExportError, ExportUnits, ExportedPiece, GapChoice, array_facts};
use hairspring_recording::channels::ChannelDescription;
use hairspring_recording::sigmf::About;
use hairspring_recording::verify::ReadProgress;
use hairspring_recording::{MissingFrames, Recording};
use hairspring_ring::layout::Container;
use hairspring_ring::units::Bytes;
use hairspring_store::Store;

use file::{Attribute, Dataset, Element, Place, Value};

/// Most pieces of one dataset: HDF5 keeps their list in one message of 64 KiB.
pub const MOST_PIECES: usize = 2700;

/// An attribute is a message, and a message has less than 64 KiB.
const MOST_ATTRIBUTE: usize = 60_000;

/// Most datasets of one view.
pub const MOST_DATASETS: usize = 1000;

/// The result of writing a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hdf5View {
    /// Datasets.
    pub datasets: usize,
    /// Pieces of data files that they consist of.
    pub pieces: usize,
    /// The frames.
    pub exported: ExportedPiece,
}

/// Writes a view of a recording.
///
/// # Errors
/// See [`ExportError`]; among them recordings that are not in order, or with more gaps or pieces than HDF5 takes.
pub fn hdf5(recording: &Recording, path: &Path) -> Result<Hdf5View, ExportError> {
    if let Some(fault) = recording.faults().first() {
        let remedy = recording.remedy();
        return Err(ExportError::Unsuitable(format!(
            "a view does not check samples, and the recording is not in order ({fault}): {remedy}; or export npy, csv or zarr"
        )));
    }
    let about = recording.about();
    if let Some(data) = recording.members().iter().map(hairspring_recording::Member::data).find(|data| !data.exists()) {
        return Err(ExportError::Unsuitable(format!(
            "a view names the data file, and {} is not there: if the recording is compressed, `hairspring compress --undo` restores it",
            data.display()
        )));
    }
    let (layout, grain) = (about.layout, about.layout.grain());
    let piece = Piece::of(recording, Cut::ALL)?;
    let runs = piece.runs();
    let mut names = vec![String::new(); about.members.len()];
    for member in recording.members() {
        let data = member.data();
        names[member.number] = std::path::absolute(&data).unwrap_or(data).to_string_lossy().into_owned();
    }
    let element = match layout.container() {
        Container::I8 => Element::Integer { bytes: 1, signed: true },
        Container::U8 | Container::Packed12 | Container::Bits => Element::Integer { bytes: 1, signed: false },
        Container::I16 => Element::Integer { bytes: 2, signed: true },
        Container::U16 => Element::Integer { bytes: 2, signed: false },
        Container::I32 => Element::Integer { bytes: 4, signed: true },
        Container::U32 => Element::Integer { bytes: 4, signed: false },
        Container::F32 => Element::Float { bytes: 4 },
        Container::F64 => Element::Float { bytes: 8 },
    };
    let mut lists = vec![Vec::new(); runs.len()];
    let mut number = 0;
    for block in recording.blocks() {
        for BlockPiece { start, first, frames } in pieces_of(recording, block, &piece.range) {
            while runs.get(number).is_some_and(|run| run.end <= first.0) {
                number += 1;
            }
            let Some(list) = lists.get_mut(number) else { break };
            let (offset, length) = (block.file_offset + start as u64, layout.bytes_of(frames).0);
            match list.last_mut() {
                Some(file::Piece { file, offset: at, length: known })
                    if *file == block.member && *at + *known == offset =>
                {
                    *known += length;
                }
                _ => list.push(file::Piece { file: block.member, offset, length }),
            }
        }
    }
    if let Some(most) = lists.iter().map(Vec::len).max().filter(|most| *most > MOST_PIECES) {
        return Err(ExportError::Unsuitable(format!(
            "a run of frames lies in {most} pieces on several disks, and HDF5 takes {MOST_PIECES}: join the recording first"
        )));
    }
    let pieces = lists.iter().map(Vec::len).sum();
    let shape = Shape {
        columns: grain.bytes / element.bytes(),
        frames_per_row: grain.frames,
        element,
        is_big_endian: recording.is_big_endian(),
    };
    let datasets = shape.datasets(&piece, lists.into_iter().map(Place::Elsewhere))?;
    let content = file::encode(&names, &datasets, &attributes(recording, &piece, grain.frames, ExportUnits::Codes));
    let mut output = Output::create(path)?;
    output.write(&content)?;
    output.finish()?;
    let exported = ExportedPiece { first: hairspring_ring::Frames(piece.first_there()), ..piece.exported() };
    Ok(Hdf5View { datasets: datasets.len(), pieces, exported })
}

/// Writes a cut as values in the units of the channels, 64-bit floats, with the datasets of a view.
///
/// # Errors
/// See [`ExportError`]; among them a channel without a scale.
pub fn hdf5_copy(
    store: &mut dyn Store,
    recording: &Recording,
    cut: Cut,
    path: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<Hdf5View, ExportError> {
    let options = ArrayCut { cut, gaps: GapChoice::LeaveOut, units: ExportUnits::Channels };
    let rows = Rows::of(recording, options, false)?;
    let element = Element::Float { bytes: 8 };
    let shape = Shape { columns: rows.columns.into(), frames_per_row: 1, element, is_big_endian: false };
    let datasets = shape.datasets(&rows.piece, std::iter::repeat(Place::Here))?;
    let mut output = Output::create(path)?;
    output.write(&file::encode(&[], &datasets, &attributes(recording, &rows.piece, 1, ExportUnits::Channels)))?;
    rows.read(store, recording, progress, &mut |piece| match piece {
        RowPiece::Recorded(bytes) => output.write(bytes),
        RowPiece::Missing(_) => Ok(()),
    })?;
    output.finish()?;
    Ok(Hdf5View { datasets: datasets.len(), pieces: 0, exported: rows.exported() })
}

/// The shape and type that all datasets share.
struct Shape {
    columns: u64,
    frames_per_row: u64,
    element: Element,
    is_big_endian: bool,
}

impl Shape {
    /// A dataset for each run of frames; one without rows if there is no frame.
    fn datasets(&self, piece: &Piece, places: impl Iterator<Item = Place>) -> Result<Vec<Dataset>, ExportError> {
        let mut runs = piece.runs();
        if runs.len() > MOST_DATASETS {
            return Err(ExportError::Unsuitable(format!(
                "{} runs of frames between gaps are more than the {MOST_DATASETS} datasets of a view: export pieces as npy",
                runs.len()
            )));
        }
        if runs.is_empty() {
            runs.push(piece.range.start..piece.range.start);
        }
        let is_one = runs.len() == 1;
        let places = places.chain(std::iter::repeat(Place::Elsewhere(Vec::new())));
        let dataset = |(run, place): (std::ops::Range<u64>, Place)| Dataset {
            name: if is_one { "data".to_owned() } else { format!("frames_{}", run.start) },
            rows: (run.end - run.start) / self.frames_per_row,
            columns: self.columns,
            element: self.element,
            is_big_endian: self.is_big_endian,
            place,
            attributes: vec![Attribute { name: "first_frame", value: Value::Integer(run.start) }],
        };
        Ok(runs.into_iter().zip(places).map(dataset).collect())
    }
}

/// The attributes of the file.
fn attributes(recording: &Recording, piece: &Piece, frames_per_row: u64, units: ExportUnits) -> Vec<Attribute> {
    let about = recording.about();
    let values = match units {
        ExportUnits::Codes => "codes",
        ExportUnits::Channels => "units",
    };
    let mut attributes = vec![
        Attribute { name: "layout", value: Value::Text(about.layout.to_string()) },
        Attribute { name: "hardware", value: Value::Text(about.hardware.clone()) },
        Attribute { name: "frames_per_row", value: Value::Integer(frames_per_row) },
        Attribute { name: "bytes", value: Value::Integer(Bytes(recording.stored_bytes()).0) },
        Attribute { name: "values", value: Value::Text(values.to_owned()) },
    ];
    if let Some(rate) = about.rate {
        attributes.push(Attribute { name: "sample_rate_hz", value: Value::Float(rate.as_hz()) });
    }
    attributes.extend(of_the_channels(&about.channels));
    attributes.extend(of_time(about));
    attributes.extend(of_what_is_missing(&piece.missing));
    if let Some(frame) = piece.unknown_from() {
        attributes.push(Attribute { name: "unknown_from_frame", value: Value::Integer(frame.0) });
    }
    attributes
}

/// The missing frames: three lists of equal length, if there are some.
fn of_what_is_missing(missing: &[MissingFrames]) -> Vec<Attribute> {
    if missing.is_empty() {
        return Vec::new();
    }
    let all = vec![
        Attribute {
            name: "missing_first_frames",
            value: Value::Integers(missing.iter().map(|one| one.first.0).collect()),
        },
        Attribute { name: "missing_frames", value: Value::Integers(missing.iter().map(|one| one.frames.0).collect()) },
        Attribute {
            name: "missing_causes",
            value: Value::Texts(missing.iter().map(|one| one.cause.name().to_owned()).collect()),
        },
    ];
    match all.iter().all(|attribute| file::encoded(attribute).len() < MOST_ATTRIBUTE) {
        true => all,
        false => vec![Attribute { name: "missing_stretches", value: Value::Integer(missing.len() as u64) }],
    }
}

/// Quantities and units of the channels: lists with a value for each channel. An empty text or a NaN means unknown.
fn of_the_channels(channels: &[ChannelDescription]) -> Vec<Attribute> {
    if channels.is_empty() {
        return Vec::new();
    }
    let text = |name, of: fn(&ChannelDescription) -> &Option<String>| {
        let texts = channels.iter().map(|channel| of(channel).clone().unwrap_or_default()).collect();
        Attribute { name, value: Value::Texts(texts) }
    };
    let number = |name, of: fn(&ChannelDescription) -> Option<f64>| {
        let numbers = channels.iter().map(|channel| of(channel).unwrap_or(f64::NAN)).collect();
        Attribute { name, value: Value::Floats(numbers) }
    };
    let all = vec![
        text("channel_names", |channel| &channel.name),
        text("channel_units", |channel| &channel.unit),
        text("channel_sensors", |channel| &channel.sensor),
        number("channel_scales", |channel| channel.scale),
        number("channel_offsets", |channel| channel.offset),
    ];
    match all.iter().all(|attribute| file::encoded(attribute).len() < MOST_ATTRIBUTE) {
        true => all,
        false => vec![Attribute {
            name: "channels_left_out",
            value: Value::Text(
                "too much for attributes of HDF5: see hairspring:channels in the .sigmf-meta".to_owned(),
            ),
        }],
    }
}

/// When frame 0 was taken, as an interval of the time of day in nanoseconds since 1970.
fn of_time(about: &About) -> Vec<Attribute> {
    let Some(ends) = array_facts::frame0(about) else { return Vec::new() };
    let names = ["frame0_earliest_ns", "frame0_latest_ns"];
    let attribute =
        |(name, end): (&'static str, i64)| Some(Attribute { name, value: Value::Integer(u64::try_from(end).ok()?) });
    names.into_iter().zip(ends).filter_map(attribute).collect()
}
