//! The life of a task: made, triggered, run, suspended, ended, killed, removed.

use crate::call::{By, CallStatus, Ending, Reply, Until};
use crate::id::{Priority, TaskId, Urgency};
use crate::observer::Observer;
use crate::state::core::{Core, MOST_STARTS};
use crate::state::link::NIL;
use crate::state::mail::Mailboxes;
use crate::state::table::MOST_OBJECTS;
use crate::state::task::{Task, TaskState, Ticket, Waiting};
use crate::state::wheel::Owner;

impl<O: Observer> Core<O> {
    pub(crate) fn create_task(&mut self, priority: Priority, capacities: [u16; Urgency::COUNT]) -> Reply {
        let index = if let Some(index) = self.free_tasks.pop() {
            let old = &self.tasks[usize::from(index)];
            self.tasks[usize::from(index)] = Task::new(priority, old.generation, old.node);
            self.mailboxes[usize::from(index)] = Mailboxes::new(capacities);
            index
        } else {
            if self.tasks.len() >= MOST_OBJECTS {
                return CallStatus::TooMany.into();
            }
            let index = self.tasks.len() as u16;
            let node = self.wheel.add(Owner::Task(index));
            self.tasks.push(Task::new(priority, 0, node));
            self.mailboxes.push(Mailboxes::new(capacities));
            // Room for all, so that deleting does not allocate.
            self.free_tasks.reserve(self.tasks.len());
            index
        };
        Reply::ok(self.tasks[usize::from(index)].id(index).number())
    }

    pub(crate) fn delete_task(&mut self, task: TaskId) -> Reply {
        let index = match self.known(task) {
            Ok(index) => index,
            Err(refusal) => return refusal,
        };
        if !matches!(self.tasks[usize::from(index)].state, TaskState::Idle | TaskState::Dead) {
            return CallStatus::Running.into();
        }
        let task = &mut self.tasks[usize::from(index)];
        task.state = TaskState::Deleted;
        // A slot whose generations are used up is not used again, so no id ever means two tasks.
        if let Some(generation) = task.generation.checked_add(1) {
            task.generation = generation;
            self.free_tasks.push(index);
        }
        Reply::OK
    }

    #[inline(always)]
    pub(crate) fn trigger(&mut self, task: TaskId) -> Reply {
        if self.trigger_simply(task) { Reply::OK } else { self.count_start(task) }
    }

    /// [`Call::Trigger`](crate::Call::Trigger) of an idle task. False: it is not idle, and nothing was done.
    #[inline(always)]
    pub fn trigger_simply(&mut self, task: TaskId) -> bool {
        let simple = self.tasks.get(task.index()).is_some_and(|found| {
            (found.generation == task.generation || !cfg!(feature = "checks")) && found.state == TaskState::Idle
        });
        if simple {
            self.start(task.index, NIL);
        }
        simple
    }

    /// Triggers a task that is not idle.
    #[inline(never)]
    fn count_start(&mut self, task: TaskId) -> Reply {
        let index = match self.known(task) {
            Ok(index) => index,
            Err(refusal) => return refusal,
        };
        let task = &mut self.tasks[usize::from(index)];
        match task.state {
            TaskState::Dead | TaskState::Deleted => return CallStatus::Dead.into(),
            _ if task.starts == MOST_STARTS => return CallStatus::TriggerOverflow.into(),
            _ => task.starts += 1,
        }
        Reply::OK
    }

    /// Begins a run of an idle task, with the message in this envelope or none. Clears the wake and the signals that
    /// the last run left.
    #[inline(always)]
    pub(crate) fn start(&mut self, index: u16, envelope: u16) {
        let task = &mut self.tasks[usize::from(index)];
        // Written only if it must be: a load of all marks right after a store to one of them would have to wait for it.
        if task.marks.latch {
            task.marks.latch = false;
        }
        task.signals = 0;
        task.handed = envelope;
        let id = task.id(index);
        self.observer.started(id);
        self.ready_at_once(index, CallStatus::Ok, u32::from(envelope));
    }

    #[inline(always)]
    pub(crate) fn end(&mut self, me: u16, how: Ending) -> Reply {
        if how == Ending::Returned && self.end_plainly(me) { Reply::OK } else { self.end_with_more(me, how) }
    }

