//! Culprits provoked on purpose: each test knows the truth from stamps of its own, and holds the blame against it.
//!
//! A stretch that was disturbed by anybody else is left out by the provoker's own stamps, before any blame is looked at. Tests that need a
//! permission which this process lacks say so and are skipped.

use std::hint::black_box;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Cpu, CpuSet, Host, Instant, Machine, Nanos, Policy};

use super::tests::{now, skip};
use super::{Tracer, TracerSettings, own_thread};
use crate::{CpuHistory, Culprit, CulpritKind, LostTime, Tally, Terms, Wanted, blame};

/// Of the time that was provoked, this part must have the right name.
const RIGHT_LEAST: f64 = 0.99;
/// How often a rival runs; bounds the time in which a real-time thread takes a CPU to 200 µs each 10 ms.
const RIVALRIES: usize = 60;
const RIVALRY: Nanos = Nanos::from_micros(200);
const BETWEEN: Nanos = Nanos::from_millis(10);
/// A provoker whose own stamps lie further apart was disturbed itself.
const UNDISTURBED: Nanos = Nanos::from_micros(5);

/// A stretch that the provoker took for certain, and who that is.
struct Truth {
    from: Instant,
    to: Instant,
}

fn cpu() -> Cpu {
    Cpu(u32::try_from(rustix::thread::sched_getcpu()).unwrap_or(0))
}

fn pin(cpu: Cpu) {
    Host.set_affinity(&CpuSet(vec![cpu])).expect("a thread may be pinned where it runs");
}

/// Spins until then; none if anything came in between.
fn spin(until: Instant) -> Option<Truth> {
    let from = now();
    let (mut latest, mut alone) = (from, true);
    while latest < until {
        let at = now();
        alone &= at - latest <= UNDISTURBED;
        latest = at;
    }
    alone.then_some(Truth { from, to: latest })
}

/// What was blamed on the right culprit, of all, and the kinds of the rest.
fn judge(test: &str, history: &CpuHistory, thread: u32, truths: &[Truth], right: impl Fn(&Culprit) -> bool) {
    let (mut named, mut all, mut tally) = (Nanos::ZERO, Nanos::ZERO, Tally::new());
    for truth in truths {
        let lost = LostTime { thread, from: truth.from, to: truth.to, wanted: Wanted::Run };
        let blame = blame(&lost, history, &Terms::guest());
        all += blame.time();
        named += blame.shares().iter().filter(|share| right(&share.culprit)).map(|share| share.time).sum();
        tally.add(&blame);
    }
    let part = named.count() as f64 / all.count().max(1) as f64;
    let _ = writeln!(std::io::stdout(), "figure: {test}, part with the right name: {part:.5}");
    let _ = writeln!(std::io::stdout(), "figure: {test}, provoked ms: {:.3}", all.count() as f64 / 1e6);
    let culprits: Vec<_> =
        tally.culprits().into_iter().map(|(culprit, toll)| format!("{culprit}: {}", toll.total)).collect();
    assert!(part >= RIGHT_LEAST, "{test}: {part} of {all} in {} stretches: {culprits:#?}", truths.len());
}

/// A rival of this policy takes the CPU from a polling thread.
#[track_caller]
fn rival(test: &str, policy: Policy) {
    let cpu = cpu();
    pin(cpu);
    let Some(mut tracer) = open(test, cpu) else { return };
    let done = AtomicBool::new(false);
    let (rival, truths) = std::thread::scope(|scope| {
        let rival = scope.spawn(|| {
            let host = Host;
            pin(cpu);
            let refused = host.set_policy(policy).err();
            let mut truths = Vec::new();
            let mut next = host.monotonic();
            for _ in 0..RIVALRIES {
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
        (rival, if refused.is_some() { Vec::new() } else { truths })
    });
    let history = drained(&mut tracer);
    let truths = explained(&history, truths);
    if truths.len() < RIVALRIES / 4 {
        return skip(test, "the machine was too busy, or the policy was refused");
    }
    judge(test, &history, own_thread(), &truths, |culprit| matches!(culprit, Culprit::Task(task) if task.pid == rival));
}

/// Those about which the kernel lost no record.
fn explained(history: &CpuHistory, truths: Vec<Truth>) -> Vec<Truth> {
    let known = |truth: &Truth| {
        let occupants = history.occupants(truth.from, truth.to);
        !occupants.iter().any(|(_, _, occupant)| matches!(occupant, crate::Occupant::Unknown(_)))
    };
    truths.into_iter().filter(known).collect()
}

fn open(test: &str, cpu: Cpu) -> Option<Tracer> {
    match Tracer::open(&TracerSettings { rare_vectors: false, ..TracerSettings::of_cpus([cpu]) }) {
        Ok(tracer) => {
            // A change of tasks, from which on the history knows.
            std::thread::sleep(std::time::Duration::from_millis(1));
            Some(tracer)
        }
        Err(untraced) => {
            skip(test, &untraced.reason);
            None
        }
    }
}

fn drained(tracer: &mut Tracer) -> CpuHistory {
    let mut history = CpuHistory::new();
    let until = tracer.drain(|_, record| history.push(record));
    history.known_until(until);
    history
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
    pin(cpu);
    let Some(mut tracer) = open(TEST, cpu) else { return };
    let mut memory = vec![0_u8; PAGES * 4096];
    let mut truths = Vec::new();
    for page in memory.chunks_mut(4096) {
        let from = now();
        page[0] = 1;
        let to = now();
        // A page that was there costs less; a touch during which somebody else ran says nothing of pages.
        if to - from > Nanos::from_micros(1) {
            truths.push(Truth { from, to });
        }
    }
    black_box(&memory);
    let history = drained(&mut tracer);
    let alone = |truth: &Truth| {
        history
            .occupants(truth.from, truth.to)
            .iter()
            .all(|(_, _, occupant)| matches!(occupant, crate::Occupant::Task(task) if task.pid == own_thread()))
    };
    let faults: Vec<Truth> = explained(&history, truths).into_iter().filter(alone).collect();
    if faults.is_empty() {
        return skip(TEST, "the system has given the memory without a fault");
    }
    judge(TEST, &history, own_thread(), &faults, |culprit| culprit.kind() == CulpritKind::PageFault);
}
