//! [`Findings`]: the results of a test, as it sends them to the host.
//!
//! `exact` holds values that must be the same in every run on every machine: counts and verdicts. `measured` holds
//! times, which depend on the machine. `captured` holds the bytes that the host must find in the file of the parallel
//! port, in order.

use std::time::Duration;

use hairspring_time::Nanos;
use serde_json::{Map, Value, json};

/// The results of a test.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    exact: Map<String, Value>,
    measured: Map<String, Value>,
    captured: Vec<u8>,
    sheet: Option<Value>,
    not_judged: Vec<String>,
}

impl Findings {
    /// A value that must be the same in every run.
    pub(crate) fn exact(&mut self, name: &str, value: impl Into<Value>) {
        self.exact.insert(name.to_owned(), value.into());
    }

    /// Least, median and greatest of some times.
    pub(crate) fn measured(&mut self, name: &str, times: &[Nanos]) {
        let mut sorted: Vec<i64> = times.iter().map(|time| time.count()).collect();
        sorted.sort_unstable();
        let at = |index: usize| sorted.get(index).copied();
        let spread = json!({
            "n": sorted.len(),
            "min_ns": at(0),
            "median_ns": at(sorted.len() / 2),
            "max_ns": at(sorted.len().saturating_sub(1)),
        });
        self.measured.insert(name.to_owned(), spread);
    }

    /// A text that may differ from run to run.
    pub(crate) fn note(&mut self, name: &str, text: String) {
        self.measured.insert(name.to_owned(), text.into());
    }

    /// A part of the test that cannot be judged here, and why: the host counts the test as skipped, unless it fails.
    pub(crate) fn not_judged(&mut self, why: String) {
        self.not_judged.push(why);
    }

    /// The next byte that the host must find in the file of the parallel port.
    pub(crate) fn captured(&mut self, byte: u8) {
        self.captured.push(byte);
    }

    /// The sheet, for the host.
    pub(crate) fn sheet(&mut self, sheet: Value) {
        self.sheet = Some(sheet);
    }

    /// The sheet goes into a separate line.
    pub(crate) fn take_sheet(&mut self) -> Option<Value> {
        self.sheet.take()
    }

    /// The JSON line for the host.
    pub(crate) fn line(&self, name: &str, ended: &Result<(), String>, took: Duration) -> Value {
        json!({
            "test": name,
            "passed": ended.is_ok(),
            "why": ended.as_ref().err(),
            "skipped": (ended.is_ok() && !self.not_judged.is_empty()).then(|| self.not_judged.join("; ")),
            "took_ms": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            "exact": self.exact,
            "measured": self.measured,
            "captured": self.captured,
        })
    }
}

/// Fails with a reason unless something holds.
pub(crate) fn check(holds: bool, why: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(why()) }
}

/// Requires an error whose text contains the hint; returns the text.
pub(crate) fn refused<T>(result: Result<T, impl std::fmt::Display>, what: &str, hint: &str) -> Result<(), String> {
    match result {
        Ok(_) => Err(format!("{what} was not refused")),
        Err(error) => {
            let error = error.to_string();
            check(error.contains(hint), || format!("{what} was refused with '{error}', which does not say '{hint}'"))
        }
    }
}

/// Any error, as the reason of a failure.
pub(crate) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
