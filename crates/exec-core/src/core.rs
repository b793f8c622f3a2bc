//! [`Core`]: the state of an executive, and the one door to it.
//!
//! Problem: three back-ends are to behave alike, and their behaviour is to be provable. Solution: all decisions are made
//! here, by a machine without clock, stack or lock: `apply(who, call)` changes the state and says how the call came out, and
//! [`first`](Core::first) is the task that is to run. Nothing else is needed: the running task stays at the head of its
//! priority's list while it runs, so "who runs" is not stored but is always the head of the ready list, and a preempted
//! task keeps its place. A back-end compares `first()` with the caller after each call and switches if they differ.
//!
//! Conditions: calls are made one at a time (a lock or a single carrier thread), and blocking calls only for the task that
//! makes them. What a blocked call came out as is kept in the task ([`Core::outcome`]) until it runs again.

use alloc::vec::Vec;

use crate::call::{By, Call, Reply, Status, Until};
use crate::events::Events;
use crate::id::{Moment, Priority, TaskId};
use crate::mail::{Exchange, Mail, Mailboxes};
use crate::observer::Observer;
use crate::pool::Pool;
use crate::queue::{NIL, Queue};
use crate::resource::Resource;
use crate::semaphore::Semaphore;
use crate::task::{State, Task, Waiting};
use crate::timer::Timers;
use crate::wheel::Wheel;

/// Most pending starts of one task; one more is [`Status::TriggerOverflow`]. The width of the counter.
pub const MOST_STARTS: u16 = u16::MAX;
/// Most objects of one kind. Slots are numbered by 16 bits, of which one pattern means "none".
pub const MOST_OBJECTS: usize = u16::MAX as usize;

/// The state of an executive.
#[derive(Clone, Debug)]
pub struct Core<O: Observer = ()> {
    pub(crate) ready: Queue,
    pub(crate) tasks: Vec<Task>,
    pub(crate) wheel: Wheel,
    pub(crate) mail: Mail,
    pub(crate) mailboxes: Vec<Mailboxes>,
    pub(crate) objects: Objects,
    pub(crate) pools: Vec<Pool>,
    pub(crate) timers: Timers,
    pub(crate) free_tasks: Vec<u16>,
    /// Who is told of changes.
    pub observer: O,
}

/// The objects that tasks stand in line for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Objects {
    pub(crate) semaphores: Vec<Semaphore>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) events: Vec<Events>,
    pub(crate) exchanges: Vec<Exchange>,
}

impl Objects {
    /// The wait list that a task in this wait stands in.
    pub(crate) fn wait_list(&mut self, waiting: Waiting) -> Option<&mut Queue> {
        match waiting {
            Waiting::Semaphore(slot) => Some(&mut self.semaphores[usize::from(slot)].waiters),
            Waiting::Resource(slot) => Some(&mut self.resources[usize::from(slot)].waiters),
            Waiting::Events(slot, ..) => Some(&mut self.events[usize::from(slot)].waiters),
            Waiting::Exchange(slot) => Some(&mut self.exchanges[usize::from(slot)].waiters),
            _ => None,
        }
    }
}

impl<O: Observer> Core<O> {
    /// An executive with nothing in it but this many envelopes (at most 65,534) for all messages under way.
    pub fn new(envelopes: u16, observer: O) -> Self {
        Self {
            ready: Queue::new(),
            tasks: Vec::new(),
            wheel: Wheel::new(),
            mail: Mail::new(envelopes),
            mailboxes: Vec::new(),
            objects: Objects::default(),
            pools: Vec::new(),
            timers: Timers::default(),
            free_tasks: Vec::new(),
            observer,
        }
    }

    /// Makes one call.
    ///
    /// Inlined where it is called, so that a call known there costs only its own service.
    #[inline(always)]
    pub fn apply(&mut self, by: By, call: Call) -> Reply {
        match call {
            Call::CreateTask { priority, mailboxes } => self.create_task(priority, mailboxes),
            Call::CreateSemaphore { count, limit } => self.create_semaphore(count, limit),
            Call::CreateResource { protocol } => self.create_resource(protocol),
            Call::CreateEvents { bits } => self.create_events(bits),
            Call::CreateExchange { capacities } => self.create_exchange(capacities),
            Call::CreatePool { buffers } => self.create_pool(buffers),
            Call::CreateTimer => self.create_timer(),
            Call::Trigger { task } => self.trigger(task),
            Call::Suspend { task } => self.suspend(by, task),
            Call::Resume { task } => self.resume(task),
            Call::SetPriority { task, priority } => self.set_priority(task, priority),
            Call::Kill { task } => self.kill(by, task),
            Call::DeleteTask { task } => self.delete_task(task),
            Call::Wake { task } => self.wake(task),
            Call::Signal { task, bits } => self.signal(task, bits),
            Call::Send { task, urgency } => self.send(task, urgency),
            Call::Post { exchange, urgency } => self.post(exchange, urgency),
            Call::SignalSemaphore { semaphore } => self.signal_semaphore(semaphore),
            Call::SignalEvents { events, bits } => self.signal_events(events, bits),
            Call::ClearEvents { events, bits } => self.clear_events(events, bits),
            Call::GetBuffer { pool } => self.get_buffer(pool),
            Call::FreeBuffer { pool, buffer } => self.free_buffer(pool, buffer),
            Call::StartTimer { timer, at, period_ns } => self.start_timer(timer, at, period_ns),
            Call::StopTimer { timer } => self.stop_timer(timer),
            Call::DeleteTimer { timer } => self.delete_timer(timer),
            Call::Tick { now } => self.tick(now),
            Call::NextTimer => self.next_timer(),
            _ => {
                let By::Task(me) = by else { return Status::NotATask.into() };
                self.apply_as_task(me, call)
            }
        }
    }

