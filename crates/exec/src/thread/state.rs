//! [`State`]: the state that the executive's lock protects, and the operations on it.
#![expect(unsafe_code, reason = "leaves the outcome of a blocked call to its thread")]

use std::any::Any;
use std::sync::Arc;

use hairspring_exec_core::{By, Call, CallStatus, Core, Expired, Moment, Reply, SemaphoreId, TaskId, TimerId};
use hairspring_machine::{Host, Machine, Policy};

use super::bands::policy_of;
use super::gate::Gate;
use super::given::TaskThread;
use super::mirror::{FIRST_TASK_PLACE, KERNEL_PLACE, Mirror, Nudges, RUNNER_PLACE};
use super::parking::ParkingSpots;
use crate::engine::{Engine, TimerProcedure};
use crate::report::{Finish, Misfortune, Mishap, StopReason};
use crate::system::scheduling::set_policy_of;
use crate::trace::Log;

/// Where the executive stands.
///
/// ```text
///   CLOSED ── run ──► RUNNING ── stop, limit, nothing left ──► ENDING ── all have unwound ──► CLOSED
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// No run is under way. Calls change the core; no task runs.
    Closed,
    /// A run is under way: every task that the core made runnable runs.
    Running,
    /// The run is ending: every task has been killed and runs only to unwind.
    Ending,
}

/// A timer's procedure.
pub(super) struct TimerSeat {
    pub(super) timer: TimerId,
    pub(super) name: String,
    /// Out while it runs, and when the timer is gone.
    pub(super) body: Option<TimerProcedure<dyn Engine>>,
}

pub(super) struct State {
    pub(super) core: Core<Mirror>,
    pub(super) places: Arc<ParkingSpots>,
    free_places: Vec<u32>,
    next_place: u32,
    pub(super) phase: Phase,
    /// Whether interrupt service procedures may make calls: copied out for them at each change of the phase.
    pub(super) gate: Arc<Gate>,
    pub(super) limit: Option<Moment>,
    /// The kernel thread sleeps until this moment at the latest; the clock's beginning while it is awake.
    pub(super) kernel_until: Moment,
    /// The kernel thread runs timer procedures.
    pub(super) serving: bool,
    /// A tick is to be made though no deadline has come: procedures of the run before are still due.
    pub(super) tick_first: bool,
    /// The next run is to end when it begins.
    pub(super) stop_asked: bool,
    /// Number of the run, so that the watchdog can distinguish it from the next.
    pub(super) run: u64,
    /// A run has begun, and the kernel thread is yet to let the tasks run.
    pub(super) opening: bool,
    pub(super) attached: usize,
    /// By the task's index, the semaphore for which it waits while it waits for a future.
    pub(super) lines: Vec<Option<SemaphoreId>>,
    /// The number of tasks that wait for a future.
    pub(super) expected: usize,
    pub(super) timers: Vec<TimerSeat>,
    pub(super) log: Option<Log>,
    pub(super) finish: Finish,
    /// Payload of a panic in a timer or interrupt procedure: there is no task to end, so it ends the run, and goes on
    /// in `run`.
    pub(super) burst: Option<Box<dyn Any + Send>>,
    /// Real-time priority was granted.
    pub(super) granted: bool,
    /// All tasks are on one CPU.
    pub(super) single: bool,
    /// A task lost its priority in this run: strictness is gone, and the oracle with it.
    pub(super) weakened: bool,
    /// Calls by tasks that were not first, though nothing was under way.
    pub(super) violations: u64,
    /// The timer of time slices and their length in nanoseconds, if there are slices.
    pub(super) slice: Option<(TimerId, u64)>,
    /// The executive's own threads are to end.
    pub(super) leaving: bool,
    pub(super) kernel_gone: bool,
    /// Threads of deleted tasks, to be joined.
    pub(super) ended_threads: Vec<TaskThread>,
}

