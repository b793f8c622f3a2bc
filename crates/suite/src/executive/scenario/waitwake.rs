//! Wait and wake: B triggers A, which waits; B wakes it; it ends.
//!
//! On threads each T is a pair of stamps. On fibers a T is a few nanoseconds, less than a stamp resolves, and a closed
//! loop gives only sums, because each switch to A has its switch back. So a chain splits them: tasks of ascending
//! urgency, each of which triggers (wakes) the next, with stamps at both ends. It is entered at its beginning and at
//! its middle in turns, and the longer chain takes one T more for each additional link.
//!
//! ```text
//!   B ─ stamp ─ trigger ─► A1 ─ trigger ─► A2 ─ … ─► Ak ─ stamp        k · T1
//!   B ─ stamp ◄─── ends ── A1 ◄─── ends ── A2 ◄ … ── Ak ─ stamp        k · T4
//! ```
//! The same with wake down (T3) and wait up (T2).

use hairspring_machine::Ticks;
use hairspring_sheet::Absent;

use super::{Group, How, Scenario, diagrams, quantity};
use crate::executive::bench::{Bench, Cache, Found, Rig, Sampled, all_absent, chained, proof_comes, sampling};
use crate::executive::port::{Ability, Calls, Port, TaskUrgency};
use crate::probe::spin;

/// Tasks of a chain: few enough for the first-level cache, where their stacks share sets, and for the processor's
/// return predictor; enough for some hundred nanoseconds.
pub(crate) const LINKS: u8 = 8;
/// Links of the shorter chain, which is the second half of the longer one.
pub(crate) const LINKS_FEWER: u8 = LINKS / 2;
/// The order of the chains: true for the longer one.
pub(crate) const TURNS: [bool; 4] = [false, true, true, false];
/// The mark where the task that enters a chain stores its number of links.
pub(crate) const LINKS_MARK: usize = 3;
/// The urgency of the most urgent task of a scenario.
pub(crate) const HIGH: TaskUrgency = 16;
/// The urgency of the least urgent task, which measures.
pub(crate) const LOW: TaskUrgency = 48;
/// The table: the split, and the two closed loops.
pub(super) fn group<P: Port>() -> Group {
    let split = vec![
        quantity("t1", "T1", How::Chain, "B calls trigger(A) until the first instruction of A, which is more urgent"),
        quantity("t2", "T2", How::Chain, "A calls wait until B continues"),
        quantity("t3", "T3", How::Chain, "B calls wake(A) until A continues after wait"),
        quantity("t4", "T4", How::Chain, "A ends until B continues"),
    ];
    let sum = quantity("sum", "T1+T2+T3+T4", How::Loop, "trigger, wait, wake and end in a closed loop").by_round();
    let measures = "wake and wait in a closed loop: a switch there and one back";
    let roundtrip = quantity("roundtrip", "wake and wait", How::Loop, measures).by_round();
    Group {
        segment: "waitwake",
        title: "Wait/Wake",
        diagram: Some(diagrams::waitwake()),
        scenarios: vec![
            Scenario { quantities: split, run: self::split::<P> },
            Scenario { quantities: vec![sum], run: |bench, cache| vec![closed::<P>(bench, cache, true)] },
            Scenario { quantities: vec![roundtrip], run: |bench, cache| vec![closed::<P>(bench, cache, false)] },
        ],
    }
}

/// The links of the longer chain, or of the shorter one.
pub(crate) fn links_of(longer: bool) -> u64 {
    u64::from(if longer { LINKS } else { LINKS_FEWER })
}

/// T1 to T4: by stamps, or with hot caches by chains if calls are too short for stamps.
pub(crate) fn split<P: Port>(bench: &Bench, cache: Cache) -> Vec<Found> {
    if let Some(absent) = P::unable(Ability::Wake) {
        return all_absent::<4>(&absent);
    }
    let starts = P::unable(Ability::Trigger);
    if chained::<P>(cache) && starts.is_none() {
        return match (chain_of_triggers::<P>(bench), chain_of_wakes::<P>(bench)) {
            (Ok(triggers), Ok(wakes)) => {
                vec![Ok(triggers.series(0)), Ok(wakes.series(1)), Ok(wakes.series(0)), Ok(triggers.series(1))]
            }
            (Err(absent), _) | (_, Err(absent)) => all_absent::<4>(&absent),
        };
    }
    let taken = if starts.is_none() { stamped::<P>(bench, cache) } else { stamped_wakes::<P>(bench, cache) };
    match taken {
        Ok(taken) => {
            // The return to a caller that was never preempted is not a switch.
            let back = P::unable(Ability::PreemptsCaller);
            let unable = [starts.clone(), back.clone(), None, back.or(starts)];
            unable.into_iter().enumerate().map(|(t, unable)| unable.map_or_else(|| Ok(taken.series(t)), Err)).collect()
        }
        Err(absent) => all_absent::<4>(&absent),
    }
}

