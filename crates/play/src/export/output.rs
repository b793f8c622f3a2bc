//! [`Output`]: a new file that gets its name when it is whole.

use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::path::{Path, PathBuf};

use hairspring_file::NewFile;

use super::ExportError;

/// A file that is being written.
#[derive(Debug)]
pub(super) struct Output {
    writer: BufWriter<NewFile>,
    path: PathBuf,
}

impl Output {
    /// Begins a file that must not exist.
    pub(super) fn create(path: &Path) -> Result<Self, ExportError> {
        let begun = match path.symlink_metadata() {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => NewFile::begin(path),
        };
        let file = begun.map_err(|error| ExportError::Output(path.to_owned(), error))?;
        Ok(Self { writer: BufWriter::with_capacity(1 << 20, file), path: path.to_owned() })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), ExportError> {
        self.writer.write_all(bytes).map_err(|error| ExportError::Output(self.path.clone(), error))
    }

    /// Replaces bytes that were written before. The next write follows these bytes.
    pub(super) fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<(), ExportError> {
        let placed = self.writer.seek(SeekFrom::Start(at)).and_then(|_| self.writer.write_all(bytes));
        placed.map_err(|error| ExportError::Output(self.path.clone(), error))
    }

    /// Gives it its name, and makes both durable. Some file systems do not offer that for names.
    pub(super) fn finish(self) -> Result<(), ExportError> {
        let written = self.writer.into_inner().map_err(io::IntoInnerError::into_error);
        let done = written.and_then(NewFile::publish).and_then(|()| hairspring_store::sync_folder(&self.path));
        done.map_err(|error| ExportError::Output(self.path, error))
    }
}
