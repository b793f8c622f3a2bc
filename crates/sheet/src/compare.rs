//! Comparing sheets: what differs in the conditions, then every figure against its fellow of the same id.
//!
//! Problem: two medians are never equal, and most differences between two sheets mean nothing.
//! Solution: each median comes with a 95 % interval from its order statistics. Two medians are called different only if
//! their intervals do not meet; the interval of their ratio joins the worst ends of both, so it is wider than 95 %
//! demands, never narrower. A difference that is shown is then held against the spread within the sheets: a median that
//! moved by less than its own interquartile range is real and yet smaller than what any single event varies by.
//! A document that has no medians is compared by its means, or by its maxima, and says so: without an interval, a
//! ratio is all there is.
//! Conditions: samples within a sheet are taken to be independent. Two sheets of one machine vary by more than
//! their samples do, so take several of each before believing a small difference.

use std::collections::HashSet;

use crate::{Centre, FactValue, Figure, Row, Sheet, Unit, Value};

/// Sheets compared with the first of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The sheets, the baseline first: machine, time and build, to tell them apart.
    pub sheets: Vec<String>,
    /// The facts that are not the same in all sheets.
    pub conditions: Vec<DifferingFact>,
    /// One entry for each id, in the order of the baseline, then those that only others have.
    pub rows: Vec<ComparedRow>,
}

/// A fact that is not the same in all sheets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferingFact {
    /// Id of the fact.
    pub id: String,
    /// What it is, for people.
    pub label: String,
    /// Its value in each sheet, in their order; `None` where the sheet has it not, or has it as absent.
    pub values: Vec<Option<String>>,
}

/// One id in all sheets.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRow {
    /// Id of the row.
    pub id: String,
    /// What it is, for people.
    pub label: String,
    /// Which statistic is compared: the first that all figures have of median, mean and maximum.
    pub centre: Centre,
    /// What the baseline has.
    pub baseline: ComparedSide,
    /// Each of the other sheets against the baseline, in their order.
    pub others: Vec<Against>,
    /// The greatest of the compared values over the least one, over all sheets; `None` with fewer than two positive ones.
    pub spread_of_values: Option<f64>,
}

/// What one sheet has for an id.
#[derive(Clone, Debug, PartialEq)]
pub enum ComparedSide {
    /// A figure with a value to compare.
    Measured {
        /// The unit of the numbers.
        unit: Unit,
        /// How many samples there are.
        n: u64,
        /// The median, or the statistic that the row compares.
        value: f64,
        /// The 95 % interval of the median; `None` below 6 samples, and for other statistics.
        interval: Option<[f64; 2]>,
        /// Interquartile range; `None` below 4 samples.
        spread: Option<f64>,
    },
    /// The row is there, but without a figure, for this reason.
    Absent(String),
    /// The sheet has no such row.
    Missing,
}

/// Another sheet's figure against the baseline's.
#[derive(Clone, Debug, PartialEq)]
pub struct Against {
    /// What the other sheet has.
    pub side: ComparedSide,
    /// Its value over the baseline's; `None` unless both are positive.
    pub ratio: Option<f64>,
    /// An interval that holds the true ratio with at least 95 %; `None` without intervals on both sides.
    pub interval: Option<[f64; 2]>,
    /// What may be said.
    pub verdict: RowVerdict,
}

/// What may be said of two medians.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowVerdict {
    /// The intervals of the medians meet, or the values are equal.
    NoDifferenceShown,
    /// The other median is higher.
    Higher {
        /// Whether it moved by less than the interquartile range of either sheet.
        within_spread: bool,
    },
    /// The other median is lower.
    Lower {
        /// Whether it moved by less than the interquartile range of either sheet.
        within_spread: bool,
    },
    /// One side has fewer than 6 samples, which make no interval.
    TooFewSamples,
    /// One side states no interval, although it has samples enough: a document without it.
    NoInterval,
    /// Only the baseline has the row.
    OnlyInBaseline,
    /// Only the other sheet has the row.
    OnlyInOther,
    /// The baseline has the row, but no figure in it.
    AbsentInBaseline,
    /// The other sheet has the row, but no figure in it.
    AbsentInOther,
    /// Neither sheet has a figure for this id.
    AbsentInBoth,
    /// The two figures have different units and cannot be compared: one of the sheets is wrong.
    UnitsDiffer,
}

