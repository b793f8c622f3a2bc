//! [`Mirror`]: the core's observer. It sets the threads' words as the core decides, and lists the nudges owed.
//!
//! **Nudges.** A thread that lets a task run owes that task's thread a futex wake, and issues it after it has released
//! the lock. In between it can be preempted by a thread that is less urgent than that task, and the task must not wait
//! for that. So all owed nudges are on a list under the lock, the most urgent first, and every thread that leaves the
//! kernel issues all of them. An issued nudge is marked in the place of its thread. The next thread that looks removes
//! it from the list.

use std::sync::{Arc, Mutex};

use hairspring_exec_core::{Ending, Observer, Priority, ResourceId, TaskId, TimerId, Waiting};
use hairspring_machine::Nanos;

use super::given::TaskThread;
use super::parking::{LAST_NUMBER, ParkingSpots};
use crate::engine::TaskProcedure;
use crate::hooks::HookObserver;
use crate::system::stack::StackExtent;

/// The places of the executive's own threads; those of tasks follow.
pub(super) const KERNEL_PLACE: u32 = 0;
pub(super) const WATCHDOG_PLACE: u32 = 1;
/// The thread that called `run`.
pub(super) const RUNNER_PLACE: u32 = 2;
pub(super) const FIRST_TASK_PLACE: u32 = 3;

/// The most nudges issued in one round, outside the lock; more take further rounds.
pub(super) const MOST_NUDGES: usize = 8;

/// The procedure of a task while it does not run.
pub(super) type Body = Mutex<Option<TaskProcedure>>;

/// The back-end's own state of a task, beside the core's.
pub(super) struct Seat {
    pub(super) task: TaskId,
    pub(super) name: String,
    pub(super) place: u32,
    pub(super) body: Arc<Body>,
    pub(super) thread: Option<TaskThread>,
    /// The stack of the thread, if the C library knows it.
    pub(super) stack: Option<StackExtent>,
    /// In the middle of a run.
    pub(super) busy: bool,
    /// The value of the go word, or the value it would have if the executive ran.
    pub(super) may_run: bool,
    /// The task is blocked in a call without an outcome yet.
    pub(super) awaiting: bool,
    pub(super) wanted: Priority,
    pub(super) applied: Priority,
    /// The task has not run yet, so its thread may still be on its way to its first sleep.
    pub(super) new: bool,
    /// The task lost its real-time priority for the rest of its run.
    pub(super) demoted: bool,
    /// The task did not end in time, and the executive no longer waits for it.
    pub(super) abandoned: bool,
    /// The number of calls that the watchdog saw last, and the CPU time when that number changed.
    pub(super) seen: (u64, Nanos),
}

/// A nudge owed to the thread of a place.
#[derive(Clone, Copy)]
struct Debt {
    place: u32,
    /// 0 first.
    urgency: u8,
}

/// A nudge to issue.
#[derive(Clone, Copy, Default)]
struct Nudge {
    place: u32,
    number: u32,
    urgency: u8,
}

/// Nudges to issue, the most urgent first.
pub(super) struct Nudges {
    list: [Nudge; MOST_NUDGES],
    count: usize,
    /// There are more to fetch when these have been issued.
    pub(super) more: bool,
}

impl Nudges {
    #[inline]
    pub(super) fn issue(&self, places: &ParkingSpots) {
        for nudge in &self.list[..self.count] {
            places.at(nudge.place).nudge(nudge.number);
        }
    }

    /// Waits until the threads that are more urgent than the caller's task, on the same CPU, have answered. They have
    /// already, but for late wakes: see [`parking`](super::parking).
    #[inline]
    pub(super) fn wait_for_answers(&self, places: &ParkingSpots, urgency: u8) {
        for nudge in self.list[..self.count].iter().take_while(|nudge| nudge.urgency < urgency) {
            let place = places.at(nudge.place);
            if place.is_on_its_way() {
                place.wait_for_answer();
            }
        }
    }
}

pub(super) struct Mirror {
    places: Arc<ParkingSpots>,
    /// By the task's index.
    pub(super) seats: Vec<Seat>,
    /// Tasks that this call let run, in order; their words are set when it is over.
    pub(super) fresh: Vec<u16>,
    /// Tasks whose kernel priority is not yet what the core wants.
    pub(super) unsettled: Vec<u16>,
    debts: Vec<Debt>,
    last_number: u32,
    /// Tasks that may run, and tasks in the middle of a run; abandoned ones do not count.
    pub(super) runnable: usize,
    pub(super) busy: usize,
    /// Timer periods without a run of their own.
    pub(super) overruns: u64,
    /// The program's own hooks.
    pub(super) hook_observer: HookObserver,
}

impl Mirror {
    pub(super) fn new(places: Arc<ParkingSpots>) -> Self {
        Self {
            places,
            seats: Vec::new(),
            fresh: Vec::new(),
            unsettled: Vec::new(),
            debts: Vec::with_capacity(FIRST_TASK_PLACE as usize),
            last_number: 0,
            runnable: 0,
            busy: 0,
            overruns: 0,
            hook_observer: HookObserver::default(),
        }
    }

