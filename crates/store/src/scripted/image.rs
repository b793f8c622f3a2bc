//! [`Image`]: the files of a disk and their contents.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Component, Path, PathBuf};

use super::content::Content;

/// The files of a disk, by path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    pub(super) files: BTreeMap<PathBuf, Content>,
}

impl Image {
    /// Adds a file, or replaces it.
    pub fn put(&mut self, path: impl Into<PathBuf>, bytes: &[u8]) {
        self.files.insert(path.into(), Content::of(bytes));
    }

    /// The paths of all files, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// The length of a file.
    pub fn length(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.files.get(path.as_ref()).map(|content| content.length)
    }

    /// The bytes of a file; `None` also if it is too long for memory.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let content = self.files.get(path.as_ref())?;
        Some(content.read(0, usize::try_from(content.length).ok()?))
    }

    /// Writes all files into a folder, with their folders. Absolute paths become relative to it. Zeros become holes.
    ///
    /// # Errors
    /// The system's error.
    pub fn write_to(&self, folder: &Path) -> io::Result<()> {
        for (path, content) in &self.files {
            let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
            let path = folder.join(parts.collect::<PathBuf>());
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let file = File::create(&path)?;
            file.set_len(content.length)?;
            for (at, bytes) in content.pieces() {
                file.write_all_at(bytes, at)?;
            }
        }
        Ok(())
    }
}
