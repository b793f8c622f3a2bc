//! Mailboxes: B sends a message of 12 bytes to A, which it starts; A has its copy, ends, and B continues. And, for
//! Rhealstone, the latency of a message to a task that waits for it.

use hairspring_machine::Ticks;
use hairspring_sheet::Absent;

use super::waitwake::{HIGH, LINKS, LINKS_FEWER, LINKS_MARK, LOW, TURNS, links_of};
use super::{Group, How, Scenario, diagrams, quantity};
use crate::executive::bench::{Bench, Cache, Found, Rig, Sampled, all_absent, chained, proof_comes, sampling};
use crate::executive::port::{Ability, Calls, Port};
use crate::probe::spin;

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

/// Way in which the receiver waits for its message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiver {
    /// Each message starts the receiver, which then ends.
    Starts,
    /// The receiver waits for the next message.
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

/// The closed loop of send, run and end, with the stamps around it.
pub(super) fn closed<P: Port>(bench: &Bench) -> Found {
    if let Some(absent) = P::unable(Ability::Mail) {
        return Err(absent);
    }
    let mut rig = Rig::<P>::new(bench)?;
    let (board, _) = rig.share();
    let high = rig.port.spawn_mail("A", HIGH, async move |_, _, message| board.prove(u64::from(message[0])))?;
    let ((board, _), (clock, slice, tray)) = (rig.share(), rig.measuring());
    let (preempts, rounds) = (P::unable(Ability::PreemptsCaller).is_none(), bench.rounds);
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
            spin(0, rounds);
            let ticks = clock.stamp().since(before);
            samples.push_mean(unproven == 0 || !preempts, rounds, [clock.ns(ticks)]);
            if !proof_comes::<P>(calls, &board, u64::from(number), &clock).await {
                break;
            }
        });
    })?;
    rig.run(low).map(|taken| taken.series(0))
}

/// A chain of `links` receivers; with one, it is the plain scenario.
fn chain<P: Port>(bench: &Bench, cache: Cache, receiver: Receiver, links: u8) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let (mut next, mut middle) = (None, None);
    for link in 0..links {
        if link == LINKS_FEWER {
            middle = next;
        }
        let ((board, clock), sweep) = (rig.share(), bench.sweep(cache));
        next = Some(rig.port.spawn_mail("A", HIGH + link, async move |calls, own, message| {
            let mut message = message;
            loop {
                if let Some(next) = next {
                    calls.send(next, message).await;
                } else {
                    spin(0, board.at(LINKS_MARK).raw());
                    board.mark(0, clock.stamp());
                    // The proof is the contents of the message: the receiver has its copy.
                    board.prove(u64::from(message[0]));
                    sweep.sweep();
                    board.mark(1, clock.stamp());
                    spin(1, board.at(LINKS_MARK).raw());
                }
                if receiver == Receiver::Starts {
                    return;
                }
                message = calls.receive(own).await;
            }
        })?);
    }
    let Some(first) = next else { return Err(Absent::final_("a chain has no links")) };
    let ((board, _), (clock, slice, tray), sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let preempts = P::unable(Ability::PreemptsCaller).is_none();
    // For a chain the sample is the time of the longer chain less that of its second half; a single receiver is
    // stamped.
    let turns: &[bool] = if middle.is_some() { &TURNS } else { &[true] };
    let middle = middle.unwrap_or(first);
    let low = rig.port.spawn("B", LOW, async move |calls| {
        let mut number = 0_u32;
        let mut rehearsals = if receiver == Receiver::Waits { 1 } else { 0 };
        sampling!('sampling: calls, (clock, slice, tray), samples: 2 => {
            let mut times = [[0.0; 4]; 2];
            let mut proven = true;
            for (turn, longer) in turns.iter().enumerate() {
                number += 1;
                sweep.sweep();
                board.mark(LINKS_MARK, Ticks::new(if turns.len() == 1 { 1 } else { links_of(*longer) }));
                let before = clock.stamp();
                // The first message starts receivers that wait for all others, so it goes to all of them.
                calls.send(if *longer || rehearsals > 0 { first } else { middle }, [number, 0, 0]).await;
                let after = clock.stamp();
                proven &= board.proof() == u64::from(number);
                if !proof_comes::<P>(calls, &board, u64::from(number), &clock).await {
                    break 'sampling;
                }
                if !preempts {
                    clock.settle(cache);
                }
                times[0][turn] = clock.ns(board.at(0).since(before));
                times[1][turn] = clock.ns(after.since(board.at(1)));
            }
            if rehearsals > 0 {
                rehearsals -= 1;
            } else if turns.len() > 1 {
                samples.push_slope(proven || !preempts, u64::from(LINKS - LINKS_FEWER), times);
            } else {
                samples.push(proven || !preempts, times.map(|times| times[0]));
            }
        });
    })?;
    rig.run(low)
}
