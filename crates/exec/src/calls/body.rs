//! The procedure of a task, and the lives it can lead: run after run on a fiber, or once for whoever asks.

use hairspring_exec_core::{Ending, TaskId};
use hairspring_machine::Host;

use super::task::TaskCtx;
use crate::engine::Ended;
use crate::fiber::Fibers;
use crate::host::ControlWords;
use crate::kernel::Kernel;
use crate::unwind::run_to_end;

/// Where a procedure runs.
enum Life<'l> {
    /// On a fiber of the host, until that is unwound.
    Fiber(&'l Fibers<Host>, TaskId, ControlWords),
    /// Once; how it ended is left here.
    Once(&'l TaskCtx<'l>, Option<Ended>),
}

/// Runs a procedure on a fiber of the host, start after start.
pub(crate) fn live_on_fiber(
    procedure: &mut impl FnMut(&TaskCtx<'_>),
    fibers: &Fibers<Host>,
    me: TaskId,
    control: ControlWords,
) {
    live(procedure, &mut Life::Fiber(fibers, me, control));
}

/// Runs a procedure once.
pub(crate) fn live_once(procedure: &mut impl FnMut(&TaskCtx<'_>), ctx: &TaskCtx<'_>) -> Ended {
    let mut life = Life::Once(ctx, None);
    live(procedure, &mut life);
    match life {
        Life::Once(_, Some(ended)) => ended,
        // A life on a fiber does not come here; a single one leaves its end.
        _ => (Ending::Killed, None),
    }
}

/// Runs a procedure, as often as its life has it.
///
/// One loop for both lives, never inlined, so that the procedure is called in one place and is compiled into it: between it and
/// the switch of fibers there is no call then, whose return the processor would predict wrongly after the switch (see
/// `Fibers::give_way`).
#[inline(never)]
fn live(procedure: &mut impl FnMut(&TaskCtx<'_>), life: &mut Life<'_>) {
    life.begin();
    loop {
        let ended = if life.is_to_run() {
            let ctx = life.ctx();
            run_to_end(|| procedure(&ctx))
        } else {
            (Ending::Killed, None)
        };
        if !life.goes_on(ended) {
            return;
        }
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
