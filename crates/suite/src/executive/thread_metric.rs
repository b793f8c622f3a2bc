//! The eight tests of Thread-Metric as operations per second, with their validity check: the counters of the tasks agree.

use std::hint::black_box;

use hairspring_sheet::{Absent, Method, Unit, Value};

use super::bench::{Bench, Board, Rig, Samples, Taken, proof_comes};
use super::firing::{FiringThread, Waiting, rehearse};
use super::port::{Ability, Calls, InterruptCalls, Port};
use super::waitwake::{HIGH, LOW};

/// The tests, with what one operation is.
pub(crate) const TESTS: [(&str, &str, &str); 8] = [
    (
        "basic",
        "basic processing",
        "one pass over an array of 1,024 words: what the CPU can do, with no executive in it",
    ),
    ("cooperative", "cooperative scheduling", "five equal tasks yield in turn: one yield"),
    ("preemptive", "preemptive scheduling", "five tasks of ascending urgency wake each other: one wake and wait"),
    ("interrupt", "interrupt processing", "an interrupt signals a semaphore, which the interrupted task takes"),
    (
        "interrupt_preemption",
        "interrupt preemption",
        "an interrupt wakes a more urgent task, which preempts and waits again",
    ),
    ("message", "message passing", "a task sends itself a message of 12 bytes and receives it"),
    ("synchronisation", "synchronisation", "a task takes a semaphore and gives it back"),
    ("memory", "memory allocation", "a task takes a block of 128 bytes of a pool and gives it back"),
];

/// Operations between two stamps, on what is quick and on what is slow.
const QUICK: u64 = 1_000;
const SLOW: u64 = 32;
/// Tasks of the scheduling tests.
const TASKS: u64 = 5;

/// Measures one test.
pub(crate) fn test<P: Port>(bench: &Bench, name: &str) -> Value {
    let operations = if P::BELOW_STAMPS { QUICK } else { SLOW };
    let needs: &[Ability] = match name {
        "cooperative" => &[Ability::Yield],
        "preemptive" => &[Ability::Wake, Ability::PreemptsCaller],
        "interrupt" => &[Ability::Interrupt, Ability::Semaphore],
        "interrupt_preemption" => &[Ability::Interrupt, Ability::Wake, Ability::PreemptsCaller],
        "message" => &[Ability::Mail],
        "synchronisation" => &[Ability::Semaphore],
        "memory" => &[Ability::Blocks],
        _ => &[],
    };
    if let Some(absent) = needs.iter().find_map(|ability| P::unable(*ability)) {
        return Value::Absent(absent);
    }
    let taken = match name {
        "basic" => basic::<P>(bench),
        "cooperative" => cooperative::<P>(bench, operations),
        "preemptive" => preemptive::<P>(bench, operations),
        "interrupt" => interrupt::<P>(bench, false),
        "interrupt_preemption" => interrupt::<P>(bench, true),
        "message" => message::<P>(bench, operations),
        "synchronisation" => synchronisation::<P>(bench, QUICK),
        _ => memory::<P>(bench, QUICK),
    };
    taken.map_or_else(Value::Absent, |mut taken| taken.value(0, Unit::PerSecond, Method::Rate, bench))
}

fn per_second(operations: u64, ns: f64) -> f64 {
    operations as f64 * 1e9 / ns
}

/// A task alone: runs `$operation` so many times between stamps.
macro_rules! alone {
    ($rig:ident, $operations:expr, $calls:ident => $operation:expr) => {{
        let (clock, slice, tray) = $rig.measuring();
        let operations: u64 = $operations;
        let task = $rig.port.spawn("A", LOW, async move |$calls| {
            let mut samples = Samples::new(1);
            let end = clock.after(slice);
            while end.since(clock.stamp()) > 0 && !samples.is_full() {
                let before = clock.stamp();
                for _ in 0..operations {
                    $operation;
                }
                samples.push(true, [per_second(operations, clock.ns_since(before))]);
            }
            tray.put(samples);
            $calls.stop().await;
        })?;
        $rig.run(task)
    }};
}

