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

use std::sync::Arc;

use hairspring_sheet::{Absent, Method, Unit, Value};

use super::bench::{Bench, Board, Cache, Samples, Taken, Tray};
use super::port::{Ability, Calls, Port, Urgency};

/// Tasks of a chain: their lines must fit the first-level cache together with the executive's.
pub(crate) const LINKS: u8 = 16;
/// The urgency of the most urgent task of a scenario.
pub(crate) const HIGH: Urgency = 16;
/// The urgency of the least urgent one, which measures.
pub(crate) const LOW: Urgency = 48;

/// Rounds of a closed loop between two stamps, where caches are hot.
const ROUNDS: u64 = 32;

/// The split: by stamps on threads and with dirty caches, by chains on fibers.
pub(crate) fn split<P: Port>(bench: &Bench, cache: Cache, chains: bool) -> Vec<(&'static str, Value)> {
    const QUANTITIES: [&str; 4] = ["t1", "t2", "t3", "t4"];
    if chains && cache == Cache::Hot {
        let triggers = chain_of_triggers::<P>(bench);
        let wakes = chain_of_wakes::<P>(bench);
        return match (triggers, wakes) {
            (Ok(mut triggers), Ok(mut wakes)) => {
                let value = |taken: &mut Taken, index| taken.value(index, Unit::Ns, Method::Diff, bench);
                vec![
                    ("t1", value(&mut triggers, 0)),
                    ("t2", value(&mut wakes, 1)),
                    ("t3", value(&mut wakes, 0)),
                    ("t4", value(&mut triggers, 1)),
                ]
            }
            (Err(absent), _) | (_, Err(absent)) => super::bench::all_absent(QUANTITIES, &absent),
        };
    }
    match stamped::<P>(bench, cache) {
        Ok(mut taken) => {
            let values = QUANTITIES.into_iter().enumerate().map(|(index, quantity)| {
                // What returns to a caller that was never preempted is no switch.
                let gone = matches!(quantity, "t2" | "t4").then(|| P::unable(Ability::PreemptsCaller)).flatten();
                let value = gone.map_or_else(|| taken.value(index, Unit::Ns, Method::Stamp, bench), Value::Absent);
                (quantity, value)
            });
            values.collect()
        }
        Err(absent) => super::bench::all_absent(QUANTITIES, &absent),
    }
}

/// Each T as a pair of stamps.
fn stamped<P: Port>(bench: &Bench, cache: Cache) -> Result<Taken, Absent> {
    let mut port = P::make(bench.place)?;
    let (board, tray) = (Arc::new(Board::default()), Tray::default());
    let preempts = P::unable(Ability::PreemptsCaller).is_none();

    let (own, clock, mut sweep) = (Arc::clone(&board), bench.clock(), bench.sweep(cache));
    let mut proof = 0;
    let high = port.spawn("A", HIGH, async move |calls| {
        own.mark(0, clock.stamp());
        proof += 1;
        own.prove(proof);
        sweep.sweep();
        own.mark(1, clock.stamp());
        calls.wait().await;
        own.mark(2, clock.stamp());
        proof += 1;
        own.prove(proof);
        sweep.sweep();
        own.mark(3, clock.stamp());
    })?;

    let (clock, mut sweep, slice, put) = (bench.clock(), bench.sweep(cache), bench.slice, tray.clone());
    let low = port.spawn("B", LOW, async move |calls| {
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
            if !board.await_proof(proof, &clock) {
                break;
            }
            if !preempts {
                clock.settle();
            }
            let (a0, a1) = (board.at(0), board.at(1));
            sweep.sweep();
            let b2 = clock.stamp();
            calls.wake(high).await;
            let b3 = clock.stamp();
            proof += 1;
            let woken = board.proof() == proof;
            if !board.await_proof(proof, &clock) {
                break;
            }
            if !preempts {
                clock.settle();
            }
            let (a2, a3) = (board.at(2), board.at(3));
            let values = [a0.since(b0), b1.since(a1), a2.since(b2), b3.since(a3)].map(|ticks| clock.ns(ticks));
            samples.push(started && woken || !preempts, values);
        }
        put.put(samples);
        calls.stop().await;
    })?;
    port.start(low)?;
    let outcome = port.run(bench.run_most());
    Ok(tray.taken(outcome))
}

