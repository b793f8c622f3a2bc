//! Chapters that moved as a whole: then the machine was different, rather than each figure.

use schemars::JsonSchema;
use serde::Serialize;

use super::ComparedRow;
use crate::statistics::middle;

/// The least number of rows: fewer can all move one way by chance.
const ROWS_MIN: usize = 8;
/// The chapter moved if more than this share of its rows moved one way.
const SHARE: f64 = 0.8;
/// The least change of a ratio that counts as a movement.
const MOVED: f64 = 0.02;
/// The chapter of rows that no build can change.
const SENTINELS: &str = "sentinels";

/// A chapter most of whose figures moved the same way.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ChapterShift {
    /// The chapter.
    pub chapter: String,
    /// Which of the other sides, counted from 0.
    pub other: usize,
    /// How many of its rows have a ratio.
    pub rows: usize,
    /// How many of them moved this way by more than 2 %.
    pub moved: usize,
    /// The median of all ratios.
    pub ratio: f64,
    /// Whether the sentinels, which measure the same code on both sides, moved the same way; null if there are none.
    pub sentinels_moved: Option<bool>,
}

/// The first segment of an id.
pub(crate) fn chapter(id: &str) -> &str {
    id.split_once('.').map_or(id, |(chapter, _)| chapter)
}

/// The chapters that moved as a whole, for each of `others` other sides. If the sentinels did not move, the machine was
/// the same, and the chapter is not listed.
pub(super) fn shifts(rows: &[ComparedRow], others: usize, sentinels: &[ComparedRow]) -> Vec<ChapterShift> {
    let ratios = |rows: &[ComparedRow], of: &str, other: usize| -> Vec<f64> {
        let rows = rows.iter().filter(|row| chapter(&row.id) == of);
        rows.filter_map(|row| row.others.get(other)?.ratio).collect()
    };
    let mut chapters: Vec<&str> = rows.iter().map(|row| chapter(&row.id)).filter(|id| *id != SENTINELS).collect();
    chapters.dedup();
    chapters.sort_unstable();
    chapters.dedup();
    let mut found = Vec::new();
    for other in 0..others {
        let sentinel = middle(&[ratios(rows, SENTINELS, other), ratios(sentinels, SENTINELS, other)].concat());
        for chapter in &chapters {
            let ratios = ratios(rows, chapter, other);
            let Some(ratio) = middle(&ratios).filter(|_| ratios.len() >= ROWS_MIN) else { continue };
            let beyond = |value: &f64| if ratio > 1.0 { *value > 1.0 + MOVED } else { *value < 1.0 / (1.0 + MOVED) };
            let moved = ratios.iter().filter(|ratio| beyond(ratio)).count();
            let sentinels_moved = sentinel.as_ref().map(beyond);
            if moved as f64 > SHARE * ratios.len() as f64 && sentinels_moved != Some(false) {
                let (chapter, rows) = ((*chapter).to_owned(), ratios.len());
                found.push(ChapterShift { chapter, other, rows, moved, ratio, sentinels_moved });
            }
        }
    }
    found
}
