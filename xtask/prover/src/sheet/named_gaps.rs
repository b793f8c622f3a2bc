//! Nearly every gap and every late wake-up of this machine has a culprit, on each CPU.

use hairspring_time::{Host, Machine};
use serde_json::{Map, json};

use crate::Verdict;
use crate::sheet::rows::medians;

/// Least share of all gaps, and of all late wake-ups, with a name; a gap that goes below the kernel by exclusion has
/// one.
const NAMED_LEAST: f64 = 0.95;
const ROWS: [&str; 2] = ["disturbance.culprits.named", "disturbance.wakeup_culprits.named"];

pub(crate) fn prove() -> Verdict {
    let mut figures = Map::new();
    let mut passed = true;
    for cpu in Host.affinity().0 {
        match medians(&[], &["--cpu", &cpu.0.to_string()], &ROWS) {
            Ok(parts) => {
                for (row, part) in ROWS.into_iter().zip(parts) {
                    passed &= part >= NAMED_LEAST;
                    figures.insert(format!("CPU {}: {row}", cpu.0), json!(part));
                }
            }
            Err(why) => return Verdict::not_run(format!("CPU {}: {why}", cpu.0)),
        }
    }
    Verdict { passed, figures }
}
