//! The version of the extension in metadata, and its change where the samples are compressed or restored.
//!
//! Metadata whose samples are compressed have version 2 in place of 1, and are the same otherwise. So a program that
//! does not know the compression refuses them, and reports that it needs a newer version. Otherwise its `recover` would
//! find no data file, and declare all samples lost.

use std::borrow::Cow;

use serde::Deserialize;

use super::SigmfError;
/// The name of the extension.
pub(super) const NAME: &str = "hairspring";

/// The first numbers of versions: of metadata with a data file, and of metadata whose samples may be compressed.
const PLAIN: &str = "1";
const COMPRESSED: &str = "2";

/// The part of metadata in which the version is. It borrows from the text, so that its place is known.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    global: Global<'a>,
}

#[derive(Deserialize)]
struct Global<'a> {
    #[serde(rename = "core:extensions", borrow, default)]
    extensions: Vec<Extension<'a>>,
}

#[derive(Deserialize)]
struct Extension<'a> {
    name: String,
    #[serde(borrow)]
    version: Cow<'a, str>,
}

/// The version that metadata state.
///
/// # Errors
/// The text is no SigMF, is another program's, or has an unknown version.
pub(super) fn stated(meta: &[u8]) -> Result<&str, SigmfError> {
    let head: Head<'_> = serde_json::from_slice(meta).map_err(|error| SigmfError::NotSigmf(error.to_string()))?;
    let ours = head.global.extensions.into_iter().find(|extension| extension.name == NAME);
    let Cow::Borrowed(version) = ours.ok_or(SigmfError::Foreign)?.version else {
        return Err(SigmfError::Value("its version is written with escapes".to_owned()));
    };
    match version.split('.').next() {
        Some(PLAIN | COMPRESSED) => Ok(version),
        _ => Err(SigmfError::Newer(version.to_owned())),
    }
}

/// Metadata that state whether the samples may be compressed; `None` if these state that already. One byte differs.
///
/// # Errors
/// The metadata cannot be read.
pub fn restated(meta: &[u8], is_compressed: bool) -> Result<Option<Vec<u8>>, SigmfError> {
    let version = stated(meta)?;
    let wanted = if is_compressed { COMPRESSED } else { PLAIN };
    if version.starts_with(wanted) {
        return Ok(None);
    }
    // The version borrows from the metadata: this is its offset.
    let at = version.as_ptr().addr() - meta.as_ptr().addr();
    let mut changed = meta.to_vec();
    changed[at..at + wanted.len()].copy_from_slice(wanted.as_bytes());
    Ok(Some(changed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_says_that_samples_are_compressed_and_comes_back() {
        for (before, after) in [("1.1.0", "2.1.0"), ("1.0.0", "2.0.0")] {
            let text = |version: &str| {
                let other = r#"{"name": "1.1.0", "version": "1.1.0"}"#;
                format!(
                    r#"{{"global": {{"core:extensions": [{other}, {{"name": "hairspring", "version": "{version}"}}]}}}}"#
                )
            };
            let (before, after) = (text(before).into_bytes(), text(after).into_bytes());
            assert_eq!(restated(&before, true), Ok(Some(after.clone())));
            assert_eq!(restated(&after, false), Ok(Some(before.clone())));
            assert_eq!((restated(&before, false), restated(&after, true)), (Ok(None), Ok(None)));
        }
        let newer = br#"{"global": {"core:extensions": [{"name": "hairspring", "version": "3.0.0"}]}}"#;
        assert_eq!(restated(newer, false), Err(SigmfError::Newer("3.0.0".to_owned())));
    }
}
