//! Amounts and rates of data as types, so that a sample is not a byte and a megabyte is not a mebibyte.
//!
//! MB is 10⁶ bytes and MiB is 2²⁰ bytes, everywhere. Printed rates show both, because documents of this field use
//! either under one name. Sample rates are exact fractions, so that the number of frames until now never drifts.

use std::fmt;
use std::str::FromStr;

use hairspring_machine::Nanos;

/// An amount of data in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// An amount of single readings of single channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Samples(pub u64);

/// An amount of frames. A frame is one sample of every channel, taken at the same time. Also a position in a stream:
/// the number of frames that the source produced before this one, lost ones included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frames(pub u64);

/// Frames per second, exactly: a fraction of two integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SampleRate {
    /// Frames …
    frames: u64,
    /// … in `seconds` seconds, not 0.
    seconds: u64,
}

/// Bytes per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct ByteRate(f64);

/// Why a text is not an amount or a rate, and how to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    text: String,
    why: &'static str,
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' {}", self.text, self.why)
    }
}

impl std::error::Error for UnitError {}

/// The highest accepted sample rate: 1 THz.
const FASTEST_HZ: f64 = 1e12;

/// Units of amounts, binary and decimal. A bare letter (`4M`) is refused because it is ambiguous.
const SIZES: [(&str, u64); 9] = [
    ("B", 1),
    ("kB", 1000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
];

impl Bytes {
    /// This many KiB, of 1024 bytes.
    pub const fn kib(count: u64) -> Self {
        Self(count << 10)
    }

    /// This many MiB, of 1,048,576 bytes.
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    /// This many GiB, of 1,073,741,824 bytes.
    pub const fn gib(count: u64) -> Self {
        Self(count << 30)
    }

    /// The number of bytes.
    pub const fn count(self) -> u64 {
        self.0
    }

    /// Rounded up to a multiple of `step`, which is not 0.
    pub const fn round_up(self, step: Self) -> Self {
        Self(self.0.div_ceil(step.0) * step.0)
    }

    /// Rounded down to a multiple of `step`, which is not 0.
    pub const fn round_down(self, step: Self) -> Self {
        Self(self.0 / step.0 * step.0)
    }
}

impl fmt::Display for Bytes {
    /// The shortest exact form if there is one (`512 MiB`, `20 GB`), else both units.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = SIZES.iter().rev().filter(|(_, size)| self.0.is_multiple_of(*size) && self.0 >= *size);
        let shortest = exact.min_by_key(|(_, size)| self.0 / size);
        match shortest {
            None => f.pad("0 B"),
            Some((unit, size)) if self.0 / size < 10_000 => f.pad(&format!("{} {unit}", self.0 / size)),
            Some(_) => {
                let (decimal, binary) = (scaled(self.0 as f64, DECIMAL), scaled(self.0 as f64, BINARY));
                f.pad(&format!("{decimal}B ({binary}B)"))
            }
        }
    }
}

/// Prefixes by thousands and by 1024s, the largest first.
const DECIMAL: [(&str, f64); 4] = [("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
const BINARY: [(&str, f64); 4] =
    [("Ti", 1_099_511_627_776.0), ("Gi", 1_073_741_824.0), ("Mi", 1_048_576.0), ("Ki", 1024.0)];

/// With the largest prefix that leaves at least 1, and four digits.
fn scaled(value: f64, prefixes: [(&str, f64); 4]) -> String {
    let (prefix, size) = prefixes.into_iter().find(|(_, size)| value >= *size).unwrap_or(("", 1.0));
    let scaled = value / size;
    let digits = if scaled < 10.0 {
        3
    } else if scaled < 100.0 {
        2
    } else {
        1
    };
    match scaled {
        whole if prefix.is_empty() && whole.fract() == 0.0 => format!("{whole} "),
        small if small < 0.1 => format!("{small:.3e} "),
        _ => format!("{scaled:.digits$} {prefix}"),
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    /// Reads `512MiB`, `4 MiB`, `1.5GB`, `4096B` or a bare number of bytes.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = |why| UnitError { text: text.to_owned(), why };
        let (number, unit) = split(text);
        let size = match SIZES.iter().find(|(name, _)| *name == unit) {
            Some((_, size)) => *size,
            None if unit.is_empty() => 1,
            None if unit.len() == 1 || unit == "KB" || unit.eq_ignore_ascii_case("mb") => {
                return Err(error("does not say which unit it means: write MB for 10⁶ bytes, MiB for 2²⁰ bytes"));
            }
            None => return Err(error("is not an amount of data: write for instance 4096, 64KiB, 512MiB or 20GB")),
        };
        if let Ok(whole) = number.parse::<u64>() {
            return whole.checked_mul(size).map(Self).ok_or_else(|| error("is more than 16 EiB"));
        }
        let bytes = number.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0).map(|n| n * size as f64);
        match bytes {
            Some(bytes) if bytes.fract() == 0.0 && bytes < u64::MAX as f64 => Ok(Self(bytes as u64)),
            Some(_) => Err(error("is not a whole number of bytes")),
            None => Err(error("is not an amount of data: write for instance 4096, 64KiB, 512MiB or 20GB")),
        }
    }
}

/// The number and the unit of a text.
fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

impl fmt::Display for Samples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} samples", self.0)
    }
}

