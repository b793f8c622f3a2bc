//! `hairspring._hairspring`: the compiled part of the Python package `hairspring`.
//!
//! It translates arguments to times, reports to objects and errors to exceptions. Other crates wait and measure. People
//! import the package in `python/hairspring`; this module is private to it.
//!
//! **GIL.** A call that waits longer than `waiting::HELD_MOST` releases the GIL meanwhile. Python handles signals in
//! the main thread between two of its instructions, so a long wait checks for them at least every 0.15 s.
//!
//! **Interpreters.** Only the main interpreter of the process; others get an `ImportError`. A free-threaded Python
//! turns the GIL on for this module.

mod archive;
mod arguments;
mod instant;
mod interpreter;
mod long_delay;
mod profile;
mod real_time;
mod recording;
mod report;
mod sheet;
mod station;
mod tap;
mod timebase;
mod waiting;
mod window;

/// The compiled part of the package `hairspring`; import `hairspring` instead.
// `gil_used`: locks guard the state that handles share, but no test has run without the GIL.
#[pyo3::pymodule(gil_used = true)]
mod _hairspring {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::archive::SheetArchive;
    #[pymodule_export]
    use crate::instant::Instant;
    #[pymodule_export]
    use crate::long_delay::LongDelay;
    #[pymodule_export]
    use crate::profile::Profile;
    #[pymodule_export]
    use crate::profile::Summary;
    #[pymodule_export]
    use crate::real_time::{Grant, RealTime};
    #[pymodule_export]
    use crate::recording::{BlockError, Contents, FrameAxis, Piece, read_recording};
    #[pymodule_export]
    use crate::report::{Gaps, Report, Verdict};
    #[pymodule_export]
    use crate::sheet::{probes, read_sheet, render, take_sheet};
    #[pymodule_export]
    use crate::station::{StatePage, latency_edges_ns, station_folders};
    #[pymodule_export]
    use crate::tap::{TapFrames, TapHandle};
    #[pymodule_export]
    use crate::timebase::{Refined, Timebase, Trust, delay, delay_ns, now, now_ns, timebase};
    #[pymodule_export]
    use crate::window::Window;

    #[pymodule_export]
    const HELD_MOST_NS: i64 = crate::waiting::HELD_MOST.count();

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::interpreter::admit(module.py())?;
        // The module prints nothing: a panic becomes an exception with its message. This module has its own copy of the
        // standard library, so the hook affects no other.
        std::panic::set_hook(Box::new(|_| ()));
        Ok(())
    }
}
