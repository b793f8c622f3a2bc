//! The polling loop: waits for a value of the counter and notices what disturbs it.
//!
//! ```text
//!          ┌──────────────── (1) not yet ───────────────┐
//!          ▼                                            │
//!   relax, read counter ──► gap? ──(2) note it ──► deadline? ──(3) reached──► ordered read, settle the last gap
//!                                                       │
//!                                                       └──(4) budget spent──► return, the caller sleeps the rest
//! ```
//!
//! A gap seen in one round may break the sentinel only in the next: when the thread is taken off its CPU between the look
//! at the sentinel and the look at the counter. So each gap is settled one round later, the last one after the final
//! ordered read.

use hairspring_machine::{Cpu, Machine, Nanos, Ticks};

use crate::timebase::Timebase;
use crate::trust::Source;
use crate::verdict::{Cause, GAP_LEAST, Verdict};

/// How a polling stretch ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Polled {
    /// The final, ordered reading.
    pub(crate) end: Ticks,
    /// What disturbed it.
    pub(crate) verdict: Verdict,
    /// Whether the deadline was reached (edge 3) or the budget spent first (edge 4).
    pub(crate) reached: bool,
}

/// Watches for gaps between looks at the counter. One [`Watch`] per polling stretch.
pub struct Watch<'t, M: Machine> {
    timebase: &'t Timebase<M>,
    previous: Ticks,
    gap_ticks: i64,
    sentinel: bool,
    pending: Option<i64>,
    start_cpu: Option<Cpu>,
    verdict: Verdict,
}

impl<'t, M: Machine> Watch<'t, M> {
    /// Begins to watch; sets the sentinel. Real-time safe.
    #[inline]
    pub fn begin(timebase: &'t Timebase<M>, start: Ticks) -> Self {
        let sentinel = timebase.machine().sentinel_arm();
        Self {
            timebase,
            previous: start,
            gap_ticks: timebase.ticks_for_at_least(GAP_LEAST),
            sentinel,
            pending: None,
            start_cpu: timebase.cpu(),
            verdict: Verdict::default(),
        }
    }

    /// Looks at a new reading of the counter; returns the gap before it, if there is one, and its cause once that is
    /// settled (one look later). Real-time safe.
    #[inline(always)]
    pub fn look(&mut self, now: Ticks) -> Option<(Cause, Nanos)> {
        let gap = now.since(self.previous);
        self.previous = now;
        let broken = self.sentinel && !self.timebase.machine().sentinel_intact();
        if gap < self.gap_ticks && self.pending.is_none() && !broken {
            return None;
        }
        self.settle(gap, broken)
    }

    /// The rare part of a look: something happened in this round or in the one before.
    #[cold]
    fn settle(&mut self, gap: i64, broken: bool) -> Option<(Cause, Nanos)> {
        let earlier = self.pending.take();
        if broken {
            self.timebase.machine().sentinel_arm();
            // The break belongs to the gap of the round before if there is one that waits, else to this round,
            // however short.
            return Some(match earlier {
                Some(earlier) => {
                    self.pending = (gap >= self.gap_ticks).then_some(gap);
                    self.record(Cause::Preempted, earlier)
                }
                None => self.record(Cause::Preempted, gap),
            });
        }
        self.pending = (gap >= self.gap_ticks).then_some(gap);
        earlier.map(|earlier| {
            let cause = match (self.sentinel, self.timebase.trust().guest) {
                (false, _) => Cause::Unknown,
                (true, true) => Cause::InterruptedOrStolen,
                (true, false) => Cause::Interrupted,
            };
            self.record(cause, earlier)
        })
    }

    fn record(&mut self, cause: Cause, gap: i64) -> (Cause, Nanos) {
        let length = self.timebase.nanos(gap);
        self.verdict.add(cause, length);
        (cause, length)
    }

    /// Ends the watch and takes the sentinel away.
    #[inline]
    pub fn end(mut self) -> Verdict {
        // The last gap waits for a look that shows no gap of its own.
        let last = self.previous;
        self.look(last);
        self.verdict.migrated |= self.moved();
        self.verdict
    }

    /// Whether the thread is on another CPU than at the beginning.
    #[inline]
    fn moved(&self) -> bool {
        self.start_cpu != self.timebase.cpu()
    }
}

impl<M: Machine> Drop for Watch<'_, M> {
    fn drop(&mut self) {
        self.timebase.machine().sentinel_disarm();
    }
}

/// Polls until the counter reaches `deadline`, for at most `budget` ticks.
#[inline]
pub(crate) fn poll<M: Machine>(timebase: &Timebase<M>, start: Ticks, deadline: Ticks, budget: i64) -> Polled {
    let machine = timebase.machine();
    let mut deadline = deadline;
    let mut watch = Watch::begin(timebase, start);
    // A round takes more than a nanosecond on any machine: a counter that stands still cannot hold us forever.
    let mut rounds_left = timebase.nanos(budget).count().max(1_000);
    let mut now = start;
    let mut reached = true;
    loop {
        if now.since(deadline) >= 0 {
            // Another CPU's counter may be ahead of the one that the deadline was computed on.
            if watch.moved() && timebase.source() == Source::Counter {
                let skew = timebase.ticks_for_at_least(timebase.skew());
                watch.start_cpu = timebase.cpu();
                watch.verdict.migrated = true;
                deadline = deadline.plus(skew);
                continue;
            }
            break;
        }
        if now.since(start) >= budget || rounds_left == 0 {
            reached = false;
            break;
        }
        rounds_left -= 1;
        machine.relax();
        now = timebase.stamp();
        watch.look(now);
    }
    let end = timebase.stamp_ordered();
    let mut verdict = watch.end();
    verdict.budget_spent = !reached;
    Polled { end, verdict, reached }
}
