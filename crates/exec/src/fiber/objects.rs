//! Making and removing the objects of an engine: tasks, timers, and attached procedures.

use std::cell::{Cell, UnsafeCell};
use std::sync::Arc;

use hairspring_exec_core::{By, Call, CallStatus, Moment, Priority, Reply, TaskId, TimerId};

use super::carrier::Carrier;
use super::cell::CarrierCell;
use super::fibers::{Fiber, FiberLife, Fibers, Line, Procedure};
use super::overflow;
use super::placement::{SOURCES, above};
use crate::engine::{InterruptProcedure, TaskStack, TimerProcedure};
use crate::inspect::TaskUsage;
use crate::interrupt::{Health, InterruptSource, Isp, SourceThread};

impl<M: Carrier> Fibers<M> {
    pub(crate) fn make_task(
        &self,
        by: By,
        name: &str,
        priority: Priority,
        mailboxes: [u16; 4],
        stack: TaskStack,
        life: FiberLife<M>,
    ) -> Result<TaskId, CallStatus> {
        let task = TaskId::from_number(self.apply(by, Call::CreateTask { priority, mailboxes }).result()?);
        let (stack_bytes, memory) = match stack {
            TaskStack::Usual => (self.config.stack_bytes, None),
            TaskStack::Bytes(bytes) => (bytes, None),
            TaskStack::Memory(memory) => (memory.extent().bytes, Some(memory)),
        };
        let mut fibers = self.fibers.borrow();
        if let Some(slot) = fibers.get_mut(task.index()) {
            // The slot of a deleted task. Its fiber, if it had one, waits at the end of its last run.
            name.clone_into(&mut slot.name);
            slot.task.set(task);
            slot.stack_bytes.set(stack_bytes);
            *slot.memory.get_mut() = memory;
            slot.usage.set(TaskUsage::default());
            slot.refuses.set(false);
            *slot.life.get_mut() = Some(life);
        } else {
            fibers.push(Box::new(Fiber {
                name: name.to_owned(),
                task: Cell::new(task),
                stack_bytes: Cell::new(stack_bytes),
                usage: Cell::new(TaskUsage::default()),
                life: CarrierCell::new(Some(life)),
                coroutine: CarrierCell::new(None),
                memory: CarrierCell::new(memory),
                yielder: Cell::new(std::ptr::null()),
                on_chain: Cell::new(false),
                unwinding: Cell::new(false),
                refuses: Cell::new(false),
                keeps_control: Cell::new(false),
            }));
        }
        Ok(task)
    }

    pub(super) fn unmake_task(&self, by: By, task: TaskId) -> Reply {
        let reply = self.apply(by, Call::DeleteTask { task });
        if reply.status == CallStatus::Ok {
            let fiber = self.fiber(task);
            // The fiber, if there is one, is parked for good at the end of a run. Nothing of the body is on its stack.
            let coroutine = fiber.coroutine.borrow().take();
            let life = fiber.life.borrow().take();
            overflow::forget(&mut self.extents.borrow(), task.index() as u32);
            drop(coroutine);
            drop(life);
            // Nothing runs on it any more.
            let memory = fiber.memory.borrow().take();
            drop(memory);
        }
        reply
    }

    pub(crate) fn make_timer(
        &self,
        by: By,
        name: &str,
        procedure: TimerProcedure<Self>,
    ) -> Result<TimerId, CallStatus> {
        let timer = TimerId::from_number(self.apply(by, Call::CreateTimer).result()?);
        let mut timers = self.timers.borrow();
        if timers.len() <= timer.index() {
            timers.resize_with(timer.index() + 1, || (String::new(), None));
        }
        timers[timer.index()] = (name.to_owned(), Some(procedure));
        Ok(timer)
    }

    pub(super) fn unmake_timer(&self, by: By, timer: TimerId) -> Reply {
        let reply = self.apply(by, Call::DeleteTimer { timer });
        if reply.status == CallStatus::Ok {
            // A procedure that deletes its own timer was taken out while it runs. It is dropped afterwards.
            let procedure = self.timers.borrow()[timer.index()].1.take();
            drop(procedure);
        }
        reply
    }

    pub(crate) fn make_procedure(
        &self,
        name: &str,
        source: &InterruptSource,
        body: InterruptProcedure<Self>,
    ) -> Result<Isp, std::io::Error> {
        let number = self.procedures.borrow().len() as u16;
        let health = Arc::new(Health::new(name));
        let line = Line { arrivals: Arc::clone(&self.arrivals), health: Arc::clone(&health) };
        let isp = Isp { number, to: Arc::new(line) };
        let theirs = Arc::clone(&health);
        let post = isp.clone();
        let policy = above(self.placement.1, SOURCES);
        let (source, kept) = match body {
            InterruptProcedure::Raw(raw) if !matches!(source, InterruptSource::Software) => {
                (SourceThread::start(name, source, policy, None, theirs, raw)?, None)
            }
            body => {
                let deliver = move |arrival| {
                    // A full ring is counted there.
                    post.to.post(number, arrival);
                };
                (SourceThread::start(name, source, policy, None, theirs, deliver)?, Some(body))
            }
        };
        let procedure =
            Box::new(Procedure { name: name.to_owned(), body: UnsafeCell::new(kept), health, _source: source });
        self.procedures.borrow().push(procedure);
        Ok(isp)
    }

    /// Fires a software interrupt at a moment of virtual time.
    pub(super) fn post_at(&self, isp: u16, at: Moment) {
        let mut agenda = self.agenda.borrow();
        // The soonest is last. Equal moments keep the order of entry, so the new one goes before its equals.
        let place = agenda.partition_point(|&(other, _)| other > at);
        agenda.insert(place, (at, isp));
    }
}
