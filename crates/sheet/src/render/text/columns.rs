//! The columns of a table for a terminal: which of them fit, and their quantities aligned on their decimal points.

use unicode_width::UnicodeWidthStr;

use super::page::{INDENT, flush_right, padded};
use crate::render::Quantity;
use crate::render::quantity::{binary, centre, count, spread, statistic};
use crate::{Figure, Method};

/// One column of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    N,
    Min,
    Q1,
    Median,
    Binary,
    Spread,
    Q3,
    P99,
    P999,
    Max,
    Mean,
    From,
    To,
}

/// The possible layouts beside the labels, best first: the columns and the width of the distribution.
const LAYOUTS: &[(&[Column], usize)] = {
    use Column::{Max, Median, Min, N, P99, P999, Q1, Q3};
    &[
        (&[N, Min, Q1, Median, Q3, P99, P999, Max], 24),
        (&[N, Min, Q1, Median, Q3, P99, P999, Max], 16),
        (&[N, Min, Median, P99, P999, Max], 24),
        (&[N, Min, Median, P99, Max], 24),
        (&[N, Min, Median, P99, Max], 16),
        (&[N, Min, Median, P99, Max], 8),
        (&[N, Min, Median, P99, Max], 0),
        (&[N, Median, P99, Max], 0),
        (&[N, Median, Max], 0),
        (&[N, Median], 0),
    ]
};
/// The usual width of a quantity such as `13.62 µs`; narrower columns are widened to it, so that the tables of a sheet
/// line up.
const CELL_WIDTH: usize = 8;

/// The widths of the parts of a column's quantities.
#[derive(Clone, Copy, Default)]
pub(super) struct Widths {
    whole: usize,
    fraction: usize,
    unit: usize,
}

/// The best layout that leaves room for the labels. If there is room, the spread between rounds stands beside the
/// median, and medians of rates of bytes appear in powers of two, too.
pub(super) fn layout(width: usize, figures: &[&Figure]) -> (Vec<Column>, usize) {
    let label_width = (width / 4).clamp(16, 32);
    let fits = |columns: &[Column], spark: usize| {
        let numbers: usize = columns.iter().map(|c| widths(*c, figures).total(*c) + 2).sum();
        INDENT + label_width + numbers + spark + 2 * spark.min(1) <= width
    };
    let rounds = figures.iter().any(|figure| spread(figure).is_some());
    let beside = |column: Column| [Some(column), (rounds && column == Column::Median).then_some(Column::Spread)];
    let with_spread = |columns: &[Column]| columns.iter().copied().flat_map(beside).flatten().collect::<Vec<_>>();
    let (columns, spark) = decimal_layout(figures, |columns, spark| fits(&with_spread(columns), spark));
    let columns = with_spread(&columns);
    if figures.iter().all(|f| binary(f, f.median).is_some()) {
        let beside = |c: &Column| if *c == Column::Median { vec![*c, Column::Binary] } else { vec![*c] };
        let both: Vec<Column> = columns.iter().flat_map(beside).collect();
        if fits(&both, spark) {
            return (both, spark);
        }
    }
    (columns, spark)
}

/// The best layout without binary units.
fn decimal_layout(figures: &[&Figure], fits: impl Fn(&[Column], usize) -> bool) -> (Vec<Column>, usize) {
    // Counts, ratios and similar figures have no number of samples; a single sample has.
    if figures.iter().all(|f| f.is_single()) {
        let stamped = figures.iter().any(|f| f.method == Method::Stamp);
        return (if stamped { vec![Column::N, Column::Median] } else { vec![Column::Median] }, 0);
    }
    // A document without medians shows its other statistics.
    if figures.iter().all(|figure| figure.median.is_none() && figure.at_most.is_none()) {
        let some = |column: &Column| *column == Column::N || figures.iter().any(|f| column.quantity(f).is_some());
        let columns = [Column::N, Column::Min, Column::Mean, Column::Max];
        return (columns.into_iter().filter(some).collect(), 0);
    }
    // So does one whose figures are numbers with limits.
    if figures.iter().all(|figure| figure.is_interval()) {
        return (vec![Column::N, Column::From, Column::Median, Column::To], 0);
    }
    let (columns, spark) = LAYOUTS.iter().find(|(c, s)| fits(c, *s)).unwrap_or(&(&[Column::N, Column::Median], 0));
    (columns.to_vec(), *spark)
}

impl Column {
    pub(super) fn name(self) -> &'static str {
        match self {
            Column::N => "n",
            Column::Min => "min",
            Column::Q1 => "25 %",
            Column::Median => "median",
            Column::Binary => "binary",
            Column::Spread => "rounds",
            Column::Q3 => "75 %",
            Column::P99 => "p99",
            Column::P999 => "p99.9",
            Column::Max => "max",
            Column::Mean => "mean",
            Column::From => "95 %: from",
            Column::To => "to",
        }
    }

    fn quantity(self, figure: &Figure) -> Option<Quantity> {
        let value = match self {
            Column::N => {
                let whole = count(figure);
                return Some(Quantity { whole, fraction: String::new(), unit: "" });
            }
            Column::Binary => return binary(figure, figure.median),
            Column::Spread => return spread(figure),
            // A single value has no range: it appears once, as the median.
            _ if figure.is_single() && self != Column::Median => None,
            Column::Min => figure.min,
            Column::Q1 => figure.q1,
            Column::Median => return centre(figure),
            Column::Q3 => figure.q3,
            Column::P99 => figure.p99,
            Column::P999 => figure.p999,
            Column::Max => figure.max,
            Column::Mean => figure.mean,
            Column::From => figure.median_interval.map(|limits| limits[0]),
            Column::To => figure.median_interval.map(|limits| limits[1]),
        };
        statistic(figure, value)
    }
}

impl Widths {
    /// The column's width: its quantities, its name, and at least the usual width.
    pub(super) fn total(self, column: Column) -> usize {
        let least = if column == Column::N { 5 } else { CELL_WIDTH };
        self.quantities().max(column.name().width()).max(least)
    }

    fn quantities(self) -> usize {
        let fraction = if self.fraction > 0 { self.fraction + 1 } else { 0 };
        let unit = if self.unit > 0 { self.unit + 1 } else { 0 };
        self.whole + fraction + unit
    }
}

pub(super) fn widths(column: Column, figures: &[&Figure]) -> Widths {
    figures.iter().filter_map(|f| column.quantity(f)).fold(Widths::default(), |w, q| Widths {
        whole: w.whole.max(q.whole.width()),
        fraction: w.fraction.max(q.fraction.width()),
        unit: w.unit.max(q.unit.width()),
    })
}

/// A quantity aligned on its column's decimal point; a dash for a missing statistic.
pub(super) fn cell(column: Column, figure: &Figure, widths: Widths) -> String {
    let total = widths.total(column);
    let text = match column.quantity(figure) {
        Some(Quantity { whole, fraction, unit }) => {
            let point = if fraction.is_empty() { "" } else { "." };
            let fraction_width = if widths.fraction > 0 { widths.fraction + 1 } else { 0 };
            let unit_width = if widths.unit > 0 { widths.unit + 1 } else { 0 };
            let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
            let whole = flush_right(&whole, widths.whole);
            format!("{whole}{}{}", padded(&format!("{point}{fraction}"), fraction_width), padded(&unit, unit_width))
        }
        None => padded(&flush_right("–", widths.whole), widths.quantities()),
    };
    flush_right(&text, total)
}
