//! Storage format of a sheet's JSON: its numbers in columns, compressed beside those of an earlier sheet.
//!
//! Problem: a sheet has 4 MB of JSON, most of it digits that differ in each sheet. Compressed as it is, beside another
//! sheet, it takes 155 kB.
//!
//! Solution: the numbers of equal names (`median`, `count`, …) go to a column of their own, and a mark stays in their
//! place. Digits then lie among digits, which takes a fifth less. Then zstd compresses all of it with the base as
//! prefix.
//!
//! Conditions: the text is JSON, so it has no control characters. One that does not come back byte for byte is stored
//! without columns.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use zstd::stream::raw::CParameter;
use zstd::stream::{Decoder, Encoder};

/// Takes a second for a sheet of 4 MB; level 12 takes a tenth of that, and a fifth more space.
const LEVEL: i32 = 19;
/// A window over base and sheet: 64 MiB.
const WINDOW_LOG: u32 = 26;
/// Marks the place of a number in the text.
const MARK: char = '\u{0}';
/// Between the text and the columns.
const COLUMN: char = '\u{1}';

/// A text in the form in which it is compressed.
pub(crate) fn in_columns(text: &str) -> String {
    let columns = split(text);
    if joined(&columns).as_deref() == Some(text) { columns } else { text.to_owned() }
}

/// The text of a form that [`in_columns`] returned.
pub(crate) fn from_columns(form: &str) -> Option<String> {
    if form.contains(COLUMN) { joined(form) } else { Some(form.to_owned()) }
}

/// Compresses a form beside a base; empty for none.
pub(crate) fn compressed(form: &str, base: &str) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::with_ref_prefix(Vec::new(), LEVEL, base.as_bytes())?;
    encoder.set_parameter(CParameter::WindowLog(WINDOW_LOG))?;
    encoder.set_parameter(CParameter::EnableLongDistanceMatching(true))?;
    encoder.include_checksum(true)?;
    encoder.set_pledged_src_size(Some(form.len() as u64))?;
    encoder.write_all(form.as_bytes())?;
    encoder.finish()
}

/// The form behind compressed bytes, of at most `most` bytes.
pub(crate) fn decompressed(packed: &[u8], base: &str, most: u64) -> io::Result<String> {
    let mut text = String::new();
    Decoder::with_ref_prefix(packed, base.as_bytes())?.take(most).read_to_string(&mut text)?;
    Ok(text)
}

/// The numbers that follow `"name": ` in a text: the name, and where its number begins and ends.
fn numbers(text: &str) -> impl Iterator<Item = (&str, usize, usize)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let colon = from + text.get(from..)?.find("\": ")?;
            from = colon + 3;
            let rest = text.get(from..)?;
            let length = rest.find(|c: char| !(c.is_ascii_digit() || "+-.eE".contains(c))).unwrap_or(rest.len());
            if length > 0
                && let Some(open) = text[..colon].rfind('"')
            {
                let start = from;
                from += length;
                return Some((&text[open + 1..colon], start, from));
            }
        }
    })
}

fn split(text: &str) -> String {
    let (mut form, mut columns, mut places) = (String::with_capacity(text.len()), Vec::new(), HashMap::new());
    let mut done = 0;
    for (name, start, end) in numbers(text) {
        let place = *places.entry(name).or_insert_with(|| {
            columns.push(String::new());
            columns.len() - 1
        });
        let column: &mut String = &mut columns[place];
        column.push_str(&text[start..end]);
        column.push('\n');
        form.push_str(&text[done..start]);
        form.push(MARK);
        done = end;
    }
    form.push_str(&text[done..]);
    for column in columns {
        form.push(COLUMN);
        form.push_str(&column);
    }
    form
}

fn joined(form: &str) -> Option<String> {
    let mut parts = form.split(COLUMN);
    let text = parts.next()?;
    let mut columns: Vec<_> = parts.map(str::lines).collect();
    let (mut whole, mut places) = (String::with_capacity(2 * text.len()), HashMap::new());
    let mut pieces = text.split(MARK);
    whole.push_str(pieces.next()?);
    for piece in pieces {
        let name = whole.strip_suffix("\": ")?;
        let name = name[name.rfind('"')? + 1..].to_owned();
        let next = places.len();
        let place = *places.entry(name).or_insert(next);
        whole.push_str(columns.get_mut(place)?.next()?);
        whole.push_str(piece);
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, has_columns: bool) {
        let form = in_columns(text);
        assert_eq!(form != text, has_columns, "{form:?}");
        assert_eq!(from_columns(&form).as_deref(), Some(text));
        let packed = compressed(&form, "").expect("compressed");
        assert_eq!(decompressed(&packed, "", u64::MAX).expect("decompressed"), form);
    }

    #[test]
    fn a_text_comes_back_byte_for_byte() {
        check("{\"a\": 1,\n\"b\": [{\"a\": -2.5e-7}, {\"a\": 10, \"b\": 1}], \"c\": null}\n", true);
        check(include_str!("../../../sheets/historic/fermilab-2007.json"), true);
        check("", false);
        check("{\"a\":1}", false);
        check("{\"a\\\": 1\": 2}", true);
    }

    #[test]
    fn beside_a_like_text_it_takes_little() {
        let text = include_str!("../../../sheets/historic/an006-bus.json");
        let form = in_columns(text);
        let other = in_columns(&text.replace("12", "21"));
        let (alone, beside) = (compressed(&other, "").expect("done"), compressed(&other, &form).expect("done"));
        assert!(beside.len() * 3 < alone.len(), "{} and {}", beside.len(), alone.len());
        assert_eq!(decompressed(&beside, &form, u64::MAX).expect("done"), other);
        assert!(decompressed(&beside, "", u64::MAX).is_err(), "the base is needed");
    }
}