impl fmt::Display for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} frames", self.0)
    }
}

impl SampleRate {
    /// The rate of `frames` in `seconds`; `None` if either is 0 or the rate is above 1 THz.
    pub fn new(frames: u64, seconds: u64) -> Option<Self> {
        let possible = frames > 0 && seconds > 0 && frames as f64 / seconds as f64 <= FASTEST_HZ;
        let divisor = greatest_common_divisor(frames, seconds.max(1)).max(1);
        possible.then(|| Self { frames: frames / divisor, seconds: seconds / divisor })
    }

    /// The rate in whole frames per second; `None` for 0 and above 1 THz.
    pub fn hz(frames: u64) -> Option<Self> {
        Self::new(frames, 1)
    }

    /// The exact rate as frames and seconds, in lowest terms.
    pub fn as_fraction(self) -> (u64, u64) {
        (self.frames, self.seconds)
    }

    /// Frames per second, rounded.
    pub fn as_hz(self) -> f64 {
        self.frames as f64 / self.seconds as f64
    }

    /// Frames that are complete after `elapsed`; 0 before the beginning. Exact.
    pub fn frames_after(self, elapsed: Nanos) -> Frames {
        let elapsed_ns = u128::try_from(elapsed.count()).unwrap_or(0);
        let frames = elapsed_ns * u128::from(self.frames) / (u128::from(self.seconds) * 1_000_000_000);
        Frames(u64::try_from(frames).unwrap_or(u64::MAX))
    }

    /// The time from the beginning until `frames` frames are complete, rounded up to a nanosecond.
    pub fn time_of(self, frames: Frames) -> Nanos {
        let elapsed_ns = (u128::from(frames.0) * u128::from(self.seconds) * 1_000_000_000).div_ceil(self.frames.into());
        Nanos::new(i64::try_from(elapsed_ns).unwrap_or(i64::MAX))
    }

    /// The rate times an exact fraction; `None` if the result is not a valid rate.
    pub fn times(self, by: u64, of: u64) -> Option<Self> {
        let divisor = greatest_common_divisor(by, of).max(1);
        let (by, of) = (by / divisor, of / divisor);
        Self::new(self.frames.checked_mul(by)?, self.seconds.checked_mul(of)?)
    }
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl fmt::Display for SampleRate {
    /// As `40 MS/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hz = self.as_hz();
        let (prefix, size) = DECIMAL.into_iter().find(|(_, size)| hz >= *size).unwrap_or(("", 1.0));
        f.pad(&format!("{} {prefix}S/s", hz / size))
    }
}

impl FromStr for SampleRate {
    type Err = UnitError;

    /// Reads `40MS/s`, `2.5 kS/s`, `1GS/s` or `100S/s`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = |why| UnitError { text: text.to_owned(), why };
        let (number, unit) = split(text);
        let scale = match unit {
            "S/s" => 1,
            "kS/s" => 1_000,
            "MS/s" => 1_000_000,
            "GS/s" => 1_000_000_000,
            _ => return Err(error("is not a sample rate: write for instance 40MS/s, 2.5kS/s or 100S/s")),
        };
        // The decimals become the denominator, so that the fraction is the one that was written.
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{decimals}");
        let seconds = 10_u64.checked_pow(u32::try_from(decimals.len()).unwrap_or(u32::MAX));
        let frames = digits.parse::<u64>().ok().and_then(|frames| frames.checked_mul(scale));
        let rate = frames.zip(seconds).and_then(|(frames, seconds)| Self::new(frames, seconds));
        rate.ok_or_else(|| error("is not a possible sample rate: more than 0 and at most 1000GS/s"))
    }
}

impl ByteRate {
    /// The rate in bytes per second; `None` if it is negative or not finite.
    pub fn new(bytes_per_s: f64) -> Option<Self> {
        (bytes_per_s.is_finite() && bytes_per_s >= 0.0).then_some(Self(bytes_per_s))
    }

    /// The rate that moves `bytes` in `span`; `None` if the span is not positive.
    pub fn of(bytes: Bytes, span: Nanos) -> Option<Self> {
        (span > Nanos::ZERO).then(|| Self(bytes.0 as f64 / span.as_secs_f64()))
    }

    /// Bytes per second.
    pub fn bytes_per_s(self) -> f64 {
        self.0
    }

