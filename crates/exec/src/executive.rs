//! [`Executive`]: made, given tasks and objects, run.

use hairspring_exec_core::{
    By, Call, EventsId, Expiry, Moment, Observer, Priority, Protocol, ResourceId, SemaphoreId, Status, TaskId, TimerId,
};
use hairspring_machine::sim::Script;
use hairspring_machine::{Cpu, CpuSet, Host, Policy, Sim};

use crate::config::{Config, ExecError, Profile};
use crate::context::{Caller, IspCtx, Standing, TaskCtx, TimerCtx, accept};
use crate::engine::{IspBody, Kernel};
use crate::fiber::Fibers;
use crate::handle::{Exchange, Mailbox, Pool};
use crate::interrupt::{Arrival, Isp, Source};
use crate::message::GRAIN;
use crate::report::{Finish, RunLimit};
use crate::thread::Threads;
use crate::trace::Trace;

/// What runs the tasks.
#[derive(Clone, Debug)]
pub enum Backend {
    /// Virtual time: deterministic, and `work()` can be preempted at every nanosecond.
    Sim(Sim),
    /// Fibers on the calling thread: switches of a few nanoseconds, at calls only.
    Fiber {
        /// The CPU to pin the carrier to during a run; none: where it is.
        cpu: Option<Cpu>,
        /// How the carrier is scheduled during a run.
        policy: Policy,
    },
    /// Threads of the kernel: truly preemptive.
    Thread(Profile),
}

impl Backend {
    /// Fibers where the calling thread is, scheduled as it is by default.
    pub fn fiber() -> Self {
        Self::Fiber { cpu: None, policy: Policy::Other }
    }

    /// Virtual time on a machine that nothing disturbs.
    pub fn sim() -> Self {
        Self::Sim(Sim::new(Script::default()))
    }

    /// Threads on one CPU, by strict priority where real-time priority is granted.
    pub fn thread_up() -> Self {
        Self::Thread(Profile::Up { cpu: None })
    }

    /// Threads on all CPUs.
    pub fn thread_smp() -> Self {
        Self::Thread(Profile::Smp { cpus: CpuSet::default() })
    }

    /// Its name in ids and traces.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sim(_) => "sim",
            Self::Fiber { .. } => "fiber",
            Self::Thread(Profile::Up { .. }) => "thread_up",
            Self::Thread(Profile::Smp { .. }) => "thread_smp",
        }
    }
}

enum Engines {
    Fiber(Box<Fibers<Host>>),
    Sim(Box<Fibers<Sim>>),
    Thread(Threads),
}

/// A multitasking executive.
///
/// Objects are made before a run or by tasks during one ([`Create`]); handles are copied into the tasks that use them.
pub struct Executive {
    engine: Engines,
}

impl Executive {
    /// An executive with nothing in it.
    ///
    /// # Errors
    /// A configuration that makes no sense; for threads, a system without threads to give.
    pub fn new(backend: Backend, config: &Config) -> Result<Self, ExecError> {
        if config.envelopes == 0 || config.envelopes == u16::MAX {
            return Err(ExecError::Config("envelopes must be 1 to 65534"));
        }
        if config.stack_bytes < 4096 {
            return Err(ExecError::Config("stack_bytes must be at least 4096"));
        }
        let engine = match backend {
            Backend::Sim(sim) => Engines::Sim(Fibers::new(sim, config, None, Policy::Other)),
            Backend::Fiber { cpu, policy } => {
                Engines::Fiber(Fibers::new(Host, config, cpu.map(|cpu| CpuSet(vec![cpu])), policy))
            }
            Backend::Thread(profile) => Engines::Thread(Threads::new(config, profile)?),
        };
        Ok(Self { engine })
    }

    /// Runs until a task asks to stop, the limit, or until nothing can happen any more. Blocks.
    ///
    /// When it returns no task is in the middle of a run: those that were have been killed and have unwound. Tasks, timers
    /// and all other objects are there for another run. A run of fibers ends at a call: it cannot end while a task computes.
    pub fn run(&mut self, limit: RunLimit) -> Finish {
        self.kernel().cold().run(limit)
    }