    /// Seats a new task. The seat of a deleted one with the same index is empty by then.
    pub(super) fn seat(&mut self, seat: Seat) {
        let index = seat.task.index();
        if index < self.seats.len() {
            self.seats[index] = seat;
        } else {
            // The core hands out indices one after the other.
            self.seats.push(seat);
        }
        // Room for all, so that no call allocates: each task is at most once in the first and the last, and the second
        // is emptied by each call, which changes the priority of a task at most twice.
        let count = self.seats.len();
        self.fresh.reserve(count.saturating_sub(self.fresh.len()));
        self.unsettled.reserve((2 * count).saturating_sub(self.unsettled.len()));
        self.debts.reserve((count + FIRST_TASK_PLACE as usize).saturating_sub(self.debts.len()));
    }

    #[inline]
    pub(super) fn owe(&mut self, place: u32, urgency: u8) {
        // 0 means that nothing is owed.
        self.last_number = if self.last_number < LAST_NUMBER { self.last_number + 1 } else { 1 };
        self.places.at(place).owe(self.last_number);
        self.debts.retain(|debt| debt.place != place);
        let at = self.debts.partition_point(|debt| debt.urgency <= urgency);
        self.debts.insert(at, Debt { place, urgency });
    }

    /// Notes that this thread is awake.
    #[inline]
    pub(super) fn awake(&mut self, place: u32) {
        self.places.at(place).answer();
        self.debts.retain(|debt| debt.place != place);
    }

    /// Whether a task runs, and nothing is left to do for any thread.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        let changed_nothing = self.fresh.is_empty() && self.unsettled.is_empty() && self.debts.is_empty();
        changed_nothing && self.runnable != 0 && self.hook_observer.burst.is_none()
    }

    /// Whether any nudge is still owed.
    pub(super) fn owes_any(&self) -> bool {
        self.debts.iter().any(|debt| self.places.at(debt.place).owed() != 0)
    }

    /// The owed nudges, to be issued after the unlock.
    #[inline]
    pub(super) fn nudges(&mut self) -> Nudges {
        let mut nudges = Nudges { list: [Nudge::default(); MOST_NUDGES], count: 0, more: false };
        if self.debts.is_empty() {
            return nudges;
        }
        let places = &self.places;
        self.debts.retain(|debt| {
            let number = places.at(debt.place).owed();
            if number == 0 {
                return false;
            }
            if nudges.count < MOST_NUDGES {
                nudges.list[nudges.count] = Nudge { place: debt.place, number, urgency: debt.urgency };
                nudges.count += 1;
            } else {
                nudges.more = true;
            }
            true
        });
        nudges
    }

    /// The seat of a task; none for the id of a deleted task.
    pub(super) fn seat_of(&mut self, task: TaskId) -> Option<&mut Seat> {
        self.seats.get_mut(task.index()).filter(|seat| seat.task == task)
    }
}

impl Observer for Mirror {
    #[inline]
    fn started(&mut self, task: TaskId) {
        self.seats[task.index()].busy = true;
        self.busy += 1;
        self.hook_observer.started(task);
    }

    #[inline]
    fn readied(&mut self, task: TaskId) {
        let seat = &mut self.seats[task.index()];
        if !seat.may_run {
            seat.may_run = true;
            self.runnable += 1;
        }
        self.fresh.push(task.index() as u16);
        self.hook_observer.readied(task);
    }

    #[inline]
    fn stopped(&mut self, task: TaskId, waiting: Waiting) {
        self.hook_observer.stopped(task, waiting);
        let index = task.index();
        let seat = &mut self.seats[index];
        if seat.may_run {
            seat.may_run = false;
            self.runnable -= 1;
        }
        self.places.at(seat.place).forbid();
        if !self.fresh.is_empty() {
            self.fresh.retain(|&fresh| usize::from(fresh) != index);
        }
    }

    fn ended(&mut self, task: TaskId, how: Ending) {
        self.hook_observer.ended(task, how);
        let seat = &mut self.seats[task.index()];
        self.places.at(seat.place).set_killed(false);
        seat.busy = false;
        if std::mem::take(&mut seat.abandoned) {
            return;
        }
        self.busy -= 1;
    }

    fn priority(&mut self, task: TaskId, effective: Priority) {
        self.seats[task.index()].wanted = effective;
        self.unsettled.push(task.index() as u16);
        self.hook_observer.priority(task, effective);
    }

    fn timed_out(&mut self, task: TaskId) {
        self.hook_observer.timed_out(task);
    }

    fn owned(&mut self, resource: ResourceId, owner: Option<TaskId>) {
        self.hook_observer.owned(resource, owner);
    }

    fn expired(&mut self, timer: TimerId, missed: u64) {
        self.hook_observer.expired(timer, missed);
        self.overruns = self.overruns.saturating_add(missed);
    }
}
