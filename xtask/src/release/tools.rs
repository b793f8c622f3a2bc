//! The tools of a release that come from PyPI, in an environment under the target directory, and compilers for other systems.
//!
//! A compiler for another system is the toolchain itself, if rustup has added the target, or the one that `cargo xtask test --setup` unpacks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Making;
use crate::library;
use crate::test::aarch64::{self, Compiler};
use crate::workspace::Workspace;

/// The packages and their versions.
const REQUIREMENTS: &str = "packaging/requirements.txt";
/// Builds the standard library of a target that the unpacked compiler has as sources only.
const FROM_SOURCES: &str = "-Zbuild-std=std,panic_unwind";

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

/// Chooses the compiler of a target for a command that Cargo or maturin compiles with.
pub(super) fn compile_for(making: &Making, target: &str, command: &mut Command) -> Result<(), String> {
    let workspace = making.workspace;
    if is_of_toolchain(workspace, target)? {
        return Ok(());
    }
    let (root, rustc, libraries) = aarch64::unpacked(workspace);
    let is_whole = rustc.is_file() && has_std(&root.join("usr"), target);
    let has_sources = rustc.is_file() && root.join("usr/lib/rustlib/src/rust/library/Cargo.lock").is_file();
    // Of musl the sources do not hold the C library.
    if !is_whole && (!has_sources || target.contains("musl")) {
        return Err(format!("find a compiler with the standard library for {target}; rustup target add {target}"));
    }
    aarch64::with(command, &Compiler::Unpacked { rustc, libraries }, workspace);
    // Of its own: two compilers in one folder would discard each other's work.
    command.env("CARGO_TARGET_DIR", making.output(target)?);
    if !is_whole {
        command.arg(FROM_SOURCES);
    }
    Ok(())
}

/// Whether the toolchain has the standard library of a target.
pub(crate) fn is_of_toolchain(workspace: &Workspace, target: &str) -> Result<bool, String> {
    let mut ask = Command::new("rustc");
    let sysroot = library::run(ask.args(["--print", "sysroot"]).current_dir(&workspace.root))?;
    Ok(has_std(Path::new(sysroot.trim()), target))
}

/// Whether a compiler's folder has the standard library of a target.
fn has_std(sysroot: &Path, target: &str) -> bool {
    let libraries = std::fs::read_dir(sysroot.join("lib/rustlib").join(target).join("lib"));
    libraries.into_iter().flatten().flatten().any(|file| file.file_name().to_string_lossy().starts_with("libcore-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_counts_only_with_its_core_library() {
        let folder = tempfile::tempdir().unwrap();
        let libraries = folder.path().join("lib/rustlib/a-b/lib");
        std::fs::create_dir_all(&libraries).unwrap();
        assert!(!has_std(folder.path(), "a-b"));
        std::fs::write(libraries.join("libcore-0123.rlib"), "").unwrap();
        assert!(has_std(folder.path(), "a-b") && !has_std(folder.path(), "a-c"));
    }
}
