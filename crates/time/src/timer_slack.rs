//! [`LeastSlack`]: a thread whose timers the kernel does not delay on purpose.

use hairspring_machine::{Machine, Nanos, Policy};

/// Sets the least timer slack while it exists, and restores the former slack when it is dropped.
///
/// It is not a [`Held`](hairspring_machine::Held) wish, because that allocates and locks. No other code of the thread
/// runs while it exists, so restoring the slack that it found is right.
pub(crate) struct LeastSlack<'m, M: Machine> {
    machine: &'m M,
    /// The thread's policy when this began.
    pub(crate) policy: Policy,
    slack: Option<Nanos>,
}

impl<'m, M: Machine> LeastSlack<'m, M> {
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

impl<M: Machine> Drop for LeastSlack<'_, M> {
    fn drop(&mut self) {
        if let Some(slack) = self.slack {
            self.machine.set_timer_slack(slack);
        }
    }
}
