//! Pairs the rows of a sheet with those of a historic sheet, for a comparison.
//!
//! Rows with the same id are a pair. The id of an executive's row names the executive, so a historic executive has no
//! row of the same id here. Its row is paired with the same scenario of every executive of this sheet, under an id that
//! names both: `executive.amx86→fiber.waitwake.t1.hot.idle`.
//!
//! The id of a historic transfer may name a disk set, as in `transfer.disk.write.1mib.direct.1.raid0_4.rate`. Its row
//! is paired with the same transfer of this sheet, under the historic id.

use hairspring_sheet::{CompareTerms, ComparedSheets, Row, Sheet, TextStyle, compare, render};

/// The effort that a transcribed sheet states.
const HISTORIC: &str = "historic";

/// A sheet beside another, as text.
pub(crate) fn rendered(other: Sheet, own: Sheet, style: &TextStyle) -> String {
    let side = |name: &str, sheet: Sheet| ComparedSheets { name: name.to_owned(), sheets: vec![sheet] };
    let sides = [side("the other sheet", other), side("this sheet", own)];
    render::comparison(&compare(&sides, &CompareTerms::default()), style)
}

/// Both sheets, with equal ids for the rows of a pair. This sheet keeps only paired rows: a historic sheet has few
/// rows, and the whole of this sheet has been shown already.
pub(crate) fn paired(other: &Sheet, own: &Sheet) -> (Sheet, Sheet) {
    let (mut left, mut right) = (other.clone(), own.clone());
    for table in right.chapters.iter_mut().flat_map(|chapter| &mut chapter.tables) {
        table.rows.retain(|row| other.row(&row.id).is_some());
    }
    if other.taken.effort != HISTORIC {
        return (left, right);
    }
    for table in left.chapters.iter_mut().flat_map(|chapter| &mut chapter.tables) {
        let rows = std::mem::take(&mut table.rows);
        for row in rows {
            let fellows: Vec<&Row> = if own.row(&row.id).is_some() {
                Vec::new()
            } else {
                own.rows().filter(|own| same_scenario(&row.id, &own.id) || same_transfer(&row.id, &own.id)).collect()
            };
            if fellows.is_empty() {
                table.rows.push(row);
                continue;
            }
            for fellow in fellows {
                let id = both(&row.id, &fellow.id);
                table.rows.push(Row { id: id.clone(), ..row.clone() });
                if let Some(table) = right.chapters.iter_mut().flat_map(|chapter| &mut chapter.tables).next() {
                    table.rows.push(Row { id, ..fellow.clone() });
                }
            }
        }
    }
    (left, right)
}

/// Pairs the rows if one of two single sheets is historic and the other is not; whether any sheet is historic.
pub(crate) fn pair_with_historic(sides: &mut [ComparedSheets]) -> bool {
    let is_historic = |sheet: &Sheet| sheet.taken.effort == HISTORIC;
    if let [a, b] = sides
        && let ([a], [b]) = (a.sheets.as_mut_slice(), b.sheets.as_mut_slice())
    {
        match (is_historic(a), is_historic(b)) {
            (true, false) => (*a, *b) = paired(a, b),
            (false, true) => (*b, *a) = paired(b, a),
            _ => {}
        }
    }
    sides.iter().flat_map(|side| &side.sheets).any(is_historic)
}

/// An id in three parts: the part before the executive's name, the name, and the rest.
fn executive(id: &str) -> Option<(&str, &str, &str)> {
    let begin = ["executive.thread_metric.", "executive."].into_iter().find(|begin| id.starts_with(begin))?;
    let (name, rest) = id[begin.len()..].split_once('.')?;
    Some((begin, name, rest))
}

fn same_scenario(one: &str, other: &str) -> bool {
    match (executive(one), executive(other)) {
        (Some(one), Some(other)) => (one.0, one.2) == (other.0, other.2),
        _ => false,
    }
}

/// Whether `one` is `other` with the name of a disk set before the last segment.
fn same_transfer(one: &str, other: &str) -> bool {
    let without_set = || {
        let (begin, last) = one.rsplit_once('.')?;
        Some((begin.rsplit_once('.')?.0, last))
    };
    let transfer = ["transfer.disk.", "transfer.stream."].iter().any(|begin| one.starts_with(begin));
    transfer && without_set().is_some_and(|(begin, last)| other.rsplit_once('.') == Some((begin, last)))
}

