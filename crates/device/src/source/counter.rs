//! [`Counter`]: an eventfd. What is added to it before it is read is one event and some that were missed.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use hairspring_machine::Machine;
use hairspring_time::Timebase;

use super::{EventSource, failed};
use crate::calls::{self, Ready};
use crate::device::DeviceError;
use crate::event::{Event, Stamped};
use crate::stop::Stop;

/// Fires a [`Counter`]. Can be given to any thread.
#[derive(Clone, Debug)]
pub struct Firing(Arc<OwnedFd>);

impl Firing {
    /// Fires it once: a system call.
    ///
    /// # Errors
    /// It was fired 2⁶⁴ times and never read.
    pub fn fire(&self) -> Result<(), DeviceError> {
        calls::add_to_counter(self.0.as_fd(), 1).map_err(|error| failed("fire an eventfd", &error))
    }
}

/// Waits for an eventfd.
#[derive(Debug)]
pub struct Counter<'t, M: Machine> {
    counter: Arc<OwnedFd>,
    timebase: &'t Timebase<M>,
    stop: &'t Stop,
    last: u64,
}

impl<'t, M: Machine> Counter<'t, M> {
    /// One of its own, and what fires it.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(timebase: &'t Timebase<M>, stop: &'t Stop) -> Result<(Self, Firing), DeviceError> {
        let counter = Arc::new(calls::eventfd().map_err(|error| failed("make an eventfd", &error))?);
        let firing = Firing(Arc::clone(&counter));
        Ok((Self { counter, timebase, stop, last: 0 }, firing))
    }

    /// That of somebody else: a driver, another process.
    pub fn of(counter: OwnedFd, timebase: &'t Timebase<M>, stop: &'t Stop) -> Self {
        Self { counter: Arc::new(counter), timebase, stop, last: 0 }
    }
}

impl<M: Machine + Send + Sync> EventSource for Counter<'_, M> {
    fn name(&self) -> String {
        "eventfd".to_owned()
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        loop {
            let ready = calls::wait((*self.counter).as_fd(), self.stop.bell());
            if ready.map_err(|error| failed("wait for an eventfd", &error))? == Ready::Bell {
                return Ok(None);
            }
            let wake = self.timebase.now();
            let mut count = [0; 8];
            match calls::read((*self.counter).as_fd(), &mut count) {
                Ok(8) => {}
                Ok(_) => return Ok(None),
                // Somebody else has read it.
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                Err(error) => return Err(failed("read an eventfd", &error)),
            }
            let count = u64::from_ne_bytes(count);
            self.last = self.last.saturating_add(count);
            let missed = count.saturating_sub(1);
            return Ok(Some(Event {
                at: wake,
                stamped: Stamped::Wake,
                wake,
                sequence: self.last,
                missed,
                cycle: None,
            }));
        }
    }
}
