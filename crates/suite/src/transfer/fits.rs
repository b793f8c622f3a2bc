//! The lines through sweeps: their rows, and the plots of rates over block sizes with the fitted curves.

use hairspring_machine::Machine;
use hairspring_sheet::{Axis, Method, Point, Series, SeriesLine, Unit};

use super::hockney::{Block, Estimate, Fit};
use crate::interleaving::median;
use crate::probe::{Context, Probes, Reading, Row, Slot, TableSlot, Taken};

/// Points of a fitted curve.
const POINTS: u32 = 40;

/// The rows of the line through one sweep.
#[derive(Clone, Copy)]
pub(super) struct FitRows {
    r_inf: Slot,
    t0: Slot,
    n_half: Slot,
}

impl FitRows {
    pub(super) fn all(self) -> [Slot; 3] {
        [self.r_inf, self.t0, self.n_half]
    }
}

/// The table of the lines through some sweeps.
pub(super) fn table<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>, id: &str, title: &str) -> TableSlot {
    probes.table(
        id,
        title,
        "at least 4 block sizes, none of whose medians is farther than 25 % from the line; limits by 1,000 redraws of \
         the repeats; a number whose limits are as wide as itself, or reach zero, is absent",
    )
}

/// The rows of the line through the sweep with this name.
pub(super) fn rows<M: Machine + Clone + Sync + 'static>(
    probes: &mut Probes<M>,
    table: TableSlot,
    sweep: &str,
    name: &str,
) -> FitRows {
    let mut row = |quantity: &str, what: &str, unit, measures: &str| {
        let measures = format!("{measures}; T(n) = n/r∞ + t₀ fitted to the times of a block by its size, {name}");
        let (suffix, label) = (format!("{sweep}.fit.{quantity}"), format!("{name}: {what}"));
        probes.row(table, Row::new(suffix, label, unit, Method::Derived, measures))
    };
    FitRows {
        r_inf: row("r_inf", "r∞", Unit::BytesPerS, "rate that large blocks approach"),
        t0: row("t0", "t₀", Unit::Ns, "what every block costs, however small it is"),
        n_half: row("n_half", "n½", Unit::Bytes, "block size at which half of that rate is reached, r∞·t₀"),
    }
}

/// Fits the line through a sweep and enters its rows. Returns the lines to draw: the medians, and the fitted curve if
/// there is one.
pub(super) fn enter<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    rows: FitRows,
    name: &str,
    blocks: &[Block],
) -> Vec<SeriesLine> {
    let fit = Fit::through(blocks);
    match &fit {
        Ok(fit) => {
            for (slot, taken) in rows.all().into_iter().zip(values(fit, blocks)) {
                context.enter(slot, taken);
            }
        }
        Err(absent) => context.absent_all(rows.all(), absent),
    }
    let measured = blocks.iter().map(|block| {
        let rate = |time_ns: f64| block.bytes * 1e9 / time_ns;
        let least = block.times_ns.iter().copied().fold(f64::INFINITY, f64::min);
        let most = block.times_ns.iter().copied().fold(0.0, f64::max);
        Point { x: block.bytes, y: rate(median(&block.times_ns)), low: Some(rate(most)), high: Some(rate(least)) }
    });
    let mut lines = vec![SeriesLine { name: name.to_owned(), points: measured.collect(), fitted: false }];
    let ends = [blocks.first(), blocks.last()].map(|block| block.map(|block| block.bytes.log2()));
    if let (Ok(fit), [Some(first), Some(last)]) = (&fit, ends) {
        let bytes = (0..=POINTS).map(|i| (first + (last - first) * f64::from(i) / f64::from(POINTS)).exp2());
        let points = bytes.map(|x| Point { x, y: fit.rate(x), low: None, high: None }).collect();
        lines.push(SeriesLine { name: format!("{name}, fitted"), points, fitted: true });
    }
    lines
}

/// The rows of a fit: r∞, t₀, n½.
fn values(fit: &Fit, blocks: &[Block]) -> [Taken; 3] {
    let n = blocks.iter().map(|block| block.times_ns.len() as u64).sum();
    let reading = |estimate: Estimate| Reading::estimate(n, estimate.value, estimate.limits);
    [Ok(reading(fit.r_inf)), fit.t0.clone().map(reading), fit.n_half.clone().map(reading)]
}

/// A plot of rates over block sizes; none without lines.
pub(super) fn plot<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    id: &str,
    title: &str,
    along: &str,
    lines: Vec<SeriesLine>,
) {
    if !lines.is_empty() {
        context.series.push(Series {
            id: id.to_owned(),
            title: title.to_owned(),
            x: Axis { label: along.to_owned(), unit: Unit::Bytes, log: true },
            y: Axis { label: "rate".to_owned(), unit: Unit::BytesPerS, log: true },
            lines,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sweep over block sizes of a machine that starts a block in `start_ns` nanoseconds and moves 4 bytes in each
    /// further one. The repeats scatter by 2 %.
    fn sweep(start_ns: f64) -> Vec<Block> {
        let block = |power: i32| {
            let bytes = f64::from(power).exp2();
            let scattered = |repeat: i32| (start_ns + bytes / 4.0) * (1.0 + 0.01 * f64::from(repeat));
            Block { bytes, times_ns: (-2..=2).map(scattered).collect() }
        };
        (10..=20).map(block).collect()
    }

    #[test]
    fn a_computed_number_is_that_of_the_machine_and_lies_within_its_limits() {
        let blocks = sweep(1_000.0);
        let fit = Fit::through(&blocks).expect("a line");
        for (value, (name, unit, expected)) in values(&fit, &blocks).into_iter().zip([
            ("r_inf", Unit::BytesPerS, 4e9),
            ("t0", Unit::Ns, 1_000.0),
            ("n_half", Unit::Bytes, 4_000.0),
        ]) {
            let figure = value.expect(name).figure(unit, Method::Derived);
            assert_eq!(figure.n, 55, "{name}");
            let ([low, high], median) = (figure.median_interval.expect("limits"), figure.median.expect("a number"));
            assert!(0.0 < low && low <= median && median <= high, "{name}: {low} {median} {high}");
            assert!((median / expected - 1.0).abs() < 0.01, "{name}: {median}");
        }
    }

    #[test]
    fn what_a_sweep_does_not_tell_is_absent_with_its_reason() {
        let blocks = sweep(0.0);
        let fit = Fit::through(&blocks).expect("the rate is known");
        let [rate, t0, n_half] = values(&fit, &blocks);
        assert!(rate.is_ok());
        for absent in [t0.expect_err("nothing to begin with"), n_half.expect_err("the same")] {
            assert!(absent.reason.contains("too small for this sweep"), "{}", absent.reason);
        }
    }
}
