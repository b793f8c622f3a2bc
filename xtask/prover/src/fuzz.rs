//! Runs the fuzz targets in turns, until all together have tried the requested number of inputs: coverage-guided inputs
//! to every parser, with the nightly toolchain and `cargo fuzz`.
//!
//! Each target has its turn of the same length, as many at once as there are CPUs, so that fast parsers get more inputs
//! than slow ones. The figures of a target are the inputs that it tried, and the edges of the instrumented code that
//! they reached, of the total. They are kept after each turn ([`Tally`]), so a run that was ended goes on. The corpus
//! stays under the target directory, and later turns begin with the findings of earlier ones.

mod tally;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, json};

use super::{NOT_RUN, Verdict};
use tally::{Fuzzed, Tally};

/// Folder of the targets, in the workspace.
const FOLDER: &str = "fuzz";
/// Folder of their build, with corpora and the tally.
const BUILD: &str = "target/fuzz";
/// Long enough for some dozen records, or a topology.
const LONGEST_INPUT: u32 = 4096;
/// An input that takes longer has found a loop.
const INPUT_LIMIT_S: u32 = 60;

#[derive(clap::Args)]
pub(crate) struct Terms {
    /// How many inputs, of all targets together
    #[arg(long, default_value_t = 100_000_000)]
    inputs: u64,
    /// The length of a target's turn, in seconds
    #[arg(long, default_value_t = 60)]
    turn: u32,
    /// For how long at most, in seconds; another run goes on from there
    #[arg(long, default_value_t = 14_000)]
    seconds: u64,
    /// Go on with the inputs that an earlier run of the same code has tried
    #[arg(long)]
    resume: bool,
    /// Only these targets
    #[arg(long, value_name = "TARGET")]
    only: Vec<String>,
}

/// Fuzzes in turns until the inputs are tried or the time is over.
pub(crate) fn prove(terms: &Terms) -> Verdict {
    if let Err(why) = tool() {
        return Verdict::not_run(why);
    }
    let mut figures = Map::new();
    match turns(terms, &mut figures) {
        Ok(true) => Verdict { passed: true, figures },
        Ok(false) => {
            let why = "as a whole: fewer inputs than planned were tried; --resume goes on";
            figures.insert(NOT_RUN.to_owned(), json!(why));
            Verdict { passed: false, figures }
        }
        Err(why) => {
            figures.insert("defect".to_owned(), json!(why));
            Verdict { passed: false, figures }
        }
    }
}

/// Gives each target its turns; `Ok(true)` when all inputs were tried.
fn turns(terms: &Terms, figures: &mut Map<String, serde_json::Value>) -> Result<bool, String> {
    // The build counts, too.
    let begun = Instant::now();
    let targets = targets(&terms.only)?;
    let folder = std::env::current_dir().map_err(|error| format!("find the workspace: {error}"))?;
    let build = folder.join(BUILD);
    let programs = compile(&build, &targets)?;
    let end = begun + Duration::from_secs(terms.seconds);
    let turns = Mutex::new(Turns {
        tally: Tally::open(&build, terms.resume)?,
        targets: &targets,
        inputs: terms.inputs,
        given: 0,
        outcome: Ok(()),
    });
    // Held for one call at a time, not during a turn.
    let whole = || turns.lock().unwrap_or_else(PoisonError::into_inner);
    let turn = Duration::from_secs(u64::from(terms.turn));
    let next = || whole().next(Instant::now() + turn <= end);
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cpus.min(targets.len()) {
            scope.spawn(|| {
                while let Some(target) = next() {
                    let fuzzed = fuzz(&folder, &programs, target, terms.turn);
                    whole().ended(target, fuzzed);
                }
            });
        }
    });
    let Turns { tally, outcome, .. } = turns.into_inner().unwrap_or_else(PoisonError::into_inner);
    for target in &targets {
        let of = tally.of(target);
        figures.insert(format!("{target}: inputs"), json!(of.inputs));
        figures.insert(format!("{target}: edges reached"), json!(format!("{} of {}", of.edges, of.instrumented)));
    }
    figures.insert("inputs in all".to_owned(), json!(tally.inputs(&targets)));
    figures.insert("inputs planned".to_owned(), json!(terms.inputs));
    figures.insert("targets".to_owned(), json!(targets.len()));
    outcome.map(|()| tally.inputs(&targets) >= terms.inputs)
}

