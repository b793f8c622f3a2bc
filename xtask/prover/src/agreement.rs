//! Proof: comparisons declare nothing where nothing differs, and find a change of known size.
//!
//! `hairspring ab` compares a build with its own copy, several times; single sheets of one build are compared in pairs; the other build
//! spins for a known part of the median inside what is measured; and a load grows, or begins in the middle, while a build is compared
//! with its copy. Runs that were void for too many disturbances are counted and show nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hairspring_sheet::render::from_json;
use hairspring_sheet::{
    CompareTerms, ComparedSheets, Comparison, Doubt, Interleaved, RowVerdict, compare, compare_interleaved,
};
use serde_json::{Map, json};

use super::Verdict;
use super::formats::command;

/// At most so many runs may declare anything, of 10; three or more have a chance of 1.2 % if the promise of 5 % holds.
const RUNS_MOST: f64 = 0.2;
/// At most this share of all comparisons of rows may be declared.
const ROWS_MOST: f64 = 0.002;
/// No chapter's median ratio is farther from 1.
const CHAPTER_MOST: f64 = 0.02;
/// The least probability of signs as uneven as those of the chapters.
const SIGNS_LEAST: f64 = 0.01;
/// Rows whose rounds vary by no more are quiet.
const QUIET: f64 = 0.03;
/// The changes, and which share of the quiet rows must be found.
const CHANGES: [(f64, f64); 5] = [(0.02, 0.0), (0.05, 0.0), (0.1, 0.65), (0.2, 0.8), (0.5, 0.8)];
/// The share of intervals that hold the true change.
const COVERED_LEAST: f64 = 0.9;
/// Rows in whose measured section the other build can spin.
const SPINNING: [&str; 2] = ["sleeps.", "clocks.read."];

/// How much is done.
#[derive(clap::Args)]
pub(crate) struct Terms {
    /// Comparisons of a build with its copy; half as many pairs of single sheets
    #[arg(long, default_value_t = 10)]
    runs: u32,
    /// Rounds of each comparison
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Only these rows; all without
    #[arg(long, default_value = "")]
    only: String,
    /// Take the time of --quick
    #[arg(long)]
    quick: bool,
    /// Only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
}

/// What is shown.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// A build against its copy
    Copies,
    /// Pairs of single sheets
    Singles,
    /// A change of known size
    Change,
    /// A load that grows, and one that begins in the middle
    Load,
}

/// Shows one part.
type Show = fn(&Terms, &mut Findings) -> Result<(), String>;

/// The part of a CPU that a load uses when this part of the usual time has passed.
type Shape = fn(f64) -> f64;

/// What is found, with what failed.
#[derive(Default)]
struct Findings {
    figures: Map<String, serde_json::Value>,
    failed: Vec<String>,
}

impl Findings {
    fn say(&mut self, name: impl Into<String>, value: serde_json::Value) {
        self.figures.insert(name.into(), value);
    }

    fn require(&mut self, holds: bool, what: String) {
        if !holds {
            self.failed.push(what);
        }
    }
}

pub(crate) fn prove(terms: &Terms) -> Verdict {
    let mut findings = Findings::default();
    let wanted = |part| terms.part.is_empty() || terms.part.contains(&part);
    let parts: [(Part, Show); 4] =
        [(Part::Copies, copies), (Part::Singles, singles), (Part::Change, change), (Part::Load, loads)];
    for (_, show) in parts.into_iter().filter(|(part, _)| wanted(*part)) {
        if let Err(why) = show(terms, &mut findings) {
            findings.failed.push(why);
        }
    }
    let passed = findings.failed.is_empty();
    if !passed {
        findings.say("failed", json!(findings.failed));
    }
    Verdict { passed, figures: findings.figures }
}

