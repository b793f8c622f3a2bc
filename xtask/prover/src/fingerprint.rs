//! The sources that a kept result rests on, as numbers: if one has changed, the result is forgotten.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::Path;

/// Adds the number of each Rust file below a folder, by its path.
pub(crate) fn numbers(folder: &Path, into: &mut BTreeMap<String, u64>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            numbers(&path, into)?;
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            into.insert(path.to_string_lossy().into_owned(), number(&fs::read(&path)?));
        }
    }
    Ok(())
}

pub(crate) fn number(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
