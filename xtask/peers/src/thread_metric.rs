//! The contract of Thread-Metric as a program in C on the installed library: eight tests on fibers and on threads, in
//! turns.
//!
//! The program is `crates/c/tests/thread_metric.c`, which documents what each test counts and when it passes. Beside
//! our figures stand those of the Linux ports of FreeRTOS and ThreadX, for the four tests that were taken of them. They
//! come from another machine of this kind, so they give an order of magnitude and no ratio.
//!
//! With a checkout of the suite (`--with thread-metric=DIR`), its own sources run, too, on the porting layer
//! `thread-metric/tm_port.c`. The suite must be in its form for hosts: `include/tm_api.h`, `src/`, and the duration and
//! number of its periods from the environment.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use hairspring_suite::interleaving::median;

use crate::callers::compiled;
use crate::checkout::{BACK_ENDS, Ending, in_rounds, observed};

const ROUNDS: usize = 9;
/// Counting time of each test in a round.
const DURATION_MS: u64 = 200;
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/c/tests/thread_metric.c");
/// The tests, in the suite's order, and the counts per second of FreeRTOS's and ThreadX's ports: medians of five
/// periods of 5 s, on one CPU, at the ordinary policy, with the suite's own sources.
const TESTS: [(&str, Option<[f64; 2]>); 8] = [
    ("basic", None),
    ("cooperative", Some([170_452.0, 31_518.0])),
    ("preemptive", Some([90_914.0, 19_515.0])),
    ("interrupt", None),
    ("interrupt_preemption", None),
    ("message", Some([1_153_891.0, 17_280_342.0])),
    ("synchronisation", Some([1_184_970.0, 19_036_390.0])),
    ("memory", None),
];
/// The suite's own sources of the tests, and the layer under them.
const SOURCES: [&str; 8] = [
    "basic_processing",
    "cooperative_scheduling",
    "preemptive_scheduling",
    "interrupt_processing",
    "interrupt_preemption_processing",
    "message_processing",
    "synchronization_processing",
    "memory_allocation",
];
const PORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/thread-metric/tm_port.c");
/// Periods of a run of the suite, of which the first counts the start, too; and how late a report may come.
const PERIODS: u64 = 3;
const SPARE: Duration = Duration::from_secs(5);

/// Parsed output of one run: the count and the outcome of each test.
type Said = BTreeMap<String, (f64, String)>;

pub(crate) fn run(folder: &Path, quick: bool, suite: Option<&Path>) -> Result<(), String> {
    contract(folder, quick)?;
    if let Some(sources) = suite {
        println!("Its own sources, messages of 32 bytes, counts a second of periods after the first:\n");
        println!("| test | fibers | threads, one CPU |\n|---|---:|---:|");
        let period_s = if quick { 1 } else { 5 };
        for ((test, _), source) in TESTS.iter().zip(SOURCES) {
            eprintln!("thread metric's own {test}");
            let cells = BACK_ENDS.map(|back_end| {
                own(folder, sources, source, back_end, period_s).unwrap_or_else(|why| format!("no result: {why}"))
            });
            println!("| {test} | {} |", cells.join(" | "));
        }
        println!();
    }
    Ok(())
}

/// Runs one of the suite's own tests: its rates, or why there are none.
fn own(folder: &Path, sources: &Path, test: &str, back_end: &str, period_s: u64) -> Result<String, String> {
    let source = |name: &str| sources.join("src").join(format!("{name}.c")).display().to_string();
    let include = format!("-I{}", sources.join("include").display());
    // Apart, as the suite asks: no compiler sees a service and its use together.
    let name = format!("peers-{test}");
    let mut program = compiled(folder, &[&include, "-w", PORT, &source(test), &source("tm_report")], &name)?;
    program.env("TM_TEST_DURATION", period_s.to_string()).env("TM_TEST_CYCLES", PERIODS.to_string());
    // One that never reports is ended: a loop without a call kept the reporter out.
    let silence = Duration::from_secs(period_s) + SPARE;
    let (said, ending) = observed(program, back_end, &folder.join(format!("{name}.txt")), silence)?;
    match (periods(&said, period_s), ending) {
        (rates, Ending::Failure(why)) if rates == "n/a" => Err(why),
        (rates, _) => Ok(rates),
    }
}

/// The rates in the suite's report.
fn periods(said: &str, period_s: u64) -> String {
    if said.contains("ERROR") {
        return "wrong".to_owned();
    }
    let totals = said.lines().filter_map(|line| line.strip_prefix("Time Period Total:")?.trim().parse::<f64>().ok());
    let mut rates: Vec<f64> = totals.skip(1).map(|total| total / period_s as f64).collect();
    rates.sort_unstable_by(f64::total_cmp);
    match (rates.first(), rates.last()) {
        (Some(min), Some(max)) if *max > 0.0 => format!("{min:.0} / {max:.0}"),
        _ => "n/a".to_owned(),
    }
}

