//! The fiber back-end: all tasks on one thread, the carrier, each on a stack of its own.
//!
//! A switch is a few nanoseconds, and takes place only at calls and at `preempt_point()`: a task that computes is not
//! interrupted. The same engine on [`Sim`](hairspring_machine::Sim) is the sim back-end, where `work()` is a preemption
//! point at every nanosecond, because there time passes only through calls.
//!
//! **How it switches.** The core says who is to run. Whoever makes a call and is not first any more gives the CPU away:
//!
//! ```text
//!      carrier ── 1 resume ──► B ── 2 resume ──► A          B woke A, which is more urgent: A runs on top of B
//!                              B ◄─ 3 suspend ── A          A waits: back to whoever resumed it
//!      carrier ◄─ 4 suspend ── B                            B waits; the carrier resumes the next
//! ```
//! 1, 2: a task that is preempted resumes the one that preempts it. 3, 4: a task that waits, or that must make room for one
//! on the chain below it, suspends to its resumer, who looks again at who is first. So preemption and return cost one
//! switch each instead of the two that a scheduler in the middle would take. The chain of resumes is never longer than the
//! number of tasks, and each link of it is either ready or about to be left.
//!
//! **When it looks.** Every call and every end of a run tests one [attention word](attention); while a deadline is set it reads the
//! processor's counter too (see [`Alarm`]). If anything may be due, [`Fibers::attend`] serves it there and then, on the stack of the
//! task that made the call, before anybody less urgent runs. Nothing else looks at interrupts, time or limits. The counter
//! costs some 10 ns per call where a virtual machine reads it slowly, and nothing while no deadline and no limit is set.
//!
//! **Why it is sound.** Everything here belongs to the carrier thread; the type is neither `Send` nor `Sync`. Cells are
//! borrowed only between two switches, never across one: the functions that switch take `&self` and hold no reference into
//! a cell while they do.
#![expect(unsafe_code, reason = "stacks, and cells that are borrowed between switches")]

mod alarm;
mod attention;
mod carrier;
mod make;
mod overflow;
mod placement;
mod run;
mod stacks;
mod watchdog;

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::sync::{Arc, Mutex};

use corosensei::{Coroutine, Yielder};
use hairspring_exec_core::{By, Call, Core, Ending, Moment, Reply, Status, TaskId};
use hairspring_machine::{CpuSet, Nanos, Policy};

use crate::config::Config;
use crate::ending::unwind_killed;
use crate::engine::{IspBody, TaskBody, TimerBody};
use crate::hooks::Tap;
use crate::host::ControlWords;
use crate::interrupt::{Arrival, Doorbell, Health, Post, Ring, SourceThread};
use crate::life::Ended;
use crate::message::{Bytes, Slots};
use crate::report::{Finish, Misfortune, Mishap};
use crate::trace::Log;

use alarm::Alarm;
pub(crate) use attention::Attention;
use attention::TIMED;
pub(crate) use carrier::Carrier;
use stacks::{Stack, Stacks};

type Stackful = Coroutine<(), (), (), Stack>;

/// One task's stack and what runs on it.
struct Fiber {
    name: String,
    task: Cell<TaskId>,
    body: UnsafeCell<Option<TaskBody>>,
    coroutine: UnsafeCell<Option<Stackful>>,
    /// Its way back, valid while it is resumed.
    yielder: Cell<*const Yielder<(), ()>>,
    /// Whether it is on the chain of resumes.
    on_chain: Cell<bool>,
    /// Whether its stack is being unwound: a kill does not unwind it again.
    unwinding: Cell<bool>,
}

/// Whether the call gave the task a buffer. Nothing else may happen before it is in safe hands: a task that unwound
/// here would keep it for good.
#[inline(always)]
fn holds_buffer(call: Call, reply: Reply) -> bool {
    matches!(call, Call::GetBuffer { .. }) && reply.status == Status::Ok
}

