//! The contract of rtos-benchmark as a program in C on the installed library: 32 rows on fibers and on threads, in
//! turns.
//!
//! The program is `crates/c/tests/rtos_benchmark.c`, which documents what each row times and when it holds. A row that
//! takes less than the stamps around it has no figure, because the stamps' cost is in it.
//!
//! With a checkout of the suite (`--with rtos-benchmark=DIR`), its own sources run, too, on the porting layer
//! `rtos-benchmark/bench_port.c`. The suite checks no row, so the test of a row is weaker: a row of its own sources
//! holds if all services in it succeeded, if it was reported, and if none of its figures is a stamp too old, which is
//! left by a thread that did not run where it had to.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use hairspring_sheet::Unit;
use hairspring_sheet::render::quantity;

use crate::callers::compiled;
use crate::checkout::{BACK_ENDS, Ending, in_rounds, observed};
use crate::executive::Spread;

const ROUNDS: usize = 5;
const ITERATIONS: u64 = 10_000;
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/c/tests/rtos_benchmark.c");
/// The rows, in our program's order, with the suite's names.
const ROWS: [(&str, &str); 32] = [
    ("thread_spawn", "Spawn (no context switch)"),
    ("thread_create", "Create (no context switch)"),
    ("thread_start", "Start (no context switch)"),
    ("thread_suspend", "Suspend (no context switch)"),
    ("thread_resume", "Resume (no context switch)"),
    ("thread_spawn_switch", "Spawn (context switch)"),
    ("thread_start_switch", "Start (context switch)"),
    ("thread_suspend_switch", "Suspend (context switch)"),
    ("thread_resume_switch", "Resume (context switch)"),
    ("thread_terminate_switch", "Terminate (context switch)"),
    ("mutex_lock", "Lock (no owner)"),
    ("mutex_unlock", "Unlock (no waiters)"),
    ("mutex_lock_recursive", "Recursive lock"),
    ("mutex_unlock_recursive", "Recursive unlock"),
    ("mutex_unlock_waiter", "Unlock with unpend (no context switch)"),
    ("mutex_unlock_switch", "Unlock with unpend (context switch)"),
    ("mutex_pend", "Pend (no priority inheritance)"),
    ("mutex_pend_inheritance", "Pend (priority inheritance)"),
    ("semaphore_give", "Give (no context switch)"),
    ("semaphore_take", "Take (no context switch)"),
    ("semaphore_give_switch", "Give (context switch)"),
    ("semaphore_take_switch", "Take (context switch)"),
    ("yield", "Yield (no context switch)"),
    ("yield_switch", "Yield (context switch)"),
    ("malloc", "Malloc"),
    ("free", "Free"),
    ("queue_create", "Create"),
    ("queue_send", "Send (no context switch)"),
    ("queue_receive", "Receive (no context switch)"),
    ("queue_send_switch", "Send (context switch)"),
    ("queue_receive_switch", "Receive (context switch)"),
    (LATENCY, "Latency"),
];
const LATENCY: &str = "interrupt_latency";
const PORT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/rtos-benchmark/bench_port.c");
const PORT_HEADER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/rtos-benchmark/bench_port.h");
/// Longest silence of the suite for each iteration; one of the latency test takes a little more than a millisecond.
const SILENCE: Duration = Duration::from_millis(2);
/// No row takes as long: its stamps are not those of one iteration.
const TOO_LONG_NS: f64 = 10e9;

/// Parsed output of a run: the mean of two stamps, and its rows.
#[derive(Debug)]
struct Said {
    stamps_ns: f64,
    rows: BTreeMap<&'static str, Row>,
}

/// Times of a row, and its outcome: `ok`, `wrong` or `n/a`.
#[derive(Debug)]
struct Row {
    least_ns: f64,
    mean_ns: f64,
    most_ns: f64,
    outcome: String,
}

