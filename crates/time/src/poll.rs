//! The polling loop: waits for a value of the counter and notices disturbances.
//!
//! ```text
//!          ┌──────────── (1) not yet, or disturbed ─────┐
//!          ▼                                            │
//!   relax, read counter ──► gap? ──(2) note it ──► deadline? ──(3) reached──► return
//!                               ▲                       │
//!                               └──(5) moved: add skew ─┼──(4) budget spent, or the kernel's clock is there──► return
//! ```
//!
//! Each round first reads the counter and then looks at the sentinel. A thread that is taken off its CPU before the
//! read shows a gap and a broken sentinel in the same round. One that is taken off between the read and the look shows
//! the break at once and the gap one round later; so a break without a gap is settled one round later.
//!
//! The deciding reading is the end of the stretch; its own look at the sentinel follows it. If something had to be
//! noted after a reading, that reading does not decide, because noting takes time. Then there is one more round.
//!
//! # A counter that does not get there
//! The counter may stop or begin anew. Every [`ROUNDS`] rounds the loop reads the kernel's clock. If the poll has taken
//! longer by that clock than it may at all, it ends as if its budget were spent.
//!
//! # Which CPU a reading is from
//! The sentinel is set first and the CPU read after it. If a later look finds the sentinel intact, every reading before
//! that look is from that CPU. If the look finds it broken, the reading before may be from another CPU and does not
//! decide: there is one more round. If the CPU of the deciding reading is not certainly that of the start, the skew
//! between CPUs is added to the deadline, once (edge 5). Without a sentinel nothing is certain, and the skew is always
//! added.
//!
//! # A watch within a watch
//! A delay under a [`Watch`] uses the same sentinel. A watch that found the sentinel set leaves it set, unless it has
//! seen it break: then the outer watch must see that, too.

use std::marker::PhantomData;

use hairspring_machine::{Cpu, Instant, Machine, Nanos, Policy, Ticks};

use crate::timebase::Timebase;
use crate::trust::TimeSource;
use crate::verdict::{Cause, Verdict};

/// Rounds between looks at the kernel's clock, in case the counter stands still: about 100 µs.
const ROUNDS: u32 = 4_096;
/// A poll counts as stuck if it takes this much longer by the kernel's clock than by the counter.
pub(crate) const STUCK_AFTER: Nanos = Nanos::from_millis(1);

/// How a polling stretch ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Polled {
    /// The deciding reading.
    pub(crate) end: Ticks,
    /// Whether the deadline was reached (edge 3) or not (edge 4).
    pub(crate) reached: bool,
}

/// Watches for gaps between looks at the counter. Use one [`Watch`] per polling stretch. It stays on its thread,
/// because the sentinel belongs to the thread:
///
/// ```compile_fail,E0277
/// fn take_elsewhere(watch: hairspring_time::Watch<'static, hairspring_time::Host>) -> impl Send {
///     watch
/// }
/// ```
pub struct Watch<'t, M: Machine> {
    timebase: &'t Timebase<M>,
    start: Ticks,
    previous: Ticks,
    /// The latest reading of the kernel's clock, if the watch looks at that clock.
    previous_clock: Instant,
    gap_ticks: i64,
    gap_least: Nanos,
    sentinel: bool,
    /// Another watch of this thread had set the sentinel before.
    within: bool,
    /// A break without a gap, with the length of its round. Its gap comes in the next round.
    waiting: Option<Nanos>,
    /// The latest look found the sentinel broken.
    broken: bool,
    /// Some look found the sentinel broken.
    left_cpu: bool,
    /// The verdict has an entry, or will have one at the end.
    noted: bool,
    /// Whether `start` was certainly read on `start_cpu`. A machine that has a sentinel also knows the CPU.
    start_certain: bool,
    start_cpu: Option<Cpu>,
    /// The CPU of all readings since the sentinel was last set.
    cpu: Option<Cpu>,
    verdict: Verdict,
    of_thread: PhantomData<*const ()>,
}

impl<'t, M: Machine> Watch<'t, M> {
    /// Begins to watch at a reading taken just before; sets the sentinel. Real-time safe.
    #[inline(always)]
    pub fn begin(timebase: &'t Timebase<M>, start: Ticks) -> Self {
        let (mut watch, start) = Self::begin_with(timebase, || start);
        watch.start_at(start);
        watch
    }

    /// Begins to watch and takes the first reading, ordered, after setting the sentinel.
    #[inline(always)]
    pub(crate) fn open(timebase: &'t Timebase<M>) -> (Self, Ticks) {
        let (mut watch, start) = Self::begin_with(timebase, || timebase.stamp_ordered());
        watch.start_at(start);
        (watch, start)
    }

