//! The port: the interface of an executive for the scenarios of the chapter *Executive*.
//!
//! A scenario is written once, against [`Port`] and [`Calls`], and measures every executive in the same way: this
//! project's own on each of its back-ends, bare threads, and others with an adapter.
//!
//! # Writing an adapter
//! An adapter has three types. One implements [`Port`]: it is made anew for each cell, receives tasks and objects, and
//! runs once. One implements [`Calls`]: a task's body gets a reference to it and makes its calls through it. One
//! implements [`InterruptTrigger`]: its holder can fire an interrupt from a thread that is not a task.
//!
//! *Blocking and asynchronous executives.* Every call that could wait returns a future, and bodies are async closures.
//! On an executive whose calls block, do the call and return [`std::future::ready`]`(())`: the future is ready at once,
//! and [`at_once`] drives a body without any code at run time. Mark those methods `#[inline(always)]`. On an
//! asynchronous one write `async fn` in the implementation, or return any future; a body's own future is `'static` when
//! the task owns both body and calls: `async move { let calls = …; loop { started().await; body(&calls).await } }`. It
//! need not be `Send`. No box is needed anywhere.
//!
//! *Runs.* A task is spawned idle. One run of its body is one start, by [`Port::start`] before the run or by
//! [`Calls::trigger`] in it, or for a mail task by one message. An executive whose tasks begin once and never end may
//! emulate that by a loop that waits, but must declare so in [`Port::remarks`]; or it declares itself unable, and the
//! cells are absent.
//!
//! *Being unable.* [`Port::unable`] is asked before a scenario that needs an [`Ability`]. Its result becomes the cell:
//! begin the reason with "n/a on …". Methods for missing abilities are never called; most have a default.
//!
//! *Honesty.* Each sample carries a proof: a word that the more urgent task writes and the less urgent one reads when
//! its call has returned. Samples without proof are dropped and counted, and below a threshold the cell is absent. An
//! executive that cannot preempt the caller of `wake` (a cooperative one) must return a reason for
//! [`Ability::PreemptsCaller`]; then its T1 and T3 end where the receiver stamps them, and the times of the return to
//! the caller are absent.

pub mod bare;
pub mod ours;

use std::future::{Future, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use hairspring_machine::{Cpu, Instant, Nanos};
use hairspring_sheet::Absent;

/// A message: 12 bytes, the default of AMX.
pub type Message = [u32; 3];

/// Bytes of a block in the memory test, as in Thread-Metric.
pub const BLOCK_BYTES: usize = 128;

/// Urgency of a task: 0 is the most urgent, 63 the least. Scenarios use 8 to 55.
pub type TaskUrgency = u8;

/// An ability that a scenario needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ability {
    /// `trigger` starts a task, and a task whose body returns can be started again.
    Trigger,
    /// `wait` and `wake`, with a latch of one.
    Wake,
    /// A call that readies a more urgent task does not return before that task has run.
    PreemptsCaller,
    /// `yield_now` lets tasks of the same urgency run.
    Yield,
    /// `set_priority`.
    Priority,
    /// Tasks that are started by messages; `send` and `receive`.
    Mail,
    /// Counting semaphores.
    Semaphore,
    /// Locks with priority inheritance.
    InheritingLock,
    /// `delay_until`.
    Delay,
    /// Timers with procedures.
    Timer,
    /// A periodic check of the time at the tasks' expense: the tick.
    Tick,
    /// Interrupt procedures that make no calls.
    RawInterrupt,
    /// Interrupt procedures that wake tasks and signal semaphores.
    Interrupt,
    /// Pools of blocks of [`BLOCK_BYTES`].
    Blocks,
    /// The executive measures how long it locks others out.
    LockTime,
    /// The executive measures how long it does not poll for interrupts.
    PollTime,
}