pub(crate) fn run(folder: &Path, quick: bool, suite: Option<&Path>) -> Result<(), String> {
    println!("## rtos-benchmark\n");
    let program = match compiled(folder, &[PROGRAM], "peers-rtos-benchmark") {
        Ok(program) => program,
        Err(why) => {
            println!("No result: failed to compile the program ({why}). Install the library: cargo xtask install.\n");
            return Ok(());
        }
    };
    let (rounds, iterations) = if quick { (3, ITERATIONS / 4) } else { (ROUNDS, ITERATIONS) };
    let taken = in_rounds(&program, "rtos-benchmark", rounds, iterations, read)?;
    let own = suite.map(|sources| {
        BACK_ENDS.map(|back_end| {
            eprintln!("rtos-benchmark's own sources on {back_end}");
            own(folder, sources, back_end, iterations)
        })
    });
    println!(
        "Mean of {iterations} iterations: min / median / max of {rounds} rounds; messages of 32 bytes; calls from C. The cost of two stamps is in the figures; \
         below twice that cost there is none. While a thread spins without a call (interrupt_latency), an interrupt is served on threads only."
    );
    let mut columns: Vec<(&str, &[Said])> = Vec::new();
    columns.extend(["fibers", "threads, one CPU"].into_iter().zip(taken.iter().map(Vec::as_slice)));
    if let Some(own) = &own {
        println!(
            "\nIts own sources on our porting layer: least / mean / most of {iterations} iterations of one run; messages of 1 byte."
        );
        let said = own.iter().map(|said| said.as_ref().map_or(&[][..], std::slice::from_ref));
        columns.extend(["own sources, fibers", "own sources, threads"].into_iter().zip(said));
    }
    print(&columns);
    for ((name, said), back_end) in columns.iter().zip(BACK_ENDS.iter().cycle()) {
        println!("* {name}: {}", verdict(said, back_end));
    }
    for why in own.iter().flatten().filter_map(|own| own.as_ref().err()) {
        println!("* own sources: no result: {why}");
    }
    println!();
    Ok(())
}

fn print(columns: &[(&str, &[Said])]) {
    let line = |first: &str, cells: Vec<String>| println!("| {first} | {} |", cells.join(" | "));
    println!();
    line("row", columns.iter().map(|(name, _)| (*name).to_owned()).collect());
    println!("|---|{}", "---:|".repeat(columns.len()));
    line("two stamps", columns.iter().map(|(_, said)| stamps(said)).collect());
    for (row, _) in ROWS {
        line(row, columns.iter().map(|(_, said)| cell(said, row)).collect());
    }
    println!();
}

/// Runs the suite's own sources.
fn own(folder: &Path, sources: &Path, back_end: &str, iterations: u64) -> Result<Said, String> {
    let tests = sources.join("src/common");
    let entries = fs::read_dir(&tests).map_err(|error| format!("read {}: {error}", tests.display()))?;
    let mut files: Vec<String> = entries.flatten().map(|entry| entry.path().display().to_string()).collect();
    files.retain(|file| file.ends_with(".c"));
    let (include, count) = (format!("-I{}", sources.join("h").display()), format!("-DITERATIONS={iterations}"));
    let mut words = vec![&include[..], &count, "-include", PORT_HEADER, "-w", PORT];
    words.extend(files.iter().map(String::as_str));
    let program = compiled(folder, &words, "peers-rtos-benchmark-own")?;
    let silence = SILENCE * u32::try_from(iterations).unwrap_or(u32::MAX);
    let output = folder.join("peers-rtos-benchmark-own.txt");
    let (said, ending) = observed(program, back_end, &output, silence)?;
    match ending {
        Ending::Failure(why) => Err(why),
        Ending::Success | Ending::Silence => read_own(&said),
    }
}

