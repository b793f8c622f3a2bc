//! Entering and leaving the executive: the path of every call of the thread back-end.
//!
//! ```text
//!   enter: lock ─► (suspended: unlock, park, again) ─► apply ─► conclude ─► settle ─► unlock ─► nudge ─► park ─► outcome
//! ```
//! Nudges are issued after the lock is released. A more urgent thread that was woken earlier would run, find the lock
//! taken, and give the CPU back: two wasted switches.
#![expect(unsafe_code, reason = "reads the outcome that was left for the calling thread")]

use hairspring_exec_core::{By, Call, CallStatus, Moment, Reply, TaskId, Until};

use super::lock::Held;
use super::mirror::KERNEL_PLACE;
use super::parking::ParkingSpot;
use super::state::State;
use super::threads::{Shared, Threads};
use crate::engine::gives_memory;
use crate::system::scheduling::give_way;

impl Threads {
    /// The place of the calling task's thread.
    #[inline]
    pub(super) fn own(&self) -> Option<&ParkingSpot> {
        self.own.map(|number| self.shared.places.at(number))
    }

    /// Takes the lock for a call. A killed task unwinds instead. A suspended task waits here until it is resumed, so
    /// that it calls only when it may run; and a task waits for a more urgent one whose wake is on its way.
    #[inline]
    pub(super) fn enter(&self, by: By) -> Held<'_, State> {
        self.enter_for(by, false)
    }

    /// Takes the lock for a call that may give something back. A killed task makes it, too, because it comes from a
    /// destructor and no other code would make it.
    #[inline]
    pub(super) fn enter_for(&self, by: By, gives_back: bool) -> Held<'_, State> {
        let (By::Task(me), Some(number)) = (by, self.own) else { return self.shared.lock.hold() };
        let place = self.shared.places.at(number);
        place.count();
        loop {
            if !gives_back {
                place.unwind_if_killed();
            }
            let mut state = self.shared.lock.hold();
            state.core.observer.awake(number);
            if !place.may_run() {
                self.shared.release(state);
                place.park();
                continue;
            }
            let Some(first) = state.judge(me) else { return state };
            self.shared.release(state);
            self.shared.places.at(first).wait_for_answer();
        }
    }

    /// Handles the consequences of a call, releases the lock, and returns when the caller may run, with the outcome of
    /// a blocked call.
    #[inline]
    pub(super) fn leave(&self, state: Held<'_, State>, by: By, call: &Call, reply: Reply) -> Reply {
        self.depart(state, by, call, reply);
        let (By::Task(me), Some(place)) = (by, self.own()) else { return reply };
        match call {
            Call::Delay { until: Until::At(end) } if reply.status == CallStatus::Blocked => {
                self.sleep_out(me, place, *end);
            }
            _ => place.park(),
        }
        // The task does not hold a buffer or block that was just given yet. It unwinds at its next call, when it can
        // drop it.
        if !(gives_memory(call) && reply.status == CallStatus::Ok) {
            place.unwind_if_killed();
        }
        if reply.status == CallStatus::Blocked {
            if place.is_killed() {
                return CallStatus::Killed.into();
            }
            // SAFETY: this is the place's own thread, the call was blocked, and `park` has returned.
            return unsafe { place.outcome() };
        }
        reply
    }

    /// Sleeps until a delay is over. At its end the task itself serves what is due. The kernel thread would have to be
    /// woken at the beginning, to learn of the end, and again at the end: two switches each time. While a more urgent
    /// task computes past the end, the delay still counts as waiting, and a call can break it off.
    fn sleep_out(&self, me: TaskId, place: &ParkingSpot, end: Moment) {
        if !place.park_until(end) {
            let mut state = self.shared.lock.hold();
            state.serve_delay(me);
            let urgency = state.urgency_of(me);
            self.shared.release_for(state, urgency);
            place.park();
        }
    }

    /// Handles the consequences of a call without waiting for the right to run.
    #[inline]
    pub(super) fn depart(&self, mut state: Held<'_, State>, by: By, call: &Call, reply: Reply) {
        if reply.status != CallStatus::Blocked && state.has_no_consequences(call) {
            return;
        }
        let me = match by {
            By::Task(me) => Some(me),
            _ => None,
        };
        state.conclude(me, call, reply);
        let urgency = me.and_then(|me| state.urgency_of(me));
        let lower_later = state.settle(me, Some(call));
        let to_the_end = match (call, me) {
            // A run with another pending start begins again behind tasks of equal priority.
            (Call::Yield | Call::End { .. }, Some(_)) => true,
            (Call::SetPriority { task, .. }, Some(me)) => *task == me,
            _ => false,
        };
        // Another task of the same priority is first, so this thread must yield to it.
        let behind = to_the_end && me.is_some_and(|me| state.core.may_run(me) && state.core.first() != Some(me));
        if by == By::Outside {
            self.shared.release_from_outside(state);
            return;
        }
        // A thread that is to be lowered is not less urgent yet.
        self.shared.release_for(state, urgency.filter(|_| !lower_later));
        if lower_later {
            let mut state = self.shared.lock.hold();
            // Without the call: a thread that made itself ordinary first would wait for the CPU among the ordinary
            // ones. It yields below.
            state.settle(None, None);
            let late = me.and_then(|me| state.late_before(me));
            self.shared.release(state);
            if let Some(first) = late {
                self.shared.places.at(first).wait_for_answer();
            }
        }
        if behind {
            give_way();
        }
    }
}

impl Shared {
    /// Releases the lock and issues all nudges that any thread owes. For the executive's own threads: a thread of
    /// another CPU that only looks at the state and owes nothing drops its guard instead. If it issued a nudge that
    /// another thread is about to issue, it would take the sleeper out of the kernel's queue; the other's wake would
    /// find no sleeper, and its task would go on before the more urgent one.
    #[inline]
    pub(super) fn release<'s>(&'s self, state: Held<'s, State>) {
        self.release_for(state, None);
    }

    /// Like [`release`](Self::release), for a task of this urgency: returns when more urgent ones have run.
    #[inline]
    fn release_for<'s>(&'s self, mut state: Held<'s, State>, urgency: Option<u8>) {
        loop {
            let nudges = state.nudges();
            drop(state);
            nudges.issue(&self.places);
            if let Some(urgency) = urgency {
                nudges.wait_for_answers(&self.places, urgency);
            }
            if !nudges.more {
                return;
            }
            state = self.lock.hold();
        }
    }

    /// Releases the lock from a thread outside the executive. If all tasks are on one CPU, the kernel thread on that
    /// CPU issues the nudges: a wake from another CPU takes a while to arrive, and a less urgent task would run in that
    /// time.
    pub(super) fn release_from_outside(&self, mut state: Held<'_, State>) {
        if !state.single || !state.core.observer.owes_any() {
            self.release(state);
            return;
        }
        state.ring(KERNEL_PLACE);
        let number = self.places.at(KERNEL_PLACE).owed();
        drop(state);
        self.places.at(KERNEL_PLACE).nudge(number);
    }
}
