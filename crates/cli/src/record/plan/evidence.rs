//! The rate that disks sustain, from the rows of a sheet's chapter *Transfer*. The segments of an id describe its row.

use hairspring_plan::{Direction, Fit, Sustainable, Target};
use hairspring_ring::{ByteRate, Bytes};
use hairspring_sheet::{Figure, Sheet, Unit};

/// Command that takes a sheet, for the case that none was given.
pub(crate) fn without(targets: &[Target]) -> String {
    let here = targets.iter().find(|target| target.file_system.is_some());
    let dir = here.map_or("DIR", |target| target.name.as_str());
    format!(
        "take a sheet with `hairspring sheet --only transfer --dir {dir} --out sheet.json`, and add --sheet sheet.json"
    )
}

/// The highest rate that this many targets sustained, and the line fitted to the rates by block size.
pub(crate) fn of(
    sheet: &Sheet,
    named: &str,
    targets: usize,
    direction: Direction,
) -> (Result<Sustainable, String>, Option<Fit>) {
    let (stream, disk) = match direction {
        Direction::Record => ("record", "write"),
        Direction::Play => ("play", "read"),
    };
    let mut streams: Vec<(&str, ByteRate, u64)> = Vec::new();
    let mut disks: Vec<(&str, ByteRate, u64)> = Vec::new();
    let mut sweep: Vec<(Bytes, ByteRate)> = Vec::new();
    for row in sheet.rows() {
        let Some((rate, count)) = row.figure().and_then(least) else { continue };
        match row.id.split('.').collect::<Vec<_>>()[..] {
            ["transfer", "stream", what, _, _, _, count_of, "rate"]
                if what == stream && number(count_of) == Some(targets) =>
            {
                streams.push((&row.id, rate, count));
            }
            ["transfer", "disk", what, length, "direct", count_of, "rate"]
                if what == disk && number(count_of) == Some(targets) =>
            {
                disks.push((&row.id, rate, count));
                sweep.extend(block(length).map(|length| (length, rate)));
            }
            _ => {}
        }
    }
    // A whole recording is better evidence than writing alone.
    let best = |rows: &[(&str, ByteRate, u64)]| {
        rows.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best }).map(|(id, rate, count)| {
            let of = if count > 1 { format!(", the least of {count}") } else { String::new() };
            (format!("{id} of {named} ({}{of})", sheet.taken.start.split('T').next().unwrap_or_default()), rate)
        })
    };
    let sustainable = best(&streams).or_else(|| best(&disks)).map(|(source, rate)| Sustainable { rate, source });
    let missing = || {
        let folders = if targets == 1 { "1 target" } else { &format!("{targets} targets") };
        format!(
            "{named} has neither transfer.stream.{stream} nor transfer.disk.{disk}….direct for {folders}: take a sheet with \
             `hairspring sheet --only transfer --dir DIR`, with as many folders as here"
        )
    };
    (sustainable.ok_or_else(missing), Fit::of(&sweep))
}

/// The least of a row's rates, which every measurement reached, and the number of rates.
fn least(figure: &Figure) -> Option<(ByteRate, u64)> {
    let value = figure.min.or_else(|| figure.centre().map(|(_, value)| value))?;
    let rate = ByteRate::new(value).filter(|rate| rate.bytes_per_s() > 0.0)?;
    (figure.unit == Unit::BytesPerS).then_some((rate, figure.n))
}

/// The count in a segment like `2` or `t2`.
fn number(segment: &str) -> Option<usize> {
    segment.trim_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()
}

/// The length in a segment like `64kib` or `4mib`.
fn block(segment: &str) -> Option<Bytes> {
    let end = segment.find(|c: char| !c.is_ascii_digit())?;
    let scale: u64 = match &segment[end..] {
        "b" => 1,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    segment[..end].parse::<u64>().ok()?.checked_mul(scale).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::historic;

    fn rate(mib_per_s: f64) -> ByteRate {
        ByteRate::new(mib_per_s * 1_048_576.0).expect("finite")
    }

    #[test]
    fn a_recording_counts_more_than_the_disk_alone() {
        let sheet = historic::find("an006-reference-1").expect("built in");
        let (recorded, fit) = of(&sheet, "an006-reference-1", 1, Direction::Record);
        let recorded = recorded.expect("it has recordings to a single disk");
        assert_eq!(recorded.rate, rate(60.0));
        assert!(recorded.source.contains("transfer.stream.record.8mib"), "{}", recorded.source);
        let fit = fit.expect("it has a sweep over blocks");
        assert!((fit.full.bytes_per_s() / 1_048_576.0 - 67.0).abs() < 0.5, "{fit:?}");
        let (played, _) = of(&sheet, "an006-reference-1", 1, Direction::Play);
        assert_eq!(played.expect("it has").rate, rate(63.0));
    }

    #[test]
    fn rows_for_other_numbers_of_targets_say_nothing() {
        let sheet = historic::find("an006-reference-1").expect("built in");
        let (nothing, fit) = of(&sheet, "an006-reference-1", 3, Direction::Record);
        let why = nothing.expect_err("three were not measured");
        assert!(why.contains("for 3 targets") && why.contains("--only transfer"), "{why}");
        assert_eq!(fit, None);
    }

    #[test]
    fn lengths_and_counts_are_read_from_ids() {
        assert_eq!(block("64kib"), Some(Bytes::kib(64)));
        assert_eq!(block("4mib"), Some(Bytes::mib(4)));
        assert_eq!(block("direct").or(block("64")).or(block("")).or(block("64kb")), None);
        assert_eq!((number("2"), number("t2"), number("t"), number("raid0_4")), (Some(2), Some(2), None, None));
    }
}