/// Each T as a pair of stamps.
fn stamped<P: Port>(bench: &Bench, cache: Cache) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let preempts = P::unable(Ability::PreemptsCaller).is_none();
    let ((board, clock), sweep) = (rig.share(), bench.sweep(cache));
    let mut proof = 0;
    let high = rig.port.spawn("A", HIGH, async move |calls| {
        spin(0, 1);
        board.mark(0, clock.stamp());
        proof += 1;
        board.prove(proof);
        sweep.sweep();
        board.mark(1, clock.stamp());
        calls.wait().await;
        spin(2, 1);
        board.mark(2, clock.stamp());
        proof += 1;
        board.prove(proof);
        sweep.sweep();
        board.mark(3, clock.stamp());
    })?;

    let ((board, _), (clock, slice, tray), sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let low = rig.port.spawn("B", LOW, async move |calls| {
        let mut proof = 0;
        sampling!(calls, (clock, slice, tray), samples: 4 => {
            sweep.sweep();
            let b0 = clock.stamp();
            calls.trigger(high).await;
            spin(1, 1);
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
            spin(3, 1);
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
        });
    })?;
    rig.run(low)
}

/// T3 and T2 alone, in a loop of wakes, where tasks cannot be triggered.
fn stamped_wakes<P: Port>(bench: &Bench, cache: Cache) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let preempts = P::unable(Ability::PreemptsCaller).is_none();
    let ((board, clock), sweep) = (rig.share(), bench.sweep(cache));
    let high = rig.port.spawn("A", HIGH, async move |calls| {
        let mut proof = 0;
        loop {
            calls.wait().await;
            spin(2, 1);
            board.mark(0, clock.stamp());
            proof += 1;
            board.prove(proof);
            sweep.sweep();
            board.mark(1, clock.stamp());
        }
    })?;
    rig.port.start(high)?;

    let ((board, _), (clock, slice, tray), sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let low = rig.port.spawn("B", LOW, async move |calls| {
        clock.settle(cache);
        let mut proof = 0;
        sampling!(calls, (clock, slice, tray), samples: 4 => {
            sweep.sweep();
            let b2 = clock.stamp();
            calls.wake(high).await;
            spin(1, 1);
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
        });
    })?;
    rig.run(low)
}

/// Spawns the tasks of a chain from its end, which is the most urgent task. `spawn` gets the number of a link and the
/// task that the link calls, none for the end. Returns the tasks at which the longer and the shorter chain begin.
pub(crate) fn links<P: Port>(
    mut spawn: impl FnMut(u8, Option<P::Task>) -> Result<P::Task, Absent>,
) -> Result<(P::Task, P::Task), Absent> {
    let (mut next, mut middle) = (None, None);
    for link in 0..LINKS {
        if link == LINKS_FEWER {
            middle = next;
        }
        next = Some(spawn(link, next)?);
    }
    next.zip(middle).ok_or_else(|| Absent::final_("a chain has no links"))
}

/// T1 down and T4 up a chain of triggers.
fn chain_of_triggers<P: Port>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let chain = links::<P>(|link, next| {
        let (board, clock) = rig.share();
        let mut proof = 0;
        rig.port.spawn("A", HIGH + link, async move |calls| {
            if let Some(next) = next {
                calls.trigger(next).await;
            } else {
                spin(0, board.at(LINKS_MARK).raw());
                board.mark(0, clock.stamp());
                proof += 1;
                board.prove(proof);
                board.mark(1, clock.stamp());
                spin(3, board.at(LINKS_MARK).raw());
            }
        })
    })?;
    measured_chain::<P, true>(rig, chain)
}

/// T3 down and T2 up a chain of wakes.
fn chain_of_wakes<P: Port>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let chain = links::<P>(|link, next| {
        let (board, clock) = rig.share();
        let mut proof = 0;
        let task = rig.port.spawn("A", HIGH + link, async move |calls| {
            loop {
                calls.wait().await;
                if let Some(next) = next {
                    calls.wake(next).await;
                } else {
                    spin(2, board.at(LINKS_MARK).raw());
                    board.mark(0, clock.stamp());
                    proof += 1;
                    board.prove(proof);
                    board.mark(1, clock.stamp());
                    spin(1, board.at(LINKS_MARK).raw());
                }
            }
        })?;
        rig.port.start(task)?;
        Ok(task)
    })?;
    measured_chain::<P, false>(rig, chain)
}