/// The CPUs for an executive.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// The CPU of the tasks, if one is enough.
    pub cpu: Cpu,
    /// Another CPU, for loads and for sources of interrupts.
    pub other: Option<Cpu>,
    /// Whether to measure [`Ability::LockTime`] and [`Ability::PollTime`], which costs time in each call.
    pub measure_latency: bool,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOutcome {
    /// Why all figures of the run are void: a missing permission, a panic of a task.
    pub void: Option<Absent>,
    /// Notes for readers of its figures.
    pub caveat: Option<String>,
    /// Longest time others were locked out, if measured.
    pub longest_lock: Option<Nanos>,
    /// Longest time between two polls for interrupts, if measured.
    pub longest_unpolled: Option<Nanos>,
}

/// An executive, made for one run.
pub trait Port: Sized + 'static {
    /// Names a task.
    type Task: Copy + Send + Sync + 'static;
    /// Names a task that is started by messages, and its mailbox.
    type Mail: Copy + Send + Sync + 'static;
    /// Names a semaphore.
    type Semaphore: Copy + Send + Sync + 'static;
    /// Names a lock.
    type Lock: Copy + Send + Sync + 'static;
    /// Names a timer.
    type Timer: Copy + Send + Sync + 'static;
    /// Names a pool of blocks.
    type Blocks: Clone + Send + Sync + 'static;
    /// Fires an interrupt.
    type Interrupt: InterruptTrigger;
    /// The interface for calls of a task's body.
    type Calls<'k>: Calls<Self>;
    /// The interface for calls of an interrupt procedure.
    type InterruptCalls<'k>: InterruptCalls<Self>;

    /// Whether a call may take less than ten steps of the counter. Then times are taken by chains of tasks and by
    /// loops.
    const BELOW_STAMPS: bool = false;

    /// Makes an empty executive.
    ///
    /// # Errors
    /// Why it cannot run here; the reason for all its cells.
    fn make(place: Placement) -> Result<Self, Absent>;

    /// Why it lacks an ability; `None` if it has the ability.
    fn unable(ability: Ability) -> Option<Absent>;

    /// Remarks for readers of its figures: emulated services, and the meaning of its terms.
    fn remarks() -> Vec<String> {
        Vec::new()
    }

    /// Makes a task, idle.
    ///
    /// # Errors
    /// It could not be made.
    fn spawn<B>(&mut self, name: &str, urgency: TaskUrgency, body: B) -> Result<Self::Task, Absent>
    where
        B: for<'c, 'k> AsyncFnMut(&'c Self::Calls<'k>) + Send + 'static;

    /// Makes a task that each message starts, with room for 8 messages. The body gets its own name and the message.
    ///
    /// # Errors
    /// It could not be made.
    fn spawn_mail<B>(&mut self, name: &str, urgency: TaskUrgency, body: B) -> Result<Self::Mail, Absent>
    where
        B: for<'c, 'k> AsyncFnMut(&'c Self::Calls<'k>, Self::Mail, Message) + Send + 'static;

    /// Makes a task run as soon as the run begins.
    ///
    /// # Errors
    /// It could not be started.
    fn start(&mut self, task: Self::Task) -> Result<(), Absent>;

    /// Makes a semaphore.
    ///
    /// # Errors
    /// It could not be made.
    fn semaphore(&mut self, count: u32) -> Result<Self::Semaphore, Absent>;

    /// Makes a lock with inheritance.
    ///
    /// # Errors
    /// It could not be made.
    fn lock(&mut self) -> Result<Self::Lock, Absent> {
        Err(not_compared())
    }

    /// Makes a pool of this many blocks.
    ///
    /// # Errors
    /// It could not be made.
    fn blocks(&mut self, _count: u16) -> Result<Self::Blocks, Absent> {
        Err(not_compared())
    }

    /// Makes a timer that expires once after each start.
    ///
    /// # Errors
    /// It could not be made.
    fn timer(&mut self, _procedure: impl FnMut() + Send + 'static) -> Result<Self::Timer, Absent> {
        Err(not_compared())
    }

    /// Attaches an interrupt procedure that makes no calls.
    ///
    /// # Errors
    /// It could not be attached.
    fn attach_raw(&mut self, _procedure: impl FnMut() + Send + 'static) -> Result<Self::Interrupt, Absent> {
        Err(not_compared())
    }

    /// Attaches an interrupt procedure that makes calls.
    ///
    /// # Errors
    /// It could not be attached.
    fn attach<R>(&mut self, _procedure: R) -> Result<Self::Interrupt, Absent>
    where
        R: for<'c, 'k> FnMut(&'c Self::InterruptCalls<'k>) + Send + 'static,
    {
        Err(not_compared())
    }

    /// Runs until a task calls [`Calls::stop`], at most this long. Tasks that have not ended by then are ended in any
    /// way.
    fn run(&mut self, most: Nanos) -> RunOutcome;
}

