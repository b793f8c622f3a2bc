//! Mailboxes: B sends a message of 12 bytes to A, which it starts; A has its copy, ends, and B goes on. And, for Rhealstone,
//! the latency of a message to a task that waits for it.

use hairspring_sheet::{Absent, Method, Unit, Value};

use super::bench::{Bench, Cache, Rig, Samples, Taken, all_absent, chained, proof_comes};
use super::port::{Ability, Calls, Port};
use super::waitwake::{HIGH, LINKS, LOW};

const QUANTITIES: [&str; 2] = ["t1", "t2"];

/// How the receiver gets its message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiver {
    /// Each message starts it, and it ends.
    Starts,
    /// It waits for the next.
    Waits,
}

/// T1 and T2, by stamps or by chains.
pub(crate) fn split<P: Port>(bench: &Bench, cache: Cache) -> Vec<(&'static str, Value)> {
    let (taken, method) = sent::<P>(bench, cache, Receiver::Starts);
    match taken {
        Ok(mut taken) => {
            let there = taken.value(0, Unit::Ns, method, bench);
            let back = P::unable(Ability::PreemptsCaller);
            let back = back.map_or_else(|| taken.value(1, Unit::Ns, method, bench), Value::Absent);
            vec![("t1", there), ("t2", back)]
        }
        Err(absent) => all_absent(QUANTITIES, &absent),
    }
}

/// The latency of a message to a task that waits for it.
pub(crate) fn latency<P: Port>(bench: &Bench) -> (Result<Taken, Absent>, Method) {
    sent::<P>(bench, Cache::Hot, Receiver::Waits)
}

fn sent<P: Port>(bench: &Bench, cache: Cache, receiver: Receiver) -> (Result<Taken, Absent>, Method) {
    let method = if chained::<P>(cache) { Method::Diff } else { Method::Stamp };
    let links = if chained::<P>(cache) { LINKS } else { 1 };
    let taken = match P::unable(Ability::Mail) {
        Some(absent) => Err(absent),
        None => chain::<P>(bench, cache, receiver, links),
    };
    (taken, method)
}

/// A chain of so many receivers; of one, it is the plain scenario.
fn chain<P: Port>(bench: &Bench, cache: Cache, receiver: Receiver, links: u8) -> Result<Taken, Absent> {
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
        let mut samples = Samples::new(2);
        let end = clock.after(slice);
        let mut number = 0_u32;
        while end.since(clock.stamp()) > 0 && !samples.is_full() {
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
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    rig.run(low)
}
