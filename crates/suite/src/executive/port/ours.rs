//! This project's executive behind the port: fibers, threads on one CPU, threads on all.

use std::future::{Future, ready};
use std::io::{PipeWriter, Write};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use hairspring_exec::{
    Backend, Create, ExecConfig, Executive, Instant, InterruptSource, IspCtx, Limit, Mailbox, Pool, Priority,
    ResourceId, ResourceProtocol, RunLimit, SemaphoreId, Services, TaskCtx, TaskId, ThreadProfile, TimerId,
    Urgency as MailUrgency,
};
use hairspring_machine::{CpuSet, Nanos, Policy};
use hairspring_sheet::Absent;

use super::{
    Ability, BLOCK_BYTES, Calls, InterruptCalls, InterruptTrigger, Message, Placement, Port, RunOutcome, TaskUrgency,
    at_once,
};

/// Real-time priority of the fibers' carrier thread: that of tasks of the thread back-end.
const CARRIER_PRIORITY: u8 = 60;
/// Room of a mailbox.
const MAIL_ROOM: u16 = 8;

/// A back-end, as a type.
pub trait BackendKind: 'static {
    /// Whether it runs on threads of the kernel.
    const THREADS: bool;
    /// Whether on several CPUs at once.
    const SEVERAL_CPUS: bool;

    /// The back-end for this place.
    fn backend(place: Placement) -> Backend;
}

/// Fibers on one thread.
pub struct Fiber;
/// Threads on one CPU.
pub struct ThreadUp;
/// Threads on all CPUs.
pub struct ThreadSmp;

impl BackendKind for Fiber {
    const THREADS: bool = false;
    const SEVERAL_CPUS: bool = false;

    fn backend(place: Placement) -> Backend {
        Backend::Fiber { cpu: Some(place.cpu), policy: Policy::Fifo(CARRIER_PRIORITY) }
    }
}

impl BackendKind for ThreadUp {
    const THREADS: bool = true;
    const SEVERAL_CPUS: bool = false;

    fn backend(place: Placement) -> Backend {
        Backend::Thread(ThreadProfile::Up { cpu: Some(place.cpu) })
    }
}

impl BackendKind for ThreadSmp {
    const THREADS: bool = true;
    const SEVERAL_CPUS: bool = true;

    fn backend(_place: Placement) -> Backend {
        Backend::Thread(ThreadProfile::Smp { cpus: CpuSet::default() })
    }
}

/// The executive on one kind of back-end.
pub struct Ours<K: BackendKind> {
    executive: Executive,
    kind: PhantomData<K>,
}

/// A task's calls.
pub struct OurCalls<'k>(&'k TaskCtx<'k>);
/// An interrupt procedure's calls.
pub struct OurInterruptCalls<'k>(&'k IspCtx<'k>);

/// The way to fire.
#[derive(Clone)]
pub enum OurInterrupt {
    /// A post to an attached procedure.
    Post(hairspring_exec::Isp),
    /// A byte into the pipe that a source reads.
    Pipe(Arc<PipeWriter>),
}

impl InterruptTrigger for OurInterrupt {
    #[inline]
    fn fire(&self) {
        match self {
            // A lost interrupt shows: the procedure does not run, and the sample is missing.
            Self::Post(isp) => drop(isp.post()),
            Self::Pipe(pipe) => drop(pipe.as_ref().write(&[1])),
        }
    }
}

fn failed(what: &str, why: impl std::fmt::Display) -> Absent {
    Absent::final_(format!("failed to {what}: {why}"))
}

fn priority(urgency: TaskUrgency) -> Priority {
    Priority::new(urgency).unwrap_or(Priority::LOWEST)
}

impl<'k> OurCalls<'k> {
    /// For services that other executives lack.
    #[inline(always)]
    pub(crate) fn context(&self) -> &'k TaskCtx<'k> {
        self.0
    }
}

impl<K: BackendKind> Ours<K> {
    /// For services that other executives lack.
    pub(crate) fn executive(&mut self) -> &mut Executive {
        &mut self.executive
    }

    /// The source of an interrupt: a write to a pipe if a thread waits for it, a post if the carrier polls.
    fn source() -> Result<(InterruptSource, Option<OurInterrupt>), Absent> {
        if !K::THREADS {
            return Ok((InterruptSource::Software, None));
        }
        let (reader, writer) = std::io::pipe().map_err(|error| failed("make a pipe", error))?;
        Ok((InterruptSource::Readable(OwnedFd::from(reader)), Some(OurInterrupt::Pipe(Arc::new(writer)))))
    }
}

