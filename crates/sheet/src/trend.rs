//! One figure of one machine over months: the effects of its conditions, then changes without a known cause.
//!
//! Problem: a new kernel, firmware or setting changes figures, and that is no alarm. A change between such moments is
//! one: an engineer should look at it. Solution: the history is cut wherever the conditions changed. The sheets on both
//! sides of a cut are compared as two groups (Welch's t test), which answers "did this change make the machine worse?".
//! Within a stretch, change points are searched for as [`drift`](crate::drift) does.
//!
//! Conditions: sheets of one machine and one effort. A long stretch is reduced to [`POINTS_MAX`] medians of neighbours
//! before the search, whose time grows with the square of its length; a change is then known to within that many
//! sheets.

use std::collections::HashMap;

use serde::Serialize;

use crate::Unit;
use crate::drift::{DRIFT_LEVEL, DRIFT_SHEETS_MIN};
use crate::statistics::{Difference, Margins, SEGMENT_MIN, Scale, Units, change_points, middle};

/// Fewer sheets than this in a stretch show no change in it.
pub(crate) const TREND_SHEETS_MIN: usize = DRIFT_SHEETS_MIN;
/// The search takes at most so many values over all stretches.
const POINTS_MAX: usize = 240;
/// Number of last sheets from which the number of further ones needed is estimated.
const END: usize = 40;
/// A change must be this many times as large as the median absolute deviation of its stretch.
const DEVIATIONS: f64 = 3.0;

/// The medians of a machine's sheets, in the order in which they were taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// When each sheet was taken, for people.
    pub taken: Vec<String>,
    /// The same in seconds since 1970.
    pub taken_s: Vec<f64>,
    /// The conditions of each sheet: equal numbers, equal conditions.
    pub conditions: Vec<i64>,
    /// The facts of each conditions: label and value.
    pub facts: HashMap<i64, Vec<(String, String)>>,
    /// The rows.
    pub rows: Vec<HistoryRow>,
}

/// A row of a [`History`].
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryRow {
    /// Id of the row.
    pub id: String,
    /// Label for people.
    pub label: String,
    /// The unit of the medians.
    pub unit: Unit,
    /// The median in each sheet; none where a sheet lacks it.
    pub medians: Vec<Option<f64>>,
}

/// One row over time. Sheets are counted among those that have the row, from 0.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// Id of the row.
    pub id: String,
    /// Label for people.
    pub label: String,
    /// The unit of all values.
    pub unit: Unit,
    /// When each sheet was taken, for people.
    pub taken: Vec<String>,
    /// The same in seconds since 1970.
    pub taken_s: Vec<f64>,
    /// The median in each sheet.
    pub medians: Vec<f64>,
    /// Changes of the conditions, in order of time.
    pub cuts: Vec<TrendCut>,
    /// Changes that no change of the conditions explains, in order.
    pub changes: Vec<TrendChange>,
    /// Questions that are still undecided, and how many more sheets would decide them.
    pub undecided: Vec<String>,
}

/// A moment at which the conditions changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TrendCut {
    /// The first sheet after it.
    pub sheet: usize,
    /// The conditions that changed: label, value before and value after.
    pub conditions: Vec<(String, String, String)>,
    /// The median in the middle before it, since the cut or change before.
    pub before: f64,
    /// The median in the middle after it, until the next cut or change.
    pub after: f64,
    /// Effect on the figure.
    pub verdict: CutVerdict,
}

/// Effect of a change of the conditions on a figure. Changes are fractions of the value before (0.1 is 10 % more), or
/// differences in the unit where a value is not positive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CutVerdict {
    /// The true change is at least this one with 99 %, negative for less.
    Changed(f64),
    /// The true change is smaller than this margin.
    Same(f64),
    /// Neither was shown.
    CannotTell {
        /// The smallest change that would have been seen in four of five cases; none with fewer than two sheets a side.
        smallest: Option<f64>,
        /// Number of further sheets with the new conditions that would decide; none if more than 1,000.
        more: Option<usize>,
    },
}

/// A change without a known cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrendChange {
    /// The first sheet after it, most likely.
    pub sheet: usize,
    /// It happened after the first of these sheets, and at the latest with the second.
    pub between: [usize; 2],
    /// The median in the middle before it.
    pub before: f64,
    /// The median in the middle after it.
    pub after: f64,
}

/// The trends of all rows of a history.
pub fn trends(history: &History) -> Vec<Trend> {
    history.rows.iter().map(|row| Trend::of(history, row)).collect()
}

