//! Time that the calling thread loses while it polls, and while it sleeps to the end of each period: the input of
//! [`blame`](hairspring_culprit::blame).

use hairspring_culprit::host::own_thread;
use hairspring_culprit::{LostTime, Wanted};
use hairspring_machine::{Host, Instant, Machine, Nanos};
use hairspring_time::GAP_LEAST;

/// Polls for a time, and returns its gaps: as many as there is room for. Allocates before it polls.
pub fn polled(span: Nanos, most: usize) -> Vec<LostTime> {
    let thread = own_thread();
    let of = |from, to| LostTime { thread, from, to, wanted: Wanted::Run };
    // Touched once, so that no page fault falls among the gaps.
    let mut gaps = vec![of(Instant::BOOT, Instant::BOOT); most];
    gaps.clear();
    let mut before = Host.monotonic();
    let end = before + span;
    while before < end {
        let now = Host.monotonic();
        if now - before >= GAP_LEAST && gaps.len() < most {
            gaps.push(of(before, now));
        }
        before = now;
    }
    gaps
}

/// Sleeps to the end of each period for `span`, or until `stopped` returns true; returns the lateness of each wake-up.
pub fn slept(period: Nanos, span: Nanos, stopped: impl Fn() -> bool) -> Vec<LostTime> {
    let begin = Host.monotonic();
    let (thread, mut next, mut late) = (own_thread(), begin + period, Vec::new());
    while next < begin + span && !stopped() {
        Host.sleep_until(next);
        let now = Host.monotonic();
        late.push(LostTime { thread, from: next, to: now, wanted: Wanted::Wake });
        while next <= now {
            next += period;
        }
    }
    late
}
