//! The polling loop: waits for a value of the counter and notices what disturbs it.
//!
//! ```text
//!          ┌──────────────── (1) not yet ───────────────┐
//!          ▼                                            │
//!   relax, read counter ──► gap? ──(2) note it ──► deadline? ──(3) reached──► ordered read, a last look
//!                               ▲                       │
//!                               └──(5) moved: add skew ─┼──(4) budget spent──► return, the caller sleeps the rest
//! ```
//!
//! Each round reads the counter first and looks at the sentinel then. A thread that is taken off its CPU before the read
//! shows a gap and a broken sentinel in the same round. One that is taken off between the read and the look shows the
//! break at once and the gap one round later; so a break without a gap waits for one round to be settled.
//!
//! # A counter that does not get there
//! It may stop, or begin anew. Every [`ROUNDS`] rounds the kernel's clock is looked at; if by that clock the poll has taken
//! longer than it may at all, it ends as if its budget were spent.
//!
//! # Which CPU a reading is from
//! The sentinel is set first and the CPU read after it. As long as the sentinel stands at the look that follows, every
//! reading before that look is from that CPU. A reading whose look finds the sentinel broken may be from another and
//! decides nothing: there is one more round. If the CPU of the deciding reading is not certainly that of the start, the
//! skew between CPUs is added to the deadline, once (edge 5). Without a sentinel nothing is certain, and it is added always.

use hairspring_machine::{Clock, Cpu, Machine, Nanos, Ticks};

use crate::timebase::Timebase;
use crate::trust::Source;
use crate::verdict::{Cause, Verdict};

/// Rounds between looks at the kernel's clock, in case the counter does not get anywhere: some 100 µs.
const ROUNDS: u32 = 4_096;
/// How much longer by the kernel's clock than by the counter a poll may take before it counts as stuck.
const STUCK_AFTER: Nanos = Nanos::from_millis(1);

/// How a polling stretch ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Polled {
    /// The final, ordered reading.
    pub(crate) end: Ticks,
    /// The deadline in force at the end: as asked for, or later by the skew.
    pub(crate) deadline: Ticks,
    /// Whether the deadline was reached (edge 3) or the budget spent first (edge 4).
    pub(crate) reached: bool,
}

/// Watches for gaps between looks at the counter. One [`Watch`] per polling stretch.
pub struct Watch<'t, M: Machine> {
    timebase: &'t Timebase<M>,
    start: Ticks,
    previous: Ticks,
    gap_ticks: i64,
    sentinel: bool,
    /// A break without a gap, with the length of its round; its gap comes in the next.
    waiting: Option<i64>,
    /// The latest look found the sentinel broken.
    broken: bool,
    /// Whether `start` was certainly read on `start_cpu`.
    start_certain: bool,
    start_cpu: Option<Cpu>,
    /// The CPU of all readings since the sentinel was set last.
    cpu: Option<Cpu>,
    verdict: Verdict,
}

impl<'t, M: Machine> Watch<'t, M> {
    /// Begins to watch at a reading taken just before; sets the sentinel. Real-time safe.
    #[inline]
    pub fn begin(timebase: &'t Timebase<M>, start: Ticks) -> Self {
        let sentinel = timebase.machine().sentinel_arm();
        let cpu = timebase.cpu();
        Self {
            timebase,
            start,
            previous: start,
            gap_ticks: timebase.ticks_for_at_least(timebase.gap_least()),
            sentinel,
            waiting: None,
            broken: false,
            start_certain: sentinel && cpu.is_some(),
            start_cpu: cpu,
            cpu,
            verdict: Verdict::default(),
        }
    }

    /// Begins to watch and takes the first reading, ordered, under the sentinel's eyes.
    #[inline]
    pub(crate) fn open(timebase: &'t Timebase<M>) -> (Self, Ticks) {
        let mut watch = Self::begin(timebase, Ticks::new(0));
        let start = timebase.stamp_ordered();
        (watch.start, watch.previous) = (start, start);
        (watch, start)
    }