/// Reads our program's lines: the stamps, then a row, its mean, least and most, and its outcome.
fn read(said: &str) -> Result<Said, String> {
    let mut found = Said { stamps_ns: f64::NAN, rows: BTreeMap::new() };
    for line in said.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["strict", "0"] => return Err("time threads: the system refuses real-time priorities".to_owned()),
            ["stamps", ns] => found.stamps_ns = ns.parse().unwrap_or(f64::NAN),
            [row, mean, least, most, outcome, ..] => {
                let Some((row, _)) = ROWS.into_iter().find(|(known, _)| *known == row) else { continue };
                let [least_ns, mean_ns, most_ns] = [least, mean, most].map(|ns| ns.parse().unwrap_or(f64::NAN));
                found.rows.insert(row, Row { least_ns, mean_ns, most_ns, outcome: outcome.to_owned() });
            }
            _ => (),
        }
    }
    if found.rows.len() == ROWS.len() && found.stamps_ns.is_finite() {
        Ok(found)
    } else {
        Err(format!("read the program of rtos-benchmark: it said\n{said}"))
    }
}

/// Reads the suite's report, after the stamps that our porting layer prints: a row, then its mean, least and most. A
/// row that is missing has not been reported: a run that stands still is killed.
fn read_own(said: &str) -> Result<Said, String> {
    let mut found = Said { stamps_ns: f64::NAN, rows: BTreeMap::new() };
    for line in said.lines() {
        if let Some(ns) = line.strip_prefix("stamps ") {
            found.stamps_ns = ns.parse().unwrap_or(f64::NAN);
        }
        let Some((label, figures)) = line.split_once(':') else { continue };
        let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
        let Some((row, _)) = ROWS.into_iter().find(|(_, theirs)| *theirs == label) else { continue };
        let figures: Vec<_> = figures.split(',').map(|figure| figure.trim().parse::<f64>()).collect();
        let [Ok(mean_ns), Ok(least_ns), Ok(most_ns)] = figures[..] else { continue };
        let holds = least_ns <= mean_ns && mean_ns <= most_ns && most_ns < TOO_LONG_NS;
        let outcome = if holds { "ok" } else { "wrong" }.to_owned();
        found.rows.insert(row, Row { least_ns, mean_ns, most_ns, outcome });
    }
    if found.rows.is_empty() || !found.stamps_ns.is_finite() {
        return Err(format!("read the report of rtos-benchmark: it said\n{said}"));
    }
    Ok(found)
}

fn outcome<'a>(said: &'a Said, row: &str) -> &'a str {
    said.rows.get(row).map_or("n/a", |row| &row.outcome)
}

/// Number of rows that hold in every round, and the faults of the others.
fn verdict(said: &[Said], back_end: &str) -> String {
    if said.is_empty() {
        return "no result".to_owned();
    }
    let lacking: Vec<String> = ROWS
        .iter()
        .filter_map(|(row, _)| {
            let outcome = said.iter().map(|said| outcome(said, row)).find(|outcome| *outcome != "ok")?;
            let why = match (outcome, *row, back_end) {
                ("n/a", LATENCY, "fibers") => {
                    "n/a, a thread spins without a call, and no interrupt is served meanwhile"
                }
                ("n/a", ..) => "n/a, not reported",
                _ => outcome,
            };
            Some(format!("; {row}: {why}"))
        })
        .collect();
    let held = ROWS.len() - lacking.len();
    format!(
        "{held} of {} rows hold{}{}",
        ROWS.len(),
        if said.len() > 1 { " in every round" } else { "" },
        lacking.concat()
    )
}

/// The times of a row, or why there are none.
fn cell(said: &[Said], row: &str) -> String {
    if let Some(other) = said.iter().map(|said| outcome(said, row)).find(|outcome| *outcome != "ok") {
        return other.to_owned();
    }
    let limit_ns = said.iter().map(|said| 2.0 * said.stamps_ns).fold(0.0, f64::max);
    let rows: Vec<&Row> = said.iter().filter_map(|said| said.rows.get(row)).collect();
    let below = |ns: f64| (ns < limit_ns).then(|| format!("below {}", quantity(limit_ns, Unit::Ns)));
    if let [row] = rows[..] {
        let times = [row.least_ns, row.mean_ns, row.most_ns].map(|ns| quantity(ns, Unit::Ns).to_string());
        return below(row.mean_ns).unwrap_or_else(|| times.join(" / "));
    }
    let spread = Spread::of(rows.iter().map(|row| row.mean_ns).collect());
    spread.map_or("–".to_owned(), |it| below(it.median).unwrap_or_else(|| it.cell(Unit::Ns)))
}

