//! Reads SigMF of other programs, as far as playing and exporting the samples needs it.

use serde::Deserialize;

use super::SigmfError;
use hairspring_ring::layout::{Container, Layout};
use hairspring_ring::units::{Frames, SampleRate};

/// A SigMF recording that another program wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// Real channels; a complex sample counts as two, I before Q.
    pub layout: Layout,
    /// Frames per second, rounded to a millihertz; `None` if the metadata state none.
    pub rate: Option<SampleRate>,
    /// What the device is called.
    pub hardware: String,
    /// Where each capture begins in the file, and the global index there; ascending by the former. At least one.
    pub captures: Vec<(Frames, Frames)>,
    /// SHA-512 of the data file in hexadecimal digits, if it says so.
    pub sha512: Option<String>,
}

#[derive(Deserialize)]
struct Document {
    global: Global,
    #[serde(default)]
    captures: Vec<StoredSegment>,
}

#[derive(Deserialize)]
struct Global {
    #[serde(rename = "core:datatype")]
    datatype: String,
    #[serde(rename = "core:num_channels")]
    num_channels: Option<u32>,
    #[serde(rename = "core:sample_rate")]
    sample_rate: Option<f64>,
    #[serde(rename = "core:hw", default)]
    hw: String,
    #[serde(rename = "core:sha512")]
    sha512: Option<String>,
    #[serde(rename = "core:dataset")]
    dataset: Option<String>,
    #[serde(rename = "core:offset", default)]
    offset: u64,
}

#[derive(Deserialize)]
struct StoredSegment {
    #[serde(rename = "core:sample_start")]
    sample_start: u64,
    #[serde(rename = "core:global_index")]
    global_index: Option<u64>,
    #[serde(rename = "core:header_bytes", default)]
    header_bytes: u64,
}

/// Reads metadata and ignores our extension.
///
/// # Errors
/// It is not SigMF, or of an unsupported kind: another data type, headers within the data.
pub fn parse_foreign(bytes: &[u8]) -> Result<Foreign, SigmfError> {
    let document: Document = serde_json::from_slice(bytes).map_err(|error| SigmfError::NotSigmf(error.to_string()))?;
    let global = document.global;
    let value = SigmfError::Value;
    if global.dataset.is_some() || document.captures.iter().any(|capture| capture.header_bytes != 0) {
        return Err(value("its samples do not lie in one file without headers; convert it first".to_owned()));
    }
    let channels = global.num_channels.unwrap_or(1);
    let (kind, element) = global.datatype.split_at_checked(1).unwrap_or_default();
    let channels = if kind == "c" { channels.saturating_mul(2) } else { channels };
    let container = match element {
        "i8" => Container::I8,
        "u8" => Container::U8,
        "i16_le" => Container::I16,
        "u16_le" => Container::U16,
        "i32_le" => Container::I32,
        "f32_le" => Container::F32,
        _ => return Err(value(format!("the data type {} is not known here; convert it first", global.datatype))),
    };
    let layout = Layout::stored_as(channels, container.bits(), container).map_err(|error| value(error.to_string()))?;
    let rate = global.sample_rate.and_then(|hz| SampleRate::new((hz * 1000.0).round() as u64, 1000));
    let mut captures = Vec::with_capacity(document.captures.len().max(1));
    for capture in document.captures {
        let first = capture.global_index.unwrap_or(capture.sample_start.saturating_add(global.offset));
        if captures.last().is_some_and(|(start, _): &(Frames, Frames)| start.0 >= capture.sample_start) {
            return Err(value("its captures do not ascend".to_owned()));
        }
        captures.push((Frames(capture.sample_start), Frames(first)));
    }
    if captures.first().is_none_or(|(start, _)| start.0 != 0) {
        captures.insert(0, (Frames(0), Frames(global.offset)));
    }
    Ok(Foreign { layout, rate, hardware: global.hw, captures, sha512: global.sha512 })
}
