//! [`Timer`] and [`PreciseTimer`]: events at the multiples of a period, from an absolute beginning.

use std::os::fd::{AsFd, OwnedFd};

use hairspring_device::DeviceError;
use hairspring_machine::{Machine, Nanos};
use hairspring_time::{DelayError, HeldTimebase, Instant, LongDelay, Timebase};

use super::{EventSource, failed};
use crate::event::{Event, Stamped};
use crate::stop::Stop;
use crate::system::{self, Ready};

/// Shortest period: below this a waiting thread would do nothing but wait.
pub const PERIOD_LEAST: Nanos = Nanos::from_micros(10);

/// The times at which events are due.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    start: Instant,
    period: Nanos,
    last: u64,
}

impl Schedule {
    /// The next event that is not over: its number, and how many were missed before it. An event that became due while
    /// no thread waited is late, not missed, until the next one is due.
    fn next(&self, now: Instant) -> (u64, u64) {
        let since = now.since(self.start).unwrap_or(Nanos::ZERO);
        let over = u64::try_from(since.count() / self.period.count()).unwrap_or(0);
        let sequence = (self.last + 1).max(over);
        (sequence, sequence - self.last - 1)
    }

    /// Continues on the scale of a successor. In a new epoch the old beginning has no place: the next event is a period
    /// from now.
    fn follow<M: Machine>(&mut self, successor: &Timebase<M>) {
        if self.start.epoch() != successor.epoch() {
            let passed = i64::try_from(self.last).unwrap_or(i64::MAX);
            self.start = successor.now_ordered() - Nanos::new(self.period.count().saturating_mul(passed));
        }
    }

    fn due(&self, sequence: u64) -> Instant {
        let periods = i64::try_from(sequence).unwrap_or(i64::MAX);
        self.start + Nanos::new(self.period.count().saturating_mul(periods))
    }
}

fn check(period: Nanos) -> Result<(), DeviceError> {
    if period >= PERIOD_LEAST {
        return Ok(());
    }
    Err(DeviceError {
        attempted: format!("make a timer with a period of {period}"),
        said: format!("the least is {PERIOD_LEAST}"),
        remedy: "choose a longer one",
    })
}

/// A timer of the kernel, set again for each event. Setting it takes microseconds on some machines; that happens before
/// the wait, so only the wake-up lies between event and action.
#[derive(Debug)]
pub struct Timer<'t, M: Machine> {
    timer: OwnedFd,
    schedule: Schedule,
    timebase: HeldTimebase<'t, M>,
    stop: &'t Stop,
}

impl<'t, M: Machine> Timer<'t, M> {
    /// The first event is a period from now.
    ///
    /// # Errors
    /// The period is below [`PERIOD_LEAST`]; the kernel refuses.
    pub fn new(period: Nanos, timebase: &'t Timebase<M>, stop: &'t Stop) -> Result<Self, DeviceError> {
        check(period)?;
        let timer = system::timer().map_err(|error| failed("make a timer", &error))?;
        let schedule = Schedule { start: timebase.now_ordered(), period, last: 0 };
        Ok(Self { timer, schedule, timebase: HeldTimebase::Lent(timebase), stop })
    }
}

impl<M: Machine + Send + Sync> EventSource<M> for Timer<'_, M> {
    fn name(&self) -> String {
        format!("timer, every {}", self.schedule.period)
    }

    fn adopt(&mut self, successor: Timebase<M>) {
        self.schedule.follow(&successor);
        self.timebase.adopt(successor);
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        let (sequence, missed) = self.schedule.next(self.timebase.now());
        let at = self.schedule.due(sequence);
        // The kernel's clock agrees with our scale only within this bound, and the timer must not wake us before the
        // time.
        let by_kernel = at + self.timebase.offset_bound(at);
        system::set_timer(self.timer.as_fd(), by_kernel).map_err(|error| failed("set a timer", &error))?;
        let ready = system::wait(self.timer.as_fd(), self.stop.bell());
        if ready.map_err(|error| failed("wait for a timer", &error))? == Ready::Bell {
            return Ok(None);
        }
        let wake = self.timebase.now();
        self.schedule.last = sequence;
        Ok(Some(Event { at, stamped: Stamped::Due, wake, waited: false, sequence, missed, cycle: None }))
    }
}

/// A periodic timer whose events are waited for as [`LongDelay`] does: asleep, and polling the end. Costs CPU time in
/// every period, and is as exact as a delay.
#[derive(Debug)]
pub struct PreciseTimer<'t, M: Machine> {
    delay: LongDelay<'t, M>,
    schedule: Schedule,
    stop: &'t Stop,
}

impl<'t, M: Machine> PreciseTimer<'t, M> {
    /// The first event is a period from now.
    ///
    /// # Errors
    /// The period is below [`PERIOD_LEAST`].
    pub fn new(period: Nanos, timebase: &'t Timebase<M>, stop: &'t Stop) -> Result<Self, DeviceError> {
        check(period)?;
        let delay = LongDelay::new(timebase).cancelled_by(stop.flag());
        Ok(Self { delay, schedule: Schedule { start: timebase.now_ordered(), period, last: 0 }, stop })
    }
}

impl<M: Machine + Send + Sync> EventSource<M> for PreciseTimer<'_, M> {
    fn name(&self) -> String {
        format!("precise timer, every {}", self.schedule.period)
    }

    fn adopt(&mut self, successor: Timebase<M>) {
        self.schedule.follow(&successor);
        self.delay.adopt(successor);
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        if self.stop.is_set() {
            return Ok(None);
        }
        let (sequence, missed) = self.schedule.next(self.delay.timebase().now_ordered());
        let at = self.schedule.due(sequence);
        match self.delay.delay_until(at) {
            Ok(_) => {}
            Err(DelayError::Cancelled(_)) => return Ok(None),
            Err(error) => {
                return Err(DeviceError {
                    attempted: "wait for a timer".to_owned(),
                    said: error.to_string(),
                    remedy: "use the kernel's timer",
                });
            }
        }
        self.schedule.last = sequence;
        let wake = self.delay.timebase().now();
        Ok(Some(Event { at, stamped: Stamped::Due, wake, waited: false, sequence, missed, cycle: None }))
    }
}
