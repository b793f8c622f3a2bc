//! Two builds that were measured in turns, and the verdicts on them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Against, ComparedRow, ComparedSide, Comparison, Doubt, Grounds, RowVerdict, SideSummary, VERDICTS_SCHEMA, judge,
    shift,
};
use crate::statistics::{Difference, Margins, Scale, middle};
use crate::{Build, Centre, Method, Taken, Unit};

/// The version of the JSON form of [`Interleaved`].
pub const COMPARISON_SCHEMA: &str = "hairspring.comparison/1";

/// More than this share of void pairs leaves no result.
const VOID_MAX: f64 = 0.2;

/// Two builds that were measured in turns, round by round.
///
/// A driver fills it as follows. A round measures a chapter with both builds, one right after the other, each in a
/// fresh process; the order of the two changes from round to round in a balanced random sequence. Every row has one
/// [`RoundPair`] a round: the medians of the two processes. A pair is void if a sentinel changed beyond its limit
/// between the two; that is decided without looking at the figures. Void pairs stay in the document and do not count.
/// Pairs that are measured again are further pairs with the same `round`. The number of rounds is fixed beforehand.
/// With several builds a side, round `r` measures those with the number `r` modulo their number, and a pair of builds
/// counts as one value.
///
/// [`compare_interleaved`] judges it. Sheets of the two sides are documents of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interleaved {
    /// Always [`COMPARISON_SCHEMA`].
    pub schema: String,
    /// When it was taken, how long it took, and whether it was interrupted: then it has only the complete pairs.
    pub taken: Taken,
    /// The baseline build.
    pub baseline: ComparedBuild,
    /// The other build.
    pub other: ComparedBuild,
    /// The seed of the order and of the padding of the environment.
    pub seed: u64,
    /// How many rounds were planned.
    pub rounds: usize,
    /// How many builds of each side took turns, one pair of them in each round; 1 if it is missing.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub builds: usize,
    /// The rows, in the order of the sheets.
    pub rows: Vec<InterleavedRow>,
    /// The driver's own measurements beside each round: code that neither build contains. Ids begin with `sentinels.`;
    /// may be empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sentinels: Vec<InterleavedRow>,
    /// By the id of a sentinel, the change beyond which it makes a pair void, as a fraction. It was set after the last
    /// round, before any figure was looked at.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, f64>,
    /// The same rows for a copy of the baseline in place of the other build; empty without a third arm.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub null: Vec<InterleavedRow>,
    /// The number of rows of a first stage, if these rows are its candidates, measured again; null without a first
    /// stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screened: Option<usize>,
}

/// One of two builds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ComparedBuild {
    /// Its name for people: usually the file as named; of several builds all names, with commas between.
    pub name: String,
    /// Hash of the program, in hexadecimal digits; of several builds all of them, with commas between. Equal hashes
    /// make a comparison of a build with itself.
    pub hash: String,
    /// Version, commit, compiler and flags, as its sheets state them.
    pub build: Build,
}

/// One row of two builds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InterleavedRow {
    /// Id of the row.
    pub id: String,
    /// Its label, for people.
    pub label: String,
    /// The unit of all numbers.
    pub unit: Unit,
    /// How the samples were taken: counts have no verdict.
    pub method: Method,
    /// The size of one step of the counter in it; null if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quantum: Option<f64>,
    /// The pairs, in the order in which they were taken.
    pub pairs: Vec<RoundPair>,
}

/// The results of two builds, one right after the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RoundPair {
    /// The round, counted from 0.
    pub round: u32,
    /// The median of the baseline; null if it has none.
    pub baseline: Option<f64>,
    /// The median of the other build; null if it has none.
    pub other: Option<f64>,
    /// Whether the baseline was measured first.
    pub baseline_first: bool,
    /// Whether the machine was disturbed, so that the pair does not count.
    pub void: bool,
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_one(builds: &usize) -> bool {
    *builds == 1
}

