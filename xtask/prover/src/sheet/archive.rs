//! The archive with many sheets: size and times, against their limits.
//!
//! The example `many_sheets` of the archive's crate makes and times it.

use std::process::Command;

use serde_json::{Map, Value, json};

use crate::run::cargo_test;
use crate::{NOT_RUN, Verdict};

/// The most that each figure may be.
const REQUIRED: [(&str, f64); 4] =
    [("size of a sheet, kB", 150.0), ("list, s", 0.2), ("trend of one figure, s", 0.5), ("compare of two, s", 0.1)];
/// Number of sheets for which the limits hold.
const SHEETS: u64 = 10_000;

/// Makes an archive of `sheets` sheets, and judges its figures.
pub(crate) fn prove(sheets: u64) -> Verdict {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--release", "-p", "hairspring-archive", "--example", "many_sheets", "--"]);
    match command.arg(sheets.to_string()).output() {
        Ok(output) if output.status.success() => judge(&String::from_utf8_lossy(&output.stdout)),
        Ok(output) => {
            let last = String::from_utf8_lossy(&output.stderr).lines().last().map(str::to_owned);
            defect(format!("many_sheets: {}: {}", output.status, last.unwrap_or_default()))
        }
        Err(error) => defect(format!("run cargo: {error}")),
    }
}

fn defect(why: String) -> Verdict {
    Verdict { passed: false, figures: Map::from_iter([("defect".to_owned(), json!(why))]) }
}

/// Compares the output of the example with the limits.
fn judge(said: &str) -> Verdict {
    let read = said.lines().filter_map(cargo_test::figure);
    let mut figures: Map<String, Value> = read.map(|(name, value)| (name.to_owned(), value)).collect();
    let mut beyond = Vec::new();
    for (name, most) in REQUIRED {
        match figures.get(name).and_then(Value::as_f64) {
            Some(value) if value <= most => {}
            Some(value) => beyond.push(format!("{name}: {value}, at most {most} is required")),
            None => return defect(format!("find the figure {name} in what many_sheets says")),
        }
    }
    if !beyond.is_empty() {
        figures.insert("beyond what is required".to_owned(), json!(beyond.join("; ")));
    } else if figures.get("sheets").and_then(Value::as_u64) < Some(SHEETS) {
        figures.insert(NOT_RUN.to_owned(), json!(format!("as a whole: {SHEETS} sheets are required")));
    } else {
        return Verdict { passed: true, figures };
    }
    Verdict { passed: false, figures }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_held_against_what_is_required() {
        let said = |sheets: u64, size: f64, compare: f64| {
            format!(
                "figure: sheets: {sheets}\nfigure: size of a sheet, kB: {size}\nfigure: list, s: 0.01\nfigure: trend of one figure, s: 0.4\n\
                 figure: compare of two, s: {compare}\n"
            )
        };
        assert!(judge(&said(10_000, 132.0, 0.1)).passed);
        let slow = judge(&said(10_000, 132.0, 0.11));
        assert!(
            !slow.passed && slow.figures["beyond what is required"].to_string().contains("compare of two, s: 0.11")
        );
        assert!(!judge(&said(10_000, 151.0, 0.1)).passed);
        let few = judge(&said(100, 132.0, 0.1));
        assert!(!few.passed && few.figures.contains_key(NOT_RUN));
        assert!(judge("figure: sheets: 10000\n").figures.contains_key("defect"));
    }
}
