//! Time slices among equals: a timer that runs while two or more tasks may.
//!
//! The core decides which task goes behind its equals. Linux keeps a queue of its own for each priority, in which a
//! thread that is made ordinary and real-time again goes to the end. The kernel thread does both under the lock, above
//! all tasks.

use hairspring_exec_core::{By, Call, CallStatus, TaskId};
use hairspring_machine::Policy;

use super::bands::policy_of;
use super::state::{Phase, State};
use super::threads::Threads;
use crate::system::clock::monotonic;
use crate::system::scheduling::set_policy_of;

impl Threads {
    pub(super) fn end_time_slice(&self) {
        let mut state = self.shared.lock.hold();
        if state.phase == Phase::Running {
            state.end_slice();
            state.begin_slice();
        }
        self.shared.release(state);
    }
}

impl State {
    /// Starts the slice, if slices are wanted, two tasks may run, and none runs.
    #[cold]
    pub(super) fn begin_slice(&mut self) {
        let Some((timer, slice_ns)) = self.slice else { return };
        let wanted = self.phase == Phase::Running && self.core.observer.runnable > 1;
        if wanted && self.core.timer_deadline(timer).is_none() {
            let at = monotonic().after_nanos(slice_ns);
            self.apply(By::Kernel, Call::StartTimer { timer, at, period_ns: 0 });
            self.look_ahead();
        }
    }

    /// Stops the slice.
    pub(super) fn pause_slice(&mut self) {
        if let Some((timer, _)) = self.slice
            && self.core.timer_deadline(timer).is_some()
        {
            self.apply(By::Kernel, Call::StopTimer { timer });
        }
    }

    fn end_slice(&mut self) {
        let reply = self.apply(By::Kernel, Call::EndSlice);
        if reply.status != CallStatus::Ok || !self.granted {
            // Ordinary threads get slices from Linux.
            return;
        }
        let Some(seat) = self.core.observer.seat_of(TaskId::from_number(reply.value)) else { return };
        if !seat.demoted {
            let (place, applied) = (seat.place, seat.applied);
            let thread = self.places.at(place).thread();
            set_policy_of(thread, Policy::Other);
            set_policy_of(thread, policy_of(applied));
        }
    }
}
