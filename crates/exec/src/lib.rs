//! The executive: priority-preemptive multitasking for a lab program, in the field's own terms, on an ordinary Linux.
//!
//! A program is written as tasks that wait for each other, for messages, for time and for interrupts. The same task code runs
//! on four back-ends, chosen when the executive is made:
//!
//! | back-end | who switches | what a switch costs | what preempts |
//! | --- | --- | --- | --- |
//! | [`Backend::Sim`] | this crate, in virtual time | nothing | anything, at every nanosecond of `work()` |
//! | [`Backend::Fiber`] | this crate, on one thread | nanoseconds | a call, or a `preempt_point()` |
//! | [`Backend::Thread`] with [`ThreadProfile::Up`] | Linux, by `SCHED_FIFO` on one CPU | microseconds | anything, at every instruction |
//! | [`Backend::Thread`] with [`ThreadProfile::Smp`] | Linux, on several CPUs | microseconds | anything, on each CPU |
//!
//! All decisions are made by one pure state machine, [`hairspring_exec_core`], so what is written below holds on all of
//! them; where a back-end cannot do the same it is said. The service set is that of KADAK's AMX 86 under standard names.
//!
//! ```
//! use hairspring_exec::{Backend, ExecConfig, Create, Executive, Priority, RunLimit, Services, StopReason, Urgency};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default())?;
//! let [urgent, slow] = [10, 20].map(|number| Priority::new(number).expect("0 to 63"));
//! let logger = executive.mail_task("logger", slow, [4, 0, 0, 0], |_, _, sample: u64| assert_eq!(sample, 42))?;
//! let sampler = executive.task("sampler", urgent, move |ctx| {
//!     ctx.send(logger, Urgency::ALL[0], 42).expect("there is room for four");
//! })?;
//! executive.trigger(sampler)?;
//! let finish = executive.run(RunLimit::Forever);
//! assert!(finish.clean() && finish.stopped == StopReason::Finished);
//! # Ok(())
//! # }
//! ```
//!
//! # Semantics
//!
//! 1. **Where a task can be preempted.** Sim: in every call and every `work()`. Fiber: at the end of each of its calls and at
//!    [`TaskCtx::preempt_point`]; a fiber that computes without calls keeps the CPU, and interrupts and timers wait. Whatever
//!    is due (an interrupt, a deadline, the limit of the run) is served before any call, or the end of a run, returns to a task.
//!    Procedures that make each other due for ever are served in turns ([`Finish::floods`]). Threads: at any instruction.
//! 2. **A call that readies a more urgent task switches before it returns** (not with `ThreadProfile::Smp`, where the task runs
//!    on another CPU). Priority 0 is the most urgent, 63 the least. Equal priority never preempts: FIFO; a preempted task
//!    keeps its place at the head.
//! 3. **Interrupt procedures** run above all tasks and do not nest; the tasks they ready run when the procedure is done.
//!    Arrivals on their way lie in a ring of bounded size; one that finds it full is lost, and counted in
//!    [`Finish::interrupts_lost`]. A source that loses arrivals, cannot be read or ends is told in [`Finish::sources`].
//!    [`IspCtx`] has no call that can wait.
//! 4. **What counts and what saturates.** Starts count up to [`MOST_STARTS`](hairspring_exec_core::MOST_STARTS); one more is
//!    `TriggerOverflow`. A wake for a task that does not wait is kept, one deep: the second is told `WakeAlreadyPending`.
//!    The latch and the signal bits of a task are forgotten when its next run begins; `wake_reset` forgets the latch before.
//! 5. **Messages** are copied into an envelope and out of it. A mailbox has four queues: urgency 0 before 3, FIFO within.
//!    `MailboxFull` (this queue) and `NoEnvelope` (the whole executive) are told apart. An envelope goes back to the pool when
//!    its message is taken. Taking a message acknowledges the one before; so does the end of the run.
//! 6. **Wait lists** are in order of priority, FIFO among equals: the priority given for the wait (semaphores offer that), or
//!    else the task's own.
//!    A place given for the wait stays; a place by the task's own priority moves with it. Others' time-outs change nothing.
//! 7. **Resources** are owned, nest, and are handed straight to the first waiter: nobody barges in. When a waiter leaves by
//!    time-out or kill the owner's priority is computed anew. A task that ends as an owner hands its resources on, and this
//!    is reported ([`Misfortune::HeldResources`]). A wait that could never end is refused as `Deadlock`.
//! 8. **Effective priority** = the most urgent of the task's own, the ceilings of what it owns, and the effective priorities
//!    of those who wait for what it owns with inheritance; transitively, at all times.
//! 9. **Timers** go off at `t0 + n·p`, never before, without drift. Periods that passed unserved are not made up for: the
//!    procedure runs once and is told how many it stands for ([`Expiry::missed`]). A period of zero is refused. A timer may
//!    delete itself in its own procedure. Procedures run in the kernel task, above all tasks.
//! 10. **Time-out against signal.** Whichever the core processes first decides; there is exactly one outcome, and a unit,
//!     message or resource is never given to a task that is told `TimedOut`.
//! 11. **Interrupt latency** of an executive in user space is two numbers that are never added: the longest time it keeps
//!     others out of its state ([`Finish::longest_lock`]), and, for fibers, the longest time between two looks at what
//!     is due, which is the tasks' own code ([`Finish::longest_unpolled`]).
//! 12. **Environment.** Threads want real-time priority (`CAP_SYS_NICE` or `RLIMIT_RTPRIO`). Without it everything works, but
//!     strict priority does not hold, and [`Finish::strict`] and [`Finish::refused`] say so. A watchdog above all tasks takes
//!     the priority of a task that computes too long without a call ([`ExecConfig::watchdog`]); Linux's own real-time throttling
//!     is left as it is. On fibers the watchdog and the sources' threads have real-time priority only where the carrier has. The carrier of fibers has its timer slack set to 1 ns while it runs.
//!
//! # Where this departs from AMX
//!
//! * Suspending or killing *another* task takes effect, with threads, at that task's next call: freezing a thread anywhere
//!   would take a signal, and a signal that stops a thread inside the C library can lock up the process. Fibers and Sim are
//!   always at a call when somebody else runs, so there it is immediate.
//! * A killed task's stack is unwound: its destructors run, at its own priority, when it runs next.
//! * A task that panics ends, is reported, and cannot be started again; the rest goes on.
//! * Resources can inherit priority, which AMX does not know; `ResourceProtocol::None` behaves as AMX does.
//! * Only tasks and timers can be deleted. Other objects live as long as the executive.
//!
//! # Cost
//!
//! Nothing allocates after objects are made. On fibers a switch is compiled into the task that calls; calls made from
//! deep inside a task's own functions cost some nanoseconds more, because the processor's prediction of where functions
//! return to is upset by every switch. `hairspring sheet --only executive` says what each service costs on this machine.
//!
//! # Threads that this crate starts
//!
//! None by `Executive::new` on Sim. On fibers: one per attached descriptor, and the watchdog while it runs. With threads:
//! one per task, one for timers, one for the posts to each attached procedure and one for its descriptor, and the watchdog.

mod calls;
mod config;
mod engine;
pub mod errors;
mod executive;
mod fiber;
mod hooks;
mod host;
mod interrupt;
mod kernel;
mod message;
mod objects;
pub mod programs;
mod report;
mod system;
mod thread;
pub mod trace;
mod unwind;

pub use calls::{CallSite, Caller, Create, Expiry, IspCtx, Limit, Reserved, Services, TaskCtx, TimerCtx, WakeOutcome};
pub use config::{ExecConfig, ExecError, ThreadProfile};
pub use executive::{Backend, Executive};
pub use hairspring_exec_core::{
    Bits, By, CHECKS, Call, CallStatus, Ending, EventsId, Observer, Priority, Reply, ResourceId, ResourceProtocol,
    SemaphoreId, TaskId, TimerId, Urgency, Waiting,
};
pub use hairspring_machine::{Cpu, CpuSet, Instant, Nanos, Policy, Refused, Sim};
pub use interrupt::{Arrival, InterruptLost, InterruptSource, Isp};
pub use objects::{Buffer, Exchange, Mailbox, Parcel, Pool};
pub use report::{Finish, MOST_MISHAPS, Misfortune, Mishap, RunLimit, SourceTrouble, StopReason};
