//! Proof: comparisons declare nothing where nothing differs, and find a change of known size.
//!
//! There are four kinds of comparisons:
//! - `hairspring ab` compares a build with its own copy, several times.
//! - Single sheets of one build are compared in pairs.
//! - The other build spins for a known part of the median inside the measured section.
//! - A load grows, or begins in the middle, while a build is compared with its copy.
//!
//! Runs that were void for too many disturbances are counted and show nothing.
//!
//! It takes hours, so each comparison is kept in a file as soon as it is complete ([`Kept`]), and `--resume` goes on
//! with the missing ones.

mod change;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hairspring_sheet::render::from_json;
use hairspring_sheet::{
    CompareTerms, ComparedSheets, Comparison, Doubt, Interleaved, InterleavedRow, RowVerdict, Sheet, compare,
    compare_interleaved,
};
use serde_json::{Map, json};

use crate::Verdict;
use crate::sheet::formats::command;

/// Greatest share of runs that may declare anything; three or more of 10 have a chance of 1.2 % if the promise of 5 %
/// holds.
const RUNS_MOST: f64 = 0.2;
/// At most this share of all comparisons of rows may be declared.
const ROWS_MOST: f64 = 0.002;
/// No chapter's median ratio is farther from 1.
const CHAPTER_MOST: f64 = 0.02;
/// The least probability of signs as uneven as those of the chapters.
const SIGNS_LEAST: f64 = 0.01;
/// Rows whose rounds vary by no more are quiet, and those whose rounds vary by more are noisy.
const QUIET: f64 = 0.03;
const NOISY: f64 = 0.1;
/// Approximate time of a chapter of a sheet in seconds, with `--quick` and without.
const CHAPTER_S: [f64; 2] = [4.0, 12.0];
const CHAPTERS: usize = 7;

/// Amount of work.
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
    /// Go on with a run on the same terms that was ended: what it has measured is kept
    #[arg(long)]
    resume: bool,
}

/// Kind of comparison.
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

impl Part {
    const ALL: [Self; 4] = [Self::Copies, Self::Singles, Self::Change, Self::Load];

    /// Its time, in sheets.
    fn sheets(self, runs: u32) -> u32 {
        match self {
            Self::Copies => 2 * runs,
            Self::Singles => 2 * runs.div_ceil(2),
            Self::Change => 2 * (1 + change::CHANGES.len() as u32),
            Self::Load => 2 * 3,
        }
    }
}

/// The part of a CPU that a load uses when this part of the usual time has passed.
type Shape = fn(f64) -> f64;

/// Figures, and the promises that failed.
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
    let wanted = |part: &Part| terms.part.is_empty() || terms.part.contains(part);
    let parts: Vec<Part> = Part::ALL.into_iter().filter(wanted).collect();
    let shown = Kept::new(terms, &parts).and_then(|kept| {
        for part in parts {
            let show = match part {
                Part::Copies => copies,
                Part::Singles => singles,
                Part::Change => change::change,
                Part::Load => loads,
            };
            if let Err(why) = show(terms, &kept, &mut findings) {
                findings.failed.push(why);
            }
        }
        kept.done(findings.failed.is_empty())
    });
    findings.failed.extend(shown.err());
    let passed = findings.failed.is_empty();
    if !passed {
        findings.say("failed", json!(findings.failed.join("; ")));
    }
    Verdict { passed, figures: findings.figures }
}

/// Outputs of the command, one file for each run. The folder is named by the program and the terms, so its files belong
/// to both.
struct Kept {
    program: PathBuf,
    folder: PathBuf,
    /// Number of sheets that all comparisons take, and number of those done.
    planned: u32,
    there: Cell<u32>,
    /// Time and number of those that were measured in this run.
    took: RefCell<(Duration, u32)>,
}

