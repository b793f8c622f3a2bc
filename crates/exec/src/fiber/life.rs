//! The life of a fiber: it gets a stack, begins, runs its task start after start, and leaves.
#![expect(unsafe_code, reason = "the engine's address inside its fibers")]

use corosensei::Coroutine;
use hairspring_exec_core::{By, Call, CallStatus, Ending, TaskId};

use super::carrier::Carrier;
use super::fibers::{Fiber, FiberLife, Fibers, Stackful};
use super::overflow;
use crate::engine::{Ended, TaskProcedure};
use crate::host::ControlWords;
use crate::report::{Misfortune, Mishap};

impl<M: Carrier> Fibers<M> {
    /// Gives a fiber a stack to run on. If the system has none left, the task's run ends there, told as a mishap.
    #[cold]
    #[inline(never)]
    pub(super) fn equip(&self, fiber: &Fiber<M>, coroutine: &mut Option<Stackful>) {
        let task = fiber.task.get();
        let taken = self.stacks.borrow().take();
        let stack = match taken {
            Ok(stack) => stack,
            Err(error) => {
                self.apply(By::Task(task), Call::End { how: Ending::Killed });
                let text = format!("no memory for a stack of {} bytes: {error}", self.config.stack_bytes);
                let (name, what) = (fiber.name.clone(), Misfortune::Ended(Ending::Killed, text));
                self.finish.borrow().add(Mishap { task, name, what });
                return;
            }
        };
        overflow::note(&mut self.extents.borrow(), u32::from(task.index() as u16), &stack);
        // What the carrier has, not what the task that happens to resume it has set.
        let control = self.default_control.get();
        let engine: *const Self = self;
        *coroutine = Some(Coroutine::with_stack(stack, move |yielder, ()| {
            // SAFETY: the engine is boxed and its fibers are unwound before it is dropped (`Drop`).
            let engine = unsafe { &*engine };
            engine.fiber(task).yielder.set(yielder);
            let life: *mut Option<FiberLife<M>> = engine.fiber(task).life.as_ptr();
            // SAFETY: a procedure is run by its own fiber only, and is replaced only when the task is deleted: idle, and its
            // fiber unwound before.
            if let Some(life) = unsafe { &mut *life } {
                life(engine, task, control);
            }
        }));
    }

    /// Takes a fiber that is done off its stack.
    #[cold]
    #[inline(never)]
    pub(super) fn retire(&self, coroutine: &mut Option<Stackful>) {
        if let Some(done) = coroutine.take() {
            let stack = done.into_stack();
            self.stacks.borrow().give_back(stack);
        }
    }

    /// A fiber's first moment: it finds the floating-point control words that a run begins with.
    #[inline(always)]
    pub(crate) fn begin_life(&self, default_control: ControlWords) {
        default_control.put_in_force(self.control.get());
        self.leave();
    }

    /// Whether a run that was started is to be run: not if the task was killed before.
    #[inline(always)]
    pub(crate) fn is_to_run(&self, me: TaskId) -> bool {
        !self.core.borrow().is_killed(me) && !self.stopping.get()
    }

    /// The end of a run, up to the beginning of the next; whether there will ever be one.
    #[inline(always)]
    pub(crate) fn end_of_run(&self, me: TaskId, (how, text): Ended, default_control: ControlWords) -> bool {
        let mut goes_on = true;
        if how == Ending::Returned && !self.observed && self.unwinding.get() == 0 {
            let reply = self.core.borrow().apply(By::Task(me), Call::End { how: Ending::Returned });
            if reply.status != CallStatus::Ok {
                self.mishap(me, how, text, reply);
            }
        } else {
            goes_on = self.end_with_report(me, how, text);
        }
        // A task may run on and on, message after message, without any other call.
        if self.needs_attention() {
            self.attend(Some(me));
        }
        if !goes_on {
            return false;
        }
        let left = ControlWords::read();
        if self.core.borrow().is_first(me) {
            default_control.put_in_force(left);
        } else {
            let waits = !self.core.borrow().may_run(me);
            self.give_way(me, waits, left, default_control);
        }
        self.leave();
        true
    }

    /// The end of a run that is recorded, or has something to be told of.
    #[cold]
    #[inline(never)]
    fn end_with_report(&self, me: TaskId, how: Ending, text: Option<String>) -> bool {
        self.forget_unwinding(me);
        // A kill that came while it unwound by its own wish, or that its own code caught.
        let how = if how == Ending::Returned && self.core.borrow().is_killed(me) { Ending::Killed } else { how };
        let reply = self.apply(By::Task(me), Call::End { how });
        if how != Ending::Returned || reply.status != CallStatus::Ok {
            self.mishap(me, how, text, reply);
        }
        how != Ending::Panicked
    }

    /// The life of a fiber whose task is one of these: the calls of it go through a table.
    pub(super) fn life_of(mut procedure: TaskProcedure) -> FiberLife<M> {
        Box::new(move |fibers, me, control| {
            fibers.begin_life(control);
            loop {
                let ended = if fibers.is_to_run(me) { procedure(fibers, me) } else { (Ending::Killed, None) };
                if !fibers.end_of_run(me, ended, control) {
                    return;
                }
            }
        })
    }
}
