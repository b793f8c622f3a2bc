//! [`Quiet`]: a thread whose timers the kernel does not delay on purpose.

use hairspring_machine::{Machine, Nanos, Policy};

/// The least timer slack, in force while this lives; the former one comes back at the end.
///
/// Not a [`Held`](hairspring_machine::Held) wish, which allocates and locks: nothing else of the thread runs meanwhile, so what
/// was found is what is to be in force at the end.
pub(crate) struct Quiet<'m, M: Machine> {
    machine: &'m M,
    /// The thread's policy, read on the way.
    pub(crate) policy: Policy,
    slack: Option<Nanos>,
}

impl<'m, M: Machine> Quiet<'m, M> {
    pub(crate) fn begin(machine: &'m M) -> Self {
        let policy = machine.policy();
        // Real-time policies have no slack.
        let slack = matches!(policy, Policy::Other | Policy::Unknown(_)).then(|| machine.timer_slack());
        if slack.is_some() {
            machine.set_timer_slack(Nanos::new(1));
        }
        Self { machine, policy, slack }
    }
}

impl<M: Machine> Drop for Quiet<'_, M> {
    fn drop(&mut self) {
        if let Some(slack) = self.slack {
            self.machine.set_timer_slack(slack);
        }
    }
}
