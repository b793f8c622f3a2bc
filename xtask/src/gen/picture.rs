//! `docs/assets/sheet.svg`, the picture of the README: figures of one machine, all on one axis of time.
//!
//! Every number comes from the committed sheet that the picture names, so a new sheet needs a new picture.

use std::fmt::Write as _;
use std::path::Path;

use super::figures::{Figure, Sheet, thousands};

const SHEET: &str = "sheets/2026-11-22-kvm-guest.json.zst";

/// The quantities: label and row.
const ROWS: [(&str, &str); 10] = [
    ("read the time", "clocks.read.now.later"),
    ("task wake and wait, fibers", "executive.fiber.waitwake.roundtrip.hot.idle"),
    ("wait 10 µs by polling: late by", "delays.minimum.fifo.10us.late"),
    ("read the time from Python", "callers.python.now.later"),
    ("wait 10 ms, asleep, then polling: late by", "delays.long.fifo.10ms.late"),
    ("event to action, polled", "reaction.polled.total"),
    ("task wake and wait, threads", "executive.thread_up.waitwake.roundtrip.hot.idle"),
    ("event to action, asleep", "reaction.eventfd.total"),
    ("loop of 1 kHz: late by", "disturbance.wakeup.late"),
    ("the system's own sleep of 10 ms: late by", "sleeps.usleep.10ms.late"),
];

const WIDTH: f64 = 1000.0;
const ROW: f64 = 31.0;
const TOP: f64 = 92.0;
/// Beginning and end of the axis of time, and its powers of ten, in nanoseconds.
const AXIS: (f64, f64) = (345.0, 690.0);
const DECADES: (i32, i32) = (0, 7);
/// The right ends of the columns of numbers.
const COLUMNS: [(f64, &str, &str); 4] =
    [(768.0, "median", "median"), (846.0, "99 %", "p99"), (924.0, "worst", "max"), (984.0, "n", "")];

