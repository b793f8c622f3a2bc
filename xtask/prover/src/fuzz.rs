//! The fuzz targets, each for a while: coverage-guided inputs to every parser, with the nightly toolchain
//! and `cargo fuzz`.

use std::process::Command;

use serde_json::{Map, json};

use super::Verdict;

/// Where the targets are, in the workspace.
const FOLDER: &str = "fuzz";
const TARGETS: [&str; 5] = ["card", "description", "journal", "sigmf", "topology"];
/// Long enough for some dozen records, or a topology.
const LONGEST_INPUT: u32 = 4096;

/// Fuzzes each target for so many seconds.
pub(crate) fn prove(seconds: u32) -> Verdict {
    let mut verdict = Verdict { passed: true, figures: Map::new() };
    for target in TARGETS {
        let outcome = fuzz(target, seconds);
        verdict.passed &= outcome.is_ok();
        let (name, value) = match outcome {
            Ok(runs) => (format!("{target}: inputs"), json!(runs)),
            Err(why) => (format!("{target}: defect"), json!(why)),
        };
        verdict.figures.insert(name, value);
    }
    verdict
}

/// The number of inputs, if none did harm.
fn fuzz(target: &str, seconds: u32) -> Result<u64, String> {
    let folder = std::env::current_dir().map_err(|error| error.to_string())?;
    let build = folder.join("target/fuzz");
    let corpus = build.join("corpus").join(target);
    std::fs::create_dir_all(&corpus).map_err(|error| format!("make {}: {error}", corpus.display()))?;
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "fuzz", "run", "--fuzz-dir", FOLDER]);
    command.arg("--target-dir").arg(&build).arg(target).arg(&corpus);
    // The seed inputs, if there are any.
    let seeds = folder.join(FOLDER).join("seeds").join(target);
    command.args(seeds.is_dir().then_some(seeds)).arg("--");
    // Long inputs from the beginning: a minute is too short to grow to them.
    command.arg(format!("-max_total_time={seconds}")).arg(format!("-max_len={LONGEST_INPUT}")).arg("-len_control=0");
    command.arg(format!("-artifact_prefix={}/", build.display()));
    let output = command.output().map_err(|error| format!("run cargo fuzz: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let why = failure(&said);
        return Err(format!("{why} (`cargo install cargo-fuzz` if it is missing)"));
    }
    runs(&said).ok_or_else(|| "it does not say how many inputs it tried".to_owned())
}

/// The most useful line: where and why the target panicked, or else the last line.
fn failure(said: &str) -> String {
    let mut lines = said.lines();
    match lines.find(|line| line.contains("panicked at") || line.starts_with("error")) {
        Some(where_to) => format!("{where_to} {}", lines.next().unwrap_or_default()),
        None => said.lines().last().unwrap_or("nothing was said").to_owned(),
    }
}

/// The number in `Done 12345 runs in 61 second(s)`.
fn runs(said: &str) -> Option<u64> {
    let line = said.lines().rev().find_map(|line| line.strip_prefix("Done "))?;
    line.split_whitespace().next()?.parse().ok().filter(|runs| *runs > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_inputs_is_read() {
        assert_eq!(runs("#8\tpulse\nDone 12345 runs in 61 second(s)\n"), Some(12_345));
        assert_eq!((runs("Done 0 runs in 1 second(s)"), runs("error: no such command")), (None, None));
    }
}
