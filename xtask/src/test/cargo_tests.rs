//! Runs of Cargo: one that passes or fails as a whole, and `cargo test`, once, with its cases counted one by one.
//!
//! The totals come from libtest's `test result:` lines. A test that finds at run time that this machine cannot
//! run it writes `test-skip: NAME: REASON` to standard error (not through `eprintln!`, which libtest captures)
//! and returns; it is then counted as skipped instead of passed. A case libtest calls ignored is a skip that this
//! machine could have run.
//!
//! A case that fails is run again alone, because a shared host can stop the machine for longer than a test allows. If
//! it then passes each time, it is unsteady, not failed.

use std::collections::BTreeSet;

use super::Context;
use super::needs::{self, Need};
use crate::child::{Ended, Ending};
use crate::tally::{Skip, Tally};

/// The mark that a test writes to standard error when it cannot run here.
const SKIP_MARK: &str = "test-skip: ";

/// Part of the reason of a test that could run after a setup.
const REMEDY: &str = "`cargo xtask test --setup` installs";

/// How many lines of a failed case's output are repeated; the backtrace after them is in the log.
const MOST_WORDS: usize = 25;

/// All tests but those in documentation.
const KINDS: [&str; 3] = ["--lib", "--bins", "--tests"];

/// How often a failed case must pass alone to count as unsteady.
const TRIES: usize = 3;

/// So many failed cases are a broken build, not a machine that stopped: they are not tried again.
const MOST_TRIED: usize = 8;

/// One run of Cargo that passes when it exits 0.
pub(super) fn passes(context: &Context, name: &str, arguments: &[&str], environment: &[(&str, &str)]) -> Tally {
    let ended = context.run(name, context.workspace.cargo(arguments).envs(environment.iter().copied()));
    if ended.succeeded() {
        return Tally::pass();
    }
    let why = format!("cargo {}: {}, log {}", arguments.join(" "), ended.how, ended.log.display());
    Tally::fail(name, why, ended.tail())
}

/// Runs all tests except those of the peers, which take minutes to build; `cargo xtask peers` runs those before it
/// measures.
pub(crate) fn run(context: &Context, name: &str) -> Tally {
    steady(context, name, &["--workspace", "--exclude", "peers"], &[])
}

/// Runs the tests of messages without parameter checks: types must hold there, too.
pub(crate) fn run_unchecked(context: &Context, name: &str) -> Tally {
    let packages = ["-p", "hairspring-exec-core", "-p", "hairspring-exec", "--no-default-features", "--test", "it"];
    steady(context, name, &packages, &["mail::", "messages::"])
}

/// Runs the cases of these packages that the filters choose, and those that fail again.
fn steady(context: &Context, name: &str, packages: &[&str], filters: &[&str]) -> Tally {
    let runner = match context.scope.runner(context.workspace) {
        Ok(runner) => runner,
        Err(why) => return Tally::fail(name, why, ""),
    };
    let run = |label: &str, options: &[&str], words: &[&str]| {
        let mut tests =
            context.workspace.cargo(&[&["test", "--no-fail-fast"], packages, options, &["--"], words].concat());
        tests.envs(runner.clone());
        if Need::Python.missing(context.workspace).is_none() {
            // Without this variable the tests use the system's Python, or are skipped.
            tests.env("HAIRSPRING_PYTHON", needs::python(context.workspace));
        }
        context.run(label, &mut tests)
    };
    let part: &[&str] = if context.scope.is_part() { &KINDS } else { &[] };
    let first = run(name, part, filters);
    let mut tally = count(name, &first);
    if context.scope.is_part() {
        tally.add(Tally::skip("tests in documentation", "cargo xtask test runs them", false));
    }
    let mut passing = read(&first.output).failed.into_iter().collect::<BTreeSet<_>>();
    if passing.len() > MOST_TRIED {
        return tally;
    }
    for number in 1..=TRIES {
        if passing.is_empty() {
            break;
        }
        println!(
            "again  {name:<10} alone, {number} of {TRIES}: {}",
            passing.iter().cloned().collect::<Vec<_>>().join(", ")
        );
        let cases: Vec<&str> = passing.iter().map(String::as_str).collect();
        let words = [&["--exact", "--test-threads=1"], cases.as_slice()].concat();
        // Tests in documentation read no clock, and each would be built again. A choice of test files stays.
        let kinds: &[&str] = if packages.contains(&"--test") { &[] } else { &KINDS };
        let again = run(&format!("{name} alone {number}"), kinds, &words);
        passing = passed_alone(&again.output, &passing);
    }
    forgive(&mut tally, &passing);
    tally
}

