//! Comparing sheets: the differences of the conditions, then a verdict for every figure.
//!
//! Problem: two medians are never equal, and most differences between two sheets mean nothing. Samples of one run
//! depend on each other, whole chapters shift between runs, and two sheets of one build taken 20 s apart differ in half
//! of their figures by more than their samples explain.
//!
//! Solution: three verdicts. A figure *differs*, is *the same within* a margin, or is undecided, with the difference
//! that the comparison could have detected. The unit of every test is the level that varies between two measurements: a
//! sheet, or a pair of rounds of an [`Interleaved`] comparison. Over all rows, at most 5 % of the figures that are
//! declared different are expected to be false.
//!
//! Conditions: the rounds of one sheet do not show how much the machine drifts until the next sheet, so two single
//! sheets decide nothing. Three sheets a side do, or a [`SheetLedger`] of the variation between sheets of this machine.
//!
//! Counts, largest values and documents without medians have ratios and no verdicts.

mod conditions;
mod interleaved;
mod judge;
mod ledger;
mod shift;

use std::collections::{HashMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

pub use conditions::DifferingFact;
pub use interleaved::{COMPARISON_SCHEMA, ComparedBuild, Interleaved, InterleavedRow, RoundPair, compare_interleaved};
pub use ledger::{LEDGER_MIN, LedgerError, SheetLedger};
pub use shift::ChapterShift;

use crate::statistics::{Difference, Margins, Scale, Units, middle};
use crate::{Centre, Figure, Method, Row, RowPattern, Sheet, Unit, Value};
pub(crate) use shift::chapter;

/// The number of sheets a side from which on a sheet is the unit of the comparison.
pub(crate) const SHEETS_MIN: usize = 3;

/// The version of the JSON form of a [`Comparison`].
pub const VERDICTS_SCHEMA: &str = "hairspring.verdicts/1";

/// One side of a comparison: sheets of one build on one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedSheets {
    /// Its name, for people.
    pub name: String,
    /// Its sheets; at least one.
    pub sheets: Vec<Sheet>,
}

/// Options of a comparison.
#[derive(Clone, Debug, Default)]
pub struct CompareTerms {
    /// The margin of *same*, as a fraction, in place of 5 %.
    pub same: Option<f64>,
    /// Variation of the sheets of this machine.
    pub ledger: Option<SheetLedger>,
    /// Only rows that one of these covers; all rows if empty.
    pub only: Vec<RowPattern>,
}

/// Sides compared with the first of them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// Always [`VERDICTS_SCHEMA`].
    pub schema: String,
    /// The sides, the baseline first.
    pub sides: Vec<SideSummary>,
    /// The basis of verdicts on each of the other sides, in their order.
    pub grounds: Vec<Grounds>,
    /// The facts that differ between sides.
    pub conditions: Vec<DifferingFact>,
    /// Chapters that moved as a whole.
    pub shifts: Vec<ChapterShift>,
    /// One entry for each id, in the order of the baseline, then those that only others have.
    pub rows: Vec<ComparedRow>,
    /// Notes to read first: builds that are the same program, void pairs.
    pub remarks: Vec<String>,
}

/// One side, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SideSummary {
    /// Its name, for people.
    pub name: String,
    /// Machine and time of each of its sheets; or its build.
    pub taken: Vec<String>,
}

/// The basis of a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Grounds {
    /// Rounds of both sides, taken in turns: the number of pairs.
    Turns(usize),
    /// Several builds of both sides, taken in turns: the number of pairs of builds.
    Builds(usize),
    /// There are at least three sheets on both sides; the number is that of the side with fewer.
    Sheets(usize),
    /// A ledger of the variation between sheets of this machine: the number of its sheets.
    Ledger(usize),
    /// Too few sheets, so no figure has a verdict.
    SingleSheets,
}

impl Grounds {
    /// The unit of which more would decide more, for people.
    pub(crate) fn units(self) -> &'static str {
        match self {
            Self::Turns(_) => "rounds",
            Self::Builds(_) => "builds a side",
            Self::Sheets(_) | Self::Ledger(_) | Self::SingleSheets => "sheets a side",
        }
    }
}

