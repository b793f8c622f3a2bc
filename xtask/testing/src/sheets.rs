//! The sheets of real machines in the folder `sheets` of the repository.

use std::path::Path;

/// The JSON of the sheet `sheets/NAME.json.zst`.
///
/// # Panics
/// The sheet cannot be read.
#[track_caller]
pub fn real(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sheets").join(name).with_extension("json.zst");
    let json = std::fs::read(&path).and_then(|bytes| zstd::decode_all(&*bytes));
    let json = json.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    String::from_utf8(json).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
