//! [`Timebase`], and the default one for the functions of the module, which their first call calibrates, not the
//! import.

use std::sync::{Arc, OnceLock};

use hairspring_time::{Continuity, Host, Machine, Nanos, TimeSource};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::arguments::{Seconds, Whole, not_pickled};
use crate::instant::{Deadline, moment};
use crate::report::Report;
use crate::waiting;

/// A calibrated time base. Immutable; threads may share it, and it stays valid in a forked process.
#[pyclass(frozen, from_py_object, module = "hairspring")]
#[derive(Clone)]
pub(crate) struct Timebase(pub(crate) Arc<hairspring_time::Timebase>);

/// Sleep of a calibration between two readings of the kernel's clock, after each of which it checks for signals.
const LOOK_LEAST: Nanos = Nanos::from_millis(4);
const LOOK_MOST: Nanos = Nanos::from_millis(100);

/// The default time base; the first thread that needs it calibrates it.
static DEFAULT: OnceLock<Timebase> = OnceLock::new();

/// The time base of the module's functions. The first call calibrates it, which takes 4 to 5 ms.
#[pyfunction]
pub(crate) fn timebase(py: Python<'_>) -> PyResult<Timebase> {
    default(py).cloned()
}

#[inline]
fn default(py: Python<'_>) -> PyResult<&'static Timebase> {
    match DEFAULT.get() {
        Some(timebase) => Ok(timebase),
        None => calibrate_default(py),
    }
}

#[cold]
fn calibrate_default(py: Python<'_>) -> PyResult<&'static Timebase> {
    let made = Timebase::calibrate(py)?;
    // If two threads calibrate at once, the first result counts.
    Ok(DEFAULT.get_or_init(|| made))
}

/// The given time base, or the default.
pub(crate) fn given_or_default(py: Python<'_>, given: Option<Timebase>) -> PyResult<Arc<hairspring_time::Timebase>> {
    match given {
        Some(timebase) => Ok(timebase.0),
        None => default(py).map(|timebase| Arc::clone(&timebase.0)),
    }
}

/// The time now in seconds, on the scale of CLOCK_MONOTONIC. After ten days of uptime a float resolves 0.1 µs: use
/// now_ns() for short spans.
#[pyfunction]
pub(crate) fn now(py: Python<'_>) -> PyResult<f64> {
    default(py).map(Timebase::now)
}

/// The time now in nanoseconds, on the scale of CLOCK_MONOTONIC.
#[pyfunction]
pub(crate) fn now_ns(py: Python<'_>) -> PyResult<i64> {
    default(py).map(Timebase::now_ns)
}

/// Waits at least the given number of seconds by polling, at most 0.1; never early. Longer: LongDelay.
#[pyfunction]
pub(crate) fn delay(py: Python<'_>, seconds: Seconds) -> PyResult<Report> {
    default(py)?.delay(py, seconds)
}

/// Waits at least `ns` nanoseconds by polling, at most 10**8; never early. Longer: LongDelay.
#[pyfunction]
pub(crate) fn delay_ns(py: Python<'_>, ns: Whole) -> PyResult<Report> {
    default(py)?.delay_ns(py, ns)
}

#[pymethods]
impl Timebase {
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("a Timebase", "calibrate one in the process that needs it"))
    }

    /// Calibrates by sleeping 4 ms; the bound is then about 10 ppm.
    #[staticmethod]
    fn calibrate(py: Python<'_>) -> PyResult<Self> {
        let timebase = py.detach(|| hairspring_time::Timebase::calibrate(Host));
        let timebase = timebase.map_err(|error| PyRuntimeError::new_err(format!("failed to {error}")))?;
        Ok(Self(Arc::new(timebase)))
    }

    /// Calibrates until the bound is at most `bound_ppm`, for at most `patience` seconds.
    #[staticmethod]
    #[pyo3(signature = (bound_ppm, patience = Seconds(Nanos::from_secs(1))))]
    fn calibrate_to(py: Python<'_>, bound_ppm: f64, patience: Seconds) -> PyResult<Self> {
        if bound_ppm.is_nan() || bound_ppm <= 0.0 {
            return Err(PyValueError::new_err(format!("bound_ppm must be positive, not {bound_ppm}")));
        }
        let most = Nanos::from_secs(60);
        if patience.0.is_negative() || patience.0 > most {
            return Err(PyValueError::new_err(format!("patience must be 0 to {most}, not {}", patience.0)));
        }
        let mut made = Self::calibrate(py)?;
        loop {
            let (bound, baseline) = (made.0.calibration().bound_ppm, made.0.calibration().baseline);
            if bound <= bound_ppm || baseline >= patience.0 {
                return Ok(made);
            }
            let step = baseline.max(LOOK_LEAST).min(LOOK_MOST).min(patience.0 - baseline);
            waiting::nap(py, Host.monotonic() + step)?;
            made = Self(Arc::new(py.detach(|| made.0.refine().timebase)));
        }
    }

    /// Reads the kernel's clock again and returns a successor with a smaller bound. This time base does not change.
    fn refine(&self, py: Python<'_>) -> Refined {
        Refined(py.detach(|| self.0.refine()))
    }

    /// The time now in seconds, on the scale of CLOCK_MONOTONIC.
    fn now(&self) -> f64 {
        self.0.now().as_monotonic().as_secs_f64()
    }

    /// The time now in nanoseconds, on the scale of CLOCK_MONOTONIC. The number has no epoch: use instant() for
    /// differences across a suspend.
    fn now_ns(&self) -> i64 {
        self.0.now().as_monotonic().count()
    }

    /// The time now as an Instant, with its epoch.
    #[pyo3(name = "instant")]
    fn now_as_instant(&self) -> crate::instant::Instant {
        crate::instant::Instant(self.0.now())
    }

    /// Waits at least the given number of seconds by polling, at most 0.1; never early.
    fn delay(&self, py: Python<'_>, seconds: Seconds) -> PyResult<Report> {
        waiting::poll(py, &self.0, seconds.0).map(Report)
    }

    /// Waits at least `ns` nanoseconds by polling, at most 10**8; never early.
    fn delay_ns(&self, py: Python<'_>, ns: Whole) -> PyResult<Report> {
        waiting::poll(py, &self.0, ns.0).map(Report)
    }

    /// Waits by polling until now() is not before `deadline`, an Instant or seconds, which is at most 0.1 s ahead.
    fn delay_until(&self, py: Python<'_>, deadline: Deadline) -> PyResult<Report> {
        waiting::poll_until(py, &self.0, deadline.on(&self.0)).map(Report)
    }

    /// Waits by polling until now_ns() is not before `deadline_ns`, which is at most 10**8 ahead.
    fn delay_until_ns(&self, py: Python<'_>, deadline_ns: Whole) -> PyResult<Report> {
        waiting::poll_until(py, &self.0, moment(&self.0, deadline_ns.0)).map(Report)
    }

    /// The rate of the counter.
    #[getter]
    fn frequency_hz(&self) -> f64 {
        self.0.calibration().rate_hz
    }

    /// A hard bound on the error of that rate against the kernel's clock.
    #[getter]
    fn bound_ppm(&self) -> f64 {
        self.0.calibration().bound_ppm
    }

    /// From the first reading of the kernel's clock to the last.
    #[getter]
    fn baseline_ns(&self) -> i64 {
        self.0.calibration().baseline.count()
    }

    /// Duration of the first calibration.
    #[getter]
    fn cost_ns(&self) -> i64 {
        self.0.cost().wall.count()
    }

    /// Whether the counter can be trusted, and why.
    #[getter]
    fn trust(&self) -> Trust {
        Trust(self.0.trust().clone())
    }

    fn __repr__(&self) -> String {
        let calibration = self.0.calibration();
        let trust = Trust(self.0.trust().clone());
        format!(
            "<Timebase: {:.0} Hz within {:.3} ppm, from {}>",
            calibration.rate_hz,
            calibration.bound_ppm,
            trust.source().replace('_', " ")
        )
    }
}

