//! The repository for the tasks: its root, its target directory, its packages and its files.
//!
//! All data come from `cargo metadata` and `git ls-files`, so that no list of crates is kept by hand.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The checkout that `cargo xtask` was started in.
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    /// Cargo's target directory, from the environment or a configuration.
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One member of the workspace.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Its folder relative to the root, with `/` as the separator.
    pub(crate) folder: String,
    /// Names of all dependencies in its manifest.
    pub(crate) dependencies: Vec<String>,
    /// Names of its example targets.
    pub(crate) examples: Vec<String>,
    /// Whether a registry may have it.
    pub(crate) is_published: bool,
    /// The address of the repository; empty if the manifest has none.
    pub(crate) repository: String,
}

impl Workspace {
    /// Asks Cargo where it is. Errors are fragments that fit after "failed to".
    pub(crate) fn discover() -> Result<Workspace, String> {
        let output = cargo()
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()
            .map_err(|error| format!("run cargo metadata: {error}"))?;
        if !output.status.success() {
            return Err(format!("run cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let metadata: Value =
            serde_json::from_slice(&output.stdout).map_err(|error| format!("read cargo metadata: {error}"))?;
        Workspace::from_metadata(&metadata).ok_or_else(|| "find the workspace in cargo metadata".to_owned())
    }

    fn from_metadata(metadata: &Value) -> Option<Workspace> {
        let root = PathBuf::from(metadata["workspace_root"].as_str()?);
        let target = PathBuf::from(metadata["target_directory"].as_str()?);
        let mut packages = Vec::new();
        for package in metadata["packages"].as_array()? {
            let manifest = Path::new(package["manifest_path"].as_str()?);
            let folder = manifest.parent()?.strip_prefix(&root).ok()?.to_str()?.replace('\\', "/");
            let examples = package["targets"].as_array()?.iter().filter(|target| target["kind"][0] == "example");
            packages.push(Package {
                name: package["name"].as_str()?.to_owned(),
                folder,
                dependencies: names(&package["dependencies"]),
                examples: examples.filter_map(|target| target["name"].as_str().map(str::to_owned)).collect(),
                is_published: package["publish"].is_null(),
                repository: package["repository"].as_str().unwrap_or_default().to_owned(),
            });
        }
        Some(Workspace { root, target, packages })
    }

    /// Every file that git tracks or would track, relative to the root. It includes files that are not added yet: a
    /// check that fails only after `git add` comes too late.
    pub(crate) fn files(&self) -> Result<Vec<String>, String> {
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(&self.root)
            .output()
            .map_err(|error| format!("list the repository's files with git: {error}"))?;
        if !output.status.success() {
            return Err(format!("list the repository's files: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        let listed = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut files: Vec<String> = listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
        files.retain(|path| self.root.join(path).is_file());
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// A folder for the tasks' own files; `cargo clean` removes it.
    pub(crate) fn scratch(&self, name: &str) -> PathBuf {
        self.target.join("xtask").join(name)
    }

    /// The path of the command after `cargo build --release -p hairspring-cli`.
    pub(crate) fn release_binary(&self, name: &str) -> PathBuf {
        self.target.join("release").join(name)
    }

    /// The path of a program or library that the step `build` of the checks has built.
    pub(crate) fn built(&self, name: &str) -> PathBuf {
        self.target.join("debug").join(name)
    }

    /// A Cargo command, run from the root.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = cargo();
        command.args(arguments).current_dir(&self.root);
        command
    }
}

/// The Cargo that started this task, so that a toolchain chosen on the command line stays in use.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")))
}

fn names(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item["name"].as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_yields_folders_dependencies_and_examples() {
        let metadata = serde_json::json!({
            "workspace_root": "/repository", "target_directory": "/elsewhere",
            "packages": [{
                "name": "noun", "manifest_path": "/repository/crates/noun/Cargo.toml",
                "dependencies": [{"name": "libc"}],
                "targets": [{"kind": ["lib"], "name": "noun"}, {"kind": ["example"], "name": "first"}],
            }],
        });
        let workspace = Workspace::from_metadata(&metadata).unwrap();
        assert_eq!(workspace.scratch("logs"), Path::new("/elsewhere/xtask/logs"));
        let package = &workspace.packages[0];
        assert_eq!((package.folder.as_str(), package.dependencies[0].as_str()), ("crates/noun", "libc"));
        assert_eq!(package.examples, ["first"]);
        assert!(package.is_published && package.repository.is_empty());
    }
}
