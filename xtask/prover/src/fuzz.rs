//! The fuzz targets, each for a while: coverage-guided inputs to every parser, with the nightly toolchain
//! and `cargo fuzz`.
//!
//! Each target has two figures: how many inputs it got, and how many edges of its code they reached. The corpus stays under the target
//! directory, so a later run begins with what an earlier one found.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, json};

use super::{NOT_RUN, Verdict};

/// Where the targets are, in the workspace.
const FOLDER: &str = "fuzz";
/// Long enough for some dozen records, or a topology.
const LONGEST_INPUT: u32 = 4096;

/// What a target came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fuzzed {
    inputs: u64,
    /// Edges of the code that inputs reached.
    edges: u64,
}

/// Fuzzes each target for so many seconds; only these targets if some are named.
pub(crate) fn prove(seconds: u32, only: &[String]) -> Verdict {
    let mut figures = Map::new();
    if let Err(why) = tool() {
        figures.insert(NOT_RUN.to_owned(), json!(why));
        return Verdict { passed: false, figures };
    }
    let targets = match targets(only) {
        Ok(targets) => targets,
        Err(why) => {
            figures.insert("defect".to_owned(), json!(why));
            return Verdict { passed: false, figures };
        }
    };
    let (mut passed, mut inputs) = (true, 0);
    for target in &targets {
        match fuzz(target, seconds) {
            Ok(fuzzed) => {
                inputs += fuzzed.inputs;
                figures.insert(format!("{target}: inputs"), json!(fuzzed.inputs));
                figures.insert(format!("{target}: edges reached"), json!(fuzzed.edges));
            }
            Err(why) => {
                passed = false;
                figures.insert(format!("{target}: defect"), json!(why));
            }
        }
    }
    figures.insert("inputs in all".to_owned(), json!(inputs));
    figures.insert("targets".to_owned(), json!(targets.len()));
    Verdict { passed, figures }
}

/// Whether the nightly toolchain and `cargo fuzz` are there.
fn tool() -> Result<(), String> {
    let said = Command::new("rustup").args(["run", "nightly", "cargo", "fuzz", "--version"]).output();
    match said {
        Ok(said) if said.status.success() => Ok(()),
        Ok(said) => {
            let errors = String::from_utf8_lossy(&said.stderr);
            let first = errors.lines().next().unwrap_or("it does not say why").to_owned();
            Err(format!(
                "cargo fuzz does not run with the nightly toolchain ({first}); cargo install --locked cargo-fuzz"
            ))
        }
        Err(error) => Err(format!("rustup does not run ({error}); it brings the nightly toolchain")),
    }
}

/// The targets in the folder, in the order of their names.
fn targets(only: &[String]) -> Result<Vec<String>, String> {
    let folder = Path::new(FOLDER).join("targets");
    let files = std::fs::read_dir(&folder).map_err(|error| format!("list {}: {error}", folder.display()))?;
    let names = files.flatten().filter_map(|file| Some(file.path().file_stem()?.to_str()?.to_owned()));
    let mut names: Vec<String> = names.collect();
    names.sort();
    if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
        return Err(format!("find a target named {unknown}; the targets are {}", names.join(", ")));
    }
    names.retain(|name| only.is_empty() || only.contains(name));
    Ok(names)
}

/// What a target came to, if no input did harm.
fn fuzz(target: &str, seconds: u32) -> Result<Fuzzed, String> {
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
    command.arg(format!("-artifact_prefix={}/{target}-", build.display()));
    let output = command.output().map_err(|error| format!("run cargo fuzz: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(failure(&said));
    }
    fuzzed(&said).ok_or_else(|| "it does not say how many inputs it tried".to_owned())
}

/// The most useful line: where and why the target panicked, or else the last line.
fn failure(said: &str) -> String {
    let mut lines = said.lines();
    match lines.find(|line| line.contains("panicked at") || line.starts_with("error") || line.contains("ERROR: ")) {
        Some(where_to) => format!("{where_to} {}", lines.next().unwrap_or_default()),
        None => said.lines().last().unwrap_or("nothing was said").to_owned(),
    }
}

/// The numbers in `Done 12345 runs in 61 second(s)` and in the last `cov: 678`.
fn fuzzed(said: &str) -> Option<Fuzzed> {
    let line = said.lines().rev().find_map(|line| line.strip_prefix("Done "))?;
    let inputs = line.split_whitespace().next()?.parse().ok().filter(|runs| *runs > 0)?;
    let covered = said.lines().rev().find_map(|line| line.split_once("cov: "))?.1;
    let edges = covered.split_whitespace().next()?.parse().ok()?;
    Some(Fuzzed { inputs, edges })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_and_edges_are_read() {
        let said = "#2\tINITED cov: 3 ft: 4\n#8\tpulse  cov: 678 ft: 900 corp: 5\nDone 12345 runs in 61 second(s)\n";
        assert_eq!(fuzzed(said), Some(Fuzzed { inputs: 12_345, edges: 678 }));
        assert_eq!((fuzzed("Done 0 runs in 1 second(s)"), fuzzed("error: no such command")), (None, None));
    }

    #[test]
    fn the_place_of_a_panic_is_told() {
        let said = "INFO: Seed: 1\nthread 'x' panicked at crates/a.rs:3:4:\nindex out of bounds\nSUMMARY: libFuzzer\n";
        assert_eq!(failure(said), "thread 'x' panicked at crates/a.rs:3:4: index out of bounds");
        assert_eq!(
            failure("==1==ERROR: AddressSanitizer: heap-use\nmore"),
            "==1==ERROR: AddressSanitizer: heap-use more"
        );
    }
}
