//! Proof: after any faults of the scripted disk, a recording's metadata claim no more than is stored.
//!
//! It takes half an hour of an otherwise idle CPU, so it runs in pieces. Each piece is kept in
//! `target/crashes/pieces.json` as soon as it is over, and a run goes on with the missing pieces. If a source of the
//! recording crates changes, everything begins anew.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{NOT_RUN, Verdict, fingerprint};

/// Seeds of a piece.
const PIECE: u64 = 80;
/// Crates whose sources decide the outcome.
const CRATES: [&str; 5] = ["file", "machine", "ring", "source", "record"];
const KEPT: &str = "target/crashes/pieces.json";
/// Prefix of the test's line that names a failed seed.
const FAILED_SEED: &str = "failed: HAIRSPRING_SEED=";
/// Number of failed seeds that are named.
const MOST_NAMED: usize = 20;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    code: u64,
    /// By the first seed of each piece: the seeds that failed.
    pieces: BTreeMap<u64, Vec<u64>>,
}

/// Runs the missing pieces of `seeds` seeds, from `from` on and then from the beginning, for `seconds` at most.
pub(crate) fn prove(seeds: u64, from: u64, seconds: u64) -> Verdict {
    attempt(seeds, from, seconds).unwrap_or_else(|defect| Verdict {
        passed: false,
        figures: Map::from_iter([("defect".to_owned(), json!(defect))]),
    })
}

fn attempt(seeds: u64, from: u64, seconds: u64) -> Result<Verdict, String> {
    let end = Instant::now() + Duration::from_secs(seconds);
    let code = code()?;
    let mut kept: Kept = fs::read(KEPT).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    if kept.code != code {
        kept = Kept { code, ..Kept::default() };
    }
    let missing: Vec<_> =
        pieces(seeds, from).into_iter().filter(|piece| !kept.pieces.contains_key(&piece.start)).collect();
    for piece in missing {
        if Instant::now() >= end {
            break;
        }
        kept.pieces.insert(piece.start, run(&piece)?);
        keep(&kept)?;
    }
    Ok(judge(&kept, seeds))
}

fn code() -> Result<u64, String> {
    let mut files = BTreeMap::new();
    for name in CRATES {
        let folder = Path::new("crates").join(name);
        fingerprint::numbers(&folder, &mut files).map_err(|error| format!("read {}: {error}", folder.display()))?;
    }
    Ok(fingerprint::number(&files))
}

/// All pieces, the one with this seed first.
fn pieces(seeds: u64, from: u64) -> Vec<Range<u64>> {
    let mut starts: Vec<u64> = (0..seeds).step_by(PIECE as usize).collect();
    let first = starts.partition_point(|start| start + PIECE <= from);
    let first = first % starts.len().max(1);
    starts.rotate_left(first);
    starts.into_iter().map(|start| start..(start + PIECE).min(seeds)).collect()
}

/// Runs a piece. Returns the seeds that failed.
fn run(piece: &Range<u64>) -> Result<Vec<u64>, String> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["test", "-p", "hairspring-record", "--test", "it", "--", "--nocapture", "--exact"]);
    command.arg("crashes::what_the_metadata_say_is_true_after_every_end");
    command.env("HAIRSPRING_SEED", format!("{}..{}", piece.start, piece.end));
    let output = command.output().map_err(|error| format!("run {command:?}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = failed(&said);
    if output.status.success() == failed.is_empty() && said.contains("test result: ") {
        return Ok(failed);
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(format!("run the seeds {piece:?}: {}: {}", output.status, told.lines().last().unwrap_or_default()))
}

/// The seeds that failed. libtest may have printed the beginning of a line.
fn failed(said: &str) -> Vec<u64> {
    said.lines().filter_map(|line| line.split_once(FAILED_SEED)?.1.trim().parse().ok()).collect()
}

fn keep(kept: &Kept) -> Result<(), String> {
    let written = serde_json::to_vec(kept).map_err(|error| error.to_string()).and_then(|text| {
        let folder = Path::new(KEPT).parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).and_then(|()| fs::write(KEPT, text)).map_err(|error| error.to_string())
    });
    written.map_err(|error| format!("write {KEPT}: {error}"))
}

fn judge(kept: &Kept, seeds: u64) -> Verdict {
    let pieces = pieces(seeds, 0);
    let done = |piece: &&Range<u64>| kept.pieces.contains_key(&piece.start);
    let tried: u64 = pieces.iter().filter(done).map(|piece| piece.end - piece.start).sum();
    let failed: Vec<u64> = pieces.iter().filter_map(|piece| kept.pieces.get(&piece.start)).flatten().copied().collect();
    let missing = together(pieces.iter().filter(|piece| !done(piece)));
    let mut figures = Map::from_iter([
        ("recordings, each to its end and with a crash".to_owned(), json!(tried)),
        ("of them failed".to_owned(), json!(failed.len())),
    ]);
    if !failed.is_empty() {
        figures.insert("seeds that failed".to_owned(), json!(failed[..failed.len().min(MOST_NAMED)]));
    }
    let whole = missing.is_empty();
    if !whole {
        let reason = if failed.is_empty() { NOT_RUN } else { "seeds not tried yet" };
        figures.insert(reason.to_owned(), Value::String(format!("not tried yet: {}", missing.join(", "))));
    }
    Verdict { passed: failed.is_empty() && whole, figures }
}

/// Ranges in words, neighbours as one.
fn together<'a>(ranges: impl Iterator<Item = &'a Range<u64>>) -> Vec<String> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => joined.push(range.clone()),
        }
    }
    joined.iter().map(|range| format!("{}–{}", range.start, range.end - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_seed_once_and_begin_where_they_are_told_to() {
        for (seeds, from) in [(20_000, 0), (20_000, 15_250), (333, 332), (333, 900), (80, 79)] {
            let pieces = pieces(seeds, from);
            let all: Vec<u64> = pieces.iter().cloned().flatten().collect();
            assert_eq!(all.iter().copied().collect::<std::collections::BTreeSet<_>>().len(), all.len());
            assert_eq!(all.len() as u64, seeds);
            assert!(from >= seeds || pieces[0].contains(&from), "{pieces:?}");
        }
    }

    #[test]
    fn seeds_that_fail_are_named_and_seeds_that_are_missing_are_no_success() {
        let kept = |pieces: &[(u64, &[u64])]| Kept {
            code: 0,
            pieces: pieces.iter().map(|(start, failed)| (*start, failed.to_vec())).collect(),
        };
        let verdict = judge(&kept(&[(0, &[]), (80, &[]), (160, &[])]), 200);
        assert!(verdict.passed && verdict.figures["recordings, each to its end and with a crash"] == json!(200));
        let verdict = judge(&kept(&[(160, &[])]), 400);
        assert!(!verdict.passed && verdict.figures[NOT_RUN] == json!("not tried yet: 0–159, 240–399"));
        let verdict = judge(&kept(&[(160, &[161])]), 400);
        assert!(!verdict.passed && !verdict.figures.contains_key(NOT_RUN), "what has failed has failed");
        assert_eq!(verdict.figures["seeds that failed"], json!([161]));
    }

    #[test]
    fn a_failed_seed_is_read_off_its_line() {
        assert_eq!(
            failed("test a ... failed: HAIRSPRING_SEED=7\nfailed: HAIRSPRING_SEED=8\nHAIRSPRING_SEED=9: why"),
            [7, 8]
        );
    }
}
