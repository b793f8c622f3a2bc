//! Proofs that are whole steps of `cargo xtask test`: the closing line holds the figures.

use std::process::Command;

use serde_json::{Map, json};

use crate::{NOT_RUN, Verdict};

/// Runs the steps; passes if no check failed and none was skipped, because a skipped check shows nothing.
pub(crate) fn prove(steps: &[String]) -> Verdict {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["xtask", "test"]).args(steps.iter().flat_map(|step| ["--only", step]));
    match command.output() {
        Ok(output) => judge(&String::from_utf8_lossy(&output.stdout), output.status.success()),
        Err(error) => Verdict {
            passed: false,
            figures: Map::from_iter([("defect".to_owned(), json!(format!("cargo: {error}")))]),
        },
    }
}

fn judge(said: &str, succeeded: bool) -> Verdict {
    let mut figures = Map::new();
    let closing = said.trim_end().lines().last().unwrap_or_default();
    let counts: Vec<u64> = closing.split(", ").filter_map(|part| part.split(' ').next()?.parse().ok()).collect();
    let [passed, failed, skipped] = counts[..] else {
        figures.insert("defect".to_owned(), json!(format!("no closing line: {closing}")));
        return Verdict { passed: false, figures };
    };
    for (name, count) in [("checks passed", passed), ("checks failed", failed), ("checks skipped", skipped)] {
        figures.insert(name.to_owned(), json!(count));
    }
    let of = |mark: &str| said.lines().filter_map(|line| line.strip_prefix(mark)).collect::<Vec<_>>().join("; ");
    if failed > 0 || !succeeded {
        figures.insert("what failed".to_owned(), json!(of("FAILED   ")));
    } else if skipped > 0 {
        figures.insert(NOT_RUN.to_owned(), json!(of("skipped  ")));
    }
    Verdict { passed: succeeded && passed > 0 && (failed, skipped) == (0, 0), figures }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steps_that_ran_whole_and_well_have_shown_anything() {
        assert!(judge("begin  c\n12 passed, 0 failed, 0 skipped\n", true).passed);
        let skipped = judge("skipped  tcl: no Tcl\n12 passed, 0 failed, 1 skipped\n", true);
        assert!(!skipped.passed && skipped.figures[NOT_RUN] == json!("tcl: no Tcl"));
        let failed = judge("FAILED   c: exit 1\nskipped  tcl: no Tcl\n1 passed, 1 failed, 1 skipped\n", false);
        assert!(!failed.passed && !failed.figures.contains_key(NOT_RUN));
        assert!(!judge("0 passed, 0 failed, 0 skipped\n", true).passed);
        assert!(!judge("error: no such step\n", false).passed);
    }
}
