//! The tools of a release that come from PyPI, in an environment under the target directory.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use crate::library;
use crate::workspace::Workspace;

/// The packages and their versions.
const REQUIREMENTS: &str = "packaging/requirements.txt";

/// The Python of the environment, which is made if it is missing.
pub(super) fn python(workspace: &Workspace) -> Result<PathBuf, String> {
    let folder = workspace.scratch("release-tools");
    let python = folder.join("bin/python");
    if !python.is_file() {
        library::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    // Fast when everything is there; otherwise it needs a network.
    let mut install = Command::new(&python);
    install
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
        .arg(workspace.root.join(REQUIREMENTS));
    library::run(&mut install)?;
    Ok(python)
}

/// PATH with the environment's programs first.
pub(super) fn path(workspace: &Workspace) -> OsString {
    let own = workspace.scratch("release-tools").join("bin");
    let others = std::env::var_os("PATH").unwrap_or_default();
    std::env::join_paths([own].into_iter().chain(std::env::split_paths(&others))).unwrap_or(others)
}
