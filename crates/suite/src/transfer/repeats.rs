//! Number of repeats of a cell, and the length of one repeat.

use std::ops::ControlFlow;

use hairspring_machine::Nanos;
use hairspring_time::{Machine, Timebase};

use crate::interleaving::{Turn, interleave};
use crate::probe::{Context, Effort};

/// Number of repeats in this round of the sheet.
pub(super) fn rounds<M: Machine + Clone + Sync>(context: &Context<'_, M>) -> usize {
    context.repeats(all(context.effort))
}

/// Number of repeats in all.
pub(super) fn all(effort: Effort) -> usize {
    match effort {
        Effort::Quick => 5,
        Effort::Normal => 7,
        Effort::Thorough => 15,
    }
}

/// Gives each cell its turn in each round, until the run is interrupted; reports progress before each round. `false`
/// after an interruption.
pub(super) fn in_turns<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    what: &str,
    rounds: usize,
    cells: usize,
    mut take: impl FnMut(&mut Context<'_, M>, Turn) -> ControlFlow<()>,
) -> bool {
    interleave(rounds, cells, |turn| {
        if turn.first {
            context.say(&format!("{what}, round {} of {rounds}", turn.round + 1));
        }
        if context.stopped() { ControlFlow::Break(()) } else { take(context, turn) }
    })
    .is_continue()
}

/// Time of a call.
pub(super) fn timed<M: Machine>(timebase: &Timebase<M>, call: impl FnOnce()) -> Nanos {
    let before = timebase.stamp_ordered();
    call();
    timebase.nanos(timebase.stamp_ordered().since(before))
}

/// Number of calls that together take about `span`; at least one.
pub(super) fn tuned<M: Machine>(timebase: &Timebase<M>, span: Nanos, mut call: impl FnMut(u64)) -> u64 {
    let mut times = 1_u64;
    loop {
        // The quicker of two: a disturbance would make the repeats too short for the resolution of a pair of stamps.
        let took = timed(timebase, || call(times)).min(timed(timebase, || call(times)));
        if took * 8 >= span {
            let factor = span.count() as f64 / took.count().max(1) as f64;
            return ((times as f64 * factor) as u64).max(1);
        }
        times = times.saturating_mul(4);
    }
}

#[cfg(test)]
mod tests {
    use hairspring_time::Host;

    use super::*;

    #[test]
    fn a_disturbance_while_repeats_are_tuned_does_not_make_them_shorter() {
        let timebase = Timebase::calibrate(Host).expect("a time base");
        let mut calls = 0;
        let times = tuned(&timebase, Nanos::from_millis(1), |times| {
            calls += 1;
            if calls == 1 {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            (0..times).for_each(|_| std::hint::black_box(()));
        });
        assert!(times > 100, "{times}");
    }
}
