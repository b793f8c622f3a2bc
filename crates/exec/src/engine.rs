//! [`Engine`]: the interface of a back-end, and the procedures that it runs.
//!
//! A back-end owns a [`Core`](hairspring_exec_core::Core) and the threads or fibers of the tasks. Contexts translate
//! services into [`Call`]s. The back-end lets the core decide and makes sure that the right task runs when the call
//! returns. It does not know contexts: a procedure gets the back-end and makes its own context.

use std::sync::Arc;

use hairspring_exec_core::{
    By, Call, CallStatus, Ending, Expired, Moment, Observer, Priority, Reply, SemaphoreId, TaskId, TimerId,
};
use hairspring_machine::Nanos;

use crate::calls::Rouse;
use crate::inspect::{CoreView, TaskUsage};
use crate::interrupt::{Arrival, InterruptSource, Isp};
use crate::message::Bytes;
use crate::objects::guarded::{Calls, ExclusiveStep};
use crate::report::{Finish, RunLimit};
use crate::status::Sampled;
use crate::stopper::Halt;
use crate::system::given_stack::StackMemory;
use crate::system::stack::StackUse;
use crate::trace::Trace;

/// How a run of a task ended: usually its procedure returned. In one word, because a fiber keeps it across its end.
pub(crate) type Ended = Result<(), Box<Unusual>>;

/// The stack of a task.
pub(crate) enum TaskStack {
    /// Of the executive's usual size.
    Usual,
    /// Of this size.
    Bytes(usize),
    /// In memory of the program.
    Memory(StackMemory),
}

/// Another end of a run, and the message if it panicked.
pub(crate) struct Unusual {
    pub(crate) how: Ending,
    pub(crate) text: Option<String>,
}

impl Unusual {
    /// A run that was killed before it began.
    #[cold]
    #[inline(never)]
    pub(crate) fn killed() -> Box<Self> {
        Box::new(Self { how: Ending::Killed, text: None })
    }
}

/// How, and the message if it panicked.
pub(crate) fn in_full(ended: Ended) -> (Ending, Option<String>) {
    ended.map_or_else(|unusual| (unusual.how, unusual.text), |()| (Ending::Returned, None))
}

/// Whether the call gives the caller a buffer or a block, for which nothing but the caller is responsible from then on.
#[inline(always)]
pub(crate) fn gives_memory(call: &Call) -> bool {
    matches!(call, Call::GetBuffer { .. } | Call::GetBlock { .. } | Call::TakeBlock)
}

/// The code of a task for one run, from its start to its end.
pub(crate) type TaskProcedure = Box<dyn FnMut(&dyn Engine, TaskId) -> Ended + Send>;

/// The code of a timer for each expiry. Runs in the kernel task, above all tasks.
pub(crate) type TimerProcedure<E> = Box<dyn FnMut(&E, TimerId, Expired) + Send>;

/// The code of a conforming interrupt. It gets the number of its interrupt and the arrival.
pub(crate) type ConformingProcedure<E> = Box<dyn FnMut(&E, u16, Arrival) + Send>;

/// The code that runs when a source fires.
pub(crate) enum InterruptProcedure<E: ?Sized> {
    /// Makes no executive calls, and runs on the source's own thread at any time.
    Raw(Box<dyn FnMut(Arrival) + Send>),
    /// May make the calls of [`IspCtx`](crate::IspCtx): runs above all tasks.
    Conforming(ConformingProcedure<E>),
}