/// One id on all sides.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ComparedRow {
    /// Id of the row.
    pub id: String,
    /// Its label, for people.
    pub label: String,
    /// Which statistic is compared: the first that all figures have of median, mean and maximum.
    pub centre: Centre,
    /// The baseline's entry.
    pub baseline: ComparedSide,
    /// Each of the other sides against the baseline, in their order.
    pub others: Vec<Against>,
}

/// The entry of one side for an id.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComparedSide {
    /// A figure with a value to compare.
    Measured {
        /// The unit of the number.
        unit: Unit,
        /// The median, or the compared statistic of the row; over several sheets or rounds their median.
        value: f64,
        /// The values of the units: of every sheet, or of every valid round.
        values: Vec<f64>,
    },
    /// The side has the row, but no figure, for this reason.
    Absent(String),
    /// The side has no such row.
    Missing,
}

/// Another side's figure compared with the baseline's.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Against {
    /// The other side's entry.
    pub side: ComparedSide,
    /// Its value over the baseline's; `None` unless both are positive.
    pub ratio: Option<f64>,
    /// An interval that holds the true ratio with 95 %, or the true difference if one of the values is not positive.
    /// Between single sheets it comes from their rounds, without the drift of the machine; `None` if rounds are
    /// unknown.
    pub interval: Option<[f64; 2]>,
    /// The difference on which a verdict rests; `None` if there is none.
    pub difference: Option<Difference>,
    /// The null region and the margin of *same*; `None` for kinds of rows without verdicts.
    pub margins: Option<Margins>,
    /// The verdict.
    pub verdict: RowVerdict,
}

/// The verdict on a figure of two sides. Changes are fractions of the baseline (0.12 is 12 % more), or differences in
/// the unit of the row if one of its values is not positive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowVerdict {
    /// The true change is at least this one, negative for less.
    Differs {
        /// The end of the interval nearer to zero, at the level at which the row was declared.
        at_least: f64,
        /// The margin within which it is the same for most purposes, although it differs.
        within: Option<f64>,
    },
    /// The true change is smaller than this margin.
    Same {
        /// The margin.
        within: f64,
    },
    /// Neither a difference nor equality was shown.
    CannotTell(Doubt),
    /// There are not two figures to compare.
    Unmatched(Unmatched),
}

/// Why two figures are undecided.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The figure varies too much.
    Varies {
        /// The smallest change that such a comparison would show in four of five cases.
        smallest: f64,
        /// The number of rounds, or sheets, a side that would show a change as large as the margin of *same*; null if
        /// more than 1,000.
        needed: Option<usize>,
    },
    /// The sheets are too few, and the variation between sheets of this machine is unknown.
    SingleSheets,
    /// This row is in fewer than three sheets of a side, in too few of the ledger, or in fewer than two pairs of
    /// rounds.
    TooFew,
    /// Largest values, counts and means of single documents have no verdict.
    NotJudged,
    /// Too many pairs of rounds were disturbed.
    Void,
}

/// Why there are not two figures to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unmatched {
    /// Only the baseline has the row.
    OnlyInBaseline,
    /// Only the other side has the row.
    OnlyInOther,
    /// The baseline has the row, but no figure in it.
    AbsentInBaseline,
    /// The other side has the row, but no figure in it.
    AbsentInOther,
    /// Neither side has a figure for this id.
    AbsentInBoth,
    /// The two figures have different units and cannot be compared: one of the sheets is wrong.
    UnitsDiffer,
}

/// The rows of one sheet by their ids.
type Rows<'a> = HashMap<&'a str, &'a Row>;

fn by_id(sheet: &Sheet) -> Rows<'_> {
    sheet.rows().map(|row| (row.id.as_str(), row)).collect()
}

