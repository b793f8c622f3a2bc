//! Proofs that are long tests: Cargo runs them, and their counts are the figures.
//!
//! A test that runs with `--nocapture` adds a figure of its own by a line `figure: NAME: VALUE`. One that cannot run
//! here prints `test-skip: NAME: REASON`, and then the proof as a whole was not run: its claim has not been shown.

use std::process::Command;

use serde_json::{Map, Value, json};

use crate::{NOT_RUN, Verdict};

/// Runs `cargo test` with these arguments and environment; passes if everything passed and anything ran.
pub(crate) fn prove(arguments: &[&str], environment: &[(&str, &str)]) -> Verdict {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.arg("test").args(arguments).envs(environment.iter().copied());
    judge(&mut command)
}

/// The sanitizers.
pub(crate) const SANITIZERS: [&str; 2] = ["thread", "address"];

/// The target for builds under a sanitizer.
pub(crate) fn target() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}

/// The folder of builds under a sanitizer.
pub(crate) fn target_folder(sanitizer: &str) -> String {
    format!("target/sanitizer-{sanitizer}")
}

/// The verdict if nothing can be built under a sanitizer here.
pub(crate) fn no_sanitizers() -> Option<Verdict> {
    let installed =
        Command::new("rustup").args(["component", "list", "--toolchain", "nightly", "--installed"]).output();
    if installed.is_ok_and(|list| String::from_utf8_lossy(&list.stdout).contains("rust-src")) {
        return None;
    }
    let remedy = "rustup toolchain install nightly --component rust-src";
    Some(Verdict::not_run(format!("the source of the standard library is missing; {remedy}")))
}

/// Cargo of the nightly toolchain, which alone has the sanitizers, to build under one. The standard library is built
/// anew: ThreadSanitizer must see its atomics, too.
pub(crate) fn sanitized(sanitizer: &str, task: &str) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", task, "-Zbuild-std", "--target", &target()]);
    // Memory that system calls map behind the back of the C library would keep the marks of its previous user.
    command.env("RUSTFLAGS", format!("-Zsanitizer={sanitizer} --cfg rustix_use_libc"));
    command.env("CARGO_TARGET_DIR", target_folder(sanitizer));
    command
}

/// The environment of a program under a sanitizer.
pub(crate) fn watch(command: &mut Command) -> &mut Command {
    // Memory that the kernel uses as long as the process lives is not a leak.
    command.env("TSAN_OPTIONS", "halt_on_error=1").env("ASAN_OPTIONS", "detect_leaks=0")
}

/// Runs tests under the sanitizers.
pub(crate) fn sanitize(packages: &[&str], tests: &[&str]) -> Verdict {
    if let Some(verdict) = no_sanitizers() {
        return verdict;
    }
    let mut all = Verdict { passed: true, figures: Map::new() };
    for name in SANITIZERS {
        let mut command = sanitized(name, "test");
        command.arg("--lib").args(packages.iter().flat_map(|package| ["-p", package])).arg("--").args(tests);
        let verdict = judge(watch(&mut command));
        all.passed &= verdict.passed;
        all.figures.extend(verdict.figures.into_iter().map(|(figure, value)| (format!("{name}: {figure}"), value)));
    }
    all
}

/// Number of tests that a report names.
const MOST_NAMED: usize = 12;
/// The mark with which a test of many seeds names the one that failed.
const FAILED_SEED: &str = "failed: HAIRSPRING_SEED=";

