//! [`Root`]: the trees from which facts are read. It turns a file into text or an [`Unread`].
//!
//! Every file that the facts come from is opened here. Text is safe to print: bytes that are not UTF-8 and control
//! characters other than line ends and tabs become U+FFFD, so that the name of a thread cannot steer a terminal.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::facts::Unread;

/// The longest file that is read, in bytes. The longest of them, `/proc/interrupts`, needs 3 MB on 512 CPUs.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The most entries of a directory that are listed; the largest read here holds one entry per CPU.
const ENTRIES_MAX: usize = 65_536;

/// The places of the kernel's trees and of a few other files; tests use recorded ones.
#[derive(Clone, Debug)]
pub(crate) struct Root {
    /// The process file system, `/proc`.
    pub(crate) proc: PathBuf,
    /// The system file system, `/sys`.
    pub(crate) sys: PathBuf,
    /// Where the kernel's configuration may lie, `/boot`.
    pub(crate) boot: PathBuf,
    /// Device nodes, `/dev`.
    pub(crate) dev: PathBuf,
    /// Settings of the system, `/etc`.
    pub(crate) etc: PathBuf,
}

impl Default for Root {
    fn default() -> Self {
        Self::under(Path::new("/"))
    }
}

impl Root {
    /// The trees under `directory`, each by its usual name.
    pub(crate) fn under(directory: &Path) -> Self {
        Self {
            proc: directory.join("proc"),
            sys: directory.join("sys"),
            boot: directory.join("boot"),
            dev: directory.join("dev"),
            etc: directory.join("etc"),
        }
    }

    /// A directory under `/sys/devices/system/cpu`.
    pub(super) fn cpu(&self, name: &str) -> PathBuf {
        self.sys.join("devices/system/cpu").join(name)
    }
}

/// The bytes of a file.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, Unread> {
    let mut content = Vec::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content))
        .map_err(|error| unread(path, &error))?;
    if content.is_empty() {
        return Err(malformed(path, "empty"));
    }
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(malformed(path, "longer than 16 MiB"));
    }
    Ok(content)
}

/// The text of a file, not trimmed.
pub(super) fn text(path: &Path) -> Result<String, Unread> {
    bytes(path).map(|content| printable(&content))
}

/// The first line of a file, trimmed; an [`Unread`] when nothing is in it.
pub(super) fn line(path: &Path) -> Result<String, Unread> {
    line_or_blank(path).and_then(|line| match line.is_empty() {
        true => Err(malformed(path, "empty")),
        false => Ok(line),
    })
}

/// The first line of a file, trimmed, for files in which a blank line is a valid answer.
pub(super) fn line_or_blank(path: &Path) -> Result<String, Unread> {
    let content = text(path)?;
    Ok(content.lines().next().unwrap_or_default().trim().to_owned())
}

/// The number that a file holds.
pub(super) fn number<N: std::str::FromStr>(path: &Path) -> Result<N, Unread> {
    line(path)?.parse().map_err(|_| malformed(path, "not a number, or out of range"))
}

/// The word in `[brackets]` or `(parentheses)` of a file that lists choices and marks the current one.
pub(super) fn chosen(path: &Path) -> Result<String, Unread> {
    let content = line(path)?;
    content
        .split_whitespace()
        .find_map(|word| {
            let bracketed = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
            bracketed.or_else(|| word.strip_prefix('(')?.strip_suffix(')'))
        })
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| malformed(path, "no choice is marked"))
}

/// The names in a directory, sorted.
pub(super) fn names(path: &Path) -> Result<Vec<String>, Unread> {
    let entries = std::fs::read_dir(path).map_err(|error| unread(path, &error))?;
    let mut names: Vec<String> =
        entries.take(ENTRIES_MAX).filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// The numbers N of the entries `prefixN` of a directory, ascending; an [`Unread`] when there is none.
pub(super) fn numbered(path: &Path, prefix: &str) -> Result<Vec<u32>, Unread> {
    let mut numbers: Vec<u32> =
        names(path)?.iter().filter_map(|name| name.strip_prefix(prefix)?.parse().ok()).collect();
    numbers.sort_unstable();
    match numbers.is_empty() {
        true => Err(malformed(path, &format!("no {prefix}* in it"))),
        false => Ok(numbers),
    }
}

/// Bytes as text that is safe to print.
pub(super) fn printable(content: &[u8]) -> String {
    String::from_utf8_lossy(content)
        .chars()
        .map(|c| if c.is_control() && c != '\n' && c != '\t' { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

/// The system's error when a file was opened or read.
pub(super) fn unread(path: &Path, error: &io::Error) -> Unread {
    let (said, remedy) = match error.kind() {
        io::ErrorKind::NotFound => ("not found".to_owned(), None),
        io::ErrorKind::PermissionDenied => ("permission denied".to_owned(), Some("read it as root".to_owned())),
        _ => {
            let said = error.to_string();
            (said.split(" (os error").next().unwrap_or_default().to_lowercase(), None)
        }
    };
    Unread { reason: format!("{}: {said}", path.display()), remedy }
}

/// A file that was read but does not hold the expected text.
pub(super) fn malformed(path: &Path, what: &str) -> Unread {
    Unread { reason: format!("{}: {what}", path.display()), remedy: None }
}

/// `unread` with `remedy`, unless it has a better one already.
pub(super) fn with_remedy(unread: Unread, remedy: &str) -> Unread {
    Unread { remedy: unread.remedy.or_else(|| Some(remedy.to_owned())), ..unread }
}
