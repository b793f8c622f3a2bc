//! The calls of the core, and its replies.
//!
//! A [`Call`] is plain data: a run of the executive is the sequence of its calls, which a trace records and
//! [`Core::apply`](crate::Core::apply) plays again.

use core::fmt;

use crate::id::{
    EventsId, ExchangeId, HeapId, Moment, PoolId, Priority, ResourceId, SemaphoreId, TaskId, TimerId, Urgency,
};

/// The caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// A task. Only tasks may make calls that can wait.
    Task(TaskId),
    /// An interrupt service procedure.
    Interrupt(u16),
    /// The kernel task: ticks and timer procedures.
    Kernel,
    /// The program around the executive, before and after a run.
    Outside,
}

/// How long a call may wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Until {
    /// Not at all: the call times out at once if it cannot succeed now.
    NoWait,
    /// Without a limit.
    Forever,
    /// Until this moment. A moment in the past ends the wait at the next tick.
    At(Moment),
}

/// The bits a task waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bits {
    /// One of these is enough.
    Any(u32),
    /// All of these are needed.
    All(u32),
}

impl Bits {
    /// The bits of `set` that satisfy the wish, if they do.
    #[inline]
    pub fn satisfied_by(self, set: u32) -> Option<u32> {
        match self {
            Self::Any(mask) => (set & mask != 0).then_some(set & mask),
            Self::All(mask) => (set & mask == mask).then_some(mask),
        }
    }

    pub(crate) fn mask(self) -> u32 {
        match self {
            Self::Any(mask) | Self::All(mask) => mask,
        }
    }
}

/// How a resource guards against priority inversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResourceProtocol {
    /// Not at all, as in AMX.
    None,
    /// The owner runs at the priority of its most urgent waiter, transitively.
    Inherit,
    /// The owner runs at this priority from the moment it reserves (immediate ceiling).
    Ceiling(Priority),
}

/// How a task's run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Its procedure returned, or it called end.
    Returned,
    /// It was killed; its stack has been unwound.
    Killed,
    /// It panicked; its stack has been unwound, and it cannot be started again.
    Panicked,
}

