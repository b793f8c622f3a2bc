//! Gain of settings on this machine, and time of the command's conclusions: each figure beside the one that it must
//! reach.

use std::process::{Command, Output};
use std::time::Instant;

use hairspring_machine::{Host, Machine as _};
use serde_json::{Map, Value, json};

use crate::Verdict;
use crate::sheet::formats::command;
use crate::sheet::rows::medians;

/// The settings that are applied.
const SETTINGS: [&str; 4] = ["run", "--set", "idle=off,policy=fifo:80", "--"];
const REACTION: &str = "reaction.eventfd.total";
const REACTION_MOST_NS: f64 = 4_000.0;
const RING: &str = "transfer.ring.1mib.small.adaptive_of_copy";
/// The same with a consumer that sleeps each time: reported, not judged.
const RING_ASLEEP: &str = "transfer.ring.1mib.small.of_copy";
const RING_LEAST: f64 = 0.95;

/// Time limits of a live answer, an answer from a sheet, and a diagnosis, in seconds.
const LIVE_MOST_S: f64 = 90.0;
const FROM_SHEET_MOST_S: f64 = 1.0;
const DIAGNOSIS_MOST_S: f64 = 180.0;
/// Least factor by which the diagnosis improves the job.
const BETTER_LEAST: f64 = 3.0;
const JOB: &str = "loop 1kHz jitter 50us";
const REACT: &str = "react 100us";

/// The figures of a proof, each reached or missed.
struct Reached {
    figures: Map<String, Value>,
    all: bool,
}

impl Reached {
    fn new() -> Self {
        Self { figures: Map::new(), all: true }
    }

    fn add(&mut self, figure: &str, value: f64, wanted: &str, reached: bool) {
        self.all &= reached;
        let verdict = if reached { "reached" } else { "missed" };
        let told = format!("{value:.3}; {verdict}: {wanted}");
        println!("{figure}: {told}");
        self.figures.insert(figure.to_owned(), json!(told));
    }

    fn at_most(&mut self, figure: &str, value: f64, most: f64) {
        self.add(figure, value, &format!("at most {most}"), value <= most);
    }

    fn at_least(&mut self, figure: &str, value: f64, least: f64) {
        self.add(figure, value, &format!("at least {least}"), value >= least);
    }

    fn verdict(self) -> Verdict {
        Verdict { passed: self.all, figures: self.figures }
    }
}

/// Event to action, and the ring, under settings.
pub(crate) fn applied() -> Verdict {
    let mut reached = Reached::new();
    match medians(&SETTINGS, &[], &[REACTION, RING, RING_ASLEEP]) {
        Ok(values) => {
            reached.figures.insert("settings".to_owned(), json!(SETTINGS[2]));
            reached.at_most(&format!("{REACTION}, median in ns"), values[0], REACTION_MOST_NS);
            reached.at_least(RING, values[1], RING_LEAST);
            reached.figures.insert(RING_ASLEEP.to_owned(), json!(values[2]));
            reached.verdict()
        }
        Err(why) => Verdict::not_run(why),
    }
}

/// Time of `can` for its answer, measured and from a sheet.
pub(crate) fn answers() -> Verdict {
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => return Verdict::not_run(format!("make a folder: {error}")),
    };
    let sheet = folder.path().join("sheet.json").display().to_string();
    let tried = || {
        let mut reached = Reached::new();
        let (live, took) = timed(&["can", JOB, REACT])?;
        answered(&live)?;
        reached.at_most("can, measured, in s", took, LIVE_MOST_S);
        let (taken, _) = timed(&["sheet", "--quick", "--format", "json", "--out", &sheet])?;
        if !taken.status.success() {
            return Err(format!("sheet: {}", String::from_utf8_lossy(&taken.stderr).trim()));
        }
        let (from_sheet, took) = timed(&["can", JOB, REACT, "--sheet", &sheet])?;
        answered(&from_sheet)?;
        reached.at_most("can, from a sheet, in s", took, FROM_SHEET_MOST_S);
        Ok(reached.verdict())
    };
    tried().unwrap_or_else(failed)
}

/// Whether `doctor` finds the idle states unasked, and its gain by them.
pub(crate) fn doctor() -> Verdict {
    if Host.counter_evidence().hypervisor.is_none() && !std::path::Path::new("/sys/devices/system/cpu/cpuidle").exists()
    {
        return Verdict::not_run("this machine has no idle states that the kernel manages".to_owned());
    }
    let tried = || {
        let mut reached = Reached::new();
        let (output, took) = timed(&["doctor", "--format", "json"])?;
        let found: Value = serde_json::from_slice(&output.stdout)
            .map_err(|_| format!("doctor: {}", String::from_utf8_lossy(&output.stderr).trim()))?;
        reached.at_most("doctor in s", took, DIAGNOSIS_MOST_S);
        let confirmed = &found["confirmed"];
        let settings = confirmed["best"]["settings"].as_str().unwrap_or("none");
        reached.figures.insert("confirmed settings".to_owned(), json!(settings));
        reached.all &= settings.contains("idle=off");
        let median = |arm: &str| confirmed[arm]["median_ns"].as_f64().unwrap_or(f64::NAN);
        reached.figures.insert("event to action without settings, median in ns".to_owned(), json!(median("as_it_is")));
        reached.figures.insert("event to action with settings, median in ns".to_owned(), json!(median("with_it")));
        reached.at_least("times better", median("as_it_is") / median("with_it"), BETTER_LEAST);
        Ok(reached.verdict())
    };
    tried().unwrap_or_else(failed)
}

fn failed(why: String) -> Verdict {
    Verdict { passed: false, figures: Map::from_iter([("defect".to_owned(), json!(why))]) }
}

/// Runs the command, and measures its time in seconds.
fn timed(words: &[&str]) -> Result<(Output, f64), String> {
    let mut hairspring = Command::new(command()?);
    let begun = Instant::now();
    let output = hairspring.args(words).output().map_err(|error| format!("run hairspring: {error}"))?;
    Ok((output, begun.elapsed().as_secs_f64()))
}

/// Yes, no and not shown are answers; anything else is none.
fn answered(output: &Output) -> Result<(), String> {
    match output.status.code() {
        Some(0 | 10 | 11) => Ok(()),
        _ => Err(format!("can: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_that_is_missed_or_is_none_fails_the_proof_and_says_so() {
        let told = |value: f64| {
            let mut reached = Reached::new();
            reached.at_least("ring", 1.0, RING_LEAST);
            reached.at_most("reaction", value, REACTION_MOST_NS);
            let verdict = reached.verdict();
            (verdict.passed, verdict.figures["reaction"].clone())
        };
        assert_eq!(told(3_900.0), (true, json!("3900.000; reached: at most 4000")));
        assert_eq!(told(4_100.0), (false, json!("4100.000; missed: at most 4000")));
        assert!(!told(f64::NAN).0);
    }
}