/// State of a run: the target whose turn it is, and the results of the turns so far.
struct Turns<'a> {
    tally: Tally,
    targets: &'a [String],
    /// Number of inputs to try.
    inputs: u64,
    /// Number of turns given.
    given: usize,
    outcome: Result<(), String>,
}

impl<'a> Turns<'a> {
    /// The target of the next turn. None if a target failed, if the inputs are tried and all targets had as many turns,
    /// or if there is no time for a turn.
    fn next(&mut self, is_time: bool) -> Option<&'a str> {
        let at = self.given % self.targets.len();
        let is_over = self.outcome.is_err() || !is_time || at == 0 && self.tally.inputs(self.targets) >= self.inputs;
        self.given += usize::from(!is_over);
        (!is_over).then(|| self.targets[at].as_str())
    }

    fn ended(&mut self, target: &str, fuzzed: Result<Fuzzed, String>) {
        let kept = fuzzed.and_then(|fuzzed| self.tally.add(target, fuzzed));
        if let (Err(why), true) = (kept, self.outcome.is_ok()) {
            self.outcome = Err(format!("{target}: {why}"));
        }
        println!("fuzz: {} of {} inputs, {target} last", self.tally.inputs(self.targets), self.inputs);
    }
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

/// Builds the targets, and returns the folder of their programs.
fn compile(build: &Path, targets: &[String]) -> Result<PathBuf, String> {
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    for target in targets {
        let mut command = Command::new("rustup");
        command.args(["run", "nightly", "cargo", "fuzz", "build", "--fuzz-dir", FOLDER, "--target", &triple]);
        let output = command.arg("--target-dir").arg(build).arg(target).output();
        let output = output.map_err(|error| format!("run cargo fuzz: {error}"))?;
        if !output.status.success() {
            return Err(format!("build {target}: {}", failure(&String::from_utf8_lossy(&output.stderr))));
        }
    }
    Ok(build.join(triple).join("release"))
}

