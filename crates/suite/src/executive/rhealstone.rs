//! The six components of Rhealstone, as RTEMS defines them where the article leaves it open; no figure of merit.

use hairspring_sheet::{Absent, Method, Unit, Value};

use super::bench::{Bench, Cache, Rig, Samples, Taken, proof_comes};
use super::port::{Ability, Calls, Port};
use super::waitwake::{HIGH, LOW, ROUNDS};
use super::{interrupts, mailbox, switching, waitwake};

/// The components, with what they measure.
pub(crate) const COMPONENTS: [(&str, &str, &str); 6] = [
    ("task_switch", "task switch", "yield between two equal tasks, the call itself included"),
    ("preemption", "preemption", "a task wakes a more urgent one, until that runs on (T3 of wait/wake)"),
    (
        "interrupt_latency",
        "interrupt latency",
        "an interrupt is fired, until its raw procedure runs (T1 of the ISP handler)",
    ),
    (
        "semaphore_shuffle",
        "semaphore shuffle",
        "two equal tasks pass a semaphore to and fro: what taking it from its holder adds to their yields, for each taking",
    ),
    (
        "deadlock_break",
        "deadlock break",
        "a task waits for a lock that a less urgent one holds, which inherits its urgency, and gets it: what that adds to the \
         same round without the wait",
    ),
    ("message_latency", "message latency", "a message is sent, until the more urgent task that waits for it has it"),
];

/// Measures one component.
pub(crate) fn component<P: Port>(bench: &Bench, name: &str) -> Value {
    let value = |taken: Result<Taken, Absent>, method| {
        taken.map_or_else(Value::Absent, |mut taken| taken.value(0, Unit::Ns, method, bench))
    };
    let one_of = |values: Vec<(&'static str, Value)>, quantity: &str| {
        let found = values.into_iter().find(|(name, _)| *name == quantity);
        found.map_or_else(|| Value::Absent(Absent::final_("it is not among what was measured")), |(_, value)| value)
    };
    match name {
        "task_switch" => value(switching::yields::<P>(bench, Cache::Hot, true), Method::Diff),
        "preemption" => one_of(waitwake::split::<P>(bench, Cache::Hot), "t3"),
        "interrupt_latency" => one_of(interrupts::raw::<P>(bench, Cache::Hot), "t1"),
        "semaphore_shuffle" => value(less(shuffle::<P>, bench), Method::Diff),
        "deadlock_break" => value(less(deadlock::<P>, bench), Method::Diff),
        _ => {
            let (taken, method) = mailbox::latency::<P>(bench);
            value(taken, method)
        }
    }
}

/// A loop with the event, less the same loop without.
fn less(run: fn(&Bench, bool) -> Result<Taken, Absent>, bench: &Bench) -> Result<Taken, Absent> {
    let with = run(bench, true)?;
    let without = run(bench, false)?;
    if let Some(void) = without.outcome.void {
        return Err(void);
    }
    Ok(with.less(without.median(0).unwrap_or(0.0)))
}

/// Two equal tasks, each: take, yield, give, yield; or only the yields.
fn shuffle<P: Port>(bench: &Bench, with: bool) -> Result<Taken, Absent> {
    if let Some(absent) = P::unable(Ability::Semaphore).or_else(|| P::unable(Ability::Yield)) {
        return Err(absent);
    }
    let mut rig = Rig::<P>::new(bench)?;
    let semaphore = rig.port.semaphore(1)?;
    let ((board, _), (clock, slice, tray)) = (rig.share(), rig.measuring());
    let first = rig.port.spawn("P", LOW, async move |calls| {
        let mut samples = Samples::new(1);
        let end = clock.after(slice);
        while end.since(clock.stamp()) > 0 && !samples.is_full() {
            let already = board.proof();
            let before = clock.stamp();
            for _ in 0..ROUNDS {
                if with {
                    calls.take(semaphore).await;
                }
                calls.yield_now().await;
                if with {
                    calls.give(semaphore).await;
                }
                calls.yield_now().await;
            }
            let taken = clock.ns_since(before);
            let others = board.proof() - already;
            // The other keeps step, within the round that is under way at either end.
            samples.push(others.abs_diff(ROUNDS) <= 1, [taken / (2 * ROUNDS) as f64]);
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    let (board, _) = rig.share();
    let other = rig.port.spawn("Q", LOW, async move |calls| {
        let mut proof = 0;
        loop {
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

/// L locks and wakes M, which wakes H, which wants the lock; or, without, H does not want it.
fn deadlock<P: Port>(bench: &Bench, with: bool) -> Result<Taken, Absent> {
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
            if with {
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
    let ((board, _), (clock, slice, tray)) = (rig.share(), rig.measuring());
    let low = rig.port.spawn("L", LOW, async move |calls| {
        let mut samples = Samples::new(1);
        clock.settle(Cache::Hot);
        let end = clock.after(slice);
        let mut proof = 0;
        while end.since(clock.stamp()) > 0 && !samples.is_full() {
            let mut unproven = 0;
            let before = clock.stamp();
            for _ in 0..ROUNDS {
                calls.lock(lock).await;
                calls.wake(middle).await;
                calls.unlock(lock).await;
                proof += 1;
                unproven += u64::from(board.proof() != proof);
            }
            samples.push(unproven == 0, [clock.ns_since(before) / ROUNDS as f64]);
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    rig.run(low)
}