fn basic<P: Port>(bench: &Bench) -> Result<Taken, Absent> {
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

fn synchronisation<P: Port>(bench: &Bench, operations: u64) -> Result<Taken, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let semaphore = rig.port.semaphore(1)?;
    alone!(rig, operations, calls => {
        calls.take(semaphore).await;
        calls.give(semaphore).await;
    })
}

fn memory<P: Port>(bench: &Bench, operations: u64) -> Result<Taken, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let blocks = rig.port.blocks(16)?;
    alone!(rig, operations, calls => calls.block(&blocks).await)
}

fn message<P: Port>(bench: &Bench, operations: u64) -> Result<Taken, Absent> {
    let mut rig = Rig::<P>::new(bench)?;
    let (clock, slice, tray) = rig.measuring();
    let mail = rig.port.spawn_mail("A", HIGH, async move |calls, own, _| {
        let mut samples = Samples::new(1);
        let end = clock.after(slice);
        let mut number = 0_u32;
        while end.since(clock.stamp()) > 0 && !samples.is_full() {
            let before = clock.stamp();
            let mut wrong = 0_u32;
            for _ in 0..operations {
                number = number.wrapping_add(1);
                calls.send(own, [number, 0, 0]).await;
                wrong += u32::from(calls.receive(own).await[0] != number);
            }
            samples.push(wrong == 0, [per_second(operations, clock.ns_since(before))]);
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    let starter = rig.port.spawn("B", LOW, async move |calls| calls.send(mail, [0; 3]).await)?;
    rig.run(starter)
}

fn cooperative<P: Port>(bench: &Bench, operations: u64) -> Result<Taken, Absent> {
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
        let mut samples = Samples::new(1);
        let end = clock.after(slice);
        calls.yield_now().await;
        while end.since(clock.stamp()) > 0 && !samples.is_full() {
            let already: Vec<u64> = counters.iter().map(|counter| counter.proof()).collect();
            let before = clock.stamp();
            for _ in 0..operations {
                calls.yield_now().await;
            }
            let ns = clock.ns_since(before);
            let agree =
                counters.iter().zip(already).all(|(now, before)| (now.proof() - before).abs_diff(operations) <= 1);
            samples.push(agree, [per_second(operations * TASKS, ns)]);
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    rig.run(first)
}

fn preemptive<P: Port>(bench: &Bench, operations: u64) -> Result<Taken, Absent> {
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
    let low = rig.port.spawn("T", LOW, async move |calls| {
        let mut samples = Samples::new(1);
        let end = clock.after(slice);
        let mut count = 0;
        while end.since(clock.stamp()) > 0 && !samples.is_full() {
            let mut unproven = 0;
            let before = clock.stamp();
            for _ in 0..operations {
                calls.wake(first).await;
                count += 1;
                unproven += u64::from(board.proof() != count);
            }
            samples.push(unproven == 0, [per_second(operations * TASKS, clock.ns_since(before))]);
            if !proof_comes::<P>(calls, &board, count, &clock).await {
                break;
            }
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    rig.run(low)
}

/// An interrupt from another thread, asked for by the task that it interrupts.
fn interrupt<P: Port>(bench: &Bench, preempts: bool) -> Result<Taken, Absent> {
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
        let mut samples = Samples::new(1);
        if !rehearse::<P>(calls, &board, &trigger, &clock).await {
            calls.stop().await;
            return;
        }
        if !preempts {
            calls.take(semaphore).await;
        }
        let end = clock.after(slice);
        let mut count = 1;
        'sampling: while end.since(clock.stamp()) > 0 && !samples.is_full() {
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
            samples.push(true, [per_second(SLOW, clock.ns_since(before))]);
        }
        tray.put(samples);
        calls.stop().await;
    })?;
    rig.run(low)
}
