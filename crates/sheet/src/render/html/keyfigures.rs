//! The figures that most readers look for first, above everything else.

use super::Markup;
use crate::Sheet;
use crate::render::quantity::{grouped, statistic};
use crate::render::svg::escaped;

/// One figure of the overview: its id, what it is for people, and which of its statistics is shown.
struct Key {
    id: &'static str,
    caption: &'static str,
    statistic: Statistic,
}

#[derive(Clone, Copy)]
enum Statistic {
    Median,
    P99,
}

const fn key(id: &'static str, caption: &'static str, statistic: Statistic) -> Key {
    Key { id, caption, statistic }
}

const KEYS: &[Key] = &[
    key("clocks.read.now.later", "Reading the time, now()", Statistic::Median),
    key("clocks.calibration.bound", "Rate known within", Statistic::Median),
    key("delays.minimum.fifo.10us.late", "10 µs minimum delay late by, FIFO", Statistic::Median),
    key("delays.long.fifo.1s.late", "1 s long delay late by, FIFO", Statistic::Median),
    key("delays.long.other.1s.late", "1 s long delay late by, ordinary", Statistic::Median),
    key("sleeps.std_sleep.1ms.late", "thread::sleep(1 ms) late by", Statistic::Median),
    key("disturbance.gaps.lost", "Time lost to interruptions", Statistic::Median),
    key("disturbance.wakeup.late", "1 ms wake-up late by, FIFO", Statistic::P99),
];

/// The overview; nothing at all when the sheet has none of its figures.
pub(super) fn key_figures(page: &mut Markup, sheet: &Sheet) {
    let tiles: Vec<String> = KEYS.iter().filter_map(|key| tile(key, sheet)).collect();
    if !tiles.is_empty() {
        page.add(format_args!("<section class=\"keys\" aria-label=\"Key figures\">\n{}</section>\n", tiles.concat()));
    }
}

fn tile(key: &Key, sheet: &Sheet) -> Option<String> {
    let figure = sheet.row(key.id)?.figure()?;
    // Where n does not support the percentile, the greatest sample is the honest stand-in, and is named so.
    let (name, value) = match key.statistic {
        Statistic::Median if figure.is_single() => ("", figure.median),
        Statistic::Median => ("median", figure.median),
        Statistic::P99 if figure.p99.is_some() => ("99 %", figure.p99),
        Statistic::P99 => ("max", figure.max),
    };
    let quantity = statistic(figure, value)?;
    let of = if figure.is_single() { String::new() } else { format!("{name} of {}", grouped(&figure.n.to_string())) };
    Some(format!(
        "<a class=\"key\" href=\"#{}\"><span class=\"caption\">{}</span><span class=\"value\">{} <small>{}</small></span>\
         <span class=\"of\">{of}</span></a>\n",
        escaped(key.id),
        key.caption,
        quantity.number(),
        quantity.unit,
    ))
}
