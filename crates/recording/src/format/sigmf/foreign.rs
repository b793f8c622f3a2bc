//! Reads SigMF of other programs, as far as playing and exporting the samples requires.
//!
//! Every key of SigMF 1.2.5 that moves samples is obeyed, or refused with its name: `core:datatype`,
//! `core:num_channels`, `core:offset`, `core:dataset`, `core:trailing_bytes`, `core:metadata_only`, and in captures
//! `core:sample_start`, `core:global_index` and `core:header_bytes`. Indices in metadata are absolute: the file begins
//! with sample `core:offset`. Source: the specification, <https://github.com/sigmf/SigMF/blob/v1.2.5/sigmf-spec.md>.

use serde::Deserialize;

use super::SigmfError;
use hairspring_ring::layout::{Container, Layout};
use hairspring_ring::units::{Frames, SampleRate};

/// No position in a file is greater.
const MOST_BYTES: u64 = i64::MAX as u64;

/// A SigMF recording that another program wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Foreign {
    /// Real channels; a complex sample counts as two, I before Q.
    pub layout: Layout,
    /// Whether two neighbouring channels are one complex sample.
    pub is_complex: bool,
    /// Whether the first byte of a sample is its highest.
    pub is_big_endian: bool,
    /// Frames per second, as a fraction close to the metadata's number; `None` if they state none.
    pub rate: Option<SampleRate>,
    /// The name of the device.
    pub hardware: String,
    /// The name of the file with the samples, if it has another name than the metadata; it lies beside them.
    pub dataset: Option<String>,
    /// Bytes at the end of that file that are no samples.
    pub trailing_bytes: u64,
    /// The captures, ascending by their place in the file. The first begins at its first sample.
    pub captures: Vec<ForeignCapture>,
    /// SHA-512 of the whole data file in hexadecimal digits, if stated.
    pub sha512: Option<String>,
}

/// Where a capture begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignCapture {
    /// Samples of the file before it.
    pub start: Frames,
    /// The global index of its first sample.
    pub first: Frames,
    /// Bytes before its first sample that are no samples.
    pub header_bytes: u64,
}

#[derive(Deserialize)]
struct Document {
    global: Global,
    #[serde(default)]
    captures: Vec<Capture>,
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
    #[serde(rename = "core:trailing_bytes", default)]
    trailing_bytes: u64,
    #[serde(rename = "core:metadata_only", default)]
    metadata_only: bool,
}