/// Compares sheets with a baseline. Never fails: what cannot be compared says so in its verdict.
pub fn compare(baseline: &Sheet, others: &[Sheet]) -> Comparison {
    let sheets: Vec<&Sheet> = std::iter::once(baseline).chain(others).collect();
    let mut seen = HashSet::new();
    let rows = sheets.iter().flat_map(|s| s.rows()).filter(|row| seen.insert(row.id.as_str()));
    Comparison {
        sheets: sheets.iter().map(|s| name(s)).collect(),
        conditions: differing_facts(&sheets),
        rows: rows.map(|row| compared_row(row, &sheets)).collect(),
    }
}

fn compared_row(row: &Row, sheets: &[&Sheet]) -> ComparedRow {
    let rows: Vec<Option<&Row>> = sheets.iter().map(|s| s.row(&row.id)).collect();
    let figures: Vec<&Figure> = rows.iter().filter_map(|row| row.and_then(Row::figure)).collect();
    let in_all = |centre: &Centre| figures.iter().all(|figure| centre.of(figure).is_some());
    let centre = Centre::ALL.into_iter().find(in_all).unwrap_or(Centre::Median);
    let sides: Vec<ComparedSide> = rows.into_iter().map(|row| ComparedSide::of(row, centre)).collect();
    let spread_of_values = spread_of_values(&sides);
    let mut sides = sides.into_iter();
    let baseline = sides.next().unwrap_or(ComparedSide::Missing);
    let others = sides.map(|side| against(&baseline, side)).collect();
    ComparedRow { id: row.id.clone(), label: row.label.clone(), centre, baseline, others, spread_of_values }
}

impl ComparedSide {
    fn of(row: Option<&Row>, centre: Centre) -> Self {
        match row.map(|row| &row.value) {
            None => ComparedSide::Missing,
            Some(Value::Absent(absent)) => ComparedSide::Absent(absent.reason.clone()),
            Some(Value::Figure(figure)) => ComparedSide::of_figure(figure, centre),
        }
    }

    fn of_figure(figure: &Figure, centre: Centre) -> Self {
        let Some(value) = centre.of(figure) else {
            let reason = if figure.n == 0 { "there are no samples" } else { "no statistic is in all the sheets" };
            return ComparedSide::Absent(reason.to_owned());
        };
        let (mut interval, mut spread) = (None, None);
        if centre == Centre::Median {
            interval = figure.median_interval;
            spread = figure.q1.zip(figure.q3).map(|(q1, q3)| q3 - q1);
        }
        ComparedSide::Measured { unit: figure.unit, n: figure.n, value, interval, spread }
    }

    /// The value that is compared, where there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            ComparedSide::Measured { value, .. } => Some(*value),
            ComparedSide::Absent(_) | ComparedSide::Missing => None,
        }
    }
}

fn against(baseline: &ComparedSide, side: ComparedSide) -> Against {
    let (mut ratio, mut interval) = (None, None);
    let verdict = match (baseline, &side) {
        (
            ComparedSide::Measured { unit, n: a_n, value: a, interval: a_interval, spread: a_spread },
            ComparedSide::Measured { unit: b_unit, n: b_n, value: b, interval: b_interval, spread: b_spread },
        ) => {
            if unit == b_unit {
                let intervals = a_interval.zip(*b_interval);
                ratio = (*a > 0.0 && *b > 0.0).then(|| b / a);
                interval = intervals.and_then(|(a, b)| ratio_interval(a, b)).filter(|_| ratio.is_some());
                let spread = a_spread.zip(*b_spread).map(|(a, b)| a.max(b));
                let without = if *a_n.min(b_n) < 6 { RowVerdict::TooFewSamples } else { RowVerdict::NoInterval };
                verdict(*a, *b, intervals, spread, without)
            } else {
                RowVerdict::UnitsDiffer
            }
        }
        (ComparedSide::Measured { .. }, ComparedSide::Absent(_)) => RowVerdict::AbsentInOther,
        (ComparedSide::Measured { .. } | ComparedSide::Absent(_), ComparedSide::Missing) => RowVerdict::OnlyInBaseline,
        (ComparedSide::Absent(_), ComparedSide::Measured { .. }) => RowVerdict::AbsentInBaseline,
        (ComparedSide::Missing, ComparedSide::Measured { .. } | ComparedSide::Absent(_)) => RowVerdict::OnlyInOther,
        (ComparedSide::Absent(_), ComparedSide::Absent(_)) | (ComparedSide::Missing, ComparedSide::Missing) => {
            RowVerdict::AbsentInBoth
        }
    };
    Against { side, ratio, interval, verdict }
}