impl Trend {
    fn of(history: &History, row: &HistoryRow) -> Self {
        let known: Vec<(usize, f64)> =
            row.medians.iter().enumerate().filter_map(|(sheet, median)| Some((sheet, (*median)?))).collect();
        let medians: Vec<f64> = known.iter().map(|(_, median)| *median).collect();
        let scale = Scale::of(&medians);
        let conditions: Vec<i64> = known.iter().map(|(sheet, _)| history.conditions[*sheet]).collect();
        let cuts: Vec<usize> = (1..conditions.len()).filter(|at| conditions[*at] != conditions[at - 1]).collect();
        let ends: Vec<usize> = std::iter::once(0).chain(cuts.iter().copied()).chain([medians.len()]).collect();
        let mut points = Vec::new();
        for stretch in ends.windows(2) {
            let share = (POINTS_MAX * (stretch[1] - stretch[0])).div_ceil(medians.len().max(1));
            points.extend(found(&medians[stretch[0]..stretch[1]], scale, share).into_iter().map(|at| at + stretch[0]));
        }
        let mut borders: Vec<usize> = ends.iter().copied().chain(points.iter().copied()).collect();
        borders.sort_unstable();
        borders.dedup();
        // The values on both sides of a border, until the next ones.
        let sides = |at: usize| {
            let place = borders.partition_point(|border| *border < at);
            (&medians[borders[place - 1]..at], &medians[at..borders[place + 1]])
        };
        let level = |values: &[f64]| middle(values).unwrap_or(f64::NAN);
        let cut = |at: &usize| {
            let (before, after) = sides(*at);
            TrendCut {
                sheet: *at,
                conditions: differing(&history.facts, conditions[at - 1], conditions[*at]),
                before: level(before),
                after: level(after),
                verdict: judged(before, after, row.unit),
            }
        };
        let change = |at: &usize| {
            let (before, after) = sides(*at);
            let levels = [level(before), level(after)];
            TrendChange {
                sheet: *at,
                between: between(*at, before, after, levels),
                before: levels[0],
                after: levels[1],
            }
        };
        let undecided = undecided(&medians, &ends, &borders, scale);
        Self {
            id: row.id.clone(),
            label: row.label.clone(),
            unit: row.unit,
            taken: known.iter().map(|(sheet, _)| history.taken[*sheet].clone()).collect(),
            taken_s: known.iter().map(|(sheet, _)| history.taken_s[*sheet]).collect(),
            cuts: cuts.iter().map(cut).collect(),
            changes: points.iter().map(change).collect(),
            undecided,
            medians,
        }
    }
}

/// The change points of a stretch, reduced to `most` values before the search.
fn found(medians: &[f64], scale: Scale, most: usize) -> Vec<usize> {
    if medians.len() < TREND_SHEETS_MIN {
        return Vec::new();
    }
    let every = medians.len().div_ceil(most.max(TREND_SHEETS_MIN));
    let places: Vec<f64> = medians.chunks(every).filter_map(middle).map(|median| scale.place(median)).collect();
    let points = change_points(&places, DRIFT_LEVEL, 1);
    let points: Vec<usize> = points.iter().map(|point| refined(medians, point.at * every, every)).collect();
    let ends: Vec<usize> = std::iter::once(0).chain(points.iter().copied()).chain([medians.len()]).collect();
    let spread = |values: &[f64]| {
        let centre = middle(values)?;
        middle(&values.iter().map(|value| (value - centre).abs()).collect::<Vec<_>>())
    };
    let is_large = |place: &usize| {
        let (before, after) = (&medians[ends[*place]..ends[place + 1]], &medians[ends[place + 1]..ends[place + 2]]);
        let (Some(a), Some(b)) = (middle(before), middle(after)) else { return false };
        let deviation = spread(before).unwrap_or(0.0).min(spread(after).unwrap_or(0.0));
        // One or two odd values, and a usual one beside them, are no change that stays.
        let is_near = |value: &&f64, own: f64, other: f64| (**value - own).abs() < (**value - other).abs();
        let stays = before.iter().filter(|value| is_near(value, a, b)).count() >= SEGMENT_MIN
            && after.iter().filter(|value| is_near(value, b, a)).count() >= SEGMENT_MIN;
        stays && (a - b).abs() > DEVIATIONS * deviation
    };
    (0..points.len()).filter(is_large).map(|place| points[place]).collect()
}

/// The border near `at` that separates best, within as many sheets as a value stands for.
fn refined(medians: &[f64], at: usize, every: usize) -> usize {
    if every == 1 {
        return at;
    }
    let (low, high) = (at.saturating_sub(2 * every), (at + 2 * every).min(medians.len()));
    let part = &medians[low..high];
    let squares = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let cost = |border: &usize| squares(&part[..*border]) + squares(&part[*border..]);
    let best = (1..part.len()).min_by(|a, b| cost(a).total_cmp(&cost(b)));
    best.map_or(at, |border| low + border)
}

