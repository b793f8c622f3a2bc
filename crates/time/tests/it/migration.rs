//! Delays of a thread that moves between CPUs whose counters differ: never early, wherever it moves.
//!
//! The counters differ by at most the skew that the time base knows of. The sweeps step through every nanosecond of a
//! short delay, its first and its last reads included, with one move and with a move there and back.

use hairspring_machine::sim::{Disturbance, Script};
use hairspring_time::{Cpu, Nanos};

use super::{ODD_COSTS, calibrated, disturb_in, picos};

const REQUEST: Nanos = Nanos::from_micros(1);
/// 1 µs at 2.6 GHz, the skew that is assumed if it has not been measured.
const SKEW_TICKS: i64 = 2_600;

/// Checks one delay with moves at these times; returns whether it was reported as migrated.
#[track_caller]
fn check(offset: i64, sentinel: bool, moves: &[(i64, u32)]) -> bool {
    let script = Script { cpu_offsets: vec![0, offset], sentinel, costs: ODD_COSTS, ..Script::default() };
    let (sim, timebase) = calibrated(script);
    for (nanos, cpu) in moves {
        disturb_in(&sim, Nanos::new(*nanos), Disturbance::Migrate(Cpu(*cpu)));
    }
    let before = sim.true_picos();
    let report = timebase.delay(REQUEST).expect("short");
    let took = sim.true_picos() - before;
    assert!(took >= picos(REQUEST), "took {took} ps, offset {offset}, sentinel {sentinel}, moves {moves:?}");
    report.verdict.migrated
}

#[test]
fn a_move_to_another_cpu_never_makes_a_delay_early() {
    for offset in [SKEW_TICKS, -SKEW_TICKS, 1_000, -1_000, 0] {
        for nanos in 0..1_100 {
            let migrated = check(offset, true, &[(nanos, 1)]);
            assert!(migrated || !(100..900).contains(&nanos), "not told, offset {offset}, {nanos} ns");
        }
    }
}

/// Regression: a thread that came back between the read that ended the loop and the look at its CPU was early by the
/// skew, and so was one that moved between its first read and its first look at the CPU.
#[test]
fn a_move_there_and_back_never_makes_a_delay_early() {
    for offset in [SKEW_TICKS, -SKEW_TICKS] {
        for there in (0..60).step_by(3).chain((300..1_200).step_by(7)) {
            for stay in [1, 2, 5, 11, 17, 18, 19, 25, 37, 60, 111, 400, 900] {
                check(offset, true, &[(there, 1), (there + stay, 0)]);
            }
        }
    }
}

/// Regression: without rseq the CPU is unknown, and an unknown CPU was taken for an unchanged one.
#[test]
fn a_move_that_nobody_can_see_never_makes_a_delay_early() {
    for offset in [SKEW_TICKS, -SKEW_TICKS] {
        for nanos in (0..1_100).step_by(3) {
            check(offset, false, &[(nanos, 1)]);
        }
    }
}

#[test]
fn a_measured_skew_replaces_the_assumed_one() {
    let script = Script { cpu_offsets: vec![0, 26_000], costs: ODD_COSTS, ..Script::default() };
    let (sim, timebase) = calibrated(script);
    let timebase = timebase.with_skew(Nanos::from_micros(10) + Nanos::new(1));
    for nanos in (0..1_100).step_by(5) {
        disturb_in(&sim, Nanos::new(nanos), Disturbance::Migrate(Cpu(1)));
        let before = sim.true_picos();
        timebase.delay(REQUEST).expect("short");
        assert!(sim.true_picos() - before >= picos(REQUEST), "{nanos} ns");
        disturb_in(&sim, Nanos::ZERO, Disturbance::Migrate(Cpu(0)));
        sim.work(Nanos::new(1));
    }
}
