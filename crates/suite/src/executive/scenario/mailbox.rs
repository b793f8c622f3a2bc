//! Mailboxes: B sends a message of 12 bytes to A, which it starts; A has its copy, ends, and B goes on. And, for Rhealstone,
//! the latency of a message to a task that waits for it.

use hairspring_sheet::Absent;

use super::waitwake::{HIGH, LINKS, LOW};
use super::{Group, How, Scenario, diagrams, quantity};
use crate::executive::bench::{Bench, Cache, Found, Rig, Sampled, all_absent, chained, proof_comes, sampling};
use crate::executive::port::{Ability, Calls, Port};

/// The table.
pub(super) fn group<P: Port>() -> Group {
    let measures = "B calls send until A, which the message starts, runs with its copy of 12 bytes";
    let quantities = vec![
        quantity("t1", "T1", How::Chain, measures),
        quantity("t2", "T2", How::Chain, "A ends until B continues after send"),
    ];
    Group {
        segment: "mailbox",
        title: "Mailbox",
        diagram: Some(diagrams::mailbox()),
        scenarios: vec![Scenario { quantities, run: split::<P> }],
    }
}

/// How the receiver gets its message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiver {
    /// Each message starts it, and it ends.
    Starts,
    /// It waits for the next.
    Waits,
}

/// T1 and T2, by stamps or by chains.
fn split<P: Port>(bench: &Bench, cache: Cache) -> Vec<Found> {
    match sent::<P>(bench, cache, Receiver::Starts) {
        Ok(taken) => {
            let back = P::unable(Ability::PreemptsCaller);
            vec![Ok(taken.series(0)), back.map_or_else(|| Ok(taken.series(1)), Err)]
        }
        Err(absent) => all_absent::<2>(&absent),
    }
}

/// The latency of a message to a task that waits for it.
pub(super) fn latency<P: Port>(bench: &Bench) -> Found {
    sent::<P>(bench, Cache::Hot, Receiver::Waits).map(|taken| taken.series(0))
}

fn sent<P: Port>(bench: &Bench, cache: Cache, receiver: Receiver) -> Result<Sampled, Absent> {
    let links = if chained::<P>(cache) { LINKS } else { 1 };
    match P::unable(Ability::Mail) {
        Some(absent) => Err(absent),
        None => chain::<P>(bench, cache, receiver, links),
    }
}

/// The latency of a message down a chain of tasks, for each link.
pub(super) fn links<P: Port>(bench: &Bench) -> Found {
    match P::unable(Ability::Mail) {
        Some(absent) => Err(absent),
        None => chain::<P>(bench, Cache::Hot, Receiver::Starts, LINKS).map(|taken| taken.series(0)),
    }
}

/// The closed loop of send, run and end, less the stamps around it.
pub(super) fn closed<P: Port>(bench: &Bench) -> Found {
    if let Some(absent) = P::unable(Ability::Mail) {
        return Err(absent);
    }
    let mut rig = Rig::<P>::new(bench)?;
    let (board, _) = rig.share();
    let high = rig.port.spawn_mail("A", HIGH, async move |_, _, message| board.prove(u64::from(message[0])))?;
    let ((board, _), (clock, slice, tray)) = (rig.share(), rig.measuring());
    let (preempts, rounds, pair) = (P::unable(Ability::PreemptsCaller).is_none(), bench.rounds, bench.pair_ns);
    let low = rig.port.spawn("B", LOW, async move |calls| {
        let mut number = 0_u32;
        sampling!('sampling: calls, (clock, slice, tray), samples: 1 => {
            let mut unproven = 0;
            let before = clock.stamp();
            for _ in 0..rounds {
                number = number.wrapping_add(1);
                calls.send(high, [number, 0, 0]).await;
                unproven += u64::from(board.proof() != u64::from(number));
                if !preempts && !proof_comes::<P>(calls, &board, u64::from(number), &clock).await {
                    break 'sampling;
                }
            }
            let ticks = clock.stamp().since(before);
            samples.push(unproven == 0 || !preempts, [(clock.ns(ticks) - pair) / rounds as f64]);
            if !proof_comes::<P>(calls, &board, u64::from(number), &clock).await {
                break;
            }
        });
    })?;
    rig.run(low).map(|taken| taken.series(0))
}

/// A chain of so many receivers; of one, it is the plain scenario.
fn chain<P: Port>(bench: &Bench, cache: Cache, receiver: Receiver, links: u8) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let mut next = None;
    for link in 0..links {
        let ((board, clock), mut sweep) = (rig.share(), bench.sweep(cache));
        next = Some(rig.port.spawn_mail("A", HIGH + link, async move |calls, own, message| {
            let mut message = message;
            loop {
                if let Some(next) = next {
                    calls.send(next, message).await;
                } else {
                    board.mark(0, clock.stamp());
                    // The proof is what stood in the message: the receiver has its copy.
                    board.prove(u64::from(message[0]));
                    sweep.sweep();
                    board.mark(1, clock.stamp());
                }
                if receiver == Receiver::Starts {
                    return;
                }
                message = calls.receive(own).await;
            }
        })?);
    }
    let Some(first) = next else { return Err(Absent::final_("a chain has no links")) };
    let ((board, _), (clock, slice, tray), mut sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let preempts = P::unable(Ability::PreemptsCaller).is_none();
    // A single pair of stamps is stated beside its figure; of a chain it is taken off.
    let pair = if links > 1 { bench.pair_ns } else { 0.0 };
    let low = rig.port.spawn("B", LOW, async move |calls| {
        let mut number = 0_u32;
        sampling!(calls, (clock, slice, tray), samples: 2 => {
            number += 1;
            sweep.sweep();
            let before = clock.stamp();
            calls.send(first, [number, 0, 0]).await;
            let after = clock.stamp();
            let proven = board.proof() == u64::from(number);
            if !proof_comes::<P>(calls, &board, u64::from(number), &clock).await {
                break;
            }
            if !preempts {
                clock.settle(cache);
            }
            let per_link = |ticks| (clock.ns(ticks) - pair) / f64::from(links);
            let values = [per_link(board.at(0).since(before)), per_link(after.since(board.at(1)))];
            // The first message starts a receiver that waits for all others.
            if number > 1 || receiver == Receiver::Starts {
                samples.push(proven || !preempts, values);
            }
        });
    })?;
    rig.run(low)
}
