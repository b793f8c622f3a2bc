//! Making an engine and its objects, and getting fibers on and off their stacks.
#![expect(unsafe_code, reason = "cells that are borrowed between switches, and the engine's address inside its fibers")]

use std::cell::{Cell, UnsafeCell};
use std::sync::{Arc, Mutex};

use corosensei::Coroutine;
use hairspring_exec_core::{By, Call, Core, Ending, Moment, Observer, Priority, Reply, Status, TaskId, TimerId};
use hairspring_machine::{CpuSet, Nanos, Policy};

use super::alarm::Alarm;
use super::attention::{Attention, MEASURED};
use super::overflow;
use super::placement::{SOURCES, above};
use super::stacks::Stacks;
use super::{Arrivals, Carrier, Fiber, Fibers, Line, Procedure, Stackful, cell};
use crate::config::Config;
use crate::context::accept;
use crate::engine::{IspBody, Kernel, TaskBody, TimerBody};
use crate::hooks::Tap;
use crate::host::ControlWords;
use crate::interrupt::{Doorbell, Health, Isp, RING_SLOTS, Ring, Source, SourceThread};
use crate::message::Slots;
use crate::report::{Finish, Misfortune, Mishap, Stopped};
use crate::trace::{Log, Trace};

impl<M: Carrier> Fibers<M> {
    /// An engine without tasks. Boxed: its fibers know its address.
    pub(crate) fn new(machine: M, config: &Config, cpus: Option<CpuSet>, policy: Policy) -> Box<Self> {
        let attention = Arc::new(Attention::default());
        if config.measure_latency {
            attention.set(MEASURED);
        }
        Box::new(Self {
            alarm: Alarm::new(machine.trusts_counter()),
            machine,
            placement: (cpus, policy),
            core: UnsafeCell::new(Core::new(config.envelopes, Tap::new(Some(Arc::clone(&attention))))),
            slots: Slots::new(config.envelopes, config.message_bytes),
            fibers: UnsafeCell::new(Vec::new()),
            stacks: UnsafeCell::new(Stacks::new(config.stack_bytes)),
            extents: UnsafeCell::new(Vec::new()),
            timers: UnsafeCell::new(Vec::new()),
            procedures: UnsafeCell::new(Vec::new()),
            arrivals: Arc::new(Arrivals {
                ring: Ring::new(),
                doorbell: Doorbell::new(),
                attention: Arc::clone(&attention),
            }),
            attention,
            arrived: UnsafeCell::new(Vec::with_capacity(RING_SLOTS)),
            agenda: UnsafeCell::new(Vec::new()),
            ran_away: Arc::new(Mutex::new(0)),
            default_control: Cell::new(ControlWords::read()),
            control: Cell::new(ControlWords::read()),
            observed: config.trace.is_some() || config.measure_latency,
            log: UnsafeCell::new(config.trace.map(Log::new)),
            unwinding: Cell::new(0),
            limit: Cell::new(None),
            stopping: Cell::new(false),
            finish: UnsafeCell::new(Finish::new(Stopped::Finished)),
            burst: UnsafeCell::new(None),
            left_at: Cell::new(Moment::START),
            longest_call: Cell::new(Nanos::ZERO),
            longest_unpolled: Cell::new(Nanos::ZERO),
            config: config.clone(),
        })
    }

