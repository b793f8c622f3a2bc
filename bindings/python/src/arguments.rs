//! Times as Python passes them: seconds as any real number, nanoseconds as whole numbers. Booleans and texts are
//! refused.

use hairspring_machine::Instant;
use hairspring_time::{DelayError, Host, Machine, Nanos};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt};

/// Relative error of a float multiplied by 10⁹, with a margin.
const ROUNDING: f64 = 1e-15;

/// The error for an object that cannot be pickled, with the alternative.
pub(crate) fn not_pickled(what: &str, instead: &str) -> PyErr {
    PyTypeError::new_err(format!("cannot pickle {what}: it holds on to this process; {instead}"))
}

/// A span in seconds, rounded up to a nanosecond, because a wait must not be shorter than requested.
pub(crate) struct Seconds(pub(crate) Nanos);

/// A span in nanoseconds.
pub(crate) struct Whole(pub(crate) Nanos);

/// A span counted from the entry of the call, by the kernel's clock: with cold caches it takes microseconds from here
/// to the delay.
pub(crate) struct FromNow<T> {
    pub(crate) began: Instant,
    pub(crate) span: T,
}

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for FromNow<T> {
    type Error = T::Error;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> Result<Self, T::Error> {
        let began = Host.monotonic();
        T::extract(object).map(|span| Self { began, span })
    }
}

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(float) = object.cast::<PyFloat>() {
            return seconds(float.value()).map(Self);
        }
        refuse_others(object, "seconds must be a real number")?;
        seconds(object.extract::<f64>()?).map(Self)
    }
}

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        refuse_others(object, "nanoseconds must be a whole number")?;
        // A type that can stand for an int has `__index__`; a float has none.
        Ok(Self(Nanos::new(object.extract::<i64>()?)))
    }
}

/// Refuses a boolean, which is an int to Python, and a text.
fn refuse_others(object: Borrowed<'_, '_, PyAny>, wanted: &str) -> PyResult<()> {
    if object.is_exact_instance_of::<PyInt>() {
        return Ok(());
    }
    let number = object.hasattr("__index__")? || object.hasattr("__float__")?;
    if object.is_instance_of::<PyBool>() || !number {
        return Err(PyTypeError::new_err(format!("{wanted}, not {}", object.get_type().name()?)));
    }
    Ok(())
}

fn seconds(seconds: f64) -> PyResult<Nanos> {
    if seconds.is_nan() {
        return Err(PyValueError::new_err("seconds must not be NaN"));
    }
    let exact = seconds * 1e9;
    let nearest = exact.round();
    // 1e-5 s are 10 µs although the product is slightly more.
    let nanos = if (exact - nearest).abs() <= exact.abs() * ROUNDING { nearest } else { exact.ceil() };
    if nanos.abs() < i64::MAX as f64 {
        Ok(Nanos::new(nanos as i64))
    } else {
        Err(PyOverflowError::new_err("seconds must be finite and below 292 years"))
    }
}

/// A span given in seconds or in nanoseconds, or not given.
pub(crate) fn either(name: &str, seconds: Option<Seconds>, whole: Option<Whole>) -> PyResult<Option<Nanos>> {
    let span = match (seconds, whole) {
        (Some(_), Some(_)) => {
            return Err(PyTypeError::new_err(format!("give {name} or {name}_ns, not both")));
        }
        (Some(Seconds(span)), None) | (None, Some(Whole(span))) => span,
        (None, None) => return Ok(None),
    };
    if span.is_negative() {
        return Err(PyValueError::new_err(format!("{name} must not be negative: {span}")));
    }
    Ok(Some(span))
}

/// The exception for a delay that was refused.
pub(crate) fn refused(error: DelayError) -> PyErr {
    PyValueError::new_err(format!("failed to {error}"))
}
