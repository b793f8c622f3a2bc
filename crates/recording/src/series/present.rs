//! Which files of a series are in a folder, by their names alone.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::{DIGITS, PIN_ENDING};
use hairspring_store::{Store, StoreError};

/// The files of one number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Present {
    /// Whether its metadata exist.
    pub meta: bool,
    /// Whether its journal exists.
    pub journal: bool,
    /// Whether it is pinned.
    pub pin: bool,
    /// Whether any other file exists.
    pub other: bool,
}

/// The number and the ending of a file's name, if it is one of this series.
pub fn numbered<'a>(series: &OsStr, name: &'a OsStr) -> Option<(u32, &'a str)> {
    let rest = name.as_bytes().strip_prefix(series.as_bytes())?.strip_prefix(b"-")?;
    let rest = std::str::from_utf8(rest).ok()?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, ending) = rest.split_at(digits);
    (digits >= DIGITS && ending.starts_with('.')).then_some(())?;
    Some((number.parse().ok()?, ending))
}

/// The files of a series, by number.
///
/// # Errors
/// The folder cannot be read.
pub fn files_of(store: &mut dyn Store, series: &Path) -> Result<BTreeMap<u32, Present>, StoreError> {
    let mut found: BTreeMap<u32, Present> = BTreeMap::new();
    let name = series.file_name().unwrap_or_default();
    store.names(hairspring_file::folder_of(series), &mut |file: &OsStr| {
        let Some((number, ending)) = numbered(name, file) else { return };
        let present = found.entry(number).or_default();
        match ending {
            ".sigmf-meta" => present.meta = true,
            ".hairspring-journal" => present.journal = true,
            PIN_ENDING => present.pin = true,
            _ => present.other = true,
        }
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_a_series_by_its_whole_name() {
        let number = |name: &str| {
            numbered(OsStr::new("x"), OsStr::new(name)).map(|(number, ending)| (number, ending.to_owned()))
        };
        assert_eq!(number("x-000012.sigmf-data.zst"), Some((12, ".sigmf-data.zst".to_owned())));
        assert_eq!(number("x-1234567.keep"), Some((1_234_567, ".keep".to_owned())));
        for other in
            ["x-12.keep", "x-000012", "x-000012a.keep", "xx-000012.keep", "y-000012.keep", "x-99999999999.keep"]
        {
            assert_eq!(number(other), None, "{other}");
        }
    }
}
