//! Three programs of the kind that a lab writes, each small enough to read at one sitting: examples of how the executive is
//! used, and something to run and to look at on every back-end.
//!
//! They use nothing but what any user of this crate has. What a program found out leaves the executive through a channel,
//! sent by tasks that are not urgent, and is put together after the run.
//!
//! ```
//! use hairspring_exec::programs::{self, sampler};
//! # fn main() -> Result<(), programs::Failed> {
//! let run = sampler::run(programs::backend("sim")?, &sampler::Setup::default(), None)?;
//! assert_eq!(run.report.lost, 0);
//! println!("{run}");
//! # Ok(())
//! # }
//! ```

pub mod inversion;
pub mod sampler;
pub mod shutter;

mod account;

use std::fmt;

use hairspring_exec_core::{Moment, Priority, Status};
use hairspring_machine::sim::Script;
use hairspring_machine::{Nanos, Sim};

use crate::trace::Trace;
use crate::{Backend, ExecError, Finish};

/// One of the programs.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name, as the command and the examples know it.
    pub name: &'static str,
    /// What it shows, in one line.
    pub shows: &'static str,
    run: fn(Backend, Option<usize>) -> Result<ProgramRun, Failed>,
}

impl Program {
    /// Runs it with its usual setup, and keeps this many calls in the trace. Takes less than a second.
    ///
    /// # Errors
    /// The back-end is not to be had here.
    pub fn run(&self, backend: Backend, trace: Option<usize>) -> Result<ProgramRun, Failed> {
        (self.run)(backend, trace)
    }
}

/// All programs.
pub fn all() -> [Program; 3] {
    [
        Program {
            name: "sampler",
            shows: "a periodic sampler mails its samples to a logger that is less urgent and sometimes slow",
            run: |backend, trace| sampler::run(backend, &sampler::Setup::default(), trace).map(ProgramRun::of_any_kind),
        },
        Program {
            name: "shutter",
            shows: "exposures of a camera: a sequence with exact times, and a supervisor that aborts one that hangs",
            run: |backend, trace| shutter::run(backend, &shutter::Setup::default(), trace).map(ProgramRun::of_any_kind),
        },
        Program {
            name: "inversion",
            shows: "priority inversion, and how inheritance and a ceiling cure it",
            run: |backend, trace| {
                inversion::run(backend, &inversion::Setup::default(), trace).map(ProgramRun::of_any_kind)
            },
        },
    ]
}

/// What came of a run.
#[derive(Debug)]
pub struct ProgramRun<R = String> {
    /// What the program is about: what it found.
    pub report: R,
    /// How the run of the executive went.
    pub finish: Finish,
    /// The calls, if they were asked for.
    pub trace: Option<Trace>,
}

impl<R: fmt::Display> ProgramRun<R> {
    fn of_any_kind(self) -> ProgramRun {
        ProgramRun { report: self.report.to_string(), finish: self.finish, trace: self.trace }
    }
}

impl<R: fmt::Display> fmt::Display for ProgramRun<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.report, account::Account(&self.finish))
    }
}

/// Why a program did not run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Failed {
    /// There is no back-end of that name; those there are.
    NoSuchBackend(String),
    /// The executive could not be made.
    Executive(ExecError),
    /// An object could not be made.
    Object(Status),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchBackend(name) => {
                write!(f, "find a back-end called {name:?}; there are {}", BACKENDS.join(", "))
            }
            Self::Executive(error) => error.fmt(f),
            Self::Object(status) => write!(f, "make an object of the executive: {status}"),
        }
    }
}

impl std::error::Error for Failed {}

impl From<ExecError> for Failed {
    fn from(error: ExecError) -> Self {
        Self::Executive(error)
    }
}

impl From<Status> for Failed {
    fn from(status: Status) -> Self {
        Self::Object(status)
    }
}

/// Names of the back-ends, as [`Backend::name`] gives them.
pub const BACKENDS: [&str; 4] = ["sim", "fiber", "thread_up", "thread_smp"];

/// The back-end of this name, as it usually is: `sim` on a quiet simulated machine, the others where the caller is.
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

/// A priority that is known when the program is written.
const fn priority(number: u8) -> Priority {
    match Priority::new(number) {
        Some(priority) => priority,
        None => panic!("priorities are 0 to 63"),
    }
}

/// The moment this much later; no span here is negative.
fn after(moment: Moment, span: Nanos) -> Moment {
    moment.after_nanos(span.count().unsigned_abs())
}

/// The time from one moment to a later one; negative if it is earlier.
fn since(from: Moment, to: Moment) -> Nanos {
    Nanos::new(to.as_nanos().wrapping_sub(from.as_nanos()).cast_signed())
}
