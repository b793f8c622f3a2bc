//! Runs the tests of the Python package in a fresh virtual environment. Counts each case.
//!
//! The step `python` lays the package out as pip would: the Python files, the description that maturin writes, and the
//! module that the step `build` has built with everything else, so that nothing is built again. The step `wheel` tests
//! the package as it ships: pip builds the optimised wheel and installs it. The environments hold only the package;
//! they find the packages for the tests in setup's environment, behind their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Context;
use super::needs;
use crate::child::{Ended, Ending};
use crate::library;
use crate::tally::{Skip, Tally};
use crate::wheel;
use crate::workspace::Workspace;

/// The package's folder.
const FOLDER: &str = "bindings/python";
const QUIETLY: [&str; 4] = ["-m", "pip", "--quiet", "--disable-pip-version-check"];

/// Folders of the two environments.
const LAID_OUT: &str = "package";
const INSTALLED: &str = "package-wheel";

/// The Python that has the package of the step `python`.
pub(super) fn with_package(workspace: &Workspace) -> PathBuf {
    python_of(workspace, LAID_OUT)
}

/// The wheel that the step `wheel` has built.
pub(super) fn built_wheel(workspace: &Workspace) -> Option<PathBuf> {
    let files = fs::read_dir(workspace.scratch("wheel")).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "whl")).max()
}

pub(crate) fn run(context: &Context, name: &str) -> Tally {
    let command = context.workspace.built("hairspring");
    test(context, name, LAID_OUT, lay_out(context, name), &command)
}

pub(crate) fn run_wheel(context: &Context, name: &str) -> Tally {
    let command = context.workspace.release_binary("hairspring");
    test(context, name, INSTALLED, install(context, name), &command)
}

/// Runs the tests in an environment, if it could be made, with a command for what the package leaves to it.
fn test(context: &Context, name: &str, environment: &str, made: Result<(), String>, command: &Path) -> Tally {
    if let Err(why) = made {
        return Tally::fail(name, why, "");
    }
    let mut tally = Tally::pass();
    let mut tests = python(context, &python_of(context.workspace, environment));
    tests.args(["-m", "pytest", "-q", "-rsfE", "-p", "no:cacheprovider", FOLDER]);
    tests.env("HAIRSPRING_COMMAND", command);
    tally.add(count(name, &context.run(name, &mut tests), !command.is_file()));
    tally
}

fn python_of(workspace: &Workspace, environment: &str) -> PathBuf {
    workspace.scratch(environment).join("bin/python")
}

/// Makes an environment and lays the package with the unoptimised module out in it.
fn lay_out(context: &Context, name: &str) -> Result<(), String> {
    let workspace = context.workspace;
    let packages = make_environment(context, name, LAID_OUT)?;
    let folder = workspace.root.join(FOLDER);
    library::run(Command::new("cp").arg("-r").arg(folder.join("python/hairspring")).arg(&packages))?;
    let module = packages.join("hairspring/_hairspring.abi3.so");
    let built = workspace.built("lib_hairspring.so");
    fs::copy(&built, &module).map_err(|error| format!("copy {}: {error}", built.display()))?;
    let mut describe = python(context, &needs::python(workspace));
    describe.args(["-m", "maturin", "pep517", "write-dist-info", "-m", wheel::MANIFEST, "--metadata-directory"]);
    must(context, &format!("{name} description"), describe.arg(&packages)).map(drop)
}

/// Builds the wheel and installs it into an empty environment.
fn install(context: &Context, name: &str) -> Result<(), String> {
    let (workspace, setup) = (context.workspace, needs::python(context.workspace));
    let wheels = workspace.scratch("wheel");
    let _ = fs::remove_dir_all(&wheels);
    let mut build = python(context, &setup);
    build.args(QUIETLY).args(["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir"]).arg(&wheels).arg(FOLDER);
    must(context, &format!("{name} build"), &mut build)?;
    let wheel = built_wheel(workspace).ok_or("find the wheel that was built")?;
    make_environment(context, name, INSTALLED)?;
    let mut install = python(context, &setup);
    install.args(QUIETLY).arg("--python").arg(workspace.scratch(INSTALLED)).args(["install", "--no-deps"]).arg(&wheel);
    must(context, &format!("{name} install"), &mut install).map(drop)
}

