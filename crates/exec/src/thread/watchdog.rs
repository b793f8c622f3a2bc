//! The watchdog: a task that uses the CPU for too long without a call loses its real-time priority, so that a mistake
//! does not take the machine away from its users. So a run that is to end does end, whatever its tasks do.
//!
//! It runs above everything and relies on no task: a stretch is the CPU time that the kernel counted for a thread since
//! the number of its calls changed last.

use hairspring_machine::{Host, Machine, Nanos, Policy};

use super::bands::WATCHDOG;
use super::mirror::{KERNEL_PLACE, WATCHDOG_PLACE};
use super::state::{Phase, State};
use super::threads::Threads;
use crate::report::{Misfortune, StopReason};
use crate::system::clock::monotonic;
use crate::system::scheduling::{cpu_time_of, own_number, set_policy_of};

/// The longest stretch of a task that an ending run waits for.
const MOST_PATIENCE: Nanos = Nanos::from_secs(1);
/// Looks in the time that it allows: a stretch is noticed at most a quarter of that late.
const LOOKS: i64 = 4;
/// Times the patience without any progress before the watchdog waits for no task any more: more urgent programs on the
/// same CPU may keep all tasks from it for a while.
const STILLNESS: i64 = 4;
/// The shortest time between two looks.
const LEAST_PAUSE: Nanos = Nanos::from_millis(1);

/// State of the watchdog between two looks.
struct Watch {
    /// A longer stretch is a runaway; none: it does not watch.
    limit: Option<Nanos>,
    /// The same while a run is ending.
    patience: Nanos,
    /// Time of the last progress seen, in nanoseconds of the monotonic clock.
    progress_ns: u64,
    /// The run that was seen last, and when it was seen first.
    run: u64,
    begun_ns: u64,
    /// The run was ending at the last look.
    was_ending: bool,
    kernel: (u64, Nanos),
}

impl Threads {
    /// Body of the watchdog's thread.
    pub(super) fn watch(&self) {
        self.shared.take_cpus();
        // A refusal was found when the executive was made.
        let _ = Host.set_policy(WATCHDOG);
        let place = self.shared.places.at(WATCHDOG_PLACE);
        place.settle_in(own_number());
        let limit = Some(self.shared.watchdog).filter(|&limit| limit > Nanos::ZERO);
        let patience = limit.unwrap_or(MOST_PATIENCE).min(MOST_PATIENCE);
        let mut watch =
            Watch { limit, patience, progress_ns: 0, run: 0, begun_ns: 0, was_ending: false, kernel: (0, Nanos::ZERO) };
        let pause = Nanos::new(patience.count() / LOOKS).max(LEAST_PAUSE);
        loop {
            let mut state = self.shared.lock.hold();
            state.core.observer.awake(WATCHDOG_PLACE);
            if state.leaving {
                self.shared.release(state);
                return;
            }
            let until = if state.phase == Phase::Closed {
                None
            } else {
                watch.look(&mut state);
                Some(monotonic().after_nanos(pause.count().cast_unsigned()))
            };
            place.forbid();
            self.shared.release(state);
            place.doze(until);
        }
    }
}

impl Watch {
    fn look(&mut self, state: &mut State) {
        let ending = state.phase == Phase::Ending;
        let limit = if ending { Some(self.patience) } else { self.limit };
        let now_ns = monotonic().as_nanos();
        if std::mem::replace(&mut self.run, state.run) != state.run {
            self.begun_ns = now_ns;
            self.was_ending = false;
        }
        if !std::mem::replace(&mut self.was_ending, ending) {
            self.progress_ns = now_ns;
        }
        for index in 0..state.core.observer.seats.len() {
            let seat = &mut state.core.observer.seats[index];
            if !seat.busy || seat.abandoned {
                continue;
            }
            let place = state.places.at(seat.place);
            let calls = place.calls();
            let Some(used) = cpu_time_of(place.thread()) else { continue };
            if calls != seat.seen.0 {
                seat.seen = (calls, used);
                self.progress_ns = now_ns;
                continue;
            }
            let stretch = used - seat.seen.1;
            if limit.is_none_or(|limit| stretch < limit) {
                continue;
            }
            if !seat.demoted {
                self.progress_ns = now_ns;
                state.demote(index, stretch);
            }
            if ending {
                state.abandon(index);
            }
        }
        self.look_at_kernel(state, limit);
        if state.opening && now_ns - self.begun_ns > (self.patience * STILLNESS).count().cast_unsigned() {
            // The kernel thread is in a timer procedure of an earlier run, which never returned.
            state.weakened = true;
            state.end_run(StopReason::TimeUp);
        }
        // No task computes, none makes a call, and still not all have unwound: one sleeps in the system.
        let still = Nanos::new(i64::try_from(now_ns - self.progress_ns).unwrap_or(i64::MAX));
        if ending && still > self.patience * STILLNESS {
            state.give_up(still);
        }
    }

    /// A timer procedure that runs away: the kernel thread is demoted, for good.
    fn look_at_kernel(&mut self, state: &mut State, limit: Option<Nanos>) {
        let place = state.places.at(KERNEL_PLACE);
        let Some(used) = cpu_time_of(place.thread()).filter(|_| state.serving) else { return };
        if place.calls() != self.kernel.0 {
            self.kernel = (place.calls(), used);
        } else if limit.is_some_and(|limit| used - self.kernel.1 >= limit) {
            set_policy_of(place.thread(), Policy::Other);
            state.weakened = true;
        }
    }
}

impl State {
    fn demote(&mut self, index: usize, stretch: Nanos) {
        self.weakened = true;
        let seat = &mut self.core.observer.seats[index];
        seat.demoted = true;
        let (task, thread) = (seat.task, self.places.at(seat.place).thread());
        if self.granted {
            set_policy_of(thread, Policy::Other);
        }
        self.mishap(task, Misfortune::RanAway(stretch));
    }

    /// Stops waiting for a task that does not unwind. Its thread is left behind; should it ever make a call, it
    /// unwinds.
    fn abandon(&mut self, index: usize) {
        self.weakened = true;
        let mirror = &mut self.core.observer;
        let seat = &mut mirror.seats[index];
        seat.abandoned = true;
        mirror.busy -= 1;
        if std::mem::take(&mut seat.may_run) {
            mirror.runnable -= 1;
        }
        self.look_for_end();
    }

    /// Stops waiting for the threads that are left.
    fn give_up(&mut self, still: Nanos) {
        for index in 0..self.core.observer.seats.len() {
            let seat = &self.core.observer.seats[index];
            if seat.busy && !seat.abandoned {
                self.demote(index, still);
                self.abandon(index);
            }
        }
        self.serving = false;
        self.look_for_end();
    }
}