const STYLE: &str = "<style>
  .page{fill:#fbfaf7;stroke:#d9d4c8}.text{fill:#1f2d35;font:15px 'Source Sans 3','Noto Sans','DejaVu Sans',sans-serif}
  .small{fill:#5d6b73;font:12.5px 'Source Sans 3','Noto Sans','DejaVu Sans',sans-serif}.title{font-size:19px;font-weight:600}
  .end{text-anchor:end}.middle{text-anchor:middle}.figures{font-variant-numeric:tabular-nums}
  .grid{stroke:#e4dfd3}.range{stroke:#7f99a6;stroke-width:7;stroke-linecap:round;opacity:.55}.tail{stroke:#b0701a;stroke-width:1.5;stroke-dasharray:2 3}
  .dot{fill:#23404f}.worst{stroke:#b0701a;stroke-width:2.5}
  @media(prefers-color-scheme:dark){.page{fill:#1c262c;stroke:#34434c}.text{fill:#e3e7e9}.small{fill:#9fb0b9}.grid{stroke:#2d3b43}
  .range{stroke:#6d8c9c}.dot{fill:#a9d3ea}.worst,.tail{stroke:#e0a14a}}
</style>";

/// The picture.
pub(super) fn page(root: &Path, _: &[&str]) -> Result<String, String> {
    let sheet = Sheet::read(root, SHEET)?;
    let height = TOP + ROW * ROWS.len() as f64 + 62.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"What one machine does: \
         medians, 99 % and worst cases of ten quantities on an axis of time\">\n{STYLE}\n\
         <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"10\"/>\n",
        WIDTH - 1.0,
        height - 1.0
    );
    let machine = sheet.fact("cpu.model").unwrap_or("an unknown CPU");
    let _ = writeln!(svg, "<text class=\"text title\" x=\"16\" y=\"32\">What this machine does with time</text>");
    let _ = writeln!(
        svg,
        "<text class=\"small\" x=\"16\" y=\"54\">{machine}, KVM guest with 2 CPUs, taken on {} by hairspring sheet</text>",
        sheet.day
    );
    axis(&mut svg);
    for (number, (words, id)) in ROWS.iter().enumerate() {
        row(&mut svg, TOP + ROW * (number as f64 + 0.5), words, &sheet.figure(id)?);
    }
    let foot = TOP + ROW * ROWS.len() as f64 + 44.0;
    let _ = writeln!(
        svg,
        "<text class=\"small\" x=\"16\" y=\"{foot}\">dot: median · bar: least to 99 % · mark: worst seen · waits under SCHED_FIFO · {SHEET}</text>\n</svg>"
    );
    Ok(svg)
}

/// The grid of powers of ten with their names, and the heads of the columns.
fn axis(svg: &mut String) {
    let bottom = TOP + ROW * ROWS.len() as f64;
    for power in DECADES.0..=DECADES.1 {
        let x = place(10_f64.powi(power));
        let name =
            ["1 ns", "10 ns", "100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms"][(power - DECADES.0) as usize];
        let _ =
            writeln!(svg, "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>", TOP - 4.0);
        let _ = writeln!(svg, "<text class=\"small middle\" x=\"{x:.1}\" y=\"{}\">{name}</text>", bottom + 18.0);
    }
    for (x, head, _) in COLUMNS {
        let _ = writeln!(svg, "<text class=\"small end\" x=\"{x}\" y=\"{}\">{head}</text>", TOP - 10.0);
    }
}

/// One quantity: its range, its median and its worst case, and the numbers beside them.
fn row(svg: &mut String, y: f64, words: &str, figure: &Figure) {
    let _ = writeln!(svg, "<text class=\"text\" x=\"16\" y=\"{}\">{words}</text>", y + 5.0);
    let at = |name| figure.number(name).map(place);
    if let (Some(least), Some(most)) = (at("min"), at("p99").or_else(|| at("median"))) {
        let _ = writeln!(svg, "<line class=\"range\" x1=\"{least:.1}\" y1=\"{y}\" x2=\"{most:.1}\" y2=\"{y}\"/>");
        if let Some(worst) = at("max") {
            let _ = writeln!(svg, "<line class=\"tail\" x1=\"{most:.1}\" y1=\"{y}\" x2=\"{worst:.1}\" y2=\"{y}\"/>");
            let (above, below) = (y - 7.0, y + 7.0);
            let _ = writeln!(
                svg,
                "<line class=\"worst\" x1=\"{worst:.1}\" y1=\"{above}\" x2=\"{worst:.1}\" y2=\"{below}\"/>"
            );
        }
    }
    if let Some(median) = at("median") {
        let _ = writeln!(svg, "<circle class=\"dot\" cx=\"{median:.1}\" cy=\"{y}\" r=\"5\"/>");
    }
    for (x, _, name) in COLUMNS {
        let said =
            if name.is_empty() { thousands(figure.n()) } else { figure.said(name).unwrap_or_else(|| "–".to_owned()) };
        let _ = writeln!(svg, "<text class=\"text figures end\" x=\"{x}\" y=\"{}\">{said}</text>", y + 5.0);
    }
}

/// The place of a time on the axis; times beyond an end lie at the end.
fn place(ns: f64) -> f64 {
    let decades = f64::from(DECADES.1 - DECADES.0);
    let share = (ns.max(1.0).log10() - f64::from(DECADES.0)) / decades;
    AXIS.0 + (AXIS.1 - AXIS.0) * share.clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lie_on_the_axis_by_their_logarithm() {
        assert_eq!([place(1.0), place(1e7)], [AXIS.0, AXIS.1]);
        assert_eq!([place(0.1), place(1e9)], [AXIS.0, AXIS.1]);
        let step = place(100.0) - place(10.0);
        assert!((place(1e6) - place(1e5) - step).abs() < 1e-9 && step > 0.0);
    }
}
