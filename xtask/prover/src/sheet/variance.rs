//! Proof: which part of the variance of a sheet's figures comes from the process, and which from the time.
//!
//! Quick sheets are taken in turns: with all rounds in one process, and with each in a fresh one, as usual. Between
//! them is a pause. For each row the logarithms of the rounds' medians have three variances:
//!
//! | part | meaning |
//! |---|---|
//! | rounds | between rounds of one process: the scatter of the samples, and changes within seconds |
//! | process | the additional variance of fresh processes |
//! | time | between sheets of fresh processes, less the variance of their rounds: changes within minutes |
//!
//! The proof only publishes; no value is right or wrong, so it passes if enough rows have all three.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use hairspring_sheet::render::from_json;
use serde_json::{Map, json};

use crate::Verdict;
use crate::sheet::formats::command;

/// With fewer rows a chapter has no result.
const ROWS_LEAST: usize = 5;
/// Rounds that a row must have in each sheet.
const ROUNDS_LEAST: usize = 3;
/// A row whose rounds vary by more than this is noisy.
const NOISY: f64 = 0.1;

/// Amount of work.
#[derive(clap::Args)]
pub(crate) struct Terms {
    /// Sheets of each kind
    #[arg(long, default_value_t = 4)]
    sheets: u32,
    /// Seconds between two sheets
    #[arg(long, default_value_t = 30)]
    pause: u64,
    /// Only these rows; by default all that do not start processes of their own
    #[arg(long, default_value = "clocks,delays,sleeps,executive,transfer,disturbance")]
    only: String,
}

/// For each row, for each sheet, the logarithms of the rounds' medians.
type Rounds = BTreeMap<String, Vec<Vec<f64>>>;

pub(crate) fn prove(terms: &Terms) -> Verdict {
    match measured(terms) {
        Ok(figures) => Verdict { passed: figures.contains_key("all: rows"), figures },
        Err(why) => Verdict { passed: false, figures: Map::from_iter([("failed".to_owned(), json!(why))]) },
    }
}

fn measured(terms: &Terms) -> Result<Map<String, serde_json::Value>, String> {
    let mut rounds: [Rounds; 2] = Default::default();
    for sheet in 0..terms.sheets {
        // The order alternates from pair to pair.
        for fresh in [sheet % 2 == 0, sheet % 2 == 1] {
            take(terms, fresh, &mut rounds[usize::from(fresh)])?;
            std::thread::sleep(Duration::from_secs(terms.pause));
        }
    }
    let mut parts: BTreeMap<&str, Vec<Parts>> = BTreeMap::new();
    for (id, one) in &rounds[0] {
        if let Some(of_row) = rounds[1].get(id).and_then(|fresh| Parts::of(one, fresh)) {
            parts.entry(id.split('.').next().unwrap_or_default()).or_default().push(of_row);
            parts.entry("all").or_default().push(of_row);
        }
    }
    let mut figures = Map::new();
    for (chapter, rows) in parts.iter().filter(|(_, rows)| rows.len() >= ROWS_LEAST) {
        let mut say = |name: &str, value: f64| figures.insert(format!("{chapter}: {name}"), json!(value));
        say("rows", rows.len() as f64);
        let noisy = rows.iter().filter(|row| (row.rounds + row.process).sqrt() > NOISY).count();
        say("share of rows that vary by more than 10 % between fresh processes", noisy as f64 / rows.len() as f64);
        let parts: [(&str, PartOf); 3] =
            [("rounds", |row| row.rounds), ("process", |row| row.process), ("time", |row| row.time)];
        for (name, part) in parts {
            say(&format!("share of {name}, median row"), middle(rows.iter().map(|row| part(row) / row.all())));
            say(&format!("standard deviation of {name}, median row"), middle(rows.iter().map(|row| part(row).sqrt())));
        }
    }
    Ok(figures)
}

/// Takes a sheet and adds its rounds.
fn take(terms: &Terms, fresh: bool, rounds: &mut Rounds) -> Result<(), String> {
    let mut command = Command::new(command()?);
    command.args(["sheet", "--quick", "--format", "json", "--only", &terms.only]);
    command.args((!fresh).then_some("--one-process"));
    let output = command.output().map_err(|error| format!("run hairspring sheet: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let sheet =
        from_json(&text).map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr).trim()))?;
    for row in sheet.rows() {
        let medians = row.figure().map_or(&[][..], |figure| &figure.rounds).iter().map(|round| round.median.ln());
        let medians: Vec<f64> = medians.filter(|median| median.is_finite()).collect();
        if medians.len() >= ROUNDS_LEAST {
            rounds.entry(row.id.clone()).or_default().push(medians);
        }
    }
    Ok(())
}

/// One part of the variance of a row.
type PartOf = fn(&Parts) -> f64;

/// The parts of the variance of one row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Parts {
    rounds: f64,
    process: f64,
    time: f64,
}

impl Parts {
    /// From rounds in one process and from fresh ones; a part that comes out below zero is zero. `None` for a row that
    /// does not vary, or has a single sheet.
    fn of(one: &[Vec<f64>], fresh: &[Vec<f64>]) -> Option<Self> {
        let within = |sheets: &[Vec<f64>]| mean(sheets.iter().map(|rounds| variance(rounds)));
        let (rounds, all) = (within(one), within(fresh));
        let explained = mean(fresh.iter().map(|rounds| variance(rounds) / rounds.len() as f64));
        let means: Vec<f64> = fresh.iter().map(|rounds| mean(rounds.iter().copied())).collect();
        let between = variance(&means) - explained;
        let parts = Self { rounds, process: (all - rounds).max(0.0), time: between.max(0.0) };
        (parts.all() > 0.0 && fresh.len() > 1).then_some(parts)
    }

    fn all(&self) -> f64 {
        self.rounds + self.process + self.time
    }
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

fn variance(values: &[f64]) -> f64 {
    let mean = mean(values.iter().copied());
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len().max(2) - 1) as f64
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_is_found_where_it_is() {
        let quiet = vec![vec![1.0, 1.1, 0.9]; 2];
        let of = |fresh: &[Vec<f64>]| Parts::of(&quiet, fresh).expect("it varies");
        let rounds_only = of(&quiet);
        assert!((rounds_only.rounds - 0.01).abs() < 1e-9 && rounds_only.process == 0.0 && rounds_only.time == 0.0);
        let process = of(&[vec![1.0, 1.5, 0.5], vec![0.5, 1.0, 1.5]]);
        assert!((process.process - 0.24).abs() < 1e-9 && process.time == 0.0, "{process:?}");
        let time = of(&[vec![1.0, 1.1, 0.9], vec![3.0, 3.1, 2.9]]);
        assert!(time.process.abs() < 1e-9 && (time.time - 2.0).abs() < 0.01, "{time:?}");
        assert_eq!(Parts::of(&[vec![1.0; 3]], &[vec![1.0; 3], vec![1.0; 3]]), None);
    }
}