impl Kept {
    fn new(terms: &Terms, parts: &[Part]) -> Result<Self, String> {
        let program = command()?;
        let changed = fs::metadata(&program).and_then(|data| data.modified());
        let changed = changed.map_err(|error| format!("look at {}: {error}", program.display()))?;
        let changed = changed.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let Terms { rounds, only, quick, .. } = terms;
        let quick = if *quick { "-quick" } else { "" };
        let folder = program.with_file_name(format!("agreement-{changed}-{rounds}{quick}-{only}"));
        if !terms.resume && folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| format!("remove {}: {error}", folder.display()))?;
        }
        fs::create_dir_all(&folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
        let planned = parts.iter().map(|part| part.sheets(terms.runs)).sum();
        let chapters: BTreeSet<&str> = only.split(',').filter_map(|id| id.split('.').next()).collect();
        let chapters = if only.is_empty() { CHAPTERS } else { chapters.len() };
        let minutes = f64::from(planned) * chapters as f64 * CHAPTER_S[usize::from(quick.is_empty())] / 60.0;
        println!("agreement: about {minutes:.0} minutes; kept in {}", folder.display());
        Ok(Self { program, folder, planned, there: Cell::new(0), took: RefCell::default() })
    }

    /// The output of the command with these arguments, which takes the time of `sheets` sheets.
    fn get(&self, name: &str, sheets: u32, arguments: &[String]) -> Result<String, String> {
        let file = self.folder.join(format!("{name}.json"));
        let text = match fs::read_to_string(&file) {
            Ok(text) => text,
            Err(_) => {
                let begun = Instant::now();
                let text = self.printed(arguments)?;
                // Under another name first: a file that is there is whole.
                let (new, failed) = (file.with_extension("new"), |error| format!("write {}: {error}", file.display()));
                fs::write(&new, &text).and_then(|()| fs::rename(&new, &file)).map_err(failed)?;
                let mut took = self.took.borrow_mut();
                *took = (took.0 + begun.elapsed(), took.1 + sheets);
                text
            }
        };
        self.there.set(self.there.get() + sheets);
        let (took, measured) = *self.took.borrow();
        let left =
            took.as_secs_f64() / f64::from(measured.max(1)) * f64::from(self.planned.saturating_sub(self.there.get()));
        println!("agreement: {name} is done; about {:.0} minutes remain", left / 60.0);
        Ok(text)
    }

    fn printed(&self, arguments: &[String]) -> Result<String, String> {
        let output = Command::new(&self.program).args(arguments).output();
        let output = output.map_err(|error| format!("run {}: {error}", self.program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // With any exit code: a comparison with too many void pairs is one, too.
        if text.trim_end().ends_with('}') && output.status.code() != Some(130) {
            return Ok(text);
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(format!("hairspring {}: {}: {}", arguments[0], output.status, complaint.trim()))
    }

    /// Removes the kept files of a run that is complete and has passed.
    fn done(self, passed: bool) -> Result<(), String> {
        if !passed {
            return Ok(());
        }
        fs::remove_dir_all(&self.folder).map_err(|error| format!("remove {}: {error}", self.folder.display()))
    }
}

/// One comparison of the command with its own copy.
fn ab(
    terms: &Terms,
    kept: &Kept,
    name: &str,
    seed: u32,
    spin: &BTreeMap<String, f64>,
) -> Result<(Interleaved, Comparison), String> {
    let program = kept.program.display().to_string();
    let mut arguments: Vec<String> = ["ab", &program, &program, "--format", "json"].map(str::to_owned).into();
    arguments.extend(["--rounds".to_owned(), terms.rounds.to_string(), "--seed".to_owned(), seed.to_string()]);
    arguments.extend(limits(terms));
    if !spin.is_empty() {
        let spin: Vec<String> = spin.iter().map(|(id, ns)| format!("{id}={ns}")).collect();
        arguments.extend(["--spin".to_owned(), spin.join(",")]);
    }
    let text = kept.get(name, 2, &arguments)?;
    let measured: Interleaved = serde_json::from_str(&text).map_err(|error| format!("read {name}: {error}"))?;
    let comparison = compare_interleaved(&measured, None);
    Ok((measured, comparison))
}

/// The options that limit the measured rows.
fn limits(terms: &Terms) -> impl Iterator<Item = String> {
    let only = (!terms.only.is_empty()).then(|| ["--only".to_owned(), terms.only.clone()]);
    terms.quick.then(|| "--quick".to_owned()).into_iter().chain(only.into_iter().flatten())
}

/// Verdicts of one comparison.
#[derive(Default)]
struct Told {
    /// Rows that were judged.
    judged: usize,
    /// Ids of the rows that are declared to differ.
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
                ratios.entry(chapter(&row.id).to_owned()).or_default().push(ratio.ln());
            }
        }
    }
    told.chapters = ratios.into_iter().map(|(chapter, ratios)| (chapter, middle(ratios))).collect();
    told
}

