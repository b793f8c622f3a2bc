//! Paths as JSON: text, and where they are not UTF-8 also their bytes in hexadecimal digits.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Paths as readable text, and as bytes if one of them is not UTF-8; otherwise no bytes.
pub(super) fn written(paths: &[PathBuf]) -> (Vec<String>, Vec<String>) {
    let text = paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let bytes = match paths.iter().all(|path| path.to_str().is_some()) {
        true => Vec::new(),
        false => paths.iter().map(|path| hex(path.as_os_str().as_bytes())).collect(),
    };
    (text, bytes)
}

/// Reads them back: from the bytes if there are as many as texts and all are valid, otherwise from the texts.
pub(super) fn read(text: Vec<String>, bytes: &[String]) -> Vec<PathBuf> {
    let exact: Option<Vec<PathBuf>> = bytes.iter().map(|digits| from_hex(digits)).collect();
    let exact = exact.filter(|exact| exact.len() == text.len());
    exact.unwrap_or_else(|| text.into_iter().map(PathBuf::from).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(digits: &str) -> Option<PathBuf> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect::<Option<Vec<u8>>>()?;
    rest.is_empty().then(|| PathBuf::from(OsStr::from_bytes(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_any_bytes_are_read_back_and_ordinary_ones_are_text_only() {
        let ordinary = [PathBuf::from("/d1/ä"), PathBuf::from("/d2/x")];
        assert_eq!(written(&ordinary).1, Vec::<String>::new());
        let any = [PathBuf::from(OsStr::from_bytes(b"/d1/\xff\n")), PathBuf::from("/d2/x")];
        for paths in [ordinary, any] {
            let (text, bytes) = written(&paths);
            assert_eq!(read(text, &bytes), paths);
        }
        let text = || vec!["/d/x".to_owned()];
        for bytes in [vec!["2".to_owned()], vec!["zz".to_owned()], vec!["2f".to_owned(), "2f".to_owned()]] {
            assert_eq!(read(text(), &bytes), [PathBuf::from("/d/x")]);
        }
    }
}
