//! Mutation runs with cargo-mutants, one part at a time: every change it makes to the code must be found by a test.
//!
//! Promises: a mutant that lives is either in `mutants.toml` with a reason, or the proof has not passed. An entry of
//! that list whose mutant is found by now, or is gone, is an error, too. Untried mutants are counted, and the proof has
//! not passed.
//!
//! First all mutants are compiled into one build, each behind a switch, and tried against the tests that reach it
//! ([`together`]). cargo-mutants then tries those without a place for a switch alone.
//!
//! That can take hours, so results are kept in `target/mutants/PART/results.json` and a run goes on where the last one
//! stopped. A kill is kept as long as the mutated file stays as it is: tests that are added later only find more. A
//! survivor is kept as long as the whole crate stays as it is. Delete the folder to start again. [`sample`] tries a
//! random part of all of them.

mod list;
mod results;
pub(crate) mod sample;
mod switches;
mod together;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::{NOT_RUN, Verdict};
use list::Exceptions;
use results::{Outcome, Results};

/// Code that is mutated together, and the tests that have to find it: the crate's own ones alone, so that a mutant is
/// cheap.
struct Part {
    name: &'static str,
    package: &'static str,
    /// The crate's folder.
    folder: &'static str,
    /// Globs.
    files: &'static [&'static str],
    /// Arguments of `cargo test` that choose the binaries of tests.
    binaries: &'static [&'static str],
    /// Arguments of the binaries that choose the tests; all if there are none.
    tests: &'static [&'static str],
}

const RECORD: &str = "hairspring-record";
const RECORD_FOLDER: &str = "crates/record";

const PARTS: &[Part] = &[
    Part {
        name: "exec-core",
        package: "hairspring-exec-core",
        folder: "crates/exec-core",
        files: &["crates/exec-core/src/**"],
        binaries: &["--lib", "--test", "it"],
        tests: &[],
    },
    Part {
        name: "machine",
        package: "hairspring-machine",
        folder: "crates/machine",
        files: &["crates/machine/src/**"],
        binaries: &["--lib", "--tests"],
        tests: &[],
    },
    Part {
        name: "time",
        package: "hairspring-time",
        folder: "crates/time",
        files: &["crates/time/src/**"],
        binaries: &["--lib", "--tests"],
        tests: &[],
    },
    Part {
        name: "ring",
        package: "hairspring-ring",
        folder: "crates/ring",
        files: &["crates/ring/src/ring.rs", "crates/ring/src/ring/**"],
        binaries: &["--lib"],
        tests: &["ring::", "page::"],
    },
    Part {
        name: "journal",
        package: RECORD,
        folder: RECORD_FOLDER,
        files: &[
            "crates/record/src/format/journal.rs",
            "crates/record/src/format/journal/**",
            "crates/record/src/account/ledger.rs",
        ],
        binaries: &["--lib", "--test", "it"],
        tests: &["journal::", "ledger::", "recover::", "verify::", "recording::", "crashes::"],
    },
    Part {
        name: "recorder",
        package: RECORD,
        folder: RECORD_FOLDER,
        files: &["crates/record/src/recorder.rs", "crates/record/src/recorder/**"],
        binaries: &["--lib", "--test", "it"],
        tests: &["recorder::", "recording::", "session::", "crashes::", "gaps::", "series::", "times::"],
    },
    Part {
        name: "recover",
        package: RECORD,
        folder: RECORD_FOLDER,
        files: &["crates/record/src/upkeep/recover.rs", "crates/record/src/upkeep/recover/**"],
        binaries: &["--lib", "--test", "it"],
        tests: &["recover::", "verify::", "recording::", "crashes::"],
    },
];

/// One change that cargo-mutants can make.
#[derive(Clone, Debug)]
pub(crate) struct Mutant {
    /// As cargo-mutants names it: `FILE:LINE:COLUMN: WHAT`.
    name: String,
    file: String,
    /// The name without line and column, which move.
    what: String,
    /// The line it begins on, without its indentation.
    code: String,
    /// As cargo-mutants lists it.
    listed: Value,
}

/// Tries the untried mutants of this part, for `seconds` at most.
pub(crate) fn prove(part: &str, seconds: u32) -> Verdict {
    let names: Vec<&str> = PARTS.iter().map(|part| part.name).collect();
    let Some(part) = PARTS.iter().find(|known| known.name == part) else {
        return defect(format!("there is no part {part}; the parts are {}", names.join(", ")));
    };
    try_part(part, seconds).unwrap_or_else(defect)
}

fn defect(what: String) -> Verdict {
    Verdict { passed: false, figures: Map::from_iter([("defect".to_owned(), json!(what))]) }
}

