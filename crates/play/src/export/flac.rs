//! FLAC (RFC 9639): integers of up to 32 bits without loss, for up to 8 channels and 1,048,575 Hz. [`encoder`] explains
//! why it is our own.
//!
//! The facts of [`array_facts`](super::super::array_facts) are in the tag `COMMENT`, as JSON. The MD5 sum of all
//! samples is in the file, so that `flac --test` proves it.

mod bits;
mod encoder;
mod frame;

use std::path::Path;

use super::output::Output;
use super::rows::Rows;
use super::wav::{sound_holds_codes, whole_hertz};
use super::{ArrayCut, ExportError, ExportedPiece, array_facts};
use encoder::{Encoder, Form, MAGIC, MOST_CHANNELS, MOST_RATE, bits_of, integers, stream_info, tags};
use frame::BLOCK;
use hairspring_recording::Recording;
use hairspring_recording::verify::ReadProgress;
use hairspring_store::Store;

/// Writes a cut as FLAC. Complex samples of other programs are two channels, I and Q.
///
/// # Errors
/// See [`ExportError`]; among them floats, more than 8 channels, and a rate that is unknown, no whole number of hertz
/// or too high.
pub fn flac(
    store: &mut dyn Store,
    recording: &Recording,
    options: ArrayCut,
    path: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<ExportedPiece, ExportError> {
    sound_holds_codes("FLAC", options.units)?;
    let rows = Rows::of(recording, options, false)?;
    if rows.columns > MOST_CHANNELS {
        return Err(ExportError::Unsuitable(format!(
            "FLAC holds {MOST_CHANNELS} channels, and this recording has {}: export wav or zarr",
            rows.columns
        )));
    }
    let rate_hz = whole_hertz(recording, "FLAC", MOST_RATE)?;
    let kind = rows.number.container().and_then(|container| Some((container, bits_of(container, recording.about())?)));
    let Some((container, bits)) = kind else {
        return Err(ExportError::Unsuitable(format!(
            "FLAC holds integers of up to 32 bits with a sign, and these are {}: export wav, npy or zarr",
            recording.about().layout.container()
        )));
    };
    let form = Form { rate_hz, channels: rows.columns, bits };
    let mut output = Output::create(path)?;
    output.write(MAGIC)?;
    output.write(&stream_info(form, rows.frames.0, [0; 16]))?;
    output.write(&tags(&array_facts::text(recording, &rows), true))?;
    let most = BLOCK * rows.columns as usize;
    let mut encoder = Encoder::new(form);
    let mut pending: Vec<i32> = Vec::with_capacity(2 * most);
    let mut encoded = Vec::new();
    let mut encode = |samples: &[i32], output: &mut Output| {
        encoded.clear();
        encoder
            .encode(samples, &mut encoded)
            .map_err(|wide| ExportError::Unsuitable(format!("{wide}: export wav or zarr")))?;
        output.write(&encoded)
    };
    rows.read_filled(store, recording, progress, &mut |bytes| {
        integers(container, bytes, &mut pending);
        let whole = pending.len() / most * most;
        for samples in pending[..whole].chunks(most) {
            encode(samples, &mut output)?;
        }
        pending.drain(..whole);
        Ok(())
    })?;
    if !pending.is_empty() {
        encode(&pending, &mut output)?;
    }
    output.write_at(MAGIC.len() as u64, &stream_info(form, rows.frames.0, encoder.sum()))?;
    output.finish()?;
    Ok(rows.exported())
}