/// Judges by the medians' intervals rather than by their ratio, so that it holds for zero and below as well. For positive
/// medians it is the same: the intervals meet exactly if the interval of the ratio encloses 1.
fn verdict(
    a: f64,
    b: f64,
    intervals: Option<([f64; 2], [f64; 2])>,
    spread: Option<f64>,
    without: RowVerdict,
) -> RowVerdict {
    let Some(([a_low, a_high], [b_low, b_high])) = intervals else {
        return if a == b { RowVerdict::NoDifferenceShown } else { without };
    };
    if a_low <= b_high && b_low <= a_high {
        return RowVerdict::NoDifferenceShown;
    }
    let within_spread = spread.is_some_and(|spread| (b - a).abs() < spread);
    if b > a { RowVerdict::Higher { within_spread } } else { RowVerdict::Lower { within_spread } }
}

fn ratio_interval([a_low, a_high]: [f64; 2], [b_low, b_high]: [f64; 2]) -> Option<[f64; 2]> {
    (a_low > 0.0 && b_low > 0.0).then(|| [b_low / a_high, b_high / a_low])
}

fn spread_of_values(sides: &[ComparedSide]) -> Option<f64> {
    let unit_of = |side: &ComparedSide| match side {
        ComparedSide::Measured { unit, .. } => Some(*unit),
        ComparedSide::Absent(_) | ComparedSide::Missing => None,
    };
    let units: Vec<Unit> = sides.iter().filter_map(unit_of).collect();
    let values: Vec<f64> = sides.iter().filter_map(ComparedSide::value).collect();
    let comparable = values.len() >= 2 && values.iter().all(|v| *v > 0.0) && units.iter().all(|u| *u == units[0]);
    let (low, high) = values.iter().fold((f64::MAX, 0.0f64), |(low, high), v| (low.min(*v), high.max(*v)));
    comparable.then(|| high / low)
}

fn differing_facts(sheets: &[&Sheet]) -> Vec<DifferingFact> {
    let mut seen = HashSet::new();
    let facts = sheets.iter().flat_map(|s| &s.conditions.facts).filter(|fact| seen.insert(fact.id.as_str()));
    let values = |id: &str| -> Vec<Option<String>> {
        sheets.iter().map(|s| s.conditions.value(id).map(str::to_owned)).collect()
    };
    let differing = facts.map(|f| DifferingFact { id: f.id.clone(), label: f.label.clone(), values: values(&f.id) });
    let build = |s: &&Sheet| {
        let build = &s.hairspring;
        let commit = build.commit.as_deref().map_or(String::new(), |c| format!(" ({c})"));
        Some(format!("{}{commit}, {}, {}", build.version, build.compiler, build.flags))
    };
    let named = |id: &str, label: &str, values: Vec<Option<String>>| DifferingFact {
        id: id.to_owned(),
        label: label.to_owned(),
        values,
    };
    let own = [
        named("hairspring", "Build of hairspring", sheets.iter().map(build).collect()),
        named("taken.effort", "Effort", sheets.iter().map(|s| Some(s.taken.effort.clone())).collect()),
    ];
    own.into_iter().chain(differing).filter(|f| f.values.iter().any(|v| *v != f.values[0])).collect()
}

/// What tells a sheet from the others.
fn name(sheet: &Sheet) -> String {
    let value = |id: &str| match sheet.conditions.facts.iter().find(|f| f.id == id).map(|f| &f.value) {
        Some(FactValue::Value(value)) => Some(value.as_str()),
        _ => None,
    };
    [value("host.name"), value("cpu.model"), Some(&sheet.taken.when())]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(", ")
}