/// Runs tests and counts their outcomes.
fn judge(command: &mut Command) -> Verdict {
    let mut figures = Map::new();
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => {
            figures.insert("defect".to_owned(), json!(format!("run {command:?}: {error}")));
            return Verdict { passed: false, figures };
        }
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let (mut ran, mut failed) = (0, 0);
    let mut promises = Vec::new();
    let told = String::from_utf8_lossy(&output.stderr);
    let skips: Vec<&str> = said.lines().chain(told.lines()).filter_map(skip).collect();
    for line in said.lines() {
        // With --nocapture a figure may stand on the line that names its test.
        if let Some((name, value)) = figure(line) {
            figures.insert(name.to_owned(), value);
        }
        if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... ")) {
            promises.push(name.0);
        } else if let Some(result) = line.strip_prefix("test result: ") {
            ran += count(result, "passed");
            failed += count(result, "failed");
        } else if line.starts_with("killed: ") {
            // The runner of mutants prints a line for each instead.
            ran += 1;
        } else if line.starts_with("SURVIVED: ") || line.starts_with("NOT TRIED") {
            failed += 1;
        } else if let Some((name, explored)) = line.split_once(": ").filter(|(_, rest)| rest.contains(" states, ")) {
            figures.insert(format!("explored: {name}"), json!(explored));
        }
    }
    if !skips.is_empty() {
        figures.insert(NOT_RUN.to_owned(), json!(skips.join("; ")));
    }
    figures.insert("tests passed".to_owned(), json!(ran));
    // The name of a test is its promise. If there are many, their number is more useful.
    if (1..=MOST_NAMED).contains(&promises.len()) {
        figures.insert("tests".to_owned(), json!(promises.join(", ")));
    }
    figures.insert("tests failed".to_owned(), json!(failed));
    if !output.status.success() {
        figures.insert("said last".to_owned(), json!(told.lines().last()));
        let last: Vec<&str> = said
            .lines()
            .filter(|line| ["FAILED", "SURVIVED", "NOT TRIED", FAILED_SEED].iter().any(|word| line.contains(word)))
            .collect();
        figures.insert("what failed".to_owned(), json!(last));
    }
    if failed > 0 || !output.status.success() {
        // A failure counts even if other tests could not run.
        figures.remove(NOT_RUN);
    }
    Verdict { passed: output.status.success() && ran > 0 && failed == 0 && skips.is_empty(), figures }
}

/// A figure that a test printed. libtest may have printed the beginning of the line.
pub(crate) fn figure(line: &str) -> Option<(&str, Value)> {
    let (_, rest) = line.split_once("figure: ")?;
    let (name, value) = rest.split_once(": ")?;
    Some((name, serde_json::from_str(value).unwrap_or_else(|_| json!(value))))
}

/// Name and reason of a skipped test.
fn skip(line: &str) -> Option<&str> {
    line.split_once("test-skip: ").map(|(_, skip)| skip)
}

/// The number before a word of Cargo's summary.
fn count(result: &str, word: &str) -> u64 {
    let part = result.split(['.', ';']).find_map(|part| part.trim().strip_suffix(word));
    part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proof of 20,000 seeds failed, and its report did not name the seeds: half an hour had to be repeated to find
    /// them.
    #[test]
    fn a_proof_that_failed_names_each_seed_once() {
        let verdict = told(
            "echo 'failed: HAIRSPRING_SEED=7'; echo 'HAIRSPRING_SEED=7: the recording does not end'; \
             echo 'test result: FAILED. 0 passed; 1 failed;'; exit 101",
        );
        let named = json!(["failed: HAIRSPRING_SEED=7", "test result: FAILED. 0 passed; 1 failed;"]);
        assert!(!verdict.passed && verdict.figures["what failed"] == named, "{:?}", verdict.figures);
    }

    fn told(script: &str) -> Verdict {
        judge(Command::new("sh").args(["-c", script]))
    }

    #[test]
    fn tests_give_figures_of_their_own() {
        let verdict = told(
            "echo 'test a ... figure: early of delays: [0, 1000000]'; echo 'figure: by: adjtimex'; \
                            echo 'test result: ok. 1 passed; 0 failed;'",
        );
        assert!(verdict.passed);
        assert_eq!(verdict.figures["early of delays"], json!([0, 1_000_000]));
        assert_eq!(verdict.figures["by"], json!("adjtimex"));
    }

    #[test]
    fn a_proof_with_a_test_that_could_not_run_has_not_run_unless_another_failed() {
        let verdict = told("echo 'test-skip: a: adjtimex is refused' >&2; echo 'test result: ok. 2 passed; 0 failed;'");
        assert!(!verdict.passed && verdict.figures[NOT_RUN] == json!("a: adjtimex is refused"));
        let verdict =
            told("echo 'test-skip: a: refused' >&2; echo 'test result: FAILED. 1 passed; 1 failed;'; exit 101");
        assert!(!verdict.passed && !verdict.figures.contains_key(NOT_RUN));
        assert!(!told("echo 'test result: ok. 0 passed; 0 failed;'").passed, "nothing matched the filter");
    }

    #[test]
    fn cargos_summary_is_counted() {
        let line = "ok. 124 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 16.23s";
        assert_eq!((count(line, "passed"), count(line, "failed")), (124, 3));
    }
}