/// Compares sides with the first of them. Never fails: rows that cannot be compared have a verdict for that.
pub fn compare(sides: &[ComparedSheets], terms: &CompareTerms) -> Comparison {
    let index: Vec<Vec<Rows<'_>>> = sides.iter().map(|side| side.sheets.iter().map(by_id).collect()).collect();
    let mut seen = HashSet::new();
    let wanted = |row: &&Row| terms.only.is_empty() || terms.only.iter().any(|pattern| pattern.covers(&row.id));
    let all = sides.iter().flat_map(|side| &side.sheets).flat_map(Sheet::rows);
    let ids = all.filter(wanted).filter(|row| seen.insert(row.id.as_str()));
    let mut rows: Vec<ComparedRow> = ids.map(|row| compared_row(row, &index, terms)).collect();
    judge::judge(&mut rows);
    let fewest = |other: &ComparedSheets| sides.first().map_or(0, |side| side.sheets.len()).min(other.sheets.len());
    let grounds = |other| match &terms.ledger {
        _ if fewest(other) >= SHEETS_MIN => Grounds::Sheets(fewest(other)),
        Some(ledger) => Grounds::Ledger(ledger.sheets()),
        None => Grounds::SingleSheets,
    };
    let summary = |side: &ComparedSheets| SideSummary {
        name: side.name.clone(),
        taken: side.sheets.iter().map(conditions::machine_and_time).collect(),
    };
    Comparison {
        schema: VERDICTS_SCHEMA.to_owned(),
        sides: sides.iter().map(summary).collect(),
        grounds: sides.iter().skip(1).map(grounds).collect(),
        conditions: conditions::differing(sides),
        shifts: shift::shifts(&rows, sides.len().saturating_sub(1), &[]),
        rows,
        remarks: Vec::new(),
    }
}

/// The entry of one side for an id: the number of its sheets, the figures in them, and the side for display.
struct OneSide<'a> {
    sheets: usize,
    figures: Vec<&'a Figure>,
    shown: ComparedSide,
}

