//! NumPy's `.npy`, version 1.0: a short header and the samples as they are, a row for each frame.

use std::path::Path;

use super::output::Output;
use super::{Cut, ExportError, one_part, parts, read, values};
use hairspring_record::recording::Recording;
use hairspring_record::store::Store;
use hairspring_record::verify::ReadProgress;
use hairspring_ring::layout::Container;
use hairspring_ring::units::Frames;

/// Options of a NumPy export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Npy {
    /// The exported frames.
    pub cut: Cut,
    /// Whether frames around a gap may become neighbours. An array cannot mark a gap.
    pub leave_out_gaps: bool,
}

/// Writes a cut as an array of frames × channels. Packed samples become 16-bit ones, digital lines bytes of 0 and 1. Yields the
/// global index of the first row and the number of rows.
///
/// # Errors
/// See [`ExportError`].
pub fn npy(
    store: &mut dyn Store,
    recording: &Recording,
    options: Npy,
    path: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<(Frames, Frames), ExportError> {
    let layout = recording.about().layout;
    let frames = one_part(recording, options.cut, options.leave_out_gaps)?;
    let first = parts(recording, options.cut).first().map_or(Frames(0), |part| part.first);
    let kind = match layout.container() {
        Container::I8 => "|i1",
        Container::U8 | Container::Bits => "|u1",
        Container::I16 | Container::Packed12 => "<i2",
        Container::U16 => "<u2",
        Container::I32 => "<i4",
        Container::F32 => "<f4",
    };
    let mut output = Output::create(path)?;
    output.write(&header(kind, frames, layout.channels()))?;
    read(store, recording, options.cut, progress, &mut |_, bytes| match layout.container() {
        Container::Packed12 => output.write(&values::unpacked(bytes)),
        Container::Bits => output.write(&values::lines(layout, bytes)),
        _ => output.write(bytes),
    })?;
    output.finish()?;
    Ok((first, Frames(frames)))
}

/// Magic, version, length, and a Python dictionary that is padded so that the samples begin at a multiple of 64.
fn header(kind: &str, frames: u64, channels: u32) -> Vec<u8> {
    let mut text = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({frames}, {channels}), }}");
    let before = 10;
    let padded = (before + text.len() + 1).next_multiple_of(64) - before;
    while text.len() + 1 < padded {
        text.push(' ');
    }
    text.push('\n');
    let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
    [b"\x93NUMPY\x01\x00", &length.to_le_bytes()[..], text.as_bytes()].concat()
}
