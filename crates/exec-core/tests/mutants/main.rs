//! Breaks the core on purpose, in each way that `mutants.toml` lists, and asserts that the named test finds it.
//!
//! `cargo test -p hairspring-exec-core --test mutants`, for it compiles the crate once per mutant and so is no part of an
//! ordinary test run. It works in a copy of the crate in the folder for temporary files and leaves the crate alone.

mod list;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use list::{Mutant, mutants};

fn main() -> ExitCode {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::temp_dir().join(format!("hairspring-mutants-{}", std::process::id()));
    let outcome = kill_all(source, &folder);
    let _ = fs::remove_dir_all(&folder);
    match outcome {
        Ok(0) => ExitCode::SUCCESS,
        Ok(survivors) => {
            let _ = writeln!(io::stderr(), "{survivors} mutants survived");
            ExitCode::FAILURE
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "failed to try the mutants: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Tries every mutant; gives back how many survived.
fn kill_all(source: &Path, folder: &Path) -> io::Result<usize> {
    let crate_folder = copy_workspace(source, folder)?;
    let mutants = mutants(source);
    let whole: Vec<_> = mutants.iter().map(|mutant| mutant.killed_by.as_str()).collect();
    if run_tests(folder, &whole)? != Tests::Passed {
        return Err(io::Error::other("the tests that are to fail do not pass before the core is broken"));
    }
    let mut survivors = 0;
    for mutant in &mutants {
        let tests = try_one(mutant, folder, &crate_folder)?;
        let word = match tests {
            Tests::Failed => "killed",
            Tests::Passed => "SURVIVED",
            Tests::NotRun => "NOT TRIED, it does not compile",
        };
        survivors += usize::from(tests != Tests::Failed);
        writeln!(io::stdout(), "{word}: {} ({})", mutant.name, mutant.killed_by)?;
    }
    Ok(survivors)
}

fn try_one(mutant: &Mutant, folder: &Path, crate_folder: &Path) -> io::Result<Tests> {
    let file = crate_folder.join(&mutant.file);
    let sound = fs::read_to_string(&file)?;
    fs::write(&file, sound.replacen(&mutant.old, &mutant.new, 1))?;
    let tests = run_tests(folder, &[&mutant.killed_by]);
    fs::write(&file, sound)?;
    tests
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tests {
    Passed,
    Failed,
    NotRun,
}

fn run_tests(folder: &Path, names: &[&str]) -> io::Result<Tests> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--quiet", "--test", "it", "--", "--exact"]).args(names).current_dir(folder);
    let output = cargo.env("CARGO_TARGET_DIR", folder.join("target")).env("RUST_BACKTRACE", "0").output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(match (output.status.success(), text.contains("test result: FAILED")) {
        (true, _) if !text.contains("running 0 tests") => Tests::Passed,
        (false, true) => Tests::Failed,
        _ => Tests::NotRun,
    })
}

/// A workspace with nothing in it but a copy of the crate.
fn copy_workspace(source: &Path, folder: &Path) -> io::Result<PathBuf> {
    let root = source.join("../..");
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let lines = manifest.lines().filter(|line| !line.starts_with("default-members"));
    let alone = lines.map(|line| if line.starts_with("members") { "members = [\"crate\"]" } else { line });
    let crate_folder = folder.join("crate");
    fs::create_dir_all(&crate_folder)?;
    fs::write(folder.join("Cargo.toml"), alone.collect::<Vec<_>>().join("\n"))?;
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    for entry in ["Cargo.toml", "mutants.toml", "src", "tests"] {
        copy(&source.join(entry), &crate_folder.join(entry))?;
    }
    Ok(crate_folder)
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
