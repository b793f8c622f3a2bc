//! [`Interrupts`]: interrupts reported by the kernel's drivers: of a parallel port, the lines of a GPIO chip, a card
//! behind UIO.

use std::os::fd::{AsFd, BorrowedFd};

use hairspring_device::{DeviceError, GpioEdges, Parport, PciInterrupt};
use hairspring_machine::{Instant, Machine, Nanos};
use hairspring_time::{HeldTimebase, Timebase};

use super::{EventSource, failed, has_come};
use crate::event::{Event, Stamped};
use crate::stop::Stop;
use crate::system::{self, Ready};

/// Lines that can interrupt.
#[derive(Debug)]
pub enum InterruptLine {
    /// The falling edge of a parallel port's nAck.
    Parport(Parport),
    /// Edges of a GPIO chip's lines, of both directions if `None`; the kernel stamps each.
    Gpio(GpioEdges, Option<EdgeDirection>),
    /// A card behind UIO. The wait for the next event enables its interrupt again, because the action has served it by
    /// then. An interrupt from before the first wait is not yet served: its event is returned first, and the next wait
    /// enables the interrupt.
    Uio(PciInterrupt),
}

/// A direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeDirection {
    /// Low to high.
    Rising,
    /// High to low.
    Falling,
}

/// Result of reading a line that is readable.
struct Said {
    /// Interrupts since the last read, lost ones included.
    count: u64,
    /// Time of the latest of them by `CLOCK_MONOTONIC`, if the kernel states it.
    at: Option<Instant>,
}

impl InterruptLine {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Parport(port) => port.as_fd(),
            Self::Gpio(edges, _) => edges.as_fd(),
            Self::Uio(interrupt) => interrupt.as_fd(),
        }
    }

    fn ask(&mut self) -> Result<Said, DeviceError> {
        let counted = |count: u32| Said { count: count.into(), at: None };
        match self {
            Self::Parport(port) => port.wait_interrupt(Nanos::ZERO).map(counted),
            Self::Uio(interrupt) => interrupt.wait(Nanos::ZERO).map(counted),
            Self::Gpio(edges, wanted) => {
                let before = edges.lost();
                let Some(edge) = edges.next(Nanos::ZERO)? else { return Ok(Said { count: 0, at: None }) };
                let is_wanted = wanted.is_none_or(|wanted| (wanted == EdgeDirection::Rising) == edge.rising);
                // The direction of lost edges is unknown: all of them count.
                let count = edges.lost() - before + u64::from(is_wanted);
                Ok(Said { count, at: Some(edge.at).filter(|_| is_wanted) })
            }
        }
    }
}

/// Waits for interrupts.
#[derive(Debug)]
pub struct Interrupts<'t, M: Machine> {
    line: InterruptLine,
    name: String,
    timebase: HeldTimebase<'t, M>,
    stop: &'t Stop,
    last: u64,
    missed: u64,
}

impl<'t, M: Machine> Interrupts<'t, M> {
    /// Waits for this line, whose name is for people.
    pub fn new(line: InterruptLine, name: &str, timebase: &'t Timebase<M>, stop: &'t Stop) -> Self {
        Self { line, name: name.to_owned(), timebase: HeldTimebase::Lent(timebase), stop, last: 0, missed: 0 }
    }
}

impl<M: Machine + Send + Sync> EventSource<M> for Interrupts<'_, M> {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn adopt(&mut self, successor: Timebase<M>) {
        self.timebase.adopt(successor);
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        let waited = match &self.line {
            InterruptLine::Gpio(..) => false,
            // A card that was not served keeps its request up: enabled now, it would interrupt a second time for the
            // same event.
            InterruptLine::Uio(interrupt) => has_come(interrupt.as_fd())? || interrupt.enable()?,
            InterruptLine::Parport(port) => has_come(port.as_fd())?,
        };
        loop {
            let ready = system::wait(self.line.as_fd(), self.stop.bell());
            if ready.map_err(|error| failed(format!("wait for {}", self.name), &error))? == Ready::Bell {
                return Ok(None);
            }
            let wake = self.timebase.now();
            let Said { count, at } = self.line.ask()?;
            self.last += count;
            let is_lost = matches!(self.line, InterruptLine::Gpio(..)) && at.is_none();
            if count == 0 || is_lost {
                // An edge of the other direction, perhaps with others lost before it.
                self.missed += count;
                continue;
            }
            let missed = std::mem::take(&mut self.missed) + count - 1;
            let (at, stamped) = match at {
                Some(at) => (wake + (at - wake), Stamped::Kernel),
                None => (wake, Stamped::Wake),
            };
            return Ok(Some(Event { at, stamped, wake, waited, sequence: self.last, missed, cycle: None }));
        }
    }
}
