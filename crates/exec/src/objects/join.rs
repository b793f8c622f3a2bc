//! [`Join`]: the result of a task that runs once.

use std::sync::Arc;

use hairspring_exec_core::{Call, Priority, TaskId};

use crate::calls::{CallSite, Caller, Create, Limit, TaskCtx};
use crate::errors::{CreateError, JoinError, accept};
use crate::system::sync::whole;

/// The right to the result of a task that [`Create::spawn`] started. A task whose result is taken by a task is deleted with it.
pub struct Join<R: Send + 'static> {
    task: TaskId,
    home: u32,
    /// The task writes it before its end, and everybody else reads it after that.
    result: Arc<std::sync::Mutex<Option<R>>>,
}

impl<R: Send + 'static> Join<R> {
    pub(crate) fn new(
        site: &(impl Create + ?Sized),
        name: &str,
        priority: Priority,
        body: impl FnOnce(&TaskCtx<'_>) -> R + Send + 'static,
    ) -> Result<Self, CreateError> {
        let result = Arc::new(std::sync::Mutex::new(None));
        let (theirs, mut body) = (Arc::clone(&result), Some(body));
        let task = site.task(name, priority, move |ctx| {
            // A second start finds nothing to do.
            if let Some(body) = body.take() {
                let result = body(ctx);
                *whole(&theirs) = Some(result);
            }
        })?;
        let Caller { back_end, by } = site.caller();
        back_end.call(by, Call::Trigger { task });
        Ok(Self { task, home: back_end.home(), result })
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

    /// The result, if the task has ended with one and nobody has taken it. For the program after a run, too.
    pub fn take(&mut self) -> Option<R> {
        whole(&self.result).take()
    }
}
