//! Skew between the counters of two CPUs.

use hairspring_machine::{Machine, Nanos};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_time::Skew;

use crate::probe::{Context, Probes, Row, Samples, Setting, Taken};

/// The most pairs of CPUs; each takes about 10 ms.
const PAIRS_MOST: usize = 15;

pub(super) fn add<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) {
    let table = probes.table(
        "clocks.skew",
        "Agreement between CPUs",
        "at most 15 pairs of CPUs; 4,000 hand-overs each, the shortest is kept",
    );
    let row = |suffix, label, measures| Row::new(suffix, label, Unit::Ns, Method::Derived, measures);
    let offset = probes.row(
        table,
        row(
            "offset",
            "counter offset to first CPU",
            "offset between the counters of two CPUs by the four-stamp method; one sample for each further CPU",
        ),
    );
    let uncertainty = probes.row(
        table,
        row(
            "uncertainty",
            "uncertainty of that",
            "half of the shortest round trip between the two CPUs: the greatest error of the offset",
        ),
    );
    probes.several(Setting::AsStarted, [offset, uncertainty], move |context| {
        context.say("agreement between CPUs");
        let [of_offset, of_uncertainty] = skew(context);
        context.enter(offset, of_offset);
        context.enter(uncertainty, of_uncertainty);
    });
}

/// Offset and uncertainty of the permitted CPUs. The time base takes over the bound.
fn skew<M: Machine + Clone + Sync>(context: &mut Context<'_, M>) -> [Taken; 2] {
    let cpus = context.machine.affinity().0;
    let Some((&first, others)) = cpus.split_first().filter(|(_, others)| !others.is_empty()) else {
        let absent = Absent::new(
            "only one CPU may be used",
            "start it on more CPUs: `taskset -c 0-1 hairspring sheet`, or widen the cpuset of the container",
        );
        return [Err(absent.clone()), Err(absent)];
    };
    let (mut offset, mut uncertainty) = (Samples::new(), Samples::new());
    let mut failure = None;
    let mut bound = Nanos::ZERO;
    for &other in others.iter().take(PAIRS_MOST) {
        match Skew::measure(&context.timebase, first, other) {
            Ok(skew) => {
                offset.push_nanos(skew.offset);
                uncertainty.push_nanos(skew.uncertainty);
                bound = bound.max(skew.bound());
            }
            Err(error) => failure = Some(error.to_string()),
        }
    }
    if bound > Nanos::ZERO && failure.is_none() && others.len() <= PAIRS_MOST {
        context.timebase = context.timebase.clone().with_skew(bound);
    }
    let reason = failure.unwrap_or_else(|| "no pair of CPUs could be measured".to_owned());
    let empty = Absent::new(format!("failed to {reason}"), "take the sheet on a machine that is less busy");
    [offset.taken(&empty), uncertainty.taken(&empty)]
}
