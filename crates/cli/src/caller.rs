//! `hairspring caller`: makes the calls of the chapter Callers from Rust; for `sheet`, which starts it.

use std::path::Path;

use crate::exit::{Exit, Failure};
use crate::output;

pub(crate) fn run(mapped: &Path, calls: usize) -> Result<Exit, Failure> {
    let said = hairspring_suite::caller::call(mapped, calls).map_err(|error| Failure::failed(error.to_string()))?;
    output::print(&format!("{said}\n"))
}
