//! The eight tests of Thread-Metric as operations per second, with their validity check: the counters of the tasks
//! agree.

use std::hint::black_box;

use hairspring_sheet::Absent;

use super::waitwake::{HIGH, LOW};
use super::{Component, How};
use crate::executive::bench::firing::{FiringThread, Waiting, rehearse};
use crate::executive::bench::{Bench, Board, Found, Rig, Sampled, proof_comes, sampling};
use crate::executive::port::{Ability, Calls, InterruptCalls, Port};
use crate::probe::spin;

/// The tests: description of one operation, and the run.
pub(crate) fn tests<P: Port>() -> [Component; 8] {
    let test = |segment, label, measures, run| Component { segment, label, measures, how: How::Rate, place: 0, run };
    [
        test(
            "basic",
            "basic processing",
            "one pass over an array of 1,024 words: the CPU alone, without an executive",
            |bench| able::<P>(&[], || basic::<P>(bench)),
        ),
        test("cooperative", "cooperative scheduling", "five equal tasks yield in turn: one yield", |bench| {
            yields::<P>(bench, operations::<P>())
        }),
        test(
            "preemptive",
            "preemptive scheduling",
            "five tasks of ascending urgency wake each other: one wake and wait",
            |bench| able::<P>(&[Ability::Wake, Ability::PreemptsCaller], || preemptive::<P>(bench, operations::<P>())),
        ),
        test(
            "interrupt",
            "interrupt processing",
            "an interrupt signals a semaphore, which the interrupted task takes",
            |bench| able::<P>(&[Ability::Interrupt, Ability::Semaphore], || interrupt::<P>(bench, false)),
        ),
        test(
            "interrupt_preemption",
            "interrupt preemption",
            "an interrupt wakes a more urgent task, which preempts and waits again",
            |bench| {
                let needs = [Ability::Interrupt, Ability::Wake, Ability::PreemptsCaller];
                able::<P>(&needs, || interrupt::<P>(bench, true))
            },
        ),
        test("message", "message passing", "a task sends itself a message of 12 bytes and receives it", |bench| {
            messages::<P>(bench, operations::<P>())
        }),
        test("synchronisation", "synchronisation", "a task takes a semaphore and gives it back", |bench| {
            takings::<P>(bench, QUICK)
        }),
        test("memory", "memory allocation", "a task takes a block of 128 bytes of a pool and gives it back", |bench| {
            able::<P>(&[Ability::Blocks], || memory::<P>(bench, QUICK))
        }),
    ]
}

/// Operations between two stamps, for fast and for slow executives.
pub(super) const QUICK: u64 = 1_000;
const SLOW: u64 = 32;
/// Number of tasks in the scheduling tests.
pub(super) const TASKS: u64 = 5;

/// Runs a test, if the executive has the abilities.
fn able<P: Port>(needs: &[Ability], run: impl FnOnce() -> Result<Sampled, Absent>) -> Found {
    match needs.iter().find_map(|ability| P::unable(*ability)) {
        Some(absent) => Err(absent),
        None => run().map(|taken| taken.series(0)),
    }
}

/// Five equal tasks yield in turn.
pub(super) fn yields<P: Port>(bench: &Bench, operations: u64) -> Found {
    able::<P>(&[Ability::Yield], || cooperative::<P>(bench, operations))
}

/// Five tasks wake each other, also where the caller of wake is not preempted.
pub(super) fn wakes<P: Port>(bench: &Bench, operations: u64) -> Found {
    able::<P>(&[Ability::Wake], || preemptive::<P>(bench, operations))
}

/// A task sends itself messages.
pub(super) fn messages<P: Port>(bench: &Bench, operations: u64) -> Found {
    able::<P>(&[Ability::Mail], || message::<P>(bench, operations))
}

/// A task takes a semaphore and gives it back.
pub(super) fn takings<P: Port>(bench: &Bench, operations: u64) -> Found {
    able::<P>(&[Ability::Semaphore], || synchronisation::<P>(bench, operations))
}

/// Operations between two stamps.
pub(super) fn operations<P: Port>() -> u64 {
    if P::BELOW_STAMPS { QUICK } else { SLOW }
}

fn per_second(operations: u64, ns: f64) -> f64 {
    operations as f64 * 1e9 / ns
}

/// A task alone: runs `$operation` in a batch between stamps.
macro_rules! alone {
    ($rig:ident, $operations:expr, $calls:ident => $operation:expr) => {{
        let (clock, slice, tray) = $rig.measuring();
        let operations: u64 = $operations;
        let task = $rig.port.spawn("A", LOW, async move |$calls| {
            sampling!($calls, (clock, slice, tray), samples: 1 => {
                let before = clock.stamp();
                for _ in 0..operations {
                    $operation;
                }
                spin(0, operations);
                samples.push(true, [per_second(operations, clock.ns_since(before))]);
            });
        })?;
        $rig.run(task)
    }};
}

fn basic<P: Port>(bench: &Bench) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let mut words = vec![0_u64; 1_024];
    alone!(rig, SLOW, calls => {
        for index in 0..words.len() {
            let value = words[index].wrapping_add(words[words.len() - 1 - index]) ^ index as u64;
            words[index] = value;
        }
        black_box(&mut words);
    })
}

fn synchronisation<P: Port>(bench: &Bench, operations: u64) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let semaphore = rig.port.semaphore(1)?;
    alone!(rig, operations, calls => {
        calls.take(semaphore).await;
        calls.give(semaphore).await;
    })
}