#[derive(Deserialize)]
struct Capture {
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
/// It is not SigMF, or a key that moves samples has a value that cannot be obeyed.
pub fn parse_foreign(bytes: &[u8]) -> Result<Foreign, SigmfError> {
    let document: Document = serde_json::from_slice(bytes).map_err(|error| SigmfError::NotSigmf(error.to_string()))?;
    let global = document.global;
    let value = SigmfError::Value;
    if global.metadata_only {
        return Err(value("core:metadata_only: it was given away without its samples".to_owned()));
    }
    if let Some(name) = &global.dataset
        && (name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']))
    {
        return Err(value(format!("core:dataset: '{name}' is not the name of a file beside the metadata")));
    }
    let (container, is_complex, is_big_endian) = datatype(&global.datatype)?;
    let channels = global.num_channels.unwrap_or(1);
    let channels = if is_complex { channels.saturating_mul(2) } else { channels };
    let layout = Layout::stored_as(channels, container.bits(), container)
        .map_err(|error| value(format!("core:num_channels: {error}")))?;
    let captures = captures(&document.captures, global.offset, layout)?;
    Ok(Foreign {
        layout,
        is_complex,
        is_big_endian,
        rate: global.sample_rate.and_then(rate),
        hardware: global.hw,
        dataset: global.dataset,
        trailing_bytes: global.trailing_bytes,
        captures,
        sha512: global.sha512,
    })
}

/// Container, whether the samples are complex, and whether their bytes are in the other order.
fn datatype(text: &str) -> Result<(Container, bool, bool), SigmfError> {
    let unknown = || {
        SigmfError::Value(format!(
            "core:datatype: '{text}' is not known here; known are r or c, then i8, u8, i16, u16, i32, u32, f32 or f64, and _le or _be for \
             more than 8 bits, such as ci16_le"
        ))
    };
    let (kind, element) = text.split_at_checked(1).ok_or_else(unknown)?;
    let is_complex = match kind {
        "r" => false,
        "c" => true,
        _ => return Err(unknown()),
    };
    let (element, is_big_endian) = match (element.strip_suffix("_le"), element.strip_suffix("_be")) {
        (Some(element), _) => (element, false),
        (None, Some(element)) => (element, true),
        // The order of the bytes of one byte is not stated.
        (None, None) if matches!(element, "i8" | "u8") => (element, false),
        (None, None) => return Err(unknown()),
    };
    let container = match element {
        "i8" => Container::I8,
        "u8" => Container::U8,
        "i16" => Container::I16,
        "u16" => Container::U16,
        "i32" => Container::I32,
        "u32" => Container::U32,
        "f32" => Container::F32,
        "f64" => Container::F64,
        _ => return Err(unknown()),
    };
    Ok((container, is_complex, is_big_endian && container.bits() > 8))
}

/// The captures by their place in the file, which begins with sample `offset`.
fn captures(stated: &[Capture], offset: u64, layout: Layout) -> Result<Vec<ForeignCapture>, SigmfError> {
    let value = SigmfError::Value;
    let mut captures: Vec<ForeignCapture> = Vec::with_capacity(stated.len().max(1));
    let (mut next, mut headers) = (offset, 0_u64);
    for Capture { sample_start, global_index, header_bytes } in stated {
        let start = sample_start.checked_sub(offset).ok_or_else(|| {
            value(format!(
                "core:sample_start: {sample_start} is before the first sample of the file, {offset} by core:offset"
            ))
        })?;
        if captures.is_empty() && start > 0 {
            captures.push(ForeignCapture { start: Frames(0), first: Frames(offset), header_bytes: 0 });
        }
        if let Some(last) = captures.last() {
            if start <= last.start.0 {
                return Err(value(format!("core:sample_start: the captures do not ascend at {sample_start}")));
            }
            next = last.first.0.saturating_add(start - last.start.0);
        }
        headers = headers.saturating_add(*header_bytes);
        let end = u128::from(start) * u128::from(layout.grain().bytes) + u128::from(headers);
        if end > u128::from(MOST_BYTES) {
            return Err(value(format!(
                "core:sample_start: no file is as long as {sample_start} samples and the headers before it"
            )));
        }
        // Without an index of its own a capture counts on, from the absolute number of its sample.
        let first = global_index.unwrap_or((*sample_start).max(next));
        if first < next || first > MOST_BYTES {
            return Err(value(format!(
                "core:global_index: {first} at core:sample_start {sample_start} goes back: the samples before it reach to {next}"
            )));
        }
        captures.push(ForeignCapture { start: Frames(start), first: Frames(first), header_bytes: *header_bytes });
    }
    if captures.is_empty() {
        captures.push(ForeignCapture { start: Frames(0), first: Frames(offset), header_bytes: 0 });
    }
    Ok(captures)
}

/// The shortest decimal fraction, or the whole number of seconds for a frame, that is the rate as exactly as a 64-bit
/// float states it.
fn rate(hz: f64) -> Option<SampleRate> {
    let is_close = |found: f64| (found / hz - 1.0).abs() <= 4.0 * f64::EPSILON;
    let seconds = (1.0 / hz).round();
    if hz < 1.0 && seconds < 1e18 && is_close(1.0 / seconds) {
        return SampleRate::new(1, seconds as u64);
    }
    let mut closest = None;
    for power in 0..=18 {
        let scale = 10_f64.powi(power);
        let frames = (hz * scale).round();
        if !(1.0..1e18).contains(&frames) {
            continue;
        }
        closest = SampleRate::new(frames as u64, scale as u64).or(closest);
        if is_close(frames / scale) {
            break;
        }
    }
    closest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(global: &str, captures: &str) -> Result<Foreign, String> {
        let text = format!(r#"{{"global": {{"core:version": "1.2.5", {global}}}, "captures": [{captures}]}}"#);
        parse_foreign(text.as_bytes()).map_err(|error| error.to_string())
    }

    fn at(start: u64, first: u64, header_bytes: u64) -> ForeignCapture {
        ForeignCapture { start: Frames(start), first: Frames(first), header_bytes }
    }

    const REAL: &str = r#""core:datatype": "ri16_le""#;

    #[test]
    fn indices_are_absolute_and_the_file_begins_with_the_offset() {
        let captures = |offset: u64, captures: &str| {
            parsed(&format!(r#"{REAL}, "core:offset": {offset}"#), captures).expect("right").captures
        };
        let two = r#"{"core:sample_start": 1000, "core:global_index": 1000}, {"core:sample_start": 1500, "core:global_index": 2500}"#;
        assert_eq!(captures(1000, two), [at(0, 1000, 0), at(500, 2500, 0)]);
        assert_eq!(captures(1000, ""), [at(0, 1000, 0)]);
        assert_eq!(captures(1000, r#"{"core:sample_start": 1200}"#), [at(0, 1000, 0), at(200, 1200, 0)]);
        assert_eq!(
            captures(0, r#"{"core:sample_start": 0, "core:global_index": 7}, {"core:sample_start": 10}"#),
            [at(0, 7, 0), at(10, 17, 0)]
        );
        assert_eq!(captures(0, r#"{"core:sample_start": 0, "core:header_bytes": 4}"#), [at(0, 0, 4)]);
    }

    #[test]
    fn a_key_that_cannot_be_obeyed_is_refused_with_its_name() {
        let start = |start: u64| format!(r#"{{"core:sample_start": {start}}}"#);
        for (global, captures, name) in [
            (r#""core:datatype": "ri24_le""#.to_owned(), String::new(), "core:datatype"),
            (r#""core:datatype": "ri16""#.to_owned(), String::new(), "core:datatype"),
            (r#""core:datatype": "é""#.to_owned(), String::new(), "core:datatype"),
            (format!(r#"{REAL}, "core:num_channels": 0"#), String::new(), "core:num_channels"),
            (format!(r#"{REAL}, "core:metadata_only": true"#), String::new(), "core:metadata_only"),
            (format!(r#"{REAL}, "core:dataset": "../x.bin""#), String::new(), "core:dataset"),
            (format!(r#"{REAL}, "core:offset": 10"#), start(9), "core:offset"),
            (REAL.to_owned(), format!("{}, {}", start(10), start(10)), "core:sample_start"),
            (REAL.to_owned(), start(u64::MAX), "core:sample_start"),
            (
                REAL.to_owned(),
                r#"{"core:sample_start": 0, "core:global_index": 5}, {"core:sample_start": 10, "core:global_index": 9}"#.to_owned(),
                "core:global_index",
            ),
        ] {
            let refused = parsed(&global, &captures).expect_err(name);
            assert!(refused.contains(name), "{refused}");
        }
    }

    #[test]
    fn every_datatype_of_the_specification_is_read() {
        for (text, container, is_complex, is_big_endian) in [
            ("ru8", Container::U8, false, false),
            ("ci8", Container::I8, true, false),
            ("ci16_be", Container::I16, true, true),
            ("ru32_le", Container::U32, false, false),
            ("cf32_le", Container::F32, true, false),
            ("cf64_be", Container::F64, true, true),
            ("ri8_be", Container::I8, false, false),
        ] {
            let foreign = parsed(&format!(r#""core:datatype": "{text}", "core:num_channels": 2"#), "").expect("known");
            let found = (foreign.layout.container(), foreign.is_complex, foreign.is_big_endian);
            assert_eq!(found, (container, is_complex, is_big_endian), "{text}");
            assert_eq!(foreign.layout.channels(), if is_complex { 4 } else { 2 });
        }
    }

    #[test]
    fn rates_are_as_exact_as_the_metadata_state_them() {
        for (hz, fraction) in [
            (48_000.0, (48_000, 1)),
            (2_400_000.5, (4_800_001, 2)),
            (0.0001, (1, 10_000)),
            (1.0 / 86_400.0, (1, 86_400)),
            (0.000_25, (1, 4000)),
            (44_100.123_456, (689_064_429, 15_625)),
        ] {
            assert_eq!(rate(hz).map(SampleRate::as_fraction), Some(fraction), "{hz}");
        }
        assert!(rate(2.0e6 / 3.0).is_some_and(|rate| (rate.as_hz() / (2.0e6 / 3.0) - 1.0).abs() < 1e-15));
        for none in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(rate(none), None, "{none}");
        }
    }
}
