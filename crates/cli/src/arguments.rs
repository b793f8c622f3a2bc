//! Arguments that several commands share: the syntax of values, and the formats of reports.

use std::fmt::Display;
use std::str::FromStr;

use clap::ValueEnum;
use hairspring_time::Nanos;

/// The formats of most reports: text for people, JSON for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Plain {
    Text,
    Json,
}

/// Parses a value by the rules of its type.
pub(crate) fn parsed<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Reads a whole number between two limits, both included.
pub(crate) fn number<T>(least: T, most: T) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static,
{
    move |text| match text.parse() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!("write a whole number from {least} to {most}")),
    }
}

/// Reads a duration with a unit; not negative.
pub(crate) fn duration(text: &str) -> Result<Nanos, String> {
    match parsed::<Nanos>(text)? {
        span if span.is_negative() => Err(format!("{span} is negative: write a duration like 250us, 1.5ms or 2s")),
        span => Ok(span),
    }
}
