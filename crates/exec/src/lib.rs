//! The executive: priority-preemptive multitasking for a lab program, in the field's own terms, on an ordinary Linux.
//!
//! A program is written as tasks that wait for each other, for messages, for time and for interrupts. The same task
//! code runs on four back-ends, chosen when the executive is made:
//!
//! | back-end | switched by | cost of a switch | preemption by |
//! | --- | --- | --- | --- |
//! | [`Backend::Sim`] | this crate, in virtual time | nothing | anything, at every nanosecond of `work()` |
//! | [`Backend::Fiber`] | this crate, on one thread | nanoseconds | a call, or a `preempt_point()` |
//! | [`Backend::Thread`] with [`ThreadProfile::Up`] | Linux, by `SCHED_FIFO` on one CPU | microseconds | anything, at every instruction |
//! | [`Backend::Thread`] with [`ThreadProfile::Smp`] | Linux, on several CPUs | microseconds | anything, on each CPU |
//!
//! One pure state machine, [`hairspring_exec_core`], makes all decisions, so the rules below hold on all back-ends;
//! exceptions are named. The services are those of KADAK's AMX 86 under standard names.
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
//! 1. **Where a task can be preempted.** Sim: in every call and every `work()`. Fiber: at the end of each of its calls
//!    and at [`TaskCtx::preempt_point`]; a fiber that computes without calls keeps the CPU, and interrupts and timers
//!    wait. Everything that is due (an interrupt, a deadline, the limit of the run) is served before a call, or the end
//!    of a run, returns to a task. Procedures that make each other due for ever take turns with the tasks
//!    ([`Finish::floods`]). Threads: at any instruction.
//! 2. **A call that readies a more urgent task switches before it returns** (not with `ThreadProfile::Smp`, where the
//!    task runs on another CPU). Priority 0 is the most urgent, 63 the least. Equal priority never preempts: FIFO; a
//!    preempted task keeps its place at the head. With [`ExecConfig::slice`] the running task goes behind its equals at
//!    the end of each slice.
//! 3. **Interrupt procedures** run above all tasks and do not nest; the tasks they ready run when the procedure is
//!    done. Arrivals wait in a bounded ring. An arrival that finds it full is lost and counted in
//!    [`Finish::interrupts_lost`]. [`Finish::sources`] names each source that lost arrivals, could not be read, or
//!    ended. [`IspCtx`] has no call that can wait.
//! 4. **Counting and saturation.** Starts count up to [`MOST_STARTS`](hairspring_exec_core::MOST_STARTS); one more is
//!    `TriggerOverflow`. One wake is kept for a task that does not wait; a second wake returns `WakeAlreadyPending`.
//!    The kept wake and the signal bits of a task are cleared when its next run begins; `wake_reset` clears the kept
//!    wake earlier.
//! 5. **Messages** are copied into an envelope and out of it. A mailbox has four queues: urgency 0 before 3, FIFO
//!    within. `MailboxFull` (this queue) and `NoEnvelope` (the whole executive) are two errors. An envelope goes back
//!    to the pool when its message is taken. Taking a message acknowledges the one before; so does the end of the run.
//! 6. **Wait lists** are in order of priority, FIFO among equals. The priority is the one given for the wait
//!    (semaphores offer that), or else the task's own. A given priority stays; a task's own priority moves the waiter
//!    when it changes. Time-outs of other waiters change nothing.
//! 7. **Resources** are owned, nest, and pass directly to the first waiter; no other task can take them first. When a
//!    waiter leaves by time-out or kill, the owner's priority is computed anew. A task that ends as an owner hands its
//!    resources on, and this is reported ([`Misfortune::HeldResources`]). A wait that could never end is refused as
//!    `Deadlock`.
//! 8. **Effective priority** = the most urgent of the task's own, its threshold, the ceilings of its resources, and the
//!    effective priorities of the tasks that wait for its resources with inheritance. This holds transitively, at all
//!    times.
//! 9. **Timers** expire at `t0 + n·p`, never before, without drift. Missed periods are not made up for: the procedure
//!    runs once and gets their number ([`Expiry::missed`]). A period of zero is refused. A timer may delete itself in
//!    its own procedure. Procedures run in the kernel task, above all tasks. A [`DayTimer`] goes off at a time of day:
//!    never early by that clock, however it is set, and within a second if it is set forward past the time. Its
//!    procedure gets how far the clock was set ([`DayExpiry::stepped`]).
//! 10. **Time-out against signal.** The core processes one of them first, and that one decides. There is exactly one
//!     outcome: a task that gets `TimedOut` never gets a unit, message or resource as well.
//! 11. **Interrupt latency** of an executive in user space is two numbers that are never added. One is the longest time
//!     for which it locks its state ([`Finish::longest_lock`]). The other, for fibers, is the longest time between two
//!     looks at due work, which the tasks' own code determines ([`Finish::longest_unpolled`]).
//! 12. **Environment.** Threads want real-time priority (`CAP_SYS_NICE` or `RLIMIT_RTPRIO`). Without it everything
//!     works, but strict priority does not hold, and [`Finish::strict`] and [`Finish::refused`] report it. A watchdog
//!     above all tasks takes the priority of a task that computes too long without a call ([`ExecConfig::watchdog`]);
//!     Linux's own real-time throttling stays as it is. On fibers the watchdog and the sources' threads have real-time
//!     priority only if the carrier has. The carrier of fibers runs with a timer slack of 1 ns.
//!
//! # What tasks share
//!
//! | object | what waits | what it carries |
//! | --- | --- | --- |
//! | [`Mailbox`], [`Exchange`] | the receiver | `Copy` messages in envelopes of the executive, by urgency |
//! | [`MessageQueue`] | receiver and sender | messages of any `Send` type, moved |
//! | [`BytePipe`] | reader and writer | bytes |
//! | [`Broadcast`] | each subscriber | the newest `Copy` values; a slow subscriber gets the number that it missed |
//! | [`Mutex`], [`Condition`] | tasks that want the data | data of any `Send` type; the protocols are those of resources |
//! | [`Pool`] | no task | buffers that are all made in advance |
//! | [`Heap`] | a task that wants a block | blocks of memory of any size |
//! | [`CircularList`] | no task | `Copy` values, added and removed at both ends |
//! | [`Join`] | [`Join::wait`], or a future | the result of a task that [`Create::spawn`] started |
//!
//! [`Selector`] waits for the first of several. Queues, pipes and broadcasts let waiting tasks go in the order of their
//! priority, but do not hand over: a more urgent task that comes before the other runs takes the message, and the other
//! waits on. To keep other tasks off the CPU for a moment, take [`TaskCtx::lock_scheduler`] or a preemption
//! [`TaskCtx::threshold`]; to guard data at the same time, reserve a resource with [`ResourceProtocol::Ceiling`].
//! [`TaskCtx::cancel_wait`] breaks off another task's wait, whatever it waits for. [`Inspect`] answers questions about
//! tasks and objects.
//!
//! # Async code
//!
//! [`TaskCtx::block_on`] lets a task wait for any future, whoever completes it. A [`Join`] is a future, by which code
//! of any executor on any thread awaits a task.
//!
//! # Differences from AMX
//!
//! * With threads, suspending or killing *another* task takes effect at that task's next call. Stopping a thread
//!   anywhere would need a signal, and a thread stopped inside the C library can lock up the process. On fibers and Sim
//!   every other task is at a call, so the effect is immediate.
//! * A killed task's stack is unwound: its destructors run, at its own priority, when it runs next.
//! * A task that panics ends, is reported, and cannot be started again. The other tasks continue.
//! * Resources can inherit priority, which AMX does not know; `ResourceProtocol::None` behaves as AMX does.
//! * Every object can be deleted while others wait for it; they get `NoSuchObject`. A resource, mutex, pool or heap in
//!   use is not deleted (`InUse`). Interrupt procedures live as long as the executive.
//!
//! # Cost
//!
//! Nothing allocates after objects are made. On fibers a switch is inlined into the calling task. Calls from deep
//! inside a task's own functions cost some nanoseconds more, because every switch makes the processor mispredict their
//! returns. `hairspring sheet --only executive` measures the cost of each service on this machine.
//!
//! # Threads that this crate starts
//!
//! None by `Executive::new` on Sim. On fibers: one per attached descriptor, and the watchdog while it runs. With
//! threads: one per task, one for timers, one for the posts to each attached procedure and one for its descriptor, and
//! the watchdog.