/// Makes an empty environment with the tests' own tools behind its packages, and returns the folder of those.
fn make_environment(context: &Context, name: &str, environment: &str) -> Result<PathBuf, String> {
    let (workspace, setup) = (context.workspace, needs::python(context.workspace));
    let folder = workspace.scratch(environment);
    let _ = fs::remove_dir_all(&folder);
    let mut make = python(context, &setup);
    must(context, &format!("{name} environment"), make.args(["-m", "venv", "--without-pip"]).arg(&folder))?;
    let packages = |python: &Path| {
        let asked = "import sysconfig; print(sysconfig.get_path('purelib'))";
        let said = must(context, &format!("{name} folder"), Command::new(python).args(["-c", asked]))?;
        Ok::<_, String>(PathBuf::from(said.trim()))
    };
    let (own, tools) = (packages(&python_of(workspace, environment))?, packages(&setup)?);
    let (file, text) = (own.join("tools.pth"), format!("{}\n", tools.display()));
    fs::write(&file, text).map_err(|error| format!("write {}: {error}", file.display()))?;
    Ok(own)
}

fn must(context: &Context, label: &str, command: &mut Command) -> Result<String, String> {
    let ended = context.run(label, command);
    if ended.succeeded() { Ok(ended.output) } else { Err(format!("{label}: {}\n{}", ended.how, ended.tail())) }
}

/// Python, run from the root with setup's programs first in PATH, where pip finds maturin.
fn python(context: &Context, python: &Path) -> Command {
    let own = needs::python(context.workspace).parent().map(Path::to_owned);
    let before = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&before))).unwrap_or(before);
    let mut command = Command::new(python);
    command.current_dir(&context.workspace.root).env("PATH", path).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Counts from pytest's output: its last line, and a line for each case that was skipped or failed.
fn count(name: &str, ended: &Ended, could_run: bool) -> Tally {
    let last = ended.output.lines().rev().find(|line| line.contains(" in ")).unwrap_or_default();
    let mut tally = Tally { passed: number_before(last, "passed"), ..Tally::default() };
    for line in ended.output.lines() {
        if let Some(rest) = line.strip_prefix("SKIPPED [") {
            let (count, reason) = rest.split_once("] ").unwrap_or(("1", rest));
            for _ in 0..count.parse().unwrap_or(1) {
                tally.skips.push(Skip { name: name.to_owned(), reason: reason.to_owned(), could_run });
            }
        } else if let Some(case) = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR ")) {
            tally.failure(name, format!("{case}, log {}", ended.log.display()), "");
        }
    }
    let explained = matches!(ended.how, Ending::Exit(0)) || !tally.failures.is_empty();
    if !explained || (ended.succeeded() && tally.passed == 0) {
        tally.failure(name, format!("pytest: {}, {} passed", ended.how, tally.passed), ended.tail());
    }
    tally
}

fn number_before(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    words.windows(2).find(|pair| pair[1] == word).and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(status: i32, output: &str, closing: &str) {
        let ended = Ended::of(Ending::Exit(status), output);
        assert_eq!(count("python", &ended, false).closing_line(), closing);
    }

    #[test]
    fn what_pytest_says_is_counted() {
        check(0, "....\n4 passed in 0.10s\n", "4 passed, 0 failed, 0 skipped");
        let mixed = "SKIPPED [2] tests/a.py:3: no lock\nFAILED tests/b.py::test - assert 1\n1 failed, 3 passed, 2 skipped in 1s\n";
        check(1, mixed, "3 passed, 1 failed, 2 skipped");
        check(2, "ERROR tests/a.py - SyntaxError\n1 error in 0.1s\n", "0 passed, 1 failed, 0 skipped");
        check(5, "no tests ran in 0.01s\n", "0 passed, 1 failed, 0 skipped");
        check(-11, "....", "0 passed, 1 failed, 0 skipped");
    }
}
