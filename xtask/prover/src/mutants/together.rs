//! All mutants of a part in one build: which test reaches which of them, and whether one of these tests finds it.
//!
//! cargo-mutants builds the crate anew for each mutant, and a part takes it hours. Here the crate is built once, with
//! each mutant behind a switch ([`switches`]), so a mutant takes as long as its tests.
//!
//! Promises: a mutant counts as found if a test fails twice with it, each time in a process of its own, and passes
//! without it. It counts as living if all tests that reach it pass with it, or none reaches it. Tests that fail without
//! a mutant are named and not used. A mutant without a switch, or without time to be tried, keeps its old state.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::results::Outcome;
use super::switches::{self, Change};
use super::{LIMITS, Mutant, Part, cargo, works};

/// Limit of builds until no mutant is left that does not compile behind its switch.
const MOST_ROUNDS: usize = 40;
/// Time limit of a test with a mutant: `TIMES` its time without, plus `MORE`.
const TIMES: u32 = 8;
const MORE: Duration = Duration::from_secs(5);
/// Tests that take less are tried with every mutant before any other.
const QUICK: Duration = Duration::from_millis(1500);
/// A test that takes longer than this without a mutant is not used.
const LONGEST: Duration = Duration::from_secs(120);

/// A test of the build with all mutants.
#[derive(Debug)]
struct Test {
    binary: PathBuf,
    name: String,
    time: Duration,
    reached: BTreeSet<usize>,
}

/// Results of the trials.
#[derive(Debug, Default)]
pub(super) struct Tried {
    /// The outcome of each mutant that was tried, by its place in the list.
    pub(super) outcomes: Vec<(usize, Outcome)>,
    /// Tests that failed without a mutant.
    pub(super) unusable: Vec<String>,
    /// Number of mutants that no test reaches.
    pub(super) unreached: usize,
}

/// A copy of the sources with mutants in it.
struct Copy<'p> {
    part: &'p Part,
    folder: PathBuf,
    /// The command under which tests run, which limits what a mutant can do to the computer.
    limits: Vec<&'static str>,
}

/// Tries those mutants of a part that are `wanted`, until this moment.
pub(super) fn try_all(part: &Part, mutants: &[Mutant], wanted: &[usize], until: Instant) -> Result<Tried, String> {
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let limits = LIMITS.iter().filter(|limit| works(limit)).copied().flatten().copied().collect();
    let copy = Copy { part, folder: here.join("target/mutants/copy"), limits };
    copy.make()?;
    let (inside, binaries) = copy.build(mutants, wanted)?;
    let scratch = tempfile::tempdir().map_err(|error| format!("make a folder: {error}"))?;
    let (tests, unusable) = copy.reach(&binaries, scratch.path())?;
    let tests_of = |number: usize| tests.iter().filter(move |test| test.reached.contains(&number));
    let unreached = inside.iter().filter(|number| tests_of(**number).next().is_none()).count();
    let (mut outcomes, mut living) = (Vec::new(), inside);
    // A slow test is tried only with the mutants that no other finds.
    for range in [Duration::ZERO..QUICK, QUICK..Duration::MAX] {
        let found = Mutex::new(Vec::new());
        in_parallel(&living, |number| {
            let mut tests: Vec<&Test> = tests_of(number).filter(|test| range.contains(&test.time)).collect();
            tests.sort_by_key(|test| test.time);
            let one = tests.into_iter().find_map(|test| copy.finds(test, number, until).transpose()).transpose();
            found.lock().unwrap_or_else(PoisonError::into_inner).push((number, one));
        });
        living.clear();
        for (number, one) in found.into_inner().unwrap_or_else(PoisonError::into_inner) {
            match one {
                Ok(Some(outcome)) => outcomes.push((number, outcome)),
                Ok(None) => living.push(number),
                // The time is over.
                Err(()) => {}
            }
        }
        living.sort_unstable();
        let tests = if range.end == QUICK { "quick tests" } else { "all tests" };
        println!("{} of {} live with {tests}, and others may if the time is over:", living.len(), wanted.len());
        living.iter().for_each(|number| println!("  {} — {}", mutants[*number].name, mutants[*number].code));
    }
    outcomes.extend(living.into_iter().map(|number| (number, Outcome::Lives)));
    Ok(Tried { outcomes, unusable, unreached })
}

