//! [`Fibers`]: the engine on one machine: making, inspecting and dropping it.
#![expect(unsafe_code, reason = "a fiber is referred to while the table grows")]

use crate::system::clock::moment_of;
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use corosensei::{Coroutine, Yielder};
use hairspring_exec_core::{Core, Moment, Observer, SemaphoreId, TaskId, TimerId};
use hairspring_machine::{CpuSet, Nanos, Policy};

use super::alarm::Alarm;
use super::attention::{self, Attention, MEASURED};
use super::carrier::Carrier;
use super::cell::CarrierCell;
use super::deadline::DeadlineCheck;
use super::overflow;
use super::stacks::{Stack, Stacks};
use crate::config::ExecConfig;
use crate::engine::{InterruptProcedure, TimerProcedure};
use crate::hooks::HookObserver;
use crate::host::ControlWords;
use crate::inspect::TaskUsage;
use crate::interrupt::{Arrival, Doorbell, Health, Post, RING_SLOTS, Ring, SourceThread};
use crate::message::Slots;
use crate::report::{Finish, StopReason};
use crate::roused::Roused;
use crate::status::{Answers, SAMPLE_PERIOD, Sample, Sampled, WRITE_PERIOD};
use crate::stopper::Halt;
use crate::system::given_stack::StackMemory;
use crate::trace::{Log, Trace};

pub(super) type Stackful = Coroutine<(), (), (), Stack>;

/// The body of a fiber: runs the procedure of a task, start after start.
pub(crate) type FiberLife<M> = Box<dyn FnMut(&Fibers<M>, TaskId) + Send>;

/// The stack of one task and its coroutine.
pub(super) struct Fiber<M: Carrier> {
    pub(super) name: String,
    pub(super) task: Cell<TaskId>,
    pub(super) stack_bytes: Cell<usize>,
    /// CPU time and switches, if they are measured.
    pub(super) usage: Cell<TaskUsage>,
    pub(super) life: CarrierCell<Option<FiberLife<M>>>,
    pub(super) coroutine: CarrierCell<Option<Stackful>>,
    /// The program's memory, if the stack is in it. After the coroutine, which lies there.
    pub(super) memory: CarrierCell<Option<StackMemory>>,
    /// The switch back to its resumer, valid while it is resumed.
    pub(super) yielder: Cell<*const Yielder<(), ()>>,
    /// Whether the fiber is on the chain of resumes.
    pub(super) on_chain: Cell<bool>,
    /// Whether its stack unwinds, so that a kill does not unwind it again.
    pub(super) unwinding: Cell<bool>,
    /// Whether a kill never unwinds it.
    pub(super) refuses: Cell<bool>,
    /// Whether the present run keeps floating-point control words of its own.
    pub(super) keeps_control: Cell<bool>,
}

/// The state that sources on other threads share.
pub(super) struct Arrivals {
    pub(super) ring: Ring,
    pub(super) doorbell: Doorbell,
    pub(super) attention: Arc<Attention>,
    /// A [`Stopper`](crate::Stopper) asks for the end of the run.
    pub(super) stop: AtomicBool,
    /// Tasks whose futures can go on.
    pub(super) roused: Roused,
    /// The states of the tasks, for other processes.
    pub(super) answers: Answers,
}

/// One of this many open questions wakes a sleeping carrier: five per second, so that publishing does not keep an idle
/// CPU awake.
const RUNG_EACH: u32 = (WRITE_PERIOD.count() / SAMPLE_PERIOD.count()) as u32;

impl Sampled for Arrivals {
    fn sample(&self, into: &mut Sample) -> bool {
        if let Some(open) = self.answers.ask() {
            self.attention.set(attention::ASKED);
            if open > 0 && open.is_multiple_of(RUNG_EACH) {
                // It sleeps or computes.
                self.doorbell.ring();
            }
        }
        self.answers.read(into)
    }
}

impl Halt for Arrivals {
    fn halt(&self) {
        // Release pairs with the Acquire in `serve_arrivals`.
        self.stop.store(true, Ordering::Release);
        self.attention.set(attention::ARRIVED);
        self.doorbell.ring();
    }
}

/// Delivers the arrivals of one procedure.
pub(super) struct Line {
    pub(super) arrivals: Arc<Arrivals>,
    pub(super) health: Arc<Health>,
}

