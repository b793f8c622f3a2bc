//! The task switch, without the events that lead to it: a yield between two equal tasks, less a yield with nobody to yield
//! to.

use hairspring_sheet::{Absent, Method, Unit, Value};

use super::bench::{Bench, Cache, Rig, Samples, Taken, proof_comes};
use super::port::{Ability, Calls, Port};
use super::waitwake::{LOW, ROUNDS};

/// The switch.
pub(crate) fn task_switch<P: Port>(bench: &Bench, cache: Cache) -> Value {
    let both = yields::<P>(bench, cache, true)
        .and_then(|together| yields::<P>(bench, cache, false).map(|alone| (together, alone)));
    match both {
        Ok((together, alone)) => together.less(alone.median(0).unwrap_or(0.0)).value(0, Unit::Ns, Method::Diff, bench),
        Err(absent) => Value::Absent(absent),
    }
}

/// What a yield takes, between two tasks or alone, less the stamps.
pub(crate) fn yields<P: Port>(bench: &Bench, cache: Cache, two: bool) -> Result<Taken, Absent> {
    if let Some(absent) = P::unable(Ability::Yield) {
        return Err(absent);
    }
    let mut rig = Rig::<P>::new(bench)?;
    let rounds = if cache == Cache::Hot { ROUNDS } else { 1 };
    let ((board, _), (clock, slice, tray), mut sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let pair = bench.pair_ns;
    let first = rig.port.spawn("P", LOW, async move |calls| {
        let mut samples = Samples::new(1);
        if two {
            // Until the other has begun.
            calls.yield_now().await;
            if !proof_comes::<P>(calls, &board, 1, &clock).await {
                calls.stop().await;
                return;
            }
        }
        let end = clock.after(slice);
        while end.since(clock.stamp()) > 0 && !samples.is_full() {
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
        }
        tray.put(samples);
        calls.stop().await;
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
