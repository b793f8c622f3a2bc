//! Floating-point control words: rounding, exception masks, flush to zero.
//!
//! Problem: they belong to a task, the ABI makes them callee-saved, and reading them takes as long as the rest of a
//! switch. Solution: all code runs with the default words, those of the caller of `run`. A task that wants others asks
//! first. Then its switches save its words and put the default in force, and its next run begins with the default
//! again.

use hairspring_exec_core::TaskId;

use super::carrier::Carrier;
use super::fibers::Fibers;
use super::switch::SwitchBack;
use crate::host::ControlWords;

impl<M: Carrier> Fibers<M> {
    /// From now on this run has control words of its own.
    pub(super) fn keep_control(&self, me: TaskId) {
        if !self.fiber(me).keeps_control.replace(true) {
            self.keepers.set(self.keepers.get() + 1);
        }
    }

    /// Gives the CPU away while some tasks keep words of their own.
    #[cold]
    #[inline(never)]
    pub(super) fn give_way_with_keepers(&self, me: TaskId, waits: bool, back: SwitchBack) {
        let own = self.fiber(me).keeps_control.get().then(ControlWords::read);
        if let Some(own) = own {
            self.default_control.get().put_in_force(own);
        }
        self.switch_away(me, waits, back);
        if let Some(own) = own {
            own.put_in_force(self.default_control.get());
        }
    }

    /// A run is over, and with it the words that it may have kept.
    #[cold]
    #[inline(never)]
    pub(super) fn drop_control(&self, me: TaskId) {
        if self.fiber(me).keeps_control.replace(false) {
            self.keepers.set(self.keepers.get() - 1);
            self.default_control.get().put_in_force(ControlWords::read());
        }
    }
}
