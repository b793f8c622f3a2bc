//! [`RealTime`]: real-time settings of the calling thread, in force during a `with` block.
//!
//! The guard that restores the settings belongs to the thread that made it, so it stays in thread-local storage. The
//! Python object, which any thread may hold, knows only the guard's number and thread. Blocks can end in any order. A
//! thread that ends restores its settings; then any thread may leave its blocks.

use std::cell::RefCell;
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hairspring_machine::{Cpu, Owner, Policy};
use hairspring_time::{Host, Machine, RealTimeGuard};
use pyo3::exceptions::{PyRuntimeError, PyRuntimeWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::arguments::{Seconds, Whole, either, not_pickled};

/// The machine of all guards.
static HOST: Host = Host;
/// The next guard's number: each entry into a block has one of its own.
static NEXT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IN_FORCE: RefCell<Vec<(u64, RealTimeGuard<'static, Host>)>> = const { RefCell::new(Vec::new()) };
}

/// Real-time settings of the calling thread, in force during a `with` block. A refusal is reported, not raised.
#[pyclass(frozen, module = "hairspring")]
pub(crate) struct RealTime {
    wishes: hairspring_time::RealTime,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The guard's number, and its thread.
    entry: Option<(u64, Owner)>,
    grants: Vec<Grant>,
}

/// The names of the policies that can be asked for.
fn policy(name: &str, priority: i64) -> PyResult<Policy> {
    let ranked = || match u8::try_from(priority) {
        Ok(priority @ 1..=99) => Ok(priority),
        _ => Err(PyValueError::new_err(format!("priority {priority} does not exist: choose 1 to 99"))),
    };
    match name {
        "fifo" => ranked().map(Policy::Fifo),
        "rr" => ranked().map(Policy::RoundRobin),
        "other" => Ok(Policy::Other),
        _ => Err(PyValueError::new_err(format!("there is no policy {name:?}: choose 'fifo', 'rr' or 'other'"))),
    }
}

/// The name of a policy and its priority, 0 where it has none.
fn named(policy: Policy) -> (String, u8) {
    match policy {
        Policy::Other => ("other".to_owned(), 0),
        Policy::Fifo(priority) => ("fifo".to_owned(), priority),
        Policy::RoundRobin(priority) => ("rr".to_owned(), priority),
        Policy::Unknown(number) => (format!("policy_{number}"), 0),
    }
}

#[pymethods]
impl RealTime {
    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("a RealTime", "make one in the thread that needs it"))
    }

    /// `policy` is 'fifo', 'rr' or 'other', `priority` 1 to 99, `cpu` the CPU to stay on, `slack` the timer slack of
    /// the kernel, `idle` the longest time that a CPU may take to leave an idle state: 0 turns idle states off, on all
    /// CPUs of the machine.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    #[pyo3(signature = (policy = None, priority = 50, *, cpu = None, lock_memory = false, slack = None, slack_ns = None,
                        idle = None, idle_ns = None))]
    fn new(
        policy: Option<&str>,
        priority: i64,
        cpu: Option<&Bound<'_, PyAny>>,
        lock_memory: bool,
        slack: Option<Seconds>,
        slack_ns: Option<Whole>,
        idle: Option<Seconds>,
        idle_ns: Option<Whole>,
    ) -> PyResult<Self> {
        let policy = policy.map(|name| self::policy(name, priority)).transpose()?;
        let cpu = cpu.map(number).transpose()?;
        let slack = either("slack", slack, slack_ns)?;
        let idle = either("idle", idle, idle_ns)?;
        let wishes = hairspring_time::RealTime { policy, cpu, lock_memory, slack, idle };
        Ok(Self { wishes, state: Mutex::default() })
    }

    fn __enter__(slf: PyRef<'_, Self>) -> PyResult<PyRef<'_, Self>> {
        {
            let mut state = slf.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.entry.is_some() {
                return Err(PyRuntimeError::new_err("this RealTime is in force already; make one for each block"));
            }
            let settings = HOST.thread_settings().ok_or_else(|| PyRuntimeError::new_err("this thread is ending"))?;
            // Relaxed: only uniqueness matters.
            let entry = NEXT.fetch_add(1, Ordering::Relaxed);
            let guard = slf.wishes.apply(&HOST);
            state.grants = guard.grants().iter().map(|grant| Grant(grant.clone())).collect();
            state.entry = Some((entry, settings.owner()));
            IN_FORCE.with_borrow_mut(|guards| guards.push((entry, guard)));
        }
        Ok(slf)
    }

    /// Restores the settings. If the system refuses to restore one, issues a `RuntimeWarning`.
    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((entry, _)) = state.entry.take_if(|(_, owner)| owner.admits(&HOST)) else {
            return Err(PyRuntimeError::new_err(
                "this RealTime is not in force on this thread; leave it where it was entered",
            ));
        };
        // A warning runs Python, which may look at this object.
        drop(state);
        let place = |guards: &Vec<(u64, _)>| guards.iter().position(|(other, _)| *other == entry);
        // If its thread has ended, the guard has ended with it.
        let guard = IN_FORCE.with_borrow_mut(|guards| place(guards).map(|place| guards.remove(place).1));
        for refused in guard.map(RealTimeGuard::release).and_then(Result::err).into_iter().flatten() {
            let text = CString::new(format!("failed to {refused}")).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)?;
        }
        Ok(())
    }

    /// The settings that were asked for, and whether each was granted; empty before the block.
    #[getter]
    fn grants(&self) -> Vec<Grant> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).grants.clone()
    }

    /// Whether all of it was granted.
    #[getter]
    fn granted(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        !state.grants.is_empty() && state.grants.iter().all(Grant::granted)
    }

    /// The policy and the priority of the calling thread as they are now.
    #[staticmethod]
    fn now_in_force() -> (String, u8) {
        named(Host.policy())
    }

    fn __repr__(&self) -> String {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.entry {
            Some(_) => format!("<RealTime: in force: {}>", listed(&state.grants)),
            None => format!("<RealTime: asks for {:?}>", self.wishes),
        }
    }
}

