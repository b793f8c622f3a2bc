//! What one call costs: later calls by difference of loops, first calls by stamps after the caches were swept.

use std::hint::black_box;

use hairspring_machine::Machine;
use hairspring_sheet::{Absent, Method, Unit};

use super::Read;
use crate::host::system::READS;
use crate::probe::{Context, Probes, Reading, Row, Samples, Setting, TableSlot, Taken};

/// Calls in one batch: enough that the stamps at its ends weigh little, few enough that most batches are undisturbed.
const BATCH: u32 = 500;
/// Batches at most.
const BATCHES_MOST: usize = 400;
/// First calls that are timed.
const FIRST_CALLS: usize = 12;
/// What is swept through the caches before a first call: more than a private cache of any present CPU.
const SWEEP_BYTES: usize = 16 << 20;
/// A cache line.
const LINE_BYTES: usize = 64;

/// The tables of later and of first calls.
pub(super) fn tables<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) -> [TableSlot; 2] {
    let mut table = |title, limits| probes.table("clocks.read", title, limits);
    [
        table(
            "Cost of a later call",
            "at most 400 batches of 500 calls; disturbed batches are kept and show in the maximum",
        ),
        table("Cost of a first call", "12 calls; the pair of stamps is contained and stated as overhead"),
    ]
}

/// Two probes of each clock: the first calls, then the later ones.
pub(super) fn add<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>, [later, first]: [TableSlot; 2]) {
    for &(segment, label, read) in READS {
        let row = |quantity: &str, method, how: &str| {
            let measures = format!("cost of one call of {label}, {how}");
            Row::new(format!("{segment}.{quantity}"), label, Unit::Ns, method, measures)
        };
        let cold = row("first", Method::Stamp, "caches cold; the pair of stamps is contained");
        probes.one(Setting::Pinned, first, cold, move |context| {
            context.say(&format!("first calls of {label}"));
            Ok(first_calls(context, read).with_overhead(stamp_pair(context)))
        });
        let warm = row("later", Method::Diff, "caches warm: batches of calls less the empty loop");
        probes.one(Setting::Pinned, later, warm, move |context| {
            context.say(&format!("cost of {label}"));
            later_calls(context, read)
        });
    }
}

/// Runs `$body` with `$call` bound to a closure that makes one call, so that each kind of call is compiled into a loop of
/// its own and no choice is timed.
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

/// What is left of a call when there is nothing to call: the result is still made visible.
#[inline(always)]
fn empty_call() {
    black_box(0_u64);
}

fn later_calls<M: Machine + Clone + Sync>(context: &Context<'_, M>, read: Read) -> Taken {
    let until = context.machine.monotonic() + context.share(0.012);
    let mut empty_batches = Samples::new();
    for _ in 0..50 {
        empty_batches.push(ticks_as_nanos(context, batch(context, empty_call).0));
    }
    let empty = empty_batches.median().unwrap_or(0.0);
    let mut samples = Samples::new();
    with_call!(context, read, call => {
        batch(context, call);
        while samples.len() < BATCHES_MOST
            && (samples.len() < 20 || context.machine.monotonic() < until)
            && !context.stopped()
        {
            let (ticks, calls) = batch(context, call);
            samples.push((ticks_as_nanos(context, ticks) - empty) / f64::from(calls));
        }
    });
    samples.taken(&Absent::final_("no batch was timed"))
}

/// Times one batch of calls: its length in ticks, and the number of calls.
#[inline(always)]
fn batch<M: Machine + Clone + Sync>(context: &Context<'_, M>, call: impl Fn()) -> (i64, u32) {
    let start = context.timebase.stamp_ordered();
    for _ in 0..BATCH {
        call();
    }
    (context.timebase.stamp_ordered().since(start), BATCH)
}

fn ticks_as_nanos<M: Machine + Clone + Sync>(context: &Context<'_, M>, ticks: i64) -> f64 {
    ticks as f64 * 1e9 / context.timebase.calibration().rate_hz
}

fn first_calls<M: Machine + Clone + Sync>(context: &Context<'_, M>, read: Read) -> Reading {
    let mut sweep = vec![1_u8; SWEEP_BYTES];
    let mut samples = vec![0.0; context.repeats(FIRST_CALLS)];
    with_call!(context, read, call => for sample in &mut samples {
        for line in sweep.iter_mut().step_by(LINE_BYTES) {
            *line = line.wrapping_add(1);
        }
        black_box(&mut sweep);
        *sample = ticks_as_nanos(context, stamped(context, call));
    });
    Reading::samples(samples)
}

/// One call between ordered stamps.
#[inline(always)]
fn stamped<M: Machine + Clone + Sync>(context: &Context<'_, M>, call: impl Fn()) -> i64 {
    let start = context.timebase.stamp_ordered();
    call();
    context.timebase.stamp_ordered().since(start)
}

/// What a pair of ordered stamps shows with nothing between them, in nanoseconds.
fn stamp_pair<M: Machine + Clone + Sync>(context: &Context<'_, M>) -> f64 {
    let mut samples = Samples::new();
    for _ in 0..101 {
        samples.push(ticks_as_nanos(context, stamped(context, || {})));
    }
    samples.median().unwrap_or(0.0)
}
