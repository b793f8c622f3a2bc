//! The six components of Rhealstone, as RTEMS defines them where the article leaves it open; no figure of merit.

use hairspring_machine::Ticks;
use hairspring_sheet::Absent;

use super::waitwake::{HIGH, LOW};
use super::{Component, How, interrupts, mailbox, switching, waitwake};
use crate::executive::bench::{Bench, Cache, Rig, Sampled, proof_comes, sampling};
use crate::executive::port::{Ability, Calls, Port};
use crate::probe::spin;

/// The components: description and run of each.
pub(crate) fn components<P: Port>() -> [Component; 6] {
    [
        Component {
            segment: "task_switch",
            label: "task switch",
            measures: "yield between two equal tasks, with the call itself",
            how: How::Loop,
            place: 0,
            run: |bench| Ok(switching::yields::<P>(bench, Cache::Hot)?.series(0)),
        },
        Component {
            segment: "preemption",
            label: "preemption",
            measures: "a task wakes a more urgent one, until that continues (T3 of wait/wake)",
            how: How::Chain,
            place: 2,
            run: |bench| waitwake::split::<P>(bench, Cache::Hot).swap_remove(2),
        },
        Component {
            segment: "interrupt_latency",
            label: "interrupt latency",
            measures: "an interrupt is fired, until its raw procedure runs (T1 of the ISP handler)",
            how: How::Stamp,
            place: 0,
            run: interrupts::latency::<P>,
        },
        Component {
            segment: "semaphore_shuffle",
            label: "semaphore shuffle",
            measures: "two equal tasks pass a semaphore to and fro: what taking it from its holder adds to their yields, for each taking",
            how: How::Diff,
            place: 0,
            run: |bench| shuffle::<P>(bench).map(|taken| taken.series(0)),
        },
        Component {
            segment: "deadlock_break",
            label: "deadlock break",
            measures: "a task waits for a lock that a less urgent one holds, which inherits its urgency, and gets it: what that adds to the \
                       same round without the wait",
            how: How::Diff,
            place: 0,
            run: |bench| deadlock::<P>(bench).map(|taken| taken.series(0)),
        },
        Component {
            segment: "message_latency",
            label: "message latency",
            measures: "a message is sent, until the more urgent task that waits for it has it",
            how: How::Chain,
            place: 0,
            run: mailbox::latency::<P>,
        },
    ]
}

/// Two equal tasks, each: take, yield, give, yield; in turns with only the yields.
fn shuffle<P: Port>(bench: &Bench) -> Result<Sampled, Absent> {
    if let Some(absent) = P::unable(Ability::Semaphore).or_else(|| P::unable(Ability::Yield)) {
        return Err(absent);
    }
    let mut rig = Rig::<P>::new(bench)?;
    let semaphore = rig.port.semaphore(1)?;
    let ((board, _), (clock, slice, tray), rounds) = (rig.share(), rig.measuring(), bench.rounds);
    let first = rig.port.spawn("P", LOW, async move |calls| {
        sampling!(calls, (clock, slice, tray), samples: 1 => {
            let mut times = [0.0; 4];
            let mut proven = true;
            for (time, with) in times.iter_mut().zip([false, true, true, false]) {
                board.mark(0, Ticks::new(u64::from(with)));
                // The other task ends the present round, and its next one is of the new kind.
                calls.yield_now().await;
                calls.yield_now().await;
                let already = board.proof();
                let before = clock.stamp();
                for _ in 0..rounds {
                    if with {
                        calls.take(semaphore).await;
                    }
                    calls.yield_now().await;
                    if with {
                        calls.give(semaphore).await;
                    }
                    calls.yield_now().await;
                }
                spin(0, if with { 2 * rounds } else { 0 });
                *time = clock.ns_since(before);
                // The other task keeps in step, except for the present round at either end.
                proven &= (board.proof() - already).abs_diff(rounds) <= 1;
            }
            samples.push_slope(proven, 2 * rounds, [times]);
        });
    })?;
    let (board, _) = rig.share();
    let other = rig.port.spawn("Q", LOW, async move |calls| {
        let mut proof = 0;
        loop {
            let with = board.at(0) == Ticks::new(1);
            if with {
                calls.take(semaphore).await;
            }
            calls.yield_now().await;
            if with {
                calls.give(semaphore).await;
            }
            calls.yield_now().await;
            proof += 1;
            board.prove(proof);
        }
    })?;
    rig.port.start(other)?;
    rig.run(first)
}

/// L locks and wakes M, which wakes H, which wants the lock; in turns with H not wanting it.
fn deadlock<P: Port>(bench: &Bench) -> Result<Sampled, Absent> {
    if let Some(absent) = P::unable(Ability::InheritingLock).or_else(|| P::unable(Ability::Wake)) {
        return Err(absent);
    }
    let mut rig = Rig::<P>::new(bench)?;
    let lock = rig.port.lock()?;
    let (board, _) = rig.share();
    let high = rig.port.spawn("H", HIGH, async move |calls| {
        let mut proof = 0;
        loop {
            calls.wait().await;
            if board.at(0) == Ticks::new(1) {
                calls.lock(lock).await;
                calls.unlock(lock).await;
            }
            proof += 1;
            board.prove(proof);
        }
    })?;
    rig.port.start(high)?;
    let middle = rig.port.spawn("M", HIGH + 8, async move |calls| {
        loop {
            calls.wait().await;
            calls.wake(high).await;
        }
    })?;
    rig.port.start(middle)?;
    let ((board, _), (clock, slice, tray), rounds) = (rig.share(), rig.measuring(), bench.rounds);
    let low = rig.port.spawn("L", LOW, async move |calls| {
        clock.settle(Cache::Hot);
        let mut proof = 0;
        sampling!(calls, (clock, slice, tray), samples: 1 => {
            let mut times = [0.0; 4];
            let mut unproven = 0;
            for (time, with) in times.iter_mut().zip([false, true, true, false]) {
                board.mark(0, Ticks::new(u64::from(with)));
                let before = clock.stamp();
                for _ in 0..rounds {
                    calls.lock(lock).await;
                    calls.wake(middle).await;
                    calls.unlock(lock).await;
                    proof += 1;
                    unproven += u64::from(board.proof() != proof);
                }
                spin(0, if with { rounds } else { 0 });
                *time = clock.ns_since(before);
            }
            samples.push_slope(unproven == 0, rounds, [times]);
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
        });
    })?;
    rig.run(low)
}