impl State {
    pub(super) fn new(envelopes: u16, places: Arc<ParkingSpots>, gate: Arc<Gate>, log: Option<Log>) -> Self {
        Self {
            core: Core::new(envelopes, Mirror::new(Arc::clone(&places))),
            places,
            free_places: Vec::new(),
            next_place: FIRST_TASK_PLACE,
            phase: Phase::Closed,
            gate,
            limit: None,
            kernel_until: Moment::START,
            serving: false,
            tick_first: false,
            stop_asked: false,
            run: 0,
            opening: false,
            attached: 0,
            lines: Vec::new(),
            expected: 0,
            timers: Vec::new(),
            log,
            finish: Finish::new(StopReason::Finished),
            burst: None,
            granted: false,
            single: false,
            weakened: false,
            violations: 0,
            slice: None,
            leaving: false,
            kernel_gone: false,
            ended_threads: Vec::new(),
        }
    }

    /// Makes a call to the core. [`conclude`](Self::conclude) then applies the result to the threads.
    #[inline(never)]
    pub(super) fn apply(&mut self, by: By, call: Call) -> Reply {
        let reply = self.core.apply(by, call);
        if let Some(log) = &mut self.log {
            log.record(Host.monotonic(), by, call, reply);
        }
        if let Call::Kill { task } = call {
            let killed = self.core.look(task).is_some_and(|look| look.killed);
            if let Some(seat) = self.core.observer.seat_of(task) {
                self.places.at(seat.place).set_killed(killed);
            }
        }
        reply
    }

    /// Whether a call that did not block concerns its caller alone, as most do: no task was let run, no priority
    /// changed, no deadline was set, and no nudge is owed.
    #[inline]
    pub(super) fn has_no_consequences(&self, call: &Call) -> bool {
        let gives_way = matches!(call, Call::Yield | Call::End { .. } | Call::SetPriority { .. });
        !gives_way && self.core.observer.is_quiet() && self.slice.is_none() && call.deadline().is_none()
    }

    /// Lets the threads run whose tasks the call made runnable. Then checks the next deadline and the end of the run.
    #[inline]
    pub(super) fn conclude(&mut self, me: Option<TaskId>, call: &Call, reply: Reply) {
        // A hook has panicked.
        if let Some(payload) = self.core.observer.hook_observer.burst.take() {
            self.burst(payload);
        }
        let blocked = reply.status == CallStatus::Blocked;
        if blocked && let Some(me) = me {
            self.core.observer.seats[me.index()].awaiting = true;
        }
        if !self.core.observer.fresh.is_empty() {
            self.publish(me);
        }
        // A task that delays looks after the end itself.
        if call.deadline().is_some() && !matches!(call, Call::Delay { .. }) && self.core.has_deadlines() {
            self.look_ahead();
        }
        if self.slice.is_some() {
            self.begin_slice();
        }
        if self.core.observer.runnable == 0 {
            self.look_for_end();
        }
    }

    /// Wakes every task that the core made runnable since the last call of this function.
    pub(super) fn publish(&mut self, me: Option<TaskId>) {
        if self.phase == Phase::Closed {
            // `open` asks the core for all that are ready.
            self.core.observer.fresh.clear();
            return;
        }
        if self.phase == Phase::Ending {
            self.kill_late();
        }
        let mut fresh = std::mem::take(&mut self.core.observer.fresh);
        for index in fresh.drain(..) {
            let seat = &mut self.core.observer.seats[usize::from(index)];
            let (task, place, urgency) = (seat.task, seat.place, seat.wanted.number());
            if std::mem::take(&mut seat.awaiting) {
                let outcome = self.core.outcome(task);
                // SAFETY: under the lock; `awaiting` is set once by each blocked call and was taken just now; `allow`
                // follows.
                unsafe {
                    self.places.at(place).settle(outcome);
                }
            }
            self.requeue_new(usize::from(index));
            self.places.at(place).allow();
            if me != Some(task) {
                self.core.observer.owe(place, urgency);
            }
            if self.opening {
                // Here and now, so that awake threads and sleeping ones are queued in one order. No task runs before
                // the kernel thread sleeps: it is above them.
                self.places.at(place).nudge(self.places.at(place).owed());
            }
        }
        // The memory is kept.
        self.core.observer.fresh = fresh;
    }

    /// Moves a new thread to the end of its run queue. It may never have slept, and so still stand where it was queued
    /// at its start.
    #[inline]
    fn requeue_new(&mut self, index: usize) {
        let seat = &mut self.core.observer.seats[index];
        if std::mem::take(&mut seat.new) && self.granted && self.single {
            let thread = self.places.at(seat.place).thread();
            // The kernel does it for one that was ordinary.
            set_policy_of(thread, Policy::Other);
            set_policy_of(thread, policy_of(seat.applied));
        }
    }

