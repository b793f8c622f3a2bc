//! [`Profile`]: how long a piece of code takes, call by call.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use hairspring_time::{Host, Nanos, Ordering, Start};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments::not_pickled;
use crate::timebase::{Timebase, given_or_default};

struct Spans {
    profile: hairspring_time::Profile<'static, Host>,
    /// Open spans: each thread ends its own, the latest first.
    open: Vec<(ThreadId, Start)>,
}

/// The spans of one piece of code, each a `with` block. Threads may share a profile; blocks may be nested.
#[pyclass(frozen, subclass, module = "hairspring")]
pub(crate) struct Profile(Mutex<Spans>);

impl Profile {
    fn spans(&self) -> MutexGuard<'_, Spans> {
        // A span that a panic left open does no harm.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Profile {
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("a Profile", "pass on the figures of its summary()"))
    }

    /// An empty profile. With `ordered`, each stamp waits until the CPU has finished all earlier instructions.
    #[new]
    #[pyo3(signature = (timebase = None, *, ordered = true))]
    fn new(py: Python<'_>, timebase: Option<Timebase>, ordered: bool) -> PyResult<Self> {
        let timebase = hairspring_time::Timebase::clone(&*given_or_default(py, timebase)?);
        let ordering = if ordered { Ordering::Ordered } else { Ordering::Unordered };
        let profile = hairspring_time::Profile::new(timebase, ordering);
        Ok(Self(Mutex::new(Spans { profile, open: Vec::with_capacity(16) })))
    }

    /// Uses the successor that refine() made of its time base. Its rate also converts the spans recorded so far. If it
    /// takes time from another source, blocks under way are forgotten: their end is a RuntimeError.
    fn adopt(&self, successor: Timebase) {
        let mut spans = self.spans();
        if successor.0.source() != spans.profile.timebase().source() {
            spans.open.clear();
        }
        spans.profile.adopt(hairspring_time::Timebase::clone(&successor.0));
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        let thread = thread::current().id();
        let mut spans = slf.spans();
        // Last, so that the span contains only the return from this function.
        let start = spans.profile.start();
        spans.open.push((thread, start));
        drop(spans);
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut spans = self.spans();
        let Spans { profile, open } = &mut *spans;
        // Reads the end stamp here, after looking up the beginning.
        let thread = thread::current().id();
        let Some(place) = open.iter().rposition(|(owner, _)| *owner == thread) else {
            return Err(PyRuntimeError::new_err(
                "this thread has no span of this Profile open; use it as `with profile:`",
            ));
        };
        let (_, start) = open.remove(place);
        profile.stop(start);
        Ok(())
    }

    /// The figures so far.
    fn summary(&self) -> Summary {
        Summary(self.spans().profile.summary())
    }

    fn __repr__(&self) -> String {
        let summary = self.spans().profile.summary();
        match summary.median {
            Some(median) => format!("<Profile: {} spans, median {median}>", summary.count),
            None => format!("<Profile: {} spans>", summary.count),
        }
    }
}

/// The figures of a profile, in nanoseconds; None where there are too few spans.
#[pyclass(frozen, eq, module = "hairspring")]
#[derive(PartialEq)]
pub(crate) struct Summary(hairspring_time::Summary);

#[pymethods]
impl Summary {
    /// The number of spans, with the first.
    #[getter]
    fn count(&self) -> u64 {
        self.0.count
    }

    /// The first span.
    #[getter]
    fn first_ns(&self) -> Option<i64> {
        self.0.first.map(Nanos::count)
    }

    /// The shortest of the others.
    #[getter]
    fn min_ns(&self) -> Option<i64> {
        self.0.min.map(Nanos::count)
    }

    /// The median of the others.
    #[getter]
    fn median_ns(&self) -> Option<i64> {
        self.0.median.map(Nanos::count)
    }

    /// The longest of the others.
    #[getter]
    fn max_ns(&self) -> Option<i64> {
        self.0.max.map(Nanos::count)
    }

    /// The mean of the others.
    #[getter]
    fn mean_ns(&self) -> Option<i64> {
        self.0.mean.map(Nanos::count)
    }

    /// The time between two consecutive stamps, without the cost of Python.
    #[getter]
    fn stamp_cost_ns(&self) -> i64 {
        self.0.stamp_cost.count()
    }

    fn __repr__(&self) -> String {
        let text = |figure: Option<Nanos>| figure.map_or("-".to_owned(), |figure| figure.to_string());
        let (first, min, median, max) = (text(self.0.first), text(self.0.min), text(self.0.median), text(self.0.max));
        format!("<Summary: {} spans, first {first}, then {min} / {median} / {max}>", self.0.count)
    }
}