mod back_end;
mod calls;
mod config;
mod engine;
pub mod errors;
mod executive;
mod fiber;
mod hooks;
mod host;
mod inspect;
mod interrupt;
mod message;
mod objects;
pub mod programs;
mod report;
mod roused;
pub mod status;
mod stopper;
mod system;
mod thread;
pub mod trace;
mod unwind;

pub use calls::{
    AtOnce, CallSite, Caller, Create, Expiry, IspCtx, LEAST_STACK_BYTES, Limit, Reserved, Services, TaskCtx,
    TaskOptions, Threshold, Tick, Ticker, TimerCtx, WakeOutcome,
};
pub use config::{ExecConfig, ExecError, ThreadProfile};
pub use executive::{Backend, Executive};
pub use hairspring_exec_core::{
    Bits, By, CHECKS, Call, CallStatus, Ending, EventsId, ExchangeId, HeapId, MOST_BLOCKS, Observer, Priority, Reply,
    ResourceId, ResourceProtocol, SemaphoreId, TaskId, TaskState, TimerId, Urgency, Waiting,
};
pub use hairspring_machine::{Cpu, CpuSet, Instant, Nanos, Policy, Refused, Sim};
pub use inspect::{Inspect, TaskInfo, TaskUsage};
pub use interrupt::{Arrival, InterruptLost, InterruptSource, Isp};
pub use objects::{
    Broadcast, Buffer, BytePipe, CircularList, Condition, DayExpiry, DayTimer, Exchange, HEAP_UNIT_BYTES, Heap,
    HeapBlock, HeapMemory, HeapOrder, HeapParcel, HeapUse, Heard, Join, Locked, MOST_HEAP_BYTES, Mailbox, MessageQueue,
    Mutex, Parcel, Pool, Selectable, Selector, Subscriber, Unsent,
};
pub use report::{Finish, MOST_MISHAPS, Misfortune, Mishap, RunLimit, SourceTrouble, StopReason};
pub use stopper::Stopper;
pub use system::given_stack::StackMemory;
pub use system::stack::StackUse;