    /// The time that `bytes` take at this rate; `None` at rate 0 or beyond 292 years.
    pub fn time_for(self, bytes: Bytes) -> Option<Nanos> {
        Nanos::try_from_secs_f64(bytes.0 as f64 / self.0).ok()
    }

    /// The amount that flows in `span`; 0 for a negative span.
    pub fn volume_in(self, span: Nanos) -> Bytes {
        Bytes((self.0 * span.as_secs_f64()).max(0.0) as u64)
    }
}

impl fmt::Display for ByteRate {
    /// Both units: `320.0 MB/s (305.2 MiB/s)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}B/s ({}B/s)", scaled(self.0, DECIMAL), scaled(self.0, BINARY)))
    }
}

impl FromStr for ByteRate {
    type Err = UnitError;

    /// Reads `320MB/s`, `1.5GiB/s`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let error = |why| UnitError { text: text.to_owned(), why };
        let why = "is not a rate of data: write for instance 320MB/s or 1.5GiB/s";
        let amount = text.trim().strip_suffix("/s").ok_or_else(|| error(why))?;
        let (number, unit) = split(amount);
        let size = SIZES.iter().find(|(name, _)| *name == unit).ok_or_else(|| error(why))?.1;
        let rate = number.parse::<f64>().ok().and_then(|number| Self::new(number * size as f64));
        rate.ok_or_else(|| error(why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn megabytes_and_mebibytes_are_never_confused() {
        assert_eq!("1MB".parse(), Ok(Bytes(1_000_000)));
        assert_eq!("1MiB".parse(), Ok(Bytes(1_048_576)));
        assert_eq!("1.5 GiB".parse(), Ok(Bytes(1_610_612_736)));
        for ambiguous in ["4M", "4k", "4mb", "4KB", "4Mb"] {
            let refused = ambiguous.parse::<Bytes>().expect_err(ambiguous);
            assert!(refused.to_string().contains("MiB"), "{refused}");
        }
        for wrong in ["", "MiB", "-1MiB", "1e3MiB", "nanB", "1.0000001KiB", "99999999999GiB", "4MiB/s"] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn amounts_print_exactly_where_they_can_and_in_both_units_where_not() {
        assert_eq!(Bytes::mib(512).to_string(), "512 MiB");
        assert_eq!(Bytes(20_000_000_000).to_string(), "20 GB");
        assert_eq!(Bytes(0).to_string(), "0 B");
        assert_eq!(Bytes(123_456_789).to_string(), "123.5 MB (117.7 MiB)");
        assert_eq!(ByteRate(320e6).to_string(), "320.0 MB/s (305.2 MiB/s)");
        assert_eq!(ByteRate(970.275_026_038_891_8).to_string(), "970.3 B/s (970.3 B/s)");
        assert_eq!(ByteRate(12.0).to_string(), "12 B/s (12 B/s)");
        assert_eq!(ByteRate(0.000_012_5).to_string(), "1.250e-5 B/s (1.250e-5 B/s)");
    }

    #[test]
    fn rates_are_exact_fractions() {
        let rate: SampleRate = "2.5kS/s".parse().expect("a rate");
        assert_eq!(rate, SampleRate::hz(2500).expect("possible"));
        let third = SampleRate::new(1, 3).expect("possible");
        assert_eq!(third.frames_after(Nanos::from_secs(8)), Frames(2));
        assert_eq!(third.frames_after(Nanos::new(9_000_000_000)), Frames(3));
        assert_eq!(third.time_of(Frames(3)), Nanos::from_secs(9));
        assert_eq!(third.frames_after(Nanos::new(-5)), Frames(0));
        assert_eq!(third.times(9, 6).map(SampleRate::as_hz), Some(0.5));
        assert_eq!((third.times(0, 1), third.times(1, 0), third.times(u64::MAX, 1)), (None, None, None));
        // Ten days at an awkward rate: no drift.
        let awkward = SampleRate::new(44_100_001, 1000).expect("possible");
        assert_eq!(awkward.frames_after(Nanos::from_secs(864_000)), Frames(38_102_400_864));
        for wrong in ["0S/s", "40", "40MHz", "1000000GS/s", "-1S/s", "1.2.3S/s", "MS/s"] {
            assert!(wrong.parse::<SampleRate>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_frame_is_due_exactly_when_its_time_has_come() {
        for hz in [1, 3, 7, 44_100, 40_000_000, 999_999_937] {
            let rate = SampleRate::hz(hz).expect("possible");
            for frames in [1, 2, 1000, 123_456_789] {
                let due = rate.time_of(Frames(frames));
                assert!(rate.frames_after(due) >= Frames(frames));
                assert!(rate.frames_after(due - Nanos::new(1)) < Frames(frames), "{hz} {frames}");
            }
        }
    }
}
