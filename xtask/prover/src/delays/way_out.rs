//! Proof: the way into and out of a delay costs no more than a peer's that promises nothing.
//!
//! `cargo xtask peers --only delays` measures, with stamps around the calls. This holds its medians against each other.

use std::process::Command;

use serde_json::{Map, json};

use crate::Verdict;

const OURS: &str = "**hairspring**";
const PEER: &str = "spin_sleep, hint";
/// Greatest excess over the peer's median, in nanoseconds.
const ABOVE_PEER: f64 = 10.0;
/// Greatest median of requests below [`LONG_FROM`], in nanoseconds; a reading of the counter takes 9.5 ns of it.
const SHORT_MOST: f64 = 60.0;
const LONG_FROM: f64 = 1e6;
/// Greatest use of a CPU at 1 s, under SCHED_FIFO, in percent.
const CPU_MOST: f64 = 0.02;

/// A row of the peers' table.
#[derive(Debug, PartialEq)]
struct Row {
    policy: String,
    request: String,
    candidate: String,
    median_ns: f64,
    cpu_percent: f64,
}

pub(crate) fn prove() -> Verdict {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["run", "--quiet", "--release", "-p", "peers", "--", "--only", "delays"];
    match Command::new(cargo).args(arguments).output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stdout);
            println!("{said}");
            judge(&rows(&said))
        }
        Err(error) => {
            Verdict { passed: false, figures: Map::from_iter([("defect".to_owned(), json!(error.to_string()))]) }
        }
    }
}

fn judge(rows: &[Row]) -> Verdict {
    let (mut figures, mut missed) = (Map::new(), Vec::new());
    for ours in rows.iter().filter(|row| row.candidate == OURS) {
        let Row { policy, request, median_ns: median, cpu_percent: cpu, .. } = ours;
        let same = |row: &&Row| row.policy == *policy && row.request == *request && row.candidate == PEER;
        let Some(peer) = rows.iter().find(same) else { continue };
        let name = format!("{policy}, {request}");
        figures.insert(
            format!("{name}: median in ns, the peer's, percent of a CPU"),
            json!([median, peer.median_ns, cpu]),
        );
        if *median > peer.median_ns + ABOVE_PEER {
            missed.push(format!("{name}: {median} ns, the peer's median is {} ns", peer.median_ns));
        }
        let span = nanos(request).unwrap_or(0.0);
        if span < LONG_FROM && *median > SHORT_MOST {
            missed.push(format!("{name}: {median} ns, more than {SHORT_MOST} ns"));
        }
        if span >= 1e9 && policy.starts_with("Fifo") && *cpu > CPU_MOST {
            missed.push(format!("{name}: {cpu} % of a CPU, more than {CPU_MOST} %"));
        }
    }
    let compared = figures.len();
    figures.insert("missed".to_owned(), json!(missed));
    Verdict { passed: missed.is_empty() && compared > 0, figures }
}

/// The rows of all tables of delays: a heading names the policy.
fn rows(said: &str) -> Vec<Row> {
    let mut policy = "";
    let mut rows = Vec::new();
    for line in said.lines() {
        if let Some(heading) = line.strip_prefix("### ") {
            policy = heading;
        }
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [request, candidate, _, _, median, _, _, _, cpu] = cells[..] else { continue };
        let (Some(median_ns), Some(cpu)) = (nanos(median), cpu.strip_suffix('%')) else { continue };
        let Ok(cpu_percent) = cpu.trim().parse() else { continue };
        let [policy, request, candidate] = [policy, request, candidate].map(str::to_owned);
        rows.push(Row { policy, request, candidate, median_ns, cpu_percent });
    }
    rows
}

fn nanos(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit {
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(policy: &str, request: &str, ours: &str, peer: &str, cpu: &str) -> String {
        format!(
            "### {policy}\n\n| request | candidate | n | min | median | p99 | max | early | CPU |\n| --- | ---: |\n\
             | {request} | {OURS} | 9 | 1 ns | {ours} | – | 1 ns | 0 | {cpu} % |\n\
             | {request} | {PEER} | 9 | 1 ns | {peer} | – | 1 ns | 0 | 0.1 % |\n"
        )
    }

    #[track_caller]
    fn check(policy: &str, request: &str, [ours, peer, cpu]: [&str; 3], holds: bool) {
        let verdict = judge(&rows(&told(policy, request, ours, peer, cpu)));
        assert_eq!(verdict.passed, holds, "{:?}", verdict.figures);
    }

    #[test]
    fn each_limit_can_be_missed() {
        check("Fifo(80)", "10 µs", ["59.9 ns", "50.0 ns", "100"], true);
        check("Fifo(80)", "10 µs", ["59.9 ns", "49.8 ns", "100"], false);
        check("Other", "100 µs", ["61.0 ns", "60.0 ns", "100"], false);
        check("Other", "1 ms", ["1.20 µs", "22.0 µs", "9"], true);
        check("Fifo(80)", "1 s", ["75.0 ns", "75.0 ns", "0.0201"], false);
        check("Other", "1 s", ["75.0 ns", "75.0 ns", "0.0201"], true);
        assert!(!judge(&rows("")).passed, "nothing was compared");
    }
}
