//! aarch64 Linux: `cargo check` of the product's crates for that target, and the tests of machine and time under QEMU.
//!
//! It needs a compiler that has the target's standard library. This toolchain may have it already: on an aarch64 machine, or after
//! `rustup target add`. Otherwise setup (`setup.rs`) has unpacked Debian's `rustc-web` and its arm64 library, both of one version, into
//! the target directory. That compiler uses the `rustlib` folder beside its own libraries, which holds arm64's library next to the host's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::{Context, cargo_tests, needs};
use crate::tally::Tally;
use crate::workspace::Workspace;

pub(crate) const TARGET: &str = "aarch64-unknown-linux-gnu";

const CRATES: &[&str] = &[
    "hairspring-describe",
    "hairspring-file",
    "hairspring-machine",
    "hairspring-time",
    "hairspring-exec-core",
    "hairspring-exec",
    "hairspring-ring",
    "hairspring-tap",
    "hairspring-source",
    "hairspring-record",
    "hairspring-play",
    "hairspring-plan",
    "hairspring-device",
    "hairspring-station",
    "hairspring-sheet",
    "hairspring-suite",
    "hairspring-cli",
    "hairspring-c",
];

/// The crates whose tests run: those that depend on the processor, and those above them.
const RUN: &[&str] = &["hairspring-machine", "hairspring-time"];

const LINKER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64";
/// The folder of the target's C library in Debian's cross packages.
const C_LIBRARY: &str = "/usr/aarch64-linux-gnu";
/// Debian packages that running the tests needs.
pub(crate) const DEBIAN: [&str; 3] = ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"];

/// A compiler that can check for the target.
pub(crate) enum Compiler {
    /// The one Cargo uses anyway.
    Toolchain,
    /// One unpacked from Debian packages, with the folder its shared libraries are in.
    Unpacked { rustc: PathBuf, libraries: PathBuf },
}

pub(crate) fn check(context: &Context, name: &str) -> Tally {
    let mut command = match cargo(context.workspace, &["check", "--target", TARGET]) {
        Ok(command) => command,
        Err(why) => return Tally::fail(name, why, ""),
    };
    for package in CRATES {
        command.args(["-p", package]);
    }
    let ended = context.run(name, &mut command);
    if ended.succeeded() {
        Tally::pass()
    } else {
        Tally::fail(name, format!("cargo check --target {TARGET}: {}", ended.how), ended.tail())
    }
}

/// Runs the integration tests of the crates below under QEMU's user emulation. The emulation has no rseq, so there is no
/// sentinel, and the tests that need one are skipped.
pub(crate) fn run(context: &Context, name: &str) -> Tally {
    let arguments = ["test", "--target", TARGET, "--no-fail-fast", "--test", "it"];
    let mut command = match cargo(context.workspace, &arguments) {
        Ok(command) => command,
        Err(why) => return Tally::fail(name, why, ""),
    };
    for package in RUN {
        command.args(["-p", package]);
    }
    command
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", LINKER)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", format!("{EMULATOR} -L {C_LIBRARY}"));
    cargo_tests::count(name, &context.run(name, &mut command))
}

/// The missing requirements for running, in words.
pub(crate) fn cannot_run(workspace: &Workspace) -> Option<String> {
    if let Err(why) = compiler(workspace) {
        return Some(why);
    }
    if let Some(program) = [LINKER, EMULATOR].into_iter().find(|program| needs::in_path(program).is_none()) {
        return Some(format!("{program} is not installed"));
    }
    let there = Path::new(C_LIBRARY).join("lib/libc.so.6").is_file();
    (!there).then(|| format!("there is no C library for {TARGET} in {C_LIBRARY}"))
}

/// A Cargo command with a compiler for the target.
pub(crate) fn cargo(workspace: &Workspace, arguments: &[&str]) -> Result<Command, String> {
    let compiler = compiler(workspace)?;
    let mut command = workspace.cargo(arguments);
    with(&mut command, &compiler, workspace);
    Ok(command)
}