    /// [`Call::End`](crate::Call::End) of a run that returned and leaves nothing behind; the task is idle then. False:
    /// it leaves mail, resources, starts or a mark, and nothing was done.
    #[inline(always)]
    pub fn end_simply(&mut self, me: TaskId) -> bool {
        let known = !cfg!(feature = "checks") || self.tasks.get(me.index()).is_some_and(|found| found.runs_as(me));
        known && self.end_plainly(me.index)
    }

    #[inline(always)]
    fn end_plainly(&mut self, me: u16) -> bool {
        let tasks = self.tasks.as_mut_slice();
        let task = &mut tasks[usize::from(me)];
        let plain = !task.marks.any()
            && (task.ticket, task.handed, task.granted_by, task.held, task.starts) == (Ticket::NONE, NIL, NIL, NIL, 0)
            && self.objects.joiners.is_empty()
            && self.mailboxes[usize::from(me)].is_empty();
        if plain {
            task.state = TaskState::Idle;
            let id = task.id(me);
            self.ready.remove(tasks, me);
            self.observer.stopped(id, Waiting::Nothing);
            self.observer.ended(id, Ending::Returned);
        }
        plain
    }

    /// Ends a run that leaves something behind: mail, resources, starts, or a mark.
    #[inline(never)]
    fn end_with_more(&mut self, me: u16, how: Ending) -> Reply {
        let task = &self.tasks[usize::from(me)];
        // A kill that came too late to break anything off still discards what is pending.
        let how = if task.marks.killed && how == Ending::Returned { Ending::Killed } else { how };
        let mut reply = Reply::OK;
        if task.marks.calm() {
            self.set_threshold(me, Priority::LOWEST);
        }
        let task = &self.tasks[usize::from(me)];
        if task.ticket != Ticket::NONE || task.handed != NIL {
            self.settle_mail(me, how);
        }
        self.put_block_back(me);
        if self.tasks[usize::from(me)].held != NIL {
            self.hand_on_everything(me);
            reply = CallStatus::ResourceHeld.into();
        }
        let task = &mut self.tasks[usize::from(me)];
        if !task.marks.suspended {
            self.ready.remove(&mut self.tasks, me);
        }
        let task = &mut self.tasks[usize::from(me)];
        task.state = TaskState::Idle;
        task.marks.suspended = false;
        self.killed -= u32::from(core::mem::take(&mut task.marks.killed));
        let id = task.id(me);
        self.observer.stopped(id, Waiting::Nothing);
        self.observer.ended(id, how);
        self.release_joiners(me, how);
        if how != Ending::Returned {
            self.tasks[usize::from(me)].starts = 0;
            self.discard_mail(me);
        }
        if how == Ending::Panicked {
            self.tasks[usize::from(me)].state = TaskState::Dead;
            return reply;
        }
        if let Some(envelope) = self.next_mail(me, None) {
            self.start(me, envelope);
        } else if self.tasks[usize::from(me)].starts > 0 {
            self.tasks[usize::from(me)].starts -= 1;
            self.start(me, NIL);
        }
        reply
    }

    pub(crate) fn suspend(&mut self, by: By, task: TaskId) -> Reply {
        let index = match self.started(task) {
            Ok(index) => index,
            Err(refusal) => return refusal,
        };
        let task = &mut self.tasks[usize::from(index)];
        if task.marks.killed {
            return CallStatus::Killed.into();
        }
        if task.marks.suspended {
            return CallStatus::AlreadySuspended.into();
        }
        task.marks.suspended = true;
        if task.state == TaskState::Ready {
            let id = task.id(index);
            // Another's outcome may be one that the task has not come to see yet.
            if by == By::Task(id) {
                task.outcome = CallStatus::Ok;
                task.value = 0;
            }
            self.ready.remove(&mut self.tasks, index);
            self.observer.stopped(id, Waiting::Nothing);
        }
        Reply::OK
    }

    pub(crate) fn resume(&mut self, task: TaskId) -> Reply {
        let index = match self.started(task) {
            Ok(index) => index,
            Err(refusal) => return refusal,
        };
        let task = &mut self.tasks[usize::from(index)];
        if !task.marks.suspended {
            return CallStatus::NotSuspended.into();
        }
        task.marks.suspended = false;
        if task.state == TaskState::Ready {
            self.enlist(index);
        }
        Reply::OK
    }

