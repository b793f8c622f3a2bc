//! The procedure of a task, and the lives it can lead: run after run on a fiber, or once for whoever asks.

use hairspring_exec_core::{Ending, TaskId};
use hairspring_machine::Host;

use crate::context::TaskCtx;
use crate::ending::run_to_end;
use crate::engine::Kernel;
use crate::fiber::Fibers;
use crate::host::ControlWords;

/// How a run ended, and what a panic said.
pub(crate) type Ended = (Ending, Option<String>);

/// Where a procedure runs.
pub(crate) enum Life<'l> {
    /// On a fiber of the host, until that is unwound.
    Fiber(&'l Fibers<Host>, TaskId, ControlWords),
    /// Once; how it ended is left here.
    Once(&'l TaskCtx<'l>, Option<Ended>),
}

/// The procedure of a task.
pub(crate) trait Body: Send {
    /// Runs it, as often as its life has it.
    fn live(&mut self, life: &mut Life<'_>);
}

impl<F: FnMut(&TaskCtx<'_>) + Send> Body for F {
    /// One loop for both lives, so that the procedure is called in one place and is compiled into it: between it and the
    /// switch of fibers there is no call then, whose return the processor would predict wrongly after the switch (see
    /// `Fibers::give_way`).
    fn live(&mut self, life: &mut Life<'_>) {
        life.begin();
        loop {
            let ended = if life.is_to_run() {
                let ctx = life.ctx();
                run_to_end(|| self(&ctx))
            } else {
                (Ending::Killed, None)
            };
            if !life.goes_on(ended) {
                return;
            }
        }
    }
}

/// Runs a procedure once.
pub(crate) fn live_once(body: &mut dyn Body, ctx: &TaskCtx<'_>) -> Ended {
    let mut life = Life::Once(ctx, None);
    body.live(&mut life);
    match life {
        Life::Once(_, Some(ended)) => ended,
        // A life on a fiber does not come here; a single one leaves its end.
        _ => (Ending::Killed, None),
    }
}

impl<'l> Life<'l> {
    #[inline(always)]
    fn begin(&self) {
        if let Self::Fiber(fibers, _, control) = self {
            fibers.begin_life(*control);
        }
    }

    #[inline(always)]
    fn ctx(&self) -> TaskCtx<'l> {
        match self {
            Self::Fiber(fibers, me, _) => TaskCtx::new(Kernel::Fiber(fibers), *me),
            Self::Once(ctx, _) => ctx.again(),
        }
    }

    #[inline(always)]
    fn is_to_run(&self) -> bool {
        match self {
            Self::Fiber(fibers, me, _) => fibers.is_to_run(*me),
            Self::Once(..) => true,
        }
    }

    #[inline(always)]
    fn goes_on(&mut self, ended: Ended) -> bool {
        match self {
            Self::Fiber(fibers, me, control) => fibers.end_of_run(*me, ended, *control),
            Self::Once(_, result) => {
                *result = Some(ended);
                false
            }
        }
    }
}