/// A refined time base, and how it continues its predecessor.
#[pyclass(frozen, module = "hairspring")]
pub(crate) struct Refined(hairspring_time::Refined);

#[pymethods]
impl Refined {
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("a Refined", "calibrate a time base in the process that needs one"))
    }

    /// The refined time base.
    #[getter]
    fn timebase(&self) -> Timebase {
        Timebase(Arc::new(self.0.timebase.clone()))
    }

    /// `continued` or `rerated` if the scale continues; `suspended`, `stepped` or `distrusted` if times before and
    /// after cannot be compared.
    #[getter]
    fn continuity(&self) -> &'static str {
        match self.0.continuity {
            Continuity::Continued => "continued",
            Continuity::Rerated => "rerated",
            Continuity::Suspended(_) => "suspended",
            Continuity::Stepped(_) => "stepped",
            Continuity::Distrusted => "distrusted",
        }
    }

    /// Whether times of the predecessor and of the successor can be compared.
    #[getter]
    fn is_continuous(&self) -> bool {
        matches!(self.0.continuity, Continuity::Continued | Continuity::Rerated)
    }

    /// Time that the machine was suspended, or the step of the clock.
    #[getter]
    fn by_ns(&self) -> i64 {
        match self.0.continuity {
            Continuity::Suspended(by) | Continuity::Stepped(by) => by.count(),
            _ => 0,
        }
    }

    fn __repr__(&self) -> String {
        format!("<Refined: {}, within {:.3} ppm>", self.continuity(), self.0.timebase.calibration().bound_ppm)
    }
}

/// Whether the machine's counter can be trusted, and why. True if it is trusted.
#[pyclass(frozen, eq, module = "hairspring")]
#[derive(PartialEq)]
pub(crate) struct Trust(hairspring_time::Trust);

#[pymethods]
impl Trust {
    /// Whether the counter is used.
    #[getter]
    fn trusted(&self) -> bool {
        self.0.trusted
    }

    /// Whether the machine is a guest of a hypervisor.
    #[getter]
    fn guest(&self) -> bool {
        self.0.guest
    }

    /// The clock in use: `counter` or `kernel_clock`.
    #[getter]
    fn source(&self) -> &'static str {
        match self.0.source() {
            TimeSource::Counter => "counter",
            TimeSource::KernelClock => "kernel_clock",
        }
    }

    /// Each piece of evidence, and whether it supports the counter.
    #[getter]
    fn reasons(&self) -> Vec<(bool, &str)> {
        self.0.reasons.iter().map(|reason| (reason.supports, reason.text.as_str())).collect()
    }

    fn __bool__(&self) -> bool {
        self.0.trusted
    }

    fn __str__(&self) -> String {
        let word = if self.0.trusted { "trusted" } else { "not trusted" };
        let reasons: Vec<&str> =
            self.0.reasons.iter().filter(|r| r.supports == self.0.trusted).map(|r| r.text.as_str()).collect();
        format!("{word}: {}", reasons.join("; "))
    }

    fn __repr__(&self) -> String {
        format!("<Trust: {}>", self.__str__())
    }
}
