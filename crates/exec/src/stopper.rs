//! [`Stopper`]: ends a run from any thread.

use std::fmt;
use std::sync::Arc;

/// The part of a back-end that it shares with threads that may end its run.
pub(crate) trait Halt: Send + Sync {
    /// Ends the run under way, or else the next one when it begins.
    fn halt(&self);
}

/// Ends the run of an executive, from any thread: that of a user interface, or one that waits for Ctrl-C.
///
/// A task that computes on a fiber goes on until its next call. A stop that comes between two runs ends the next one at
/// once; one that comes after the executive was dropped does nothing. Not for signal handlers.
///
/// ```
/// use hairspring_exec::{Backend, Create, ExecConfig, Executive, Nanos, Priority, RunLimit, Services, StopReason};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default())?;
/// let stopper = executive.stopper();
/// let task = executive.task("idle", Priority::LOWEST, |ctx| while ctx.delay(Nanos::from_millis(1)).is_ok() {})?;
/// executive.trigger(task)?;
/// let other = std::thread::spawn(move || stopper.stop());
/// assert_eq!(executive.run(RunLimit::Forever).stopped, StopReason::Asked);
/// # other.join().expect("it only stops");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Stopper(pub(crate) Arc<dyn Halt>);

impl Stopper {
    /// Ends the run.
    pub fn stop(&self) {
        self.0.halt();
    }
}

impl fmt::Debug for Stopper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stopper")
    }
}