    /// Kills the tasks that an unwinding task has started.
    #[cold]
    fn kill_late(&mut self) {
        for at in 0..self.core.observer.fresh.len() {
            let index = usize::from(self.core.observer.fresh[at]);
            let task = self.core.observer.seats[index].task;
            if !self.core.is_killed(task) {
                self.apply(By::Outside, Call::Kill { task });
            }
        }
    }

    /// Wakes one of the executive's own threads.
    pub(super) fn ring(&mut self, place: u32) {
        self.places.at(place).allow();
        self.core.observer.owe(place, if place == RUNNER_PLACE { u8::MAX } else { 0 });
    }

    /// Wakes the kernel thread if a deadline comes before the one that it sleeps for.
    #[inline]
    pub(super) fn look_ahead(&mut self) {
        if let Some(next) = self.core.next_deadline()
            && next < self.kernel_until
        {
            self.kernel_until = Moment::START;
            self.ring(KERNEL_PLACE);
        }
    }

    /// Ends the run if nothing can happen any more, and closes it when every task has unwound.
    #[cold]
    pub(super) fn look_for_end(&mut self) {
        let mirror = &self.core.observer;
        match self.phase {
            Phase::Running => {
                if mirror.runnable == 0 {
                    self.pause_slice();
                }
                let mirror = &self.core.observer;
                let expects = self.attached > 0 || self.expected > 0;
                let hopeless = mirror.runnable == 0 && !expects && !self.core.has_deadlines();
                if hopeless && !self.serving {
                    self.end_run(if mirror.busy == 0 { StopReason::Finished } else { StopReason::Stuck });
                }
            }
            Phase::Ending => {
                if mirror.busy == 0 && !self.serving {
                    self.phase = Phase::Closed;
                    self.ring(RUNNER_PLACE);
                }
            }
            Phase::Closed => {}
        }
    }

    /// Starts the run: every ready task runs. Called by the kernel thread, which is more urgent than all of them.
    pub(super) fn open(&mut self) {
        self.core.observer.fresh.clear();
        for task in self.core.ready_tasks() {
            if !self.core.observer.seats[task.index()].abandoned {
                self.core.observer.fresh.push(task.index() as u16);
            }
        }
        self.publish(None);
        self.opening = false;
        self.begin_slice();
        self.gate.open();
    }

    /// Ends the run: every task is killed, and unwinds when it runs next.
    pub(super) fn end_run(&mut self, why: StopReason) {
        if self.phase != Phase::Running {
            return;
        }
        self.finish.stopped = why;
        self.unwind_all();
    }

    pub(super) fn unwind_all(&mut self) {
        self.pause_slice();
        self.phase = Phase::Ending;
        self.opening = false;
        self.gate.close();
        for index in 0..self.core.observer.seats.len() {
            let seat = &self.core.observer.seats[index];
            if seat.busy && !seat.abandoned {
                let task = seat.task;
                self.apply(By::Outside, Call::Kill { task });
            }
        }
        // Those that were ready before the gate was opened have no word yet.
        self.core.observer.fresh.clear();
        for task in self.core.ready_tasks() {
            let seat = &self.core.observer.seats[task.index()];
            if !seat.abandoned && !self.places.at(seat.place).may_run() {
                self.core.observer.fresh.push(task.index() as u16);
            }
        }
        self.publish(None);
        self.look_for_end();
    }

    /// Brings the threads' kernel priorities up to date with the core's. True if the caller's own is to be lowered,
    /// which is done only when it has issued its nudges: before that it must not be preempted by what lies between.
    ///
    /// Under the lock, so that the order of the system calls is that of the decisions.
    #[inline]
    pub(super) fn settle(&mut self, me: Option<TaskId>, call: Option<&Call>) -> bool {
        !self.core.observer.unsettled.is_empty() && self.settle_all(me, call)
    }

