//! [`LongDelay`]: delays that sleep first and poll last.

use std::sync::{Arc, Mutex, TryLockError};

use hairspring_time::{Host, Machine, Nanos, lead_for};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::arguments::{FromNow, Seconds, Whole, either, not_pickled};
use crate::instant::{Deadline, moment};
use crate::report::Report;
use crate::timebase::{Timebase, given_or_default};
use crate::waiting::{self, Ending, Goal};

/// Delays that sleep first and poll last; never early. A LongDelay learns how late the kernel wakes the thread, so each
/// thread needs its own: a call while another thread waits with it raises RuntimeError.
#[pyclass(frozen, module = "hairspring")]
pub(crate) struct LongDelay {
    state: Mutex<State>,
    /// The Python function that is rehearsed; looking it up each time takes longer than the rehearsal.
    late_ns: Py<PyAny>,
}

struct State {
    long: hairspring_time::LongDelay<'static, Host>,
    /// The time base of the long delay: a delay ends by it without the lock on the state.
    timebase: Arc<hairspring_time::Timebase>,
    ending: Ending,
}

impl LongDelay {
    /// Locks the delay, or fails if another thread holds it, whose delay may take long.
    fn with<R>(&self, run: impl FnOnce(&mut State) -> PyResult<R>) -> PyResult<R> {
        match self.state.try_lock() {
            Ok(mut state) => run(&mut state),
            // After a panic the delay is still valid.
            Err(TryLockError::Poisoned(left)) => run(&mut left.into_inner()),
            Err(TryLockError::WouldBlock) => {
                Err(PyRuntimeError::new_err("this LongDelay is in use by another thread; make one for each thread"))
            }
        }
    }

    fn wait(slf: &Bound<'_, Self>, goal: impl FnOnce(&hairspring_time::Timebase) -> Goal) -> PyResult<Report> {
        let (py, this) = (slf.py(), slf.get());
        let (slept, timebase) = this.with(|State { long, timebase, ending }| {
            let slept = waiting::sleep(py, timebase, long, *ending, goal(timebase))?;
            Ok((slept, Arc::clone(timebase)))
        })?;
        // Calls the same method that is about to return. The delay is unlocked here, unless another thread uses it too,
        // which is an error.
        if slept.is_early() && this.with(|_| Ok(())).is_ok() {
            let before = Host.monotonic();
            this.late_ns.call1(py, (slf.getattr("delay_ns")?, 0))?;
            let took = Host.monotonic() - before;
            // If another thread has locked it, that thread learns from its own rehearsal.
            let _ = this.with(|state| {
                state.ending.note(took);
                Ok(())
            });
        }
        slept.end(&timebase).map(Report)
    }

    /// The lead with which the median delay of this length is exact, timed by a caller in Python.
    fn tuned(slf: &Bound<'_, Self>, request: Nanos) -> PyResult<Nanos> {
        let set = |lead| {
            slf.get().with(|state| {
                state.ending.lead = lead;
                Ok(lead)
            })
        };
        set(Nanos::ZERO)?;
        let (py, late_ns, delay_ns) = (slf.py(), &slf.get().late_ns, slf.getattr("delay_ns")?);
        let late = || late_ns.call1(py, (&delay_ns, request.count()))?.extract(py).map(Nanos::new);
        set(lead_for(request, late)?)
    }
}