/// Figures of a turn of a target, if no input did harm.
fn fuzz(folder: &Path, programs: &Path, target: &str, seconds: u32) -> Result<Fuzzed, String> {
    let build = folder.join(BUILD);
    let corpus = build.join("corpus").join(target);
    std::fs::create_dir_all(&corpus).map_err(|error| format!("make {}: {error}", corpus.display()))?;
    let mut command = Command::new(programs.join(target));
    // The seed inputs, if there are any.
    let seeds = folder.join(FOLDER).join("seeds").join(target);
    command.arg(&corpus).args(seeds.is_dir().then_some(seeds));
    // Long inputs from the beginning: a turn is too short to grow to them.
    command.arg(format!("-max_total_time={seconds}")).arg(format!("-max_len={LONGEST_INPUT}")).arg("-len_control=0");
    command.arg(format!("-timeout={INPUT_LIMIT_S}"));
    command.arg(format!("-artifact_prefix={}/{target}-", build.display()));
    // As `cargo fuzz run` sets it.
    command.env("ASAN_OPTIONS", "detect_odr_violation=0");
    let output = command.output().map_err(|error| format!("run {target}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(failure(&said));
    }
    fuzzed(&said).ok_or_else(|| "it does not say how many inputs it tried".to_owned())
}

/// The most useful line: where and why the target panicked, or else the last line; and the file of the input.
fn failure(said: &str) -> String {
    let mut lines = said.lines();
    let is_first = |line: &&str| line.contains("panicked at") || line.starts_with("error") || line.contains("ERROR: ");
    let what = match lines.find(is_first) {
        Some(where_to) => format!("{where_to} {}", lines.next().unwrap_or_default()),
        None => said.lines().last().unwrap_or("nothing was said").to_owned(),
    };
    match said.split_once("Test unit written to ").and_then(|(_, rest)| rest.lines().next()) {
        Some(file) => format!("{what}; the input is {file}"),
        None => what,
    }
}

/// The numbers in `(900 inline 8-bit counters)`, in `Done 12345 runs in 61 second(s)`, and in the last `cov: 678`.
fn fuzzed(said: &str) -> Option<Fuzzed> {
    let line = said.lines().rev().find_map(|line| line.strip_prefix("Done "))?;
    let inputs = line.split_whitespace().next()?.parse().ok().filter(|runs| *runs > 0)?;
    let covered = said.lines().rev().find_map(|line| line.split_once("cov: "))?.1;
    let edges = covered.split_whitespace().next()?.parse().ok()?;
    let counters = said.lines().find_map(|line| line.split_once(" inline 8-bit counters)"))?.0;
    let instrumented = counters.rsplit('(').next()?.trim().parse().ok()?;
    Some(Fuzzed { inputs, edges, instrumented })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_and_edges_are_read() {
        let said = "INFO: Loaded 1 modules   (900 inline 8-bit counters): 900 [0x5, 0x9), \n#2\tINITED cov: 3 ft: 4\n\
                    #8\tpulse  cov: 678 ft: 900 corp: 5\nDone 12345 runs in 61 second(s)\n";
        assert_eq!(fuzzed(said), Some(Fuzzed { inputs: 12_345, edges: 678, instrumented: 900 }));
        assert_eq!((fuzzed("Done 0 runs in 1 second(s)"), fuzzed("error: no such command")), (None, None));
    }

    #[test]
    fn each_target_has_as_many_turns_until_the_inputs_are_tried() {
        let folder = tempfile::tempdir().unwrap();
        let targets = ["http", "tap"].map(str::to_owned);
        let open = || Turns {
            tally: Tally::of_code(folder.path(), false, 7).unwrap(),
            targets: &targets,
            inputs: 30,
            given: 0,
            outcome: Ok(()),
        };
        let fuzzed = |inputs| Ok(Fuzzed { inputs, edges: 1, instrumented: 2 });
        let mut turns = open();
        assert_eq!((turns.next(true), turns.next(true)), (Some("http"), Some("tap")), "two at once");
        turns.ended("tap", fuzzed(9));
        turns.ended("http", fuzzed(9));
        assert_eq!(turns.next(true), Some("http"));
        turns.ended("http", fuzzed(90));
        assert_eq!(turns.next(true), Some("tap"), "its second turn, too");
        assert_eq!(turns.next(true), None);
        turns.ended("tap", Err("panicked".to_owned()));
        assert_eq!(turns.outcome, Err("tap: panicked".to_owned()));
        let mut turns = open();
        turns.ended("http", Err("panicked".to_owned()));
        assert_eq!(turns.next(true), None);
        assert_eq!((open().next(false), open().next(true)), (None, Some("http")));
    }

    #[test]
    fn the_place_of_a_panic_and_its_input_are_told() {
        let said = "INFO: Seed: 1\nthread 'x' panicked at crates/a.rs:3:4:\nindex out of bounds\nSUMMARY: libFuzzer\n";
        assert_eq!(failure(said), "thread 'x' panicked at crates/a.rs:3:4: index out of bounds");
        let kept = format!("{said}artifact_prefix='/t/'; Test unit written to /t/crash-1\nBase64: aa\n");
        assert!(failure(&kept).ends_with("out of bounds; the input is /t/crash-1"));
        assert_eq!(
            failure("==1==ERROR: AddressSanitizer: heap-use\nmore"),
            "==1==ERROR: AddressSanitizer: heap-use more"
        );
    }
}