/// From one moment to a later one.
fn between(before: Moment, after: Moment) -> Nanos {
    Nanos::new(after.as_nanos().saturating_sub(before.as_nanos()).min(i64::MAX as u64).cast_signed())
}

/// What sources on other threads reach.
struct Arrivals {
    ring: Ring,
    doorbell: Doorbell,
    attention: Arc<Attention>,
}

/// The way of one procedure's arrivals.
struct Line {
    arrivals: Arc<Arrivals>,
    health: Arc<Health>,
}

impl Post for Line {
    fn post(&self, isp: u16, arrival: Arrival) -> bool {
        // The count is cut to 48 bits: an eventfd that holds more has been ignored for a very long time.
        let word = u64::from(isp) << 48 | arrival.count.min((1 << 48) - 1);
        let arrivals = &self.arrivals;
        let kept = arrivals.ring.push(arrival.at.as_nanos(), word);
        if !kept {
            self.health.count_lost();
        }
        // The bell is for a carrier that sleeps, the word for one that runs tasks.
        arrivals.attention.set(attention::ARRIVED);
        arrivals.doorbell.ring();
        kept
    }
}

/// An attached procedure.
struct Procedure {
    name: String,
    body: UnsafeCell<Option<IspBody>>,
    health: Arc<Health>,
    /// Ends when the procedure is dropped.
    _source: Option<SourceThread>,
}

/// The engine.
pub(crate) struct Fibers<M: Carrier> {
    pub(crate) machine: M,
    config: Config,
    /// Where the carrier is put for a run, and how it is scheduled there.
    placement: (Option<CpuSet>, Policy),
    core: UnsafeCell<Core<Tap>>,
    slots: Slots,
    #[expect(clippy::vec_box, reason = "a fiber is referred to while the table grows")]
    fibers: UnsafeCell<Vec<Box<Fiber>>>,
    stacks: UnsafeCell<Stacks>,
    /// Where stacks lie, for the report of an overflow.
    extents: UnsafeCell<Vec<overflow::Extent>>,
    timers: UnsafeCell<Vec<(String, Option<TimerBody>)>>,
    #[expect(clippy::vec_box, reason = "a procedure runs while others could be attached")]
    procedures: UnsafeCell<Vec<Box<Procedure>>>,
    arrivals: Arc<Arrivals>,
    /// Interrupts to come in virtual time, soonest last.
    agenda: UnsafeCell<Vec<(Moment, u16)>>,
    /// Whether a call has more to do than the call itself.
    attention: Arc<Attention>,
    /// Whether the next deadline may have come.
    alarm: Alarm,
    /// Arrivals taken out of the ring and not served yet.
    arrived: UnsafeCell<Vec<(u64, u64)>>,
    /// How long somebody has run away, in nanoseconds. The watchdog holds it while it takes the carrier's priority.
    ran_away: Arc<Mutex<u64>>,
    /// Those that every task begins with: the carrier's when the run began.
    default_control: Cell<ControlWords>,
    /// The floating-point control words that whoever gave the CPU away last left behind.
    control: Cell<ControlWords>,
    /// Whether every call is recorded or measured.
    observed: bool,
    log: UnsafeCell<Option<Log>>,
    /// How many fibers are known to unwind.
    unwinding: Cell<u32>,
    limit: Cell<Option<Moment>>,
    stopping: Cell<bool>,
    finish: UnsafeCell<Finish>,
    /// What a procedure panicked with.
    burst: UnsafeCell<Option<Box<dyn Any + Send>>>,
    /// When the last call was over; for the longest time without a look.
    left_at: Cell<Moment>,
    longest_call: Cell<Nanos>,
    longest_unpolled: Cell<Nanos>,
}

/// The mutable contents of a cell, between switches.
macro_rules! cell {
    ($cell:expr) => {
        // SAFETY: only the carrier thread is here (the engine is neither Send nor Sync), and no borrow of a cell is held
        // across a switch or a call into user code.
        unsafe { &mut *$cell.get() }
    };
}
use cell;

