//! NumPy's `.npy`, version 1.0: a short header and the samples as they are, a row for each frame.

use std::path::Path;

use super::output::Output;
use super::rows::Rows;
use super::values::Number;
use super::{ArrayCut, ExportError, ExportedPiece};
use hairspring_recording::Recording;
use hairspring_recording::verify::ReadProgress;
use hairspring_store::Store;

/// Writes a cut as an array of frames × channels. Packed samples become 16-bit ones, digital lines bytes of 0 and 1,
/// complex samples of other programs complex numbers: of 8-bit and 16-bit integers and 32-bit floats `complex64`, else
/// `complex128`.
///
/// # Errors
/// See [`ExportError`].
pub fn npy(
    store: &mut dyn Store,
    recording: &Recording,
    options: ArrayCut,
    path: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<ExportedPiece, ExportError> {
    let rows = Rows::of(recording, options, true)?;
    let kind = match rows.number {
        Number::I8 => "|i1",
        Number::U8 => "|u1",
        Number::I16 => "<i2",
        Number::U16 => "<u2",
        Number::I32 => "<i4",
        Number::U32 => "<u4",
        Number::F32 => "<f4",
        Number::F64 => "<f8",
        Number::Complex64 => "<c8",
        Number::Complex128 => "<c16",
    };
    let mut output = Output::create(path)?;
    output.write(&header(kind, rows.frames.0, rows.columns))?;
    rows.read_filled(store, recording, progress, &mut |bytes| output.write(bytes))?;
    output.finish()?;
    Ok(rows.exported())
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
