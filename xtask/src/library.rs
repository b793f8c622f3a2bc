//! `libhairspring` as it is installed: linked from Cargo's static library, with a SONAME and versions of symbols.
//!
//! Cargo's own shared library has neither: the compiler passes the linker a list of symbols without versions, which
//! cannot be combined with another list. So the C compiler links the whole static library once more and exports the
//! symbols of `crates/c/hairspring.map`, each with the version of the interface in which it appeared.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::workspace::Workspace;

/// The folder of the crate.
pub(crate) const FOLDER: &str = "crates/c";
/// The symbols that the shared library exports, by version of the interface.
pub(crate) const MAP: &str = "crates/c/hairspring.map";
/// The header, which `cargo xtask gen` writes.
pub(crate) const HEADER: &str = "crates/c/include/hairspring.h";

/// The header of the executive, which is for Linux.
pub(crate) const EXEC_HEADER: &str = "crates/c/include/hairspring_exec.h";

/// The header of the live tap, which is for Linux.
pub(crate) const TAP_HEADER: &str = "crates/c/include/hairspring_tap.h";

/// Version of the interface in the SONAME: it changes whenever programs must be recompiled.
pub(crate) const INTERFACE: u32 = 0;

/// The name that programs link to, and the file's name.
pub(crate) fn soname() -> String {
    format!("libhairspring.so.{INTERFACE}")
}

/// The C compiler, from the usual environment variable.
pub(crate) fn compiler() -> Command {
    Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

/// The version of the crates.
pub(crate) fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Links the shared library into a folder, with the two names that linkers and loaders look for.
pub(crate) fn link_shared(workspace: &Workspace, archive: &Path, folder: &Path) -> Result<Vec<PathBuf>, String> {
    let file = folder.join(format!("libhairspring.so.{}", version()));
    let mut command = compiler();
    command.arg("-shared").arg("-o").arg(&file);
    command.arg("-Wl,--whole-archive").arg(archive).arg("-Wl,--no-whole-archive");
    command.arg(format!("-Wl,--version-script={}", workspace.root.join(MAP).display()));
    command.arg(format!("-Wl,-soname,{}", soname()));
    command.args(["-Wl,--gc-sections", "-Wl,--strip-debug", "-Wl,-z,relro,-z,now,-z,defs"]);
    // Makes unloading a no-op, because a window's SIGBUS handler stays in the process.
    command.arg("-Wl,-z,nodelete");
    command.args(["-lgcc_s", "-lpthread", "-ldl", "-lm", "-lc"]);
    run(&mut command)?;
    let mut files = vec![file];
    for (name, target) in
        [(soname(), format!("libhairspring.so.{}", version())), ("libhairspring.so".to_owned(), soname())]
    {
        let link = folder.join(name);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(target, &link).map_err(|error| format!("link {}: {error}", link.display()))?;
        files.push(link);
    }
    Ok(files)
}

/// Runs a command that must succeed, and returns its output.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let said: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    let ended = command.output().map_err(|error| format!("run {}: {error}", said.join(" ")))?;
    if ended.status.success() {
        return Ok(String::from_utf8_lossy(&ended.stdout).into_owned());
    }
    Err(format!("run {}: {}\n{}", said.join(" "), ended.status, String::from_utf8_lossy(&ended.stderr).trim()))
}

/// The functions that a header declares.
pub(crate) fn declared(header: &str) -> BTreeSet<String> {
    let code = header.lines().filter(|line| !line.starts_with("//") && !line.starts_with([' ', '#', '}']));
    let calls = code.filter_map(|line| line.split_once('('));
    calls.filter_map(|(before, _)| before.rsplit([' ', '*']).next()).map(str::to_owned).collect()
}

/// The functions in a list of symbols, each as `name@@VERSION`.
pub(crate) fn versions(map: &str) -> BTreeSet<String> {
    let mut version = "";
    let mut found = BTreeSet::new();
    for line in map.lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_suffix(" {") {
            version = name;
        } else if let Some(name) = line.trim().strip_suffix(';').filter(|name| name.starts_with("hs_")) {
            found.insert(format!("{name}@@{version}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_of_symbols_are_found() {
        let map = "# hs_no;\nONE {\n    global:\n        hs_a;\n        hs_b;\n    local: *;\n};\n\nTWO {\n    global:\n        hs_c;\n} ONE;\n";
        assert_eq!(versions(map).into_iter().collect::<Vec<_>>(), ["hs_a@@ONE", "hs_b@@ONE", "hs_c@@TWO"]);
    }

    #[test]
    fn the_functions_of_a_header_are_found() {
        let header = "// hs_not(this)\n#define HS_X(y) y\nconst char *hs_one(int x);\nint hs_two(const struct a *a,\n           int b);\n\
                      int64_t hs_three(void);\n    int field;\n";
        assert_eq!(declared(header).into_iter().collect::<Vec<_>>(), ["hs_one", "hs_three", "hs_two"]);
    }
}