    /// Begins to watch at a reading of the kernel's clock taken just before. That clock is the same on all CPUs.
    #[inline(always)]
    pub(crate) fn begin_by_clock(timebase: &'t Timebase<M>, now: Instant) -> Self {
        Self::begin_with(timebase, || now).0
    }

    /// Sets the sentinel, takes the reading, and only then does the rest.
    #[inline(always)]
    fn begin_with<R>(timebase: &'t Timebase<M>, read: impl FnOnce() -> R) -> (Self, R) {
        let machine = timebase.machine();
        let within = machine.sentinel_intact();
        let sentinel = machine.sentinel_arm();
        let reading = read();
        // While the sentinel is intact, this is the CPU of all readings since it was set.
        let cpu = timebase.cpu();
        let start = Ticks::new(0);
        let watch = Self {
            timebase,
            start,
            previous: start,
            previous_clock: Instant::BOOT,
            gap_ticks: timebase.gap_ticks(),
            gap_least: timebase.gap_least(),
            sentinel,
            within,
            waiting: None,
            broken: false,
            left_cpu: false,
            noted: false,
            start_certain: sentinel,
            start_cpu: cpu,
            cpu,
            verdict: Verdict::CLEAN,
            of_thread: PhantomData,
        };
        (watch, reading)
    }

    /// Begins anew at a reading that was taken after the sentinel was set.
    #[inline(always)]
    pub(crate) fn start_at(&mut self, start: Ticks) {
        (self.start, self.previous) = (start, start);
    }

    /// Looks at a new reading of the counter. Returns the gap before it, if there is one, with its cause. A break
    /// without a gap is returned one look later, when it is settled. Real-time safe.
    #[inline(always)]
    pub fn look(&mut self, now: Ticks) -> Option<(Cause, Nanos)> {
        let previous = std::mem::replace(&mut self.previous, now);
        let gap = now.since(previous);
        let broken = self.is_broken();
        if gap < self.gap_ticks && self.waiting.is_none() && !broken && !self.broken {
            return None;
        }
        let at_start = previous == self.start;
        self.settle(at_start, self.timebase.nanos(gap.max(0)), gap >= self.gap_ticks, broken)
    }

    /// Looks at a new reading of the kernel's clock; the first such look only remembers it.
    #[inline(always)]
    pub(crate) fn look_by_clock(&mut self, now: Instant) -> Option<(Cause, Nanos)> {
        let previous = std::mem::replace(&mut self.previous_clock, now);
        let gap = now - previous;
        let broken = self.is_broken();
        if gap <= self.gap_least && self.waiting.is_none() && !broken && !self.broken {
            return None;
        }
        self.settle_by_clock(gap, broken)
    }

    /// The rare part of a look at the kernel's clock. The next look at the counter does not see its gap again.
    #[cold]
    #[inline(never)]
    fn settle_by_clock(&mut self, gap: Nanos, broken: bool) -> Option<(Cause, Nanos)> {
        let long = gap > self.gap_least;
        if long {
            // After every reading, so that the next look only remembers its own. To read the counter here would take
            // time: where a reading takes a microsecond, the next look at the clock would see that as a gap, and so on
            // without end.
            self.previous = self.start.plus(i64::MAX / 2);
        }
        self.settle(false, gap, long, broken)
    }

    /// Leaves out what has happened since the latest look at the counter, which was read just now, because the delay
    /// did it itself.
    #[inline(always)]
    pub(crate) fn pass_over_to(&mut self, now: Ticks) {
        self.previous = now;
    }

    /// Changes from looks at the counter to looks at the kernel's clock, which was read just now.
    #[inline(always)]
    pub(crate) fn go_over_to_clock(&mut self, now: Instant) {
        self.previous_clock = now;
    }

    #[inline(always)]
    fn is_broken(&self) -> bool {
        self.sentinel && !self.timebase.machine().sentinel_intact()
    }

    /// The rare part of a look: something happened in this round or in the one before.
    #[cold]
    #[inline(never)]
    fn settle(&mut self, at_start: bool, gap: Nanos, long: bool, broken: bool) -> Option<(Cause, Nanos)> {
        (self.broken, self.noted) = (broken, true);
        if broken {
            self.timebase.machine().sentinel_arm();
            self.cpu = self.timebase.cpu();
            self.verdict.migrated |= self.cpu != self.start_cpu;
            self.start_certain &= !at_start;
            self.left_cpu = true;
        }
        let earlier = self.waiting.take();
        if !long {
            self.waiting = broken.then_some(gap);
            return earlier.map(|earlier| self.record(Cause::Preempted, earlier));
        }
        // A gap belongs to the break of this round or to the break that waited for it. Two breaks count as two.
        self.waiting = (broken && earlier.is_some()).then_some(Nanos::ZERO);
        let cause = self.cause(broken || earlier.is_some());
        Some(self.record(cause, gap))
    }

