//! A tree of files in the shape of a machine's, in a temporary directory that goes with it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::host::linux_facts::Root;

/// The tree.
pub(super) struct Tree {
    directory: PathBuf,
}

impl Tree {
    /// A tree without a file.
    pub(super) fn empty() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // Relaxed: only that each number is given once matters.
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hairspring-facts-{}-{number}", std::process::id());
        // The tests write some ten thousand small files, which wait for a disk wherever the temporary directory is on
        // one.
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() { memory.into() } else { std::env::temp_dir() }.join(name);
        std::fs::create_dir_all(&directory).unwrap();
        Self { directory }
    }

    /// The tree with this file in it, replacing what was there.
    pub(super) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.directory.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// The tree with these files in it.
    pub(super) fn files(self, files: &[(&str, &str)]) -> Self {
        files.iter().fold(self, |tree, (path, content)| tree.file(path, content))
    }

    /// The tree without this file or directory.
    pub(super) fn without(self, path: &str) -> Self {
        let path = self.directory.join(path);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
        self
    }

    /// Where the facts are read from.
    pub(super) fn root(&self) -> Root {
        Root::under(&self.directory)
    }

    /// `text` as if the tree were the machine's own.
    pub(super) fn without_path(&self, text: &str) -> String {
        text.replace(&self.directory.display().to_string(), "")
    }

    /// All files of the tree.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let mut directories = vec![self.directory.clone()];
        let mut files = Vec::new();
        while let Some(directory) = directories.pop() {
            for entry in std::fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() { directories.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        files
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // A directory that stays behind in the temporary directory is no reason to fail a test.
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
