//! The verdicts of all rows together.

use super::{ComparedRow, Doubt, RowVerdict};
use crate::statistics::{Scale, benjamini_hochberg};

/// The share of the declared rows that is expected to be false.
const FALSE_SHARE: f64 = 0.05;

/// Gives every row with a difference its verdict. The procedure of Benjamini and Hochberg over all rows and all sides
/// declares the differences. The interval behind *at least* is taken at the level that the procedure reached, so that
/// all those intervals together keep their coverage (Benjamini and Yekutieli, 2005). *Same* needs no correction: it is
/// wrong only if two tests both fail.
pub(super) fn judge(rows: &mut [ComparedRow]) {
    let judged = || rows.iter().flat_map(|row| &row.others);
    let p: Vec<f64> =
        judged().filter_map(|against| Some(against.difference?.p_beyond(against.margins?.null))).collect();
    let declared = benjamini_hochberg(&p, FALSE_SHARE);
    let count = declared.iter().filter(|declared| **declared).count();
    let level = |count: usize| (FALSE_SHARE * count as f64 / p.len() as f64).min(FALSE_SHARE);
    let (level, next) = (level(count), level(count + 1));
    let mut declared = declared.into_iter();
    for against in rows.iter_mut().flat_map(|row| &mut row.others) {
        let (Some(difference), Some(margins)) = (against.difference, against.margins) else { continue };
        let change = |end: f64| if difference.scale == Scale::Log { end.exp_m1() } else { end };
        let same = difference.equivalent_within(margins.same).then(|| change(margins.same));
        against.verdict = if declared.next() == Some(true) {
            let [low, high] = difference.interval(level);
            RowVerdict::Differs { at_least: change(if difference.estimate > 0.0 { low } else { high }), within: same }
        } else if let Some(within) = same {
            RowVerdict::Same { within }
        } else {
            let smallest = change(difference.smallest_shown(margins.null, next));
            let needed = difference.units_needed(margins.same, margins.null, next);
            RowVerdict::CannotTell(Doubt::Varies { smallest, needed })
        };
    }
}
