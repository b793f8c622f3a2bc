//! [`Window`]: the words of a mapped file or device.

use std::path::PathBuf;

use pyo3::exceptions::{PyIndexError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::arguments::not_pickled;
use pyo3::types::{PyBool, PyTuple};

/// The 32-bit words of a mapped file or device, each access one load or store; read-only unless `writable` is set. Give
/// `bytes` for files without a size, such as devices.
#[pyclass(module = "hairspring")]
pub(crate) struct Window {
    /// None when it is closed.
    mapped: Option<hairspring_device::Window>,
    writable: bool,
}

/// An offset or a value: a whole number, and no boolean.
struct Word(u64);

impl<'py> FromPyObject<'_, 'py> for Word {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyBool>() {
            return Err(PyTypeError::new_err("a whole number is wanted, not bool"));
        }
        Ok(Self(object.extract::<u64>()?))
    }
}

impl Window {
    #[inline]
    fn open_one(&self) -> PyResult<&hairspring_device::Window> {
        self.mapped.as_ref().ok_or_else(|| PyValueError::new_err("this Window is closed"))
    }

    /// Turns an offset without a word into Python's own exception.
    #[inline]
    fn check(window: &hairspring_device::Window, offset: u64) -> PyResult<usize> {
        match usize::try_from(offset) {
            Ok(place) if offset.is_multiple_of(4) && offset < window.bytes() as u64 => Ok(place),
            _ => Err(PyIndexError::new_err(format!(
                "no word lies at {offset}: the window has {} bytes, and a word begins at each fourth",
                window.bytes()
            ))),
        }
    }
}

fn failed(error: &hairspring_device::DeviceError) -> PyErr {
    PyOSError::new_err(error.to_string())
}

#[pymethods]
impl Window {
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("a Window", "open it in the process that needs it"))
    }

    #[new]
    #[pyo3(signature = (path, *, writable = false, offset = 0, bytes = None))]
    fn new(path: PathBuf, writable: bool, offset: u64, bytes: Option<usize>) -> PyResult<Self> {
        use hairspring_device::Window as Mapped;
        let map = if writable { Mapped::map } else { Mapped::map_read_only };
        let mapped = map(&path, offset, bytes).map_err(|error| failed(&error))?;
        Ok(Self { mapped: Some(mapped), writable })
    }

    /// Reads the word at an offset of bytes.
    fn read(&self, offset: Word) -> PyResult<u32> {
        let window = self.open_one()?;
        window.read(Self::check(window, offset.0)?).map_err(|error| failed(&error))
    }

    /// Writes the word at an offset of bytes.
    fn write(&self, offset: Word, value: Word) -> PyResult<()> {
        let window = self.open_one()?;
        let place = Self::check(window, offset.0)?;
        let value = u32::try_from(value.0)
            .map_err(|_| PyValueError::new_err(format!("{} does not fit into 32 bits", value.0)))?;
        if !self.writable {
            return Err(PyValueError::new_err("this Window is read-only: open it with writable=True"));
        }
        window.write(place, value).map_err(|error| failed(&error))
    }

    /// Unmaps the window. Later accesses are errors.
    fn close(&mut self) {
        self.mapped = None;
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&mut self, _exception: &Bound<'_, PyTuple>) {
        self.close();
    }

    /// Its size in bytes.
    fn __len__(&self) -> PyResult<usize> {
        self.open_one().map(hairspring_device::Window::bytes)
    }

    fn __repr__(&self) -> String {
        match &self.mapped {
            Some(window) => format!("<Window: {} bytes>", window.bytes()),
            None => "<Window: closed>".to_owned(),
        }
    }
}
