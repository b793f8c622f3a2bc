//! Clock services: a timer's procedure, a tick with nothing due, and a task that delays.
//!
//! Times from a due moment begin at that moment on `CLOCK_MONOTONIC`, and end at a reading of it. Waiting tasks poll
//! with `preempt_point`, where fibers serve the clock.

use hairspring_machine::{Instant, Nanos, Ticks};
use hairspring_sheet::Absent;

use super::waitwake::{HIGH, LINKS, LINKS_FEWER, LOW, TURNS, links};
use super::{Group, How, Scenario, diagrams, quantity};
use crate::executive::bench::{Bench, Cache, Found, Rig, Sampled, all_absent, chained, proof_comes, sampling};
use crate::executive::port::{Ability, Calls, Port};
use crate::probe::spin;

/// From a call that sets a time to that time: long enough for all tasks to sleep, with hot caches and with dirty ones.
const AHEAD: [Nanos; 2] = [Nanos::from_micros(100), Nanos::from_micros(250)];
/// The time of a timer that is set and never due.
const FAR: Nanos = Nanos::from_secs(3_000);
/// Ticks between two stamps.
const TICKS: u64 = 64;

fn ahead(cache: Cache) -> Nanos {
    AHEAD[usize::from(cache == Cache::Dirty)]
}

/// The table of timers: T1 is the tick, T2 the time to the procedure, T3 from the procedure to the task.
pub(super) fn timers<P: Port>() -> Group {
    let measures = "the moment a timer is due until its procedure is entered, while a task computes";
    let quantities = vec![
        quantity("t1", "T1", How::Loop, "a check of the clock with a timer set and none due"),
        quantity("t2", "T2", How::Stamp, measures),
        quantity("t3", "T3", How::Stamp, "the timer procedure returns until the interrupted task continues"),
    ];
    Group {
        segment: "timer",
        title: "Timers",
        diagram: Some(diagrams::timer()),
        scenarios: vec![Scenario { quantities, run: ticks_and_procedure::<P> }],
    }
}

fn ticks_and_procedure<P: Port>(bench: &Bench, cache: Cache) -> Vec<Found> {
    if let Some(absent) = P::unable(Ability::Timer) {
        return all_absent::<3>(&absent);
    }
    let tick = match P::unable(Ability::Tick) {
        Some(absent) => Err(absent),
        None => ticks::<P>(bench, cache).map(|taken| taken.series(0)),
    };
    match procedure::<P>(bench, cache) {
        Ok(taken) => {
            let back = P::unable(Ability::PreemptsCaller);
            vec![tick, Ok(taken.series(0)), back.map_or_else(|| Ok(taken.series(1)), Err)]
        }
        Err(absent) => all_absent::<3>(&absent),
    }
}

/// Checks the clock with a timer set that is not due.
fn ticks<P: Port>(bench: &Bench, cache: Cache) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let timer = rig.port.timer(|| {})?;
    let ((clock, slice, tray), sweep) = (rig.measuring(), bench.sweep(cache));
    let ticks = if cache == Cache::Hot { TICKS } else { 1 };
    let task = rig.port.spawn("A", LOW, async move |calls| {
        calls.start_timer(timer, clock.monotonic() + FAR).await;
        sampling!(calls, (clock, slice, tray), samples: 1 => {
            sweep.sweep();
            let before = clock.stamp();
            for _ in 0..ticks {
                calls.preempt_point().await;
            }
            spin(0, ticks);
            let taken = clock.ns_since(before);
            samples.push_mean(true, ticks, [taken]);
        });
    })?;
    rig.run(task)
}

/// T2 and T3 of a timer that expires.
fn procedure<P: Port>(bench: &Bench, cache: Cache) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let (board, clock) = rig.share();
    let mut proof = 0;
    let timer = rig.port.timer(move || {
        spin(1, 1);
        board.mark(0, Ticks::new(clock.monotonic().as_monotonic().count().cast_unsigned()));
        proof += 1;
        board.mark(1, clock.stamp());
        board.prove(proof);
    })?;
    let ((board, _), (clock, slice, tray), sweep) = (rig.share(), rig.measuring(), bench.sweep(cache));
    let task = rig.port.spawn("A", LOW, async move |calls| {
        let mut proof = 0;
        sampling!(calls, (clock, slice, tray), samples: 2 => {
            sweep.sweep();
            let due = clock.monotonic() + ahead(cache);
            calls.start_timer(timer, due).await;
            proof += 1;
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
            spin(2, 1);
            let goes_on = clock.stamp();
            let entered = board.at(0).since(Ticks::new(due.as_monotonic().count().cast_unsigned()));
            samples.push(true, [entered as f64, clock.ns(goes_on.since(board.at(1)))]);
        });
    })?;
    rig.run(task)
}