impl<K: BackendKind> Port for Ours<K> {
    type Task = TaskId;
    type Mail = Mailbox<Message>;
    type Semaphore = SemaphoreId;
    type Lock = ResourceId;
    type Timer = TimerId;
    type Blocks = Pool<[u8; BLOCK_BYTES]>;
    type Interrupt = OurInterrupt;
    type Calls<'k> = OurCalls<'k>;
    type InterruptCalls<'k> = OurInterruptCalls<'k>;

    const BELOW_STAMPS: bool = !K::THREADS;

    fn make(place: Placement) -> Result<Self, Absent> {
        let config = ExecConfig { measure_latency: place.measure_latency, ..ExecConfig::default() };
        match Executive::new(K::backend(place), &config) {
            Ok(executive) => Ok(Self { executive, kind: PhantomData }),
            Err(error) => Err(Absent::final_(format!("failed to {error}"))),
        }
    }

    fn unable(ability: Ability) -> Option<Absent> {
        let reason = match ability {
            Ability::PreemptsCaller if K::SEVERAL_CPUS => {
                "n/a on thread_smp: the sender is not preempted, the receiver runs on another CPU"
            }
            Ability::Yield if K::SEVERAL_CPUS => "n/a on thread_smp: equal tasks run at the same time",
            Ability::InheritingLock if K::SEVERAL_CPUS => {
                "n/a on thread_smp: the owner and those who wait for it run at the same time"
            }
            Ability::Tick if K::THREADS => {
                "n/a on threads: there is no tick, the kernel's timer fires when something is due"
            }
            Ability::PollTime if K::THREADS => "n/a on threads: interrupts are not polled for",
            _ => return None,
        };
        Some(Absent::final_(reason))
    }

    fn spawn<B>(&mut self, name: &str, urgency: TaskUrgency, mut body: B) -> Result<TaskId, Absent>
    where
        B: for<'c, 'k> AsyncFnMut(&'c OurCalls<'k>) + Send + 'static,
    {
        let task = self.executive.task(name, priority(urgency), move |ctx| at_once(body(&OurCalls(ctx))));
        task.map_err(|status| failed("make a task", status))
    }

    fn spawn_mail<B>(&mut self, name: &str, urgency: TaskUrgency, mut body: B) -> Result<Mailbox<Message>, Absent>
    where
        B: for<'c, 'k> AsyncFnMut(&'c OurCalls<'k>, Mailbox<Message>, Message) + Send + 'static,
    {
        let capacities = [MAIL_ROOM, 0, 0, 0];
        let run = move |ctx: &TaskCtx<'_>, own, message| at_once(body(&OurCalls(ctx), own, message));
        self.executive
            .mail_task(name, priority(urgency), capacities, run)
            .map_err(|status| failed("make a mail task", status))
    }

    fn start(&mut self, task: TaskId) -> Result<(), Absent> {
        self.executive.trigger(task).map_err(|status| failed("start a task", status))
    }

    fn semaphore(&mut self, count: u32) -> Result<SemaphoreId, Absent> {
        self.executive.semaphore(count, u32::MAX).map_err(|status| failed("make a semaphore", status))
    }

    fn lock(&mut self) -> Result<ResourceId, Absent> {
        self.executive.resource(ResourceProtocol::Inherit).map_err(|status| failed("make a resource", status))
    }

    fn blocks(&mut self, count: u16) -> Result<Self::Blocks, Absent> {
        let contents = vec![[0_u8; BLOCK_BYTES]; usize::from(count)];
        self.executive.pool(contents).map_err(|status| failed("make a pool", status))
    }

    fn timer(&mut self, mut procedure: impl FnMut() + Send + 'static) -> Result<TimerId, Absent> {
        let timer = self.executive.timer("timer", move |_, _| procedure());
        timer.map_err(|status| failed("make a timer", status))
    }

    fn attach_raw(&mut self, mut procedure: impl FnMut() + Send + 'static) -> Result<OurInterrupt, Absent> {
        let (source, firing) = Self::source()?;
        let isp = self.executive.attach_raw("raw", source, move |_| procedure());
        let isp = isp.map_err(|error| failed("attach a procedure", error))?;
        Ok(firing.unwrap_or(OurInterrupt::Post(isp)))
    }

    fn attach<R>(&mut self, mut procedure: R) -> Result<OurInterrupt, Absent>
    where
        R: for<'c, 'k> FnMut(&'c OurInterruptCalls<'k>) + Send + 'static,
    {
        let (source, firing) = Self::source()?;
        let isp = self.executive.attach("isp", source, move |ctx, _| procedure(&OurInterruptCalls(ctx)));
        let isp = isp.map_err(|error| failed("attach a procedure", error))?;
        Ok(firing.unwrap_or(OurInterrupt::Post(isp)))
    }

