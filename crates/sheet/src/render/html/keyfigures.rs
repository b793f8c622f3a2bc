//! The figures that most readers look for first, above everything else.

use super::Markup;
use crate::render::quantity::{grouped, statistic};
use crate::render::svg::escaped;
use crate::{Figure, Row, Sheet};

/// One figure of the overview.
struct Key {
    /// Ids it may have; the first pattern that any row matches is used. `*` stands for any characters.
    patterns: &'static [&'static str],
    /// What it is, for people.
    caption: &'static str,
    /// Which of its statistics is shown.
    statistic: Statistic,
    /// The most rows that are shown: one for each policy, at most.
    rows: usize,
}

enum Statistic {
    Median,
    P99,
}

const KEYS: &[Key] = &[
    Key {
        patterns: &["clocks.*.now", "clocks.*now*.cost", "clocks.*now*"],
        caption: "Reading the time, now()",
        statistic: Statistic::Median,
        rows: 1,
    },
    Key {
        patterns: &["clocks.calibration*.bound", "calibration*.bound", "*calibration*bound*"],
        caption: "Rate known within",
        statistic: Statistic::Median,
        rows: 1,
    },
    Key {
        patterns: &["delays.minimum*.10us.late"],
        caption: "10 µs guaranteed minimum, late by",
        statistic: Statistic::Median,
        rows: 2,
    },
    Key {
        patterns: &["delays.long*.1s.late"],
        caption: "1 s long delay, late by",
        statistic: Statistic::Median,
        rows: 3,
    },
    Key { patterns: &["wakeup.*.late", "wakeup.*"], caption: "Wake-up, late by", statistic: Statistic::P99, rows: 2 },
];

/// The overview; nothing at all when the sheet has none of its figures.
pub(super) fn key_figures(page: &mut Markup, sheet: &Sheet) {
    let tiles: Vec<String> = KEYS.iter().flat_map(|key| tiles(key, sheet)).collect();
    if !tiles.is_empty() {
        page.add(format_args!("<section class=\"keys\" aria-label=\"Key figures\">\n{}</section>\n", tiles.concat()));
    }
}

fn tiles(key: &Key, sheet: &Sheet) -> Vec<String> {
    let measured = |pattern: &str| -> Vec<(&Row, &Figure)> {
        sheet.rows().filter(|row| matches(pattern, &row.id)).filter_map(|row| Some((row, row.figure()?))).collect()
    };
    let rows = key.patterns.iter().map(|p| measured(p)).find(|rows| !rows.is_empty()).unwrap_or_default();
    let tile = |(row, figure): &(&Row, &Figure)| {
        // Where n does not support the percentile, the greatest sample is the honest stand-in, and is named so.
        let (name, value) = match key.statistic {
            Statistic::Median if figure.is_single() => ("", figure.median),
            Statistic::Median => ("median", figure.median),
            Statistic::P99 if figure.p99.is_some() => ("99 %", figure.p99),
            Statistic::P99 => ("max", figure.max),
        };
        let quantity = statistic(figure, value)?;
        let of = if figure.is_single() {
            String::new()
        } else {
            format!("{name} of {}<br>", grouped(&figure.n.to_string()))
        };
        let label = if key.rows > 1 { format!("{}<br>", escaped(&row.label)) } else { String::new() };
        Some(format!(
            "<a class=\"key\" href=\"#{0}\"><span class=\"caption\">{1}</span><span class=\"value\">{2} <small>{3}</small>\
             </span><span class=\"of\">{4}{5}<code>{0}</code></span></a>\n",
            escaped(&row.id),
            key.caption,
            quantity.number(),
            quantity.unit,
            label,
            of,
        ))
    };
    rows.iter().filter_map(tile).take(key.rows).collect()
}

/// Whether the whole id fits the pattern, in which `*` stands for any characters.
fn matches(pattern: &str, id: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == id,
        Some((start, rest)) => {
            let Some(tail) = id.strip_prefix(start) else { return false };
            (0..=tail.len()).filter(|i| tail.is_char_boundary(*i)).any(|i| matches(rest, &tail[i..]))
        }
    }
}
