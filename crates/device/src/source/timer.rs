//! [`Timer`] and [`PreciseTimer`]: events at the multiples of a period, from an absolute beginning.

use std::os::fd::{AsFd, OwnedFd};

use hairspring_machine::{Machine, Nanos};
use hairspring_time::{DelayError, Instant, LongDelay, Timebase};

use super::{EventSource, failed};
use crate::calls::{self, Ready};
use crate::device::DeviceError;
use crate::event::{Event, Stamped};
use crate::stop::Stop;

/// No period is shorter: below this a waiting thread does nothing but wait.
pub const PERIOD_LEAST: Nanos = Nanos::from_micros(10);

/// The `n`th event of a timer that began at `start`.
fn due(start: Instant, period: Nanos, sequence: u64) -> Instant {
    let periods = i64::try_from(sequence).unwrap_or(i64::MAX);
    start + Nanos::new(period.count().saturating_mul(periods))
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

/// A periodic timer of the kernel.
#[derive(Debug)]
pub struct Timer<'t, M: Machine> {
    timer: OwnedFd,
    start: Instant,
    period: Nanos,
    timebase: &'t Timebase<M>,
    stop: &'t Stop,
    last: u64,
}

impl<'t, M: Machine> Timer<'t, M> {
    /// The first event is a period from now.
    ///
    /// # Errors
    /// The period is below [`PERIOD_LEAST`]; the kernel refuses.
    pub fn new(period: Nanos, timebase: &'t Timebase<M>, stop: &'t Stop) -> Result<Self, DeviceError> {
        check(period)?;
        let start = timebase.now_ordered();
        let timer = calls::periodic((start + period).as_monotonic(), period);
        let timer = timer.map_err(|error| failed("make a timer", &error))?;
        Ok(Self { timer, start, period, timebase, stop, last: 0 })
    }
}

impl<M: Machine + Send + Sync> EventSource for Timer<'_, M> {
    fn name(&self) -> String {
        format!("timer, every {}", self.period)
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        loop {
            let ready = calls::wait(self.timer.as_fd(), self.stop.bell());
            if ready.map_err(|error| failed("wait for a timer", &error))? == Ready::Bell {
                return Ok(None);
            }
            let wake = self.timebase.now();
            let mut count = [0; 8];
            match calls::read(self.timer.as_fd(), &mut count) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(failed("read a timer", &error)),
                Ok(_) => {}
            }
            let count = u64::from_ne_bytes(count);
            let sequence = self.last.saturating_add(count);
            let missed = count.saturating_sub(1);
            self.last = sequence;
            let at = due(self.start, self.period, sequence);
            return Ok(Some(Event { at, stamped: Stamped::Due, wake, sequence, missed, cycle: None }));
        }
    }
}

/// A periodic timer whose events are waited for as [`LongDelay`] does: asleep, and polling the end. Costs CPU time in every
/// period, and is as exact as a delay.
#[derive(Debug)]
pub struct PreciseTimer<'t, M: Machine> {
    delay: LongDelay<'t, M>,
    start: Instant,
    period: Nanos,
    timebase: &'t Timebase<M>,
    stop: &'t Stop,
    last: u64,
}

impl<'t, M: Machine> PreciseTimer<'t, M> {
    /// The first event is a period from now.
    ///
    /// # Errors
    /// The period is below [`PERIOD_LEAST`].
    pub fn new(period: Nanos, timebase: &'t Timebase<M>, stop: &'t Stop) -> Result<Self, DeviceError> {
        check(period)?;
        let delay = LongDelay::new(timebase).cancelled_by(stop.flag());
        Ok(Self { delay, start: timebase.now_ordered(), period, timebase, stop, last: 0 })
    }
}

impl<M: Machine + Send + Sync> EventSource for PreciseTimer<'_, M> {
    fn name(&self) -> String {
        format!("precise timer, every {}", self.period)
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        if self.stop.is_set() {
            return Ok(None);
        }
        // The first that is not over yet; if all is well the next one.
        let since = self.timebase.now_ordered().since(self.start).unwrap_or(Nanos::ZERO);
        let over = u64::try_from(since.count() / self.period.count()).unwrap_or(0);
        // One whose time has come while nobody waited is late, not missed; only those before it are.
        let sequence = (self.last + 1).max(over);
        let missed = sequence - self.last - 1;
        let at = due(self.start, self.period, sequence);
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
        self.last = sequence;
        let wake = self.timebase.now();
        Ok(Some(Event { at, stamped: Stamped::Due, wake, sequence, missed, cycle: None }))
    }
}