    /// Attaches an interrupt service procedure that may make the calls of [`IspCtx`].
    ///
    /// # Errors
    /// The system has no thread or descriptor for the source.
    pub fn attach(
        &mut self,
        name: &str,
        source: Source,
        procedure: impl FnMut(&IspCtx<'_>, Arrival) + Send + 'static,
    ) -> Result<Isp, ExecError> {
        Ok(self.kernel().cold().attach(name, source, IspBody::Conforming(Box::new(procedure)))?)
    }

    /// Attaches a raw interrupt service procedure, which makes no executive calls and runs on the source's own thread.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    pub fn attach_raw(
        &mut self,
        name: &str,
        source: Source,
        procedure: impl FnMut(Arrival) + Send + 'static,
    ) -> Result<Isp, ExecError> {
        Ok(self.kernel().cold().attach(name, source, IspBody::Raw(Box::new(procedure)))?)
    }

    /// In virtual time, sets an interrupt off at a moment to come. False on a back-end whose time is real: there
    /// interrupts come by themselves.
    pub fn interrupt_at(&mut self, isp: &Isp, at: Moment) -> bool {
        match &self.engine {
            Engines::Sim(fibers) => {
                fibers.post_at(isp.number, at);
                true
            }
            Engines::Fiber(_) | Engines::Thread(_) => false,
        }
    }

    /// Installs scheduler hooks: every decision of the executive is told to `hooks` at once, in the middle of the call that
    /// made it, on the thread that made it and, with threads, under the executive's lock. They must be short, and can ask
    /// nothing of the executive. One set; a second call replaces the first.
    pub fn set_hooks(&mut self, hooks: impl Observer + Send + 'static) {
        match &self.engine {
            Engines::Fiber(fibers) => fibers.set_hooks(Box::new(hooks)),
            Engines::Sim(fibers) => fibers.set_hooks(Box::new(hooks)),
            Engines::Thread(threads) => threads.set_hooks(Box::new(hooks)),
        }
    }

    /// The calls so far, if [`Config::trace`] asked for them.
    pub fn trace(&self) -> Option<Trace> {
        match &self.engine {
            Engines::Fiber(fibers) => fibers.trace(),
            Engines::Sim(fibers) => fibers.trace(),
            Engines::Thread(threads) => threads.trace(),
        }
    }

    fn kernel(&self) -> Kernel<'_> {
        match &self.engine {
            Engines::Fiber(fibers) => Kernel::Fiber(fibers),
            Engines::Sim(fibers) => Kernel::Sim(fibers),
            Engines::Thread(threads) => Kernel::Thread(threads),
        }
    }
}

impl Standing for Executive {
    fn caller(&self) -> Caller<'_> {
        Caller { kernel: self.kernel(), by: By::Outside }
    }
}

/// Making objects: for the program before a run, and for tasks during one. Allocates; not real-time safe.
pub trait Create: Standing {
    /// Makes a task that is started by triggers. One run of the body is one start.
    ///
    /// # Errors
    /// [`Status::TooMany`]: 65,535 tasks exist.
    fn task(
        &self,
        name: &str,
        priority: Priority,
        body: impl FnMut(&TaskCtx<'_>) + Send + 'static,
    ) -> Result<TaskId, Status> {
        let Caller { kernel, by } = self.caller();
        kernel.cold().create_task(by, name, priority, [0; 4], Box::new(body))
    }

    /// Makes a task that is started by messages of type `M`, with mailboxes of these capacities by urgency (0: none). One
    /// run of the body is one message, unless it receives more itself from the mailbox it is given.
    ///
    /// # Errors
    /// [`Status::TooMany`]; [`Status::MessageTooBig`] if `M` is larger than [`Config::message_bytes`].
    fn mail_task<M: Copy + Send + 'static>(
        &self,
        name: &str,
        priority: Priority,
        capacities: [u16; 4],
        mut body: impl FnMut(&TaskCtx<'_>, Mailbox<M>, M) + Send + 'static,
    ) -> Result<Mailbox<M>, Status> {
        let Caller { kernel, by } = self.caller();
        fits::<M>(kernel)?;
        let home = kernel.home();
        let run = move |ctx: &TaskCtx<'_>| {
            // Started by a trigger there is no message; such a run has nothing to do.
            if let Some(message) = ctx.started_with::<M>() {
                body(ctx, Mailbox::new(ctx.id(), home), message);
            }
        };
        kernel.cold().create_task(by, name, priority, capacities, Box::new(run)).map(|task| Mailbox::new(task, home))
    }

