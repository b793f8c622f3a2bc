//! Which interpreter of the process imports the module: the main one, or none.
//!
//! Types and the default time base live as long as the process, in static places. They must not outlive the interpreter that they belong
//! to, and only the main one stays to the end. So another is refused, and the main one is served, whoever came first.

#![expect(unsafe_code, reason = "the limited API tells the number of an interpreter to C only")]

use pyo3::exceptions::PyImportError;
use pyo3::{PyErr, PyResult, Python, ffi};

/// The number of the main interpreter: the first that a process makes. Numbers, unlike addresses, are not used again.
const MAIN: i64 = 0;

/// Refuses every interpreter but the main one.
pub(crate) fn admit(py: Python<'_>) -> PyResult<()> {
    // SAFETY: `py` says that this thread is attached to an interpreter, which is the one that is asked for and stays until this returns.
    let number = unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) };
    match number {
        MAIN => Ok(()),
        -1 => Err(PyErr::fetch(py)),
        _ => {
            Err(PyImportError::new_err("hairspring is for the main interpreter of a process, and this is another one"))
        }
    }
}
