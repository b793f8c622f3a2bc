//! [`Join`]: the result of a task that runs once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use hairspring_exec_core::{Call, Priority, TaskId};

use crate::calls::{CallSite, Caller, Create, Limit, TaskCtx};
use crate::errors::{CreateError, JoinError, accept};
use crate::system::sync::whole;

/// The right to the result of a task that [`Create::spawn`] started. A task whose result is taken by a task's
/// [`wait`](Self::wait) is deleted with it.
///
/// It is a future, too: code on any thread and any executor awaits the end of the task. So an async program waits for
/// anything that a task can wait for: it spawns a task that does. A future that got the result leaves the task, idle; a
/// task may delete it by its [id](Self::task). The end of the task calls the waker in the task's thread. The end of the
/// task and the polling thread use one lock, for some nanoseconds each. The lock does not inherit priority: a polling
/// thread that loses its CPU then holds up the end of the task.
///
/// ```
/// use hairspring_exec::{Backend, Create, ExecConfig, Executive, Limit, Priority, RunLimit, Services};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut executive = Executive::new(Backend::fiber(), &ExecConfig::default())?;
/// let ready = executive.semaphore(1, 1)?;
/// let taken = executive.spawn("takes", Priority::HIGHEST, move |ctx| ctx.wait_semaphore(ready, Limit::Forever).is_ok())?;
/// # fn block_on<F: Future>(future: F) -> F::Output {
/// #     struct Unpark(std::thread::Thread);
/// #     impl std::task::Wake for Unpark {
/// #         fn wake(self: std::sync::Arc<Self>) { self.0.unpark() }
/// #     }
/// #     let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
/// #     let mut future = std::pin::pin!(future);
/// #     loop {
/// #         match future.as_mut().poll(&mut std::task::Context::from_waker(&waker)) {
/// #             std::task::Poll::Ready(output) => return output,
/// #             std::task::Poll::Pending => std::thread::park(),
/// #         }
/// #     }
/// # }
/// // Another thread, with an executor of its own.
/// let elsewhere = std::thread::spawn(move || block_on(async { taken.await }));
/// executive.run(RunLimit::Forever);
/// assert_eq!(elsewhere.join().expect("it only waits"), Ok(true));
/// # Ok(())
/// # }
/// ```
pub struct Join<R: Send + 'static> {
    task: TaskId,
    home: u32,
    outcome: Arc<std::sync::Mutex<Outcome<R>>>,
}

/// Outcome of the run. The task writes it before its end, and all others read it after that.
struct Outcome<R> {
    result: Option<R>,
    /// The run is over, or will never be.
    over: bool,
    /// The waker of the future that was polled last.
    waker: Option<Waker>,
}

/// The task's end of it. Dropped without a result by a run that is killed or panics, and with a task that never runs.
struct Teller<R>(Arc<std::sync::Mutex<Outcome<R>>>);

impl<R> Teller<R> {
    fn tell(&self, result: Option<R>) {
        let mut outcome = whole(&self.0);
        if outcome.over {
            return;
        }
        (outcome.result, outcome.over) = (result, true);
        let waker = outcome.waker.take();
        // Code of the program: not under the lock.
        drop(outcome);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<R> Drop for Teller<R> {
    fn drop(&mut self) {
        self.tell(None);
    }
}

impl<R: Send + 'static> Join<R> {
    pub(crate) fn new(
        site: &(impl Create + ?Sized),
        name: &str,
        priority: Priority,
        body: impl FnOnce(&TaskCtx<'_>) -> R + Send + 'static,
    ) -> Result<Self, CreateError> {
        let outcome = Arc::new(std::sync::Mutex::new(Outcome { result: None, over: false, waker: None }));
        let mut job = Some((Teller(Arc::clone(&outcome)), body));
        let task = site.task(name, priority, move |ctx| {
            // A second start finds nothing to do.
            if let Some((teller, body)) = job.take() {
                let result = body(ctx);
                teller.tell(Some(result));
            }
        })?;
        let Caller { back_end, by } = site.caller();
        back_end.call(by, Call::Trigger { task });
        Ok(Self { task, home: back_end.home(), outcome })
    }

    /// The task.
    pub fn task(&self) -> TaskId {
        self.task
    }

    /// Waits for the end of the task, and takes its result.
    ///
    /// # Errors
    /// [`JoinError`] names the reasons, each with what to do.
    pub fn wait(&mut self, ctx: &TaskCtx<'_>, limit: Limit) -> Result<R, JoinError> {
        let Caller { back_end, by } = ctx.caller();
        if back_end.home() != self.home {
            return Err(JoinError::NoSuchObject);
        }
        let ended = accept::<JoinError>(back_end.call(by, Call::Join { task: self.task, until: ctx.until(limit) }));
        // An earlier wait took the result and deleted the task.
        let result = self.take().ok_or_else(|| ended.err().unwrap_or(JoinError::Empty))?;
        // It stays if it was triggered again.
        let _ = ctx.delete_task(self.task);
        Ok(result)
    }

    /// The result, if the task has ended with one and it has not been taken. For the program after a run, too.
    pub fn take(&mut self) -> Option<R> {
        whole(&self.outcome).result.take()
    }
}

impl<R: Send + 'static> Future for Join<R> {
    /// [`JoinError::Empty`] for a run that was killed or panicked, for a task that is gone without having run, and for
    /// a result that was taken before.
    type Output = Result<R, JoinError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = context.waker().clone();
        let mut outcome = whole(&self.outcome);
        if outcome.over {
            return Poll::Ready(outcome.result.take().ok_or(JoinError::Empty));
        }
        let former = outcome.waker.replace(waker);
        // Code of the program, as that of the clone above: not under the lock.
        drop(outcome);
        drop(former);
        Poll::Pending
    }
}