/// The cost of two stamps.
fn stamps(said: &[Said]) -> String {
    if let [said] = said {
        return quantity(said.stamps_ns, Unit::Ns).to_string();
    }
    let spread = Spread::of(said.iter().map(|said| said.stamps_ns).collect());
    spread.map_or("–".to_owned(), |it| it.cell(Unit::Ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(last: &str) -> String {
        let rows = ROWS[..31].iter().zip(1..).map(|((row, _), mean)| format!("{row} {mean}.0 1 900 ok\n"));
        format!("stamps 10.0\n{}{LATENCY} {last}\npassed 31 of 32\n", rows.collect::<String>())
    }

    /// A report in the suite's form: lines end with a line feed and a carriage return.
    fn report(last: &str) -> String {
        // The suite writes one of these labels with two spaces.
        let labels = ROWS[..31].iter().map(|(_, row)| row.replace("Start (", "Start  ("));
        let rows = labels.zip(1..).map(|(row, mean)| format!(" {row:<40}: {mean:6},      1,    900\n\r"));
        format!(
            "stamps 10.0\n\n\r *** Starting! ***\n\n\r** Stats [avg, min, max] in nanoseconds **\n\r{}{last}",
            rows.collect::<String>()
        )
    }

    #[test]
    fn the_lines_of_the_program_become_times_or_reasons() {
        let said = [read(&lines("0 0 0 n/a")).unwrap(), read(&lines("0 0 0 n/a")).unwrap()];
        assert_eq!(cell(&said, LATENCY), "n/a");
        assert!(cell(&said, "thread_resume").starts_with("below 20"), "{}", cell(&said, "thread_resume"));
        assert!(cell(&said, "malloc").starts_with("25"), "{}", cell(&said, "malloc"));
        let wrong = read(&lines("8.0 1 9 wrong 3 of 9")).unwrap();
        assert_eq!(outcome(&wrong, LATENCY), "wrong");
        assert!(read("stamps 10.0\nthread_spawn 1.0 1 1 ok\n").is_err(), "rows are missing");
        assert!(read("strict 0\n").is_err_and(|why| why.contains("real-time")));
    }

    #[test]
    fn the_rows_of_the_suite_become_times_or_reasons() {
        let whole = [read_own(&report(
            " Latency                                 :  31000,  20000,  90000\n\r\n\r *** Done! ***\n\r",
        ))
        .unwrap()];
        assert_eq!(verdict(&whole, "threads"), "32 of 32 rows hold");
        assert_eq!(cell(&whole, LATENCY), "20.0 µs / 31.0 µs / 90.0 µs");
        assert!(cell(&whole, "thread_resume").starts_with("below 20"), "{}", cell(&whole, "thread_resume"));
        // The report of a run that was killed.
        let stuck = [read_own(&report("** Interrupt Stats [avg, min, max] in nanoseconds **\n\r")).unwrap()];
        assert_eq!(
            verdict(&stuck, "fibers"),
            "31 of 32 rows hold; interrupt_latency: n/a, a thread spins without a call, and no interrupt is served meanwhile"
        );
        assert!(verdict(&stuck, "threads").ends_with("31 of 32 rows hold; interrupt_latency: n/a, not reported"));
        assert!(read_own("stamps 10.0\n\n\r *** Starting! ***\n").is_err(), "there are no rows");
    }

    #[test]
    fn a_row_of_the_suite_with_a_stamp_too_old_is_wrong() {
        for (figures, expected) in [
            ("     30,      9,     90", "ok"),
            ("     30,      9, 18446744073709551000", "wrong"),
            ("     95,      9,     90", "wrong"),
            ("      8,      9,     90", "wrong"),
            ("   n/a,    n/a,    n/a", "n/a"),
        ] {
            let said = read_own(&report(&format!(" Latency                                 : {figures}\n\r"))).unwrap();
            assert_eq!(outcome(&said, LATENCY), expected, "{figures}");
        }
    }
}
