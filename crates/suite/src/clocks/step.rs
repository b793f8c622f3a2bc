//! The smallest step of each clock: the smallest nonzero difference between two readings.

use hairspring_machine::{Clock, Machine};
use hairspring_sheet::{Absent, Method, Unit};

use crate::host::system::STEPS;
use crate::probe::{Context, Effort, Probes, Row, Samples, Setting, TableSlot, Taken};

/// Number of steps collected for each clock.
const STEPS_WANTED: usize = 1_000;

pub(super) fn table<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) -> TableSlot {
    probes.table(
        "clocks.step",
        "Smallest step",
        "at most 1,000 steps of each clock, and a hundredth of the chapter's time; a step below the cost of a read cannot be seen",
    )
}

pub(super) fn add<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>, table: TableSlot) {
    for &(segment, label, clock) in STEPS {
        let measures =
            format!("nonzero differences between successive readings of {label}: its step, or the cost of a reading");
        let row = Row::new(segment, label, Unit::Ns, Method::Derived, measures);
        probes.one(Setting::Pinned, table, row, move |context| {
            context.say(&format!("smallest step of {label}"));
            steps(context, clock)
        });
    }
}

/// The steps of a clock, or of the counter if none is named.
fn steps<M: Machine + Clone + Sync>(context: &Context<'_, M>, clock: Option<Clock>) -> Taken {
    let limit = context.share(if context.effort == Effort::Quick { 0.02 } else { 0.01 });
    let mut samples = Samples::new();
    let until = context.machine.monotonic() + limit;
    match clock {
        None => {
            let rate_ghz = context.timebase.calibration().rate_hz / 1e9;
            while samples.len() < STEPS_WANTED && context.machine.monotonic() < until {
                let before = context.timebase.stamp();
                let step = context.timebase.stamp().since(before);
                if step != 0 {
                    samples.push(step as f64 / rate_ghz);
                }
            }
        }
        Some(clock) => {
            let mut before = context.machine.read(clock);
            let mut looks = 0_u32;
            while samples.len() < STEPS_WANTED {
                let now = context.machine.read(clock);
                if now != before {
                    samples.push_nanos(now - before);
                    before = now;
                }
                looks += 1;
                if looks.is_multiple_of(64) && context.machine.monotonic() > until {
                    break;
                }
            }
        }
    }
    samples.taken(&Absent::new(
        format!("the clock did not step within {limit}"),
        "take the sheet with --thorough, which waits longer",
    ))
}