    /// The cause of a gap, from the sentinel, if there was one, and from the kind of machine.
    fn cause(&self, broken: bool) -> Cause {
        match (broken, self.sentinel, self.timebase.trust().guest) {
            (true, _, _) => Cause::Preempted,
            (false, false, _) => Cause::Unknown,
            (false, true, true) => Cause::InterruptedOrStolen,
            (false, true, false) => Cause::Interrupted,
        }
    }

    fn record(&mut self, cause: Cause, length: Nanos) -> (Cause, Nanos) {
        self.verdict.add(cause, length);
        // Asked now, so that a delay asks the kernel nothing after its end.
        if cause == Cause::Preempted && self.timebase.is_like_a_stall(length) {
            let policy = self.timebase.machine().policy();
            self.verdict.throttled |= matches!(policy, Policy::Fifo(_) | Policy::RoundRobin(_));
        }
        (cause, length)
    }

    /// Forgets what has happened since the latest look, because the delay itself slept.
    #[cold]
    pub(crate) fn slept(&mut self, now: Instant) {
        self.sentinel = self.timebase.machine().sentinel_arm();
        self.cpu = self.timebase.cpu();
        (self.start_cpu, self.previous_clock, self.waiting, self.broken) = (self.cpu, now, None, false);
        (self.left_cpu, self.noted) = (true, true);
    }

    /// Enters something into the verdict that the watch itself does not see.
    pub(crate) fn note(&mut self, what: impl FnOnce(&mut Verdict)) {
        what(&mut self.verdict);
        self.noted |= !self.verdict.is_clean();
    }

    /// Whether the thread has left its CPU, or the machine cannot know.
    #[inline]
    pub(crate) fn may_have_moved(&self) -> bool {
        self.left_cpu || !self.sentinel
    }

    /// Ends the watch and takes the sentinel away.
    #[inline]
    pub fn end(mut self) -> Verdict {
        if self.noted || self.is_broken() {
            self.settle_all();
        }
        self.verdict
    }

    /// Whether the verdict on a delay that ended `over` beyond its goal has anything to report, after a last look at
    /// the sentinel. If not, the verdict is [`Verdict::CLEAN`].
    #[inline(always)]
    pub(crate) fn has_news(&self, over: Nanos) -> bool {
        self.noted || over > self.gap_least || self.is_broken()
    }

    /// The verdict on a delay that ended `over` beyond its goal. Does not record a gap that only `over` shows: after a
    /// rehearsal a later look may see the gap itself.
    #[cold]
    #[inline(never)]
    pub(crate) fn explain(&mut self, over: Nanos, apart: bool) -> Verdict {
        self.settle_all();
        let mut verdict = self.verdict;
        if over > self.gap_least {
            verdict.rerated |= apart;
            verdict.explain(over, self.timebase);
        }
        verdict
    }

    #[cold]
    #[inline(never)]
    fn settle_all(&mut self) {
        if self.is_broken() || self.broken {
            let last = self.previous;
            self.look(last);
        }
        if let Some(waiting) = self.waiting.take() {
            self.record(Cause::Preempted, waiting);
        }
        self.verdict.migrated |= self.start_cpu != self.timebase.cpu();
    }

    /// Sets the sentinel again after [`let_go`](Self::let_go). Disturbances in between are not seen.
    #[inline(always)]
    pub(crate) fn take_up(&mut self) {
        if self.sentinel {
            self.sentinel = self.timebase.machine().sentinel_arm();
        }
    }

    /// Takes the sentinel away.
    #[inline(always)]
    pub(crate) fn let_go(&mut self) {
        if !self.within || self.left_cpu {
            self.timebase.machine().sentinel_disarm();
        }
    }

    /// Whether the latest reading is certainly from the CPU of the first.
    #[inline(always)]
    fn stayed(&self) -> bool {
        self.start_certain && !self.broken && self.cpu == self.start_cpu
    }
}

