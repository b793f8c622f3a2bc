//! Lets only the main interpreter of the process import the module.
//!
//! Types and the default time base are static and live as long as the process. They must not outlive their interpreter,
//! and only the main interpreter lasts as long as the process. So every other interpreter is refused, even if it
//! imports first.

#![expect(unsafe_code, reason = "the limited API tells the number of an interpreter to C only")]

use pyo3::exceptions::PyImportError;
use pyo3::{PyErr, PyResult, Python, ffi};

/// The id of the main interpreter, the first of a process. Unlike addresses, ids are not reused.
const MAIN: i64 = 0;

/// Refuses every interpreter but the main one.
pub(crate) fn admit(py: Python<'_>) -> PyResult<()> {
    // SAFETY: `py` proves that this thread is attached to an interpreter, which is the one asked about and stays until
    // this returns.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match number {
        MAIN => Ok(()),
        -1 => Err(PyErr::fetch(py)),
        _ => Err(PyImportError::new_err(
            "hairspring can be imported by the main interpreter of a process only, and this is another one",
        )),
    }
}
