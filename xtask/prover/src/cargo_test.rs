//! Proofs that are tests which take too long for every run: Cargo runs them, their counts are the figures.

use std::process::Command;

use serde_json::{Map, json};

use super::Verdict;

/// Runs `cargo test` with these arguments and environment; passes if everything passed and anything ran.
pub(crate) fn prove(arguments: &[&str], environment: &[(&str, &str)]) -> Verdict {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.arg("test").args(arguments).envs(environment.iter().copied());
    judge(&mut command)
}

/// The sanitizers.
const SANITIZERS: [&str; 2] = ["thread", "address"];

/// Runs tests under the sanitizers, with the nightly toolchain, which alone has them. The standard library is built anew with
/// each (`rustup component add rust-src --toolchain nightly`): ThreadSanitizer must see its atomics, too.
pub(crate) fn sanitize(package: &str, tests: &[&str]) -> Verdict {
    let mut all = Verdict { passed: true, figures: Map::new() };
    for name in SANITIZERS {
        let mut command = Command::new("rustup");
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        command.args([
            "run",
            "nightly",
            "cargo",
            "test",
            "-Zbuild-std",
            "-p",
            package,
            "--lib",
            "--target",
            &target,
            "--",
        ]);
        command.args(tests);
        command.env("RUSTFLAGS", format!("-Zsanitizer={name}"));
        command.env("CARGO_TARGET_DIR", format!("target/sanitizer-{name}"));
        command.env("TSAN_OPTIONS", "halt_on_error=1");
        // The kernel's reads and writes of memories that live as long as the process are no leaks.
        command.env("ASAN_OPTIONS", "detect_leaks=0");
        let verdict = judge(&mut command);
        all.passed &= verdict.passed;
        all.figures.extend(verdict.figures.into_iter().map(|(figure, value)| (format!("{name}: {figure}"), value)));
    }
    all
}

/// Runs tests and counts what came of them.
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
    for line in said.lines() {
        if let Some(result) = line.strip_prefix("test result: ") {
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
    figures.insert("tests passed".to_owned(), json!(ran));
    figures.insert("tests failed".to_owned(), json!(failed));
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        figures.insert("said last".to_owned(), json!(told.lines().last()));
        let last: Vec<&str> = said
            .lines()
            .filter(|line| line.contains("FAILED") || line.contains("SURVIVED") || line.contains("NOT TRIED"))
            .collect();
        figures.insert("what failed".to_owned(), json!(last));
    }
    Verdict { passed: output.status.success() && ran > 0 && failed == 0, figures }
}

/// The number before a word of Cargo's summary.
fn count(result: &str, word: &str) -> u64 {
    let part = result.split(['.', ';']).find_map(|part| part.trim().strip_suffix(word));
    part.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_summary_is_counted() {
        let line = "ok. 124 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out; finished in 16.23s";
        assert_eq!((count(line, "passed"), count(line, "failed")), (124, 3));
    }
}
