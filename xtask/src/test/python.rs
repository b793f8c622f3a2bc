//! The Python package: `pip install` of it as people do, then its tests under pytest, counted one by one.
//!
//! It is built unoptimised, so that most libraries that the tests have built are used again. The virtual environment is the one that
//! setup makes.

use std::process::Command;

use super::Context;
use super::needs;
use crate::child::{Ended, Ending};
use crate::tally::{Skip, Tally};

/// The package's folder.
const FOLDER: &str = "bindings/python";
const INSTALL: [&str; 9] = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
    "--no-deps",
    "--no-build-isolation",
    "--config-settings=build-args=--profile=dev",
    FOLDER,
];

pub(crate) fn run(context: &Context, name: &str) -> Tally {
    let workspace = context.workspace;
    let mut install = python(context);
    install.args(INSTALL);
    let ended = context.run(&format!("{name} install"), &mut install);
    if !ended.succeeded() {
        return Tally::fail(name, format!("pip install: {} after {} s", ended.how, ended.took.as_secs()), ended.tail());
    }
    let mut tally = Tally::pass();
    let mut tests = python(context);
    tests.args(["-m", "pytest", "-q", "-rsfE", "-p", "no:cacheprovider", FOLDER]);
    let built = [workspace.release_binary("hairspring"), workspace.target.join("debug/hairspring")];
    let command = built.into_iter().find(|file| file.is_file());
    if let Some(command) = &command {
        tests.env("HAIRSPRING_COMMAND", command);
    }
    tally.add(count(name, &context.run(name, &mut tests), command.is_none()));
    tally
}

/// The environment's Python, from the root, with the environment's programs first: pip looks for maturin among them.
fn python(context: &Context) -> Command {
    let python = needs::python(context.workspace);
    let own = python.parent().map(std::path::Path::to_owned);
    let before = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&before))).unwrap_or(before);
    let mut command = Command::new(python);
    command.current_dir(&context.workspace.root).env("PATH", path).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// What pytest says, as counts: its last line, and a line for each case that was skipped or failed.
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
    use std::path::PathBuf;
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