/// The compiler for a Cargo command. All commands share the same settings, so that macros and build scripts are built only once.
/// The unpacked compiler may use unstable features, because it builds the standard library for Windows.
pub(crate) fn with<'c>(command: &'c mut Command, compiler: &Compiler, workspace: &Workspace) -> &'c mut Command {
    // A separate target directory: two compilers in one would discard each other's work.
    command.env("CARGO_TARGET_DIR", target_folder(workspace)).env("CARGO_INCREMENTAL", "0");
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_TEST_DEBUG", "0");
    if let Compiler::Unpacked { rustc, libraries } = compiler {
        command.env("RUSTC", rustc).env("LD_LIBRARY_PATH", library_path(libraries)).env("RUSTC_BOOTSTRAP", "1");
    }
    command
}

/// The folder of Cargo's output for the target.
pub(crate) fn target_folder(workspace: &Workspace) -> PathBuf {
    workspace.scratch("aarch64").join("target")
}

/// Where setup unpacks the packages.
pub(crate) fn unpacked_root(workspace: &Workspace) -> PathBuf {
    workspace.scratch("aarch64").join("root")
}

/// The unpacked compiler, if present: its root, its program, and its shared libraries.
pub(crate) fn unpacked(workspace: &Workspace) -> (PathBuf, PathBuf, PathBuf) {
    let root = unpacked_root(workspace);
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let (rustc, libraries) = (root.join("usr/bin/rustc"), root.join("usr/lib").join(triplet));
    (root, rustc, libraries)
}

/// Finds a usable compiler, or says what is missing.
pub(crate) fn compiler(workspace: &Workspace) -> Result<Compiler, String> {
    if let Some(sysroot) = sysroot(Command::new("rustc").current_dir(&workspace.root))
        && has_core(&sysroot)
    {
        return Ok(Compiler::Toolchain);
    }
    let (root, rustc, libraries) = unpacked(workspace);
    if !rustc.is_file() {
        return Err(format!("no compiler here has the standard library for {TARGET}"));
    }
    let mut ask = Command::new(&rustc);
    ask.env("LD_LIBRARY_PATH", library_path(&libraries));
    match sysroot(&mut ask) {
        Some(found) if found.starts_with(&root) && has_core(&found) => Ok(Compiler::Unpacked { rustc, libraries }),
        Some(found) => Err(format!("{} looks for its libraries in {}", rustc.display(), found.display())),
        None => Err(format!("{} does not run", rustc.display())),
    }
}

/// Whether setup can install one: downloading and unpacking Debian packages does not need root.
pub(crate) fn can_fetch() -> bool {
    ["apt-get", "apt-cache", "dpkg"].into_iter().all(|program| needs::in_path(program).is_some())
}

fn sysroot(rustc: &mut Command) -> Option<PathBuf> {
    let Output { status, stdout, .. } = rustc.args(["--print", "sysroot"]).output().ok()?;
    let text = String::from_utf8(stdout).ok()?;
    status.success().then(|| PathBuf::from(text.trim()))
}

fn has_core(sysroot: &Path) -> bool {
    let libraries = sysroot.join("lib/rustlib").join(TARGET).join("lib");
    let entries = std::fs::read_dir(libraries).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("libcore-"))
}

fn library_path(first: &Path) -> OsString {
    let others = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let all = std::iter::once(first.to_owned()).chain(std::env::split_paths(&others));
    std::env::join_paths(all.filter(|path| !path.as_os_str().is_empty())).unwrap_or_else(|_| first.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sysroot_counts_only_with_the_targets_core_library() {
        let folder = tempfile::tempdir().unwrap();
        let libraries = folder.path().join("lib/rustlib").join(TARGET).join("lib");
        std::fs::create_dir_all(&libraries).unwrap();
        assert!(!has_core(folder.path()));
        std::fs::write(libraries.join("libcore-0123.rlib"), "").unwrap();
        assert!(has_core(folder.path()));
    }
}