/// One request to the core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "each field is named by its type and the text of its variant")]
pub enum Call {
    /// Makes a task, idle, with mailboxes of these capacities (0: no mailbox of that urgency). Value: its id.
    CreateTask { priority: Priority, mailboxes: [u16; 4] },
    /// Makes a semaphore with a count and the largest count it may reach. Value: its id.
    CreateSemaphore { count: u32, limit: u32 },
    /// Makes a resource, free. Value: its id.
    CreateResource { protocol: ResourceProtocol },
    /// Makes an event group with these bits set. Value: its id.
    CreateEvents { bits: u32 },
    /// Makes a message exchange whose four queues have these capacities. Value: its id.
    CreateExchange { capacities: [u16; 4] },
    /// Makes a pool of this many buffers. Value: its id.
    CreatePool { buffers: u16 },
    /// Makes a heap: a memory of `units` units, with at most `blocks` blocks in use at a time. Value: its id.
    CreateHeap { units: u32, blocks: u16 },
    /// Makes a timer, stopped. Value: its id.
    CreateTimer,
    /// Starts an idle task; counts one more start for one that is not idle.
    Trigger { task: TaskId },
    /// The calling task's run is over.
    End { how: Ending },
    /// Suspends a task until it is resumed or its run ends. A wait of the task continues.
    Suspend { task: TaskId },
    /// Resumes a suspended task.
    Resume { task: TaskId },
    /// Sets a task's own priority. A task that thereby changes the one it runs at goes to the end of its new equals, in
    /// the ready list and in a line it stands in by its own priority.
    SetPriority { task: TaskId, priority: Priority },
    /// Ends a task from outside: its wait is broken off, it is resumed, and when it has unwound its pending starts and
    /// mail are discarded, those that came meanwhile too. An idle task is left alone.
    Kill { task: TaskId },
    /// Removes a task that is idle or dead; its id is refused from then on.
    DeleteTask { task: TaskId },
    /// Breaks off the wait of a task, whatever it waits for. Value: 1 if it waited.
    Cancel { task: TaskId },
    /// Waits until the present run of another task is over. Value: how it ended, as the number of its [`Ending`]; 0 if
    /// the task was idle.
    Join { task: TaskId, until: Until },
    /// Yields to the other ready tasks of the same priority.
    Yield,
    /// Lets only tasks that are more urgent than this preempt the calling task, until it is set to the least urgent
    /// priority or its run ends. The task runs, and is ready, at this priority, if that is more urgent than its own.
    /// Value: the number of the threshold before.
    SetThreshold { priority: Priority },
    /// The time slice of the running task is over: it goes behind the ready tasks of its priority. A task that runs
    /// above its own priority keeps the CPU. Value: the id of the task that went behind.
    EndSlice,
    /// Waits for a wake.
    Wait { until: Until },
    /// Wakes a task that waits for it; else leaves a wake for its next wait in this run, one deep.
    Wake { task: TaskId },
    /// Forgets a wake left for the calling task. Value: 1 if there was one.
    WakeReset,
    /// Waits for time to pass.
    Delay { until: Until },
    /// Sets signal bits of a task.
    Signal { task: TaskId, bits: u32 },
    /// Waits for signal bits of its own and takes them. Value: the bits.
    WaitSignals { bits: Bits, until: Until },
    /// Sends a message to a task's mailbox. Value: the envelope to copy the message into.
    Send { task: TaskId, urgency: Urgency },
    /// The same, and waits until the receiver has acknowledged. Value: the envelope, later the acknowledgement.
    SendWait { task: TaskId, urgency: Urgency, until: Until },
    /// Waits for mail, of one urgency or any. Value: the envelope. One that is still unopened in the task's hand goes
    /// back.
    Receive { urgency: Option<Urgency>, until: Until },
    /// The calling task has copied the message out of the envelope it was handed; the envelope goes back to the pool.
    /// Value: 1 if that let the sender of the message before go on.
    Take,
    /// Acknowledges the message taken last, if its sender waits; the sender is handed the value.
    Acknowledge { value: u32 },
    /// Sends a message to an exchange. Value: the envelope.
    Post { exchange: ExchangeId, urgency: Urgency },
    /// Waits for a message of an exchange. Value: the envelope. An unopened one goes back as with
    /// [`Receive`](Self::Receive).
    Fetch { exchange: ExchangeId, until: Until, at: Option<Priority> },
    /// Takes one unit of a semaphore.
    WaitSemaphore { semaphore: SemaphoreId, until: Until, at: Option<Priority> },
    /// Gives one unit.
    SignalSemaphore { semaphore: SemaphoreId },
    /// Reserves a resource; nests.
    Reserve { resource: ResourceId, until: Until, at: Option<Priority> },
    /// Releases it once.
    Release { resource: ResourceId },
    /// Sets bits of an event group.
    SignalEvents { events: EventsId, bits: u32 },
    /// Clears bits of an event group.
    ClearEvents { events: EventsId, bits: u32 },
    /// Waits for bits of an event group; `take` clears those it was satisfied by. Value: the bits.
    WaitEvents { events: EventsId, bits: Bits, take: bool, until: Until, at: Option<Priority> },
    /// Takes a buffer. Value: its number.
    GetBuffer { pool: PoolId },
    /// Gives it back.
    FreeBuffer { pool: PoolId, buffer: u16 },
    /// Gets a block of a heap, of at least one unit, unless a task waits for one. Value: the unit at which it begins.
    GetBlock { heap: HeapId, units: u32 },
    /// Waits for a block of a heap, which is granted to the task then. One that was granted and not taken goes back.
    /// Value: the unit at which it begins.
    WaitBlock { heap: HeapId, units: u32, until: Until, at: Option<Priority> },
    /// The calling task takes the block that it was granted. Value: the unit at which it begins.
    TakeBlock,
    /// Frees the block that begins at this unit, and grants blocks to tasks that wait.
    FreeBlock { heap: HeapId, first: u32 },
    /// Starts a timer: first at `at`, then each `period_ns` after that moment; 0 for once.
    StartTimer { timer: TimerId, at: Moment, period_ns: u64 },
    /// Stops it. Value: 1 if it ran.
    StopTimer { timer: TimerId },
    /// Removes it; its id is refused from then on.
    DeleteTimer { timer: TimerId },
    /// Removes a semaphore; its id is refused from then on. Waiting tasks go on with [`CallStatus::NoSuchObject`].
    DeleteSemaphore { semaphore: SemaphoreId },
    /// Removes a resource that no task owns.
    DeleteResource { resource: ResourceId },
    /// Removes an event group, as a semaphore.
    DeleteEvents { events: EventsId },
    /// Removes an exchange, as a semaphore; its messages are discarded.
    DeleteExchange { exchange: ExchangeId },
    /// Removes a pool of which no buffer is in use.
    DeletePool { pool: PoolId },
    /// Removes a heap of which no block is in use.
    DeleteHeap { heap: HeapId },
    /// Time has come to `now`: waits and timers that are due go off. Value: how many timers await the kernel task. A
    /// moment before that of an earlier tick counts as that one.
    Tick { now: Moment },
    /// The kernel task asks which timer procedure to run next. Value: the timer's id.
    NextTimer,
}

