//! [`Threshold`]: keeps other tasks off the CPU for a while.

use hairspring_exec_core::{Call, Priority};

use super::services::{CallSite, Caller};
use super::task::TaskCtx;

/// A preemption threshold: while it lives, only tasks more urgent than its priority preempt the task that has set it.
///
/// Made by [`TaskCtx::threshold`] and [`TaskCtx::lock_scheduler`]. Thresholds nest: dropping one restores the one
/// before, so the last is dropped first. The task runs, and becomes ready, at the priority of the threshold, if that is
/// more urgent than its own; it keeps that also while it waits. Interrupt and timer procedures run as ever, and what
/// they ready waits. On several CPUs the other CPUs run on.
///
/// ```
/// use hairspring_exec::{Backend, Create, ExecConfig, Executive, Priority, RunLimit, Services};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
/// let urgent = executive.task("urgent", Priority::HIGHEST, |_| ())?;
/// let careful = executive.task("careful", Priority::LOWEST, move |ctx| {
///     let calm = ctx.lock_scheduler();
///     ctx.trigger(urgent).expect("it is idle");
///     // It has not run yet, and runs before the next line is done.
///     drop(calm);
/// })?;
/// executive.trigger(careful)?;
/// assert!(executive.run(RunLimit::Forever).clean());
/// # Ok(())
/// # }
/// ```
#[must_use = "a threshold that is dropped at once holds nothing off"]
pub struct Threshold<'c, 'k> {
    ctx: &'c TaskCtx<'k>,
    before: Priority,
}

impl<'k> TaskCtx<'k> {
    /// Lets only tasks more urgent than `priority` preempt this one, until the guard is dropped. A threshold that is
    /// less urgent than the one in force changes nothing. Real-time safe; with threads two system calls.
    pub fn threshold(&self, priority: Priority) -> Threshold<'_, 'k> {
        let mut before = Priority::LOWEST;
        let Caller { back_end, .. } = self.caller();
        back_end.cold().inspect(&mut |core| before = core.task(self.id()).map_or(before, |(view, ..)| view.threshold));
        self.set_threshold(priority.min(before));
        Threshold { ctx: self, before }
    }

    /// Lets no other task preempt this one, until the guard is dropped: the scheduler's lock.
    pub fn lock_scheduler(&self) -> Threshold<'_, 'k> {
        self.threshold(Priority::HIGHEST)
    }

    /// Sets the threshold of this task without a guard, and returns the one before; [`Priority::LOWEST`] is none. It
    /// ends with the run at the latest. For languages without guards.
    pub fn set_threshold(&self, priority: Priority) -> Priority {
        let Caller { back_end, by } = self.caller();
        let reply = back_end.cold().call(by, Call::SetThreshold { priority });
        u8::try_from(reply.value).ok().and_then(Priority::new).unwrap_or(Priority::LOWEST)
    }
}

impl Drop for Threshold<'_, '_> {
    fn drop(&mut self) {
        self.ctx.set_threshold(self.before);
    }
}