    /// The calls that act on the calling task itself.
    #[inline(always)]
    fn apply_as_task(&mut self, me: TaskId, call: Call) -> Reply {
        let me = match self.in_a_run(me) {
            Ok(me) => me,
            Err(refusal) => return refusal,
        };
        match call {
            Call::End { how } => self.end(me, how),
            Call::Yield => self.give_way(me),
            Call::Wait { until } => self.wait(me, until),
            Call::WakeReset => self.wake_reset(me),
            Call::Delay { until } => self.delay(me, until),
            Call::WaitSignals { bits, until } => self.wait_signals(me, bits, until),
            Call::SendWait { task, urgency, until } => self.send_wait(me, task, urgency, until),
            Call::Receive { urgency, until } => self.receive(me, urgency, until),
            Call::Take => self.take(me),
            Call::Acknowledge { value } => self.acknowledge(me, value),
            Call::Fetch { exchange, until, at } => self.fetch(me, exchange, until, at),
            Call::WaitSemaphore { semaphore, until, at } => self.wait_semaphore(me, semaphore, until, at),
            Call::Reserve { resource, until, at } => self.reserve(me, resource, until, at),
            Call::Release { resource } => self.release(me, resource),
            Call::WaitEvents { events, bits, take, until, at } => self.wait_events(me, events, bits, take, until, at),
            _ => Status::NoSuchObject.into(),
        }
    }

    /// The task that is to run: the first of the most urgent that are ready. None: all wait.
    #[inline]
    pub fn first(&self) -> Option<TaskId> {
        let index = self.ready.first();
        if index == NIL { None } else { Some(self.tasks[usize::from(index)].id(index)) }
    }

    /// The slot of the task that is to run; none: all wait.
    #[inline(always)]
    pub fn first_index(&self) -> Option<usize> {
        let index = self.ready.first();
        (index != NIL).then_some(usize::from(index))
    }

    /// Whether this task, which exists, is the one that is to run.
    #[inline(always)]
    pub fn is_first(&self, task: TaskId) -> bool {
        self.ready.first() == task.index
    }

    /// How the call that `task` was blocked in came out, or how its run was started (the value: the envelope it was
    /// started with, or [`NO_ENVELOPE`](crate::NO_ENVELOPE)). A task that suspended itself finds [`Status::Ok`] here too.
    /// It keeps until the task waits again, whoever suspends and resumes the task meanwhile; it says nothing about a call
    /// that did not block.
    ///
    /// # Panics
    /// If there never was such a task.
    #[inline]
    pub fn outcome(&self, task: TaskId) -> Reply {
        let task = &self.tasks[task.index()];
        Reply { status: task.outcome, value: task.value }
    }

    /// What a call came out as, once the task that made it runs again: what `reply` said, or the outcome if it was blocked;
    /// [`Status::Killed`] if the task has been killed meanwhile.
    ///
    /// # Panics
    /// If there never was such a task.
    #[inline(always)]
    pub fn resumed(&self, task: TaskId, reply: Reply) -> Reply {
        let task = &self.tasks[task.index()];
        if task.marks.killed {
            Status::Killed.into()
        } else if reply.status == Status::Blocked {
            Reply { status: task.outcome, value: task.value }
        } else {
            reply
        }
    }

    /// Whether the task has been killed and is to unwind.
    ///
    /// # Panics
    /// If there never was such a task.
    #[inline]
    pub fn is_killed(&self, task: TaskId) -> bool {
        self.tasks[task.index()].marks.killed
    }

    /// Whether the task may run: ready and not suspended.
    ///
    /// # Panics
    /// If there never was such a task.
    #[inline]
    pub fn may_run(&self, task: TaskId) -> bool {
        self.tasks[task.index()].is_ready()
    }

    /// The earliest moment at which a tick would have something to do.
    #[inline]
    pub fn next_deadline(&mut self) -> Option<Moment> {
        self.wheel.next()
    }

    /// Whether any deadline is set.
    #[inline]
    pub fn has_deadlines(&self) -> bool {
        !self.wheel.is_empty()
    }

