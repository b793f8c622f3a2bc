//! [`Apt`]: apt with its own package lists, cache and downloads, and with arm64 among the architectures, so that the
//! system's configuration does not change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::test::needs;

/// Runs a command that must succeed and returns its output.
pub(crate) type Must<'a> = &'a mut dyn FnMut(&mut Command) -> Result<String, String>;

/// apt in a folder.
pub(crate) struct Apt {
    options: Vec<String>,
    pub(crate) downloads: PathBuf,
}

impl Apt {
    /// Makes its folders; `native` is this system's architecture as dpkg names it.
    pub(crate) fn new(folder: &Path, native: &str) -> Result<Apt, String> {
        let (lists, cache, downloads) = (folder.join("lists"), folder.join("cache"), folder.join("downloads"));
        let _ = fs::remove_dir_all(&downloads);
        for needed in [lists.join("partial"), cache.join("archives/partial"), downloads.clone()] {
            fs::create_dir_all(&needed).map_err(|error| format!("create {}: {error}", needed.display()))?;
        }
        let mut options = vec![
            format!("Dir::State::Lists={}", lists.display()),
            format!("Dir::Cache={}", cache.display()),
            format!("APT::Architectures::={native}"),
            // apt's download user has no access to this folder.
            format!("APT::Sandbox::User={}", if needs::is_root() { "root" } else { "" }),
        ];
        if native != "arm64" {
            options.push("APT::Architectures::=arm64".to_owned());
        }
        Ok(Apt { options, downloads })
    }

    /// Runs one of its programs, in the folder of downloads.
    pub(crate) fn run(&self, program: &str, arguments: &[&str], must: Must<'_>) -> Result<String, String> {
        let mut command = Command::new(program);
        for option in &self.options {
            command.args(["-o", option]);
        }
        must(command.args(arguments).current_dir(&self.downloads))
    }

    /// The downloaded packages.
    pub(crate) fn downloaded(&self) -> Result<Vec<PathBuf>, String> {
        let entries = fs::read_dir(&self.downloads)
            .map_err(|error| format!("list the downloads in {}: {error}", self.downloads.display()))?;
        let files = entries.flatten().map(|entry| entry.path());
        Ok(files.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect())
    }
}