/// The cases that passed in this run, and in none of its binaries failed.
fn passed_alone(log: &str, cases: &BTreeSet<String>) -> BTreeSet<String> {
    let says = |case: &str, end: &str| log.lines().any(|line| line == format!("test {case} ... {end}"));
    cases.iter().filter(|case| says(case, "ok") && !says(case, "FAILED")).cloned().collect()
}

/// Counts the failures of these cases as passed and unsteady.
fn forgive(tally: &mut Tally, cases: &BTreeSet<String>) {
    let (unsteady, failures): (Vec<_>, Vec<_>) =
        tally.failures.drain(..).partition(|failure| cases.contains(&failure.name));
    tally.passed += unsteady.len() as u64;
    tally.unsteady.extend(unsteady);
    tally.failures = failures;
}

/// The cases of a run of `cargo test`, from its log.
pub(super) fn count(name: &str, ended: &Ended) -> Tally {
    let results = read(&ended.output);
    let mut tally = Tally { passed: results.passed, ..Tally::default() };
    for skip in results.skips {
        // The case ended as `ok`, so libtest counted it among the passed.
        tally.passed = tally.passed.saturating_sub(1);
        tally.skips.push(skip);
    }
    for number in 1..=results.ignored {
        let reason = "marked ignore".to_owned();
        tally.skips.push(Skip { name: format!("{name}: ignored case {number}"), reason, could_run: true });
    }
    for case in &results.failed {
        tally.failure(case, format!("the test failed, log {}", ended.log.display()), words_of(&ended.output, case));
    }
    for _ in results.failed.len() as u64..results.failures {
        tally.failure(name, "a test failed whose name is not in the log", ended.tail());
    }
    // Failed cases explain a failure status; without any, the status is a failure itself. So is every end but an exit:
    // a binary that crashed or was killed never ran its later cases.
    if !matches!((&ended.how, results.failures), (Ending::Exit(0), _) | (Ending::Exit(_), 1..)) {
        tally.failure(name, format!("cargo test: {}, log {}", ended.how, ended.log.display()), ended.tail());
    } else if ended.succeeded() && results.binaries == 0 {
        tally.failure(name, "cargo test succeeded without a single `test result:` line", ended.tail());
    }
    tally
}

/// The output of a failed case, which libtest repeats under a heading with its name.
fn words_of(log: &str, case: &str) -> String {
    let heading = format!("---- {case} stdout ----");
    let said = log.lines().skip_while(|line| *line != heading).skip(1);
    let said: Vec<&str> = said.take_while(|line| !line.starts_with("---- ") && *line != "failures:").collect();
    said[..said.len().min(MOST_WORDS)].join("\n").trim().to_owned()
}

#[derive(Default)]
struct Results {
    binaries: u64,
    passed: u64,
    failures: u64,
    ignored: u64,
    failed: Vec<String>,
    skips: Vec<Skip>,
}

fn read(log: &str) -> Results {
    let mut results = Results::default();
    for line in log.lines() {
        if let Some((_, counts)) = line.split_once("test result: ") {
            results.binaries += 1;
            results.passed += number_before(counts, " passed");
            results.failures += number_before(counts, " failed");
            results.ignored += number_before(counts, " ignored");
        } else if let Some((_, told)) = line.split_once(SKIP_MARK) {
            let (name, reason) = told.split_once(": ").unwrap_or((told, "no reason given"));
            // A test that gives no reason, or one whose remedy is at hand, could have run.
            let could_run = reason.trim().is_empty() || told == name || reason.contains(REMEDY);
            results.skips.push(Skip { name: name.to_owned(), reason: reason.to_owned(), could_run });
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED")) {
            results.failed.push(name.to_owned());
        }
    }
    results
}

