//! Results of a program's run, and the back-ends by name.

use std::fmt;

use hairspring_exec_core::{CallStatus, Priority};
use hairspring_machine::Sim;
use hairspring_machine::sim::Script;

use super::finish;
use crate::errors::{CreateError, PeriodError, TriggerError};
use crate::trace::Trace;
use crate::{Backend, ExecError, Finish};

/// Result of a run.
#[derive(Debug)]
pub struct ProgramRun<R = String> {
    /// The program's own findings.
    pub report: R,
    /// How the run of the executive went.
    pub finish: Finish,
    /// The trace of calls, if the caller asked for one.
    pub trace: Option<Trace>,
}

impl<R: fmt::Display> ProgramRun<R> {
    pub(super) fn of_any_kind(self) -> ProgramRun {
        ProgramRun { report: self.report.to_string(), finish: self.finish, trace: self.trace }
    }
}

impl<R: fmt::Display> fmt::Display for ProgramRun<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.report, finish::FinishText(&self.finish))
    }
}

/// Why a program did not run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failed {
    /// No back-end has that name; lists those that exist.
    NoSuchBackend(String),
    /// The executive could not be made.
    Executive(ExecError),
    /// An object could not be made or started.
    Object(CallStatus),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchBackend(name) => {
                write!(f, "find a back-end called {name:?}; there are {}", BACKENDS.join(", "))
            }
            Self::Executive(error) => error.fmt(f),
            Self::Object(error) => write!(f, "make or start an object of the executive: {error}"),
        }
    }
}

impl std::error::Error for Failed {}

impl From<ExecError> for Failed {
    fn from(error: ExecError) -> Self {
        Self::Executive(error)
    }
}

impl From<CreateError> for Failed {
    fn from(error: CreateError) -> Self {
        Self::Object(error.into())
    }
}

impl From<TriggerError> for Failed {
    fn from(error: TriggerError) -> Self {
        Self::Object(error.into())
    }
}

impl From<PeriodError> for Failed {
    fn from(error: PeriodError) -> Self {
        Self::Object(error.into())
    }
}

/// Names of the back-ends, as [`Backend::name`] gives them.
pub const BACKENDS: [&str; 4] = ["sim", "fiber", "thread_up", "thread_smp"];

/// The back-end of this name in its default setup: `sim` on a quiet simulated machine, the others on the caller's
/// machine.
///
/// # Errors
/// [`Failed::NoSuchBackend`].
pub fn backend(name: &str) -> Result<Backend, Failed> {
    match name.replace('-', "_").as_str() {
        "sim" => Ok(Backend::Sim(Sim::new(Script::default()))),
        "fiber" => Ok(Backend::fiber()),
        "thread_up" => Ok(Backend::thread_up()),
        "thread_smp" => Ok(Backend::thread_smp()),
        _ => Err(Failed::NoSuchBackend(name.to_owned())),
    }
}

/// The back-end of this name, or all of them.
///
/// # Errors
/// [`Failed::NoSuchBackend`].
pub fn backends(name: Option<&str>) -> Result<Vec<Backend>, Failed> {
    match name {
        Some(name) => Ok(vec![backend(name)?]),
        None => BACKENDS.into_iter().map(backend).collect(),
    }
}

/// A priority that is a constant of the program.
pub(super) const fn priority(number: u8) -> Priority {
    match Priority::new(number) {
        Some(priority) => priority,
        None => panic!("priorities are 0 to 63"),
    }
}
