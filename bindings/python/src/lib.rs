//! `hairspring._hairspring`: the compiled part of the Python package `hairspring`.
//!
//! It translates: arguments to times, reports to objects, errors to exceptions. What waits and what measures is in the crates below.
//! The package in `python/hairspring` is what people import; this module is private to it.
//!
//! **The interpreter's lock.** Whatever waits longer than `waiting::HELD_MOST` gives it up meanwhile. Python takes signals in the main
//! thread between two of its instructions, so a long wait looks for them every 0.15 s at least.
//!
//! **Interpreters.** The main one of the process; others get an `ImportError`. A Python without a lock turns it on for this module.

mod arguments;
mod instant;
mod interpreter;
mod long_delay;
mod profile;
mod real_time;
mod recording;
mod report;
mod sheet;
mod timebase;
mod waiting;
mod window;

/// The compiled part of the package `hairspring`; import that one.
// `gil_used`: what the handles share is guarded by locks of their own, but nobody has run it without Python's.
#[pyo3::pymodule(gil_used = true)]
mod _hairspring {
    use pyo3::prelude::*;

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
    use crate::recording::{Contents, read_recording};
    #[pymodule_export]
    use crate::report::{Gaps, Report, Verdict};
    #[pymodule_export]
    use crate::sheet::{probes, read_sheet, render, take_sheet};
    #[pymodule_export]
    use crate::timebase::{Refined, Timebase, Trust, delay, delay_ns, now, now_ns, timebase};
    #[pymodule_export]
    use crate::window::Window;

    #[pymodule_export]
    const HELD_MOST_NS: i64 = crate::waiting::HELD_MOST.count();

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::interpreter::admit(module.py())?;
        // What a program prints is its own: a panic is told by the exception that it becomes. The standard library whose hook this is
        // belongs to this module alone.
        std::panic::set_hook(Box::new(|_| ()));
        Ok(())
    }
}
