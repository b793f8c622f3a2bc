//! Numbers for people: three significant digits and a unit that fits the size.
//!
//! `13620.0` nanoseconds are `13.6 µs`. Every rendering but JSON goes through here; JSON keeps the raw numbers.

use std::fmt;

use crate::{Figure, Unit};

/// A number with its unit, formatted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// The digits before the decimal point, with the sign and with commas between thousands.
    pub whole: String,
    /// The digits after the decimal point, without it; may be empty.
    pub fraction: String,
    /// The unit as written, for instance `µs`; empty for counts.
    pub unit: &'static str,
}

impl Quantity {
    /// The digits alone.
    pub fn number(&self) -> String {
        if self.fraction.is_empty() { self.whole.clone() } else { format!("{}.{}", self.whole, self.fraction) }
    }

    /// The same quantity without zeros at the end of its fraction: for ticks of an axis and other round numbers.
    #[must_use]
    pub fn trimmed(mut self) -> Self {
        if !self.fraction.contains('e') {
            self.fraction.truncate(self.fraction.trim_end_matches('0').len());
        }
        self
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.number();
        if self.unit.is_empty() { f.pad(&number) } else { f.pad(&format!("{number} {}", self.unit)) }
    }
}

/// Three significant digits: more than the spread of most timings, and few enough to compare at a glance.
const DIGITS: usize = 3;
/// From this ratio on a ratio is written as a factor, below as a percentage.
const TIMES_FROM: f64 = 10.0;
/// A double holds no more than 17 significant digits; a rate in hertz needs 10.
const DIGITS_MAX: usize = 12;
/// From this size on, and below its inverse, a number is written with an exponent.
const EXPONENT_FROM: f64 = 1e12;

/// The sizes of a rate of bytes in powers of two.
const BINARY: [(&str, f64); 4] =
    [("B/s", 1.0), ("KiB/s", 1024.0), ("MiB/s", 1024.0 * 1024.0), ("GiB/s", 1024.0 * 1024.0 * 1024.0)];
/// From this many MiB/s on, a rate is written in GiB/s.
const GIB_FROM: f64 = 10_000.0;

/// Writes `value`, given in `unit`, with three significant digits. Whole counts are written in full.
pub fn quantity(value: f64, unit: Unit) -> Quantity {
    quantity_with_digits(value, unit, DIGITS)
}

/// Writes `value`, given in `unit`, with this many significant digits (1 to 12).
pub fn quantity_with_digits(value: f64, unit: Unit, digits: usize) -> Quantity {
    let digits = digits.clamp(1, DIGITS_MAX);
    // Minus zero is a zero.
    let value = if value == 0.0 { 0.0 } else { value };
    let steps = if unit == Unit::Ratio && value.abs() >= TIMES_FROM { &[("×", 1.0)] } else { steps(unit) };
    let base = steps.iter().position(|(_, factor)| *factor == 1.0).unwrap_or(0);
    let magnitude = value.abs();
    // The step below the base (picoseconds, parts per billion) only for numbers that would be all zeros otherwise.
    let mut step = if base > 0 && magnitude < 0.01 && magnitude > 0.0 { base - 1 } else { base };
    while step >= base
        && step + 1 < steps.len()
        && rounded(magnitude / steps[step].1, digits) * steps[step].1 >= steps[step + 1].1
    {
        step += 1;
    }
    let (name, factor) = steps[step];
    let scaled = value / factor;
    let (whole, fraction) = if unit == Unit::Count && value.fract() == 0.0 && magnitude < EXPONENT_FROM {
        (grouped(&format!("{value:.0}")), String::new())
    } else {
        written(scaled, digits)
    };
    Quantity { whole, fraction, unit: name }
}

/// A statistic of a figure, with as many digits as the figure deserves; `None` where `n` does not support it.
pub(crate) fn statistic(figure: &Figure, value: Option<f64>) -> Option<Quantity> {
    value.map(|v| quantity_with_digits(v, figure.unit, digits(figure)))
}

/// The variation of the median from round to round, as a share of it, or in the figure's unit if a round's median is
/// not positive; `None` below two rounds.
pub(crate) fn spread(figure: &Figure) -> Option<Quantity> {
    let between = figure.between?;
    let relative = figure.rounds.iter().all(|round| round.median > 0.0);
    let quantity = quantity_with_digits(between, if relative { Unit::Ratio } else { figure.unit }, 2);
    Some(Quantity { whole: format!("±{}", quantity.whole), ..quantity })
}

