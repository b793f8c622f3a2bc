//! The remarks below the chapter: method and settings, and how well the parts agree with the whole.

use hairspring_machine::Machine;

use super::bench::Bench;
use super::scenario::LINKS;
use crate::probe::{Context, Slot};

/// Method of measurement, and settings.
pub(super) fn conditions<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, bench: &Bench) {
    let checks = if hairspring_exec::CHECKS { "on" } else { "off" };
    let lto = if cfg!(debug_assertions) {
        "This is a debug build: the figures are those of unoptimised code."
    } else {
        "Built for release; whether with link-time optimisation, the flags in the head say."
    };
    context.remark(format!(
        "Parameter checks are {checks}; floating-point control words are saved for tasks that ask; trace off, hooks \
         off; messages have 12 bytes. {lto}"
    ));
    let rate = context.timebase.calibration().rate_hz / 1e9;
    context.remark(format!(
        "One tick of the counter is {:.4} ns: multiply by {rate:.4} for ticks. It counts in steps of {:.1} ns; a pair of stamps \
         shows {:.1} ns with nothing between, which is contained where a cell is stamped and stated beside it.",
        1.0 / rate,
        bench.step_ns,
        bench.pair_ns
    ));
    context.remark(format!(
        "A cell is stamped only where it takes at least ten such steps. Fibers with hot caches take less: there {LINKS} tasks \
         of ascending urgency trigger, wake or send to each other in a chain, in turns with the second half of that chain, and the \
         difference for each link is the figure."
    ));
    context.remark(
        "Fibers are preempted at calls and preempt_point() only. Code of the user that is wrapped around a call costs one \
         mispredicted return for each function between the task's body and the switch.",
    );
    context.remark(
        "Each sample has its proof: a number that the more urgent task writes and the less urgent one reads when its call has \
         returned. Samples without are dropped and counted as not preempted. On thread_smp the sender is not preempted: T1 \
         and T3 end where the receiver stamps them on its own CPU.",
    );
    context.remark(format!(
        "Interrupts come from a thread on another CPU: a write to a pipe for threads, Isp::post for fibers, which look at the \
         next call. Stamps of two CPUs agree within {}.",
        context.timebase.skew()
    ));
    context.remark(format!(
        "Dirty: {:.1} MiB are written before each event, or before each round of a closed loop, outside of what is timed. Loaded: a thread on another CPU streams \
         through 64 MiB.",
        bench.sweep_mib()
    ));
    context.remark(bench.canary.sentence());
}

/// The rows of wait/wake, hot and idle, on one executive: its name, T1 to T4, and the closed loop of all four.
pub(super) struct Residual {
    pub(super) name: &'static str,
    pub(super) split: [Slot; 4],
    pub(super) sum: Slot,
}

/// The difference between the sum of T1 to T4 and the closed loop of all four.
pub(super) fn residuals<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, executives: &[Residual]) {
    let mut parts = Vec::new();
    for Residual { name, split, sum } in executives {
        let median = |slot: Slot| context.median(slot);
        let split: Option<f64> = split.iter().copied().map(median).sum();
        if let (Some(split), Some(sum)) = (split, median(*sum)) {
            parts.push(format!(
                "{name}: {split:.0} ns split, {sum:.0} ns in the loop, {:+.0} %",
                (split / sum - 1.0) * 100.0
            ));
        }
    }
    if !parts.is_empty() {
        context.remark(format!(
            "Residual of wait/wake, hot and idle: T1+T2+T3+T4 measured apart against the closed loop of all four. {}.",
            parts.join("; ")
        ));
    }
}