fn chapter(id: &str) -> &str {
    id.split('.').next().unwrap_or_default()
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// A comparison of the build with its copy.
fn copy(terms: &Terms, kept: &Kept, seed: u32) -> Result<(Interleaved, Comparison), String> {
    ab(terms, kept, &format!("copies-{seed}"), seed, &BTreeMap::new())
}

fn copies(terms: &Terms, kept: &Kept, findings: &mut Findings) -> Result<(), String> {
    let runs = (0..terms.runs).map(|seed| copy(terms, kept, seed)).collect::<Result<Vec<_>, _>>()?;
    let all: Vec<Told> = runs.iter().map(|(_, comparison)| told(comparison)).collect();
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
    let pairs = || runs.iter().flat_map(|(measured, _)| &measured.rows).flat_map(|row| &row.pairs);
    let void = pairs().filter(|pair| pair.void).count();
    findings.say("copies: void pairs", json!(format!("{void} of {}", pairs().count())));
    findings.say("copies: runs", json!(format!("{}, {} of them without result", all.len(), all.len() - counted.len())));
    findings.say("copies: declared", json!(format!("{declared} of {rows} comparisons of rows, in {declaring} runs")));
    let names: BTreeSet<&String> = counted.iter().flat_map(|told| &told.declared).collect();
    findings.say("copies: rows declared", json!(names));
    findings.say("copies: probability of the chapters' signs", json!(format!("{uneven:.3}")));
    findings.require(!counted.is_empty() && rows > 0, "no run has a result".to_owned());
    let most = (RUNS_MOST * counted.len() as f64).ceil() as usize;
    findings.require(declaring <= most, format!("{declaring} of {} runs declare a row", counted.len()));
    let few = declared as f64 <= (ROWS_MOST * rows as f64).max(1.0);
    findings.require(few, format!("{declared} of {rows} comparisons of rows are declared"));
    findings.require(uneven > SIGNS_LEAST, format!("the chapters' signs are uneven: p {uneven}"));
    for (chapter, ratios) in by_chapter {
        let ratio = middle(ratios).exp();
        findings.say(format!("copies: median ratio of {chapter}"), json!(format!("{ratio:.4}")));
        findings.require((ratio - 1.0).abs() <= CHAPTER_MOST, format!("the median ratio of {chapter} is {ratio:.3}"));
    }
    variances(&runs.iter().map(|(measured, _)| measured).collect::<Vec<_>>(), findings);
    Ok(())
}

/// Variance between rounds, and the part of it that comes from the process: the two of a pair share the time and not
/// the process.
fn variances(runs: &[&Interleaved], findings: &mut Findings) {
    let mut by_chapter: BTreeMap<&str, Vec<[f64; 2]>> = BTreeMap::new();
    for row in runs.iter().flat_map(|run| &run.rows) {
        if let Some(variances) = row_variances(row) {
            by_chapter.entry(chapter(&row.id)).or_default().push(variances);
        }
    }
    for (chapter, rows) in by_chapter {
        let noisy = rows.iter().filter(|[all, _]| all.sqrt() > NOISY).count();
        let share = middle(rows.iter().filter(|[all, _]| *all > 0.0).map(|[all, process]| process / all).collect());
        let sd = middle(rows.iter().map(|[all, _]| all.sqrt()).collect());
        findings.say(
            format!("variance of {chapter}"),
            json!(format!(
                "rounds vary by {:.1} % in the median row; {:.0} % of that variance is between processes, the rest over time; {noisy} of \
                 {} rows vary by more than 10 %",
                sd * 100.0,
                share.min(1.0) * 100.0,
                rows.len()
            )),
        );
    }
}

/// The variance of the logarithms of a row's rounds, and the process' part of it.
fn row_variances(row: &InterleavedRow) -> Option<[f64; 2]> {
    let logs = row.pairs.iter().filter(|pair| !pair.void).filter_map(|pair| Some([pair.baseline?, pair.other?]));
    let logs: Vec<[f64; 2]> = logs.map(|pair| pair.map(f64::ln)).collect();
    if logs.len() < 3 || logs.iter().flatten().any(|log| !log.is_finite()) {
        return None;
    }
    let of = |side: usize| variance(logs.iter().map(|pair| pair[side]));
    Some([(of(0) + of(1)) / 2.0, variance(logs.iter().map(|[a, b]| b - a)) / 2.0])
}

fn variance(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    values.map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)
}

