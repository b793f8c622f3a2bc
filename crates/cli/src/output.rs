//! Output: results go to the standard output or a file, messages to the standard error.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use hairspring_file::NewFile;
use hairspring_sheet::TextStyle;

use crate::exit::{Exit, Failure};
use crate::process;

/// Columns of text for a file or a pipe; the two below bound the columns for a terminal.
pub(crate) const WIDTH_USUAL: usize = 100;
const WIDTH_LEAST: usize = 60;
const WIDTH_MOST: usize = 160;

/// Prints a result. A pipe that its reader closes early is not an error.
pub(crate) fn print(text: &str) -> Result<Exit, Failure> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Exit::Success),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::Success),
        Err(error) => Err(Failure::failed(format!("failed to write to the standard output: {error}"))),
    }
}

/// Writes a result to the file, or prints it if none is named.
pub(crate) fn finish(file: Option<OutputFile>, text: &str) -> Result<(), Failure> {
    match file {
        Some(file) => file.finish(text),
        None => print(text).map(drop),
    }
}

/// Prints an error message.
pub(crate) fn complain(text: &str) {
    // A failure here cannot be reported anywhere.
    let _ = writeln!(std::io::stderr().lock(), "hairspring: {}", process::remedy(text));
}

/// Prints a line of a log.
pub(crate) fn log(text: &str) {
    complain(text);
}

/// Width and colours of text on the standard output.
pub(crate) fn style(verbose: bool) -> TextStyle {
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal();
    let width = terminal_size::terminal_size_of(&stdout).map(|(width, _)| usize::from(width.0));
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
        || std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    TextStyle {
        width: width.filter(|_| terminal).unwrap_or(WIDTH_USUAL).clamp(WIDTH_LEAST, WIDTH_MOST),
        colour: terminal && !plain,
        verbose,
    }
}

/// The target of `--out`. A file appears under its name only when it is complete. No temporary file exists before the
/// write, so a program that is killed while it measures leaves no file behind.
#[derive(Debug)]
pub(crate) struct OutputFile {
    /// The name as the user wrote it.
    named: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A new file, or one to replace. A symbolic link is resolved, so that the link itself stays.
    File(PathBuf),
    /// A device or a pipe: written to, never replaced.
    Special(File),
}

impl OutputFile {
    /// Checks that the file can be written, so that a bad name fails before anything is measured.
    pub(crate) fn create(named: &Path) -> Result<Self, Failure> {
        let refused = |why: String| {
            Failure::bad_request(format!("cannot write {}: {why}; choose another file for --out", named.display()))
        };
        let target = match std::fs::metadata(named) {
            Ok(found) if found.is_dir() => return Err(refused("it is a directory".to_owned())),
            Ok(found) if found.is_file() => Target::File(named.canonicalize().map_err(|error| refused(plain(&error)))?),
            Ok(_) => {
                let opened = OpenOptions::new().write(true).open(named);
                Target::Special(opened.map_err(|error| refused(plain(&error)))?)
            }
            Err(_) => Target::File(named.to_owned()),
        };
        if let Target::File(file) = &target {
            // Removed at once.
            NewFile::begin(file).map(drop).map_err(|error| refused(plain(&error)))?;
        }
        Ok(Self { named: named.to_owned(), target })
    }

    /// Writes the text. A file gets its name only when all of it is on the disk.
    pub(crate) fn finish(self, text: &str) -> Result<(), Failure> {
        let named = self.named.display().to_string();
        match self.target {
            Target::File(file) => {
                let replaced = NewFile::begin(&file).and_then(|mut new| {
                    new.write_all(text.as_bytes())?;
                    new.replace()
                });
                replaced.map_err(|error| {
                    Failure::failed(format!("failed to write {named}: {}; no file was left behind", plain(&error)))
                })
            }
            Target::Special(mut special) => special
                .write_all(text.as_bytes())
                .map_err(|error| Failure::failed(format!("failed to write {named}: {}", plain(&error)))),
        }
    }
}

/// The system's message without the name of the temporary file.
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