/// Judges two builds that were measured in turns. Never fails: rows that cannot be judged have a verdict for that.
///
/// `same` is the margin of *same* as a fraction, in place of 5 %.
pub fn compare_interleaved(measured: &Interleaved, same: Option<f64>) -> Comparison {
    let pairs = || measured.rows.iter().flat_map(|row| &row.pairs);
    let (all, void) = (pairs().count(), pairs().filter(|pair| pair.void).count());
    let disturbed = void as f64 > VOID_MAX * all as f64;
    let builds = measured.builds;
    let compared = |rows: &[InterleavedRow]| -> Vec<ComparedRow> {
        rows.iter().map(|row| compared_row(row, builds, same, disturbed)).collect()
    };
    let mut rows = compared(&measured.rows);
    judge::judge(&mut rows);
    let sentinels = compared(&measured.sentinels);
    let mut null = compared(&measured.null);
    judge::judge(&mut null);
    let counted = |row: &InterleavedRow| row.counted().len();
    let side = |side: &ComparedBuild| {
        let build = &side.build;
        let commit = build.commit.as_deref().map_or(String::new(), |commit| format!(" ({commit})"));
        SideSummary {
            name: side.name.clone(),
            taken: vec![format!("{}{commit}, {}, {}", build.version, build.compiler, build.flags)],
        }
    };
    let remarks = [
        (measured.baseline.hash == measured.other.hash)
            .then(|| "Both builds are the same program: every difference here is a false finding.".to_owned()),
        measured
            .taken
            .interrupted
            .then(|| "It was interrupted: the rounds that were complete are compared.".to_owned()),
        (void > 0).then(|| format!("{void} of {all} pairs were void, because the machine was disturbed.")),
        disturbed.then(|| "That is too many for a result: repeat it when the machine is quieter.".to_owned()),
        measured.screened.map(|rows| {
            format!(
                "A first stage measured {rows} figures; those that stood out were measured again and are judged here."
            )
        }),
        null_arm(&null),
    ];
    Comparison {
        schema: VERDICTS_SCHEMA.to_owned(),
        sides: vec![side(&measured.baseline), side(&measured.other)],
        grounds: vec![if builds > 1 {
            Grounds::Builds(builds)
        } else {
            Grounds::Turns(measured.rows.iter().map(counted).max().unwrap_or(0))
        }],
        conditions: Vec::new(),
        shifts: shift::shifts(&rows, 1, &sentinels),
        rows,
        remarks: remarks.into_iter().flatten().collect(),
    }
}

/// The comparison of a copy of the baseline with the baseline.
fn null_arm(null: &[ComparedRow]) -> Option<String> {
    let declared = null.iter().flat_map(|row| &row.others).filter(|other| other.verdict.differs()).count();
    let bad = if declared > 1 { " More than one is too many: this run is not calibrated." } else { "" };
    (!null.is_empty()).then(|| {
        format!(
            "A copy of the baseline was measured too: {declared} of {} figures differ, all falsely.{bad}",
            null.len()
        )
    })
}

impl InterleavedRow {
    /// The pairs that count.
    fn counted(&self) -> Vec<[f64; 2]> {
        let counts = |pair: &&RoundPair| !pair.void;
        self.pairs.iter().filter(counts).filter_map(|pair| Some([pair.baseline?, pair.other?])).collect()
    }

    /// One pair for each pair of builds: the middle of their rounds on the scale.
    fn by_build(&self, builds: usize, scale: Scale) -> Vec<[f64; 2]> {
        let of = |build: usize| {
            let of_build = |pair: &&RoundPair| !pair.void && pair.round as usize % builds == build;
            let pairs = self.pairs.iter().filter(of_build);
            let pairs: Vec<[f64; 2]> = pairs.filter_map(|pair| Some([pair.baseline?, pair.other?])).collect();
            let mean = |side: usize| {
                let sum: f64 = pairs.iter().map(|pair| scale.place(pair[side])).sum();
                scale.value(sum / pairs.len() as f64)
            };
            (!pairs.is_empty()).then(|| [mean(0), mean(1)])
        };
        (0..builds).filter_map(of).collect()
    }

    fn side(&self, of: fn(&RoundPair) -> Option<f64>) -> ComparedSide {
        let values: Vec<f64> = self.pairs.iter().filter(|pair| !pair.void).filter_map(of).collect();
        middle(&values).map_or(ComparedSide::Missing, |value| ComparedSide::Measured { unit: self.unit, value, values })
    }
}

fn compared_row(row: &InterleavedRow, builds: usize, same: Option<f64>, disturbed: bool) -> ComparedRow {
    let (baseline, other) = (row.side(|pair| pair.baseline), row.side(|pair| pair.other));
    let against = match super::matched(&baseline, &other) {
        Err(unmatched) => Against::unmatched(other, unmatched),
        Ok(values) => {
            let centres = values.each_ref().map(|values| middle(values).unwrap_or(0.0));
            let scale = Scale::of(&values.concat());
            let pairs = if builds > 1 { row.by_build(builds, scale) } else { row.counted() };
            let counted = row.method == Method::Count || row.unit == Unit::Count;
            let mut against = Against::doubted(other, Doubt::NotJudged);
            against.ratio = (scale == Scale::Log).then(|| centres[1] / centres[0]);
            against.margins = Margins::of(row.unit, scale, centres, row.quantum, same).filter(|_| !counted);
            let difference = Difference::paired(&pairs, scale, row.quantum);
            if against.margins.is_some() {
                against.verdict = RowVerdict::CannotTell(if disturbed { Doubt::Void } else { Doubt::TooFew });
            }
            if let Some(difference) = difference.filter(|_| against.margins.is_some()) {
                against.show(&difference);
                against.difference = Some(difference).filter(|_| !disturbed);
            }
            against
        }
    };
    let (id, label) = (row.id.clone(), row.label.clone());
    ComparedRow { id, label, centre: Centre::Median, baseline, others: vec![against] }
}
