//! [`Core`]: the state of an executive, and the one door to it.
//!
//! Problem: three back-ends are to behave alike, and their behaviour is to be provable. Solution: all decisions are
//! made here, by a machine without clock, stack or lock: `apply(who, call)` changes the state and returns the outcome
//! of the call, and [`first`](Core::first) is the task that is to run. Nothing else is needed: the running task stays
//! the [first of the ready list](super::ready) while it runs, so "who runs" is not stored elsewhere, and a preempted
//! task keeps its place. A back-end compares `first()` with the caller after each call and switches if they differ.
//!
//! Conditions: calls are made one at a time (a lock or a single carrier thread), and blocking calls only for the task
//! that makes them. The outcome of a blocked call is kept in the task ([`Core::outcome`]) until it runs again.

use alloc::vec::Vec;

use crate::call::{CallStatus, Reply};
use crate::id::{Moment, TaskId};
use crate::observer::Observer;
use crate::state::link::NIL;
use crate::state::mail::{Mail, Mailboxes};
use crate::state::objects::Objects;
use crate::state::ready::ReadyList;
use crate::state::task::{Task, TaskState};
use crate::state::timers::Timers;
use crate::state::wheel::Wheel;

/// Most pending starts of one task; one more is [`CallStatus::TriggerOverflow`]. The width of the counter.
pub const MOST_STARTS: u16 = u16::MAX;
/// The state of an executive.
#[derive(Clone, Debug)]
pub struct Core<O: Observer = ()> {
    pub(crate) ready: ReadyList,
    pub(crate) tasks: Vec<Task>,
    pub(crate) wheel: Wheel,
    pub(crate) mail: Mail,
    pub(crate) mailboxes: Vec<Mailboxes>,
    pub(crate) objects: Objects,
    pub(crate) timers: Timers,
    pub(crate) free_tasks: Vec<u16>,
    /// How many tasks have been killed and have not unwound yet.
    pub(crate) killed: u32,
    /// Receives every change.
    pub observer: O,
}

impl<O: Observer> Core<O> {
    /// An executive with nothing in it but this many envelopes (at most 65,534) for all messages under way.
    pub fn new(envelopes: u16, observer: O) -> Self {
        Self {
            ready: ReadyList::new(),
            tasks: Vec::new(),
            wheel: Wheel::new(),
            mail: Mail::new(envelopes),
            mailboxes: Vec::new(),
            objects: Objects::default(),
            timers: Timers::default(),
            free_tasks: Vec::new(),
            killed: 0,
            observer,
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
    /// started with, or [`NO_ENVELOPE`](crate::NO_ENVELOPE)). A task that suspended itself finds [`CallStatus::Ok`]
    /// here too. Valid until the task waits again, even if it is suspended and resumed meanwhile. Meaningless for a
    /// call that did not block.
    ///
    /// # Panics
    /// If there never was such a task.
    #[inline]
    pub fn outcome(&self, task: TaskId) -> Reply {
        let task = &self.tasks[task.index()];
        Reply { status: task.outcome, value: task.value }
    }

    /// Outcome of a call once its task runs again: `reply`, or the kept outcome if the call blocked;
    /// [`CallStatus::Killed`] if the task has been killed meanwhile.
    ///
    /// # Panics
    /// If there never was such a task.
    #[inline(always)]
    pub fn resumed(&self, task: TaskId, reply: Reply) -> Reply {
        if self.is_killed(task) {
            CallStatus::Killed.into()
        } else if reply.status == CallStatus::Blocked {
            self.outcome(task)
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
        // Usually none is: then the task itself is not looked at.
        self.killed != 0 && self.tasks[task.index()].marks.killed
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

    /// The same, checked in every build: for calls in which the type of a message depends on the id.
    #[inline]
    pub(crate) fn proven(&self, task: TaskId) -> Result<u16, Reply> {
        match self.tasks.get(task.index()) {
            Some(found) if found.generation == task.generation && found.state != TaskState::Deleted => Ok(task.index),
            _ => Err(CallStatus::NoSuchObject.into()),
        }
    }
}