fn number_before(text: &str, unit: &str) -> u64 {
    let before = text.split(unit).next().filter(|before| before.len() < text.len());
    before.and_then(|before| before.rsplit(' ').next()).and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(status: i32, output: &str) -> Ended {
        Ended::of(Ending::Exit(status), output)
    }

    const GOOD: &str = "test a ... ok\ntest result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n\
                        test result: ok. 12 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n";

    #[test]
    fn cases_of_all_binaries_are_summed() {
        assert_eq!(count("tests", &ended(0, GOOD)).closing_line(), "15 passed, 0 failed, 0 skipped");
    }

    #[test]
    fn each_failed_case_counts_and_is_named() {
        let log = "test x::y ... FAILED\n\nfailures:\n\n---- x::y stdout ----\nleft: 1\n\n\nfailures:\n    x::y\n\n\
                   test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured\n";
        let tally = count("tests", &ended(101, log));
        assert_eq!(tally.closing_line(), "1 passed, 1 failed, 1 skipped");
        assert_eq!((tally.failures[0].name.as_str(), tally.failures[0].tail.as_str()), ("x::y", "left: 1"));
        assert!(tally.skips[0].could_run);
    }

    #[test]
    fn a_failed_case_is_forgiven_only_if_it_ran_and_passed_alone() {
        let log = "test x::y ... FAILED\ntest z ... FAILED\ntest w ... FAILED\n\
                   test result: FAILED. 1 passed; 3 failed; 0 ignored; 0 measured\n";
        let mut tally = count("tests", &ended(101, log));
        let failed = read(log).failed.into_iter().collect();
        // `z` fails again in one of two binaries, and `w` did not run.
        let again = "test x::y ... ok\ntest z ... ok\ntest z ... FAILED\n";
        forgive(&mut tally, &passed_alone(again, &failed));
        assert_eq!(tally.closing_line(), "2 passed, 2 failed, 0 skipped");
        assert_eq!(tally.unsteady.iter().map(|case| case.name.as_str()).collect::<Vec<_>>(), ["x::y"]);
    }

    #[test]
    fn a_failed_build_is_one_failure() {
        let tally = count("tests", &ended(101, "error[E0425]: cannot find value\n"));
        assert_eq!(tally.closing_line(), "0 passed, 1 failed, 0 skipped");
        // Good results of earlier binaries must not hide a crash of a later one.
        assert_eq!(count("tests", &ended(101, GOOD)).closing_line(), "15 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn success_without_results_is_a_failure() {
        assert_eq!(count("tests", &ended(0, "Finished\n")).closing_line(), "0 passed, 1 failed, 0 skipped");
    }

    #[test]
    fn a_case_that_skips_itself_is_not_a_pass() {
        let log = format!("test b ... {SKIP_MARK}b: SCHED_FIFO is not permitted\nok\n{GOOD}");
        let tally = count("tests", &ended(0, &log));
        assert_eq!(tally.closing_line(), "14 passed, 0 failed, 1 skipped");
        assert_eq!(tally.skips[0].reason, "SCHED_FIFO is not permitted");
        assert!(!tally.skips[0].could_run);
    }

    #[test]
    fn a_case_that_lacks_what_can_be_installed_or_gives_no_reason_fails_in_ci() {
        for told in ["a: no zsh; `cargo xtask test --setup` installs it", "a", "a: "] {
            let mut tally = count("tests", &ended(0, &format!("{SKIP_MARK}{told}\n{GOOD}")));
            tally.hold_to_ci();
            assert_eq!(tally.closing_line(), "14 passed, 1 failed, 0 skipped", "{told:?}");
        }
    }
}