/// Calls a function with each item of a list, on as many threads as there are CPUs.
fn in_parallel(list: &[usize], each: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, std::num::NonZero::get) {
            // Relaxed: each number is taken once, and orders no other access.
            scope.spawn(|| {
                while let Some(number) = list.get(next.fetch_add(1, Ordering::Relaxed)) {
                    each(*number);
                }
            });
        }
    });
}

impl Copy<'_> {
    /// Copies the files that git tracks or would track. Unchanged files keep their time, so that they are not built
    /// again.
    fn make(&self) -> Result<(), String> {
        let listed =
            Command::new("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).output();
        let listed = listed.map_err(|error| format!("run git: {error}"))?;
        for name in String::from_utf8_lossy(&listed.stdout).split_terminator('\0') {
            let (from, to) = (Path::new(name), self.folder.join(name));
            if !from.is_file() || fs::read(from).ok() == fs::read(&to).ok() {
                continue;
            }
            let made = to.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::copy(from, &to).map(drop));
            made.map_err(|error| format!("copy {name}: {error}"))?;
        }
        Ok(())
    }

    /// Builds the tests with all mutants that compile behind their switches. Returns these, and the binaries.
    fn build(&self, mutants: &[Mutant], wanted: &[usize]) -> Result<(Vec<usize>, Vec<PathBuf>), String> {
        let root = format!("{}/src/lib.rs", self.part.folder);
        let mut sources = BTreeMap::from([(root.clone(), Vec::new())]);
        for number in wanted {
            sources.entry(mutants[*number].file.clone()).or_default().push(*number);
        }
        let mut inside: BTreeSet<usize> = wanted.iter().copied().collect();
        for _ in 0..MOST_ROUNDS {
            let mut texts = BTreeMap::new();
            for (file, numbers) in &sources {
                let text = fs::read_to_string(file).map_err(|error| format!("read {file}: {error}"))?;
                inside.retain(|number| {
                    !numbers.contains(number) || Change::read(*number, &mutants[*number].listed, &text).is_some()
                });
                let changes = numbers.iter().filter(|number| inside.contains(number));
                let changes: Vec<Change> =
                    changes.filter_map(|number| Change::read(*number, &mutants[*number].listed, &text)).collect();
                let (mut switched, without) =
                    switches::switched(&text, &changes).map_err(|error| format!("read {file}: {error}"))?;
                inside.retain(|number| !without.contains(number));
                if *file == root {
                    switched.push_str(switches::MODULE);
                }
                let to = self.folder.join(file);
                if fs::read_to_string(&to).ok().as_ref() != Some(&switched) {
                    fs::write(&to, &switched).map_err(|error| format!("write {}: {error}", to.display()))?;
                }
                texts.insert(file.clone(), switched);
            }
            let (messages, said) = self.cargo_test_no_run()?;
            let of = |reason: &'static str| messages.iter().filter(move |message| message["reason"] == reason);
            let errors =
                of("compiler-message").map(|one| &one["message"]).filter(|message| message["level"] == "error");
            let errors: Vec<&Value> = errors.collect();
            if said.is_empty() {
                let tests = of("compiler-artifact").filter(|artifact| artifact["profile"]["test"] == true);
                let binaries =
                    tests.filter_map(|artifact| artifact["executable"].as_str().map(PathBuf::from)).collect();
                return Ok((inside.into_iter().collect(), binaries));
            }
            let before = inside.len();
            for error in &errors {
                let blamed = switches::blamed(error, &texts);
                inside.retain(|number| !blamed.contains(number));
            }
            if inside.len() == before {
                let said = errors.first().and_then(|error| error["rendered"].as_str()).unwrap_or(&said);
                return Err(format!("build the tests with mutants: {said}"));
            }
        }
        Err(format!("after {MOST_ROUNDS} rounds there still are mutants that do not compile"))
    }

    /// Builds the tests. Returns cargo's messages, and its errors if it failed.
    fn cargo_test_no_run(&self) -> Result<(Vec<Value>, String), String> {
        let mut command = cargo();
        command.current_dir(&self.folder).env("CARGO_TARGET_DIR", self.folder.with_file_name("build"));
        // A lint that is an error would be an error of mutants.
        command.envs([
            ("RUSTFLAGS", "--cap-lints=warn"),
            ("CARGO_PROFILE_TEST_DEBUG", "0"),
            ("CARGO_PROFILE_DEV_DEBUG", "0"),
        ]);
        command.args(["test", "--no-run", "--quiet", "--message-format", "json", "--package", self.part.package]);
        let output = command.args(self.part.binaries).output().map_err(|error| format!("run cargo: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let messages = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let failed =
            if output.status.success() { String::new() } else { String::from_utf8_lossy(&output.stderr).into_owned() };
        Ok((messages, failed))
    }

    /// Runs every test once without a mutant. Returns those that pass, and the names of those that do not.
    fn reach(&self, binaries: &[PathBuf], scratch: &Path) -> Result<(Vec<Test>, Vec<String>), String> {
        let mut named = Vec::new();
        for binary in binaries {
            let mut command = Command::new(binary);
            command.args(["--list", "--format", "terse"]).args(self.part.tests);
            let output = command.output().map_err(|error| format!("run {}: {error}", binary.display()))?;
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            named.extend(said.lines().filter_map(|line| Some((binary, line.strip_suffix(": test")?.to_owned()))));
        }
        let (tests, unusable) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let all: Vec<usize> = (0..named.len()).collect();
        in_parallel(&all, |number| {
            let (binary, name) = &named[number];
            let file = scratch.join(number.to_string());
            let began = Instant::now();
            let passed = self.run(binary, name, LONGEST, ("MUTANTS_REACHED", file.as_os_str())) == Some(Outcome::Lives);
            let time = began.elapsed();
            if !passed {
                unusable.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
                return;
            }
            let reached = fs::read(&file).unwrap_or_default();
            let reached =
                reached.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]) as usize);
            let test = Test { binary: (*binary).clone(), name: name.clone(), time, reached: reached.collect() };
            tests.lock().unwrap_or_else(PoisonError::into_inner).push(test);
        });
        Ok((
            tests.into_inner().unwrap_or_else(PoisonError::into_inner),
            unusable.into_inner().unwrap_or_else(PoisonError::into_inner),
        ))
    }

    /// Whether a test finds a mutant, and how; an error once the time is over.
    fn finds(&self, test: &Test, mutant: usize, until: Instant) -> Result<Option<Outcome>, ()> {
        let number = mutant.to_string();
        let once = || {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(());
            }
            let found =
                self.run(&test.binary, &test.name, left.min(test.time * TIMES + MORE), ("MUTANT", number.as_ref()));
            // A test without time to pass or to fail has no outcome.
            if Instant::now() >= until { Err(()) } else { Ok(found.filter(|one| *one != Outcome::Lives)) }
        };
        if once()?.is_none() { Ok(None) } else { once() }
    }

    /// Runs one test: the outcome of the mutant in force, or `None` if the test could not be run.
    fn run(&self, binary: &Path, test: &str, limit: Duration, set: (&str, &std::ffi::OsStr)) -> Option<Outcome> {
        let limit = limit.as_secs_f64().to_string();
        let words: Vec<&str> = self.limits.iter().copied().chain(["timeout", "--kill-after=1", &limit]).collect();
        let folder = self.folder.join(self.part.folder);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg(binary).args(["--exact", test, "--test-threads=1"]).env(set.0, set.1);
        command.env("CARGO_MANIFEST_DIR", &folder).env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1").current_dir(folder);
        let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
        Some(match status.code() {
            Some(0) => Outcome::Lives,
            Some(124 | 137) => Outcome::Hangs,
            _ => Outcome::Killed,
        })
    }
}
