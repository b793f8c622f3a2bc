//! Tasks that wait for futures.
//!
//! Problem: a waker can be called by any thread, often, late, and by code that the future itself runs; and a task has
//! one place to sleep.
//!
//! Solution: each task has a semaphore of its own for this, with room for one unit. A waker notes in its own flag that
//! it was called, and asks the back-end to give that semaphore a unit. The task sleeps until its flag is set, whoever
//! gave the unit. Why it works: the flag is set before the unit is given, and cleared before the future is polled.
//! Units that are left over only let a task look at its flag. So a late waker, one of another wait of the same task, or
//! one of a deleted task does nothing.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use hairspring_exec_core::{Call, SemaphoreId, TaskId, Until};

use super::services::{CallSite, Caller};
use super::task::{Limit, TaskCtx};
use crate::engine::Engine;
use crate::errors::{FutureError, accept, refusal};

/// The part of a back-end that wakers on any thread share.
pub(crate) trait Rouse: Send + Sync {
    /// Gives the semaphore of a task that waits for a future a unit.
    fn rouse(&self, task: TaskId);
}

/// The waker of one wait.
struct TaskWaker {
    back_end: Arc<dyn Rouse>,
    task: TaskId,
    called: AtomicBool,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Release pairs with the Acquire in `block_on`: the task sees what made its future go on.
        if !self.called.swap(true, Ordering::AcqRel) {
            self.back_end.rouse(self.task);
        }
    }
}

/// While it lives, a run does not end because nothing else could happen: another thread may still call the waker.
struct Expected<'k>(&'k dyn Engine);

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        self.0.expect_rouse(false);
    }
}

impl TaskCtx<'_> {
    /// Waits for a future: polls it in this task, on its stack, and sleeps between. Less urgent tasks run meanwhile.
    /// The future is dropped when the wait is over, however it ends; it need not be `Send`.
    ///
    /// The waker may be called by any thread, by tasks and procedures, and after the wait. It is not the kept wake of
    /// [`wait`](Self::wait). A call from a task or procedure on fibers takes effect at that task's next call. Not for
    /// signal handlers. With real time a run does not end while a task waits for a future; in virtual time it ends as
    /// [`Stuck`](crate::StopReason::Stuck) when nothing inside of it can call the waker.
    ///
    /// The first wait of a task allocates, and each allocates a waker: not real-time safe. In traces it is a wait for a
    /// semaphore.
    ///
    /// ```
    /// use hairspring_exec::{Backend, Create, ExecConfig, Executive, Limit, Priority, RunLimit, Services};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default())?;
    /// let mut answer = executive.spawn("computes", Priority::LOWEST, |_| 6 * 7)?;
    /// let task = executive.task("waits", Priority::HIGHEST, move |ctx| {
    ///     // Any future will do; the result of a task is one.
    ///     let doubled = async { (&mut answer).await.map(|answer| 2 * answer) };
    ///     assert_eq!(ctx.block_on(doubled, Limit::Forever), Ok(Ok(84)));
    /// })?;
    /// executive.trigger(task)?;
    /// assert!(executive.run(RunLimit::Forever).clean());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`FutureError`] names the reasons, each with what to do.
    pub fn block_on<F: Future>(&self, future: F, limit: Limit) -> Result<F::Output, FutureError> {
        let Caller { back_end, .. } = self.caller();
        let (engine, me) = (back_end.cold(), self.id());
        let until = self.until(limit);
        let semaphore = engine.future_line(me).map_err(refusal)?;
        let own = Arc::new(TaskWaker { back_end: engine.rouser(), task: me, called: AtomicBool::new(true) });
        let waker = Waker::from(Arc::clone(&own));
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        let _expected = Expected(engine);
        engine.expect_rouse(true);
        loop {
            // Acquire pairs with the Release in `wake_by_ref`.
            if !own.called.swap(false, Ordering::AcqRel) {
                self.wait_in_line(semaphore, until)?;
                continue;
            }
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return Ok(output);
            }
            // A future that always wakes itself gets no further than the limit, and others get the CPU.
            if matches!(until, Until::At(at) if at <= engine.now()) {
                return Err(FutureError::TimedOut);
            }
            // Relaxed: whether to poll again is asked above.
            if own.called.load(Ordering::Relaxed) {
                match self.wait_in_line(semaphore, Until::NoWait) {
                    Ok(()) | Err(FutureError::TimedOut) => self.yield_now(),
                    refused => refused?,
                }
            }
        }
    }

    fn wait_in_line(&self, semaphore: SemaphoreId, until: Until) -> Result<(), FutureError> {
        let Caller { back_end, by } = self.caller();
        accept(back_end.call(by, Call::WaitSemaphore { semaphore, until, at: None })).map(drop)
    }
}