#[pymethods]
impl LongDelay {
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("a LongDelay", "make one in the thread that needs it"))
    }

    /// Learns from about 10 ms of short sleeps. `lead` ends every delay earlier by that much, so that the average hits
    /// the target and delays may be early. `budget` limits the polling time of one delay; below 200 µs the end is not
    /// rehearsed.
    #[new]
    #[pyo3(signature = (timebase = None, *, lead = None, lead_ns = None, budget = None, budget_ns = None))]
    fn new(
        py: Python<'_>,
        timebase: Option<Timebase>,
        lead: Option<Seconds>,
        lead_ns: Option<Whole>,
        budget: Option<Seconds>,
        budget_ns: Option<Whole>,
    ) -> PyResult<Self> {
        let (lead, budget) = (either("lead", lead, lead_ns)?, either("budget", budget, budget_ns)?);
        let timebase = given_or_default(py, timebase)?;
        let lead = lead.unwrap_or(Nanos::ZERO);
        let (ending, budget) = Ending::new(lead, budget);
        let long = py.detach(|| {
            let long = hairspring_time::LongDelay::new(hairspring_time::Timebase::clone(&timebase));
            match budget {
                Some(budget) => long.with_budget(budget),
                None => long,
            }
        });
        let late_ns = py.import("hairspring._caller")?.getattr("late_ns")?.unbind();
        Ok(Self { state: Mutex::new(State { long, timebase, ending }), late_ns })
    }

    /// Uses the successor that refine() made of its time base. Its lead, its budget and its learned values stay.
    /// Deadlines of a former epoch are then refused.
    fn adopt(&self, successor: Timebase) -> PyResult<()> {
        self.with(|state| {
            state.long.adopt(hairspring_time::Timebase::clone(&successor.0));
            state.timebase = successor.0;
            Ok(())
        })
    }

    /// Waits at least the given number of seconds (without a lead), asleep for all but the end.
    fn delay(slf: &Bound<'_, Self>, seconds: FromNow<Seconds>) -> PyResult<Report> {
        Self::wait(slf, |_| Goal::For { began: seconds.began, request: seconds.span.0 })
    }

    /// Waits at least `ns` nanoseconds (without a lead), asleep for all but the end.
    fn delay_ns(slf: &Bound<'_, Self>, ns: FromNow<Whole>) -> PyResult<Report> {
        Self::wait(slf, |_| Goal::For { began: ns.began, request: ns.span.0 })
    }

    /// Waits until the time base's now() is not before `deadline`, an Instant or seconds. One that has passed returns
    /// at once, with its lateness.
    fn delay_until(slf: &Bound<'_, Self>, deadline: Deadline) -> PyResult<Report> {
        Self::wait(slf, |timebase| Goal::Until(deadline.on(timebase)))
    }

    /// Waits until the time base's now_ns() is not before `deadline_ns`.
    fn delay_until_ns(slf: &Bound<'_, Self>, deadline_ns: Whole) -> PyResult<Report> {
        Self::wait(slf, |timebase| Goal::Until(moment(timebase, deadline_ns.0)))
    }

    /// Finds the lead with which the median delay of the given number of seconds is exact, sets it and returns it in
    /// seconds. Measures 51 delays; above 20 ms as many as fit into a second, but at least 11.
    fn tune(slf: &Bound<'_, Self>, seconds: Seconds) -> PyResult<f64> {
        Self::tuned(slf, seconds.0).map(Nanos::as_secs_f64)
    }

    /// As tune(), in nanoseconds.
    fn tune_ns(slf: &Bound<'_, Self>, ns: Whole) -> PyResult<i64> {
        Self::tuned(slf, ns.0).map(Nanos::count)
    }

    /// The lead in force, in seconds.
    #[getter]
    fn lead(&self) -> PyResult<f64> {
        self.with(|state| Ok(state.ending.lead.as_secs_f64()))
    }

    /// The lead in force, in nanoseconds.
    #[getter]
    fn lead_ns(&self) -> PyResult<i64> {
        self.with(|state| Ok(state.ending.lead.count()))
    }

    /// Time before its deadline at which a delay of `request_ns` nanoseconds would begin to poll.
    fn window_ns(&self, request_ns: Whole) -> PyResult<i64> {
        let request = request_ns.0;
        self.with(|state| Ok((state.long.window(request) + state.ending.ahead(request)).count()))
    }

    /// The time base.
    #[getter]
    fn timebase(&self) -> PyResult<Timebase> {
        self.with(|state| Ok(Timebase(Arc::clone(&state.timebase))))
    }

    fn __repr__(&self) -> String {
        match self.lead_ns() {
            Ok(lead) => format!("<LongDelay: lead {}>", Nanos::new(lead)),
            Err(_) => "<LongDelay: in use>".to_owned(),
        }
    }
}