/// The median, or the upper limit if only that is known.
pub(crate) fn centre(figure: &Figure) -> Option<Quantity> {
    let at_most = || {
        let most = quantity(figure.at_most?, figure.unit);
        Some(Quantity { whole: format!("≤ {}", most.whole), ..most })
    };
    statistic(figure, figure.median).or_else(at_most)
}

/// The number of samples, with the equivalent number of independent ones if that is less than half.
pub(crate) fn count(figure: &Figure) -> String {
    let n = grouped(&figure.n.to_string());
    match figure.n_effective.filter(|effective| 2.0 * effective < figure.n as f64) {
        Some(effective) => format!("{n} ({})", grouped(&format!("{effective:.0}"))),
        None => n,
    }
}

/// A rate of bytes in powers of two, as documents on disks and memories print it; `None` for any other unit. It stays
/// in MiB/s up to [`GIB_FROM`] of them, because that is how such rates are quoted.
pub(crate) fn binary(figure: &Figure, value: Option<f64>) -> Option<Quantity> {
    let value = value.filter(|_| figure.unit == Unit::BytesPerS)?;
    let fits = |(_, factor): &&(&str, f64)| rounded(value.abs() / factor, DIGITS) >= 1.0;
    let steps = if value.abs() < GIB_FROM * 1024.0 * 1024.0 { &BINARY[..3] } else { &BINARY[..] };
    let (unit, factor) = *steps.iter().rev().find(fits).unwrap_or(&BINARY[0]);
    let scaled = value / factor;
    let (whole, fraction) = if scaled.abs() < 1000.0 { written(scaled, DIGITS) } else { written(scaled.round(), 4) };
    Some(Quantity { whole, fraction, unit })
}

/// Significant digits of a figure: three, but rates resolve 1 Hz or their own spread, because readers look for the
/// difference between two rates.
fn digits(figure: &Figure) -> usize {
    let is_rate = matches!(figure.unit, Unit::Hz | Unit::PerSecond);
    let Some(median) = figure.median.filter(|m| is_rate && m.abs() >= 1000.0) else { return DIGITS };
    let full = median.abs().log10().floor() as usize + 1;
    let spread = match (figure.q1, figure.q3) {
        (Some(q1), Some(q3)) => q3 - q1,
        _ => 0.0,
    };
    if spread <= 0.0 {
        return full.clamp(DIGITS, DIGITS_MAX);
    }
    let resolving = (median.abs() / spread).log10().ceil().max(0.0) as usize + 1;
    resolving.clamp(DIGITS, full.clamp(DIGITS, DIGITS_MAX))
}

/// The names of a unit's sizes with their factors, ascending.
fn steps(unit: Unit) -> &'static [(&'static str, f64)] {
    match unit {
        Unit::Ns => &[("ps", 1e-3), ("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)],
        Unit::Ppm => &[("ppb", 1e-3), ("ppm", 1.0)],
        Unit::Hz => &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)],
        Unit::PerSecond => &[("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6), ("G/s", 1e9)],
        Unit::Ratio => &[("%", 0.01)],
        Unit::Count => &[("", 1.0)],
        Unit::Bytes => {
            &[("B", 1.0), ("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0), ("TiB", 1_099_511_627_776.0)]
        }
        Unit::BytesPerS => &[("B/s", 1.0), ("kB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9)],
    }
}

/// The number of decimals for `digits` significant digits of `value`.
fn decimals(value: f64, digits: usize) -> usize {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let leading = value.abs().log10().floor() as i32;
    let wanted = |leading: i32| usize::try_from(digits as i32 - 1 - leading).unwrap_or(0);
    // Rounding may carry into one more digit: 9.996 is 10.0, not 10.00.
    let carried =
        format!("{:.*}", wanted(leading), value.abs()).parse::<f64>().is_ok_and(|r| r >= 10f64.powi(leading + 1));
    wanted(leading + i32::from(carried))
}

fn rounded(value: f64, digits: usize) -> f64 {
    format!("{:.*}", decimals(value, digits), value).parse().unwrap_or(value)
}

fn written(value: f64, digits: usize) -> (String, String) {
    let magnitude = value.abs();
    let text =
        if value.is_finite() && magnitude >= EXPONENT_FROM || (magnitude > 0.0 && magnitude < 1.0 / EXPONENT_FROM) {
            format!("{value:.*e}", digits - 1)
        } else {
            format!("{value:.*}", decimals(value, digits))
        };
    match text.split_once('.') {
        Some((whole, fraction)) => (grouped(whole), fraction.to_owned()),
        None => (grouped(&text), String::new()),
    }
}

/// Commas between the thousands.
pub(crate) fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |d| ("-", d));
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return format!("{sign}{digits}");
    }
    let mut text = sign.to_owned();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
