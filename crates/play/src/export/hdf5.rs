//! A view for HDF5: a small file whose datasets lie in the data files of the recording (external storage). No sample is
//! copied; programs that read HDF5 read the recording in place.
//!
//! Each run of frames without a gap is a dataset of frames × channels: `data` if there is one run only, else `frames_N` with N
//! the global index of its first frame. The pieces of a striped run are listed one after the other.
//!
//! The view names the data files by absolute paths. It does not check the samples: `verify` does.

mod file;

use std::path::Path;

use super::output::Output;
use super::{Cut, ExportError, array_facts, parts, pieces_of};
use hairspring_record::channels::ChannelDescription;
use hairspring_record::recording::{Files, Recording};
use hairspring_record::sigmf::About;
use hairspring_ring::layout::Container;
use hairspring_ring::units::Bytes;

use file::{Attribute, Dataset, Element, Piece, Value};

/// Most pieces of one dataset: HDF5 keeps their list in one message of 64 KiB.
pub const MOST_PIECES: usize = 2700;

/// An attribute is a message, and a message has less than 64 KiB.
const MOST_ATTRIBUTE: usize = 60_000;

/// Most datasets of one view.
pub const MOST_DATASETS: usize = 1000;

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hdf5View {
    /// Datasets.
    pub datasets: usize,
    /// Pieces of data files that they consist of.
    pub pieces: usize,
}

/// Writes a view of a recording.
///
/// # Errors
/// See [`ExportError`]; among them recordings that are not in order, and such with more gaps or pieces than HDF5 takes.
pub fn hdf5(recording: &Recording, path: &Path) -> Result<Hdf5View, ExportError> {
    if let Some(fault) = recording.faults().first() {
        let remedy = recording.remedy();
        return Err(ExportError::Unsuitable(format!("the recording is not in order ({fault}): {remedy}")));
    }
    let about = recording.about();
    if let Some(base) = about.members.iter().find(|base| !Files::of(base).data.exists()) {
        return Err(ExportError::Unsuitable(format!(
            "a view names the data file, and {} is not there: if the recording is compressed, `hairspring compress --undo` restores it",
            Files::of(base).data.display()
        )));
    }
    let (layout, grain) = (about.layout, about.layout.grain());
    let runs = parts(recording, Cut::ALL);
    if runs.len() > MOST_DATASETS {
        return Err(ExportError::Unsuitable(format!(
            "{} runs of frames between gaps are more than the {MOST_DATASETS} datasets of a view: export pieces as npy",
            runs.len()
        )));
    }
    let names: Vec<String> = about
        .members
        .iter()
        .map(|base| {
            let data = Files::of(base).data;
            std::path::absolute(&data).unwrap_or(data).to_string_lossy().into_owned()
        })
        .collect();
    let element = match layout.container() {
        Container::I8 => Element::Integer { bytes: 1, signed: true },
        Container::U8 | Container::Packed12 | Container::Bits => Element::Integer { bytes: 1, signed: false },
        Container::I16 => Element::Integer { bytes: 2, signed: true },
        Container::U16 => Element::Integer { bytes: 2, signed: false },
        Container::I32 => Element::Integer { bytes: 4, signed: true },
        Container::F32 => Element::Float32,
    };
    let columns = grain.bytes / element.bytes();
    let mut datasets: Vec<Dataset> = Vec::with_capacity(runs.len());
    for run in &runs {
        datasets.push(Dataset {
            name: if runs.len() == 1 { "data".to_owned() } else { format!("frames_{}", run.first.0) },
            rows: run.frames.0 / grain.frames,
            columns,
            element,
            pieces: Vec::new(),
            attributes: vec![Attribute { name: "first_frame", value: Value::Integer(run.first.0) }],
        });
    }
    let mut pieces = 0;
    let mut number = 0;
    for block in recording.blocks() {
        for (start, part) in pieces_of(recording, block, Cut::ALL) {
            while runs.get(number).is_some_and(|run| run.first.0 + run.frames.0 <= part.first.0) {
                number += 1;
            }
            let Some(dataset) = datasets.get_mut(number) else { break };
            let (offset, length) = (block.file_offset + start as u64, layout.bytes_of(part.frames).0);
            match dataset.pieces.last_mut() {
                Some(last) if last.file == block.member && last.offset + last.length == offset => last.length += length,
                _ => {
                    dataset.pieces.push(Piece { file: block.member, offset, length });
                    pieces += 1;
                }
            }
        }
    }
    if let Some(most) = datasets.iter().map(|dataset| dataset.pieces.len()).max().filter(|most| *most > MOST_PIECES) {
        return Err(ExportError::Unsuitable(format!(
            "a run of frames lies in {most} pieces on several disks, and HDF5 takes {MOST_PIECES}: join the recording first"
        )));
    }
    let mut attributes = vec![
        Attribute { name: "layout", value: Value::Text(layout.to_string()) },
        Attribute { name: "hardware", value: Value::Text(about.hardware.clone()) },
        Attribute { name: "frames_per_row", value: Value::Integer(grain.frames) },
        Attribute { name: "bytes", value: Value::Integer(Bytes(recording.stored_bytes()).0) },
    ];
    if let Some(rate) = about.rate {
        attributes.push(Attribute { name: "sample_rate_hz", value: Value::Float(rate.as_hz()) });
    }
    attributes.extend(of_the_channels(&about.channels));
    attributes.extend(of_time(about));
    let content = file::encode(&names, &datasets, &attributes);
    let mut output = Output::create(path)?;
    output.write(&content)?;
    output.finish()?;
    Ok(Hdf5View { datasets: datasets.len(), pieces })
}

/// What the channels measure: lists with a value for each channel. An empty text or a NaN means unknown.
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