/// One comparison of the command with its own copy.
fn ab(terms: &Terms, seed: u32, spin: &[(String, f64)]) -> Result<(Interleaved, Comparison), String> {
    let program = command()?;
    let mut command = Command::new(&program);
    command.arg("ab").args([&program, &program]).args(["--format", "json"]);
    command.args(["--rounds", &terms.rounds.to_string(), "--seed", &seed.to_string()]);
    command.args(terms.quick.then_some("--quick"));
    if !terms.only.is_empty() {
        command.args(["--only", &terms.only]);
    }
    for (id, ns) in spin {
        command.args(["--spin", &format!("{id}={ns}")]);
    }
    let output = command.output().map_err(|error| format!("run hairspring ab: {error}"))?;
    let measured: Interleaved = serde_json::from_slice(&output.stdout).map_err(|error| {
        format!("hairspring ab: {}: {error}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim())
    })?;
    let comparison = compare_interleaved(&measured, None);
    Ok((measured, comparison))
}

/// What one comparison says.
#[derive(Default)]
struct Told {
    /// Rows that were judged.
    judged: usize,
    /// Ids of the rows that are said to differ.
    declared: BTreeSet<String>,
    /// The middle of the logarithms of the ratios, by chapter.
    chapters: BTreeMap<String, f64>,
    void: bool,
}

fn told(comparison: &Comparison) -> Told {
    let mut told = Told::default();
    let mut ratios: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for row in &comparison.rows {
        for other in &row.others {
            told.judged += usize::from(other.difference.is_some());
            told.void |= matches!(other.verdict, RowVerdict::CannotTell(Doubt::Void));
            if other.verdict.differs() {
                told.declared.insert(row.id.clone());
            }
            if let Some(ratio) = other.ratio.filter(|_| other.difference.is_some()) {
                let chapter = row.id.split('.').next().unwrap_or_default();
                ratios.entry(chapter.to_owned()).or_default().push(ratio.ln());
            }
        }
    }
    told.chapters = ratios.into_iter().map(|(chapter, ratios)| (chapter, middle(ratios))).collect();
    told
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn copies(terms: &Terms, findings: &mut Findings) -> Result<(), String> {
    let all = (0..terms.runs).map(|seed| ab(terms, seed, &[])).collect::<Result<Vec<_>, _>>()?;
    let all: Vec<Told> = all.iter().map(|(_, comparison)| told(comparison)).collect();
    let counted: Vec<&Told> = all.iter().filter(|told| !told.void).collect();
    let declaring = counted.iter().filter(|told| !told.declared.is_empty()).count();
    let rows: usize = counted.iter().map(|told| told.judged).sum();
    let declared: usize = counted.iter().map(|told| told.declared.len()).sum();
    let mut by_chapter: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (chapter, ratio) in counted.iter().flat_map(|told| &told.chapters) {
        by_chapter.entry(chapter).or_default().push(*ratio);
    }
    let signs: Vec<bool> = by_chapter.values().flatten().filter(|ratio| **ratio != 0.0).map(|r| *r > 0.0).collect();
    let uneven = sign_test(signs.iter().filter(|up| **up).count(), signs.len());
    findings.say("copies: runs", json!(all.len()));
    findings.say("copies: runs without result", json!(all.len() - counted.len()));
    findings.say("copies: runs that declare a row", json!(declaring));
    findings.say("copies: comparisons of rows", json!(rows));
    findings.say("copies: rows declared", json!(declared));
    findings.say("copies: p of the chapters' signs", json!(uneven));
    findings.require(!counted.is_empty() && rows > 0, "no run has a result".to_owned());
    let most = (RUNS_MOST * counted.len() as f64).ceil() as usize;
    findings.require(declaring <= most, format!("{declaring} of {} runs declare a row", counted.len()));
    let few = declared as f64 <= (ROWS_MOST * rows as f64).max(1.0);
    findings.require(few, format!("{declared} of {rows} comparisons of rows are declared"));
    findings.require(uneven > SIGNS_LEAST, format!("the chapters' signs are uneven: p {uneven}"));
    for (chapter, ratios) in by_chapter {
        let ratio = middle(ratios).exp();
        findings.say(format!("copies: median ratio of {chapter}"), json!(ratio));
        findings.require((ratio - 1.0).abs() <= CHAPTER_MOST, format!("the median ratio of {chapter} is {ratio:.3}"));
    }
    Ok(())
}

/// The two-sided probability of so uneven a number of heads in so many tosses.
fn sign_test(heads: usize, tosses: usize) -> f64 {
    let few = heads.min(tosses - heads);
    let mut term = 0.5_f64.powi(i32::try_from(tosses).unwrap_or(i32::MAX));
    let mut sum = 0.0;
    for k in 0..=few {
        sum += term;
        term *= (tosses - k) as f64 / (k + 1) as f64;
    }
    (2.0 * sum).min(1.0)
}

fn singles(terms: &Terms, findings: &mut Findings) -> Result<(), String> {
    let pairs = terms.runs.div_ceil(2);
    let mut declared = 0;
    for _ in 0..pairs {
        let sides = ["one", "another"].map(|name| {
            let sheet = sheet(terms)?;
            Ok(ComparedSheets { name: name.to_owned(), sheets: vec![sheet] })
        });
        let sides: Vec<ComparedSheets> = sides.into_iter().collect::<Result<_, String>>()?;
        declared += told(&compare(&sides, &CompareTerms::default())).declared.len();
    }
    findings.say("singles: pairs of sheets", json!(pairs));
    findings.say("singles: rows declared", json!(declared));
    findings.require(declared == 0, format!("{declared} rows of single sheets differ"));
    Ok(())
}

fn sheet(terms: &Terms) -> Result<hairspring_sheet::Sheet, String> {
    let mut command = Command::new(command()?);
    command.args(["sheet", "--format", "json"]).args(terms.quick.then_some("--quick"));
    if !terms.only.is_empty() {
        command.args(["--only", &terms.only]);
    }
    let output = command.output().map_err(|error| format!("run hairspring sheet: {error}"))?;
    from_json(&String::from_utf8_lossy(&output.stdout)).map_err(|error| format!("failed to {error}"))
}

fn change(terms: &Terms, findings: &mut Findings) -> Result<(), String> {
    let (before, _) = ab(terms, 1000, &[])?;
    let medians: Vec<(String, f64)> = before
        .rows
        .iter()
        .filter(|row| SPINNING.iter().any(|prefix| row.id.starts_with(prefix)) && !row.id.ends_with(".first"))
        .filter_map(|row| {
            let values: Vec<f64> = row.pairs.iter().filter_map(|pair| pair.baseline).collect();
            (values.len() >= 2).then(|| (row.id.clone(), middle(values))).filter(|(_, median)| *median > 0.0)
        })
        .collect();
    findings.say("change: rows that are changed", json!(medians.len()));
    for (change, least) in CHANGES {
        let spin: Vec<(String, f64)> = medians.iter().map(|(id, median)| (id.clone(), median * change)).collect();
        let (measured, comparison) = ab(terms, 2000, &spin)?;
        let percent = format!("change of {:.0} %", change * 100.0);
        let (mut quiet, mut found, mut wrong, mut held, mut judged, mut others) =
            (0_usize, 0_usize, 0_usize, 0_usize, 0_usize, 0_usize);
        for (row, compared) in measured.rows.iter().zip(&comparison.rows) {
            let Some(against) = compared.others.first().filter(|against| against.difference.is_some()) else {
                continue;
            };
            if !medians.iter().any(|(id, _)| *id == row.id) {
                others += usize::from(against.verdict.differs());
                continue;
            }
            judged += 1;
            let is_quiet = varies(row.pairs.iter().filter_map(|pair| pair.baseline).collect()) <= QUIET;
            let differs = against.verdict.differs();
            quiet += usize::from(is_quiet);
            found += usize::from(is_quiet && differs);
            wrong += usize::from(differs && against.ratio.is_some_and(|ratio| ratio < 1.0));
            held +=
                usize::from(against.interval.is_some_and(|[low, high]| low <= 1.0 + change && 1.0 + change <= high));
        }
        let counts =
            json!({ "judged": judged, "quiet": quiet, "found": found, "wrong": wrong, "held": held, "others": others });
        findings.say(percent.clone(), counts);
        findings.require(judged > 0, format!("{percent}: no row has a result"));
        findings
            .require(found as f64 >= least * quiet as f64, format!("{percent}: {found} of {quiet} quiet rows found"));
        findings.require(wrong == 0, format!("{percent}: {wrong} rows have the wrong sign"));
        let covered = held as f64 >= COVERED_LEAST * judged as f64;
        findings.require(covered, format!("{percent}: {held} of {judged} intervals hold it"));
    }
    Ok(())
}

/// The standard deviation of the logarithms of values; infinite where one has none.
fn varies(values: Vec<f64>) -> f64 {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (logs.len() as f64 - 1.0);
    if variance.is_finite() { variance.sqrt() } else { f64::INFINITY }
}

fn loads(terms: &Terms, findings: &mut Findings) -> Result<(), String> {
    let began = Instant::now();
    ab(terms, 3000, &[])?;
    let usual = began.elapsed();
    let shapes: [(&str, Shape); 2] = [
        ("growing load", |passed| 0.5 * passed.min(1.0)),
        ("load from the middle on", |passed| if passed < 0.5 { 0.0 } else { 0.5 }),
    ];
    for (name, shape) in shapes {
        let ended = AtomicBool::new(false);
        let told = std::thread::scope(|scope| {
            scope.spawn(|| work(usual, shape, &ended));
            let told = ab(terms, 4000, &[]).map(|(_, comparison)| told(&comparison));
            // Relaxed: a plain flag; the scope's end joins the thread.
            ended.store(true, Ordering::Relaxed);
            told
        })?;
        let counts = json!({ "judged": told.judged, "declared": told.declared.len(), "no result": told.void });
        findings.say(name, counts);
        let few = told.void || told.declared.len() as f64 <= (ROWS_MOST * told.judged as f64).max(1.0);
        findings.require(few, format!("{name}: {} of {} rows are declared", told.declared.len(), told.judged));
    }
    Ok(())
}

/// Uses a part of a CPU that changes with the time, in periods of 10 ms.
fn work(usual: Duration, shape: Shape, ended: &AtomicBool) {
    const PERIOD: Duration = Duration::from_millis(10);
    let began = Instant::now();
    // Relaxed: a plain flag, nothing else is handed over with it.
    while !ended.load(Ordering::Relaxed) {
        let busy = PERIOD.mul_f64(shape(began.elapsed().as_secs_f64() / usual.as_secs_f64().max(1.0)));
        let start = Instant::now();
        while start.elapsed() < busy {
            std::hint::spin_loop();
        }
        std::thread::sleep(PERIOD.saturating_sub(busy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uneven_signs_are_improbable() {
        assert!((sign_test(5, 10) - 1.0).abs() < 1e-9);
        assert!((sign_test(0, 10) - 2.0 / 1024.0).abs() < 1e-9);
        assert!((sign_test(1, 10) - 22.0 / 1024.0).abs() < 1e-9);
        assert!((sign_test(0, 0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn variation_is_that_of_ratios() {
        assert!((varies(vec![100.0, 110.0]) - 0.0674).abs() < 1e-3);
        assert!(varies(vec![100.0]).is_infinite() && varies(vec![-1.0, 1.0]).is_infinite());
    }
}
