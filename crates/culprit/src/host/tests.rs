//! The records of the machine on which the tests run.

use std::time::Duration;

use hairspring_machine::{Cpu, Host, Instant, Machine, Nanos};
use testing::skip;

use super::{Tracer, TracerSettings, Untraced, own_thread};
use crate::{CpuHistory, KernelEvent, LostTime, Terms, Wanted, blame};

pub(super) fn now() -> Instant {
    Host.monotonic()
}

/// Pins the thread to the CPU on which it runs, and opens a tracer there.
fn tracer(test: &str) -> Option<(Tracer, u32)> {
    let cpu = rustix::thread::sched_getcpu();
    let mut set = rustix::thread::CpuSet::new();
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set).expect("may be pinned where it runs");
    match Tracer::open(&TracerSettings::of_cpus([Cpu(u32::try_from(cpu).expect("a small number"))])) {
        Ok(tracer) => Some((tracer, own_thread())),
        Err(Untraced { reason, remedy: Some(_) }) => {
            skip(test, reason);
            None
        }
        Err(untraced) => panic!("{untraced}"),
    }
}

#[test]
fn own_sleeps_lie_between_own_stamps() {
    let Some((mut tracer, _)) = tracer("own_sleeps_lie_between_own_stamps") else { return };
    tracer.self_test().expect("the kernel's stamps are on this clock");
}

#[test]
fn an_own_sleep_is_blamed_on_the_own_call_and_records_come_in_order() {
    let Some((mut tracer, thread)) = tracer("an_own_sleep_is_blamed_on_the_own_call_and_records_come_in_order") else {
        return;
    };
    tracer.self_test().expect("the kernel's stamps are on this clock");
    std::thread::sleep(Duration::from_millis(1));
    let from = now();
    std::thread::sleep(Duration::from_millis(20));
    let to = now();
    let (mut history, mut latest) = (CpuHistory::new(), Instant::BOOT);
    let until = tracer.drain(|_, record| {
        if record.event != KernelEvent::Lost {
            // The kernel's clock for records may step back by less than a microsecond when it is adjusted.
            assert!(record.at + Nanos::from_micros(1) >= latest, "{} before {latest}", record.at);
            latest = record.at;
        }
        history.push(record);
    });
    assert!(until >= to);
    history.known_until(until);
    let blame = blame(&LostTime { thread, from, to, wanted: Wanted::Run }, &history, &Terms::guest());
    let chief = blame.chief().expect("time passed").culprit;
    if chief.is_named() {
        assert_eq!(chief.to_string(), "the thread's own system call", "{blame:?}");
    } else {
        skip("an_own_sleep_is_blamed_on_the_own_call_and_records_come_in_order", chief);
    }
}

#[test]
fn what_happens_while_the_tracer_is_paused_is_not_recorded() {
    let Some((mut tracer, thread)) = tracer("what_happens_while_the_tracer_is_paused_is_not_recorded") else { return };
    let own_switches = |tracer: &mut Tracer| {
        tracer.drain(|_, _| ());
        std::thread::sleep(Duration::from_millis(1));
        let mut count = 0;
        tracer.drain(|_, record| {
            count += usize::from(matches!(record.event, KernelEvent::Switch { from, .. } if from.pid == thread));
        });
        count
    };
    assert!(own_switches(&mut tracer) > 0);
    tracer.pause().expect("may be paused");
    assert_eq!(own_switches(&mut tracer), 0);
    tracer.resume().expect("may go on");
    assert!(own_switches(&mut tracer) > 0);
}

#[test]
fn what_a_record_costs_is_measured_in_pairs_and_the_thread_goes_where_it_was() {
    let test = "what_a_record_costs_is_measured_in_pairs_and_the_thread_goes_where_it_was";
    let Some((mut tracer, _)) = tracer(test) else { return };
    let (cpu, before) = (tracer.cpus()[0], Host.affinity());
    let pairs = tracer.cost(cpu).expect("it is measured");
    assert_eq!(Host.affinity(), before);
    assert!(pairs.len() > 1);
    for pair in &pairs {
        // A wake-up of each side writes two records, or four; a block without them is not counted.
        assert!(pair.records > 1_000 && pair.with > Nanos::ZERO && pair.without > Nanos::ZERO, "{pair:?}");
    }
}
