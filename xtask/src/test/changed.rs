//! Scope: what a run of the checks is about: everything, or what a change can break.
//!
//! A change is every file that differs from a revision, tracked or not. It can break its crate and all crates that
//! depend on it. All tests of the changed crates run, and the unit tests of their dependants. The integration tests of
//! dependants and the tests in documentation take minutes (nearly every change reaches the command), so each is counted
//! as skipped. Cargo builds the whole workspace in both cases: what did not change is built already, and a choice of
//! packages would have other features, so that it would be built once more. Only the tests that run are chosen, by a
//! runner that Cargo starts in place of each test program.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::library;
use crate::workspace::Workspace;

/// Steps that every change can break.
const ALWAYS: [&str; 4] = ["lint", "fmt", "clippy", "tests"];

/// Steps that changes of these files and folders can break besides.
const OTHERS: [(&str, &[&str]); 9] = [
    ("README.md", &["readme"]),
    ("docs/", &["gen"]),
    ("examples/", &["readme"]),
    ("bindings/shapes.toml", &["examples", "shapes", "c", "python"]),
    ("bindings/python/", &["python", "shapes"]),
    ("bindings/tcl/", &["tcl"]),
    ("crates/c/", &["gen", "c"]),
    ("crates/cli/src/", &["gen"]),
    ("crates/sheet/src/", &["gen"]),
];

/// Files and folders that every crate depends on.
const EVERYWHERE: [&str; 5] = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", "clippy.toml", ".cargo/"];

/// What a run is about.
pub(crate) struct Scope {
    files: Vec<String>,
    /// None if the tests of all packages run.
    packages: Option<Packages>,
}

/// Packages that a change can break.
struct Packages {
    /// All their tests run.
    changed: BTreeSet<String>,
    /// They depend on those, so their unit tests run.
    dependants: BTreeSet<String>,
}

impl Scope {
    pub(super) fn whole() -> Scope {
        Scope { files: Vec::new(), packages: None }
    }

    /// What differs from a revision; from where this branch left the main one if none is given.
    pub(super) fn changed(workspace: &Workspace, revision: &str) -> Result<Scope, String> {
        let git = |words: &[&str]| library::run(Command::new("git").args(words).current_dir(&workspace.root));
        let base = match revision {
            "" => {
                ["@{upstream}", "main", "origin/main"].iter().find_map(|main| git(&["merge-base", "HEAD", main]).ok())
            }
            revision => Some(git(&["rev-parse", "--verify", &format!("{revision}^{{commit}}")])?),
        };
        let base = base.ok_or("find where this branch left the main one; name a revision: --changed=REVISION")?;
        let mut files = git(&["diff", "--name-only", base.trim()])?;
        files += &git(&["ls-files", "--others", "--exclude-standard"])?;
        Ok(Scope::of(workspace, files.lines().map(str::to_owned).collect()))
    }

    /// What a change of these files can break.
    fn of(workspace: &Workspace, files: Vec<String>) -> Scope {
        let touches = |places: &[&str]| files.iter().any(|file| places.iter().any(|place| lies_in(file, place)));
        if touches(&EVERYWHERE) {
            return Scope { files, packages: None };
        }
        let owner = |file: &String| {
            let owners = workspace.packages.iter().filter(|package| lies_in(file, &format!("{}/", package.folder)));
            owners.max_by_key(|package| package.folder.len()).map(|package| package.name.clone())
        };
        let changed: BTreeSet<String> = files.iter().filter_map(owner).collect();
        let mut reached = changed.clone();
        loop {
            let before = reached.len();
            for package in &workspace.packages {
                if package.dependencies.iter().any(|name| reached.contains(name)) {
                    reached.insert(package.name.clone());
                }
            }
            if reached.len() == before {
                let dependants = reached.difference(&changed).cloned().collect();
                return Scope { files, packages: Some(Packages { changed, dependants }) };
            }
        }
    }

    /// Whether only some of the tests run.
    pub(super) fn is_part(&self) -> bool {
        self.packages.is_some()
    }

    /// Names of the steps that the change can break.
    pub(super) fn steps(&self) -> Vec<String> {
        let has = |place: &str| self.files.iter().any(|file| lies_in(file, place));
        let others = OTHERS.iter().filter(|(place, _)| has(place)).flat_map(|(_, steps)| *steps);
        ALWAYS.iter().chain(others).map(|step| (*step).to_owned()).collect()
    }

    /// Says what was found.
    pub(super) fn describe(&self) {
        let list = |names: &BTreeSet<String>| match names.len() {
            0 => "no crate".to_owned(),
            _ => names.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        };
        println!("{} files changed", self.files.len());
        match &self.packages {
            None => println!("tests of every crate"),
            Some(Packages { changed, dependants }) => {
                println!("all tests of {}; unit tests of {}", list(changed), list(dependants));
            }
        }
    }

