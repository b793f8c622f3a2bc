//! Cost of one call: later calls by the difference of two loops, calls after flushing by stamps after a sweep of the
//! caches, and the first call of a process by stamps in fresh processes.

use std::cell::OnceCell;
use std::hint::black_box;
use std::rc::Rc;

use hairspring_machine::Machine;
use hairspring_sheet::{Absent, Method, Unit};

use super::{Read, first};
use crate::caches::CacheSweep;
use crate::host::system::READS;
use crate::interleaving::median;
use crate::probe::{Context, Probes, Reading, Row, Setting, Slopes, TableSlot, Taken, spin};

/// Calls by which the two loops differ: enough to make a step of the counter small, few enough that most loops are
/// undisturbed. The shorter loop makes this many calls, the longer one twice as many.
const CALLS: u32 = 250;
/// Pairs of loops at most.
const SLOPES_MOST: usize = 400;
/// Calls after flushing that are timed in each round: where a call finds its lines varies from one to the next.
const FLUSHED_CALLS: usize = 12;
/// Sweeps after which the pair of stamps alone is timed, in each round.
const FLUSHED_PAIRS: usize = 9;
/// Bytes swept through the caches before a call: more than a private cache of any present CPU.
const SWEEP_BYTES: usize = 16 << 20;

/// The tables of later calls, of calls after flushing, and of first calls.
pub(super) fn tables<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) -> [TableSlot; 3] {
    let mut table = |title, limits| probes.table("clocks.read", title, limits);
    [
        table(
            "Cost of a later call",
            "at most 400 pairs of loops with 250 and with 500 calls; disturbed loops are kept and show in the maximum",
        ),
        table(
            "Cost of a call after flushing",
            "12 calls in each round; the pair of stamps is contained and stated as overhead",
        ),
        table(
            "Cost of the first call in a process",
            "20 processes, each of which makes one call; it includes the pair of stamps, stated as overhead",
        ),
    ]
}

/// Probes of each clock: calls after flushing, the later ones, and the first ones of processes.
pub(super) fn add<M: Machine + Clone + Sync + 'static>(
    probes: &mut Probes<M>,
    [later, flushed, first]: [TableSlot; 3],
) {
    let flushing = Rc::new(OnceCell::new());
    for &(segment, label, read) in READS {
        let row = |quantity: &str, method, how: &str| {
            let measures = format!("cost of one call of {label}, {how}");
            Row::new(format!("{segment}.{quantity}"), label, Unit::Ns, method, measures)
        };
        let how =
            "after a sweep of 16 MiB of other data through the caches; page tables and branch predictors stay warm";
        let flushing = Rc::clone(&flushing);
        probes.one(Setting::Pinned, flushed, row("flushed", Method::Stamp, how), move |context| {
            context.say(&format!("calls of {label} after flushing"));
            Ok(flushing.get_or_init(|| Flushing::new(context)).calls(context, read))
        });
        let how = "with warm caches: what each further call adds to a loop of calls, with the loop's own step";
        probes.one(Setting::Pinned, later, row("later", Method::Diff, how), move |context| {
            context.say(&format!("cost of {label}"));
            later_calls(context, read)
        });
        if read.has_first() {
            let how =
                "the first in a fresh process, whose pages may not be mapped yet; for Timebase, after its calibration";
            probes.one(Setting::Pinned, first, row("first", Method::Stamp, how), move |context| {
                context.say(&format!("first calls of {label}"));
                first::calls(context, segment)
            });
        }
    }
}

/// Runs `$body` with `$call` bound to a closure that makes one call, so that each kind of call is compiled into its own
/// loop without a branch on the kind.
macro_rules! with_call {
    ($context:expr, $read:expr, $call:ident => $body:expr) => {{
        let (machine, timebase) = (&$context.machine, &$context.timebase);
        match $read {
            Read::Counter => {
                let $call = || {
                    black_box(machine.ticks());
                };
                $body
            }
            Read::CounterOrdered => {
                let $call = || {
                    black_box(machine.ticks_ordered());
                };
                $body
            }
            Read::Now => {
                let $call = || {
                    black_box(timebase.now());
                };
                $body
            }
            Read::NowOrdered => {
                let $call = || {
                    black_box(timebase.now_ordered());
                };
                $body
            }
            Read::Call(kind) => {
                let $call = || machine.call(kind);
                $body
            }
        }
    }};
}

fn later_calls<M: Machine + Clone + Sync>(context: &Context<'_, M>, read: Read) -> Taken {
    let until = context.machine.monotonic() + context.share(0.012);
    let mut slopes = Slopes::new(f64::from(CALLS), SLOPES_MOST);
    with_call!(context, read, call => {
        timed_loop(context, 2 * CALLS, call);
        while slopes.len() < SLOPES_MOST
            && (slopes.len() < 10 || context.machine.monotonic() < until)
            && !context.stopped()
        {
            slopes.take(|more| timed_loop(context, if more { 2 * CALLS } else { CALLS }, call));
        }
    });
    if slopes.len() == 0 {
        return Err(Absent::final_("no loop was timed"));
    }
    Ok(Reading::difference(slopes))
}

/// The time of a loop of calls in nanoseconds. One function for all lengths, so that both loops run the same code.
#[inline(never)]
fn timed_loop<M: Machine + Clone + Sync>(context: &Context<'_, M>, calls: u32, call: impl Fn()) -> f64 {
    let start = context.timebase.stamp_ordered();
    for _ in 0..calls {
        call();
    }
    spin(0, u64::from(calls));
    ticks_as_nanos(context, context.timebase.stamp_ordered().since(start))
}

fn ticks_as_nanos<M: Machine + Clone + Sync>(context: &Context<'_, M>, ticks: i64) -> f64 {
    ticks as f64 * 1e9 / context.timebase.calibration().rate_hz
}

/// Parameters that all calls after flushing share.
struct Flushing {
    sweep: CacheSweep,
    /// Time between two adjacent stamps with equally cold caches.
    pair_ns: f64,
}

impl Flushing {
    fn new<M: Machine + Clone + Sync + 'static>(context: &Context<'_, M>) -> Self {
        // A simulated machine has no caches.
        let sweep = if context.host_timebase().is_some() { CacheSweep::new(SWEEP_BYTES) } else { CacheSweep::none() };
        let pairs = (0..FLUSHED_PAIRS).map(|_| {
            sweep.sweep();
            ticks_as_nanos(context, stamped(context, || {}))
        });
        let pair_ns = median(&pairs.collect::<Vec<_>>());
        Self { sweep, pair_ns }
    }

    fn calls<M: Machine + Clone + Sync>(&self, context: &Context<'_, M>, read: Read) -> Reading {
        let mut samples = vec![0.0; FLUSHED_CALLS];
        with_call!(context, read, call => for sample in &mut samples {
            self.sweep.sweep();
            *sample = ticks_as_nanos(context, stamped(context, call));
        });
        Reading::samples(samples).with_overhead(self.pair_ns)
    }
}

/// One call between ordered stamps.
#[inline(always)]
fn stamped<M: Machine + Clone + Sync>(context: &Context<'_, M>, call: impl Fn()) -> i64 {
    let start = context.timebase.stamp_ordered();
    call();
    context.timebase.stamp_ordered().since(start)
}
