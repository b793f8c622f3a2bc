//! Wait and wake: B triggers A, which waits; B wakes it; it ends.
//!
//! On threads each T is a pair of stamps. On fibers a T is a few nanoseconds, less than a stamp can tell, and a closed loop
//! gives only sums, for each switch to A has its switch back. So a chain splits them: tasks of ascending urgency, each of
//! which triggers (wakes) the next, with stamps at both ends.
//!
//! ```text
//!   B ─ stamp ─ trigger ─► A1 ─ trigger ─► A2 ─ … ─► Ak ─ stamp        k · T1
//!   B ─ stamp ◄─── ends ── A1 ◄─── ends ── A2 ◄ … ── Ak ─ stamp        k · T4
//! ```
//! The same with wake down (T3) and wait up (T2).

use hairspring_sheet::{Absent, Method, Unit, Value};

use super::bench::{Bench, Cache, Rig, Samples, Taken, all_absent, chained, proof_comes};
use super::port::{Ability, Calls, Port, Urgency};

/// Tasks of a chain: few enough for the first-level cache, where their stacks share sets, and for the processor's stack of
/// predicted returns; enough for some hundred nanoseconds.
pub(crate) const LINKS: u8 = 8;
/// The urgency of the most urgent task of a scenario.
pub(crate) const HIGH: Urgency = 16;
/// The urgency of the least urgent one, which measures.
pub(crate) const LOW: Urgency = 48;
/// Rounds of a closed loop between two stamps, where caches are hot.
pub(crate) const ROUNDS: u64 = 32;

const QUANTITIES: [&str; 4] = ["t1", "t2", "t3", "t4"];

/// The split: by stamps, or with hot caches by chains where calls are too short for stamps.
pub(crate) fn split<P: Port>(bench: &Bench, cache: Cache) -> Vec<(&'static str, Value)> {
    if let Some(absent) = P::unable(Ability::Wake) {
        return all_absent(QUANTITIES, &absent);
    }
    let starts = P::unable(Ability::Trigger);
    if chained::<P>(cache) && starts.is_none() {
        return match (chain_of_triggers::<P>(bench), chain_of_wakes::<P>(bench)) {
            (Ok(mut triggers), Ok(mut wakes)) => {
                let value = |taken: &mut Taken, index| taken.value(index, Unit::Ns, Method::Diff, bench);
                vec![
                    ("t1", value(&mut triggers, 0)),
                    ("t2", value(&mut wakes, 1)),
                    ("t3", value(&mut wakes, 0)),
                    ("t4", value(&mut triggers, 1)),
                ]
            }
            (Err(absent), _) | (_, Err(absent)) => all_absent(QUANTITIES, &absent),
        };
    }
    let taken = if starts.is_none() { stamped::<P>(bench, cache) } else { stamped_wakes::<P>(bench, cache) };
    match taken {
        Ok(mut taken) => {
            let values = QUANTITIES.into_iter().enumerate().map(|(index, quantity)| {
                let unable = match quantity {
                    // What returns to a caller that was never preempted is no switch.
                    "t2" | "t4" => P::unable(Ability::PreemptsCaller),
                    _ => None,
                };
                let unable = unable.or_else(|| starts.clone().filter(|_| matches!(quantity, "t1" | "t4")));
                let value = unable.map_or_else(|| taken.value(index, Unit::Ns, Method::Stamp, bench), Value::Absent);
                (quantity, value)
            });
            values.collect()
        }
        Err(absent) => all_absent(QUANTITIES, &absent),
    }
}