    #[inline(always)]
    pub(super) fn kernel(&self) -> Kernel<'_> {
        M::kernel(self)
    }

    pub(crate) fn message_fits<T>(&self) -> bool {
        self.slots.fits::<T>()
    }

    /// The number of this executive.
    #[inline(always)]
    pub(crate) fn home(&self) -> u32 {
        self.slots.home()
    }

    /// Gives a fiber a stack to run on. If the system has none left, the task's run ends there, told as a mishap.
    #[cold]
    #[inline(never)]
    pub(super) fn equip(&self, fiber: &Fiber, coroutine: &mut Option<Stackful>) {
        let task = fiber.task.get();
        let stack = match cell!(self.stacks).take() {
            Ok(stack) => stack,
            Err(error) => {
                self.apply(By::Task(task), Call::End { how: Ending::Killed });
                let text = format!("no memory for a stack of {} bytes: {error}", self.config.stack_bytes);
                let (name, what) = (fiber.name.clone(), Misfortune::Ended(Ending::Killed, text));
                cell!(self.finish).add(Mishap { task, name, what });
                return;
            }
        };
        overflow::note(cell!(self.extents), u32::from(task.index() as u16), &stack);
        // What the carrier has, not what the task that happens to resume it has set.
        let control = self.default_control.get();
        let engine: *const Self = self;
        *coroutine = Some(Coroutine::with_stack(stack, move |yielder, ()| {
            // SAFETY: the engine is boxed and its fibers are unwound before it is dropped (`Drop`).
            let engine = unsafe { &*engine };
            engine.fiber(task).yielder.set(yielder);
            let body: *mut Option<TaskBody> = engine.fiber(task).body.get();
            // SAFETY: a procedure is run by its own fiber only, and is replaced only when the task is deleted: idle, and its
            // fiber unwound before.
            if let Some(body) = unsafe { &mut *body } {
                M::live(engine, body.as_mut(), task, control);
            }
        }));
    }

    /// Takes a fiber that is done off its stack.
    #[cold]
    #[inline(never)]
    pub(super) fn retire(&self, coroutine: &mut Option<Stackful>) {
        if let Some(done) = coroutine.take() {
            cell!(self.stacks).give_back(done.into_stack());
        }
    }

    pub(super) fn make_task(
        &self,
        by: By,
        name: &str,
        priority: Priority,
        mailboxes: [u16; 4],
        body: TaskBody,
    ) -> Result<TaskId, Status> {
        let task = TaskId::from_number(accept(self.apply(by, Call::CreateTask { priority, mailboxes }))?);
        let fibers = cell!(self.fibers);
        if let Some(slot) = fibers.get_mut(task.index()) {
            // The slot of a deleted task; its fiber, if it had one, waits at the end of its last run.
            name.clone_into(&mut slot.name);
            slot.task.set(task);
            *slot.body.get_mut() = Some(body);
        } else {
            fibers.push(Box::new(Fiber {
                name: name.to_owned(),
                task: Cell::new(task),
                body: UnsafeCell::new(Some(body)),
                coroutine: UnsafeCell::new(None),
                yielder: Cell::new(std::ptr::null()),
                on_chain: Cell::new(false),
                unwinding: Cell::new(false),
            }));
        }
        Ok(task)
    }

    pub(super) fn unmake_task(&self, by: By, task: TaskId) -> Reply {
        let reply = self.apply(by, Call::DeleteTask { task });
        if reply.status == Status::Ok {
            let fiber = self.fiber(task);
            // The fiber, if it has one, is parked for good: idle, at the end of a run, with nothing of the body on it.
            let coroutine = cell!(fiber.coroutine).take();
            let body = cell!(fiber.body).take();
            drop(coroutine);
            drop(body);
        }
        reply
    }

    pub(super) fn make_timer(&self, by: By, name: &str, body: TimerBody) -> Result<TimerId, Status> {
        let timer = TimerId::from_number(accept(self.apply(by, Call::CreateTimer))?);
        let timers = cell!(self.timers);
        if timers.len() <= timer.index() {
            timers.resize_with(timer.index() + 1, || (String::new(), None));
        }
        timers[timer.index()] = (name.to_owned(), Some(body));
        Ok(timer)
    }

    pub(super) fn unmake_timer(&self, by: By, timer: TimerId) -> Reply {
        let reply = self.apply(by, Call::DeleteTimer { timer });
        if reply.status == Status::Ok {
            // A procedure that deletes its own timer has been taken out while it runs; it is dropped afterwards.
            let body = cell!(self.timers)[timer.index()].1.take();
            drop(body);
        }
        reply
    }

    pub(super) fn make_procedure(&self, name: &str, source: &Source, body: IspBody) -> Result<Isp, std::io::Error> {
        let procedures = cell!(self.procedures);
        let number = procedures.len() as u16;
        let health = Arc::new(Health::new(name));
        let line = Line { arrivals: Arc::clone(&self.arrivals), health: Arc::clone(&health) };
        let isp = Isp { number, to: Arc::new(line) };
        let theirs = Arc::clone(&health);
        let post = isp.clone();
        let policy = above(self.placement.1, SOURCES);
        let (source, kept) = match body {
            IspBody::Raw(raw) if !matches!(source, Source::Software) => {
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
        procedures.push(Box::new(Procedure {
            name: name.to_owned(),
            body: UnsafeCell::new(kept),
            health,
            _source: source,
        }));
        Ok(isp)
    }

    /// Sets a software interrupt off at a moment of virtual time.
    pub(crate) fn post_at(&self, isp: u16, at: Moment) {
        let agenda = cell!(self.agenda);
        // Soonest last; equal moments in the order in which they were entered, so the new one goes before its equals.
        let place = agenda.partition_point(|&(other, _)| other > at);
        agenda.insert(place, (at, isp));
    }

    /// Has every decision told to the program.
    pub(crate) fn set_hooks(&self, hooks: Box<dyn Observer + Send>) {
        cell!(self.core).observer.hooks = Some(hooks);
    }

    /// What was recorded so far.
    pub(crate) fn trace(&self) -> Option<Trace> {
        let mut trace = cell!(self.log).as_ref()?.trace(M::NAME, self.config.envelopes);
        trace.tasks = cell!(self.fibers).iter().map(|fiber| fiber.name.clone()).collect();
        trace.timers = cell!(self.timers).iter().map(|(name, _)| name.clone()).collect();
        trace.isps = cell!(self.procedures).iter().map(|procedure| procedure.name.clone()).collect();
        Some(trace)
    }

    /// Whether any source could still fire: a descriptor's thread, a handle in other hands, a scripted interrupt.
    pub(super) fn expects_interrupts(&self) -> bool {
        let attached = !cell!(self.procedures).is_empty();
        if M::REAL { attached } else { !cell!(self.agenda).is_empty() }
    }
}

impl<M: Carrier> Drop for Fibers<M> {
    fn drop(&mut self) {
        // Sources first: nothing arrives any more. Then fibers, each parked at the end of a run or never started: a run
        // that was under way has been ended when `run` returned.
        self.procedures.get_mut().clear();
        for fiber in self.fibers.get_mut() {
            drop(fiber.coroutine.get_mut().take());
        }
    }
}
