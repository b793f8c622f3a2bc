//! The toolchain's standard libraries for other targets, which rustup adds, and Cargo's commands for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::library;
use crate::workspace::Workspace;

pub(crate) const AARCH64: &str = "aarch64-unknown-linux-gnu";
pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";
pub(crate) const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// Fails, with the remedy, if the toolchain has no standard library for a target.
pub(crate) fn has(workspace: &Workspace, target: &str) -> Result<(), String> {
    let sysroot = library::run(Command::new("rustc").args(["--print", "sysroot"]).current_dir(&workspace.root))?;
    if holds_core(Path::new(sysroot.trim()), target) {
        return Ok(());
    }
    Err(format!("find the toolchain's standard library for {target}; rustup target add {target}"))
}

/// Whether a toolchain's folder has the standard library of a target.
fn holds_core(sysroot: &Path, target: &str) -> bool {
    let libraries = std::fs::read_dir(sysroot.join("lib/rustlib").join(target).join("lib"));
    libraries.into_iter().flatten().flatten().any(|file| file.file_name().to_string_lossy().starts_with("libcore-"))
}

/// rustup's command that adds it.
pub(crate) fn add(workspace: &Workspace, target: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["target", "add", target]).current_dir(&workspace.root);
    command
}

/// Cargo's command for a target, without what only a debugger needs.
pub(crate) fn cargo(workspace: &Workspace, arguments: &[&str], target: &str) -> Command {
    let mut command = workspace.cargo(arguments);
    command.args(["--target", target]).env("CARGO_INCREMENTAL", "0").env("CARGO_PROFILE_DEV_DEBUG", "0");
    command
}

/// The folder of programs that such a command builds.
pub(crate) fn programs(workspace: &Workspace, target: &str) -> PathBuf {
    workspace.target.join(target).join("debug")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_counts_only_with_its_core_library() {
        let folder = tempfile::tempdir().unwrap();
        let libraries = folder.path().join("lib/rustlib/a-b/lib");
        std::fs::create_dir_all(&libraries).unwrap();
        assert!(!holds_core(folder.path(), "a-b"));
        std::fs::write(libraries.join("libcore-0123.rlib"), "").unwrap();
        assert!(holds_core(folder.path(), "a-b") && !holds_core(folder.path(), "a-c"));
    }
}