fn listed(grants: &[Grant]) -> String {
    grants.iter().map(Grant::text).collect::<Vec<_>>().join(", ")
}

fn number(cpu: &Bound<'_, PyAny>) -> PyResult<Cpu> {
    if cpu.is_instance_of::<pyo3::types::PyBool>() {
        return Err(PyTypeError::new_err("cpu must be a number, not bool"));
    }
    cpu.extract::<u32>().map(Cpu)
}

/// One setting, and whether the system granted it.
#[pyclass(frozen, eq, from_py_object, module = "hairspring")]
#[derive(Clone, PartialEq)]
pub(crate) struct Grant(hairspring_time::Grant);

impl Grant {
    fn text(&self) -> String {
        match &self.0 {
            hairspring_time::Grant::Granted(setting) => format!("{setting} granted"),
            hairspring_time::Grant::Refused(setting, refused) => format!("{setting} refused: failed to {refused}"),
        }
    }
}

#[pymethods]
impl Grant {
    /// `cpu`, `lock_memory`, `slack`, `idle` or `policy`.
    #[getter]
    fn setting(&self) -> &'static str {
        match self.0 {
            hairspring_time::Grant::Granted(setting) | hairspring_time::Grant::Refused(setting, _) => setting,
        }
    }

    /// Whether it is in force.
    #[getter]
    fn granted(&self) -> bool {
        matches!(self.0, hairspring_time::Grant::Granted(_))
    }

    /// The system's message, if it refused.
    #[getter]
    fn reason(&self) -> Option<String> {
        match &self.0 {
            hairspring_time::Grant::Granted(_) => None,
            hairspring_time::Grant::Refused(_, refused) => {
                Some(format!("failed to {}: {}", refused.attempted, refused.said))
            }
        }
    }

    /// Remedy for a refusal.
    #[getter]
    fn remedy(&self) -> Option<&str> {
        match &self.0 {
            hairspring_time::Grant::Granted(_) => None,
            hairspring_time::Grant::Refused(_, refused) => Some(&refused.remedy),
        }
    }

    fn __bool__(&self) -> bool {
        self.granted()
    }

    fn __repr__(&self) -> String {
        format!("<Grant: {}>", self.text())
    }
}
