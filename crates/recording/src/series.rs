//! A series: a recording that lasts for weeks, in segments. Each segment is a recording of its own; frames are counted
//! through all of them.
//!
//! ```text
//!   x-000000 │ x-000001 │ x-000002 │ …       segments: three files each, in every target directory
//!   x.hairspring-series                      the index: which segments there are, and which were deleted
//!   x.sigmf-collection                       the closed segments, for every SigMF tool
//! ```
//!
//! This module has the names of these files and the index, and finds a series and opens it as one recording.

pub mod index;
pub mod open;
pub mod present;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::without_ending;

/// The ending of the index.
pub const INDEX_ENDING: &str = ".hairspring-series";
/// The ending of the collection.
pub const COLLECTION_ENDING: &str = ".sigmf-collection";
/// The ending of the file that pins a segment.
pub const PIN_ENDING: &str = ".keep";
/// Digits of a segment's number in its name; larger numbers have more.
const DIGITS: usize = 6;

/// The base path of a segment: that of its series, and its number.
pub fn segment_base(series: &Path, number: u32) -> PathBuf {
    with_ending(series, &format!("-{number:0DIGITS$}"))
}

/// The series and the number to which the base path of a segment belongs; `None` if it is no segment's.
pub fn segment_of(base: &Path) -> Option<(PathBuf, u32)> {
    let name = base.file_name()?.as_bytes();
    let dash = name.iter().rposition(|byte| *byte == b'-').filter(|dash| *dash > 0)?;
    let (series, number) = (OsStr::from_bytes(&name[..dash]), std::str::from_utf8(&name[dash + 1..]).ok()?);
    (number.len() >= DIGITS && number.bytes().all(|digit| digit.is_ascii_digit())).then_some(())?;
    Some((base.with_file_name(series), number.parse().ok()?))
}

/// The file whose presence keeps retention from deleting the segment with this base path.
pub fn pin_of(segment: &Path) -> PathBuf {
    with_ending(segment, PIN_ENDING)
}

/// The index of the series with this base path.
pub fn index_of(series: &Path) -> PathBuf {
    with_ending(series, INDEX_ENDING)
}

/// The collection of the series with this base path.
pub fn collection_of(series: &Path) -> PathBuf {
    with_ending(series, COLLECTION_ENDING)
}

/// The base path of a series: a path with or without the ending of its index or its collection.
pub fn base_of(path: &Path) -> PathBuf {
    let base = [INDEX_ENDING, COLLECTION_ENDING].iter().find_map(|ending| without_ending(path, ending));
    base.unwrap_or_else(|| path.to_owned())
}

/// A path with a further ending.
pub fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_segments_sort_and_lead_back_to_their_series() {
        let base = segment_base(Path::new("/d/x"), 12);
        assert_eq!(base, Path::new("/d/x-000012"));
        assert_eq!(segment_of(&base), Some((PathBuf::from("/d/x"), 12)));
        assert_eq!(segment_of(&segment_base(Path::new("x"), 1_234_567)), Some((PathBuf::from("x"), 1_234_567)));
        for other in ["/d/x", "/d/x-12", "/d/x-00001a", "/d/-000001", "/d/x-+00001"] {
            assert_eq!(segment_of(Path::new(other)), None, "{other}");
        }
        assert_eq!(pin_of(&base), Path::new("/d/x-000012.keep"));
        for path in ["/d/x", "/d/x.hairspring-series", "/d/x.sigmf-collection"] {
            assert_eq!(base_of(Path::new(path)), Path::new("/d/x"));
        }
    }
}
