//! Scheduler hooks: a program's own observer of every decision, on any back-end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hairspring_exec_core::{Ending, Observer, Priority, ResourceId, TaskId, TimerId, Waiting};

use crate::fiber::attention::Attention;

/// The core's observer that passes everything on to the program's, if there is one.
#[derive(Default)]
pub(crate) struct HookObserver {
    pub(crate) hooks: Option<Box<dyn Observer + Send>>,
    /// Payload of a hook's panic. After it the hooks are called no more.
    pub(crate) burst: Option<Box<dyn Any + Send>>,
    /// The engine that learns of it.
    attention: Option<Arc<Attention>>,
}

impl HookObserver {
    pub(crate) fn new(attention: Option<Arc<Attention>>) -> Self {
        Self { hooks: None, burst: None, attention }
    }

    /// Calls the hooks. The core is in the middle of a call: a panic must not leave it there.
    #[cold]
    #[inline(never)]
    fn tell(&mut self, what: impl FnOnce(&mut dyn Observer)) {
        let Some(hooks) = &mut self.hooks else { return };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| what(hooks.as_mut()))) {
            self.burst = Some(payload);
            // Its destructor may panic too, and is no hook.
            if let Some(hooks) = self.hooks.take() {
                let _ = catch_unwind(AssertUnwindSafe(|| drop(hooks)));
            }
            if let Some(attention) = &self.attention {
                attention.burst();
            }
        }
    }
}

/// Passes the core's events on only if there is an observer.
macro_rules! passed_on {
    ($($(#[$inline:meta])? fn $name:ident($($argument:ident: $kind:ty),+);)+) => {
        $($(#[$inline])? fn $name(&mut self, $($argument: $kind),+) {
            if self.hooks.is_some() {
                // Moved, so that on the way without hooks the values stay in registers.
                self.tell(move |hooks| hooks.$name($($argument),+));
            }
        })+
    };
}

impl Observer for HookObserver {
    passed_on! {
        #[inline(always)]
        fn readied(task: TaskId);
        #[inline(always)]
        fn started(task: TaskId);
        #[inline(always)]
        fn stopped(task: TaskId, waiting: Waiting);
        fn timed_out(task: TaskId);
        #[inline(always)]
        fn ended(task: TaskId, how: Ending);
        fn priority(task: TaskId, effective: Priority);
        fn owned(resource: ResourceId, owner: Option<TaskId>);
        fn expired(timer: TimerId, missed: u64);
    }
}