/// The two-sided probability of a number of heads at least as uneven as `heads` in `tosses` tosses.
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

fn singles(terms: &Terms, kept: &Kept, findings: &mut Findings) -> Result<(), String> {
    let pairs = terms.runs.div_ceil(2);
    let mut declared = 0;
    for pair in 0..pairs {
        let sides = ["one", "another"].map(|name| {
            let sheet = sheet(terms, kept, &format!("singles-{pair}-{name}"))?;
            Ok(ComparedSheets { name: name.to_owned(), sheets: vec![sheet] })
        });
        let sides: Vec<ComparedSheets> = sides.into_iter().collect::<Result<_, String>>()?;
        declared += told(&compare(&sides, &CompareTerms::default())).declared.len();
    }
    findings.say("singles: rows declared", json!(format!("{declared} in {pairs} pairs of sheets")));
    findings.require(declared == 0, format!("{declared} rows of single sheets differ"));
    Ok(())
}

fn sheet(terms: &Terms, kept: &Kept, name: &str) -> Result<Sheet, String> {
    let arguments: Vec<String> =
        ["sheet", "--format", "json"].map(str::to_owned).into_iter().chain(limits(terms)).collect();
    from_json(&kept.get(name, 1, &arguments)?).map_err(|error| format!("failed to {error}"))
}

/// The standard deviation of the logarithms of values; infinite where one has none.
fn varies(values: Vec<f64>) -> f64 {
    let variance = variance(values.iter().map(|value| value.ln()));
    if variance.is_finite() { variance.sqrt() } else { f64::INFINITY }
}

fn loads(terms: &Terms, kept: &Kept, findings: &mut Findings) -> Result<(), String> {
    let usual = Duration::from_secs_f64(ab(terms, kept, "load-none", 3000, &BTreeMap::new())?.0.taken.duration_s);
    let shapes: [(&str, &str, Shape); 2] = [
        ("load-grows", "load that grows", |passed| 0.5 * passed.min(1.0)),
        ("load-begins", "load from the middle on", |passed| if passed < 0.5 { 0.0 } else { 0.5 }),
    ];
    for (file, name, shape) in shapes {
        let ended = AtomicBool::new(false);
        let told = std::thread::scope(|scope| {
            scope.spawn(|| work(usual, shape, &ended));
            let told = ab(terms, kept, file, 4000, &BTreeMap::new()).map(|(_, comparison)| told(&comparison));
            // Relaxed: a plain flag; the scope's end joins the thread.
            ended.store(true, Ordering::Relaxed);
            told
        })?;
        let (declared, judged) = (told.declared.len(), told.judged);
        let what = if told.void {
            "no result: too many pairs are void".to_owned()
        } else {
            format!("{declared} of {judged} rows declared")
        };
        findings.say(name, json!(what));
        let few = told.void || declared as f64 <= (ROWS_MOST * judged as f64).max(1.0);
        findings.require(few, format!("{name}: {declared} of {judged} rows are declared"));
    }
    Ok(())
}

/// Uses a part of a CPU that changes with the time, in periods of 10 ms.
fn work(usual: Duration, shape: Shape, ended: &AtomicBool) {
    const PERIOD: Duration = Duration::from_millis(10);
    let began = Instant::now();
    // Relaxed: a plain flag that publishes no other data.
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