const EXCEPTIONS: &str = "xtask/prover/mutants.toml";
const MISSING: &str = "cargo-mutants is not installed; cargo install cargo-mutants --locked";

fn is_missing() -> bool {
    !cargo().args(["mutants", "--version"]).stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn try_part(part: &Part, seconds: u32) -> Result<Verdict, String> {
    let exceptions = Exceptions::read(Path::new(EXCEPTIONS))?;
    if is_missing() {
        return Ok(Verdict::not_run(MISSING.to_owned()));
    }
    let every = mutants(part, &[])?;
    let mutants = mutants(part, &exceptions.arguments())?;
    let (results, run) = try_some(part, &exceptions, &mutants, &mutants, seconds)?;
    Ok(judge(&every, &mutants, &results, &exceptions, &run))
}

/// Messages of a run beside its results.
#[derive(Debug, Default)]
struct Run {
    together: together::Tried,
    /// Last output of cargo-mutants.
    said: String,
}

/// Tries the untried ones among the chosen mutants, for `seconds` at most; none if that is 0. Returns all results known
/// then.
fn try_some(
    part: &Part,
    exceptions: &Exceptions,
    mutants: &[Mutant],
    chosen: &[Mutant],
    seconds: u32,
) -> Result<(Results, Run), String> {
    let folder = PathBuf::from("target/mutants").join(part.name);
    fs::create_dir_all(&folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
    let mut results = Results::load(&folder, part.folder)?;
    let until = Instant::now() + Duration::from_secs(seconds.into());
    let chosen: BTreeSet<&str> = chosen.iter().map(|mutant| mutant.name.as_str()).collect();
    let untried = |results: &Results| -> Vec<usize> {
        let is_untried = |mutant: &Mutant| chosen.contains(mutant.name.as_str()) && results.outcome(mutant).is_none();
        (0..mutants.len()).filter(|number| is_untried(&mutants[*number])).collect()
    };
    let mut run = Run::default();
    let wanted = untried(&results);
    if !wanted.is_empty() && seconds > 0 {
        run.together = together::try_all(part, mutants, &wanted, until)?;
        for (number, outcome) in &run.together.outcomes {
            results.enter(&mutants[*number].name, *outcome);
        }
        results.save()?;
    }
    let (wanted, left) = (untried(&results), until.saturating_duration_since(Instant::now()).as_secs() as u32);
    if !wanted.is_empty() && left > 0 {
        let others = (0..mutants.len()).filter(|number| wanted.binary_search(number).is_err());
        results.skip_next_time(others.map(|number| mutants[number].name.as_str()))?;
        run.said = run_alone(part, exceptions, &folder, left)?;
        results.collect()?;
    }
    results.save()?;
    Ok((results, run))
}

/// The mutants of a part, as cargo-mutants lists them.
fn mutants(part: &Part, exceptions: &[String]) -> Result<Vec<Mutant>, String> {
    let mut command = cargo();
    command.args(["mutants", "--list", "--json"]).args(selection(part)).args(exceptions);
    let output = command.output().map_err(|error| format!("run cargo mutants: {error}"))?;
    if !output.status.success() {
        return Err(format!("list mutants: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let listed: Vec<Value> =
        serde_json::from_slice(&output.stdout).map_err(|error| format!("read the list of mutants: {error}"))?;
    listed.iter().map(|mutant| Mutant::read(mutant).ok_or_else(|| format!("read the mutant {mutant}"))).collect()
}

impl Mutant {
    fn read(listed: &Value) -> Option<Self> {
        let (name, file) = (listed["name"].as_str()?.to_owned(), listed["file"].as_str()?.to_owned());
        let what = format!("{file}:{}", name.splitn(4, ':').nth(3)?);
        let line = usize::try_from(listed["span"]["start"]["line"].as_u64()?).ok()?;
        let text = fs::read_to_string(&file).ok()?;
        let code = text.lines().nth(line.checked_sub(1)?)?.trim().to_owned();
        Some(Self { name, file, what, code, listed: listed.clone() })
    }
}

fn selection(part: &Part) -> Vec<String> {
    let files = part.files.iter().flat_map(|file| ["--file", file]);
    ["--package", part.package].into_iter().chain(files).map(str::to_owned).collect()
}

/// Limits of a mutant's effects on the computer. Without these capabilities no thread becomes real-time, so a loop
/// without an end leaves the CPU to others until its time is over, and no clock is set. Its memory has a limit, too.
const LIMITS: [&[&str]; 2] =
    [&["setpriv", "--bounding-set=-sys_nice,-sys_time,-sys_boot,-sys_rawio"], &["prlimit", "--as=17179869184"]];

/// Whether a limit can be set here. A process without privileges needs it less.
fn works(limit: &[&str]) -> bool {
    let [program, arguments @ ..] = limit else { return false };
    Command::new(program)
        .args(arguments)
        .arg("true")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs cargo-mutants over the files that are not skipped, ends it at the limit, and returns its last output.
fn run_alone(part: &Part, exceptions: &Exceptions, folder: &Path, seconds: u32) -> Result<String, String> {
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut command = Command::new("timeout");
    // On this signal cargo-mutants ends its children and removes its copy of the sources.
    command.args(["--foreground", "--signal=INT", "--kill-after=60", &seconds.to_string()]);
    command.args(LIMITS.iter().filter(|limit| works(limit)).copied().flatten());
    command.args([&cargo, "mutants", "--iterate", "--shuffle", "--no-times", "--colors", "never"]);
    command.args(selection(part)).args(exceptions.arguments()).arg("--output").arg(folder);
    command.args(["--timeout-multiplier", "5"]);
    command.args(part.binaries.iter().map(|argument| format!("--cargo-test-arg={argument}")));
    if !part.tests.is_empty() {
        command.args(["--", "--"]).args(part.tests);
    }
    // One target directory for all copies of the sources, so that dependencies are built once.
    command.env("CARGO_TARGET_DIR", here.join("target/mutants/build"));
    command.envs([("CARGO_PROFILE_TEST_DEBUG", "0"), ("CARGO_PROFILE_DEV_DEBUG", "0")]);
    if std::env::var_os("CARGO_MUTANTS_MINIMUM_TEST_TIMEOUT").is_none() {
        command.env("CARGO_MUTANTS_MINIMUM_TEST_TIMEOUT", "60");
    }
    let output = command.output().map_err(|error| format!("run cargo mutants: {error}"))?;
    match output.status.code() {
        // All found, some missed, some hung, and the end of the time.
        Some(0 | 2 | 3 | 124 | 130 | 137) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => {
            let said = [output.stdout, output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            let last: Vec<&str> = said.lines().rev().take(5).collect();
            Err(format!("try mutants of {}: {}: {}", part.name, output.status, last.join(" / ")))
        }
    }
}

fn judge(every: &[Mutant], mutants: &[Mutant], results: &Results, exceptions: &Exceptions, run: &Run) -> Verdict {
    let of = |outcome: Outcome| mutants.iter().filter(move |mutant| results.outcome(mutant) == Some(outcome));
    let count = |outcome: Outcome| of(outcome).count();
    let untried = mutants.iter().filter(|mutant| results.outcome(mutant).is_none()).count();
    let (excused, unexcused): (Vec<&Mutant>, Vec<&Mutant>) =
        of(Outcome::Lives).partition(|mutant| exceptions.reason(mutant).is_some());
    let stale = exceptions.stale(every, &excused, untried == 0);
    let mut figures = Map::new();
    let mut figure = |name: &str, value: Value| figures.insert(name.to_owned(), value);
    figure("mutants", json!(every.len()));
    figure("of them excluded for a reason", json!(every.len() - mutants.len()));
    figure("found by a test", json!(count(Outcome::Killed)));
    figure("found by tests that did not end", json!(count(Outcome::Hangs)));
    figure("do not compile", json!(count(Outcome::DoesNotCompile)));
    figure("live for a reason", json!(excused.len()));
    figure("live", json!(unexcused.len()));
    figure("not tried yet", json!(untried));
    if run.together.unreached > 0 {
        figure("of those tried now reached by no test", json!(run.together.unreached));
    }
    if !run.together.unusable.is_empty() {
        figure("tests that failed without a mutant", json!(run.together.unusable));
    }
    for (number, mutant) in excused.iter().enumerate() {
        let reason = exceptions.reason(mutant).unwrap_or_default();
        figure(&format!("lives for a reason {}", number + 1), json!(format!("{} — {reason}", mutant.name)));
    }
    for (number, mutant) in unexcused.iter().enumerate() {
        figure(&format!("lives {}", number + 1), json!(format!("{} — {}", mutant.name, mutant.code)));
    }
    for (number, entry) in stale.iter().enumerate() {
        figure(&format!("an entry of mutants.toml matches no mutant {}", number + 1), json!(entry));
    }
    if untried > 0 {
        figure("cargo-mutants said last", json!(run.said.lines().last().unwrap_or("nothing")));
    }
    Verdict { passed: unexcused.is_empty() && stale.is_empty() && untried == 0 && !mutants.is_empty(), figures }
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}
