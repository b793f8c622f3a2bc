//! Runs the tests of the Python package as it ships: the optimised wheel in a fresh virtual environment. Counts each case.
//!
//! pip builds the wheel with the tools that setup installed. The wheel shares the command's crates, so most of it is built
//! already. The environment holds only the wheel; it finds the packages for the tests in setup's environment, behind its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Context;
use super::needs;
use crate::child::{Ended, Ending};
use crate::tally::{Skip, Tally};
use crate::workspace::Workspace;

/// The package's folder.
const FOLDER: &str = "bindings/python";
const QUIETLY: [&str; 4] = ["-m", "pip", "--quiet", "--disable-pip-version-check"];

/// The Python that has the package.
pub(super) fn with_package(workspace: &Workspace) -> PathBuf {
    workspace.scratch("package").join("bin/python")
}

/// The wheel that this step has built.
pub(super) fn built_wheel(workspace: &Workspace) -> Option<PathBuf> {
    let files = fs::read_dir(workspace.scratch("wheel")).into_iter().flatten().flatten().map(|entry| entry.path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "whl")).max()
}

pub(crate) fn run(context: &Context, name: &str) -> Tally {
    let workspace = context.workspace;
    if let Err(why) = install(context, name) {
        return Tally::fail(name, why, "");
    }
    let mut tally = Tally::pass();
    let mut tests = python(context, &with_package(workspace));
    tests.args(["-m", "pytest", "-q", "-rsfE", "-p", "no:cacheprovider", FOLDER]);
    let built = [workspace.release_binary("hairspring"), workspace.target.join("debug/hairspring")];
    let command = built.into_iter().find(|file| file.is_file());
    if let Some(command) = &command {
        tests.env("HAIRSPRING_COMMAND", command);
    }
    tally.add(count(name, &context.run(name, &mut tests), command.is_none()));
    tally
}

/// Builds the wheel and installs it into an empty environment.
fn install(context: &Context, name: &str) -> Result<(), String> {
    let (workspace, setup) = (context.workspace, needs::python(context.workspace));
    let wheels = workspace.scratch("wheel");
    let environment = workspace.scratch("package");
    for folder in [&wheels, &environment] {
        let _ = fs::remove_dir_all(folder);
    }
    let must = |label: &str, command: &mut Command| {
        let ended = context.run(&format!("{name} {label}"), command);
        if ended.succeeded() { Ok(ended.output) } else { Err(format!("{label}: {}\n{}", ended.how, ended.tail())) }
    };
    let mut build = python(context, &setup);
    build.args(QUIETLY).args(["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir"]).arg(&wheels).arg(FOLDER);
    must("wheel", &mut build)?;
    let mut wheel = fs::read_dir(&wheels).map_err(|error| format!("look for the wheel: {error}"))?.flatten();
    let wheel = wheel.next().ok_or("find the wheel that was built")?.path();
    must("environment", python(context, &setup).args(["-m", "venv", "--without-pip"]).arg(&environment))?;
    let mut install = python(context, &setup);
    install.args(QUIETLY).arg("--python").arg(&environment).args(["install", "--no-deps"]).arg(&wheel);
    must("install", &mut install)?;
    // Puts the tests' own tools behind the installed wheel.
    let packages = |python: &Path| {
        let asked = "import sysconfig; print(sysconfig.get_path('purelib'))";
        must("folder", Command::new(python).args(["-c", asked])).map(|said| said.trim().to_owned())
    };
    let (own, tools) = (packages(&with_package(workspace))?, packages(&setup)?);
    fs::write(Path::new(&own).join("tools.pth"), tools + "\n").map_err(|error| format!("write {own}: {error}"))
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
    use std::time::Duration;

    use super::*;

    #[track_caller]
    fn check(status: i32, output: &str, closing: &str) {
        let (output, log) = (output.to_owned(), PathBuf::from("log"));
        let ended = Ended { how: Ending::Exit(status), output, took: Duration::ZERO, log };
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