fn memory<P: Port>(bench: &Bench, operations: u64) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let blocks = rig.port.blocks(16)?;
    alone!(rig, operations, calls => calls.block(&blocks).await)
}

fn message<P: Port>(bench: &Bench, operations: u64) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let (clock, slice, tray) = rig.measuring();
    let mail = rig.port.spawn_mail("A", HIGH, async move |calls, own, _| {
        let mut number = 0_u32;
        sampling!(calls, (clock, slice, tray), samples: 1 => {
            let before = clock.stamp();
            let mut wrong = 0_u32;
            for _ in 0..operations {
                number = number.wrapping_add(1);
                calls.send(own, [number, 0, 0]).await;
                wrong += u32::from(calls.receive(own).await[0] != number);
            }
            spin(0, operations);
            samples.push(wrong == 0, [per_second(operations, clock.ns_since(before))]);
        });
    })?;
    let starter = rig.port.spawn("B", LOW, async move |calls| calls.send(mail, [0; 3]).await)?;
    rig.run(starter)
}

fn cooperative<P: Port>(bench: &Bench, operations: u64) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let counters: Vec<_> = (1..TASKS).map(|_| std::sync::Arc::new(Board::default())).collect();
    for board in counters.clone() {
        let task = rig.port.spawn("T", LOW, async move |calls| {
            let mut count = 0;
            loop {
                calls.yield_now().await;
                count += 1;
                board.prove(count);
            }
        })?;
        rig.port.start(task)?;
    }
    let (clock, slice, tray) = rig.measuring();
    let first = rig.port.spawn("T", LOW, async move |calls| {
        calls.yield_now().await;
        sampling!(calls, (clock, slice, tray), samples: 1 => {
            let already: Vec<u64> = counters.iter().map(|counter| counter.proof()).collect();
            let before = clock.stamp();
            for _ in 0..operations {
                calls.yield_now().await;
            }
            spin(0, operations * TASKS);
            let ns = clock.ns_since(before);
            let agree =
                counters.iter().zip(already).all(|(now, before)| (now.proof() - before).abs_diff(operations) <= 1);
            samples.push(agree, [per_second(operations * TASKS, ns)]);
        });
    })?;
    rig.run(first)
}

fn preemptive<P: Port>(bench: &Bench, operations: u64) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let mut next = None;
    for link in 0..TASKS as u8 - 1 {
        let (board, _) = rig.share();
        let mut count = 0;
        let task = rig.port.spawn("T", HIGH + link, async move |calls| {
            loop {
                calls.wait().await;
                count += 1;
                match next {
                    Some(next) => calls.wake(next).await,
                    None => board.prove(count),
                }
            }
        })?;
        rig.port.start(task)?;
        next = Some(task);
    }
    let Some(first) = next else { return Err(Absent::final_("there are no tasks")) };
    let ((board, _), (clock, slice, tray)) = (rig.share(), rig.measuring());
    let preempts = P::unable(Ability::PreemptsCaller).is_none();
    let low = rig.port.spawn("T", LOW, async move |calls| {
        let mut count = 0;
        sampling!('sampling: calls, (clock, slice, tray), samples: 1 => {
            let mut unproven = 0;
            let before = clock.stamp();
            for _ in 0..operations {
                calls.wake(first).await;
                count += 1;
                unproven += u64::from(board.proof() != count);
                if !preempts && !proof_comes::<P>(calls, &board, count, &clock).await {
                    break 'sampling;
                }
            }
            spin(0, operations * TASKS);
            samples.push(unproven == 0 || !preempts, [per_second(operations * TASKS, clock.ns_since(before))]);
            if !proof_comes::<P>(calls, &board, count, &clock).await {
                break;
            }
        });
    })?;
    rig.run(low)
}

/// An interrupt from another thread, requested by the task that it interrupts.
fn interrupt<P: Port>(bench: &Bench, preempts: bool) -> Result<Sampled, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let semaphore = rig.port.semaphore(0)?;
    let (board, _) = rig.share();
    let mut count = 0;
    let interrupt = if preempts {
        let high = rig.port.spawn("H", HIGH, async move |calls| {
            loop {
                calls.wait().await;
                count += 1;
                board.prove(count);
            }
        })?;
        rig.port.start(high)?;
        rig.port.attach(move |calls| calls.wake(high))
    } else {
        rig.port.attach(move |calls| {
            calls.give(semaphore);
            count += 1;
            board.prove(count);
        })
    }?;
    let (_firing, trigger) = FiringThread::start(bench, &rig.board, interrupt, Waiting::Polls)?;
    let ((board, _), (clock, slice, tray)) = (rig.share(), rig.measuring());
    let low = rig.port.spawn("L", LOW, async move |calls| {
        if !rehearse::<P>(calls, &board, &trigger, &clock).await {
            calls.stop().await;
            return;
        }
        if !preempts {
            calls.take(semaphore).await;
        }
        let mut count = 1;
        sampling!('sampling: calls, (clock, slice, tray), samples: 1 => {
            let before = clock.stamp();
            for _ in 0..SLOW {
                count += 1;
                trigger.arm(count);
                if !proof_comes::<P>(calls, &board, count, &clock).await {
                    break 'sampling;
                }
                if !preempts {
                    calls.take(semaphore).await;
                }
            }
            spin(0, SLOW);
            samples.push(true, [per_second(SLOW, clock.ns_since(before))]);
        });
    })?;
    rig.run(low)
}
