//! [`Ticker`]: periodic work without drift, in a task's own loop.

use hairspring_machine::{Instant, Nanos};

use super::services::Services;
use super::task::TaskCtx;
use crate::errors::DelayError;

/// The ticks `t0 + n·p` of a task's loop. Made by [`TaskCtx::ticker`].
///
/// ```
/// use hairspring_exec::{Backend, Create, ExecConfig, Executive, Nanos, Priority, RunLimit, Services};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut executive = Executive::new(Backend::sim(), &ExecConfig::default())?;
/// let period = Nanos::from_micros(100);
/// let sampler = executive.task("sampler", Priority::HIGHEST, move |ctx| {
///     let mut ticker = ctx.ticker(period).expect("it is more than zero");
///     let missed = [0, 50, 250, 0].map(|work_us| {
///         ctx.work(Nanos::from_micros(work_us));
///         ticker.next(ctx).expect("nobody breaks it off").missed
///     });
///     assert_eq!(missed, [0, 0, 1, 0]);
/// })?;
/// executive.trigger(sampler)?;
/// assert!(executive.run(RunLimit::Forever).clean());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Ticker {
    period: Nanos,
    /// The next tick, and its number.
    due: Instant,
    number: u64,
}

/// A tick that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tick {
    /// Its number, from 1.
    pub number: u64,
    /// When it was due.
    pub due: Instant,
    /// Ticks before it that passed while the task did something else.
    pub missed: u64,
    /// How long after it was due the task runs.
    pub late: Nanos,
}

impl Ticker {
    pub(super) fn new(first: Instant, period: Nanos) -> Self {
        Self { period, due: first, number: 1 }
    }

    /// Waits for the next tick. Of those that have passed meanwhile it returns the last, at once.
    ///
    /// # Errors
    /// [`DelayError`] names the reasons. The tick is still to come then.
    pub fn next(&mut self, ctx: &TaskCtx<'_>) -> Result<Tick, DelayError> {
        let passed = (ctx.now() - self.due).count() / self.period.count();
        let missed = u64::try_from(passed).unwrap_or(0);
        let number = self.number + missed;
        let due = self.due + Nanos::new(passed.max(0) * self.period.count());
        ctx.delay_until(due)?;
        (self.number, self.due) = (number + 1, due + self.period);
        Ok(Tick { number, due, missed, late: ctx.now() - due })
    }
}
