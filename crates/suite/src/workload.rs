//! The work of a job, repeated for a time: a loop, reactions to events, or delays, with every event's lateness.
//!
//! The probes of a sheet take fixed loops for a share of a sheet's time. A [`Workload`] is a loop that a user requests,
//! for a requested time. Both run the same code.

use std::sync::atomic::{AtomicBool, Ordering};

use hairspring_machine::{Cpu, Host, Instant, Machine, Nanos, Policy};
use hairspring_sheet::Absent;
use hairspring_time::{DelayError, LongDelay, POLL_MOST, RealTime, Timebase, Watch};

use crate::disturbance::{PERIODS_MOST, periods};
use crate::probe::{Samples, policy_refused};
use crate::reaction::sources;

/// Activity that a job repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// A thread is woken with this period by `clock_nanosleep(TIMER_ABSTIME)`. An event's value is how late it woke.
    Loop(Nanos),
    /// A thread reacts to an event and writes to a virtual board. An event's value is the time from the event to the
    /// end of the write.
    Reaction(ReactionSource),
    /// A thread delays itself for this long, polled up to 100 ms, asleep at first beyond. An event's value is how late
    /// the delay returned, by stamps of the caller.
    Delay(Nanos),
    /// A thread polls the counter. An event is a gap of 1 µs or more in which it did not run, and its value the length
    /// of the gap.
    Gaps,
}

/// The sources of events that this computer can fire, and the pulses of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names for people are `people`")]
pub enum ReactionSource {
    Timer,
    Precise,
    Eventfd,
    Pipe,
    Udp,
    Multicast,
    Software,
    Polled,
    Pps,
}

impl ReactionSource {
    /// All of them, in the order of the sheet.
    pub const ALL: [Self; 9] = [
        Self::Timer,
        Self::Precise,
        Self::Eventfd,
        Self::Pipe,
        Self::Udp,
        Self::Multicast,
        Self::Software,
        Self::Polled,
        Self::Pps,
    ];

    /// Its segment in ids of rows.
    pub fn segment(self) -> &'static str {
        sources::SOURCES[self as usize].segment
    }

    /// Its name for people, with the article.
    pub fn people(self) -> &'static str {
        match self {
            Self::Timer => "a kernel timer",
            Self::Precise => "a precise timer",
            Self::Eventfd => "an eventfd",
            Self::Pipe => "a pipe",
            Self::Udp => "a UDP datagram",
            Self::Multicast => "a UDP datagram to a group",
            Self::Software => "a signal, asleep",
            Self::Polled => "a signal, polled",
            Self::Pps => "a pulse of a clock",
        }
    }
}

/// Under which settings a workload runs.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadPlace {
    /// The priority under `SCHED_FIFO`; none for an ordinary program.
    pub priority: Option<u8>,
    /// The timer slack of an ordinary program; a real-time one has none.
    pub slack: Nanos,
    /// The CPU that it runs on.
    pub cpu: Cpu,
}

/// CPU, priority and duration of a workload.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadRun {
    /// The workload.
    pub workload: Workload,
    /// CPU and scheduling of the thread; `None` keeps those of the calling thread.
    pub place: Option<WorkloadPlace>,
    /// The CPU that events of a reaction are fired from; by default one that the calling thread may use and the job
    /// does not.
    pub fire_from: Option<Cpu>,
    /// Whether all CPUs are kept out of their idle states meanwhile.
    pub idle_off: bool,
    /// For how long.
    pub span: Nanos,
}

/// Measured result of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The value of each event in nanoseconds, in the order in which they came.
    pub values: Vec<f64>,
    /// For how long events could be seen.
    pub watched: Nanos,
    /// The greatest values, each with the time on `CLOCK_MONOTONIC` at which it ended; the greatest first, at most
    /// [`WORST_MOST`].
    pub worst: Vec<(Nanos, Instant)>,
}

/// Number of greatest values that are kept with their times.
pub const WORST_MOST: usize = 8;

