//! Where results and everything else go: results to the standard output or a file, the rest to the standard error.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};

use hairspring_sheet::TextStyle;
use tempfile::NamedTempFile;

use crate::exit::{Exit, Failure};

/// Width for a file or a pipe, and the least and most that is made of a terminal.
pub(crate) const WIDTH_USUAL: usize = 100;
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

/// Where `--out` points to. A file appears under its name only when it is complete; until then nothing is beside it, so
/// that a program which is killed while it measures leaves nothing behind either.
#[derive(Debug)]
pub(crate) struct OutputFile {
    /// The name as it was written.
    named: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A file to be, or to be replaced: what a link leads to, so that the link itself stays.
    File(PathBuf),
    /// A device, a pipe or the like: it is written to and never replaced.
    Special(File),
}

impl OutputFile {
    /// Tries it, which fails early where it could not be written in the end.
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
            // Gone again at once.
            temporary(file).map(drop).map_err(|error| refused(plain(&error)))?;
        }
        Ok(Self { named: named.to_owned(), target })
    }

    /// Writes it. A file gets its name only when everything has reached the disk.
    pub(crate) fn finish(self, text: &str) -> Result<(), Failure> {
        let named = self.named.display().to_string();
        match self.target {
            Target::File(file) => replace(&file, text)
                .map_err(|error| Failure::failed(format!("write {named}: {}; nothing was left behind", plain(&error)))),
            Target::Special(mut special) => special
                .write_all(text.as_bytes())
                .map_err(|error| Failure::failed(format!("write {named}: {}", plain(&error)))),
        }
    }
}

/// Gives `file` this content, or leaves it as it is.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    let mut new = temporary(file)?;
    // Not through the wrapper, which puts words of its own in place of the system's.
    new.as_file_mut().write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(file).map(drop).map_err(|error| error.error)
}

/// A temporary file in the folder of `file`; it vanishes unless it is given a name.
fn temporary(file: &Path) -> std::io::Result<NamedTempFile> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut named = tempfile::Builder::new();
    named.prefix(".hairspring-").suffix(".tmp");
    crate::as_any_new_file(&mut named).tempfile_in(folder)
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