/// T1 down and T4 up a chain of triggers.
fn chain_of_triggers<P: Port>(bench: &Bench) -> Result<Taken, Absent> {
    let mut port = P::make(bench.place)?;
    let (board, tray) = (Arc::new(Board::default()), Tray::default());
    let mut next = None;
    for link in 0..LINKS {
        let (own, clock) = (Arc::clone(&board), bench.clock());
        let mut proof = 0;
        next = Some(port.spawn("A", HIGH + link, async move |calls| {
            if let Some(next) = next {
                calls.trigger(next).await;
            } else {
                own.mark(0, clock.stamp());
                proof += 1;
                own.prove(proof);
                own.mark(1, clock.stamp());
            }
        })?);
    }
    let Some(first) = next else { return Err(Absent::final_("a chain has no links")) };
    let (clock, slice, put, pair) = (bench.clock(), bench.slice.times(1), tray.clone(), bench.pair_ns);
    let low = port.spawn("B", LOW, async move |calls| {
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
            let values = [per_link(board.at(0).since(before)), per_link(after.since(board.at(1)))];
            samples.push(proven, values);
            if !proven && !board.await_proof(proof, &clock) {
                break;
            }
        }
        put.put(samples);
        calls.stop().await;
    })?;
    port.start(low)?;
    let outcome = port.run(bench.run_most());
    Ok(tray.taken(outcome))
}

/// T3 down and T2 up a chain of wakes.
fn chain_of_wakes<P: Port>(bench: &Bench) -> Result<Taken, Absent> {
    let mut port = P::make(bench.place)?;
    let (board, tray) = (Arc::new(Board::default()), Tray::default());
    let mut tasks = Vec::new();
    for link in 0..LINKS {
        let (own, clock, next) = (Arc::clone(&board), bench.clock(), tasks.last().copied());
        let mut proof = 0;
        tasks.push(port.spawn("A", HIGH + link, async move |calls| {
            loop {
                calls.wait().await;
                if let Some(next) = next {
                    calls.wake(next).await;
                } else {
                    own.mark(0, clock.stamp());
                    proof += 1;
                    own.prove(proof);
                    own.mark(1, clock.stamp());
                }
            }
        })?);
    }
    let Some(first) = tasks.last().copied() else { return Err(Absent::final_("a chain has no links")) };
    let (clock, slice, put, pair) = (bench.clock(), bench.slice, tray.clone(), bench.pair_ns);
    let low = port.spawn("B", LOW, async move |calls| {
        for &task in &tasks {
            calls.trigger(task).await;
        }
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
            let values = [per_link(board.at(0).since(before)), per_link(after.since(board.at(1)))];
            samples.push(proven, values);
            if !proven && !board.await_proof(proof, &clock) {
                break;
            }
        }
        put.put(samples);
        calls.stop().await;
    })?;
    port.start(low)?;
    let outcome = port.run(bench.run_most());
    Ok(tray.taken(outcome))
}

/// The closed loop of all four, or of wake and wait alone, less the same loop without calls.
pub(crate) fn closed<P: Port>(bench: &Bench, cache: Cache, with_trigger: bool) -> Result<Taken, Absent> {
    let control = control(bench);
    let mut port = P::make(bench.place)?;
    let (board, tray) = (Arc::new(Board::default()), Tray::default());
    let rounds = if cache == Cache::Hot { ROUNDS } else { 1 };

    let own = Arc::clone(&board);
    let mut proof = 0;
    let high = port.spawn("A", HIGH, async move |calls| {
        if with_trigger {
            proof += 1;
            own.prove(proof);
            calls.wait().await;
            proof += 1;
            own.prove(proof);
            return;
        }
        loop {
            calls.wait().await;
            proof += 1;
            own.prove(proof);
        }
    })?;

    let (clock, mut sweep, slice, put) = (bench.clock(), bench.sweep(cache), bench.slice, tray.clone());
    let preempts = P::unable(Ability::PreemptsCaller).is_none();
    let low = port.spawn("B", LOW, async move |calls| {
        let mut samples = Samples::new(1);
        if !with_trigger {
            calls.trigger(high).await;
            clock.settle();
        }
        let end = clock.after(slice);
        let mut proof = 0;
        'sampling: while end.since(clock.stamp()) > 0 && !samples.is_full() {
            sweep.sweep();
            let mut unproven = 0;
            let before = clock.stamp();
            for _ in 0..rounds {
                if with_trigger {
                    proof += 1;
                    calls.trigger(high).await;
                    unproven += u64::from(board.proof() != proof);
                    if !preempts && !board.await_proof(proof, &clock) {
                        break 'sampling;
                    }
                }
                proof += 1;
                calls.wake(high).await;
                unproven += u64::from(board.proof() != proof);
                if !preempts && !board.await_proof(proof, &clock) {
                    break 'sampling;
                }
            }
            let ticks = clock.stamp().since(before);
            samples.push(unproven == 0 || !preempts, [clock.ns(ticks) / rounds as f64]);
            if unproven > 0 && !board.await_proof(proof, &clock) {
                break;
            }
        }
        put.put(samples);
        calls.stop().await;
    })?;
    port.start(low)?;
    let outcome = port.run(bench.run_most());
    Ok(tray.taken(outcome).less(control / rounds as f64))
}

/// What a closed loop takes without its calls: the stamps, in nanoseconds. The proofs it keeps: they are a nanosecond.
fn control(bench: &Bench) -> f64 {
    bench.pair_ns
}
