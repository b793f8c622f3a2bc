//! Turns the readings into the pairs of a comparison.

use hairspring_sheet::statistics::{Difference, Margins, Scale};
use hairspring_sheet::{InterleavedRow, Method, RoundPair, Unit};

use super::Turn;
use super::sentinels::SENTINELS;
use crate::probe::{ChapterDeclaration, Found};

/// The greatest p-value in the first stage with which a row is measured again.
const SCREEN_LEVEL: f64 = 0.05;

/// The pairs of the baseline and this arm, row by row.
pub(super) fn rows(chapters: &[ChapterDeclaration], turns: &[Turn], arm: usize) -> Vec<InterleavedRow> {
    let mut rows = Vec::new();
    for (index, chapter) in chapters.iter().enumerate() {
        for row in chapter.tables.iter().flat_map(|table| &table.rows) {
            let mut quantum: Option<f64> = None;
            let mut pairs = Vec::new();
            for turn in turns.iter().filter(|turn| turn.chapter == index) {
                let mut side = |arm: usize| {
                    let part = turn.parts.get(arm)?.as_ref()?;
                    match part.rows.iter().find(|(id, _)| *id == row.id)? {
                        (_, Found::Reading(reading)) => {
                            quantum = quantum.into_iter().chain(reading.step()).max_by(f64::total_cmp);
                            reading.centre()
                        }
                        (_, Found::Absent(_) | Found::Elsewhere) => None,
                    }
                };
                let (baseline, other) = (side(0), side(arm));
                if baseline.is_some() || other.is_some() {
                    let place = |arm: usize| turn.order.iter().position(|of| *of == arm);
                    let baseline_first = place(0) < place(arm);
                    pairs.push(RoundPair { round: turn.round, baseline, other, baseline_first, void: turn.void });
                }
            }
            let (id, label) = (row.id.clone(), row.label.clone());
            rows.push(InterleavedRow { id, label, unit: row.unit, method: row.method, quantum, pairs });
        }
    }
    rows
}

/// The readings of the sentinels around each pair: for each build the mean of before and after.
pub(super) fn sentinel_rows(turns: &[Turn]) -> Vec<InterleavedRow> {
    let row = |(index, (id, label)): (usize, &(&str, &str))| {
        let pair = |turn: &Turn| {
            let around = |arm: usize| {
                let place = turn.order.iter().position(|of| *of == arm)?;
                Some((turn.sightings[place].took_ns[index] + turn.sightings[place + 1].took_ns[index]) / 2.0)
            };
            let baseline_first = turn.order.iter().find(|arm| **arm < 2) == Some(&0);
            RoundPair { round: turn.round, baseline: around(0), other: around(1), baseline_first, void: turn.void }
        };
        let (id, label) = ((*id).to_owned(), (*label).to_owned());
        let pairs = turns.iter().map(pair).collect();
        InterleavedRow { id, label, unit: Unit::Ns, method: Method::Stamp, quantum: None, pairs }
    };
    SENTINELS.iter().enumerate().map(row).collect()
}

/// Whether to measure a row of the first stage again.
pub(super) fn stands_out(row: &InterleavedRow) -> bool {
    let counted = row.pairs.iter().filter(|pair| !pair.void);
    let pairs: Vec<[f64; 2]> = counted.filter_map(|pair| Some([pair.baseline?, pair.other?])).collect();
    let scale = Scale::of(&pairs.concat());
    let (Some(difference), Some(first)) = (Difference::paired(&pairs, scale, row.quantum), pairs.first()) else {
        return false;
    };
    let margins = Margins::of(row.unit, scale, *first, row.quantum, None);
    margins.is_some_and(|margins| difference.p_beyond(margins.null) < SCREEN_LEVEL)
}
