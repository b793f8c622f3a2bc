//! Chapter *Clocks*: cost, resolution and accuracy of each clock.

mod calibration;
mod cost;
mod first;
mod skew;
mod step;

use hairspring_machine::{ClockCall, Machine};

use crate::probe::{Context, Probes};

/// A way to read the time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Read {
    Counter,
    CounterOrdered,
    Now,
    NowOrdered,
    Call(ClockCall),
}

/// The probes of the chapter. The tables stand in reading order; a calibration comes first and is judged last, when its
/// baseline has grown.
pub(crate) fn probes<M: Machine + Clone + Sync + 'static>() -> Probes<M> {
    let mut probes = Probes::new(
        "clocks",
        "Clocks",
        "Cost, resolution and accuracy of each clock. The cost of a later call is what it adds to a loop. Calls after flushing are timed one \
         by one, after 16 MiB of other data went through the caches. First calls are made by fresh processes.",
    );
    probes.needs_core();
    probes.before(trust_notes);
    let costs = cost::tables(&mut probes);
    let steps = step::table(&mut probes);
    let calibration = calibration::Calibrations::declare(&mut probes);
    calibration.fresh(&mut probes);
    cost::add(&mut probes, costs);
    step::add(&mut probes, steps);
    skew::add(&mut probes);
    calibration.grown(&mut probes);
    probes
}

/// Makes the first call of this process to a clock, and returns its time in the form for the rows of first calls.
///
/// # Errors
/// No such clock; no time base.
pub(crate) fn first_call(segment: &str) -> Result<String, String> {
    first::call(segment)
}

/// States why the counter is trusted, or not.
fn trust_notes<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) {
    let trust = context.timebase.trust().clone();
    let because: Vec<&str> =
        trust.reasons.iter().filter(|r| r.supports == trust.trusted).map(|r| r.text.as_str()).collect();
    if trust.trusted {
        context.remark(format!("The counter is trusted: {}.", because.join("; ")));
    } else {
        context.warn(format!("The counter is not trusted: {}.", because.join("; ")), None);
    }
}
