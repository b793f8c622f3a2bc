//! [`Inspect`]: questions about an executive's tasks and objects. They change nothing and are in no trace.

use hairspring_exec_core::{
    Core, EventsId, ExchangeId, HeapId, HeapUsage, Moment, Observer, PoolId, Priority, ResourceId, SemaphoreId, TaskId,
    TaskState, TaskView, TimerId, Urgency, Waiting,
};
use hairspring_machine::{Instant, Nanos};

use crate::calls::CallSite;
use crate::objects::{Exchange, Mailbox, Pool};
use crate::system::clock::instant_of;
use crate::system::stack::StackUse;

/// A task as it is now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskInfo {
    /// Its name.
    pub name: String,
    /// Idle, ready, waiting, dead or deleted.
    pub state: TaskState,
    /// The object or event that the task waits for.
    pub waiting: Waiting,
    /// Its own priority.
    pub priority: Priority,
    /// The priority that it runs at.
    pub effective: Priority,
    /// Whether it is suspended.
    pub suspended: bool,
    /// Whether it was killed and has not unwound yet.
    pub killed: bool,
    /// Starts that are pending.
    pub starts: u16,
    /// Messages that wait in its mailboxes.
    pub messages: usize,
    /// When its wait ends by time.
    pub wait_ends: Option<Instant>,
}

/// CPU time and switches of a task since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TaskUsage {
    /// The time for which it had the CPU. On fibers and in virtual time with the procedures that its calls served; with
    /// threads as the kernel counts it.
    pub cpu: Nanos,
    /// How often it was given the CPU; with threads, how often its thread left it.
    pub switches: u64,
}

/// A core, for any type of its observer.
pub(crate) trait CoreView {
    fn task(&self, task: TaskId) -> Option<(TaskView, usize, Option<Moment>)>;
    fn tasks(&self) -> Vec<TaskId>;
    fn semaphore(&self, semaphore: SemaphoreId) -> Option<u32>;
    fn owner(&self, resource: ResourceId) -> Option<Option<TaskId>>;
    fn events(&self, events: EventsId) -> Option<u32>;
    fn posted(&self, exchange: ExchangeId) -> usize;
    fn free_buffers(&self, pool: PoolId) -> Option<usize>;
    fn heap_usage(&self, heap: HeapId) -> Option<HeapUsage>;
    fn block_units(&self, heap: HeapId, first: u32) -> Option<u32>;
    fn free_envelopes(&self) -> usize;
    fn timer(&self, timer: TimerId) -> Option<Moment>;
}

impl<O: Observer> CoreView for Core<O> {
    fn task(&self, task: TaskId) -> Option<(TaskView, usize, Option<Moment>)> {
        Some((self.look(task)?, self.mail_waiting(task), self.wait_deadline(task)))
    }

    fn tasks(&self) -> Vec<TaskId> {
        Core::tasks(self)
    }

    fn semaphore(&self, semaphore: SemaphoreId) -> Option<u32> {
        Core::semaphore(self, semaphore).map(|(count, _)| count)
    }

    fn owner(&self, resource: ResourceId) -> Option<Option<TaskId>> {
        self.resource(resource).map(|(owner, _)| owner)
    }

    fn events(&self, events: EventsId) -> Option<u32> {
        self.event_bits(events)
    }

    fn posted(&self, exchange: ExchangeId) -> usize {
        Urgency::ALL.into_iter().map(|urgency| Core::posted(self, exchange, urgency).len()).sum()
    }

    fn free_buffers(&self, pool: PoolId) -> Option<usize> {
        Core::free_buffers(self, pool)
    }

    fn heap_usage(&self, heap: HeapId) -> Option<HeapUsage> {
        Core::heap_usage(self, heap)
    }

    fn block_units(&self, heap: HeapId, first: u32) -> Option<u32> {
        Core::block_units(self, heap, first)
    }

    fn free_envelopes(&self) -> usize {
        Core::free_envelopes(self)
    }

    fn timer(&self, timer: TimerId) -> Option<Moment> {
        self.timer_deadline(timer)
    }
}

