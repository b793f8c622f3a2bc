//! The contract of rtos-benchmark as a program in C on the installed library: 32 rows on fibers and on threads, in turns.
//!
//! The program is `crates/c/tests/rtos_benchmark.c`, which says what each row times and when it holds. A row that takes less than the stamps
//! around it has no figure, because the stamps' cost is in it.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use hairspring_sheet::Unit;
use hairspring_sheet::render::quantity;

use crate::callers::compiled;
use crate::executive::Spread;

const ROUNDS: usize = 5;
const ITERATIONS: u64 = 10_000;
const ROWS: usize = 32;
const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/c/tests/rtos_benchmark.c");
const BACK_ENDS: [&str; 2] = ["fibers", "threads"];

/// What one run of the program said: the mean of two stamps, and of each row its mean in nanoseconds and its outcome.
#[derive(Debug)]
struct Said {
    stamps_ns: f64,
    rows: BTreeMap<String, (f64, String)>,
    /// The rows in the program's order.
    order: Vec<String>,
}

pub(crate) fn run(folder: &Path, quick: bool) -> Result<(), String> {
    println!("## rtos-benchmark\n");
    let program = match compiled(folder, &[PROGRAM], "peers-rtos-benchmark") {
        Ok(program) => program,
        Err(why) => {
            println!("No result: failed to compile the program ({why}). Install the library: cargo xtask install.\n");
            return Ok(());
        }
    };
    let (rounds, iterations) = if quick { (3, ITERATIONS / 4) } else { (ROUNDS, ITERATIONS) };
    let mut taken = BACK_ENDS.map(|_| Vec::new());
    for round in 1..=rounds {
        eprintln!("rtos-benchmark, round {round} of {rounds}");
        for (back_end, taken) in BACK_ENDS.iter().zip(&mut taken) {
            let output = Command::new(program.get_program()).args([back_end, &iterations.to_string()[..]]).output();
            let output = output.map_err(|error| format!("run the program of rtos-benchmark: {error}"))?;
            taken.push(read(&String::from_utf8_lossy(&output.stdout))?);
        }
    }
    println!(
        "Mean of {iterations} iterations: min / median / max of {rounds} rounds; messages of 32 bytes; calls from C. The cost of two stamps is in the figures; \
         below twice that cost there is none. While a thread spins without a call (interrupt_latency), an interrupt is served on threads only.\n"
    );
    println!("| row | fibers | threads, one CPU |\n|---|---:|---:|");
    let stamps = taken.each_ref().map(|said| Spread::of(said.iter().map(|said| said.stamps_ns).collect()));
    println!(
        "| two stamps | {} |",
        stamps.map(|spread| spread.map_or("–".to_owned(), |it| it.cell(Unit::Ns))).join(" | ")
    );
    for row in &taken[0][0].order {
        println!("| {row} | {} |", taken.each_ref().map(|said| cell(said, row)).join(" | "));
    }
    println!();
    for (back_end, said) in BACK_ENDS.iter().zip(&taken) {
        let held = said[0].order.iter().filter(|row| said.iter().all(|said| outcome(said, row) == "ok")).count();
        println!("* {back_end}: {held} of {ROWS} rows hold in every round");
    }
    println!();
    Ok(())
}

/// Reads the program's lines: the stamps, then a row, its mean, least and most, and its outcome.
fn read(said: &str) -> Result<Said, String> {
    let mut found = Said { stamps_ns: f64::NAN, rows: BTreeMap::new(), order: Vec::new() };
    for line in said.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["strict", "0"] => return Err("time threads: the system refuses real-time priorities".to_owned()),
            ["stamps", ns] => found.stamps_ns = ns.parse().unwrap_or(f64::NAN),
            [row, mean, _, _, outcome, ..] if mean.parse::<f64>().is_ok() => {
                let mean = mean.parse().unwrap_or(f64::NAN);
                found.rows.insert(row.to_owned(), (mean, outcome.to_owned()));
                found.order.push(row.to_owned());
            }
            _ => (),
        }
    }
    if found.rows.len() == ROWS && found.stamps_ns.is_finite() {
        Ok(found)
    } else {
        Err(format!("read the program of rtos-benchmark: it said\n{said}"))
    }
}

fn outcome<'a>(said: &'a Said, row: &str) -> &'a str {
    said.rows.get(row).map_or("", |(_, outcome)| outcome)
}

/// The times of a row, or why there are none.
fn cell(said: &[Said], row: &str) -> String {
    if let Some(other) = said.iter().map(|said| outcome(said, row)).find(|outcome| *outcome != "ok") {
        return other.to_owned();
    }
    let means = said.iter().filter_map(|said| said.rows.get(row)).map(|(mean, _)| *mean).collect();
    let limit_ns = said.iter().map(|said| 2.0 * said.stamps_ns).fold(0.0, f64::max);
    match Spread::of(means) {
        Some(spread) if spread.median < limit_ns => format!("below {}", quantity(limit_ns, Unit::Ns)),
        Some(spread) => spread.cell(Unit::Ns),
        None => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(last: &str) -> String {
        let rows = (1..ROWS).map(|row| format!("row_{row} {row}.0 1 900 ok\n"));
        format!("stamps 10.0\n{}row_32 {last}\npassed 31 of 32\n", rows.collect::<String>())
    }

    #[test]
    fn the_lines_of_the_program_become_times_or_reasons() {
        let said = [read(&lines("0 0 0 n/a")).unwrap(), read(&lines("0 0 0 n/a")).unwrap()];
        assert_eq!(cell(&said, "row_32"), "n/a");
        assert!(cell(&said, "row_5").starts_with("below 20"), "{}", cell(&said, "row_5"));
        assert!(cell(&said, "row_25").starts_with("25"), "{}", cell(&said, "row_25"));
        let wrong = read(&lines("8.0 1 9 wrong 3 of 9")).unwrap();
        assert_eq!(outcome(&wrong, "row_32"), "wrong");
        assert!(read("stamps 10.0\nrow_1 1.0 1 1 ok\n").is_err(), "rows are missing");
        assert!(read("strict 0\n").is_err_and(|why| why.contains("real-time")));
    }
}