    /// The slot of the task that an id means; without the feature `checks` the id is taken at its word.
    #[inline]
    pub(crate) fn known(&self, task: TaskId) -> Result<u16, Reply> {
        if cfg!(feature = "checks") { self.proven(task) } else { Ok(task.index) }
    }

    /// The same, checked in every build: for calls in which the type of a message hangs on the id.
    #[inline]
    pub(crate) fn proven(&self, task: TaskId) -> Result<u16, Reply> {
        match self.tasks.get(task.index()) {
            Some(found) if found.generation == task.generation && found.state != State::Deleted => Ok(task.index),
            _ => Err(Status::NoSuchObject.into()),
        }
    }

    /// A task that can make a call: one in the middle of a run, not waiting.
    #[inline]
    fn in_a_run(&self, task: TaskId) -> Result<u16, Reply> {
        if cfg!(feature = "checks") {
            match self.tasks.get(task.index()) {
                Some(found) if found.generation == task.generation && found.state == State::Ready => {}
                _ => return Err(self.known(task).err().unwrap_or(Status::NotStarted.into())),
            }
        }
        Ok(task.index)
    }

    /// Lets a task run from now on: its wait is over, with this outcome. It must be in no wait list.
    pub(crate) fn ready(&mut self, index: u16, status: Status, value: u32) {
        self.ready_at_once(index, status, value);
    }

    /// The same, compiled into the calls that are made most.
    #[inline(always)]
    pub(crate) fn ready_at_once(&mut self, index: u16, status: Status, value: u32) {
        // The slice is kept in registers; through `self` it would be loaded again after every store.
        let tasks = self.tasks.as_mut_slice();
        let task = &mut tasks[usize::from(index)];
        task.state = State::Ready;
        task.waiting = Waiting::Nothing;
        task.outcome = status;
        task.value = value;
        if task.marks.any() {
            return self.ready_with_marks(index);
        }
        let (id, at) = (task.id(index), task.effective);
        self.ready.push_back(tasks, index, at);
        self.observer.readied(id);
    }

    #[cold]
    #[inline(never)]
    fn ready_with_marks(&mut self, index: u16) {
        let task = &mut self.tasks[usize::from(index)];
        if task.marks.timed {
            task.marks.timed = false;
            self.wheel.disarm(task.node);
        }
        self.enlist(index);
    }

    /// Puts a ready task at the end of its priority's list, unless it is suspended.
    pub(crate) fn enlist(&mut self, index: u16) {
        let task = &self.tasks[usize::from(index)];
        if !task.marks.suspended {
            let (id, at) = (task.id(index), task.effective);
            self.ready.push_back(&mut self.tasks, index, at);
            self.observer.readied(id);
        }
    }

    /// Lets the calling task wait. It must be ready. Where a wait list is needed the caller enters it there.
    #[inline]
    pub(crate) fn block(&mut self, me: u16, waiting: Waiting, until: Until) -> Reply {
        let tasks = self.tasks.as_mut_slice();
        self.ready.remove(tasks, me);
        let task = &mut tasks[usize::from(me)];
        task.state = State::Waiting;
        task.waiting = waiting;
        let id = task.id(me);
        if let Until::At(moment) = until {
            task.marks.timed = true;
            self.wheel.arm(task.node, moment);
        }
        self.observer.stopped(id, waiting);
        Status::Blocked.into()
    }

    /// What a call that would wait comes out as when it must not: killed, or out of time at once.
    #[inline]
    pub(crate) fn unable_to_wait(&self, me: u16, until: Until) -> Option<Reply> {
        let task = &self.tasks[usize::from(me)];
        if task.marks.killed {
            Some(Status::Killed.into())
        } else if !task.is_ready() {
            // A task that lost the right to run in the middle of its code has no wait to begin yet.
            Some(Status::AlreadySuspended.into())
        } else if until == Until::NoWait {
            Some(Status::TimedOut.into())
        } else {
            None
        }
    }

    /// Enters a task that was just blocked into its wait list, at the priority it gave or its own.
    pub(crate) fn line_up(&mut self, me: u16, waiting: Waiting, at: Option<Priority>) {
        let task = &mut self.tasks[usize::from(me)];
        task.wait_at = at;
        let at = at.unwrap_or(task.effective);
        let Some(queue) = self.objects.wait_list(waiting) else { return };
        queue.push_back(&mut self.tasks, me, at);
    }

    /// Takes a waiting task out of its wait list; the owner of a resource no longer owes it its priority.
    pub(crate) fn leave(&mut self, index: u16) {
        let waiting = self.tasks[usize::from(index)].waiting;
        let Some(queue) = self.objects.wait_list(waiting) else { return };
        queue.remove(&mut self.tasks, index);
        if let Waiting::Resource(slot) = waiting {
            self.tasks[usize::from(index)].waiting = Waiting::Nothing;
            let owner = self.objects.resources[usize::from(slot)].owner;
            if owner != NIL {
                self.reconsider(owner);
            }
        }
    }
}
