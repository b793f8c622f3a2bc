//! Formats amounts in a plan: in MB and MiB, or in the units of AN006.

use std::fmt;

use hairspring_machine::Nanos;

use hairspring_ring::units::{ByteRate, Bytes};

/// The units of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Written {
    /// MB of 10⁶ bytes, and MiB of 2²⁰ bytes.
    #[default]
    Both,
    /// MB of 2²⁰ bytes, as in application note AN006.
    An006,
}

/// Divides by 1024 but uses the names of the thousands.
const AN006: [(&str, f64); 4] =
    [("TB", 1_099_511_627_776.0), ("GB", 1_073_741_824.0), ("MB", 1_048_576.0), ("kB", 1024.0)];

impl Written {
    /// Explains the units to the reader.
    pub fn legend(self) -> &'static str {
        match self {
            Self::Both => "1 MB = 1,000,000 bytes, 1 MiB = 1,048,576 bytes",
            Self::An006 => "units of AN006: 1 MB = 1,048,576 bytes, 1 GB = 1,024 MB",
        }
    }

    /// A rate.
    pub fn rate(self, rate: ByteRate) -> String {
        match self {
            Self::Both => rate.to_string(),
            Self::An006 => format!("{}/s", an006(rate.bytes_per_s())),
        }
    }

    /// A short form of a rate, in the first of the units.
    pub fn rate_short(self, rate: ByteRate) -> String {
        let text = self.rate(rate);
        text.split_once(" (").map_or(text.clone(), |(first, _)| first.to_owned())
    }

    /// An amount of data.
    pub fn amount(self, bytes: Bytes) -> String {
        match self {
            Self::Both => both(bytes),
            Self::An006 => an006(bytes.0 as f64),
        }
    }

    /// A chosen size, which is a power of two or close to one.
    pub fn size(self, bytes: Bytes) -> String {
        match self {
            Self::Both => bytes.to_string(),
            Self::An006 => an006(bytes.0 as f64),
        }
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.legend())
    }
}

fn both(bytes: Bytes) -> String {
    // The same digits as a rate.
    let rate = ByteRate::new(bytes.0 as f64).map(|rate| rate.to_string()).unwrap_or_default();
    rate.replace("/s", "")
}

/// One decimal, as in AN006, but no trailing zero.
fn an006(bytes: f64) -> String {
    let (unit, size) = AN006.into_iter().find(|(_, size)| bytes >= *size).unwrap_or(("bytes", 1.0));
    let number = format!("{:.1}", bytes / size);
    format!("{} {unit}", number.trim_end_matches(".0"))
}

/// A span as the user wrote it: in whole minutes, hours or days if possible.
pub fn exact(span: Nanos) -> String {
    const UNITS: [(&str, i64); 3] = [("d", 86_400_000_000_000), ("h", 3_600_000_000_000), ("min", 60_000_000_000)];
    let whole = UNITS.into_iter().find(|(_, length)| span.count() > 0 && span.count() % length == 0);
    whole.map_or(span.to_string(), |(unit, length)| format!("{} {unit}", span.count() / length))
}

/// A span in its usual unit with few digits: `1.61 s`, `25 min`, `3.4 h`, `12 d`.
pub fn rounded(span: Nanos) -> String {
    let seconds = span.as_secs_f64();
    match seconds {
        // Three digits at the least, and three decimals at the most.
        _ if seconds < 1.0 => span.to_string(),
        _ if seconds < 100.0 => format!("{seconds:.2} s").replace(".00 s", " s"),
        _ if seconds < 120.0 => format!("{seconds:.0} s"),
        _ if seconds < 7_200.0 => format!("{:.0} min", seconds / 60.0),
        _ if seconds < 172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ if seconds < 63_115_200.0 => format!("{:.0} d", seconds / 86_400.0),
        _ => format!("{:.0} years", seconds / 31_557_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_rounded_to_what_people_read() {
        let seconds = [0.25, 1.5, 1.0, 12.345, 110.0, 125.0, 9_000.0, 864_000.0, 1e9];
        let spans = seconds.map(|seconds| rounded(Nanos::try_from_secs_f64(seconds).expect("finite")));
        let expected = ["250 ms", "1.50 s", "1 s", "12.35 s", "110 s", "2 min", "2.5 h", "10 d", "32 years"];
        assert_eq!(spans, expected);
    }

    #[test]
    fn the_same_rate_is_written_in_either_way() {
        let rate = ByteRate::new(320e6).expect("finite");
        assert_eq!(Written::Both.rate(rate), "320.0 MB/s (305.2 MiB/s)");
        assert_eq!(Written::Both.rate_short(rate), "320.0 MB/s");
        assert_eq!(Written::An006.rate(rate), "305.2 MB/s");
        assert_eq!(Written::An006.rate_short(rate), "305.2 MB/s");
        assert_eq!(Written::Both.amount(Bytes(36_000_000_000)), "36.00 GB (33.53 GiB)");
        assert_eq!(Written::An006.amount(Bytes::mib(36_000)), "35.2 GB");
        assert_eq!(Written::Both.size(Bytes::mib(512)), "512 MiB");
        assert_eq!(Written::An006.size(Bytes::mib(512)), "512 MB");
    }
}
