//! Ticks, time-outs and timers.
//!
//! A periodic timer goes off at `t0 + n·p`: the next deadline is computed from the last deadline, never from the moment
//! it was served, so it does not drift. Deadlines that had passed unserved when a tick came are not made up for: the
//! procedure runs once, and gets the number that it stands for (the overruns). A timer that goes off while its
//! procedure is still due counts one more.
//!
//! The core decides which procedures run ([`Call::NextTimer`](crate::Call::NextTimer)); the back-end's kernel task runs
//! them.

use crate::call::{CallStatus, Reply};
use crate::id::{Moment, TimerId};
use crate::observer::Observer;
use crate::state::core::Core;
use crate::state::table::MOST_OBJECTS;
use crate::state::task::Waiting;
use crate::state::timers::{Expired, Timer};
use crate::state::wheel::Owner;

impl<O: Observer> Core<O> {
    pub(crate) fn create_timer(&mut self) -> Reply {
        let index = if let Some(index) = self.timers.free.pop() {
            index
        } else {
            if self.timers.slots.len() >= MOST_OBJECTS {
                return CallStatus::TooMany.into();
            }
            let index = self.timers.slots.len() as u16;
            let node = self.wheel.add(Owner::Timer(index));
            self.timers.slots.push(Timer {
                generation: 0,
                alive: false,
                due: false,
                period_ns: 0,
                missed: 0,
                overruns: 0,
                deadline: Moment::START,
                node,
            });
            // Room for all, so that neither going off nor deleting allocates.
            self.timers.due.reserve(self.timers.slots.len());
            self.timers.free.reserve(self.timers.slots.len());
            index
        };
        let timer = &mut self.timers.slots[usize::from(index)];
        timer.alive = true;
        Reply::ok(TimerId { index, generation: timer.generation }.number())
    }

    fn timer_mut(&mut self, timer: TimerId) -> Option<&mut Timer> {
        let found = self.timers.slots.get_mut(timer.index())?;
        (found.alive && found.generation == timer.generation).then_some(found)
    }

    #[inline]
    pub(crate) fn start_timer(&mut self, timer: TimerId, at: Moment, period_ns: u64) -> Reply {
        let Some(found) = self.timer_mut(timer) else { return CallStatus::NoSuchObject.into() };
        found.period_ns = period_ns;
        found.missed = 0;
        found.overruns = 0;
        let node = found.node;
        self.retract(timer);
        self.wheel.arm(node, at);
        Reply::OK
    }

    #[inline(always)]
    pub(crate) fn stop_timer(&mut self, timer: TimerId) -> Reply {
        let Some(found) = self.timer_mut(timer) else { return CallStatus::NoSuchObject.into() };
        let (node, due) = (found.node, found.due);
        let ran = self.wheel.is_armed(node) || due;
        self.retract(timer);
        self.wheel.disarm(node);
        Reply::ok(u32::from(ran))
    }

    pub(crate) fn delete_timer(&mut self, timer: TimerId) -> Reply {
        let reply = self.stop_timer(timer);
        if reply.status != CallStatus::Ok {
            return reply;
        }
        let found = &mut self.timers.slots[timer.index()];
        found.alive = false;
        found.missed = 0;
        found.overruns = 0;
        // A slot whose generations are used up is not used again, so no id ever means two timers.
        if let Some(generation) = found.generation.checked_add(1) {
            found.generation = generation;
            self.timers.free.push(timer.index);
        }
        Reply::OK
    }

    /// Forgets that a procedure is due.
    fn retract(&mut self, timer: TimerId) {
        if core::mem::take(&mut self.timers.slots[timer.index()].due) {
            self.timers.due.retain(|&due| due != timer);
        }
    }

    pub(crate) fn tick(&mut self, now: Moment) -> Reply {
        // Two callers may read the clock and then call in the opposite order: time does not go back.
        let now = now.max(self.wheel.turned());
        while let Some((owner, deadline)) = self.wheel.expire(now) {
            match owner {
                Owner::Task(index) => self.time_out(index),
                Owner::Timer(index) => self.go_off(index, deadline, now),
            }
        }
        Reply::ok(self.timers.due.len() as u32)
    }

    fn time_out(&mut self, index: u16) {
        let task = &mut self.tasks[usize::from(index)];
        // The wheel holds it no more.
        task.marks.set_timed(false);
        let waiting = task.waiting;
        let id = task.id(index);
        let status = if waiting == Waiting::Delay { CallStatus::Ok } else { CallStatus::TimedOut };
        self.leave(index);
        self.observer.timed_out(id);
        self.ready(index, status, 0);
    }

    fn go_off(&mut self, index: u16, deadline: Moment, now: Moment) {
        let timer = &mut self.timers.slots[usize::from(index)];
        let id = TimerId { index, generation: timer.generation };
        let mut missed = 0;
        if let Some(passed) = now.as_nanos().saturating_sub(deadline.as_nanos()).checked_div(timer.period_ns) {
            missed = passed;
            // The first deadline after now; none if it lies beyond the end of the clock.
            let ahead = missed.checked_add(1).and_then(|periods| periods.checked_mul(timer.period_ns));
            if let Some(next) = ahead.and_then(|ahead| deadline.as_nanos().checked_add(ahead)) {
                self.wheel.arm(timer.node, Moment::from_nanos(next));
            }
        }
        timer.deadline = deadline.after_nanos(missed.saturating_mul(timer.period_ns));
        if timer.due {
            missed += 1;
        } else {
            timer.due = true;
            self.timers.due.push_back(id);
        }
        timer.missed = timer.missed.saturating_add(missed);
        timer.overruns = timer.overruns.saturating_add(missed);
        self.observer.expired(id, missed);
    }

    pub(crate) fn next_timer(&mut self) -> Reply {
        match self.timers.due.pop_front() {
            None => CallStatus::Empty.into(),
            Some(id) => {
                self.timers.slots[id.index()].due = false;
                Reply::ok(id.number())
            }
        }
    }

    /// The expiry that the procedure of a timer gets; to be taken once, right after the timer was handed out.
    pub fn take_expiry(&mut self, timer: TimerId) -> Expired {
        match self.timer_mut(timer) {
            None => Expired::default(),
            Some(found) => Expired {
                deadline: found.deadline,
                missed: core::mem::take(&mut found.missed),
                overruns: found.overruns,
            },
        }
    }

    /// The slot of the timer that goes off next and the address of its record, if both are known, so that a back-end
    /// can prefetch the record. The address has no other use.
    pub fn coming_timer(&self) -> Option<(usize, *const ())> {
        match self.wheel.coming()? {
            Owner::Timer(index) => {
                let record: *const Timer = &raw const self.timers.slots[usize::from(index)];
                Some((usize::from(index), record.cast()))
            }
            Owner::Task(_) => None,
        }
    }

    /// Whether there is such a timer (still).
    pub fn is_timer(&self, timer: TimerId) -> bool {
        self.timers.slots.get(timer.index()).is_some_and(|t| t.alive && t.generation == timer.generation)
    }

    /// When a timer goes off next; none if it is stopped or gone.
    pub fn timer_deadline(&self, timer: TimerId) -> Option<Moment> {
        let found = self.timers.slots.get(timer.index())?;
        (found.alive && found.generation == timer.generation).then(|| self.wheel.deadline(found.node))?
    }
}