impl<M: Carrier> Fibers<M> {
    /// [`Engine::call`](crate::engine::Engine::call), compiled into its caller.
    #[inline(always)]
    pub(crate) fn call_inline(&self, by: By, call: Call) -> Reply {
        if self.observed {
            return self.call_observed(by, call, None);
        }
        // Asked before the call is consumed, so that it need not be kept in memory.
        let asks_for_buffer = matches!(call, Call::GetBuffer { .. });
        let deadline = call.deadline();
        let reply = cell!(self.core).apply(by, call);
        self.heed(deadline);
        match by {
            By::Task(me) if !(asks_for_buffer && reply.status == Status::Ok) => self.settle(me, reply),
            _ => reply,
        }
    }

    /// [`Engine::send`](crate::engine::Engine::send), compiled into its caller.
    #[inline(always)]
    pub(crate) fn send_inline(&self, by: By, call: Call, message: Bytes<'_>) -> Reply {
        if self.observed {
            return self.call_observed(by, call, Some(message));
        }
        let deadline = call.deadline();
        let reply = cell!(self.core).apply(by, call);
        self.heed(deadline);
        if matches!(reply.status, Status::Ok | Status::Blocked) {
            self.slots.write(reply.value, message);
        }
        match by {
            By::Task(me) => self.settle(me, reply),
            _ => reply,
        }
    }

