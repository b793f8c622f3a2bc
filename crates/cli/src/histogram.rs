//! Draws a distribution with bars.

use hairspring_sheet::render::quantity;
use hairspring_sheet::{Figure, Histogram, Unit};

/// Most rows; neighbouring buckets are merged until they fit.
const ROWS_MOST: usize = 24;
/// Parts of a character cell that a bar can end on.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// The statistics in one line and the histogram below, no wider than `width`.
pub(crate) fn drawn(figure: &Figure, width: usize) -> String {
    let said = |name: &str, value: Option<f64>| value.map(|v| format!("{name} {}", quantity(v, figure.unit)));
    let statistics = [
        said("min", figure.min),
        said("median", figure.median),
        said("p99", figure.p99),
        said("p99.9", figure.p999),
        said(&if figure.p99.is_some() { "max".to_owned() } else { format!("largest of {}", figure.n) }, figure.max),
    ];
    let mut text = format!("{}\n", statistics.into_iter().flatten().collect::<Vec<_>>().join("   "));
    if let Some(histogram) = &figure.histogram {
        text.push('\n');
        for (from, to, count) in rows(histogram) {
            text.push_str(&row(from, to, count, histogram, figure.unit, width));
        }
    }
    text
}

/// The buckets, merged pairwise until there are few enough.
fn rows(histogram: &Histogram) -> Vec<(f64, f64, u64)> {
    let mut rows: Vec<_> = histogram.buckets.iter().map(|bucket| (bucket.from, bucket.to, bucket.count)).collect();
    while rows.len() > ROWS_MOST {
        rows = rows.chunks(2).map(|pair| (pair[0].0, pair[pair.len() - 1].1, pair.iter().map(|r| r.2).sum())).collect();
    }
    rows
}

fn row(from: f64, to: f64, count: u64, histogram: &Histogram, unit: Unit, width: usize) -> String {
    let most = rows(histogram).iter().map(|row| row.2).max().unwrap_or(1);
    let room = width.saturating_sub(38).max(8);
    let eighths = (count as f64 / most as f64 * room as f64 * 8.0).ceil() as usize;
    let mut bar = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        bar.push(EIGHTHS[eighths % 8]);
    }
    // Delays are given in whole nanoseconds, so a bucket narrower than one has a single value.
    let range = if to - from < 1.0 {
        quantity(from, unit).to_string()
    } else {
        format!("{} – {}", quantity(from, unit), quantity(to, unit))
    };
    format!("{range:>24} {count:>9}  {bar}\n")
}
