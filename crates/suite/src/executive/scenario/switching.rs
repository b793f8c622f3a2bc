//! The task switch alone: the time that a second task adds to the yields of the first.

use hairspring_machine::Ticks;
use hairspring_sheet::Absent;

use super::waitwake::LOW;
use super::{Group, How, Scenario, quantity};
use crate::executive::bench::{Bench, Cache, Found, Rig, Sampled, proof_comes, sampling};
use crate::executive::port::{Ability, Calls, Port};
use crate::probe::spin;

/// The table.
pub(super) fn group<P: Port>() -> Group {
    let measures = "yield between two equal tasks; with hot caches less a yield without another task, with dirty ones from the call until \
                    the other task runs";
    let quantities = vec![quantity("", "task switch", How::Diff, measures)];
    Group {
        segment: "task_switch",
        title: "Task switch without the events that lead to it",
        diagram: None,
        scenarios: vec![Scenario { quantities, run: |bench, cache| vec![task_switch::<P>(bench, cache)] }],
    }
}

/// Measures the switch: with hot caches the time that two tasks add to the yields of one, in turns; with dirty ones a
/// stamped yield.
fn task_switch<P: Port>(bench: &Bench, cache: Cache) -> Found {
    if cache == Cache::Dirty {
        return yields::<P>(bench, cache).map(|taken| taken.series(0));
    }
    if let Some(absent) = P::unable(Ability::Yield).or_else(|| P::unable(Ability::Wake)) {
        return Err(absent);
    }
    let mut rig = Rig::<P>::new(bench)?;
    let (board, _) = rig.share();
    let other = rig.port.spawn("Q", LOW, async move |calls| {
        let mut proof = 0;
        loop {
            // Without this ability there is no task to yield to.
            while board.at(0) != Ticks::new(1) {
                calls.wait().await;
            }
            proof += 1;
            board.prove(proof);
            calls.yield_now().await;
        }
    })?;
    rig.port.start(other)?;
    let ((board, _), (clock, slice, tray), rounds) = (rig.share(), rig.measuring(), bench.rounds);
    let first = rig.port.spawn("P", LOW, async move |calls| {
        // The other task reaches its wait.
        calls.yield_now().await;
        sampling!(calls, (clock, slice, tray), samples: 1 => {
            let mut times = [0.0; 4];
            let mut proven = true;
            for (time, together) in times.iter_mut().zip([false, true, true, false]) {
                if together && board.at(0) != Ticks::new(1) {
                    board.mark(0, Ticks::new(1));
                    calls.wake(other).await;
                } else if !together && board.at(0) == Ticks::new(1) {
                    board.mark(0, Ticks::new(0));
                    calls.yield_now().await;
                }
                let already = board.proof();
                // With both tasks, each yield is answered by one of the other task.
                let yields = if together { rounds } else { 2 * rounds };
                let before = clock.stamp();
                for _ in 0..yields {
                    calls.yield_now().await;
                }
                // The slope counts two events per round.
                spin(0, if together { 2 * rounds } else { 0 });
                *time = clock.ns_since(before);
                proven &= board.proof() == already + if together { rounds } else { 0 };
            }
            samples.push_slope(proven, 2 * rounds, [times]);
        });
    })?;
    rig.run(first).map(|taken| taken.series(0))
}

/// The time of a yield between two tasks: a round trip is two.
pub(crate) fn yields<P: Port>(bench: &Bench, cache: Cache) -> Result<Sampled, Absent> {
    if let Some(absent) = P::unable(Ability::Yield) {
        return Err(absent);
    }
    let mut rig = Rig::<P>::new(bench)?;
    let rounds = bench.rounds(cache);
    let ((board, _), (clock, slice, tray), sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let first = rig.port.spawn("P", LOW, async move |calls| {
        // Waits until the other task has begun.
        calls.yield_now().await;
        if !proof_comes::<P>(calls, &board, 1, &clock).await {
            calls.stop().await;
            return;
        }
        sampling!(calls, (clock, slice, tray), samples: 1 => {
            sweep.sweep();
            let already = board.proof();
            let before = clock.stamp();
            for _ in 0..rounds {
                calls.yield_now().await;
            }
            spin(0, 2 * rounds);
            let after = clock.stamp();
            let proven = board.proof() == already + rounds;
            match cache {
                Cache::Hot => samples.push_mean(proven, 2 * rounds, [clock.ns(after.since(before))]),
                // Only the switch to the other task meets dirty caches.
                Cache::Dirty => samples.push(proven, [clock.ns(board.at(0).since(before))]),
            }
        });
    })?;
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
    rig.run(first)
}