impl Observed {
    fn event(&mut self, value: Nanos, ended: impl FnOnce() -> Instant) {
        self.values.push(value.count() as f64);
        if self.worst.len() < WORST_MOST || self.worst.last().is_some_and(|(least, _)| value > *least) {
            let place = self.worst.partition_point(|(other, _)| *other >= value);
            self.worst.insert(place, (value, ended()));
            self.worst.truncate(WORST_MOST);
        }
    }
}

/// Longest polling under `SCHED_FIFO` before a rest, so that the kernel does not throttle the thread.
const STRETCH: Nanos = Nanos::from_millis(20);
const REST: Nanos = Nanos::from_millis(2);

impl WorkloadRun {
    /// Runs the workload. Blocks for its span, and for one event more at most. `interrupted` ends it early. The
    /// settings of the calling thread are as before when it returns. A reaction starts one thread, which ends within
    /// it. Allocates between events.
    ///
    /// # Errors
    /// The policy, the source or the idle states are unavailable here; with the remedy.
    pub fn observe(&self, timebase: &Timebase<Host>, interrupted: &AtomicBool) -> Result<Observed, Absent> {
        let of_place = self.place.map_or_else(RealTime::default, |place| RealTime {
            policy: Some(place.priority.map_or(Policy::Other, Policy::Fifo)),
            cpu: Some(place.cpu),
            lock_memory: place.priority.is_some(),
            slack: Some(place.slack),
            idle: None,
        });
        let settings = RealTime { idle: self.idle_off.then_some(Nanos::ZERO), ..of_place };
        // Relaxed: a plain flag.
        let stopped = || interrupted.load(Ordering::Relaxed);
        let began = Host.monotonic();
        let end = began + self.span;
        let mut observed = Observed::default();
        if let Workload::Reaction(source) = self.workload {
            let used = self.place.map(|place| place.cpu);
            let another = || Host.affinity().0.into_iter().find(|other| Some(*other) != used);
            let other = self.fire_from.or_else(another);
            while Host.monotonic() < end && !stopped() {
                // A short turn after the other, so that an interruption does not have to wait for all of it.
                let left = (end - Host.monotonic()).min(Nanos::from_secs(1));
                for (total, done) in sources::totals(source as usize, settings, other, left, timebase)? {
                    observed.event(total, || done);
                }
            }
        } else {
            let guard = settings.apply(&Host);
            if let Some(absent) = policy_refused(&guard) {
                return Err(absent);
            }
            match self.workload {
                Workload::Loop(period) => {
                    let mut samples = Samples::new();
                    while Host.monotonic() < end && !stopped() {
                        let part = (end - Host.monotonic()).min(period * PERIODS_MOST as i64);
                        let (first, _) = periods(&Host, period, part, stopped, &mut samples);
                        for (number, late) in samples.take().into_iter().enumerate() {
                            let late = Nanos::new(late as i64);
                            observed.event(late, || first + period * number as i64 + late);
                        }
                    }
                }
                Workload::Delay(request) => delays(timebase, request, end, interrupted, &mut observed)
                    .map_err(|error| Absent::final_(format!("failed to {error}")))?,
                Workload::Gaps => gaps(timebase, end, interrupted, &mut observed),
                Workload::Reaction(_) => {}
            }
        }
        observed.watched = Host.monotonic() - began;
        Ok(observed)
    }
}

/// Delays until `end`, each with its lateness as the caller sees it.
fn delays(
    timebase: &Timebase<Host>,
    request: Nanos,
    end: Instant,
    interrupted: &AtomicBool,
    observed: &mut Observed,
) -> Result<(), DelayError> {
    let mut long = (request > POLL_MOST).then(|| LongDelay::new(timebase).cancelled_by(interrupted));
    while Host.monotonic() < end && !interrupted.load(Ordering::Relaxed) {
        let stretch = Host.monotonic() + STRETCH;
        loop {
            let before = timebase.stamp_ordered();
            let outcome = match &mut long {
                Some(long) => long.delay(request),
                None => timebase.delay(request),
            };
            let after = timebase.stamp_ordered();
            match outcome {
                Ok(_) => {
                    let late = timebase.nanos(after.since(before)) - request;
                    observed.event(late, || timebase.instant(after));
                }
                Err(DelayError::Cancelled(_)) => return Ok(()),
                Err(error) => return Err(error),
            }
            if Host.monotonic() >= stretch.min(end) {
                break;
            }
        }
        if long.is_none() {
            Host.sleep_until(Host.monotonic() + REST);
        }
    }
    Ok(())
}