/// The absence for a comparison that an executive is left out of; the default of the services that few ports have.
pub fn not_compared() -> Absent {
    Absent::final_("n/a: not part of this comparison")
}

/// The calls of a task. They act on, or for, the task whose body received this object.
pub trait Calls<P: Port> {
    /// Starts an idle task.
    fn trigger(&self, task: P::Task) -> impl Future<Output = ()>;

    /// Waits for a wake, or takes an earlier one.
    fn wait(&self) -> impl Future<Output = ()>;

    /// Wakes a task, or stores one wake for it.
    fn wake(&self, task: P::Task) -> impl Future<Output = ()>;

    /// Lets others of the same urgency run.
    fn yield_now(&self) -> impl Future<Output = ()>;

    /// Lets more urgent tasks run and serves interrupts and timers, where that needs a call. Scenarios that wait by
    /// polling call it in each round.
    #[inline(always)]
    fn preempt_point(&self) -> impl Future<Output = ()> {
        ready(())
    }

    /// Sets a task's urgency.
    #[inline(always)]
    fn set_priority(&self, task: P::Task, urgency: TaskUrgency) -> impl Future<Output = ()> {
        let _ = (task, urgency);
        ready(())
    }

    /// Sends a message, which starts its task if that is idle.
    fn send(&self, mail: P::Mail, message: Message) -> impl Future<Output = ()>;

    /// Waits for a message in the task's own mailbox.
    fn receive(&self, own: P::Mail) -> impl Future<Output = Message>;

    /// Gives a semaphore one unit.
    fn give(&self, semaphore: P::Semaphore) -> impl Future<Output = ()>;

    /// Takes one unit of a semaphore.
    fn take(&self, semaphore: P::Semaphore) -> impl Future<Output = ()>;

    /// Locks.
    fn lock(&self, lock: P::Lock) -> impl Future<Output = ()>;

    /// Unlocks.
    fn unlock(&self, lock: P::Lock) -> impl Future<Output = ()>;

    /// Waits until this reading of `CLOCK_MONOTONIC`.
    fn delay_until(&self, at: Instant) -> impl Future<Output = ()>;

    /// Starts a timer, which expires at this reading of `CLOCK_MONOTONIC`.
    #[inline(always)]
    fn start_timer(&self, timer: P::Timer, at: Instant) -> impl Future<Output = ()> {
        let _ = (timer, at);
        ready(())
    }

    /// Takes a block of a pool and gives it back.
    #[inline(always)]
    fn block(&self, blocks: &P::Blocks) -> impl Future<Output = ()> {
        let _ = blocks;
        ready(())
    }

    /// Ends the run. May return; then the body only returns.
    fn stop(&self) -> impl Future<Output = ()>;
}

/// The calls of an interrupt procedure.
pub trait InterruptCalls<P: Port> {
    /// Wakes a task.
    fn wake(&self, task: P::Task);

    /// Gives a semaphore one unit.
    fn give(&self, semaphore: P::Semaphore);
}

/// The source of an interrupt, fired from a thread that is not a task: a real asynchronous event, never a call of the
/// procedure.
pub trait InterruptTrigger: Clone + Send + 'static {
    /// Fires. Does not wait for the procedure.
    fn fire(&self);
}

/// Runs a body whose calls block: its future is ready when it is polled first.
///
/// # Panics
/// The future was not ready: the adapter is asynchronous and must drive bodies by its executor.
#[inline(always)]
pub fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("a call of a blocking executive returned a future that was not ready"),
    }
}
