//! The procedure of a task. It runs start after start on a fiber, or once per call on another back-end.

use std::marker::PhantomData;

use hairspring_exec_core::{Priority, TaskId};
use hairspring_machine::Host;

use super::task::TaskCtx;
use crate::back_end::BackEnd;
use crate::engine::{Ended, Unusual};
use crate::fiber::{Fibers, SwitchBack};
use crate::objects::Mailbox;
use crate::unwind::run_to_end;

/// The code of a task for one run.
///
/// A trait and not a closure, because a closure cannot be marked for inlining into its caller.
pub(crate) trait Body {
    fn run(&mut self, ctx: &TaskCtx<'_>);
}

/// The body of a task that is started by triggers.
pub(crate) struct Triggered<F>(pub(crate) F);

impl<F: FnMut(&TaskCtx<'_>)> Body for Triggered<F> {
    #[inline(always)]
    fn run(&mut self, ctx: &TaskCtx<'_>) {
        self.0(ctx);
    }
}

/// The body of a task that is started by messages.
pub(crate) struct Mailed<M, F> {
    pub(crate) home: u32,
    pub(crate) body: F,
    pub(crate) message: PhantomData<M>,
}

impl<M: Copy, F: FnMut(&TaskCtx<'_>, Mailbox<M>, M)> Body for Mailed<M, F> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn run(&mut self, ctx: &TaskCtx<'_>) {
        // A run that was started by a trigger has no message and nothing to do.
        if let Some(message) = ctx.started_with::<M>() {
            (self.body)(ctx, Mailbox::new(ctx.id(), self.home), message);
        }
    }
}

/// How a procedure runs.
enum Life<'l> {
    /// On a fiber of the host, until the fiber is unwound.
    Fiber(&'l Fibers<Host>, TaskId, SwitchBack),
    /// Once; its end is stored here.
    Once(&'l TaskCtx<'l>, Option<Ended>),
}

/// Runs a procedure on a fiber of the host, start after start, each run under this threshold if there is one.
pub(crate) fn live_on_fiber(procedure: &mut impl Body, calm: Option<Priority>, fibers: &Fibers<Host>, me: TaskId) {
    live(procedure, calm, &mut Life::Fiber(fibers, me, fibers.way_back(me)));
}

/// Runs a procedure once.
pub(crate) fn live_once(procedure: &mut impl Body, calm: Option<Priority>, ctx: &TaskCtx<'_>) -> Ended {
    let mut life = Life::Once(ctx, None);
    live(procedure, calm, &mut life);
    match life {
        Life::Once(_, Some(ended)) => ended,
        // A life on a fiber does not come here; a single one leaves its end.
        _ => Err(Unusual::killed()),
    }
}

/// Runs a procedure: start after start on a fiber, else once.
///
/// One loop for all cases, never inlined, so that the procedure has one caller and is inlined into it. Then no call
/// lies between the procedure and the switch of fibers, whose return the processor would mispredict after the switch
/// (see `Fibers::give_way`).
#[inline(never)]
fn live(procedure: &mut impl Body, calm: Option<Priority>, life: &mut Life<'_>) {
    loop {
        let ended = if life.is_to_run() {
            let ctx = life.ctx();
            run_to_end(|| {
                if let Some(threshold) = calm {
                    keep_calm(&ctx, threshold);
                }
                procedure.run(&ctx);
            })
        } else {
            Err(Unusual::killed())
        };
        if !life.goes_on(ended) {
            return;
        }
    }
}

/// Sets the threshold of a run. The end of the run sets it back.
#[cold]
#[inline(never)]
fn keep_calm(ctx: &TaskCtx<'_>, threshold: Priority) {
    ctx.set_threshold(threshold);
}

impl<'l> Life<'l> {
    #[inline(always)]
    fn ctx(&self) -> TaskCtx<'l> {
        match self {
            Self::Fiber(fibers, me, back) => TaskCtx::new(BackEnd::Fiber(fibers, *back), *me),
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
            Self::Fiber(fibers, me, back) => fibers.end_of_run(*me, ended, *back),
            Self::Once(_, result) => {
                *result = Some(ended);
                false
            }
        }
    }
}