/// Each T as a pair of stamps.
fn stamped<P: Port>(bench: &Bench, cache: Cache) -> Result<Taken, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let preempts = P::unable(Ability::PreemptsCaller).is_none();
    let ((board, clock), mut sweep) = (rig.share(), bench.sweep(cache));
    let mut proof = 0;
    let high = rig.port.spawn("A", HIGH, async move |calls| {
        board.mark(0, clock.stamp());
        proof += 1;
        board.prove(proof);
        sweep.sweep();
        board.mark(1, clock.stamp());
        calls.wait().await;
        board.mark(2, clock.stamp());
        proof += 1;
        board.prove(proof);
        sweep.sweep();
        board.mark(3, clock.stamp());
    })?;

    let ((board, _), (clock, slice, tray), mut sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let low = rig.port.spawn("B", LOW, async move |calls| {
        let mut samples = Samples::new(4);
        let end = clock.after(slice);
        let mut proof = 0;
        while end.since(clock.stamp()) > 0 && !samples.is_full() {
            sweep.sweep();
            let b0 = clock.stamp();
            calls.trigger(high).await;
            let b1 = clock.stamp();
            proof += 1;
            let started = board.proof() == proof;
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
            let (a0, a1) = (board.at(0), board.at(1));
            if !preempts {
                clock.settle(cache);
            }
            sweep.sweep();
            let b2 = clock.stamp();
            calls.wake(high).await;
            let b3 = clock.stamp();
            proof += 1;
            let woken = board.proof() == proof;
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
            if !preempts {
                clock.settle(cache);
            }
            let (a2, a3) = (board.at(2), board.at(3));
            let values = [a0.since(b0), b1.since(a1), a2.since(b2), b3.since(a3)].map(|ticks| clock.ns(ticks));
            samples.push(started && woken || !preempts, values);
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    rig.run(low)
}

/// T3 and T2 alone, in a loop of wakes, where tasks cannot be triggered.
fn stamped_wakes<P: Port>(bench: &Bench, cache: Cache) -> Result<Taken, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let preempts = P::unable(Ability::PreemptsCaller).is_none();
    let ((board, clock), mut sweep) = (rig.share(), bench.sweep(cache));
    let high = rig.port.spawn("A", HIGH, async move |calls| {
        let mut proof = 0;
        loop {
            calls.wait().await;
            board.mark(0, clock.stamp());
            proof += 1;
            board.prove(proof);
            sweep.sweep();
            board.mark(1, clock.stamp());
        }
    })?;
    rig.port.start(high)?;

    let ((board, _), (clock, slice, tray), mut sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let low = rig.port.spawn("B", LOW, async move |calls| {
        let mut samples = Samples::new(4);
        clock.settle(cache);
        let end = clock.after(slice);
        let mut proof = 0;
        while end.since(clock.stamp()) > 0 && !samples.is_full() {
            sweep.sweep();
            let b2 = clock.stamp();
            calls.wake(high).await;
            let b3 = clock.stamp();
            proof += 1;
            let woken = board.proof() == proof;
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
            let (there, back) = (clock.ns(board.at(0).since(b2)), clock.ns(b3.since(board.at(1))));
            samples.push(woken || !preempts, [there, back, there, back]);
            if !preempts {
                clock.settle(cache);
            }
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    rig.run(low)
}

/// T1 down and T4 up a chain of triggers.
fn chain_of_triggers<P: Port>(bench: &Bench) -> Result<Taken, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let mut next = None;
    for link in 0..LINKS {
        let (board, clock) = rig.share();
        let mut proof = 0;
        next = Some(rig.port.spawn("A", HIGH + link, async move |calls| {
            if let Some(next) = next {
                calls.trigger(next).await;
            } else {
                board.mark(0, clock.stamp());
                proof += 1;
                board.prove(proof);
                board.mark(1, clock.stamp());
            }
        })?);
    }
    let Some(first) = next else { return Err(Absent::final_("a chain has no links")) };
    let ((board, _), (clock, slice, tray), pair) = (rig.share(), rig.measuring(), bench.pair_ns);
    let low = rig.port.spawn("B", LOW, async move |calls| {
        let mut samples = Samples::new(2);
        let end = clock.after(slice);
        let mut proof = 0;
        while end.since(clock.stamp()) > 0 && !samples.is_full() {
            let before = clock.stamp();
            calls.trigger(first).await;
            let after = clock.stamp();
            proof += 1;
            let proven = board.proof() == proof;
            let per_link = |ticks| (clock.ns(ticks) - pair) / f64::from(LINKS);
            samples.push(proven, [per_link(board.at(0).since(before)), per_link(after.since(board.at(1)))]);
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    rig.run(low)
}

/// T3 down and T2 up a chain of wakes.
fn chain_of_wakes<P: Port>(bench: &Bench) -> Result<Taken, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let mut next = None;
    for link in 0..LINKS {
        let (board, clock) = rig.share();
        let mut proof = 0;
        let task = rig.port.spawn("A", HIGH + link, async move |calls| {
            loop {
                calls.wait().await;
                if let Some(next) = next {
                    calls.wake(next).await;
                } else {
                    board.mark(0, clock.stamp());
                    proof += 1;
                    board.prove(proof);
                    board.mark(1, clock.stamp());
                }
            }
        })?;
        rig.port.start(task)?;
        next = Some(task);
    }
    let Some(first) = next else { return Err(Absent::final_("a chain has no links")) };
    let ((board, _), (clock, slice, tray), pair) = (rig.share(), rig.measuring(), bench.pair_ns);
    let low = rig.port.spawn("B", LOW, async move |calls| {
        let mut samples = Samples::new(2);
        let end = clock.after(slice);
        let mut proof = 0;
        while end.since(clock.stamp()) > 0 && !samples.is_full() {
            let before = clock.stamp();
            calls.wake(first).await;
            let after = clock.stamp();
            proof += 1;
            let proven = board.proof() == proof;
            let per_link = |ticks| (clock.ns(ticks) - pair) / f64::from(LINKS);
            samples.push(proven, [per_link(board.at(0).since(before)), per_link(after.since(board.at(1)))]);
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    rig.run(low)
}

/// One quantity of a closed loop, or why there is none.
pub(crate) fn closed<P: Port>(bench: &Bench, cache: Cache, with_trigger: bool) -> Result<Taken, Absent> {
    let unable = P::unable(Ability::Wake).or_else(|| P::unable(Ability::Trigger).filter(|_| with_trigger));
    if let Some(absent) = unable {
        return Err(absent);
    }
    if with_trigger { all_four::<P>(bench, cache) } else { wake_and_wait::<P>(bench, cache) }
}

fn rounds(cache: Cache) -> u64 {
    if cache == Cache::Hot { ROUNDS } else { 1 }
}

/// The closed loop of trigger, wait, wake and end, less the stamps around it. The proofs stay in: they are a nanosecond.
fn all_four<P: Port>(bench: &Bench, cache: Cache) -> Result<Taken, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let (board, _) = rig.share();
    let mut proof = 0;
    let high = rig.port.spawn("A", HIGH, async move |calls| {
        proof += 1;
        board.prove(proof);
        calls.wait().await;
        proof += 1;
        board.prove(proof);
    })?;
    let ((board, _), (clock, slice, tray), mut sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let (preempts, rounds, pair) = (P::unable(Ability::PreemptsCaller).is_none(), rounds(cache), bench.pair_ns);
    let low = rig.port.spawn("B", LOW, async move |calls| {
        let mut samples = Samples::new(1);
        let end = clock.after(slice);
        let mut proof = 0;
        'sampling: while end.since(clock.stamp()) > 0 && !samples.is_full() {
            sweep.sweep();
            let mut unproven = 0;
            let before = clock.stamp();
            for _ in 0..rounds {
                calls.trigger(high).await;
                proof += 1;
                unproven += u64::from(board.proof() != proof);
                if !preempts && !proof_comes::<P>(calls, &board, proof, &clock).await {
                    break 'sampling;
                }
                calls.wake(high).await;
                proof += 1;
                unproven += u64::from(board.proof() != proof);
                if !preempts && !proof_comes::<P>(calls, &board, proof, &clock).await {
                    break 'sampling;
                }
            }
            let ticks = clock.stamp().since(before);
            samples.push(unproven == 0 || !preempts, [(clock.ns(ticks) - pair) / rounds as f64]);
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    rig.run(low)
}

/// The closed loop of wake and wait, less the stamps around it.
fn wake_and_wait<P: Port>(bench: &Bench, cache: Cache) -> Result<Taken, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let (board, _) = rig.share();
    let high = rig.port.spawn("A", HIGH, async move |calls| {
        let mut proof = 0;
        loop {
            calls.wait().await;
            proof += 1;
            board.prove(proof);
        }
    })?;
    rig.port.start(high)?;
    let ((board, _), (clock, slice, tray), mut sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let (preempts, rounds, pair) = (P::unable(Ability::PreemptsCaller).is_none(), rounds(cache), bench.pair_ns);
    let low = rig.port.spawn("B", LOW, async move |calls| {
        let mut samples = Samples::new(1);
        clock.settle(cache);
        let end = clock.after(slice);
        let mut proof = 0;
        'sampling: while end.since(clock.stamp()) > 0 && !samples.is_full() {
            sweep.sweep();
            let mut unproven = 0;
            let before = clock.stamp();
            for _ in 0..rounds {
                calls.wake(high).await;
                proof += 1;
                unproven += u64::from(board.proof() != proof);
                if !preempts && !proof_comes::<P>(calls, &board, proof, &clock).await {
                    break 'sampling;
                }
            }
            let ticks = clock.stamp().since(before);
            samples.push(unproven == 0 || !preempts, [(clock.ns(ticks) - pair) / rounds as f64]);
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    rig.run(low)
}
