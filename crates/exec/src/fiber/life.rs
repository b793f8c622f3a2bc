//! The life of a fiber: it gets a stack, begins, runs its task start after start, and gives the stack back.
#![expect(unsafe_code, reason = "the engine's address inside its fibers")]

use corosensei::Coroutine;
use hairspring_exec_core::{By, Call, CallStatus, Ending, TaskId};

use super::carrier::Carrier;
use super::fibers::{Fiber, FiberLife, Fibers, Stackful};
use super::overflow;
use super::stacks::Stack;
use super::switch::SwitchBack;
use crate::engine::{Ended, TaskProcedure, Unusual, in_full};
use crate::report::{Misfortune, Mishap};

impl<M: Carrier> Fibers<M> {
    /// Gives a fiber a stack. If the system has no memory for one, the task's run ends and is reported as a mishap.
    #[cold]
    #[inline(never)]
    pub(super) fn equip(&self, fiber: &Fiber<M>, coroutine: &mut Option<Stackful>) {
        let task = fiber.task.get();
        let given = fiber.memory.borrow().as_ref().map(Stack::on_memory);
        let taken = given.map_or_else(|| self.stacks.borrow().take(fiber.stack_bytes.get()), Ok);
        let stack = match taken {
            Ok(stack) => stack,
            Err(error) => {
                self.apply(By::Task(task), Call::End { how: Ending::Killed });
                let text = format!("no memory for a stack of {} bytes: {error}", fiber.stack_bytes.get());
                let (name, what) = (fiber.name.clone(), Misfortune::Ended(Ending::Killed, text));
                self.finish.borrow().add(Mishap { task, name, what });
                return;
            }
        };
        overflow::note(&mut self.extents.borrow(), u32::from(task.index() as u16), &stack);
        let engine: *const Self = self;
        *coroutine = Some(Coroutine::with_stack(stack, move |yielder, ()| {
            // SAFETY: the engine is boxed and its fibers are unwound before it is dropped (`Drop`).
            let engine = unsafe { &*engine };
            engine.fiber(task).yielder.set(yielder);
            let life: *mut Option<FiberLife<M>> = engine.fiber(task).life.as_ptr();
            // SAFETY: a procedure is run by its own fiber only, and is replaced only when the task is deleted: idle,
            // and its fiber unwound before.
            if let Some(life) = unsafe { &mut *life } {
                life(engine, task);
            }
        }));
    }

    /// Takes a finished fiber off its stack.
    #[cold]
    #[inline(never)]
    pub(super) fn retire(&self, coroutine: &mut Option<Stackful>) {
        if let Some(done) = coroutine.take() {
            let stack = done.into_stack();
            self.stacks.borrow().give_back(stack);
        }
    }

    /// Whether a started run really runs: not if the task was killed before.
    #[inline(always)]
    pub(crate) fn is_to_run(&self, me: TaskId) -> bool {
        !self.core.borrow().is_killed(me) && !self.stopping.get()
    }

    /// The time from the end of a run to the beginning of the next, of an executive that is not observed. Returns
    /// whether there is a next run.
    #[inline(always)]
    pub(crate) fn end_of_run(&self, me: TaskId, ended: Ended, back: SwitchBack) -> bool {
        let plain = ended.is_ok() && self.keepers.get() == 0 && self.unwinding.get() == 0;
        if !(plain && self.core.borrow().end_simply(me)) {
            return self.end_in_full(me, ended, back);
        }
        if self.needs_attention() {
            self.attend(Some(me));
        } else {
            self.suspend(back);
        }
        if !self.core.borrow().is_first(me) {
            let waits = !self.core.borrow().may_run(me);
            self.switch_away_cold(me, waits, back);
        }
        true
    }

    /// The same for every end.
    #[inline(never)]
    fn end_in_full(&self, me: TaskId, ended: Ended, back: SwitchBack) -> bool {
        if self.keepers.get() != 0 {
            self.drop_control(me);
        }
        let mut goes_on = true;
        // A killed task that may not be unwound returns.
        let plain = ended.is_ok() && !self.observed && self.unwinding.get() == 0 && !self.core.borrow().is_killed(me);
        if plain {
            let reply = self.core.borrow().apply(By::Task(me), Call::End { how: Ending::Returned });
            if reply.status != CallStatus::Ok {
                self.mishap(me, Ending::Returned, None, reply);
            }
        } else {
            goes_on = self.end_with_report(me, ended);
        }
        // A task may run for ever, message after message, without any other call.
        if self.needs_attention() {
            self.attend(Some(me));
        }
        if goes_on && !self.core.borrow().is_first(me) {
            let waits = !self.core.borrow().may_run(me);
            self.give_way(me, waits, back);
        }
        goes_on
    }

    /// The end of a run that is recorded, or has something to report.
    #[cold]
    #[inline(never)]
    fn end_with_report(&self, me: TaskId, ended: Ended) -> bool {
        let (how, text) = in_full(ended);
        self.forget_unwinding(me);
        // A kill that came while the task unwound voluntarily, or that its own code caught.
        let how = if how == Ending::Returned && self.core.borrow().is_killed(me) { Ending::Killed } else { how };
        let reply = self.apply(By::Task(me), Call::End { how });
        if how != Ending::Returned || reply.status != CallStatus::Ok {
            self.mishap(me, how, text, reply);
        }
        how != Ending::Panicked
    }

    /// The body of a fiber of a boxed task, whose calls go through a table.
    pub(super) fn life_of(mut procedure: TaskProcedure) -> FiberLife<M> {
        Box::new(move |fibers, me| {
            fibers.leave(me);
            let back = fibers.way_back(me);
            loop {
                let ended = if fibers.is_to_run(me) { procedure(fibers, me) } else { Err(Unusual::killed()) };
                if !fibers.end_in_full(me, ended, back) {
                    return;
                }
                fibers.leave(me);
            }
        })
    }
}
