//! The published state of a station, for `hairspring.station`. The Rust reader keeps the order of memory accesses,
//! which Python cannot.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use hairspring_machine::Nanos;
use hairspring_station::Property;
use hairspring_station::publish::{
    LATENCY_EDGES_NS, SILENT_AFTER, StateReader, StateView, UnitState, Validity, folders,
};
use hairspring_time::Host;
use pyo3::exceptions::{PyFileNotFoundError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::arguments::Whole;

/// A reader of a station's page.
#[pyclass(frozen, module = "hairspring")]
pub(crate) struct StatePage(Mutex<StateReader>);

fn failed(error: &impl ToString) -> PyErr {
    PyOSError::new_err(error.to_string())
}

/// The folders that a station's name may mean, best first.
#[pyfunction]
pub(crate) fn station_folders(name: PathBuf) -> Vec<PathBuf> {
    folders(Path::new(&name))
}

/// The edges of the bins of a latency histogram, in nanoseconds.
#[pyfunction]
pub(crate) fn latency_edges_ns() -> Vec<i64> {
    LATENCY_EDGES_NS.to_vec()
}

#[pymethods]
impl StatePage {
    /// Opens the page in a station's folder. A station that has not published for `silent_after_ns` is silent.
    #[new]
    #[pyo3(signature = (folder, silent_after_ns = None))]
    fn new(folder: PathBuf, silent_after_ns: Option<Whole>) -> PyResult<Self> {
        let silent_after = silent_after_ns.map_or(SILENT_AFTER, |Whole(span)| span.max(Nanos::ZERO));
        match StateReader::open(&folder) {
            Ok(reader) => Ok(Self(Mutex::new(reader.silent_after(silent_after)))),
            Err(error) if !folder.join(hairspring_station::publish::STATE_FILE).exists() => {
                Err(PyFileNotFoundError::new_err(error.to_string()))
            }
            Err(error) => Err(failed(&error)),
        }
    }

    /// The latest state as a dictionary. Releases the GIL; waits at most 20 ms for a page that is being written.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let view = py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).read(&Host));
        dictionary(py, &view.map_err(|error| failed(&error))?)
    }
}

fn dictionary<'py>(py: Python<'py>, view: &StateView) -> PyResult<Bound<'py, PyDict>> {
    let (validity, silent_ns) = match view.validity {
        Validity::Live => ("live", None),
        Validity::Silent(span) => ("silent", Some(span.count())),
        Validity::Torn => ("torn", None),
    };
    let state = &view.state;
    let of = PyDict::new(py);
    of.set_item("name", &state.name)?;
    of.set_item("version", &state.version)?;
    of.set_item("message", &state.message)?;
    of.set_item("phase", state.phase.name())?;
    of.set_item("started_realtime_ns", state.started_realtime_ns)?;
    of.set_item("published_ns", view.at.as_monotonic().count())?;
    of.set_item("published_realtime_ns", (view.at.as_monotonic() + state.clock.realtime_offset).count())?;
    of.set_item("clock_within_ns", state.clock.within.count())?;
    of.set_item("number", view.number)?;
    of.set_item("process", view.process)?;
    of.set_item("validity", validity)?;
    of.set_item("silent_ns", silent_ns)?;
    let units = state.units.iter().map(|unit| self::unit(py, unit)).collect::<PyResult<Vec<_>>>()?;
    of.set_item("units", PyList::new(py, units)?)?;
    Ok(of)
}

fn unit<'py>(py: Python<'py>, unit: &UnitState) -> PyResult<Bound<'py, PyDict>> {
    let of = PyDict::new(py);
    let counts = unit.counts;
    of.set_item("name", &unit.name)?;
    of.set_item("events", counts.events)?;
    of.set_item("activations", counts.activations)?;
    of.set_item("missed", counts.missed)?;
    of.set_item("late", counts.delayed)?;
    of.set_item("overrun", counts.overrun)?;
    of.set_item("unrecorded", counts.unrecorded)?;
    of.set_item("skipped", counts.skipped)?;
    let properties = PyDict::new(py);
    if let Some(found) = unit.properties {
        for property in Property::ALL {
            let one = PyDict::new(py);
            one.set_item("set_point", found.set_points.of(property))?;
            one.set_item("read_back", found.read_back.of(property))?;
            properties.set_item(property.name(), one)?;
        }
    }
    of.set_item("properties", properties)?;
    of.set_item("waiting", unit.properties.map(|found| found.waiting))?;
    of.set_item("expired", unit.properties.map(|found| found.expired))?;
    let latest = unit.latest;
    of.set_item("sequence", latest.map(|event| event.sequence))?;
    of.set_item("cycle", latest.and_then(|event| event.cycle))?;
    of.set_item("event_ns", latest.map(|event| event.at.as_monotonic().count()))?;
    of.set_item("event_realtime_ns", latest.map(|event| event.realtime_ns))?;
    of.set_item("stamped_by", latest.map(|event| event.stamped.name()))?;
    of.set_item("median_ns", unit.latency.median.map(Nanos::count))?;
    of.set_item("p99_ns", unit.latency.p99.map(Nanos::count))?;
    of.set_item("max_ns", unit.latency.max.map(Nanos::count))?;
    of.set_item("histogram", unit.histogram.0.to_vec())?;
    Ok(of)
}
