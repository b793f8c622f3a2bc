//! `cargo xtask flags`: the chapter *Reaction* by optimisation level of the whole program, side by side (FESA's latency
//! note, figures 4 to 6).
//!
//! Every level is built with otherwise equal settings into its own folder. `hairspring ab` then compares each with
//! level 0: it measures the two in turns and judges each row.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::workspace::Workspace;

/// Values of `opt-level`; all are compared with the first.
const LEVELS: [&str; 6] = ["0", "1", "2", "3", "s", "z"];
/// The build that conducts the comparisons.
const CONDUCTOR: usize = 3;
/// Settings of all builds beside the level. Without them the last steps of each build take minutes longer and show
/// nothing more.
const SETTINGS: [(&str, &str); 2] =
    [("CARGO_PROFILE_RELEASE_LTO", "false"), ("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// How many rounds compare each level with level 0
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Only the rows under this prefix
    #[arg(long, default_value = "reaction")]
    only: String,
}

/// The verdict on each row, by level without the first.
type Verdicts = BTreeMap<String, Vec<String>>;

/// Builds, measures, and prints a table.
pub(crate) fn run(workspace: &Workspace, arguments: &Arguments) -> Result<bool, String> {
    let programs = LEVELS.map(|level| build(workspace, level));
    let programs: Vec<PathBuf> = programs.into_iter().collect::<Result<_, _>>()?;
    let mut verdicts = Verdicts::new();
    for (index, program) in programs.iter().enumerate().skip(1) {
        eprintln!("opt-level {} against {}", LEVELS[index], LEVELS[0]);
        let pairs = workspace.scratch("flags").join(format!("{}.json", LEVELS[index]));
        let compared = compare(&programs[CONDUCTOR], [&programs[0], program], arguments, &pairs)?;
        for (id, said) in rows(&compared) {
            let cells = verdicts.entry(id).or_default();
            cells.resize(index - 1, "absent".to_owned());
            cells.push(said);
        }
    }
    print(&verdicts, arguments.rounds);
    Ok(!verdicts.is_empty())
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

/// The verdicts on two programs; the pairs are kept in a file.
fn compare(conductor: &Path, of: [&PathBuf; 2], arguments: &Arguments, pairs: &Path) -> Result<Value, String> {
    let mut ab = Command::new(conductor);
    ab.arg("ab").args(of).args(["--quick", "--only", &arguments.only, "--rounds", &arguments.rounds.to_string()]);
    // The exit code is ignored: with too many void pairs there are no verdicts, and the table says so.
    let ended = ab.arg("--out").arg(pairs).stdout(Stdio::null()).status();
    ended.map_err(|error| format!("run hairspring ab: {error}"))?;
    let said = Command::new(conductor).arg("compare").arg(pairs).args(["--format", "json"]).output();
    let said = said.map_err(|error| format!("run hairspring compare: {error}"))?;
    serde_json::from_slice(&said.stdout)
        .map_err(|error| format!("read the verdicts: {error}: {}", String::from_utf8_lossy(&said.stderr).trim()))
}

/// The verdict on each row with figures of both programs: the ratio, and whether it differs.
fn rows(compared: &Value) -> impl Iterator<Item = (String, String)> {
    let rows = compared["rows"].as_array().cloned().unwrap_or_default();
    rows.into_iter().filter_map(|row| {
        let against = &row["others"][0];
        let ratio = against["ratio"].as_f64()?;
        let said = |name: &str| against["verdict"].get(name).is_some();
        let mark = if said("differs") {
            "**"
        } else if said("same") {
            "="
        } else {
            "?"
        };
        Some((row["id"].as_str()?.to_owned(), format!("{ratio:.2} {mark}")))
    })
}

fn print(verdicts: &Verdicts, rounds: u32) {
    println!("# The chapter Reaction by optimisation level\n");
    let settings: Vec<String> = SETTINGS.iter().map(|(name, value)| format!("{name}={value}")).collect();
    println!(
        "Ratios to opt-level {}, {rounds} rounds of each pair in turns with `hairspring ab --quick`: ** differs, = is the same within 5 %, \
         ? cannot be told. All levels: {}.\n",
        LEVELS[0],
        settings.join(", ")
    );
    println!("| row | {} |\n| --- |{}", LEVELS[1..].join(" | "), " ---: |".repeat(LEVELS.len() - 1));
    for (id, cells) in verdicts {
        let absent = std::iter::repeat_n("absent", LEVELS.len() - 1 - cells.len());
        let cells: Vec<&str> = cells.iter().map(String::as_str).chain(absent).collect();
        println!("| {id} | {} |", cells.join(" | "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_without_a_ratio_are_left_out_and_the_others_say_whether_they_differ() {
        let of = |id: &str, ratio: Value, verdict: Value| serde_json::json!({ "id": id, "others": [{ "ratio": ratio, "verdict": verdict }] });
        let compared = serde_json::json!({ "rows": [
            of("reaction.call.read", 0.5.into(), serde_json::json!({ "differs": { "at_least": -0.4 } })),
            of("reaction.call.write", 1.004.into(), serde_json::json!({ "same": { "within": 0.05 } })),
            of("reaction.call.init", 1.2.into(), serde_json::json!({ "cannot_tell": "single_sheets" })),
            of("reaction.polled.total", Value::Null, serde_json::json!({ "unmatched": "absent_in_both" })),
        ] });
        let said: Vec<String> = rows(&compared).map(|(_, said)| said).collect();
        assert_eq!(said, ["0.50 **", "1.00 =", "1.20 ?"]);
    }
}
