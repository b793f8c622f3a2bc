//! Wheels of the Python package, built by maturin out of setup's environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::library;
use crate::test::needs::{self, Need};
use crate::workspace::Workspace;

/// The package's manifest.
pub(crate) const MANIFEST: &str = "bindings/python/Cargo.toml";

/// Builds the optimised wheel for this machine into a folder, which is made anew. It fits this system's C library, no
/// older one.
pub(crate) fn build_native(workspace: &Workspace, folder: &Path) -> Result<PathBuf, String> {
    if let Some(missing) = Need::Python.missing(workspace) {
        return Err(missing.to_string());
    }
    let mut build = Command::new(needs::python(workspace));
    build.args([
        "-m",
        "maturin",
        "build",
        "--quiet",
        "--release",
        "--locked",
        "--compatibility",
        "linux",
        "-m",
        MANIFEST,
        "--out",
    ]);
    build.arg(folder).current_dir(&workspace.root).env("CARGO_TARGET_DIR", &workspace.target);
    build_one(&mut build, folder, "whl")
}

/// Runs a build that leaves one file with this ending in a folder.
pub(crate) fn build_one(build: &mut Command, folder: &Path, ending: &str) -> Result<PathBuf, String> {
    let _ = fs::remove_dir_all(folder);
    library::run(build)?;
    let files = fs::read_dir(folder).map_err(|error| format!("list {}: {error}", folder.display()))?;
    let mut made =
        files.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == ending));
    made.next().ok_or_else(|| format!("find the {ending} that was built in {}", folder.display()))
}

/// The programs that an unpacked package's `entry_points.txt` declares, as scripts for the system's Python.
pub(crate) fn scripts(about: &Path) -> Result<Vec<(String, String)>, String> {
    let file = about.join("entry_points.txt");
    match fs::read_to_string(&file) {
        Ok(text) => Ok(console_scripts(&text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("read {}: {error}", file.display())),
    }
}

fn console_scripts(text: &str) -> Vec<(String, String)> {
    let section = text.split("[console_scripts]").nth(1).unwrap_or_default();
    let lines = section.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    let parts = lines.filter_map(|line| {
        let (name, target) = line.split_once('=')?;
        let (module, function) = target.trim().split_once(':')?;
        Some((name.trim().to_owned(), module.to_owned(), function.to_owned()))
    });
    let script = |module: &str, function: &str| {
        format!("#!/usr/bin/python3\nimport sys\n\nfrom {module} import {function}\n\nsys.exit({function}())\n")
    };
    parts.map(|(name, module, function)| (name, script(&module, &function))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_a_package_become_scripts() {
        let text =
            "[console_scripts]\nhairspring-ioc=hairspring.ioc:main\n\n[xarray.backends]\nhairspring=hairspring.x:Y\n";
        let scripts = console_scripts(text);
        assert_eq!(scripts.len(), 1);
        assert!(
            scripts[0].0 == "hairspring-ioc" && scripts[0].1.contains("from hairspring.ioc import main"),
            "{scripts:?}"
        );
        assert!(console_scripts("[xarray.backends]\na=b:c\n").is_empty());
    }
}
