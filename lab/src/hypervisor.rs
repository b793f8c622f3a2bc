//! The hypervisor as a culprit: the host stops the whole machine for a while, again and again, and each hole in the
//! guest's time must be blamed on the level below its kernel.
//!
//! The counter of the processor goes on while the machine is stopped. The host stops it from the moment at which this
//! test begins until it ends.

use std::fs;

use hairspring_culprit::host::{Tracer, TracerSettings, own_thread};
use hairspring_culprit::{CpuHistory, CulpritKind, LostTime, Tally, Terms, Wanted, blame};
use hairspring_time::{Host, Machine as _, Nanos, Policy, RealTime};

use crate::Lab;
use crate::findings::{Findings, check, text};

/// The name by which the host knows when to begin and when to end.
pub(crate) const TEST: &str = "hypervisor.stops";
/// Variable by which the host announces that it will stop the machine.
pub(crate) const STOPS: &str = "LAB_STOPS";

/// File with the CPU time of real-time threads in each second.
const LIMIT: &str = "/proc/sys/kernel/sched_rt_runtime_us";
/// Number of self-tests by which the tracer may find out whether the kernel writes records.
const SELF_TESTS: usize = 5;
/// Number of holes to wait for.
const HOLES: usize = 20;
/// The host stops for 50 ms. Nothing of the guest's own takes as long.
const HOLE_LEAST: Nanos = Nanos::from_millis(40);
/// A shorter gap is not looked at; it teaches how long interrupts take here.
const GAP_LEAST: Nanos = Nanos::from_micros(5);
const GAPS_MOST: usize = 100_000;
const PATIENCE: Nanos = Nanos::from_secs(40);
/// Least part of the time in the holes that must go below the kernel.
const RIGHT_LEAST: f64 = 0.99;

/// Polls until there were enough holes, and finds a culprit for each.
pub(crate) fn stops(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    // A real-time thread that polls would be throttled, which is a hole, too.
    let limit = fs::read_to_string(LIMIT).map_err(text)?;
    fs::write(LIMIT, "-1").map_err(text)?;
    let ended = holes(findings);
    fs::write(LIMIT, limit).map_err(text)?;
    ended
}

fn holes(findings: &mut Findings) -> Result<(), String> {
    let cpu = *Host.affinity().0.last().ok_or("no CPU may be used")?;
    let wishes =
        RealTime { policy: Some(Policy::Fifo(90)), cpu: Some(cpu), lock_memory: false, slack: None, idle: None };
    let settings = wishes.apply(&Host);
    check(settings.refused().is_none(), || format!("{:?}", settings.refused()))?;
    let mut tracer = Tracer::open(&TracerSettings::of_cpus([cpu])).map_err(text)?;
    // Some kernels write no records on a CPU for a while. The tracer reports that, and then no culprit can be found.
    let tries = (0..SELF_TESTS).map(|_| tracer.self_test().map_err(text)).collect::<Vec<_>>();
    if let Some(Err(refused)) = tries.last().filter(|_| tries.iter().all(Result::is_err)) {
        findings.not_judged(refused.clone());
        return Ok(());
    }
    // A change of tasks, from which on the history knows.
    Host.sleep_until(Host.monotonic() + Nanos::from_millis(1));
    let gaps = poll();
    let mut history = CpuHistory::new();
    let until = tracer.drain(|_, record| history.push(record));
    history.known_until(until);
    drop((tracer, settings));
    let terms = Terms::guest().learned(&gaps, &history);
    let is_hole = |lost: &&LostTime| lost.to - lost.from >= HOLE_LEAST;
    let mut tally = Tally::new();
    gaps.iter().filter(is_hole).for_each(|lost| tally.add(&blame(lost, &history, &terms)));
    let right = tally.share_of_kind(CulpritKind::Hypervisor).unwrap_or(0.0);
    let holes: Vec<Nanos> = gaps.iter().filter(is_hole).map(|lost| lost.to - lost.from).collect();
    findings.measured("holes", &holes);
    findings.note("the hypervisor's part", format!("{right:.5}"));
    let names = tally.culprits().into_iter().map(|(culprit, toll)| format!("{culprit} {}", toll.total));
    let names = names.collect::<Vec<_>>().join(", ");
    check(holes.len() >= HOLES, || format!("{} holes in {PATIENCE}: {names}", holes.len()))?;
    check(right >= RIGHT_LEAST, || format!("{right} of the time in {} holes: {names}", holes.len()))
}

/// The gaps of a polling loop, up to the one that makes the holes enough.
fn poll() -> Vec<LostTime> {
    let thread = own_thread();
    let nothing = LostTime { thread, from: Host.monotonic(), to: Host.monotonic(), wanted: Wanted::Run };
    // Touched once, so that no page fault falls into the loop.
    let mut gaps = vec![nothing; GAPS_MOST];
    gaps.clear();
    let now = || Host.monotonic();
    let (mut before, mut holes) = (now(), 0);
    let end = before + PATIENCE;
    while before < end && holes < HOLES {
        let at = now();
        if at - before >= GAP_LEAST && gaps.len() < GAPS_MOST {
            gaps.push(LostTime { from: before, to: at, ..nothing });
            holes += usize::from(at - before >= HOLE_LEAST);
        }
        before = at;
    }
    gaps
}