impl Post for Line {
    fn post(&self, isp: u16, arrival: Arrival) -> bool {
        // The count is limited to 48 bits, which no eventfd reaches in practice.
        let word = u64::from(isp) << 48 | arrival.count.min((1 << 48) - 1);
        let arrivals = &self.arrivals;
        let kept = arrivals.ring.push(moment_of(arrival.at).as_nanos(), word);
        if !kept {
            self.health.count_lost();
        }
        // The bell wakes a sleeping carrier; the word reaches a carrier that runs tasks.
        arrivals.attention.set(attention::ARRIVED);
        arrivals.doorbell.ring();
        kept
    }
}

/// An attached procedure.
pub(super) struct Procedure<M: Carrier> {
    pub(super) name: String,
    pub(super) body: UnsafeCell<Option<InterruptProcedure<Fibers<M>>>>,
    pub(super) health: Arc<Health>,
    /// Ends when the procedure is dropped.
    pub(super) _source: Option<SourceThread>,
}

/// A timer's name, and its procedure while it does not run.
type NamedTimer<M> = (String, Option<TimerProcedure<Fibers<M>>>);

/// The engine.
pub(crate) struct Fibers<M: Carrier> {
    pub(crate) machine: M,
    pub(super) config: ExecConfig,
    /// The CPU and the policy of the carrier during a run.
    pub(super) placement: (Option<CpuSet>, Policy),
    pub(super) core: CarrierCell<Core<HookObserver>>,
    pub(super) slots: Slots,
    #[expect(clippy::vec_box, reason = "a fiber is referred to while the table grows")]
    pub(super) fibers: CarrierCell<Vec<Box<Fiber<M>>>>,
    pub(super) stacks: CarrierCell<Stacks>,
    /// The extents of the stacks, for the report of an overflow.
    pub(super) extents: CarrierCell<Vec<overflow::Extent>>,
    pub(super) timers: CarrierCell<Vec<NamedTimer<M>>>,
    #[expect(clippy::vec_box, reason = "a procedure runs while others could be attached")]
    pub(super) procedures: CarrierCell<Vec<Box<Procedure<M>>>>,
    pub(super) arrivals: Arc<Arrivals>,
    /// By the task's index, the semaphore for which it waits while it waits for a future.
    pub(super) lines: CarrierCell<Vec<Option<SemaphoreId>>>,
    /// The number of tasks that wait for a future.
    pub(super) expected: Cell<u32>,
    /// Future interrupts in virtual time, the soonest last.
    pub(super) agenda: CarrierCell<Vec<(Moment, u16)>>,
    /// Whether a call must also serve something else.
    pub(super) attention: Arc<Attention>,
    /// Whether the next deadline may have come.
    pub(super) deadline_check: DeadlineCheck,
    /// Watches deadlines that are far away, during a run on this computer.
    pub(super) alarm: CarrierCell<Option<Alarm>>,
    /// Arrivals that were taken out of the ring and are not served yet.
    pub(super) arrived: CarrierCell<Vec<(u64, u64)>>,
    /// The length of the present runaway in nanoseconds. The watchdog holds the lock while it takes the carrier's
    /// priority.
    pub(super) ran_away: Arc<Mutex<u64>>,
    /// The number of tasks that keep floating-point control words of their own.
    pub(super) keepers: Cell<u32>,
    /// The floating-point control words of all code but that of tasks that keep their own: the carrier's when `run` was
    /// called.
    pub(super) default_control: Cell<ControlWords>,
    /// Whether every call is recorded or measured.
    pub(super) observed: bool,
    /// The timer of time slices and their length in nanoseconds, if there are slices.
    pub(super) slice: Cell<Option<(TimerId, u64)>>,
    /// The task that has the CPU, and since when, if usage is measured.
    pub(super) on_cpu: Cell<(Option<TaskId>, Moment)>,
    pub(super) log: CarrierCell<Option<Log>>,
    /// The number of unwinding fibers.
    pub(super) unwinding: Cell<u32>,
    pub(super) limit: Cell<Option<Moment>>,
    pub(super) stopping: Cell<bool>,
    pub(super) finish: CarrierCell<Finish>,
    /// The payload of a procedure's panic.
    pub(super) burst: CarrierCell<Option<Box<dyn Any + Send>>>,
    /// The end of the last call, for the longest time without a look.
    pub(super) left_at: Cell<Moment>,
    pub(super) longest_call: Cell<Nanos>,
    pub(super) longest_unpolled: Cell<Nanos>,
}

/// The time from one moment to a later one.
pub(super) fn between(before: Moment, after: Moment) -> Nanos {
    Nanos::new(after.as_nanos().saturating_sub(before.as_nanos()).min(i64::MAX as u64).cast_signed())
}

