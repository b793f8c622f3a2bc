//! [`Engine`]: what a back-end gives, and [`Kernel`], the back-end at hand.
//!
//! A back-end owns a [`Core`](hairspring_exec_core::Core) and whatever runs tasks. Contexts translate services into
//! [`Call`]s and hand them to it; it lets the core decide and sees to it that the right task runs when the call returns.

use hairspring_exec_core::{By, Call, Expiry, Moment, Priority, Reply, Status, TaskId, TimerId};
use hairspring_machine::{Host, Nanos, Sim};

use crate::context::{IspCtx, TimerCtx};
use crate::fiber::Fibers;
use crate::interrupt::{Arrival, Isp, Source};
use crate::life::Body;
use crate::message::Bytes;
use crate::report::{Finish, RunLimit};
use crate::thread::Threads;

/// What a task does, from its start to the end of one run.
pub(crate) type TaskBody = Box<dyn Body>;

/// What a timer does each time it goes off. Runs in the kernel task, above all tasks.
pub(crate) type TimerBody = Box<dyn FnMut(&TimerCtx<'_>, Expiry) + Send>;

/// A procedure that makes executive calls.
pub(crate) type ConformingBody = Box<dyn FnMut(&IspCtx<'_>, Arrival) + Send>;
/// A procedure that makes none.
pub(crate) type RawBody = Box<dyn FnMut(Arrival) + Send>;

/// What is done when a source fires.
pub(crate) enum IspBody {
    /// Makes no executive calls: runs on the source's own thread, whatever the executive is doing.
    Raw(RawBody),
    /// May make the calls of [`IspCtx`]: runs above all tasks.
    Conforming(ConformingBody),
}

/// One back-end.
pub(crate) trait Engine {
    /// Makes a call for `by`. For a task it returns when the task runs again: a blocked call has its outcome then. If the
    /// task has been killed meanwhile this does not return but unwinds ([`unwind_killed`](crate::ending::unwind_killed)).
    fn call(&self, by: By, call: Call) -> Reply;
    /// The same for `Send`, `SendWait` and `Post`; copies the message into the envelope before anybody can read it.
    fn send(&self, by: By, call: Call, message: Bytes<'_>) -> Reply;
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
    /// Uses up this much of the CPU for the task, as if it were computing.
    fn work(&self, me: TaskId, span: Nanos);
    /// Lets whoever is more urgent run now, where the back-end does not see to that by itself.
    fn preempt_point(&self, me: TaskId);
    /// Makes a task.
    fn create_task(
        &self,
        by: By,
        name: &str,
        priority: Priority,
        mailboxes: [u16; 4],
        body: TaskBody,
    ) -> Result<TaskId, Status>;
    /// Removes a task and what it captured.
    fn delete_task(&self, by: By, task: TaskId) -> Reply;
    /// Makes a timer.
    fn create_timer(&self, by: By, name: &str, body: TimerBody) -> Result<TimerId, Status>;
    /// Removes a timer and what it captured; may be called by its own procedure.
    fn delete_timer(&self, by: By, timer: TimerId) -> Reply;
    /// Attaches an interrupt service procedure; before or between runs only.
    fn attach(&self, name: &str, source: Source, body: IspBody) -> Result<Isp, std::io::Error>;
    /// Runs until the limit, a stop, or until nothing can happen any more.
    fn run(&self, limit: RunLimit) -> Finish;
    /// Ends the run; the calling task's run ends with it.
    fn stop(&self, by: By);
    /// The task is about to unwind by its own wish. False if it already does: then it must not begin another time.
    fn begin_unwinding(&self, me: TaskId) -> bool {
        let _ = me;
        !std::thread::panicking()
    }
}

/// The back-end at hand. Small and copied: contexts hold it.
#[derive(Clone, Copy)]
pub(crate) enum Kernel<'k> {
    Fiber(&'k Fibers<Host>),
    Sim(&'k Fibers<Sim>),
    Thread(&'k Threads),
}

impl<'k> Kernel<'k> {
    /// Makes a call. The fiber back-end is compiled into the caller, for it costs less than the call itself.
    #[inline(always)]
    pub(crate) fn call(self, by: By, call: Call) -> Reply {
        match self {
            Self::Fiber(fibers) => fibers.call_inline(by, call),
            other => other.cold().call(by, call),
        }
    }

    #[inline(always)]
    pub(crate) fn send(self, by: By, call: Call, message: Bytes<'_>) -> Reply {
        match self {
            Self::Fiber(fibers) => fibers.send_inline(by, call, message),
            other => other.cold().send(by, call, message),
        }
    }

    /// The number of the executive, which typed handles are compared with.
    #[inline(always)]
    pub(crate) fn home(self) -> u32 {
        match self {
            Self::Fiber(fibers) => fibers.home(),
            Self::Sim(fibers) => fibers.home(),
            Self::Thread(threads) => threads.home(),
        }
    }

    /// The back-end for calls whose cost does not matter.
    #[inline(never)]
    pub(crate) fn cold(self) -> &'k dyn Engine {
        match self {
            Self::Fiber(fibers) => fibers,
            Self::Sim(fibers) => fibers,
            Self::Thread(threads) => threads,
        }
    }
}