    /// Makes a counting semaphore.
    ///
    /// # Errors
    /// [`Status::Overflow`] if the count is above the limit; [`Status::TooMany`].
    fn semaphore(&self, count: u32, limit: u32) -> Result<SemaphoreId, Status> {
        let Caller { kernel, by } = self.caller();
        accept(kernel.cold().call(by, Call::CreateSemaphore { count, limit })).map(SemaphoreId::from_number)
    }

    /// Makes a resource with a protocol against priority inversion.
    ///
    /// # Errors
    /// [`Status::TooMany`].
    fn resource(&self, protocol: Protocol) -> Result<ResourceId, Status> {
        let Caller { kernel, by } = self.caller();
        accept(kernel.cold().call(by, Call::CreateResource { protocol })).map(ResourceId::from_number)
    }

    /// Makes an event group with these bits set.
    ///
    /// # Errors
    /// [`Status::TooMany`].
    fn events(&self, bits: u32) -> Result<EventsId, Status> {
        let Caller { kernel, by } = self.caller();
        accept(kernel.cold().call(by, Call::CreateEvents { bits })).map(EventsId::from_number)
    }

    /// Makes a message exchange for messages of type `M`.
    ///
    /// # Errors
    /// [`Status::TooMany`]; [`Status::MessageTooBig`].
    fn exchange<M: Copy + Send + 'static>(&self, capacities: [u16; 4]) -> Result<Exchange<M>, Status> {
        let Caller { kernel, by } = self.caller();
        fits::<M>(kernel)?;
        let number = accept(kernel.cold().call(by, Call::CreateExchange { capacities }))?;
        Ok(Exchange::new(hairspring_exec_core::ExchangeId::from_number(number), kernel.home()))
    }

    /// Makes a pool of buffers with these contents; at most 65,535.
    ///
    /// # Errors
    /// [`Status::TooMany`].
    fn pool<T: Send + 'static>(&self, contents: Vec<T>) -> Result<Pool<T>, Status> {
        let Caller { kernel, by } = self.caller();
        let Ok(buffers) = u16::try_from(contents.len()) else { return Err(Status::TooMany) };
        let number = accept(kernel.cold().call(by, Call::CreatePool { buffers }))?;
        Ok(Pool::new(hairspring_exec_core::PoolId::from_number(number), kernel.home(), contents.into_iter()))
    }

    /// Makes a timer, stopped. Its procedure runs in the kernel task, above all tasks, and is told of overruns.
    ///
    /// # Errors
    /// [`Status::TooMany`].
    fn timer(
        &self,
        name: &str,
        procedure: impl FnMut(&TimerCtx<'_>, Expiry) + Send + 'static,
    ) -> Result<TimerId, Status> {
        let Caller { kernel, by } = self.caller();
        kernel.cold().create_timer(by, name, Box::new(procedure))
    }
}

impl Create for Executive {}
impl Create for TaskCtx<'_> {}

fn fits<M>(kernel: Kernel<'_>) -> Result<(), Status> {
    const { assert!(align_of::<M>() <= GRAIN, "messages are aligned to at most 16 bytes") };
    let fits = match kernel {
        Kernel::Fiber(fibers) => fibers.message_fits::<M>(),
        Kernel::Sim(fibers) => fibers.message_fits::<M>(),
        Kernel::Thread(threads) => threads.message_fits::<M>(),
    };
    if fits { Ok(()) } else { Err(Status::MessageTooBig) }
}
