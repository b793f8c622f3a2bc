//! Whether the CPU of the sheet has its core to itself: how long a loop of independent additions takes.
//!
//! Problem: a core that runs two hardware threads gives each of them a part of its units. On a virtual machine the
//! other thread belongs to another guest, is invisible to this one, and changes its load within seconds. Rows that keep
//! a core busy then have two values, 1.2 to 1.6 times apart.
//!
//! Solution: work that fills the core's units takes longer while a neighbour uses them. It is timed before and after
//! each probe, so what decides whether a round counts is known without its figures. For probes that use two CPUs it is
//! timed on both.

use std::hint::black_box;

use hairspring_machine::{Cpu, CpuSet, Host, Machine};
use hairspring_time::Timebase;

/// Chains of additions: as many as fill the units of any core.
const CHAINS: usize = 16;
/// Additions of each chain in a loop: some microseconds.
const STEPS: u64 = 1_000;
/// Loops, of which the fastest counts, since an interrupt lengthens one of them.
const LOOPS: usize = 5;

/// Least factor by which a neighbour on the core lengthens the loop.
pub(crate) const CROWDED: f64 = 1.1;

/// Times the loop on this CPU, in nanoseconds.
pub(crate) fn company(timebase: &Timebase<Host>, cpu: Cpu) -> f64 {
    let before = Host.affinity();
    let moves = before.0 != [cpu];
    if moves {
        // Refused, it is timed where the thread is.
        drop(Host.set_affinity(&CpuSet(vec![cpu])));
    }
    let timed = |_| {
        let before = timebase.stamp_ordered();
        additions();
        timebase.stamp_ordered().since(before) as f64 * 1e9 / timebase.calibration().rate_hz
    };
    let fastest = (0..LOOPS).map(timed).fold(f64::INFINITY, f64::min);
    if moves {
        drop(Host.set_affinity(&before));
    }
    fastest
}

#[inline(never)]
fn additions() {
    let mut sums: [u64; CHAINS] = std::array::from_fn(|chain| chain as u64);
    for step in 0..STEPS {
        for sum in &mut sums {
            *sum = black_box(*sum).wrapping_add(step);
        }
    }
    black_box(sums);
}