/// Polls until `end`.
fn gaps(timebase: &Timebase<Host>, end: Instant, interrupted: &AtomicBool, observed: &mut Observed) {
    while Host.monotonic() < end && !interrupted.load(Ordering::Relaxed) {
        let start = timebase.stamp_ordered();
        let stretch = timebase.ticks_for_at_least((end - Host.monotonic()).min(STRETCH));
        let mut watch = Watch::begin(timebase, start);
        let mut now = start;
        while now.since(start) < stretch {
            Host.relax();
            now = timebase.stamp();
            if let Some((_, gap)) = watch.look(now) {
                observed.event(gap, || timebase.instant(now));
            }
        }
        watch.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordinary(cpu: Cpu) -> WorkloadPlace {
        WorkloadPlace { priority: None, slack: Nanos::new(1), cpu }
    }

    #[test]
    fn every_workload_gives_events() {
        let timebase = Timebase::calibrate(Host).expect("a time base");
        let cpu = Host.affinity().0.last().copied().expect("a CPU");
        let of = |workload| {
            let run = WorkloadRun {
                workload,
                place: Some(ordinary(cpu)),
                fire_from: None,
                idle_off: false,
                span: Nanos::from_millis(60),
            };
            run.observe(&timebase, &AtomicBool::new(false)).expect("an ordinary program may")
        };
        let looped = of(Workload::Loop(Nanos::from_millis(1)));
        // A late wake-up brings the periods that it missed, so there may be more than fit the span.
        let most = (looped.watched.count() / Nanos::from_millis(1).count()) as usize;
        assert!((30..=most).contains(&looped.values.len()), "{} of {most}", looped.values.len());
        assert!(looped.watched >= Nanos::from_millis(60));
        let delayed = of(Workload::Delay(Nanos::from_micros(100)));
        assert!(delayed.values.len() > 10 && delayed.values.iter().all(|late| *late >= 0.0), "{delayed:?}");
        assert!(!of(Workload::Reaction(ReactionSource::Eventfd)).values.is_empty());
        for gapped in [of(Workload::Gaps), of(Workload::Loop(Nanos::from_millis(1)))] {
            assert!(gapped.watched >= Nanos::from_millis(60));
            let greatest = gapped.values.iter().copied().max_by(f64::total_cmp);
            assert_eq!(gapped.worst.first().map(|(value, _)| value.count() as f64), greatest);
            assert!(gapped.worst.is_sorted_by(|a, b| a.0 >= b.0) && gapped.worst.len() <= WORST_MOST);
            assert!(gapped.worst.iter().all(|(_, ended)| ended.as_monotonic() <= Host.monotonic().as_monotonic()));
        }
        let workload = Workload::Reaction(ReactionSource::Software);
        let run =
            WorkloadRun { workload, place: None, fire_from: Some(cpu), idle_off: false, span: Nanos::from_millis(60) };
        assert!(!run.observe(&timebase, &AtomicBool::new(false)).expect("as started").values.is_empty());
    }

    #[test]
    fn an_interruption_ends_it() {
        let timebase = Timebase::calibrate(Host).expect("a time base");
        let cpu = Host.affinity().0.last().copied().expect("a CPU");
        let workload = Workload::Loop(Nanos::from_millis(1));
        let (place, span) = (Some(ordinary(cpu)), Nanos::from_secs(600));
        let run = WorkloadRun { workload, place, fire_from: None, idle_off: false, span };
        let observed = run.observe(&timebase, &AtomicBool::new(true)).expect("an ordinary program may");
        assert!(observed.values.is_empty(), "{observed:?}");
    }

    #[test]
    fn a_reaction_source_is_the_one_of_the_sheet() {
        let segments = ["timer", "precise", "eventfd", "pipe", "udp", "multicast", "software", "polled", "pps"];
        assert_eq!(ReactionSource::ALL.map(ReactionSource::segment), segments);
    }
}
