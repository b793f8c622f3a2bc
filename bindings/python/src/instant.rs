//! [`Instant`]: a point in time with its epoch, so that a difference across a suspend is an error and not a wrong
//! number.

use std::cmp::Ordering;

use hairspring_time::Nanos;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pyclass::CompareOp;

use crate::arguments::{Seconds, Whole, not_pickled};

/// A point in time of a time base, read by its instant(). `later - earlier` is nanoseconds. Instants of different
/// epochs (with a suspend or a step of the clock between them) have no difference and no order: ValueError.
#[pyclass(frozen, from_py_object, module = "hairspring")]
#[derive(Clone, Copy)]
pub(crate) struct Instant(pub(crate) hairspring_time::Instant);

impl Instant {
    fn since(self, earlier: Self) -> PyResult<Nanos> {
        self.0.since(earlier.0).map_err(|error| PyValueError::new_err(format!("failed to {error}")))
    }
}

#[pymethods]
impl Instant {
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("an Instant", "pass on its monotonic_ns, and say on which computer it was read"))
    }

    /// The reading of CLOCK_MONOTONIC at this instant, in nanoseconds.
    #[getter]
    fn monotonic_ns(&self) -> i64 {
        self.0.as_monotonic().count()
    }

    /// The number of its epoch: a period without a suspend or a step of the clock.
    #[getter]
    fn epoch(&self) -> u32 {
        self.0.epoch().number()
    }

    /// The instant `ns` nanoseconds later.
    fn plus_ns(&self, ns: Whole) -> Self {
        Self(self.0 + ns.0)
    }

    fn __sub__(&self, earlier: Self) -> PyResult<i64> {
        self.since(earlier).map(Nanos::count)
    }

    fn __richcmp__(&self, other: Self, operation: CompareOp) -> PyResult<bool> {
        match operation {
            CompareOp::Eq => Ok(self.0.since(other.0) == Ok(Nanos::ZERO)),
            CompareOp::Ne => Ok(self.0.since(other.0) != Ok(Nanos::ZERO)),
            _ => {
                let order: Ordering = self.since(other)?.cmp(&Nanos::ZERO);
                Ok(operation.matches(order))
            }
        }
    }

    fn __hash__(&self) -> u64 {
        (self.0.as_monotonic().count() as u64) ^ u64::from(self.epoch()).rotate_left(48)
    }

    fn __repr__(&self) -> String {
        format!("<Instant: {} ns in epoch {}>", self.monotonic_ns(), self.epoch())
    }
}

/// A deadline: an instant, or a number of seconds on the scale of CLOCK_MONOTONIC, without an epoch.
pub(crate) enum Deadline {
    Instant(hairspring_time::Instant),
    At(Nanos),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Deadline {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.cast::<Instant>() {
            Ok(instant) => Ok(Self::Instant(instant.get().0)),
            Err(_) => Seconds::extract(object).map(|seconds| Self::At(seconds.0)),
        }
    }
}

impl Deadline {
    /// The deadline as an instant of a time base.
    pub(crate) fn on(self, timebase: &hairspring_time::Timebase) -> hairspring_time::Instant {
        match self {
            Self::Instant(instant) => instant,
            Self::At(at) => moment(timebase, at),
        }
    }
}

/// The instant of a time base for a number on its scale.
pub(crate) fn moment(timebase: &hairspring_time::Timebase, at: Nanos) -> hairspring_time::Instant {
    hairspring_time::Instant::of_epoch(timebase.epoch(), at)
}