    /// [`Engine::take`](crate::engine::Engine::take), compiled into its caller. Taking readies at most the sender of the
    /// message before.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn take_inline(&self, me: TaskId, envelope: u32, to: *mut u8, bytes: usize) {
        // SAFETY: the caller's promise; the core handed the envelope to `me`, who has not taken it yet.
        unsafe { self.slots.read(envelope, to, bytes) };
        if self.observed {
            self.call_observed(By::Task(me), Call::Take, None);
            return;
        }
        // Mostly nobody is readied by it and nothing is due, and then there is nothing to settle.
        let reply = cell!(self.core).apply(By::Task(me), Call::Take);
        if reply.value != 0 || self.is_wanted() {
            self.settle_cold(me, reply);
        }
    }

    /// [`Engine::started_with`](crate::engine::Engine::started_with), compiled into its caller.
    #[inline(always)]
    pub(crate) fn started_with_inline(&self, me: TaskId) -> u32 {
        cell!(self.core).outcome(me).value
    }

    #[inline(always)]
    pub(crate) fn preempt_point_inline(&self, me: TaskId) {
        self.settle(me, Status::Ok.into());
        self.leave();
    }

    /// Whether anything may be due. One load; while a deadline is set, a read of the counter too.
    #[inline(always)]
    fn is_wanted(&self) -> bool {
        let bits = self.attention.bits();
        bits != 0 && (bits != TIMED || self.alarm.is_up(&self.machine))
    }

    /// A deadline was set.
    #[inline(always)]
    fn heed(&self, deadline: Option<Moment>) {
        if let Some(deadline) = deadline
            && self.alarm.heed(deadline)
        {
            self.attention.set(TIMED);
        }
    }

    /// After a call of a task: serves what is due, and lets the right task run.
    #[inline(always)]
    fn settle(&self, me: TaskId, reply: Reply) -> Reply {
        if self.is_wanted() {
            self.attend(Some(me));
            if cell!(self.core).is_first(me) {
                // The look may have ended the wait that the call had just begun, or the run, and with it the task.
                return self.come_back(me, reply);
            }
        } else if cell!(self.core).is_first(me) {
            return reply;
        }
        if std::thread::panicking() {
            self.note_panic(me);
        }
        let control = ControlWords::read();
        self.give_way(me, reply.status == Status::Blocked, control, control);
        self.come_back(me, reply)
    }

    /// What a call comes out as, once the task that made it runs again.
    #[inline(always)]
    fn come_back(&self, me: TaskId, reply: Reply) -> Reply {
        // Not told by the status, which may speak of a killed task that the call was about.
        if cell!(self.core).is_killed(me) { self.killed(me, reply) } else { cell!(self.core).resumed(me, reply) }
    }

    #[cold]
    #[inline(never)]
    fn settle_cold(&self, me: TaskId, reply: Reply) {
        self.settle(me, reply);
    }

    /// Gives the CPU away until this task is first again; `waits`: it is not ready. It leaves the floating-point control
    /// words `left` in force and finds `wanted` when it returns.
    ///
    /// Compiled into its caller, like everything from here to the switch: a processor predicts where a `ret` goes by the
    /// calls it saw, and a switch in the middle of a call makes it guess wrong at every return until the next switch. With
    /// no call between a task's body and the switch there is nothing to guess. (Ten times the cost of the switch, measured.)
    #[inline(always)]
    fn give_way(&self, me: TaskId, mut waits: bool, left: ControlWords, wanted: ControlWords) {
        // For whoever runs next, to know without reading.
        self.control.set(left);
        loop {
            match if waits { None } else { self.above() } {
                Some(next) => self.resume(next),
                // SAFETY: this code runs on the fiber's own stack, so the yielder that its body was given is live.
                None => unsafe { &*self.fiber(me).yielder.get() }.suspend(()),
            }
            if cell!(self.core).is_first(me) {
                break;
            }
            waits = !cell!(self.core).may_run(me);
        }
        wanted.put_in_force(self.control.get());
    }

    /// The fiber that is to run, if it is not on the chain of resumes.
    #[inline(always)]
    fn above(&self) -> Option<&Fiber> {
        let index = cell!(self.core).first_index()?;
        let next: *const Fiber = &raw const *cell!(self.fibers)[index];
        // SAFETY: as in `fiber`.
        let next = unsafe { &*next };
        (!next.on_chain.get()).then_some(next)
    }

    /// Runs a task on top of what runs now, until it gives the CPU back.
    #[inline(always)]
    fn resume(&self, fiber: &Fiber) {
        let coroutine: *mut Option<Stackful> = fiber.coroutine.get();
        // SAFETY: the fiber is not on the chain, so nobody is inside this coroutine or holds a reference to it.
        let coroutine = unsafe { &mut *coroutine };
        let Some(stackful) = coroutine else { return self.equip(fiber, coroutine) };
        fiber.on_chain.set(true);
        let finished = stackful.resume(()).as_return().is_some();
        fiber.on_chain.set(false);
        if finished {
            // It did not give the CPU away, but left.
            self.control.set(ControlWords::read());
            self.retire(coroutine);
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
        !cell!(self.core).is_killed(me) && !self.stopping.get()
    }

    /// The end of a run, up to the beginning of the next; whether there will ever be one.
    #[inline(always)]
    pub(crate) fn end_of_run(&self, me: TaskId, (how, text): Ended, default_control: ControlWords) -> bool {
        let mut goes_on = true;
        if how == Ending::Returned && !self.observed && self.unwinding.get() == 0 {
            let reply = cell!(self.core).apply(By::Task(me), Call::End { how: Ending::Returned });
            if reply.status != Status::Ok {
                self.mishap(me, how, text, reply);
            }
        } else {
            goes_on = self.end_with_report(me, how, text);
        }
        // A task may run on and on, message after message, without any other call.
        if self.is_wanted() {
            self.attend(Some(me));
        }
        if !goes_on {
            return false;
        }
        let left = ControlWords::read();
        if cell!(self.core).is_first(me) {
            default_control.put_in_force(left);
        } else {
            let waits = !cell!(self.core).may_run(me);
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
        let how = if how == Ending::Returned && cell!(self.core).is_killed(me) { Ending::Killed } else { how };
        let reply = self.apply(By::Task(me), Call::End { how });
        if how != Ending::Returned || reply.status != Status::Ok {
            self.mishap(me, how, text, reply);
        }
        how != Ending::Panicked
    }

    #[inline]
    fn fiber(&self, task: TaskId) -> &Fiber {
        let fibers: &Vec<Box<Fiber>> = cell!(self.fibers);
        let fiber: *const Fiber = &raw const *fibers[task.index()];
        // SAFETY: fibers are boxed and never removed while the engine lives, so the reference outlives growth of the table.
        unsafe { &*fiber }
    }

    /// Applies a call without switching; recorded if anything is.
    fn apply(&self, by: By, call: Call) -> Reply {
        let reply = cell!(self.core).apply(by, call);
        self.heed(call.deadline());
        self.record(by, call, reply);
        reply
    }

    fn record(&self, by: By, call: Call, reply: Reply) {
        if self.observed
            && let Some(log) = cell!(self.log)
        {
            log.record(self.machine.moment(), by, call, reply);
        }
    }

    /// A call that is recorded and whose time is measured.
    #[inline(never)]
    fn call_observed(&self, by: By, call: Call, message: Option<Bytes<'_>>) -> Reply {
        let before = self.config.measure_latency.then(|| self.machine.moment());
        let reply = self.apply(by, call);
        if let Some(message) = message
            && matches!(reply.status, Status::Ok | Status::Blocked)
        {
            self.slots.write(reply.value, message);
        }
        if let Some(before) = before {
            let after = self.machine.moment();
            self.longest_call.set(self.longest_call.get().max(between(before, after)));
        }
        match by {
            By::Task(me) if !holds_buffer(call, reply) => {
                let reply = self.settle(me, reply);
                self.leave();
                reply
            }
            _ => reply,
        }
    }

    /// The task's own code goes on: nobody looks at anything until its next call.
    #[inline(always)]
    fn leave(&self) {
        if self.observed {
            self.note_leaving();
        }
    }

    #[cold]
    #[inline(never)]
    fn note_leaving(&self) {
        if self.config.measure_latency {
            self.left_at.set(self.machine.moment());
        }
    }

    /// What a killed task's call comes to: it unwinds. If it already does, the call is what it was, but waits for nothing.
    #[cold]
    #[inline(never)]
    fn killed(&self, me: TaskId, reply: Reply) -> Reply {
        if self.unwinds(me) {
            unwind_killed()
        }
        if reply.status == Status::Blocked { Status::Killed.into() } else { reply }
    }

    /// Notes that a task is about to unwind; false if it already does, for unwinding it again would end the process.
    ///
    /// Whether it does because it panicked, of which nobody tells us, is known by `panicking()`. That speaks of the whole
    /// thread, so it is believed only while no other fiber is known to unwind. (A task that panics while another one
    /// is in the middle of its unwinding, and is killed in one of its destructors, is taken for one that does not.)
    fn unwinds(&self, me: TaskId) -> bool {
        let panics = std::thread::panicking() && self.unwinding.get() == 0;
        !self.note_unwinding(me) && !panics
    }

    /// Marks a fiber as unwinding; whether it was.
    fn note_unwinding(&self, me: TaskId) -> bool {
        let noted = self.fiber(me).unwinding.replace(true);
        if !noted {
            self.unwinding.set(self.unwinding.get() + 1);
        }
        noted
    }

    /// A fiber gives the CPU away while some fiber unwinds. If none is known to, it is this one.
    #[cold]
    #[inline(never)]
    fn note_panic(&self, me: TaskId) {
        if self.unwinding.get() == 0 {
            self.note_unwinding(me);
        }
    }

    /// The run of a task is over, and with it its unwinding.
    fn forget_unwinding(&self, me: TaskId) {
        if self.fiber(me).unwinding.replace(false) {
            self.unwinding.set(self.unwinding.get() - 1);
        }
    }

    #[cold]
    fn mishap(&self, me: TaskId, how: Ending, text: Option<String>, reply: Reply) {
        let name = self.fiber(me).name.clone();
        let finish = cell!(self.finish);
        if how != Ending::Returned && !self.stopping.get() {
            let what = Misfortune::Ended(how, text.unwrap_or_default());
            finish.add(Mishap { task: me, name: name.clone(), what });
        }
        if reply.status == Status::ResourceHeld {
            finish.add(Mishap { task: me, name, what: Misfortune::HeldResources });
        }
    }
}