fn compared_row(row: &Row, index: &[Vec<Rows<'_>>], terms: &CompareTerms) -> ComparedRow {
    let id = row.id.as_str();
    let found: Vec<Vec<&Row>> =
        index.iter().map(|sheets| sheets.iter().filter_map(|rows| rows.get(id).copied()).collect()).collect();
    let in_all = |centre: &Centre| {
        found.iter().flatten().filter_map(|row| row.figure()).all(|figure| centre.of(figure).is_some())
    };
    let centre = Centre::ALL.into_iter().find(in_all).unwrap_or(Centre::Median);
    let sides = index.iter().zip(&found).map(|(sheets, rows)| OneSide::new(sheets.len(), rows, centre));
    let sides: Vec<OneSide<'_>> = sides.collect();
    let others = sides.iter().skip(1).map(|other| against(id, &sides[0], other, centre, terms)).collect();
    let baseline = sides.into_iter().next().map_or(ComparedSide::Missing, |side| side.shown);
    ComparedRow { id: row.id.clone(), label: row.label.clone(), centre, others, baseline }
}

impl<'a> OneSide<'a> {
    fn new(sheets: usize, rows: &[&'a Row], centre: Centre) -> Self {
        let figures: Vec<&Figure> = rows.iter().filter_map(|row| row.figure()).collect();
        let values: Vec<f64> = figures.iter().filter_map(|figure| centre.of(figure)).collect();
        let reason = rows.iter().find_map(|row| match &row.value {
            Value::Absent(absent) => Some(absent.reason.clone()),
            Value::Figure(_) => None,
        });
        let shown = match (figures.first(), middle(&values)) {
            (Some(figure), Some(value)) => ComparedSide::Measured { unit: figure.unit, value, values },
            (Some(figure), None) if figure.n == 0 => ComparedSide::Absent("there are no samples".to_owned()),
            (Some(_), None) => ComparedSide::Absent("no statistic is in all the sheets".to_owned()),
            (None, _) => reason.map_or(ComparedSide::Missing, ComparedSide::Absent),
        };
        Self { sheets, figures, shown }
    }

    /// The rounds of its only sheet.
    fn rounds(&self, scale: Scale, quantum: Option<f64>) -> Option<Units> {
        let [figure] = self.figures.as_slice() else { return None };
        let medians: Vec<f64> = figure.rounds.iter().map(|round| round.median).collect();
        Units::new(&medians, scale, quantum)
    }
}

/// One row of another side compared with the baseline's, without the verdict, which depends on all rows together.
fn against(id: &str, baseline: &OneSide<'_>, other: &OneSide<'_>, centre: Centre, terms: &CompareTerms) -> Against {
    let (values, mut against) = match matched(&baseline.shown, &other.shown) {
        Ok(values) => (values, Against::doubted(other.shown.clone(), Doubt::NotJudged)),
        Err(unmatched) => return Against::unmatched(other.shown.clone(), unmatched),
    };
    let both = || baseline.figures.iter().chain(&other.figures);
    let (unit, scale) = (both().next().map_or(Unit::Ns, |figure| figure.unit), Scale::of(&values.concat()));
    let centres = values.each_ref().map(|values| middle(values).unwrap_or(0.0));
    against.ratio = (scale == Scale::Log).then(|| centres[1] / centres[0]);
    if both().any(|figure| figure.unit != unit) {
        return Against::unmatched(against.side, Unmatched::UnitsDiffer);
    }
    let counted = both().any(|figure| figure.method == Method::Count || figure.unit == Unit::Count);
    let quantum = both().filter_map(|figure| figure.quantum).max_by(f64::total_cmp);
    against.margins =
        Margins::of(unit, scale, centres, quantum, terms.same).filter(|_| centre == Centre::Median && !counted);
    if against.margins.is_none() {
        return against;
    }
    let units = values.each_ref().map(|values| Units::new(values, scale, quantum));
    let [Some(a), Some(b)] = units else { return against };
    let enough = baseline.sheets.min(other.sheets) >= SHEETS_MIN;
    let (difference, doubt) = match &terms.ledger {
        _ if enough && a.count.min(b.count) < SHEETS_MIN => (None, Doubt::TooFew),
        _ if enough => (Difference::between_groups(&a, &b), Doubt::TooFew),
        Some(ledger) => (ledger.difference(id, &a, &b, quantum), Doubt::TooFew),
        None => (None, Doubt::SingleSheets),
    };
    against.verdict = RowVerdict::CannotTell(doubt);
    // The interval from the rounds of two single sheets is shown, but decides nothing.
    let rounds = || Difference::between_groups(&baseline.rounds(scale, quantum)?, &other.rounds(scale, quantum)?);
    if let Some(shown) = difference.or_else(rounds) {
        against.show(&shown);
    }
    against.difference = difference;
    against
}

/// The values of both sides, or why a side has none.
fn matched(baseline: &ComparedSide, other: &ComparedSide) -> Result<[Vec<f64>; 2], Unmatched> {
    use ComparedSide::{Absent, Measured, Missing};
    match (baseline, other) {
        (Measured { unit: a_unit, values: a, .. }, Measured { unit: b_unit, values: b, .. }) => {
            if a_unit == b_unit {
                Ok([a.clone(), b.clone()])
            } else {
                Err(Unmatched::UnitsDiffer)
            }
        }
        (Measured { .. }, Absent(_)) => Err(Unmatched::AbsentInOther),
        (Measured { .. } | Absent(_), Missing) => Err(Unmatched::OnlyInBaseline),
        (Absent(_), Measured { .. }) => Err(Unmatched::AbsentInBaseline),
        (Missing, Measured { .. } | Absent(_)) => Err(Unmatched::OnlyInOther),
        (Absent(_), Absent(_)) | (Missing, Missing) => Err(Unmatched::AbsentInBoth),
    }
}

impl Against {
    fn doubted(side: ComparedSide, doubt: Doubt) -> Self {
        let verdict = RowVerdict::CannotTell(doubt);
        Self { side, ratio: None, interval: None, difference: None, margins: None, verdict }
    }

    fn unmatched(side: ComparedSide, unmatched: Unmatched) -> Self {
        Self { verdict: RowVerdict::Unmatched(unmatched), ..Self::doubted(side, Doubt::NotJudged) }
    }

    /// Formats a difference: its ratio, if there is one, and its 95 % interval.
    fn show(&mut self, difference: &Difference) {
        let place = |end: f64| if difference.scale == Scale::Log { end.exp() } else { end };
        self.interval = Some(difference.interval(0.05).map(place));
        self.ratio = (difference.scale == Scale::Log).then(|| difference.estimate.exp());
    }
}

impl ComparedSide {
    /// The compared value, if there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            ComparedSide::Measured { value, .. } => Some(*value),
            ComparedSide::Absent(_) | ComparedSide::Missing => None,
        }
    }
}

impl RowVerdict {
    /// Whether the figure was found to differ.
    pub fn differs(self) -> bool {
        matches!(self, RowVerdict::Differs { .. })
    }
}
