//! Where results and everything else go: results to the standard output or a file, the rest to the standard error.

use std::fs::Permissions;
use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hairspring_sheet::TextStyle;
use tempfile::NamedTempFile;

use crate::exit::{Exit, Failure};

/// Width for a file or a pipe, and the least and most that is made of a terminal.
const WIDTH_USUAL: usize = 100;
const WIDTH_LEAST: usize = 60;
const WIDTH_MOST: usize = 160;

/// Prints a result. A reader that closes the pipe early has what it wanted.
pub(crate) fn print(text: &str) -> Result<Exit, Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Exit::Success),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::Success),
        Err(error) => Err(Failure::failed(format!("write to the standard output: {error}"))),
    }
}

/// Tells a person what went wrong.
pub(crate) fn complain(text: &str) {
    // Nobody is left to be told if even this fails.
    let _ = writeln!(std::io::stderr().lock(), "hairspring: {text}");
}

/// How text is set on the standard output.
pub(crate) fn style() -> TextStyle {
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal();
    let width = terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0));
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    TextStyle {
        width: width.filter(|_| terminal).unwrap_or(WIDTH_USUAL).clamp(WIDTH_LEAST, WIDTH_MOST),
        colour: terminal && !plain,
        ..TextStyle::default()
    }
}

/// A file that appears under its name only when it is complete.
#[derive(Debug)]
pub(crate) struct OutputFile {
    target: PathBuf,
    file: NamedTempFile,
}

impl OutputFile {
    /// Opens it, which fails early where it could not be written in the end.
    pub(crate) fn create(target: &Path) -> Result<Self, Failure> {
        let refused = |why: String| {
            Failure::bad_request(format!("cannot write {}: {why}; choose another file for --out", target.display()))
        };
        if target.is_dir() {
            return Err(refused("it is a directory".to_owned()));
        }
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(".hairspring-")
            .suffix(".tmp")
            // What the caller's umask leaves of it, as for any new file.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder)
            .map_err(|error| refused(plain(&error)))?;
        Ok(Self { target: target.to_owned(), file })
    }

    /// Writes it, and gives it its name only when everything has reached the disk.
    pub(crate) fn finish(mut self, text: &str) -> Result<(), Failure> {
        let target = self.target.display().to_string();
        let written = self.file.write_all(text.as_bytes()).and_then(|()| self.file.as_file().sync_all());
        written
            .and_then(|()| self.file.persist(&self.target).map_err(|error| error.error))
            .map(drop)
            .map_err(|error| Failure::failed(format!("write {target}: {}; nothing was left behind", plain(&error))))
    }
}

/// The system's words without the name of our temporary file.
fn plain(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => std::io::Error::from_raw_os_error(number).to_string(),
        None => match error.kind() {
            ErrorKind::NotFound => "no such directory".to_owned(),
            ErrorKind::PermissionDenied => "permission denied".to_owned(),
            kind => kind.to_string(),
        },
    }
}