    /// The variable and the program with which Cargo runs only the tests of these packages; none if it runs all of
    /// them.
    pub(super) fn runner(&self, workspace: &Workspace) -> Result<Option<(String, PathBuf)>, String> {
        let Some(packages) = &self.packages else { return Ok(None) };
        let file = workspace.scratch("only.sh");
        // Cargo sets the name. A program that is left out prints what one without tests prints, or one with a test that
        // skips itself.
        let script = format!(
            "#!/bin/sh\nresult='test result: ok.'\ncase \"$CARGO_PKG_NAME,$1\" in\n{}) exec \"$@\" ;;\n{}) \
             echo \"test-skip: integration tests of $CARGO_PKG_NAME: it only depends on what changed; cargo xtask test runs them\"\n\
             echo \"$result 1 passed; 0 failed; 0 ignored\" ;;\n{}) exec \"$@\" ;;\n\
             *) echo \"$result 0 passed; 0 failed; 0 ignored\" ;;\nesac\n",
            alternatives(&packages.changed, ",*"),
            alternatives(&packages.dependants, ",*/it-*"),
            alternatives(&packages.dependants, ",*"),
        );
        let written = fs::create_dir_all(workspace.scratch("")).and_then(|()| fs::write(&file, script));
        let written = written.and_then(|()| fs::set_permissions(&file, fs::Permissions::from_mode(0o755)));
        written.map_err(|error| format!("write {}: {error}", file.display()))?;
        let target = format!("{}_unknown_linux_gnu", std::env::consts::ARCH).to_uppercase();
        Ok(Some((format!("CARGO_TARGET_{target}_RUNNER"), file)))
    }
}

/// A shell's pattern for each of these names with this end.
fn alternatives(names: &BTreeSet<String>, end: &str) -> String {
    let patterns: Vec<String> = names.iter().map(|name| format!("{name}{end}")).collect();
    if patterns.is_empty() { "''".to_owned() } else { patterns.join("|") }
}

/// Whether a file is this one, or lies in this folder, which ends with a slash.
fn lies_in(file: &str, place: &str) -> bool {
    if place.ends_with('/') { file.starts_with(place) } else { file == place }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn scope(files: &[&str]) -> Scope {
        let workspace = Workspace::discover().unwrap();
        Scope::of(&workspace, files.iter().map(|file| (*file).to_owned()).collect())
    }

    #[test]
    fn a_change_breaks_its_crate_and_those_that_depend_on_it() {
        let plan = scope(&["crates/plan/src/lib.rs"]).packages.unwrap();
        assert_eq!(plan.changed.iter().collect::<Vec<_>>(), ["hairspring-plan"]);
        assert!(plan.dependants.contains("hairspring-cli"), "{:?}", plan.dependants);
        assert!(!plan.dependants.contains("hairspring-time") && !plan.dependants.contains("xtask"));
        let time = scope(&["crates/time/src/lib.rs"]).packages.unwrap();
        assert!(time.dependants.contains("hairspring-suite") && time.dependants.contains("hairspring-cli"));
    }

    #[test]
    fn a_file_belongs_to_the_innermost_package() {
        let prover = scope(&["xtask/prover/src/main.rs"]).packages.unwrap();
        assert_eq!(prover.changed.iter().collect::<Vec<_>>(), ["prover"]);
    }

    #[test]
    fn what_all_crates_depend_on_breaks_everything_and_a_page_no_crate() {
        assert!(scope(&["Cargo.lock"]).packages.is_none());
        let page = scope(&["docs/method.md"]);
        assert!(page.packages.as_ref().is_some_and(|packages| packages.changed.is_empty()));
        assert_eq!(page.steps(), ["lint", "fmt", "clippy", "tests", "gen"]);
    }

    #[test]
    fn the_package_for_python_and_the_library_for_c_are_tested_only_if_they_changed() {
        let has = |files: &[&str], step: &str| scope(files).steps().iter().any(|name| name == step);
        assert!(!has(&["crates/time/src/lib.rs"], "python") && !has(&["crates/time/src/lib.rs"], "c"));
        assert!(has(&["bindings/python/src/lib.rs"], "python") && has(&["crates/c/src/lib.rs"], "c"));
    }

    #[test]
    fn the_runner_starts_only_the_tests_of_the_scope() {
        let workspace = Workspace::discover().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace { target: folder.path().to_owned(), ..workspace };
        let (_, runner) = scope(&["crates/plan/src/lib.rs"]).runner(&workspace).unwrap().unwrap();
        let said = |package: &str, program: &str| {
            // As Cargo names them: integration tests are called `it`.
            let file = folder.path().join(program);
            std::os::unix::fs::symlink("/bin/echo", &file).unwrap();
            let said =
                library::run(Command::new(&runner).arg(&file).arg("ran").env("CARGO_PKG_NAME", package)).unwrap();
            fs::remove_file(&file).unwrap();
            said
        };
        assert_eq!(said("hairspring-plan", "it-1"), "ran\n");
        assert_eq!(said("hairspring-cli", "hairspring-1"), "ran\n");
        assert!(said("hairspring-cli", "it-1").contains("test-skip: integration tests of hairspring-cli"));
        assert!(said("hairspring-time", "it-1").starts_with("test result: ok. 0 passed"));
        assert!(Scope::whole().runner(&workspace).unwrap().is_none());
    }
}