    #[cold]
    fn settle_all(&mut self, me: Option<TaskId>, call: Option<&Call>) -> bool {
        let mut unsettled = std::mem::take(&mut self.core.observer.unsettled);
        let mut later = false;
        for index in unsettled.drain(..) {
            let seat = &mut self.core.observer.seats[usize::from(index)];
            let (wanted, lowered) = (seat.wanted, seat.wanted > seat.applied);
            if wanted == seat.applied || !self.granted || seat.demoted {
                continue;
            }
            if lowered && me == Some(seat.task) {
                later = true;
                continue;
            }
            let thread = self.places.at(seat.place).thread();
            if lowered && matches!(call, Some(Call::SetPriority { task, .. }) if *task == seat.task) {
                // By wish it goes to the end of its new list; the kernel puts a lowered thread at the head, but one
                // that was ordinary at the end.
                set_policy_of(thread, Policy::Other);
            }
            set_policy_of(thread, policy_of(wanted));
            seat.applied = wanted;
        }
        if let Some(me) = me.filter(|_| later) {
            unsettled.push(me.index() as u16);
        }
        self.core.observer.unsettled = unsettled;
        later
    }

    #[inline]
    pub(super) fn nudges(&mut self) -> Nudges {
        self.core.observer.nudges()
    }

    /// Checks strict priority: no ready task may be more urgent than the task that makes a call. Returns the place of
    /// one that is, if its wake is still on its way.
    #[inline]
    pub(super) fn judge(&mut self, me: TaskId) -> Option<u32> {
        let first = self.core.first().filter(|&first| self.single && self.granted && first != me)?;
        self.judge_by(first, me)
    }

    #[cold]
    fn judge_by(&mut self, first: TaskId, me: TaskId) -> Option<u32> {
        let late = self.late_before(me);
        let under_way = self.core.observer.owes_any() || !self.core.observer.unsettled.is_empty();
        if late.is_none() && !under_way && self.is_ahead(first, me) {
            self.violations += 1;
        }
        late
    }

    /// The place of the most urgent task that is ready, if it is to run before this one and its wake is still on its
    /// way.
    pub(super) fn late_before(&self, me: TaskId) -> Option<u32> {
        let first = self.core.first().filter(|&first| self.is_ahead(first, me))?;
        let place = self.core.observer.seats[first.index()].place;
        self.places.at(place).is_on_its_way().then_some(place)
    }

    /// Whether a task must run before another. Among equals a thread that was preempted on its way to sleep can be
    /// ahead of its turn.
    fn is_ahead(&self, first: TaskId, me: TaskId) -> bool {
        let seats = &self.core.observer.seats;
        self.is_strict() && seats[first.index()].wanted < seats[me.index()].wanted
    }

    /// Whether a run is under way in which the most urgent task that is ready runs, and no other.
    #[inline]
    fn is_strict(&self) -> bool {
        self.single && self.granted && !self.weakened && !self.opening && self.phase == Phase::Running
    }

    /// The urgency of a task whose call must not return before more urgent ones have run; none if the run is not
    /// strict.
    #[inline]
    pub(super) fn urgency_of(&self, me: TaskId) -> Option<u8> {
        self.is_strict().then(|| self.core.observer.seats[me.index()].wanted.number())
    }

    /// The next timer procedure to run, taken out of its seat.
    pub(super) fn next_procedure(&mut self) -> Option<(TimerId, Expired, TimerProcedure<dyn Engine>)> {
        loop {
            let next = self.apply(By::Kernel, Call::NextTimer);
            if next.status != CallStatus::Ok {
                return None;
            }
            let timer = TimerId::from_number(next.value);
            let expiry = self.core.take_expiry(timer);
            if let Some(body) = self.timers.get_mut(timer.index()).and_then(|seat| seat.body.take()) {
                return Some((timer, expiry, body));
            }
        }
    }

    /// A place for another thread.
    pub(super) fn take_place(&mut self) -> u32 {
        let place = self.free_places.pop().unwrap_or_else(|| {
            self.next_place += 1;
            self.next_place - 1
        });
        self.places.at(place).renew();
        place
    }

    pub(super) fn give_place(&mut self, place: u32) {
        self.free_places.push(place);
    }

    pub(super) fn mishap(&mut self, task: TaskId, what: Misfortune) {
        let name = self.core.observer.seats[task.index()].name.clone();
        self.finish.add(Mishap { task, name, what });
    }
}
