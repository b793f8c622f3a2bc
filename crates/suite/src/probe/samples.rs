//! Samples of one row while it is measured, in preallocated memory, so that recording does not allocate.

use std::collections::BTreeMap;

use hairspring_machine::Nanos;
use hairspring_sheet::Absent;
use hairspring_time::{Report, Verdict};

use super::reading::{Reading, Taken};
use crate::interleaving::median;

/// The most samples of one row: more would not improve a percentile, and the sheet is held in memory.
pub(crate) const SAMPLES_MOST: usize = 20_000;

/// Samples in nanoseconds, with counts.
#[derive(Debug)]
pub(crate) struct Samples {
    values: Vec<f64>,
    early: u64,
    verdicts: [u64; Verdict::NAMES.len()],
}

impl Samples {
    /// Room for [`SAMPLES_MOST`] samples, touched once so that no page fault occurs during a measurement.
    pub(crate) fn new() -> Self {
        // Not zeros: the system returns those as untouched pages.
        let mut values = vec![1.0; SAMPLES_MOST];
        values.clear();
        Self { values, early: 0, verdicts: [0; Verdict::NAMES.len()] }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.values.len() == SAMPLES_MOST
    }

    pub(crate) fn len(&self) -> usize {
        self.values.len()
    }

    /// The samples so far, in the order of time; keeps the room for more.
    pub(crate) fn take(&mut self) -> Vec<f64> {
        let taken = self.values.clone();
        self.values.clear();
        taken
    }

    pub(crate) fn push(&mut self, value: f64) {
        if !self.is_full() {
            self.values.push(value);
        }
    }

    pub(crate) fn push_nanos(&mut self, value: Nanos) {
        self.push(value.count() as f64);
    }

    /// Adds a delay: its lateness, its verdict, and whether it was early by its own report or by the caller's stamps.
    pub(crate) fn push_delay(&mut self, report: &Report, seen: Nanos) {
        self.push_nanos(report.late);
        self.early += u64::from(report.late.is_negative() || seen < report.requested);
        let name = report.verdict.name();
        if let Some(index) = Verdict::NAMES.iter().position(|known| *known == name) {
            self.verdicts[index] += 1;
        }
    }

    pub(crate) fn early(&self) -> u64 {
        self.early
    }

    /// The number of each verdict, without those that did not occur.
    pub(crate) fn verdicts(&self) -> BTreeMap<String, u64> {
        let named = Verdict::NAMES.iter().zip(self.verdicts);
        named.filter(|(_, count)| *count > 0).map(|(name, count)| ((*name).to_owned(), count)).collect()
    }

    /// The samples so far, in nanoseconds.
    pub(crate) fn values(&self) -> &[f64] {
        &self.values
    }

    /// The samples, in the order of time.
    pub(crate) fn into_values(self) -> Vec<f64> {
        self.values
    }

    /// The median so far.
    pub(crate) fn median(&self) -> Option<f64> {
        (!self.values.is_empty()).then(|| median(&self.values))
    }

    /// The range so far.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let least = self.values().iter().copied().min_by(f64::total_cmp)?;
        let most = self.values().iter().copied().max_by(f64::total_cmp)?;
        Some((least, most))
    }

    /// The reading of these samples, or the reason for its absence.
    pub(crate) fn taken(self, empty: &Absent) -> Taken {
        if self.values.is_empty() { Err(empty.clone()) } else { Ok(Reading::samples(self.values)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::system::page_faults;

    #[test]
    fn no_page_fault_falls_into_the_first_samples() {
        page_faults();
        let mut samples = Samples::new();
        let before = page_faults();
        (0..SAMPLES_MOST).for_each(|_| samples.push(1.0));
        let minor = before.zip(page_faults()).map_or(0, |(before, after)| after[0] - before[0]);
        assert!(samples.is_full() && minor < 5, "{minor} page faults");
    }
}