/// Between which sheets a change happened: as far as values lie nearer to the level of the other side.
fn between(at: usize, before: &[f64], after: &[f64], [low, high]: [f64; 2]) -> [usize; 2] {
    let is_after = |value: &&f64| (**value - high).abs() < (**value - low).abs();
    let early = before.iter().rev().take_while(is_after).count();
    let late = after.iter().take_while(|value| !is_after(value)).count();
    [(at - early).saturating_sub(1), at + late]
}

/// The differences between two conditions.
fn differing(facts: &HashMap<i64, Vec<(String, String)>>, before: i64, after: i64) -> Vec<(String, String, String)> {
    let (none, unknown) = (Vec::new(), "unknown".to_owned());
    let (before, after) = (facts.get(&before).unwrap_or(&none), facts.get(&after).unwrap_or(&none));
    let value = |facts: &[(String, String)], label: &str| {
        facts.iter().find(|(other, _)| other == label).map_or_else(|| unknown.clone(), |(_, value)| value.clone())
    };
    let gone = before.iter().filter(|(label, _)| after.iter().all(|(other, _)| other != label));
    let labels = after.iter().chain(gone).map(|(label, _)| label);
    let both = labels.map(|label| (label.clone(), value(before, label), value(after, label)));
    both.filter(|(_, before, after)| before != after).collect()
}

/// The verdict on a cut.
fn judged(before: &[f64], after: &[f64], unit: Unit) -> CutVerdict {
    let both: Vec<f64> = before.iter().chain(after).copied().collect();
    let scale = Scale::of(&both);
    let units = [before, after].map(|values| Units::new(values, scale, None));
    let centres = [before, after].map(|values| middle(values).unwrap_or(0.0));
    let cannot = CutVerdict::CannotTell { smallest: None, more: Some(SEGMENT_MIN.saturating_sub(after.len()).max(1)) };
    let ([Some(a), Some(b)], Some(margins)) = (units, Margins::of(unit, scale, centres, None, None)) else {
        return cannot;
    };
    let Some(difference) = Difference::between_groups(&a, &b) else { return cannot };
    let change = |end: f64| if scale == Scale::Log { end.exp_m1() } else { end };
    if after.len() >= SEGMENT_MIN && difference.p_beyond(margins.null) <= DRIFT_LEVEL {
        let [low, high] = difference.interval(DRIFT_LEVEL);
        return CutVerdict::Changed(change(if difference.estimate > 0.0 { low } else { high }));
    }
    if after.len() >= SEGMENT_MIN && difference.equivalent_within(margins.same) {
        return CutVerdict::Same(change(margins.same));
    }
    let needed = difference.units_needed(margins.same, margins.null, DRIFT_LEVEL);
    CutVerdict::CannotTell {
        smallest: Some(change(difference.smallest_shown(margins.null, DRIFT_LEVEL))),
        more: needed.map(|needed| needed.saturating_sub(after.len()).max(1)),
    }
}

/// The questions that the end of the history leaves undecided.
fn undecided(medians: &[f64], ends: &[usize], borders: &[usize], scale: Scale) -> Vec<String> {
    let [.., begin, end] = ends else { return Vec::new() };
    let count = end - begin;
    let sheets = |count: usize| if count == 1 { "1 sheet".to_owned() } else { format!("{count} sheets") };
    if count < TREND_SHEETS_MIN {
        return vec![format!(
            "the last stretch has {}: a change within it shows from {TREND_SHEETS_MIN} on, after {} more",
            sheets(count),
            TREND_SHEETS_MIN - count
        )];
    }
    // At most the sheets after the last change; then the last sheets that lie on one side of the level, and far
    // away.
    let begin = borders.iter().rev().nth(1).copied().unwrap_or(*begin).max(end.saturating_sub(END));
    let stretch = &medians[begin..*end];
    let Some(level) = middle(stretch) else { return Vec::new() };
    let deviations: Vec<f64> = stretch.iter().map(|value| (value - level).abs()).collect();
    // 1.4826 times the median absolute deviation is a standard deviation (normal values).
    let far = DEVIATIONS * 1.4826 * middle(&deviations).unwrap_or(0.0);
    let last = stretch[stretch.len() - 1] - level;
    let odd = stretch.iter().rev().take_while(|value| (**value - level) * last.signum() > far).count();
    if odd == 0 || odd * 2 >= stretch.len() {
        return Vec::new();
    }
    let tail = middle(&stretch[stretch.len() - odd..]).unwrap_or(level);
    let mut longer = stretch.to_vec();
    let more = (1..=END).find(|_| {
        longer.push(tail);
        !found(&longer, scale, usize::MAX).is_empty()
    });
    let direction = if last > 0.0 { "above" } else { "below" };
    let more =
        more.map_or_else(|| "no number of them would".to_owned(), |more| format!("{} like them would", sheets(more)));
    vec![format!(
        "the last {} far {direction} the stretch, which does not yet show a change that stays: {more}",
        if odd == 1 { "sheet lies".to_owned() } else { format!("{odd} sheets lie") }
    )]
}
