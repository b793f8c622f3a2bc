//! What one call costs: later calls by difference of loops, first calls by stamps after the caches were swept.

use std::hint::black_box;

use hairspring_machine::{Clock, Machine};
use hairspring_sheet::{Absent, Figure, Method, Unit};

use super::Read;
use crate::context::Context;
use crate::host::system::READS;
use crate::samples::Samples;

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

pub(super) fn measure<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) {
    let mut sweep = Vec::new();
    let pair = stamp_pair(context);
    for &(segment, label, read) in READS {
        let first = format!("clocks.read.{segment}.first");
        if context.wants(&first) {
            context.say(&format!("first calls of {label}"));
            if sweep.is_empty() {
                sweep = vec![1_u8; SWEEP_BYTES];
            }
            let figure = first_calls(context, read, &mut sweep).with_overhead(pair);
            context.put(&first, figure);
        }
        let later = format!("clocks.read.{segment}.later");
        if context.wants(&later) {
            context.say(&format!("cost of {label}"));
            match later_calls(context, read) {
                Ok(figure) => context.put(&later, figure),
                Err(absent) if !context.stopped() => context.absent(&later, absent),
                Err(_) => {}
            }
        }
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

fn later_calls<M: Machine + Clone + Sync>(context: &Context<'_, M>, read: Read) -> Result<Figure, Absent> {
    let until = context.machine.read(Clock::Monotonic) + context.share(0.012);
    let mut empty_batches = Samples::new();
    for _ in 0..50 {
        empty_batches.push(ticks_as_nanos(context, batch(context, empty_call).0));
    }
    let empty = empty_batches.median().unwrap_or(0.0);
    let mut samples = Samples::new();
    with_call!(context, read, call => {
        batch(context, call);
        while samples.len() < BATCHES_MOST
            && (samples.len() < 20 || context.machine.read(Clock::Monotonic) < until)
            && !context.stopped()
        {
            let (ticks, calls) = batch(context, call);
            samples.push((ticks_as_nanos(context, ticks) - empty) / f64::from(calls));
        }
    });
    samples.figure(Method::Diff, &Absent::final_("no batch was timed"))
}

/// One batch of calls: its length in ticks, and how many calls it had.
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

fn first_calls<M: Machine + Clone + Sync>(context: &Context<'_, M>, read: Read, sweep: &mut [u8]) -> Figure {
    let mut samples = [0.0; FIRST_CALLS];
    with_call!(context, read, call => for sample in &mut samples {
        for line in sweep.iter_mut().step_by(LINE_BYTES) {
            *line = line.wrapping_add(1);
        }
        black_box(&mut *sweep);
        *sample = ticks_as_nanos(context, stamped(context, call));
    });
    Figure::from_samples(Unit::Ns, Method::Stamp, &mut samples)
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
