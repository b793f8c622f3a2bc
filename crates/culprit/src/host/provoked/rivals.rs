//! Tasks of each policy, and the thread's own page faults.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Host, Instant, Machine, Nanos, Policy};
use testing::skip;

use super::{Right, Stretch, Watched, busy, cpu, explained, judge, pin, times, usual};
use crate::host::own_thread;
use crate::host::tests::now;
use crate::{Culprit, CulpritKind, Occupant, Terms};

/// Number of runs of a rival; bounds the time in which a real-time thread takes a CPU to 200 µs each 10 ms.
const RIVALRIES: usize = 60;
const RIVALRY: Nanos = Nanos::from_micros(200);
const BETWEEN: Nanos = Nanos::from_millis(10);
/// A larger distance between the provoker's own stamps shows a disturbance of the provoker.
const UNDISTURBED: Nanos = Nanos::from_micros(5);

/// Spins until then; `None` if the spin was interrupted.
fn spin(until: Instant) -> Option<Stretch> {
    let from = now();
    let (mut latest, mut alone) = (from, true);
    while latest < until {
        let at = now();
        alone &= at - latest <= UNDISTURBED;
        latest = at;
    }
    alone.then_some(Stretch { from, to: latest })
}

/// A rival of this policy takes the CPU from a polling thread.
#[track_caller]
fn rival(test: &str, policy: Policy) {
    let cpu = cpu();
    let Some(mut watched) = Watched::open(test, cpu, Policy::Other) else { return };
    let rivalries = times(RIVALRIES);
    let done = AtomicBool::new(false);
    let (rival, truths) = std::thread::scope(|scope| {
        let rival = scope.spawn(|| {
            let host = Host;
            pin(cpu);
            let refused = host.set_policy(policy).err();
            let mut truths = Vec::new();
            let mut next = host.monotonic();
            for _ in 0..rivalries {
                next += BETWEEN;
                host.sleep_until(next);
                truths.extend(spin(now() + RIVALRY));
            }
            done.store(true, Ordering::Release);
            (own_thread(), truths, refused)
        });
        while !done.load(Ordering::Acquire) {
            black_box(now());
        }
        let (rival, truths, refused) = rival.join().expect("the rival ends");
        if let Some(refused) = &refused {
            skip(test, refused);
        }
        (rival, refused.is_none().then_some(truths))
    });
    let Some(truths) = truths else { return };
    let history = watched.history();
    let truths = explained(&history, truths);
    if truths.len() < rivalries / 4 {
        return skip(test, busy(truths.len(), rivalries));
    }
    let is_rival = |culprit: &Culprit| matches!(culprit, Culprit::Task(task) if task.pid == rival);
    judge(test, &history, &Terms::guest(), &truths, rivalries, &Right { all: is_rival, named: is_rival });
}

#[test]
fn a_real_time_rival_is_blamed_by_name() {
    rival("a_real_time_rival_is_blamed_by_name", Policy::Fifo(1));
}

#[test]
fn a_rival_in_round_robin_is_blamed_by_name() {
    rival("a_rival_in_round_robin_is_blamed_by_name", Policy::RoundRobin(1));
}

#[test]
fn an_ordinary_rival_is_blamed_by_name() {
    rival("an_ordinary_rival_is_blamed_by_name", Policy::Other);
}

#[test]
fn page_faults_are_blamed_on_the_memory() {
    const TEST: &str = "page_faults_are_blamed_on_the_memory";
    const PAGES: usize = 4_000;
    let cpu = cpu();
    let Some(mut watched) = Watched::open(TEST, cpu, Policy::Other) else { return };
    let mut memory = vec![0_u8; PAGES * 4096];
    let mut truths = Vec::new();
    for page in memory.chunks_mut(4096) {
        let from = now();
        page[0] = 1;
        let to = now();
        // A page that was present costs less; a touch during which another task ran proves nothing about pages.
        if to - from > Nanos::from_micros(1) {
            truths.push(Stretch { from, to });
        }
    }
    black_box(&memory);
    let history = watched.history();
    let alone = |truth: &Stretch| {
        history
            .occupants(truth.from, truth.to)
            .iter()
            .all(|(_, _, occupant)| matches!(occupant, Occupant::Task(task) if task.pid == own_thread()))
    };
    let faults = usual(explained(&history, truths).into_iter().filter(alone).collect());
    if faults.is_empty() {
        return skip(TEST, "the system has given the memory without a fault");
    }
    let is_fault = |culprit: &Culprit| culprit.kind() == CulpritKind::PageFault;
    // Memory that a guest gets first may be memory that the host has not allocated yet.
    let all = |culprit: &Culprit| is_fault(culprit) || *culprit == Culprit::Hypervisor;
    judge(TEST, &history, &Terms::guest(), &faults, PAGES, &Right { all, named: is_fault });
}