/// Questions about tasks and objects: for tasks, procedures, and the program around them between runs. An answer is old
/// when it comes: use it for displays and tests, not for decisions that another task can overtake. Not real-time safe
/// where text or lists are returned.
pub trait Inspect: CallSite {
    /// All tasks that are not deleted.
    fn tasks(&self) -> Vec<TaskId> {
        ask(self, |core| core.tasks())
    }

    /// A task; none if it was deleted.
    fn task_info(&self, task: TaskId) -> Option<TaskInfo> {
        let (view, messages, wait_ends) = ask(self, |core| core.task(task))?;
        Some(TaskInfo {
            name: self.caller().back_end.cold().task_name(task),
            state: view.state,
            waiting: view.waiting,
            priority: view.base,
            effective: view.effective,
            suspended: view.suspended,
            killed: view.killed,
            starts: view.starts,
            messages,
            wait_ends: wait_ends.map(instant_of),
        })
    }

    /// CPU time and switches of a task. With threads always, by the kernel's counts: one system call, and a file of the
    /// kernel is read. On fibers and in virtual time if [`ExecConfig::measure_usage`](crate::ExecConfig) is set. None
    /// where it is not, and for a task that was deleted.
    fn task_usage(&self, task: TaskId) -> Option<TaskUsage> {
        ask(self, |core| core.task(task))?;
        self.caller().back_end.cold().usage(task)
    }

    /// How much a task has used of its stack: the high-water mark, to the page. None before its first run. Makes a
    /// system call for each 64 pages.
    fn stack_use(&self, task: TaskId) -> Option<StackUse> {
        ask(self, |core| core.task(task))?;
        self.caller().back_end.cold().stack_use(task)
    }

    /// The units of a semaphore; none if there is no such one.
    fn semaphore_count(&self, semaphore: SemaphoreId) -> Option<u32> {
        ask(self, |core| core.semaphore(semaphore))
    }

    /// The owner of a resource, if it has one.
    fn resource_owner(&self, resource: ResourceId) -> Option<TaskId> {
        ask(self, |core| core.owner(resource)).flatten()
    }

    /// The bits of an event group; none if there is no such one.
    fn event_bits(&self, events: EventsId) -> Option<u32> {
        ask(self, |core| core.events(events))
    }

    /// The messages that wait in a mailbox; 0 in another executive.
    fn mailbox_len<M: Copy>(&self, mailbox: Mailbox<M>) -> usize {
        if self.caller().back_end.home() != mailbox.home {
            return 0;
        }
        ask(self, |core| core.task(mailbox.task)).map_or(0, |(_, messages, _)| messages)
    }

    /// The messages that wait in an exchange; 0 in another executive.
    fn exchange_len<M: Copy>(&self, exchange: Exchange<M>) -> usize {
        if self.caller().back_end.home() != exchange.home {
            return 0;
        }
        ask(self, |core| core.posted(exchange.exchange))
    }

    /// The buffers of a pool that are free; 0 in another executive.
    fn free_buffers<T: Send + 'static>(&self, pool: &Pool<T>) -> usize {
        if self.caller().back_end.home() != pool.home {
            return 0;
        }
        ask(self, |core| core.free_buffers(pool.pool)).unwrap_or(0)
    }

    /// The envelopes that are free.
    fn free_envelopes(&self) -> usize {
        ask(self, |core| core.free_envelopes())
    }

    /// When a timer expires next; none if it is stopped or was deleted.
    fn timer_expires(&self, timer: TimerId) -> Option<Instant> {
        ask(self, |core| core.timer(timer)).map(instant_of)
    }
}

impl<S: CallSite> Inspect for S {}

/// Asks the core a question.
pub(crate) fn ask<R>(site: &(impl CallSite + ?Sized), question: impl Fn(&dyn CoreView) -> R) -> R {
    let mut answer = None;
    site.caller().back_end.cold().inspect(&mut |core| answer = Some(question(core)));
    match answer {
        Some(answer) => answer,
        None => unreachable!("every back-end lets a question be asked once"),
    }
}
