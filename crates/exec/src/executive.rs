//! [`Executive`]: holds tasks and objects, and runs them.

use crate::system::clock::moment_of;
use hairspring_exec_core::{By, Observer};
use hairspring_machine::sim::Script;
use hairspring_machine::{Cpu, CpuSet, Host, Instant, Nanos, Policy, Sim};

use crate::back_end::BackEnd;
use crate::calls::{CallSite, Caller, Create, IspCtx};
use crate::config::{ExecConfig, ExecError, ThreadProfile};
use crate::engine::{Engine, InterruptProcedure, TimerProcedure};
use crate::fiber::{Fibers, SwitchBack, can_switch};
use crate::interrupt::{Arrival, InterruptSource, Isp};
use crate::report::{Finish, RunLimit};
use crate::status::Publication;
use crate::stopper::Stopper;
use crate::thread::Threads;
use crate::trace::Trace;

/// The back-end that runs the tasks.
#[derive(Clone, Debug)]
pub enum Backend {
    /// Virtual time: deterministic, and `work()` can be preempted at every nanosecond.
    Sim(Sim),
    /// Fibers on the calling thread: switches of a few nanoseconds, at calls only.
    Fiber {
        /// The CPU to which a run pins the carrier; none: it is not pinned.
        cpu: Option<Cpu>,
        /// The scheduling policy of the carrier during a run.
        policy: Policy,
    },
    /// Threads of the kernel: truly preemptive.
    Thread(ThreadProfile),
}

impl Backend {
    /// Fibers on the calling thread, with its CPUs and the default policy.
    pub fn fiber() -> Self {
        Self::Fiber { cpu: None, policy: Policy::Other }
    }

    /// Virtual time on an undisturbed machine.
    pub fn sim() -> Self {
        Self::Sim(Sim::new(Script::default()))
    }

    /// Threads on one CPU, with strict priority if real-time priority is granted.
    pub fn thread_up() -> Self {
        Self::Thread(ThreadProfile::Up { cpu: None })
    }

    /// Threads on all CPUs.
    pub fn thread_smp() -> Self {
        Self::Thread(ThreadProfile::Smp { cpus: CpuSet::default() })
    }

    /// The name of the back-end in ids and traces.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sim(_) => "sim",
            Self::Fiber { .. } => "fiber",
            Self::Thread(ThreadProfile::Up { .. }) => "thread_up",
            Self::Thread(ThreadProfile::Smp { .. }) => "thread_smp",
        }
    }
}

/// The shortest time slice: long compared with a switch of threads.
const LEAST_SLICE: Nanos = Nanos::from_micros(100);

enum Backing {
    Fiber(Box<Fibers<Host>>),
    Other(Box<dyn Engine>),
}

/// A multitasking executive.
///
/// Objects are made before a run or by tasks during one ([`Create`]); handles are copied into the tasks that use them.
pub struct Executive {
    /// First, so that it is dropped before the executive that it publishes.
    publication: Option<Publication>,
    backing: Backing,
}

impl Executive {
    /// An empty executive.
    ///
    /// # Errors
    /// The configuration is invalid, or the system has no more threads. On fibers and in virtual time: the calling
    /// thread has a shadow stack.
    pub fn new(backend: Backend, config: &ExecConfig) -> Result<Self, ExecError> {
        if config.envelopes == 0 || config.envelopes == u16::MAX {
            return Err(ExecError::ExecConfig("envelopes must be 1 to 65534"));
        }
        if config.stack_bytes < 4096 {
            return Err(ExecError::ExecConfig("stack_bytes must be at least 4096"));
        }
        if config.slice.is_some_and(|slice| slice < LEAST_SLICE) {
            return Err(ExecError::ExecConfig("slice must be at least 100 µs"));
        }
        if !matches!(backend, Backend::Thread(_)) {
            can_switch()?;
        }
        let backing = match backend {
            Backend::Sim(sim) => Backing::Other(Fibers::new(sim, config, None, Policy::Other)),
            Backend::Fiber { cpu, policy } => {
                let fibers = Fibers::new(Host, config, cpu.map(|cpu| CpuSet(vec![cpu])), policy);
                // A call that is recorded or measured takes far longer than one through a table.
                if fibers.is_observed() { Backing::Other(fibers) } else { Backing::Fiber(fibers) }
            }
            Backend::Thread(profile) => Backing::Other(Box::new(Threads::new(config, profile)?)),
        };
        let executive = Self { publication: None, backing };
        if let Some(slice) = config.slice {
            let engine = executive.back_end().cold();
            let procedure: TimerProcedure<dyn Engine> = Box::new(|engine, _, _| engine.end_slice());
            let timer = engine.create_timer(By::Outside, "slice", procedure);
            let timer = timer.map_err(|_| ExecError::ExecConfig("a new executive has no room for a timer"))?;
            engine.set_slice(timer, slice.count().unsigned_abs());
        }
        Ok(executive)
    }

