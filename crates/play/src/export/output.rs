//! [`Output`]: a new file that gets its name when it is whole.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::ExportError;

/// A file that is being written under another name.
#[derive(Debug)]
pub(super) struct Output {
    writer: BufWriter<File>,
    partial: PathBuf,
    path: PathBuf,
    is_done: bool,
}

impl Output {
    /// Begins a file that must not exist.
    pub(super) fn create(path: &Path) -> Result<Self, ExportError> {
        let failed = |error| ExportError::Output(path.to_owned(), error);
        if path.symlink_metadata().is_ok() {
            return Err(failed(io::Error::from(io::ErrorKind::AlreadyExists)));
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(name);
        let file = OpenOptions::new().write(true).create_new(true).open(&partial).map_err(failed)?;
        let writer = BufWriter::with_capacity(1 << 20, file);
        Ok(Self { writer, partial, path: path.to_owned(), is_done: false })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        self.writer.write_all(bytes).map_err(|error| ExportError::Output(self.path.clone(), error))
    }

    /// Makes it durable and gives it its name.
    pub(super) fn finish(mut self) -> Result<(), ExportError> {
        let done = self.writer.flush().and_then(|()| self.writer.get_ref().sync_all()).and_then(|()| self.name());
        // The data are durable; their name is when the folder is. Some file systems do not offer that.
        let done = done.and_then(|()| hairspring_record::store::sync_folder(&self.path));
        self.is_done = done.is_ok();
        done.map_err(|error| ExportError::Output(self.path.clone(), error))
    }

    /// A link does not replace what came to exist meanwhile; where there are no links, that is looked at once more.
    fn name(&self) -> io::Result<()> {
        match std::fs::hard_link(&self.partial, &self.path) {
            Ok(()) => std::fs::remove_file(&self.partial),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            Err(_) if self.path.symlink_metadata().is_ok() => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
            Err(_) => std::fs::rename(&self.partial, &self.path),
        }
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.is_done {
            // Nothing half done stays; what led here is told by the error.
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}
