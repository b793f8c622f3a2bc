//! Report of a delay, as Python sees it: [`Report`], [`Verdict`], [`Gaps`].

use std::collections::BTreeMap;

use hairspring_time::{Cause, Nanos};
use pyo3::prelude::*;

use crate::waiting::Waited;

/// Measured times and verdict of a delay. Names that end in `_ns` are integers; the others are seconds.
#[pyclass(frozen, module = "hairspring")]
pub(crate) struct Report(pub(crate) Waited);

#[pymethods]
impl Report {
    /// The requested time.
    #[getter]
    fn requested_ns(&self) -> i64 {
        self.0.report.requested.count()
    }

    /// Measured length of the delay.
    #[getter]
    fn actual_ns(&self) -> i64 {
        self.0.report.actual.count()
    }

    /// Lateness: time beyond the request; negative only with a lead.
    #[getter]
    fn late_ns(&self) -> i64 {
        self.0.report.late.count()
    }

    /// Time spent asleep in the kernel.
    #[getter]
    fn slept_ns(&self) -> i64 {
        self.0.report.slept.count()
    }

    /// Time spent polling.
    #[getter]
    fn polled_ns(&self) -> i64 {
        self.0.report.polled.count()
    }

    /// Planned time of polling before the deadline; 0 if the delay only polled.
    #[getter]
    fn window_ns(&self) -> i64 {
        self.0.report.window.count()
    }

    /// Time that the thread waited for the GIL after the end of the delay; 0 if it kept the GIL or had it back before.
    /// Not part of `late_ns`.
    #[getter]
    fn gil_wait_ns(&self) -> i64 {
        self.0.lock.count()
    }

    /// The requested time, in seconds.
    #[getter]
    fn requested(&self) -> f64 {
        self.0.report.requested.as_secs_f64()
    }

    /// Measured length of the delay, in seconds.
    #[getter]
    fn actual(&self) -> f64 {
        self.0.report.actual.as_secs_f64()
    }

    /// Lateness: time beyond the request, in seconds.
    #[getter]
    fn late(&self) -> f64 {
        self.0.report.late.as_secs_f64()
    }

    /// Disturbances of the delay.
    #[getter]
    fn verdict(&self) -> Verdict {
        Verdict(self.0.report.verdict)
    }

    fn __repr__(&self) -> String {
        let report = &self.0.report;
        let (requested, actual, late) = (report.requested, report.actual, report.late);
        format!("<Report: {actual} for {requested}, {late} late, {}>", report.verdict.name())
    }
}

/// Disturbances of the thread during the delay, as far as they can be detected. True if the verdict is clean.
#[pyclass(frozen, eq, module = "hairspring")]
#[derive(PartialEq)]
pub(crate) struct Verdict(hairspring_time::Verdict);

#[pymethods]
impl Verdict {
    /// The verdict in one word: `clean`, or the gravest disturbance.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// No disturbance was detected.
    #[getter]
    fn is_clean(&self) -> bool {
        self.0.is_clean()
    }

    /// The thread was moved to another CPU.
    #[getter]
    fn migrated(&self) -> bool {
        self.0.migrated
    }

    /// The polling budget was used up, and the delay slept for the rest of its time.
    #[getter]
    fn budget_spent(&self) -> bool {
        self.0.budget_spent
    }

    /// The kernel's clock did not run at the rate of the time base: refine the time base.
    #[getter]
    fn rerated(&self) -> bool {
        self.0.rerated
    }

    /// The longest gap looks like the kernel's throttling of real-time threads.
    #[getter]
    fn throttled(&self) -> bool {
        self.0.throttled
    }

    /// By how much the kernel woke the thread after the deadline itself.
    #[getter]
    fn overslept_ns(&self) -> i64 {
        self.0.overslept.count()
    }

    /// The total time in which the thread did not run.
    #[getter]
    fn lost_ns(&self) -> i64 {
        self.0.lost().count()
    }

    /// The gaps in which the thread did not run, by cause.
    #[getter]
    fn gaps(&self) -> BTreeMap<&'static str, Gaps> {
        let some = Cause::ALL.into_iter().map(|cause| (cause.name(), self.0.gaps(cause)));
        some.filter(|(_, gaps)| gaps.count > 0).map(|(name, gaps)| (name, Gaps(gaps))).collect()
    }

    fn __bool__(&self) -> bool {
        self.0.is_clean()
    }

    fn __str__(&self) -> &'static str {
        self.0.name()
    }

    fn __repr__(&self) -> String {
        match self.0.lost() {
            Nanos::ZERO => format!("<Verdict: {}>", self.0.name()),
            lost => format!("<Verdict: {}, {lost} lost>", self.0.name()),
        }
    }
}

/// The gaps of one cause.
#[pyclass(frozen, eq, module = "hairspring")]
#[derive(PartialEq)]
pub(crate) struct Gaps(hairspring_time::Gaps);

#[pymethods]
impl Gaps {
    /// Number of gaps.
    #[getter]
    fn count(&self) -> u32 {
        self.0.count
    }

    /// Their total length.
    #[getter]
    fn total_ns(&self) -> i64 {
        self.0.total.count()
    }

    /// The longest.
    #[getter]
    fn longest_ns(&self) -> i64 {
        self.0.longest.count()
    }

    fn __repr__(&self) -> String {
        format!("<Gaps: {}, {} in all, the longest {}>", self.0.count, self.0.total, self.0.longest)
    }
}