    fn run(&mut self, most: Nanos) -> RunOutcome {
        let finish = self.executive.run(RunLimit::For(most));
        let refused = finish.refused.first().map(|refused| {
            Absent::new(format!("the system refused to {}: {}", refused.attempted, refused.said), &refused.remedy)
        });
        let mishap = finish
            .mishaps
            .first()
            .map(|mishap| Absent::final_(format!("task {} met with a mishap: {:?}", mishap.name, mishap.what)));
        // Fibers keep their order without a permission; they only lose protection from the rest of the machine.
        let (void, caveat) = match (refused, K::THREADS) {
            (Some(refused), false) => (mishap, Some(refused.reason)),
            (Some(refused), true) => (mishap.or(Some(refused)), None),
            (None, _) if !finish.strict && !K::SEVERAL_CPUS => {
                (mishap, Some("strict priority did not hold throughout".to_owned()))
            }
            (None, _) => (mishap, None),
        };
        RunOutcome { void, caveat, longest_lock: finish.longest_lock, longest_unpolled: finish.longest_unpolled }
    }
}

/// Calls whose status is always good in a scenario; after a bad one the proof of the sample would be missing.
impl<K: BackendKind> Calls<Ours<K>> for OurCalls<'_> {
    #[inline(always)]
    fn trigger(&self, task: TaskId) -> impl Future<Output = ()> {
        let _ = self.0.trigger(task);
        ready(())
    }

    #[inline(always)]
    fn wait(&self) -> impl Future<Output = ()> {
        let _ = self.0.wait(Limit::Forever);
        ready(())
    }

    #[inline(always)]
    fn wake(&self, task: TaskId) -> impl Future<Output = ()> {
        let _ = self.0.wake(task);
        ready(())
    }

    #[inline(always)]
    fn yield_now(&self) -> impl Future<Output = ()> {
        self.0.yield_now();
        ready(())
    }

    #[inline(always)]
    fn preempt_point(&self) -> impl Future<Output = ()> {
        self.0.preempt_point();
        ready(())
    }

    #[inline(always)]
    fn set_priority(&self, task: TaskId, urgency: TaskUrgency) -> impl Future<Output = ()> {
        let _ = self.0.set_priority(task, priority(urgency));
        ready(())
    }

    #[inline(always)]
    fn send(&self, mail: Mailbox<Message>, message: Message) -> impl Future<Output = ()> {
        let _ = self.0.send(mail, MailUrgency::ALL[0], message);
        ready(())
    }

    #[inline(always)]
    fn receive(&self, own: Mailbox<Message>) -> impl Future<Output = Message> {
        ready(self.0.receive(own, None, Limit::Forever).unwrap_or_default())
    }

    #[inline(always)]
    fn give(&self, semaphore: SemaphoreId) -> impl Future<Output = ()> {
        let _ = self.0.signal_semaphore(semaphore);
        ready(())
    }

    #[inline(always)]
    fn take(&self, semaphore: SemaphoreId) -> impl Future<Output = ()> {
        let _ = self.0.wait_semaphore(semaphore, Limit::Forever);
        ready(())
    }

    #[inline(always)]
    fn lock(&self, lock: ResourceId) -> impl Future<Output = ()> {
        let _ = self.0.reserve_unguarded(lock, Limit::Forever);
        ready(())
    }

    #[inline(always)]
    fn unlock(&self, lock: ResourceId) -> impl Future<Output = ()> {
        let _ = self.0.release(lock);
        ready(())
    }

    #[inline(always)]
    fn delay_until(&self, at: Instant) -> impl Future<Output = ()> {
        let _ = self.0.delay_until(at);
        ready(())
    }

    #[inline(always)]
    fn start_timer(&self, timer: TimerId, at: Instant) -> impl Future<Output = ()> {
        let _ = self.0.start_timer(timer, at);
        ready(())
    }

    #[inline(always)]
    fn block(&self, blocks: &Pool<[u8; BLOCK_BYTES]>) -> impl Future<Output = ()> {
        drop(self.0.buffer(blocks));
        ready(())
    }

    #[inline(always)]
    fn stop(&self) -> impl Future<Output = ()> {
        self.0.stop();
        ready(())
    }
}

impl<K: BackendKind> InterruptCalls<Ours<K>> for OurInterruptCalls<'_> {
    #[inline(always)]
    fn wake(&self, task: TaskId) {
        let _ = self.0.wake(task);
    }

    #[inline(always)]
    fn give(&self, semaphore: SemaphoreId) {
        let _ = self.0.signal_semaphore(semaphore);
    }
}
