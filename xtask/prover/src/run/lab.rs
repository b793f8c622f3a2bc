//! Proofs that take a virtual machine: `cargo xtask lab`, whose counts are the figures.

use std::process::Command;

use serde_json::{Map, json};

use crate::Verdict;

/// The drivers against those of real kernels.
pub(crate) fn prove() -> Verdict {
    let (mut verdict, said) = run(&["--long"]);
    let compared: Vec<&str> = said.lines().filter(|line| line.contains("to the last digit")).collect();
    verdict.figures.insert("two boots".to_owned(), json!(compared.join("; ")));
    // Both must have run to their ends, or there is nothing to compare.
    verdict.passed &= !compared.is_empty();
    verdict
}

/// The hypervisor as a culprit: the machine is stopped, and its guest must report that.
pub(crate) fn hypervisor() -> Verdict {
    let (mut verdict, said) = run(&["--only", "hypervisor"]);
    let told: Vec<&str> = said.lines().filter(|line| line.contains("hypervisor.stops")).map(str::trim).collect();
    verdict.figures.insert("told by the guest".to_owned(), json!(told.join("; ")));
    verdict.passed &= !told.is_empty();
    verdict
}

/// Runs the lab; passes if it did and anything ran. Returns its output, too.
fn run(words: &[&str]) -> (Verdict, String) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut figures = Map::new();
    let output = match Command::new(cargo).args(["xtask", "lab"]).args(words).output() {
        Ok(output) => output,
        Err(error) => {
            figures.insert("defect".to_owned(), json!(format!("run cargo xtask lab: {error}")));
            return (Verdict { passed: false, figures }, String::new());
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{said}");
    let counts = said.lines().rev().find_map(counts);
    for (name, count) in ["tests passed", "tests failed", "tests skipped"].into_iter().zip(counts.unwrap_or_default()) {
        figures.insert(name.to_owned(), json!(count));
    }
    if !output.status.success() {
        let told = String::from_utf8_lossy(&output.stderr);
        figures.insert("said last".to_owned(), json!(told.lines().last()));
    }
    let ran = counts.is_some_and(|[passed, failed, _]| passed > 0 && failed == 0);
    (Verdict { passed: output.status.success() && ran, figures }, said)
}

/// The closing line: passed, failed, skipped.
fn counts(line: &str) -> Option<[u64; 3]> {
    let mut parts = line.split(", ");
    let mut next = |word: &str| parts.next()?.strip_suffix(word)?.trim().parse().ok();
    Some([next("passed")?, next("failed")?, next("skipped")?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_is_counted() {
        assert_eq!(counts("33 passed, 1 failed, 2 skipped"), Some([33, 1, 2]));
        assert_eq!(counts("33 tests: 0 differences"), None);
    }
}