/// An id that names both executives; the historic id if it names none.
fn both(one: &str, other: &str) -> String {
    match (executive(one), executive(other)) {
        (Some((begin, one, rest)), Some((_, other, _))) => format!("{begin}{one}→{other}.{rest}"),
        _ => one.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::historic;
    use hairspring_sheet::{CompareTerms, Doubt, Figure, Method, RowVerdict, Unit, Value, compare};

    /// A sheet with new figures in these rows, beside a historic one.
    fn compared(name: &str, ids: &[&str]) -> (Sheet, Sheet, hairspring_sheet::Comparison) {
        let other = historic::find(name).expect("built in");
        let mut own = other.clone();
        own.taken.effort = "quick".to_owned();
        own.chapters.truncate(1);
        own.chapters[0].tables.truncate(1);
        own.chapters[0].tables[0].rows = ids
            .iter()
            .map(|id| Row {
                id: (*id).to_owned(),
                label: "own".to_owned(),
                value: Value::Figure(Figure::from_samples(Unit::Ns, Method::Stamp, &mut [100.0; 10])),
            })
            .collect();
        let (left, right) = paired(&other, &own);
        let side = |sheet: &Sheet| ComparedSheets { name: String::new(), sheets: vec![sheet.clone()] };
        let comparison = compare(&[side(&left), side(&right)], &CompareTerms::default());
        (left, right, comparison)
    }

    #[test]
    fn another_executives_figure_stands_beside_every_one_of_ours() {
        let ids = ["executive.fiber.waitwake.t1.hot.idle", "executive.thread_up.waitwake.t1.hot.idle", "clocks.x"];
        let (_, right, comparison) = compared("amx86-486sx", &ids);
        assert_eq!(right.rows().count(), 2);
        for name in ["fiber", "thread_up"] {
            let id = format!("executive.amx86→{name}.waitwake.t1.hot.idle");
            let row = comparison.rows.iter().find(|row| row.id == id).expect("paired");
            assert_eq!(row.baseline.value(), Some(15_700.0));
            let ratio = row.others[0].ratio.expect("a ratio of means");
            assert!((ratio - 100.0 / 15_700.0).abs() < 1e-9, "{ratio}");
            assert_eq!(row.others[0].verdict, RowVerdict::CannotTell(Doubt::NotJudged));
        }
    }

    #[test]
    fn only_the_cell_that_the_historic_sheet_names_is_paired() {
        let (left, right, _) = compared("amx86-486sx", &["executive.fiber.waitwake.t1.dirty.loaded"]);
        assert_eq!(right.rows().count(), 0);
        assert!(left.rows().all(|row| !row.id.contains('→')));
    }

    #[test]
    fn two_historic_executives_stand_beside_one_of_ours_each() {
        let (.., comparison) = compared("freertos-threadx-linux", &["executive.fiber.waitwake.roundtrip.hot.idle"]);
        let pairs: Vec<&str> = comparison.rows.iter().map(|r| r.id.as_str()).filter(|id| id.contains('→')).collect();
        let pair = |name| format!("executive.{name}→fiber.waitwake.roundtrip.hot.idle");
        assert_eq!(pairs, [pair("freertos"), pair("threadx")]);
    }

    #[test]
    fn every_disk_set_stands_beside_our_transfer_of_the_same_kind() {
        let id = |set: &str| format!("transfer.disk.write.1mib.direct.1{set}.rate");
        let (left, right, _) = compared("an006-reference-1", &[&id(""), "transfer.disk.write.1mib.direct.2.rate"]);
        let sets = [".raid0_4", ".raid0_2", ".software_raid0_2_same_channel", ".software_raid0_2_two_channels"];
        let mut pairs: Vec<String> = ["", sets[0], sets[1], sets[2], sets[3]].map(id).into();
        assert_eq!(right.rows().map(|row| row.id.clone()).collect::<Vec<_>>(), pairs);
        pairs.retain(|pair| left.row(pair).is_none());
        assert_eq!(pairs, [""; 0]);
    }

    #[test]
    fn a_worst_case_is_compared_with_a_worst_case() {
        let (.., comparison) = compared("amx86-net186", &["executive.fiber.interrupt_latency.lock"]);
        let row = comparison.rows.iter().find(|row| row.id.contains('→')).expect("paired");
        assert_eq!((row.centre.name(), row.baseline.value()), ("max", Some(18_700.0)));
    }

    #[test]
    fn rows_of_one_id_stay_as_they_are() {
        let (left, right, _) = compared("fermilab-2007", &["clocks.read.counter.later", "clocks.other"]);
        assert_eq!(right.rows().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["clocks.read.counter.later"]);
        assert_eq!(left, historic::find("fermilab-2007").expect("built in"));
    }
}
