//! The sheets of one machine over time: which figures changed permanently, when, and which conditions changed with
//! them.

use std::collections::HashMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::statistics::{SEGMENT_MIN, Scale, change_points, middle};
use crate::{RowPattern, Sheet, Unit};

/// The level of a single change: of a hundred constant rows, one shows a change by chance.
pub(crate) const DRIFT_LEVEL: f64 = 0.01;

/// The least number of sheets that can show a change.
pub(crate) const DRIFT_SHEETS_MIN: usize = 10;

/// How the figures of one machine changed over time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Drift {
    /// When each sheet was taken, the oldest first.
    pub taken: Vec<String>,
    /// Every row that has a median in enough of the sheets.
    pub rows: Vec<DriftRow>,
    /// When rows changed, in order.
    pub moments: Vec<DriftMoment>,
}

/// One row over time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DriftRow {
    /// Id of the row.
    pub id: String,
    /// Its label, for people.
    pub label: String,
    /// The unit of all numbers.
    pub unit: Unit,
    /// The median in each sheet; null where a sheet has none.
    pub medians: Vec<Option<f64>>,
    /// Its changes, in order.
    pub changes: Vec<DriftChange>,
}

/// A change of a row that stayed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DriftChange {
    /// The first sheet after the change, counted from 0.
    pub sheet: usize,
    /// The median since the previous change, or since the first sheet.
    pub before: f64,
    /// The median until the next change, or until the last sheet.
    pub after: f64,
}

/// A moment at which rows changed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DriftMoment {
    /// The first sheet after it, counted from 0.
    pub sheet: usize,
    /// Ids of the rows that changed.
    pub rows: Vec<String>,
    /// The conditions that changed with them: label, value before and value after. Conditions that differ from sheet to
    /// sheet anyway are left out.
    pub conditions: Vec<(String, String, String)>,
}

/// Why sheets show no drift.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriftError {
    /// There are too few of them.
    TooFew(usize),
    /// They are of two processors.
    Machines([String; 2]),
}

impl fmt::Display for DriftError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriftError::TooFew(found) => {
                write!(
                    f,
                    "there are {found} sheets, and at least {DRIFT_SHEETS_MIN} are needed to distinguish a change from chance"
                )
            }
            DriftError::Machines([a, b]) => {
                write!(f, "the sheets are of two machines, {a} and {b}; keep those of one machine in a folder")
            }
        }
    }
}

impl std::error::Error for DriftError {}

/// Finds the changes in the sheets of one machine, given in any order, in the rows that one of `only` covers; in all
/// rows if empty.
///
/// # Errors
/// Below ten sheets, and if they are of more than one processor.
pub fn drift(sheets: &[Sheet], only: &[RowPattern]) -> Result<Drift, DriftError> {
    let mut sheets: Vec<&Sheet> = sheets.iter().collect();
    sheets.sort_by(|a, b| a.taken.start.cmp(&b.taken.start));
    let machine = |sheet: &Sheet| sheet.conditions.value("cpu.model").unwrap_or("unknown").to_owned();
    match sheets.first() {
        Some(first) if sheets.len() >= DRIFT_SHEETS_MIN => {
            if let Some(other) = sheets.iter().find(|sheet| machine(sheet) != machine(first)) {
                return Err(DriftError::Machines([machine(first), machine(other)]));
            }
        }
        _ => return Err(DriftError::TooFew(sheets.len())),
    }
    let mut rows: Vec<DriftRow> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (number, sheet) in sheets.iter().enumerate() {
        for row in sheet.rows().filter(|row| only.is_empty() || only.iter().any(|pattern| pattern.covers(&row.id))) {
            let Some((unit, median)) = row.figure().and_then(|figure| Some((figure.unit, figure.median?))) else {
                continue;
            };
            let place = *places.entry(&row.id).or_insert_with(|| {
                let medians = vec![None; sheets.len()];
                let (id, label) = (row.id.clone(), row.label.clone());
                rows.push(DriftRow { id, label, unit, medians, changes: Vec::new() });
                rows.len() - 1
            });
            if rows[place].unit == unit {
                rows[place].medians[number] = Some(median);
            }
        }
    }
    rows.retain(|row| row.medians.iter().flatten().count() >= 2 * SEGMENT_MIN);
    rows.iter_mut().for_each(DriftRow::find);
    let moments = moments(&rows, &sheets);
    Ok(Drift { taken: sheets.iter().map(|sheet| sheet.taken.when()).collect(), rows, moments })
}

impl DriftRow {
    fn find(&mut self) {
        let known: Vec<(usize, f64)> =
            self.medians.iter().enumerate().filter_map(|(sheet, median)| Some((sheet, (*median)?))).collect();
        let values: Vec<f64> = known.iter().map(|(_, median)| *median).collect();
        let scale = Scale::of(&values);
        let places: Vec<f64> = values.iter().map(|value| scale.place(*value)).collect();
        let points = change_points(&places, DRIFT_LEVEL, 1);
        let borders: Vec<usize> =
            std::iter::once(0).chain(points.iter().map(|point| point.at)).chain([values.len()]).collect();
        let level = |segment: usize| middle(&values[borders[segment]..borders[segment + 1]]).unwrap_or(f64::NAN);
        let change =
            |(number, sheet): (usize, usize)| DriftChange { sheet, before: level(number), after: level(number + 1) };
        self.changes = points.iter().map(|point| known[point.at].0).enumerate().map(change).collect();
    }
}

/// The moments at which rows changed, with changes of the conditions.
fn moments(rows: &[DriftRow], sheets: &[&Sheet]) -> Vec<DriftMoment> {
    let mut at: Vec<usize> = rows.iter().flat_map(|row| &row.changes).map(|change| change.sheet).collect();
    at.sort_unstable();
    at.dedup();
    let build = |sheet: &Sheet| {
        let build = &sheet.hairspring;
        format!("{} {} {}", build.version, build.commit.as_deref().unwrap_or(""), build.flags)
    };
    let moment = |sheet: usize| {
        let (before, after) = (sheets[sheet - 1], sheets[sheet]);
        let facts = after.conditions.facts.iter().filter_map(|fact| {
            let value = |sheet: &Sheet| sheet.conditions.value(&fact.id).map(str::to_owned);
            let changes = sheets.windows(2).filter(|pair| value(pair[0]) != value(pair[1])).count();
            let (old, new) = (value(before)?, value(after)?);
            // A condition that differs between most sheets, such as the load, did not cause a permanent change.
            (old != new && 2 * changes < sheets.len()).then(|| (fact.label.clone(), old, new))
        });
        let own =
            (build(before) != build(after)).then(|| ("Build of hairspring".to_owned(), build(before), build(after)));
        let changed = |row: &&DriftRow| row.changes.iter().any(|change| change.sheet == sheet);
        DriftMoment {
            sheet,
            rows: rows.iter().filter(changed).map(|row| row.id.clone()).collect(),
            conditions: own.into_iter().chain(facts).collect(),
        }
    };
    at.into_iter().map(moment).collect()
}
