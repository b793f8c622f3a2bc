//! `cargo xtask flags`: the chapter *Reaction* by optimisation level of the whole program, side by side (FESA's latency note, figures
//! 4 to 6).
//!
//! Every level is built with the same other settings and into a folder of its own. Then the programs take the chapter in turns, so
//! that no level has a quieter moment than another; what is printed of a row is the median of its medians.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;

use crate::workspace::Workspace;

/// What `opt-level` can be.
const LEVELS: [&str; 6] = ["0", "1", "2", "3", "s", "z"];
/// Settings of all builds beside the level: without these, the last steps of each take minutes and hide nothing.
const SETTINGS: [(&str, &str); 2] =
    [("CARGO_PROFILE_RELEASE_LTO", "false"), ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How often each level takes the chapter
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Only the rows under this prefix
    #[arg(long, default_value = "reaction")]
    only: String,
}

/// Medians in nanoseconds by row, for each level one for each round.
type Medians = BTreeMap<String, [Vec<f64>; LEVELS.len()]>;

/// Builds, measures, and prints a table.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let programs = LEVELS.map(|level| build(workspace, level));
    let programs: Vec<PathBuf> = programs.into_iter().collect::<Result<_, _>>()?;
    let mut medians = Medians::new();
    for round in 1..=arguments.rounds {
        for (index, program) in programs.iter().enumerate() {
            eprintln!("round {round} of {}: opt-level {}", arguments.rounds, LEVELS[index]);
            let sheet = take(workspace, program, &arguments.only)?;
            for (id, median) in rows(&sheet) {
                medians.entry(id).or_default()[index].push(median);
            }
        }
    }
    print(&medians, arguments.rounds);
    Ok(!medians.is_empty())
}

fn build(workspace: &Workspace, level: &str) -> Result<PathBuf, String> {
    eprintln!("building with opt-level {level}");
    let target = workspace.root.join("target/flags").join(level);
    let mut command = workspace.cargo(&["build", "--quiet", "--release", "-p", "hairspring-cli", "--target-dir"]);
    command.arg(&target).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", level).envs(SETTINGS);
    match command.status() {
        Ok(status) if status.success() => Ok(target.join("release/hairspring")),
        Ok(status) => Err(format!("build with opt-level {level}: {status}")),
        Err(error) => Err(format!("build with opt-level {level}: {error}")),
    }
}

fn take(workspace: &Workspace, program: &PathBuf, only: &str) -> Result<Value, String> {
    let mut command = std::process::Command::new(program);
    command.args(["sheet", "--quick", "--format", "json", "--only", only]).current_dir(&workspace.root);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("run {}: {error}", program.display()))?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("read the sheet of {}: {error}", program.display()))
}

/// The medians of the rows that have one.
fn rows(sheet: &Value) -> impl Iterator<Item = (String, f64)> {
    let items = |value: &Value, name: &str| value[name].as_array().cloned().unwrap_or_default();
    let tables: Vec<Value> = items(sheet, "chapters").iter().flat_map(|chapter| items(chapter, "tables")).collect();
    let rows: Vec<Value> = tables.iter().flat_map(|table| items(table, "rows")).collect();
    rows.into_iter().filter_map(|row| Some((row["id"].as_str()?.to_owned(), row["figure"]["median"].as_f64()?)))
}

fn print(medians: &Medians, rounds: u32) {
    println!("# The chapter Reaction by optimisation level\n");
    let settings: Vec<String> = SETTINGS.iter().map(|(name, value)| format!("{name}={value}")).collect();
    println!(
        "The median of {rounds} medians in µs, taken in turns with `hairspring sheet --quick`; in brackets the ratio to opt-level 0. \
         All levels: {}.\n",
        settings.join(", ")
    );
    println!("| row | {} |\n| --- |{}", LEVELS.join(" | "), " ---: |".repeat(LEVELS.len()));
    for (id, by_level) in medians {
        let middles: Vec<Option<f64>> = by_level.iter().map(|values| middle(values)).collect();
        let first = middles[0];
        let cells: Vec<String> = middles
            .iter()
            .map(|value| match (value, first) {
                (Some(value), Some(first)) => format!("{:.3} ({:.2})", value / 1e3, value / first),
                (Some(value), None) => format!("{:.3}", value / 1e3),
                (None, _) => "absent".to_owned(),
            })
            .collect();
        println!("| {id} | {} |", cells.join(" | "));
    }
}

fn middle(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_figure_are_left_out() {
        let sheet = serde_json::json!({ "chapters": [{ "tables": [{ "rows": [
            { "id": "reaction.call.read", "figure": { "median": 1250.0 } },
            { "id": "reaction.polled.total", "absent": { "reason": "one CPU" } },
        ] }] }] });
        assert_eq!(rows(&sheet).collect::<Vec<_>>(), [("reaction.call.read".to_owned(), 1250.0)]);
        assert_eq!((middle(&[3.0, 1.0, 2.0]), middle(&[])), (Some(2.0), None));
    }
}