    pub(crate) fn kill(&mut self, by: By, task: TaskId) -> Reply {
        let index = match self.known(task) {
            Ok(index) => index,
            Err(refusal) => return refusal,
        };
        match self.tasks[usize::from(index)].state {
            TaskState::Idle => return Reply::OK,
            TaskState::Ready => {
                let task = &mut self.tasks[usize::from(index)];
                self.killed += u32::from(!core::mem::replace(&mut task.marks.killed, true));
                if task.marks.suspended {
                    task.marks.suspended = false;
                    self.enlist(index);
                }
            }
            TaskState::Waiting => {
                self.leave(index);
                let task = &mut self.tasks[usize::from(index)];
                // A task that waits has not been killed: a killed one is ready until it has unwound.
                self.killed += 1;
                task.marks.killed = true;
                task.marks.suspended = false;
                self.ready(index, CallStatus::Killed, 0);
            }
            TaskState::Dead | TaskState::Deleted => return CallStatus::Dead.into(),
        }
        if by == By::Task(task) { CallStatus::Killed.into() } else { Reply::OK }
    }

    /// Breaks off a wait.
    pub(crate) fn cancel(&mut self, task: TaskId) -> Reply {
        let index = match self.started(task) {
            Ok(index) => index,
            Err(refusal) => return refusal,
        };
        if self.tasks[usize::from(index)].state != TaskState::Waiting {
            return Reply::OK;
        }
        self.leave(index);
        self.ready(index, CallStatus::Cancelled, 0);
        Reply::ok(1)
    }

    pub(crate) fn join(&mut self, me: u16, task: TaskId, until: Until) -> Reply {
        let index = match self.known(task) {
            Ok(index) => index,
            Err(refusal) => return refusal,
        };
        if index == me {
            return CallStatus::Deadlock.into();
        }
        match self.tasks[usize::from(index)].state {
            TaskState::Ready | TaskState::Waiting => {}
            TaskState::Dead => return Reply::ok(Ending::Panicked as u32),
            TaskState::Idle | TaskState::Deleted => return Reply::OK,
        }
        if let Some(reply) = self.unable_to_wait(me, until) {
            return reply;
        }
        let waiting = Waiting::End(index);
        let reply = self.block(me, waiting, until);
        self.line_up(me, waiting, None);
        reply
    }

    /// The run of a task is over: all that wait for that go on, in the order of their line.
    fn release_joiners(&mut self, ended: u16, how: Ending) {
        let mut joiner = self.objects.joiners.first();
        while joiner != NIL {
            let next = self.objects.joiners.after(&self.tasks, joiner);
            if self.tasks[usize::from(joiner)].waiting == Waiting::End(ended) {
                self.objects.joiners.remove(&mut self.tasks, joiner);
                self.ready(joiner, CallStatus::Ok, how as u32);
            }
            joiner = next;
        }
    }

    /// A task that is in the middle of a run.
    #[inline]
    pub(crate) fn started(&self, task: TaskId) -> Result<u16, Reply> {
        let index = self.known(task)?;
        match self.tasks[usize::from(index)].state {
            TaskState::Ready | TaskState::Waiting => Ok(index),
            TaskState::Idle => Err(CallStatus::NotStarted.into()),
            TaskState::Dead | TaskState::Deleted => Err(CallStatus::Dead.into()),
        }
    }

    /// The slice of the running task is over.
    pub(crate) fn end_slice(&mut self) -> Reply {
        let me = self.ready.first();
        if me == NIL {
            return CallStatus::Empty.into();
        }
        let task = &self.tasks[usize::from(me)];
        let (id, at) = (task.id(me), task.effective);
        let equal =
            self.ready.line(&self.tasks).nth(1).is_some_and(|next| self.tasks[usize::from(next)].effective == at);
        // A task that owns a ceiling, or holds others off by a threshold, has asked not to be preempted by these
        // equals.
        if at != task.base || !equal {
            return CallStatus::Empty.into();
        }
        self.give_way(me);
        Reply::ok(id.number())
    }

    #[inline]
    pub(crate) fn give_way(&mut self, me: u16) -> Reply {
        if self.tasks[usize::from(me)].is_ready() {
            self.ready.remove(&mut self.tasks, me);
            let at = self.tasks[usize::from(me)].effective;
            self.ready.push_back(&mut self.tasks, me, at);
        }
        Reply::OK
    }
}
