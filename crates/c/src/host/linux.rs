//! Linux: maps files by the window of the device crate, which survives a truncated file.

use std::path::Path;

use hairspring_device::{DeviceError, Window};

use crate::error::{Failure, HS_E_IO};

/// A mapped file.
pub(crate) struct Mapped(Window);

impl Mapped {
    pub(crate) fn open(path: &str, writable: bool) -> Result<Self, Failure> {
        let map = if writable { Window::map } else { Window::map_read_only };
        map(Path::new(path), 0, None).map(Self).map_err(failed)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.0.bytes()
    }

    #[inline(always)]
    pub(crate) fn read(&self, offset: usize) -> Result<u32, Failure> {
        self.0.read(offset).map_err(failed)
    }

    #[inline(always)]
    pub(crate) fn write(&self, offset: usize, value: u32) -> Result<(), Failure> {
        self.0.write(offset, value).map_err(failed)
    }
}

#[cold]
fn failed(error: DeviceError) -> Failure {
    Failure::new(HS_E_IO, error.to_string())
}
