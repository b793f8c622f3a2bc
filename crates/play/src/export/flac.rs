//! FLAC (RFC 9639): integers of up to 32 bits without loss, for up to 8 channels and 1,048,575 Hz. The own [`encoder`] says why.
//!
//! The facts of [`array_facts`](super::super::array_facts) are in the tag `COMMENT`, as JSON. The MD5 sum of all samples is in the file, so
//! that `flac --test` proves it.

mod bits;
mod encoder;
mod frame;

use std::path::Path;

use super::ExportError;
use super::npy::ArrayCut;
use super::output::Output;
use super::rows::Rows;
use super::wav::whole_hertz;
use encoder::{Encoder, Form, MAGIC, MOST_CHANNELS, MOST_RATE, bits_of, integers, stream_info, tags};
use frame::BLOCK;
use hairspring_record::recording::Recording;
use hairspring_record::store::Store;
use hairspring_record::verify::ReadProgress;
use hairspring_ring::units::Frames;

/// Writes a cut as FLAC. Yields the global index of the first frame and the number of frames.
///
/// # Errors
/// See [`ExportError`]; among them floats, more than 8 channels, and a rate that is unknown, no whole number of hertz or too high.
pub fn flac(
    store: &mut dyn Store,
    recording: &Recording,
    options: ArrayCut,
    path: &Path,
    progress: &mut dyn FnMut(ReadProgress),
) -> Result<(Frames, Frames), ExportError> {
    let rows = Rows::of(recording, options.cut, options.gaps)?;
    if rows.channels > MOST_CHANNELS {
        return Err(ExportError::Unsuitable(format!(
            "FLAC holds {MOST_CHANNELS} channels, and this recording has {}: export wav or zarr",
            rows.channels
        )));
    }
    let rate_hz = whole_hertz(recording, "FLAC", MOST_RATE)?;
    let container = rows.number.container();
    let Some(bits) = bits_of(container, recording.about()) else {
        return Err(ExportError::Unsuitable(
            "FLAC holds integers, and these are floats: export wav or zarr".to_owned(),
        ));
    };
    let form = Form { rate_hz, channels: rows.channels, bits };
    let mut output = Output::create(path)?;
    output.write(MAGIC)?;
    output.write(&stream_info(form, rows.frames.0, [0; 16]))?;
    output.write(&tags(recording, rows.first, true))?;
    let most = BLOCK * rows.channels as usize;
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
    Ok((rows.first, rows.frames))
}