/// Measures a chain from its first task and from its middle one: how long until the last task runs, and how long back
/// from there.
fn measured_chain<P: Port, const TRIGGERS: bool>(
    mut rig: Rig<P>,
    (first, middle): (P::Task, P::Task),
) -> Result<Sampled, Absent> {
    let ((board, _), (clock, slice, tray)) = (rig.share(), rig.measuring());
    let low = rig.port.spawn("B", LOW, async move |calls| {
        let mut proof = 0;
        sampling!('sampling: calls, (clock, slice, tray), samples: 2 => {
            let mut times = [[0.0; 4]; 2];
            let mut proven = true;
            for (turn, longer) in TURNS.into_iter().enumerate() {
                board.mark(LINKS_MARK, Ticks::new(links_of(longer)));
                let before = clock.stamp();
                let task = if longer { first } else { middle };
                if TRIGGERS {
                    calls.trigger(task).await;
                } else {
                    calls.wake(task).await;
                }
                let after = clock.stamp();
                proof += 1;
                proven &= board.proof() == proof;
                times[0][turn] = clock.ns(board.at(0).since(before));
                times[1][turn] = clock.ns(after.since(board.at(1)));
                if !proof_comes::<P>(calls, &board, proof, &clock).await {
                    break 'sampling;
                }
            }
            samples.push_slope(proven, u64::from(LINKS - LINKS_FEWER), times);
        });
    })?;
    rig.run(low)
}

/// One quantity of a closed loop, or the reason for its absence.
pub(crate) fn closed<P: Port>(bench: &Bench, cache: Cache, with_trigger: bool) -> Found {
    closed_run::<P>(bench, cache, with_trigger).map(|taken| taken.series(0))
}

/// The run of a closed loop.
pub(crate) fn closed_run<P: Port>(bench: &Bench, cache: Cache, with_trigger: bool) -> Result<Sampled, Absent> {
    let unable = P::unable(Ability::Wake).or_else(|| P::unable(Ability::Trigger).filter(|_| with_trigger));
    if let Some(absent) = unable {
        return Err(absent);
    }
    if with_trigger { all_four::<P>(bench, cache) } else { wake_and_wait::<P>(bench, cache) }
}

/// The closed loop of trigger, wait, wake and end, with the stamps around it. It includes the proofs, which take a
/// nanosecond.
fn all_four<P: Port>(bench: &Bench, cache: Cache) -> Result<Sampled, Absent> {
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
    measured_loop::<P, true>(rig, high, bench, cache)
}

/// The closed loop of wake and wait, with the stamps around it.
fn wake_and_wait<P: Port>(bench: &Bench, cache: Cache) -> Result<Sampled, Absent> {
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
    measured_loop::<P, false>(rig, high, bench, cache)
}

/// Measures rounds in which B wakes A, after it has triggered A if `TRIGGERS`.
fn measured_loop<P: Port, const TRIGGERS: bool>(
    mut rig: Rig<P>,
    high: P::Task,
    bench: &Bench,
    cache: Cache,
) -> Result<Sampled, Absent> {
    let ((board, _), (clock, slice, tray), sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let (preempts, rounds) = (P::unable(Ability::PreemptsCaller).is_none(), bench.rounds(cache));
    let low = rig.port.spawn("B", LOW, async move |calls| {
        if !TRIGGERS {
            clock.settle(cache);
        }
        let mut proof = 0;
        sampling!('sampling: calls, (clock, slice, tray), samples: 1 => {
            sweep.sweep();
            let mut unproven = 0;
            let before = clock.stamp();
            for _ in 0..rounds {
                if TRIGGERS {
                    calls.trigger(high).await;
                    proof += 1;
                    unproven += u64::from(board.proof() != proof);
                    if !preempts && !proof_comes::<P>(calls, &board, proof, &clock).await {
                        break 'sampling;
                    }
                }
                calls.wake(high).await;
                proof += 1;
                unproven += u64::from(board.proof() != proof);
                if !preempts && !proof_comes::<P>(calls, &board, proof, &clock).await {
                    break 'sampling;
                }
            }
            spin(0, rounds);
            let ticks = clock.stamp().since(before);
            samples.push_mean(unproven == 0 || !preempts, rounds, [clock.ns(ticks)]);
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
        });
    })?;
    rig.run(low)
}