impl<M: Carrier> Fibers<M> {
    /// An engine without tasks. Boxed, because its fibers hold its address.
    pub(crate) fn new(machine: M, config: &ExecConfig, cpus: Option<CpuSet>, policy: Policy) -> Box<Self> {
        let attention = Arc::new(Attention::default());
        if config.measure_latency {
            attention.set(MEASURED);
        }
        Box::new(Self {
            deadline_check: DeadlineCheck::new(machine.trusts_counter()),
            machine,
            placement: (cpus, policy),
            core: CarrierCell::new(Core::new(config.envelopes, HookObserver::new(Some(Arc::clone(&attention))))),
            slots: Slots::new(config.envelopes, config.message_bytes),
            fibers: CarrierCell::new(Vec::new()),
            stacks: CarrierCell::new(Stacks::new()),
            extents: CarrierCell::new(Vec::new()),
            timers: CarrierCell::new(Vec::new()),
            procedures: CarrierCell::new(Vec::new()),
            arrivals: Arc::new(Arrivals {
                ring: Ring::new(),
                doorbell: Doorbell::new(),
                attention: Arc::clone(&attention),
                stop: AtomicBool::new(false),
                roused: Roused::new(),
                answers: Answers::default(),
            }),
            attention,
            alarm: CarrierCell::new(None),
            arrived: CarrierCell::new(Vec::with_capacity(RING_SLOTS)),
            lines: CarrierCell::new(Vec::new()),
            expected: Cell::new(0),
            agenda: CarrierCell::new(Vec::new()),
            ran_away: Arc::new(Mutex::new(0)),
            keepers: Cell::new(0),
            default_control: Cell::new(ControlWords::read()),
            observed: config.trace.is_some() || config.measure_latency || config.measure_usage,
            slice: Cell::new(None),
            on_cpu: Cell::new((None, Moment::START)),
            log: CarrierCell::new(config.trace.map(Log::new)),
            unwinding: Cell::new(0),
            limit: Cell::new(None),
            stopping: Cell::new(false),
            finish: CarrierCell::new(Finish::new(StopReason::Finished)),
            burst: CarrierCell::new(None),
            left_at: Cell::new(Moment::START),
            longest_call: Cell::new(Nanos::ZERO),
            longest_unpolled: Cell::new(Nanos::ZERO),
            config: config.clone(),
        })
    }

    /// Whether every call is recorded or measured. Then [`Engine`](crate::engine::Engine) is the only way in.
    pub(crate) fn is_observed(&self) -> bool {
        self.observed
    }

    /// The number of this executive.
    #[inline(always)]
    pub(crate) fn home_inline(&self) -> u32 {
        self.slots.home()
    }

    /// Reports every decision to the program's hooks.
    pub(super) fn use_hooks(&self, hooks: Box<dyn Observer + Send>) {
        let before = self.core.borrow().observer.hooks.replace(hooks);
        drop(before);
    }

    /// The trace until now.
    pub(super) fn recorded(&self) -> Option<Trace> {
        let mut trace = self.log.borrow().as_ref().map(|log| log.trace(M::NAME, self.config.envelopes))?;
        trace.tasks = self.fibers.borrow().iter().map(|fiber| fiber.name.clone()).collect();
        trace.timers = self.timers.borrow().iter().map(|(name, _)| name.clone()).collect();
        trace.isps = self.procedures.borrow().iter().map(|found| found.name.clone()).collect();
        Some(trace)
    }

    /// The fiber of a task.
    #[inline]
    pub(super) fn fiber(&self, task: TaskId) -> &Fiber<M> {
        self.fiber_at(task.index())
    }

    /// The fiber in a slot of the table.
    #[inline]
    pub(super) fn fiber_at(&self, index: usize) -> &Fiber<M> {
        let fiber: *const Fiber<M> = &raw const *self.fibers.borrow()[index];
        // SAFETY: fibers are boxed and never removed while the engine lives, so the reference outlives growth of the
        // table.
        unsafe { &*fiber }
    }

    /// Whether any source could still fire: a descriptor's thread, another handle, the waker of a future, a scripted
    /// interrupt.
    pub(super) fn expects_interrupts(&self) -> bool {
        let attached = !self.procedures.borrow().is_empty();
        if M::REAL { attached || self.expected.get() > 0 } else { !self.agenda.borrow().is_empty() }
    }
}

impl<M: Carrier> Drop for Fibers<M> {
    fn drop(&mut self) {
        // Sources first, so that nothing arrives any more. Then fibers. Each is parked at the end of a run or was never
        // started, because `run` ends all runs before it returns.
        self.procedures.get_mut().clear();
        for fiber in self.fibers.get_mut() {
            drop(fiber.coroutine.get_mut().take());
        }
    }
}
