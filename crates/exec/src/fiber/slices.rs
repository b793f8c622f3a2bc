//! Time slices among equals: a timer that runs while tasks do.
//!
//! The timer is an ordinary one of the core that goes off once. Its procedure ends the slice and starts it again. The
//! carrier starts it when it begins to run tasks and stops it before it sleeps, so an idle executive is not woken by
//! it, and a run still ends when nothing can happen any more. Nothing of this is on the way of a call.

use hairspring_exec_core::{By, Call};

use super::carrier::Carrier;
use super::fibers::Fibers;

impl<M: Carrier> Fibers<M> {
    /// Starts the slice, if slices are wanted and none runs.
    #[inline]
    pub(super) fn begin_slice(&self) {
        if self.slice.get().is_some() && !self.stopping.get() {
            self.start_slice();
        }
    }

    #[cold]
    fn start_slice(&self) {
        let Some((timer, slice_ns)) = self.slice.get() else { return };
        if self.core.borrow().timer_deadline(timer).is_none() {
            let at = self.machine.moment().after_nanos(slice_ns);
            self.apply(By::Kernel, Call::StartTimer { timer, at, period_ns: 0 });
        }
    }

    /// Stops the slice: no task is ready.
    pub(super) fn pause_slice(&self) {
        if let Some((timer, _)) = self.slice.get()
            && self.core.borrow().timer_deadline(timer).is_some()
        {
            self.apply(By::Kernel, Call::StopTimer { timer });
        }
    }
}
