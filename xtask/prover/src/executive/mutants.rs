//! Proof: each deliberate break of the executive's core is found by the test that the list names.
//!
//! The list is `crates/exec-core/mutants.toml`. The proof works in a copy of the crate in the folder for temporary
//! files and leaves the crate alone. It compiles that copy once per mutant.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde_json::{Map, json};

use crate::Verdict;

const CORE: &str = "crates/exec-core";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// One deliberate break of the core.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    name: String,
    /// The file that is changed, from the crate's folder.
    file: String,
    old: String,
    new: String,
    /// The test that must fail.
    killed_by: String,
}

pub(crate) fn prove() -> Verdict {
    let (mut killed, mut wrong) = (0, Vec::new());
    let tried = try_all(|mutant, tests| match tests {
        Tests::Failed => killed += 1,
        Tests::Passed => wrong.push(format!("{}: lives", mutant.name)),
        Tests::NotRun => wrong.push(format!("{}: not tried, it does not compile", mutant.name)),
    });
    if let Err(error) = tried {
        wrong.push(error.to_string());
    }
    let figures = [("mutants found".to_owned(), json!(killed)), ("wrong".to_owned(), json!(wrong))];
    Verdict { passed: wrong.is_empty() && killed > 0, figures: Map::from_iter(figures) }
}

fn try_all(mut told: impl FnMut(&Mutant, Tests)) -> io::Result<()> {
    let root = root();
    let mutants = list(&root)?;
    let folder = tempfile::tempdir()?;
    let core = copy_workspace(&root, folder.path())?;
    let all: Vec<_> = mutants.iter().map(|mutant| mutant.killed_by.as_str()).collect();
    if run_tests(folder.path(), &all)? != Tests::Passed {
        return Err(io::Error::other("the tests that are to fail do not pass before the core is broken"));
    }
    for mutant in &mutants {
        let file = core.join(&mutant.file);
        let sound = fs::read_to_string(&file)?;
        fs::write(&file, sound.replacen(&mutant.old, &mutant.new, 1))?;
        let tests = run_tests(folder.path(), &[&mutant.killed_by]);
        fs::write(&file, sound)?;
        told(mutant, tests?);
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn list(root: &Path) -> io::Result<Vec<Mutant>> {
    let text = fs::read_to_string(root.join(CORE).join("mutants.toml"))?;
    toml::from_str(&text).map(|list: List| list.mutant).map_err(io::Error::other)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tests {
    Passed,
    Failed,
    NotRun,
}

fn run_tests(folder: &Path, names: &[&str]) -> io::Result<Tests> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["test", "--quiet", "--test", "it", "--", "--exact"]).args(names).current_dir(folder);
    let output = cargo.env("CARGO_TARGET_DIR", folder.join("target")).env("RUST_BACKTRACE", "0").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(match (output.status.success(), text.contains("test result: FAILED")) {
        (true, _) if !text.contains("running 0 tests") => Tests::Passed,
        (false, true) => Tests::Failed,
        _ => Tests::NotRun,
    })
}

/// Makes a workspace with nothing in it but a copy of the crate. Returns the folder of that copy.
fn copy_workspace(root: &Path, folder: &Path) -> io::Result<PathBuf> {
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let lines = manifest.lines().filter(|line| !line.starts_with("default-members"));
    let alone = lines.map(|line| if line.starts_with("members") { "members = [\"crate\"]" } else { line });
    let core = folder.join("crate");
    fs::create_dir_all(&core)?;
    fs::write(folder.join("Cargo.toml"), alone.collect::<Vec<_>>().join("\n"))?;
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    for entry in ["Cargo.toml", "src", "tests"] {
        copy(&root.join(CORE).join(entry), &core.join(entry))?;
    }
    Ok(core)
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_file() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_mutant_changes_one_place_and_names_a_test_that_exists() {
        let root = root();
        let mutants = list(&root).expect("the list of mutants");
        assert!(mutants.len() >= 16, "{} mutants", mutants.len());
        let names: BTreeSet<_> = mutants.iter().map(|mutant| &mutant.name).collect();
        assert_eq!(names.len(), mutants.len(), "two have the same name");
        for Mutant { name, file, old, new, killed_by } in &mutants {
            let source = fs::read_to_string(root.join(CORE).join(file)).expect("the file that a mutant changes");
            assert_eq!(source.matches(old.as_str()).count(), 1, "`{name}` looks for this in {file}:\n{old}");
            assert_ne!(old, new, "`{name}` changes nothing");
            let (module, test) = killed_by.rsplit_once("::").expect("a module and a test");
            let path = root.join(CORE).join(format!("tests/it/{module}.rs"));
            let tests = fs::read_to_string(path).expect("the file of a test");
            assert!(tests.contains(&format!("fn {test}(")), "`{name}` names a test that is not there: {killed_by}");
        }
    }
}