/// The table of delays: T1 from the call to the less urgent task, T2 from the due moment to the task that delayed.
pub(super) fn delays<P: Port>() -> Group {
    let measures = "the moment a delay is due until its task continues, while a less urgent one computes";
    let quantities = vec![
        quantity("t1", "T1", How::Chain, "A calls delay until a less urgent task runs"),
        quantity("t2", "T2", How::Stamp, measures),
    ];
    Group {
        segment: "delay",
        title: "Delay",
        diagram: Some(diagrams::delay()),
        scenarios: vec![Scenario { quantities, run: leave_and_return::<P> }],
    }
}

fn leave_and_return<P: Port>(bench: &Bench, cache: Cache) -> Vec<Found> {
    if let Some(absent) = P::unable(Ability::Delay).or_else(|| P::unable(Ability::Wake)) {
        return all_absent::<2>(&absent);
    }
    let taken = match delay::<P>(bench, cache) {
        Ok(taken) => taken,
        Err(absent) => return all_absent::<2>(&absent),
    };
    let leaves = match P::unable(Ability::PreemptsCaller) {
        Some(absent) => Err(absent),
        None if chained::<P>(cache) => chain::<P>(bench).map(|taken| taken.series(0)),
        None => Ok(taken.series(0)),
    };
    vec![leaves, Ok(taken.series(1))]
}

/// T1 alone, with hot caches.
pub(super) fn leaving<P: Port>(bench: &Bench) -> Found {
    leave_and_return::<P>(bench, Cache::Hot).swap_remove(0)
}

fn delay<P: Port>(bench: &Bench, cache: Cache) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let ((board, clock), sweep) = (rig.share(), bench.sweep(cache));
    let high = rig.port.spawn("A", HIGH, async move |calls| {
        let mut proof = 0;
        loop {
            calls.wait().await;
            sweep.sweep();
            let due = clock.monotonic() + ahead(cache);
            proof += 1;
            board.prove(proof);
            board.mark(0, clock.stamp());
            calls.delay_until(due).await;
            spin(1, 1);
            let late = clock.monotonic() - due;
            board.mark(1, Ticks::new(late.count().cast_unsigned()));
            proof += 1;
            board.prove(proof);
        }
    })?;
    rig.port.start(high)?;
    let ((board, _), (clock, slice, tray)) = (rig.share(), rig.measuring());
    let preempts = P::unable(Ability::PreemptsCaller).is_none();
    let low = rig.port.spawn("X", LOW, async move |calls| {
        clock.settle(Cache::Hot);
        let mut proof = 0;
        sampling!(calls, (clock, slice, tray), samples: 2 => {
            calls.wake(high).await;
            spin(0, 1);
            let goes_on = clock.stamp();
            let proven = board.proof() == proof + 1;
            let left = board.at(0);
            proof += 2;
            if !proof_comes::<P>(calls, &board, proof, &clock).await {
                break;
            }
            let late = board.at(1).raw().cast_signed() as f64;
            samples.push(proven || !preempts, [clock.ns(goes_on.since(left)), late]);
            if !preempts {
                clock.settle(Cache::Hot);
            }
        });
    })?;
    rig.run(low)
}

/// T1 up a chain: each task delays to the same moment, the most urgent first. The chain and its second half take turns.
fn chain<P: Port>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let (first, middle) = links::<P>(|link, next| {
        let (board, clock) = rig.share();
        let task = rig.port.spawn("A", HIGH + link, async move |calls| {
            loop {
                calls.wait().await;
                if let Some(next) = next {
                    calls.wake(next).await;
                } else {
                    board.mark(0, clock.stamp());
                    spin(0, board.at(2).raw() + 1);
                }
                let due = Instant::from_monotonic(Nanos::new(board.at(1).raw().cast_signed()));
                calls.delay_until(due).await;
                // The least urgent comes last: the one that was woken from outside.
                if Ticks::new(u64::from(link)) == board.at(2) {
                    board.prove(board.proof() + 1);
                }
            }
        })?;
        rig.port.start(task)?;
        Ok(task)
    })?;
    let ((board, _), (clock, slice, tray)) = (rig.share(), rig.measuring());
    let low = rig.port.spawn("X", LOW, async move |calls| {
        let mut proof = 0;
        sampling!('sampling: calls, (clock, slice, tray), samples: 1 => {
            let mut times = [0.0; 4];
            let mut proven = true;
            for (time, longer) in times.iter_mut().zip(TURNS) {
                let (task, links) = if longer { (first, LINKS) } else { (middle, LINKS_FEWER) };
                let due = clock.monotonic() + ahead(Cache::Hot);
                board.mark(1, Ticks::new(due.as_monotonic().count().cast_unsigned()));
                board.mark(0, Ticks::new(0));
                board.mark(2, Ticks::new(u64::from(links - 1)));
                calls.wake(task).await;
                let after = clock.stamp();
                let deepest = board.at(0);
                proven &= deepest != Ticks::new(0) && board.proof() == proof;
                proof += 1;
                *time = clock.ns(after.since(deepest));
                if !proof_comes::<P>(calls, &board, proof, &clock).await {
                    break 'sampling;
                }
            }
            samples.push_slope(proven, u64::from(LINKS - LINKS_FEWER), [times]);
        });
    })?;
    rig.run(low)
}