/// One back-end.
pub(crate) trait Engine {
    /// The number of the executive, which typed handles are compared with.
    fn home(&self) -> u32;
    /// Whether messages of this size and alignment fit into an envelope.
    fn fits(&self, bytes: usize, alignment: usize) -> bool;
    /// Makes a call for `by`. For a task it returns when the task runs again: a blocked call has its outcome then. If
    /// the task has been killed meanwhile this does not return but unwinds
    /// ([`unwind_killed`](crate::unwind::unwind_killed)).
    fn call(&self, by: By, call: Call) -> Reply;
    /// The same for `Send`, `SendWait` and `Post`; copies the message into the envelope before any task can read it.
    fn send(&self, by: By, call: Call, message: Bytes<'_>) -> Reply;
    /// Lets `decide` change state that the executive guards, and makes the calls that it returns in the same step, with
    /// no other call between. Returns the reply to the last. A signal of a semaphore that no task waits for is not
    /// made.
    fn step(&self, by: By, decide: &mut dyn FnMut(&mut ExclusiveStep) -> Option<Calls>) -> Option<Reply>;
    /// Lets `see` look at the core.
    fn inspect(&self, see: &mut dyn FnMut(&dyn CoreView));
    /// The name of a task that is not deleted.
    fn task_name(&self, task: TaskId) -> String;
    /// Whether the stack of this task unwinds.
    fn is_unwinding(&self, me: TaskId) -> bool;
    /// Ends a run from any thread.
    fn halt(&self) -> Arc<dyn Halt>;
    /// The part that it shares with wakers of futures.
    fn rouser(&self) -> Arc<dyn Rouse>;
    /// The semaphore for which a task waits while it waits for a future. Made when it is asked for first.
    fn future_line(&self, me: TaskId) -> Result<SemaphoreId, CallStatus>;
    /// A task begins or ends to wait for a future.
    fn expect_rouse(&self, begins: bool);
    /// The name of the back-end.
    fn name(&self) -> &'static str;
    /// The part that other processes may see; none in virtual time.
    fn sampled(&self) -> Option<Arc<dyn Sampled>>;
    /// CPU time and switches of a task; none where they are not measured.
    fn usage(&self, task: TaskId) -> Option<TaskUsage>;
    /// How much a task has used of its stack; none before its first run, and where stacks are not known.
    fn stack_use(&self, task: TaskId) -> Option<StackUse>;
    /// Copies the message that `me` was handed in this envelope out to `to`, and makes the call [`Call::Take`].
    ///
    /// # Safety
    /// `to` is valid for as many bytes as the message has that was copied in: the type of the mailbox or exchange.
    #[expect(unsafe_code, reason = "messages of any Copy type are moved as bytes")]
    unsafe fn take(&self, me: TaskId, envelope: u32, to: *mut u8, bytes: usize);
    /// The envelope that this run of the task was started with, or [`NO_ENVELOPE`](hairspring_exec_core::NO_ENVELOPE).
    fn started_with(&self, me: TaskId) -> u32;
    /// The executive's time: `CLOCK_MONOTONIC`.
    fn now(&self) -> Moment;
    /// The time of day in nanoseconds since 1970: `CLOCK_REALTIME`.
    fn time_of_day(&self) -> Nanos;
    /// Uses up this much of the CPU for the task, as if it were computing.
    fn work(&self, me: TaskId, span: Nanos);
    /// From now on the run of this task has floating-point control words of its own. On threads it always has.
    fn keep_control_words(&self, me: TaskId) {
        let _ = me;
    }
    /// Lets more urgent tasks run now, if the back-end does not do that automatically.
    fn preempt_point(&self, me: TaskId);
    /// Makes a task, on this stack.
    fn create_task(
        &self,
        by: By,
        name: &str,
        priority: Priority,
        mailboxes: [u16; 4],
        stack: TaskStack,
        procedure: TaskProcedure,
    ) -> Result<TaskId, CallStatus>;
    /// Removes a task and what it captured.
    fn delete_task(&self, by: By, task: TaskId) -> Reply;
    /// Makes a timer.
    fn create_timer(&self, by: By, name: &str, procedure: TimerProcedure<dyn Engine>) -> Result<TimerId, CallStatus>;
    /// Tasks of equal priority get slices of this length; the procedure of the timer calls
    /// [`end_slice`](Self::end_slice).
    fn set_slice(&self, timer: TimerId, slice_ns: u64);
    /// Ends the slice of the running task and begins the next.
    fn end_slice(&self);
    /// Removes a timer and what it captured; may be called by its own procedure.
    fn delete_timer(&self, by: By, timer: TimerId) -> Reply;
    /// Attaches an interrupt service procedure; before or between runs only.
    fn attach(
        &self,
        name: &str,
        source: &InterruptSource,
        procedure: InterruptProcedure<dyn Engine>,
    ) -> Result<Isp, std::io::Error>;
    /// In virtual time, sets an interrupt off at a moment to come. False where time is real.
    fn interrupt_at(&self, isp: u16, at: Moment) -> bool {
        let _ = (isp, at);
        false
    }
    /// Reports every decision to the program's hooks.
    fn set_hooks(&self, hooks: Box<dyn Observer + Send>);
    /// The trace until now, if there is one.
    fn trace(&self) -> Option<Trace>;
    /// Runs until the limit, a stop, or until nothing can happen any more.
    fn run(&self, limit: RunLimit) -> Finish;
    /// Ends the run; the calling task's run ends with it.
    fn stop(&self, by: By);
    /// From now on a kill unwinds no run of the task. Its calls that wait are refused instead.
    fn refuse_when_killed(&self, me: TaskId);
    /// Announces that the task will unwind voluntarily. False if it unwinds already: then it must not begin again.
    fn begin_unwinding(&self, me: TaskId) -> bool;
}
