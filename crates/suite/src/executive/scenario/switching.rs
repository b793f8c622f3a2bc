//! The task switch, without the events that lead to it: a yield between two equal tasks, less a yield with nobody to yield
//! to.

use hairspring_sheet::Absent;

use super::waitwake::LOW;
use super::{Group, How, Scenario, quantity};
use crate::executive::bench::{Bench, Cache, Found, Rig, Sampled, proof_comes, sampling};
use crate::executive::port::{Ability, Calls, Port};

/// The table.
pub(super) fn group<P: Port>() -> Group {
    let measures = "yield between two equal tasks, less a yield with nobody to yield to";
    let quantities = vec![quantity("", "task switch", How::Diff, measures)];
    Group {
        segment: "task_switch",
        title: "Task switch without the events that lead to it",
        diagram: None,
        scenarios: vec![Scenario { quantities, run: |bench, cache| vec![task_switch::<P>(bench, cache)] }],
    }
}

/// The switch.
fn task_switch<P: Port>(bench: &Bench, cache: Cache) -> Found {
    let together = yields::<P>(bench, cache, true)?.series(0);
    let alone = yields::<P>(bench, cache, false)?.series(0);
    Ok(together.less(&alone))
}

/// What a yield takes, between two tasks or alone, less the stamps.
pub(crate) fn yields<P: Port>(bench: &Bench, cache: Cache, two: bool) -> Result<Sampled, Absent> {
    if let Some(absent) = P::unable(Ability::Yield) {
        return Err(absent);
    }
    let mut rig = Rig::<P>::new(bench)?;
    let rounds = bench.rounds(cache);
    let ((board, _), (clock, slice, tray), mut sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let pair = bench.pair_ns;
    let first = rig.port.spawn("P", LOW, async move |calls| {
        if two {
            // Until the other has begun.
            calls.yield_now().await;
            if !proof_comes::<P>(calls, &board, 1, &clock).await {
                calls.stop().await;
                return;
            }
        }
        sampling!(calls, (clock, slice, tray), samples: 1 => {
            sweep.sweep();
            let already = board.proof();
            let before = clock.stamp();
            for _ in 0..rounds {
                calls.yield_now().await;
            }
            let after = clock.stamp();
            let proven = !two || board.proof() == already + rounds;
            // There and back are two yields; with dirty caches only the way there is one.
            let taken = match (two, cache) {
                (false, _) => (clock.ns(after.since(before)) - pair) / rounds as f64,
                (true, Cache::Hot) => (clock.ns(after.since(before)) - pair) / (2 * rounds) as f64,
                (true, Cache::Dirty) => clock.ns(board.at(0).since(before)) - pair,
            };
            samples.push(proven, [taken]);
        });
    })?;
    if two {
        let (board, clock) = rig.share();
        let other = rig.port.spawn("Q", LOW, async move |calls| {
            let mut proof = 0;
            loop {
                if cache == Cache::Dirty {
                    board.mark(0, clock.stamp());
                }
                proof += 1;
                board.prove(proof);
                calls.yield_now().await;
            }
        })?;
        rig.port.start(other)?;
    }
    rig.run(first)
}
