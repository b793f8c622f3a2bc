//! Shell commands of the tests: modules, mounts, files of the kernel.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit for a file of the kernel to appear or to disappear.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs a script that must succeed, and returns its output.
pub(crate) fn run(script: &str) -> Result<String, String> {
    let output = Command::new("/bin/sh").args(["-ec", script]).output();
    let output = output.map_err(|error| format!("failed to start the shell: {error}"))?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned();
    if output.status.success() { Ok(said) } else { Err(format!("'{script}' ended with {}: {said}", output.status)) }
}

/// Writes to a file of the kernel.
pub(crate) fn write(path: impl AsRef<Path>, text: &str) -> Result<(), String> {
    let path = path.as_ref();
    std::fs::write(path, text).map_err(|error| format!("failed to write '{text}' to {}: {error}", path.display()))
}

/// Waits until a file exists.
pub(crate) fn wait_for(path: &str) -> Result<(), String> {
    wait_until(&format!("{path} did not appear"), || Path::new(path).exists())
}

/// Waits until something holds.
pub(crate) fn wait_until(otherwise: &str, holds: impl Fn() -> bool) -> Result<(), String> {
    let begun = Instant::now();
    while !holds() {
        if begun.elapsed() > PATIENCE {
            return Err(otherwise.to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// The entries of a folder.
pub(crate) fn list(folder: impl AsRef<Path>) -> Result<Vec<PathBuf>, String> {
    let folder = folder.as_ref();
    let entries = std::fs::read_dir(folder).map_err(|error| format!("failed to list {}: {error}", folder.display()))?;
    Ok(entries.flatten().map(|entry| entry.path()).collect())
}