    /// Runs until a task asks to stop, the limit, or until nothing can happen any more. Blocks.
    ///
    /// It kills and unwinds the tasks that are in the middle of a run before it returns. Tasks, timers and all other
    /// objects stay for another run. A run of fibers ends at a call: it cannot end while a task computes.
    pub fn run(&mut self, limit: RunLimit) -> Finish {
        self.back_end().cold().run(limit)
    }

    /// Attaches an interrupt service procedure that may make the calls of [`IspCtx`].
    ///
    /// # Errors
    /// The system has no thread or descriptor for the source.
    pub fn attach(
        &mut self,
        name: &str,
        source: InterruptSource,
        mut procedure: impl FnMut(&IspCtx<'_>, Arrival) + Send + 'static,
    ) -> Result<Isp, ExecError> {
        Ok(match &self.backing {
            Backing::Fiber(fibers) => fibers.make_procedure(
                name,
                &source,
                InterruptProcedure::Conforming(Box::new(move |fibers, isp, arrival| {
                    procedure(&IspCtx::new(BackEnd::Fiber(fibers, SwitchBack::NONE), isp), arrival);
                })),
            ),
            Backing::Other(engine) => engine.attach(
                name,
                &source,
                InterruptProcedure::Conforming(Box::new(move |engine, isp, arrival| {
                    procedure(&IspCtx::new(BackEnd::Other(engine), isp), arrival);
                })),
            ),
        }?)
    }

    /// Attaches a raw interrupt service procedure, which makes no executive calls and runs on the source's own thread.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub fn attach_raw(
        &mut self,
        name: &str,
        source: InterruptSource,
        procedure: impl FnMut(Arrival) + Send + 'static,
    ) -> Result<Isp, ExecError> {
        Ok(self.back_end().cold().attach(name, &source, InterruptProcedure::Raw(Box::new(procedure)))?)
    }

    /// A handle that ends a run of this executive from any thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.back_end().cold().halt())
    }

    /// Publishes what the tasks do to other processes of this user, such as `hairspring top`, under a name of letters,
    /// digits, `-` and `_`. A second call replaces the name.
    ///
    /// This starts a thread of ordinary priority, which asks the executive a hundred times a second. With threads it
    /// holds the executive's lock for some microseconds; on fibers a call of a task answers, which takes some
    /// microseconds, and allocates for new tasks. An executive that is not published pays nothing. The file is in
    /// `XDG_RUNTIME_DIR` or `/dev/shm`, readable by this user only, and goes with the executive.
    ///
    /// # Errors
    /// The name does not fit or is taken in this process; the file or the thread could not be made; the back-end is
    /// virtual time. The executive is then not published, under its former name neither.
    pub fn publish(&mut self, name: &str) -> Result<(), ExecError> {
        let engine = self.back_end().cold();
        let Some(source) = engine.sampled() else {
            return Err(ExecError::ExecConfig("virtual time cannot be published: it does not pass while others look"));
        };
        let backend = engine.name();
        self.publication = None;
        self.publication = Some(Publication::start(name, backend, source)?);
        Ok(())
    }

    /// In virtual time, fires an interrupt at a future instant. False on a back-end with real time, where interrupts
    /// come from their sources.
    pub fn interrupt_at(&mut self, isp: &Isp, at: Instant) -> bool {
        self.back_end().cold().interrupt_at(isp.number, moment_of(at))
    }

    /// Installs scheduler hooks. The executive reports every decision to `hooks` at once: inside the call that made it,
    /// on the calling thread and, with threads, under the executive's lock. Hooks must be short and cannot make calls.
    /// A second call replaces the hooks.
    pub fn set_hooks(&mut self, hooks: impl Observer + Send + 'static) {
        self.back_end().cold().set_hooks(Box::new(hooks));
    }

    /// The calls until now, if [`ExecConfig::trace`] asked for them.
    pub fn trace(&self) -> Option<Trace> {
        self.back_end().cold().trace()
    }

    fn back_end(&self) -> BackEnd<'_> {
        match &self.backing {
            Backing::Fiber(fibers) => BackEnd::Fiber(fibers, SwitchBack::NONE),
            Backing::Other(engine) => BackEnd::Other(engine.as_ref()),
        }
    }
}

impl CallSite for Executive {
    fn caller(&self) -> Caller<'_> {
        Caller { back_end: self.back_end(), by: By::Outside }
    }
}

impl Create for Executive {}