impl Call {
    /// The deadline that this call sets, if it comes to that: the end of its wait, or the first time that a timer goes
    /// off.
    #[inline(always)]
    pub fn deadline(self) -> Option<Moment> {
        let until = match self {
            Self::Wait { until }
            | Self::Delay { until }
            | Self::WaitSignals { until, .. }
            | Self::SendWait { until, .. }
            | Self::Receive { until, .. }
            | Self::Fetch { until, .. }
            | Self::WaitSemaphore { until, .. }
            | Self::Reserve { until, .. }
            | Self::WaitEvents { until, .. }
            | Self::WaitBlock { until, .. }
            | Self::Join { until, .. } => until,
            Self::StartTimer { at, .. } => return Some(at),
            _ => return None,
        };
        match until {
            Until::At(moment) => Some(moment),
            Until::NoWait | Until::Forever => None,
        }
    }
}

/// The outcome of a call, as the core and traces record it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(u8)]
pub enum CallStatus {
    /// The call succeeded.
    Ok,
    /// The caller waits now. The outcome is known when it runs again.
    Blocked,
    /// The task was not waiting. The wake is kept for its next wait.
    WakePending,
    /// A wake was already kept for the task; this one is lost.
    WakeAlreadyPending,
    /// The limit passed first.
    TimedOut,
    /// The task's count of pending starts is at its limit; this one is lost.
    TriggerOverflow,
    /// The mailbox or queue holds as many messages as it may.
    MailboxFull,
    /// All envelopes of the executive are in use.
    NoEnvelope,
    /// The task or exchange has no mailbox of that urgency.
    NoMailbox,
    /// The receiver will not acknowledge: it was killed or panicked, or put the message down unopened.
    NotAcknowledged,
    /// The object does not exist, or was deleted.
    NoSuchObject,
    /// The task is idle: it has nothing to wake, signal or suspend. To a caller: it is idle or waits, and makes no
    /// calls.
    NotStarted,
    /// The task panicked and cannot be started.
    Dead,
    /// The task is in the middle of a run and cannot be deleted.
    Running,
    /// The task has been killed and is to unwind; it neither waits nor can be suspended.
    Killed,
    /// The wait was broken off by another.
    Cancelled,
    /// The task is suspended already.
    AlreadySuspended,
    /// The task is not suspended.
    NotSuspended,
    /// The resource belongs to another task, or to none.
    NotOwner,
    /// Waiting would never end: the owner waits, directly or through others, for the caller, or the message is to
    /// oneself.
    Deadlock,
    /// The task's own priority is, or would become, more urgent than the ceiling of a resource it owns or waits for.
    AboveCeiling,
    /// The task ended while it owned resources; they were handed on.
    ResourceHeld,
    /// The semaphore is at its limit, or the resource is nested too deep.
    Overflow,
    /// An empty set of bits would be waited for for ever.
    NoBits,
    /// The heap is smaller than the block that was asked for.
    TooLarge,
    /// Nothing available: no free buffer or block, no timer to serve, no message to take, no waiting sender.
    Empty,
    /// The buffer or block is not in use.
    NotInUse,
    /// A task owns the resource, or a buffer or block of the pool or heap is in use: it cannot be deleted.
    InUse,
    /// The executive has as many objects of this kind as it may.
    TooMany,
    /// Only a task may make this call.
    NotATask,
    /// An interval that is zero or negative. Given by the layer that knows intervals, not by the core.
    BadInterval,
    /// The message type is larger than an envelope. Given by the layer that knows types, not by the core.
    MessageTooBig,
}