impl<M: Machine> Drop for Watch<'_, M> {
    #[inline(always)]
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Polls until the counter reaches `deadline`, under a watch that was opened before. The poll lasts at most `budget`
/// ticks from `start`, and ends soon after the kernel's clock reads `latest`. `skew` is the largest distance between
/// the counters of two CPUs.
#[inline(always)]
pub(crate) fn poll<M: Machine>(
    watch: &mut Watch<'_, M>,
    start: Ticks,
    deadline: Ticks,
    budget: i64,
    latest: Instant,
    skew: Nanos,
) -> Polled {
    let timebase = watch.timebase;
    let machine = timebase.machine();
    let mut deadline = deadline;
    let mut skew_ticks = match timebase.source() {
        TimeSource::Counter if skew > Nanos::ZERO => timebase.ticks_for_at_least(skew),
        _ => 0,
    };
    // The last steps have no pause, which would be their longest part.
    let last_steps = watch.gap_ticks / 4;
    let (mut rounds, mut since) = (0_u32, None);
    loop {
        let now = timebase.stamp();
        let disturbed = watch.look(now).is_some() || watch.broken;
        let left = deadline.since(now);
        if left <= 0 && !disturbed {
            if watch.stayed() || skew_ticks == 0 {
                return Polled { end: now, reached: true };
            }
            deadline = deadline.plus(std::mem::take(&mut skew_ticks));
            continue;
        }
        if now.since(start) >= budget
            || (rounds == ROUNDS && is_over(watch, &mut since, latest, (start, deadline, skew_ticks)))
        {
            return Polled { end: now, reached: false };
        }
        rounds = (rounds % ROUNDS) + 1;
        if left > last_steps {
            machine.relax();
        }
    }
}

/// Reads the kernel's clock. Returns whether it has reached `latest`, or whether more time has passed since the first
/// such look than the whole poll may take.
#[cold]
#[inline(never)]
fn is_over<M: Machine>(
    watch: &Watch<'_, M>,
    since: &mut Option<Instant>,
    latest: Instant,
    (start, deadline, skew_ticks): (Ticks, Ticks, i64),
) -> bool {
    let timebase = watch.timebase;
    let now = timebase.machine().monotonic();
    let longest = timebase.nanos(deadline.since(start).saturating_add(skew_ticks)) + STUCK_AFTER;
    now >= latest || now - *since.get_or_insert(now) > longest
}

#[cfg(test)]
mod tests {
    use hairspring_machine::Sim;
    use hairspring_machine::sim::{Disturbance, Script};

    use super::*;

    fn machine() -> (Sim, Timebase<Sim>) {
        let sim = Sim::new(Script::default());
        (sim.clone(), Timebase::calibrate(sim).expect("it advances"))
    }

    #[test]
    fn a_gap_between_two_readings_of_the_counter_begins_at_the_least_gap() {
        let (_, timebase) = machine();
        let (mut watch, start) = Watch::open(&timebase);
        let short = start.plus(timebase.gap_ticks() - 1);
        assert_eq!(watch.look(short), None);
        assert!(!watch.has_news(Nanos::ZERO), "an undisturbed round is no news");
        let seen = watch.look(short.plus(timebase.gap_ticks()));
        assert_eq!(seen, Some((Cause::Interrupted, timebase.nanos(timebase.gap_ticks()))));
        assert!(watch.has_news(Nanos::ZERO));
    }

    #[test]
    fn a_gap_between_two_readings_of_the_kernels_clock_is_longer_than_the_least_gap() {
        let (sim, timebase) = machine();
        let mut at = sim.monotonic();
        let mut watch = Watch::begin_by_clock(&timebase, at);
        watch.go_over_to_clock(at);
        let least = timebase.gap_least();
        let mut look_after = |gap| {
            at += gap;
            watch.look_by_clock(at)
        };
        assert_eq!(look_after(least), None);
        let longer = least + Nanos::new(1);
        assert_eq!(look_after(longer), Some((Cause::Interrupted, longer)));
        // A break without a gap is settled one look later.
        sim.disturb(sim.true_time(), Disturbance::Signal);
        let round = Nanos::new(30);
        assert_eq!(look_after(round), None);
        assert_eq!(look_after(round), Some((Cause::Preempted, round)));
        assert_eq!(look_after(round), None);
    }

    /// Then the first reading may be from another CPU than the one that the watch has seen after it.
    #[test]
    fn a_thread_that_leaves_its_cpu_before_the_first_look_has_not_certainly_stayed() {
        for (rounds_before, stayed) in [(0, false), (1, true), (5, true)] {
            let (sim, timebase) = machine();
            let (mut watch, _) = Watch::open(&timebase);
            for _ in 0..rounds_before {
                watch.look(timebase.stamp());
            }
            assert!(watch.stayed());
            sim.disturb(sim.true_time(), Disturbance::Signal);
            watch.look(timebase.stamp());
            assert!(!watch.stayed(), "the latest look found the sentinel broken");
            watch.look(timebase.stamp());
            assert_eq!(watch.stayed(), stayed, "after {rounds_before} undisturbed rounds");
        }
    }
}