/// Runs our program of the contract.
fn contract(folder: &Path, quick: bool) -> Result<(), String> {
    println!("## Thread-Metric\n");
    let program = match compiled(folder, &[PROGRAM], "peers-thread-metric") {
        Ok(program) => program,
        Err(why) => {
            println!("No result: failed to compile the program ({why}). Install the library: cargo xtask install.\n");
            return Ok(());
        }
    };
    let (rounds, duration_ms) = if quick { (3, DURATION_MS / 4) } else { (ROUNDS, DURATION_MS) };
    let taken = in_rounds(&program, "Thread-Metric", rounds, duration_ms, read)?;
    println!(
        "Counts a second, min / median / max of {rounds} rounds of {duration_ms} ms a test; messages of 32 bytes; calls from C. A loop without a call (basic) is \
         preempted on threads only. The ports: medians, another machine of this kind.\n"
    );
    println!("| test | fibers | threads, one CPU | FreeRTOS's port | ThreadX's port |\n|---|---:|---:|---:|---:|");
    for (test, ports) in TESTS {
        let ours = taken.each_ref().map(|said| cell(said, test, duration_ms));
        let theirs = ports.map_or(["–".to_owned(), "–".to_owned()], |ports| ports.map(|rate| format!("{rate:.0}")));
        println!("| {test} | {} | {} |", ours.join(" | "), theirs.join(" | "));
    }
    println!();
    for (back_end, said) in BACK_ENDS.iter().zip(&taken) {
        let passed = TESTS.iter().filter(|(test, _)| said.iter().all(|said| outcome(said, test) == "ok")).count();
        println!("* {back_end}: {passed} of {} tests pass in every round", TESTS.len());
    }
    println!();
    Ok(())
}

/// Reads the program's lines: a test, its count, its outcome.
fn read(said: &str) -> Result<Said, String> {
    let mut found = Said::new();
    for line in said.lines() {
        let mut words = line.split(' ');
        if let (Some(test), Some(Ok(count)), Some(outcome)) =
            (words.next(), words.next().map(str::parse::<f64>), words.next())
            && TESTS.iter().any(|(known, _)| *known == test)
        {
            found.insert(test.to_owned(), (count, outcome.to_owned()));
        }
    }
    if found.len() == TESTS.len() {
        Ok(found)
    } else {
        Err(format!("read the program of Thread-Metric: it said\n{said}"))
    }
}

fn outcome<'a>(said: &'a Said, test: &str) -> &'a str {
    said.get(test).map_or("", |(_, outcome)| outcome)
}

/// The rates of a test, or why there are none.
fn cell(said: &[Said], test: &str, duration_ms: u64) -> String {
    if let Some(other) = said.iter().map(|said| outcome(said, test)).find(|outcome| *outcome != "ok") {
        return other.to_owned();
    }
    let per_second = |count: f64| count * 1e3 / duration_ms as f64;
    let mut rates: Vec<f64> =
        said.iter().filter_map(|said| said.get(test)).map(|(count, _)| per_second(*count)).collect();
    rates.sort_unstable_by(f64::total_cmp);
    match (rates.first(), rates.last()) {
        (Some(min), Some(max)) => format!("{min:.0} / {:.0} / {max:.0}", median(&rates)),
        _ => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(basic: &str) -> String {
        let rest = TESTS[1..].iter().enumerate().map(|(index, (test, _))| format!("{test} {} ok\n", (index + 1) * 100));
        format!("basic {basic}\n{}passed 7 of 8\n", rest.collect::<String>())
    }

    #[test]
    fn the_periods_of_the_suite_become_rates_or_reasons() {
        let said = "**** Test **** Relative Time: 5\nTime Period Total:  900\n\nTime Period Total:  500\nTime Period Total:  600\n";
        assert_eq!(periods(said, 5), "100 / 120");
        assert_eq!(periods("Time Period Total:  900\n", 5), "n/a", "the first counts the start, too");
        assert_eq!(periods(&format!("{said}ERROR: Invalid counter value(s).\n"), 5), "wrong");
    }

    #[test]
    fn the_lines_of_the_program_become_rates_or_reasons() {
        let said = [read(&lines("0 n/a")).unwrap(), read(&lines("0 n/a")).unwrap()];
        assert_eq!(cell(&said, "basic", 200), "n/a");
        assert_eq!(cell(&said, "cooperative", 200), "500 / 500 / 500");
        let wrong = read(&lines("7 wrong faults 1 least 0 most 9")).unwrap();
        assert_eq!(outcome(&wrong, "basic"), "wrong");
        assert!(read("basic 0 ok\n").is_err(), "a test is missing");
    }
}