impl CallStatus {
    /// The status as a sentence fragment, for messages.
    pub fn text(self) -> &'static str {
        match self {
            Self::Ok => "the call succeeded",
            Self::Blocked => "the caller waits",
            Self::WakePending => "the task did not wait; the wake is kept for its next wait",
            Self::WakeAlreadyPending => "a wake was already kept for the task; this one is lost",
            Self::TimedOut => "the limit passed first",
            Self::TriggerOverflow => "too many starts of the task are pending; this one is lost",
            Self::MailboxFull => "the mailbox is full; give it more room or let its owner run",
            Self::NoEnvelope => "all envelopes are in use; configure more or receive sooner",
            Self::NoMailbox => "there is no mailbox of that urgency; give it a capacity when it is made",
            Self::NotAcknowledged => "the receiver ended or put the message down without acknowledging",
            Self::NoSuchObject => "the object does not exist or was deleted",
            Self::NotStarted => "the task is idle; trigger it first",
            Self::Dead => "the task panicked and cannot be started again",
            Self::Running => "the task is in the middle of a run; kill it or wait for its end",
            Self::Killed => "the task has been killed",
            Self::Cancelled => "the wait was broken off",
            Self::AlreadySuspended => "the task is suspended already",
            Self::NotSuspended => "the task is not suspended",
            Self::NotOwner => "the resource belongs to another task or to none",
            Self::Deadlock => "the owner waits for the caller; waiting would never end",
            Self::AboveCeiling => "the task is more urgent than the ceiling of the resource; raise the ceiling",
            Self::ResourceHeld => "the task ended while it owned resources; they were handed on",
            Self::Overflow => "the count is at its limit",
            Self::NoBits => "no bits are given; nothing could end the wait",
            Self::TooLarge => "the block is larger than the heap; make a larger heap",
            Self::Empty => "nothing is available",
            Self::NotInUse => "the buffer or block is not in use",
            Self::InUse => "it is in use; release it everywhere first",
            Self::TooMany => "no more objects of this kind can be made",
            Self::NotATask => "only a task may make this call",
            Self::BadInterval => "the interval is zero or negative",
            Self::MessageTooBig => "the message type is larger than an envelope; configure larger messages",
        }
    }
}

impl fmt::Display for CallStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for CallStatus {}

/// The answer to a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The outcome of the call.
    pub status: CallStatus,
    /// The number that belongs to the call's text; 0 if the text has none.
    pub value: u32,
}

impl Reply {
    pub(crate) const OK: Self = Self { status: CallStatus::Ok, value: 0 };

    #[inline]
    pub(crate) const fn ok(value: u32) -> Self {
        Self { status: CallStatus::Ok, value }
    }

    /// The value of a call that succeeded.
    ///
    /// # Errors
    /// The status of one that did not.
    #[inline]
    pub fn result(self) -> Result<u32, CallStatus> {
        if self.status == CallStatus::Ok { Ok(self.value) } else { Err(self.status) }
    }
}

impl From<CallStatus> for Reply {
    #[inline]
    fn from(status: CallStatus) -> Self {
        Self { status, value: 0 }
    }
}
