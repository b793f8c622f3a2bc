//! Unwinds a task that was killed or ends itself, once and not again, and reports what ended a run.

use hairspring_exec_core::{CallStatus, Ending, Reply, TaskId};

use super::carrier::Carrier;
use super::fibers::Fibers;
use crate::report::{Misfortune, Mishap};
use crate::unwind::unwind_killed;

impl<M: Carrier> Fibers<M> {
    /// A killed task unwinds at its next call. If it is unwinding already, or must not, the call is made without
    /// waiting.
    #[cold]
    #[inline(never)]
    pub(super) fn killed(&self, me: TaskId, reply: Reply) -> Reply {
        if self.unwinds(me) {
            unwind_killed()
        }
        if reply.status == CallStatus::Blocked { CallStatus::Killed.into() } else { reply }
    }

    /// Notes that a task is about to unwind; false if it already does, because unwinding it again would end the
    /// process, and if it never may.
    ///
    /// A task that unwinds because it panicked does not announce it; only `panicking()` shows it. That flag belongs to
    /// the whole thread, so it counts only while no other fiber is known to unwind. (A task that panics while another
    /// one is in the middle of its unwinding, and is killed in one of its destructors, is taken for one that does not.)
    pub(super) fn unwinds(&self, me: TaskId) -> bool {
        if self.fiber(me).refuses.get() {
            return false;
        }
        let panics = std::thread::panicking() && self.unwinding.get() == 0;
        !self.note_unwinding(me) && !panics
    }

    /// Marks a fiber as unwinding; whether it was.
    pub(super) fn note_unwinding(&self, me: TaskId) -> bool {
        let noted = self.fiber(me).unwinding.replace(true);
        if !noted {
            self.unwinding.set(self.unwinding.get() + 1);
        }
        noted
    }

    /// A fiber gives the CPU away while some fiber unwinds. If none is known to, it is this one.
    #[cold]
    #[inline(never)]
    pub(super) fn note_panic(&self, me: TaskId) {
        if self.unwinding.get() == 0 {
            self.note_unwinding(me);
        }
    }

    /// The run of a task is over, and with it its unwinding.
    pub(super) fn forget_unwinding(&self, me: TaskId) {
        if self.fiber(me).unwinding.replace(false) {
            self.unwinding.set(self.unwinding.get() - 1);
        }
    }

    #[cold]
    pub(super) fn mishap(&self, me: TaskId, how: Ending, text: Option<String>, reply: Reply) {
        let name = self.fiber(me).name.clone();
        let mut finish = self.finish.borrow();
        if how != Ending::Returned && !self.stopping.get() {
            let what = Misfortune::Ended(how, text.unwrap_or_default());
            finish.add(Mishap { task: me, name: name.clone(), what });
        }
        if reply.status == CallStatus::ResourceHeld {
            finish.add(Mishap { task: me, name, what: Misfortune::HeldResources });
        }
    }
}