    /// Looks at a new reading of the counter; returns the gap before it, if there is one, or a break without a gap once it
    /// is settled (one look later), with its cause. Real-time safe.
    #[inline(always)]
    pub fn look(&mut self, now: Ticks) -> Option<(Cause, Nanos)> {
        let previous = std::mem::replace(&mut self.previous, now);
        let gap = now.since(previous);
        let broken = self.sentinel && !self.timebase.machine().sentinel_intact();
        if gap < self.gap_ticks && self.waiting.is_none() && !broken && !self.broken {
            return None;
        }
        self.settle(previous, gap, broken)
    }

    /// The rare part of a look: something happened in this round or in the one before.
    #[cold]
    fn settle(&mut self, previous: Ticks, gap: i64, broken: bool) -> Option<(Cause, Nanos)> {
        self.broken = broken;
        if broken {
            self.timebase.machine().sentinel_arm();
            self.cpu = self.timebase.cpu();
            self.verdict.migrated |= self.cpu != self.start_cpu;
            self.start_certain &= previous != self.start;
        }
        let earlier = self.waiting.take();
        if gap < self.gap_ticks {
            self.waiting = broken.then_some(gap);
            return earlier.map(|earlier| self.record(Cause::Preempted, earlier));
        }
        // A gap belongs to the break of this round or to the one that waited for it; two breaks are two.
        self.waiting = (broken && earlier.is_some()).then_some(0);
        let cause = self.timebase.cause(self.sentinel, broken || earlier.is_some());
        Some(self.record(cause, gap))
    }

    fn record(&mut self, cause: Cause, gap: i64) -> (Cause, Nanos) {
        let length = self.timebase.nanos(gap);
        self.verdict.add(cause, length);
        (cause, length)
    }

    /// Ends the watch and takes the sentinel away.
    #[inline]
    pub fn end(mut self) -> Verdict {
        let last = self.previous;
        self.look(last);
        if let Some(waiting) = self.waiting.take() {
            self.record(Cause::Preempted, waiting);
        }
        self.verdict.migrated |= self.start_cpu != self.timebase.cpu();
        self.verdict
    }

    /// Whether the latest reading is certainly from the CPU of the first.
    #[inline]
    fn stayed(&self) -> bool {
        self.start_certain && !self.broken && self.cpu == self.start_cpu
    }
}

impl<M: Machine> Drop for Watch<'_, M> {
    fn drop(&mut self) {
        self.timebase.machine().sentinel_disarm();
    }
}

/// Polls until the counter reaches `deadline`, under a watch that was opened before, for at most `budget` ticks from
/// `start`. `skew` is how far the counters of two CPUs can be apart.
#[inline]
pub(crate) fn poll<M: Machine>(
    watch: &mut Watch<'_, M>,
    start: Ticks,
    deadline: Ticks,
    budget: i64,
    skew: Nanos,
) -> Polled {
    let timebase = watch.timebase;
    let machine = timebase.machine();
    let mut deadline = deadline;
    let mut skew_ticks = match timebase.source() {
        Source::Counter => timebase.ticks_for_at_least(skew),
        Source::KernelClock => 0,
    };
    let longest = timebase.nanos(deadline.since(start).min(budget).saturating_add(skew_ticks)) + STUCK_AFTER;
    let (mut rounds, mut since) = (0_u32, None);
    let mut now = start;
    let reached = loop {
        if now.since(deadline) >= 0 && !watch.broken {
            if watch.stayed() || skew_ticks == 0 {
                break true;
            }
            deadline = deadline.plus(std::mem::take(&mut skew_ticks));
            continue;
        }
        if now.since(start) >= budget || (rounds == ROUNDS && is_stuck(machine, &mut since, longest)) {
            if !watch.stayed() {
                deadline = deadline.plus(skew_ticks);
            }
            break false;
        }
        rounds = (rounds % ROUNDS) + 1;
        machine.relax();
        now = timebase.stamp();
        watch.look(now);
    };
    let end = timebase.stamp_ordered();
    watch.look(end);
    watch.verdict.budget_spent |= !reached;
    Polled { end, deadline, reached }
}

/// Looks at the kernel's clock, and tells whether more than `longest` has passed by it since the first such look.
#[cold]
fn is_stuck<M: Machine>(machine: &M, since: &mut Option<Nanos>, longest: Nanos) -> bool {
    let now = machine.read(Clock::Monotonic);
    now - *since.get_or_insert(now) > longest
}
