//! [`Counter`]: an eventfd. All that is added between two reads counts as one event plus missed ones.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use hairspring_device::DeviceError;
use hairspring_machine::Machine;
use hairspring_time::{HeldTimebase, Timebase};

use super::{EventSource, failed, has_come};
use crate::event::{Event, Stamped};
use crate::stop::Stop;
use crate::system::{self, Ready};

/// Fires a [`Counter`]. Can be given to any thread.
#[derive(Clone, Debug)]
pub struct CounterWriter(Arc<OwnedFd>);

impl CounterWriter {
    /// Fires it once: a system call.
    ///
    /// # Errors
    /// It was fired 2⁶⁴ times and never read.
    pub fn fire(&self) -> Result<(), DeviceError> {
        system::add_to_counter((*self.0).as_fd(), 1).map_err(|error| failed("fire an eventfd", &error))
    }
}

/// Waits for an eventfd.
#[derive(Debug)]
pub struct Counter<'t, M: Machine> {
    counter: Arc<OwnedFd>,
    /// Whether it is ours: then the stop adds to it, and one system call is enough to wait.
    is_ours: bool,
    timebase: HeldTimebase<'t, M>,
    stop: &'t Stop,
    last: u64,
}

impl<'t, M: Machine> Counter<'t, M> {
    /// A counter of its own, and the descriptor that fires it.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn new(timebase: &'t Timebase<M>, stop: &'t Stop) -> Result<(Self, CounterWriter), DeviceError> {
        let counter = Arc::new(system::eventfd().map_err(|error| failed("make an eventfd", &error))?);
        stop.rings(&counter);
        let firing = CounterWriter(Arc::clone(&counter));
        let timebase = HeldTimebase::Lent(timebase);
        Ok((Self { counter, is_ours: true, timebase, stop, last: 0 }, firing))
    }

    /// The eventfd of another owner: a driver, another process.
    pub fn of(counter: OwnedFd, timebase: &'t Timebase<M>, stop: &'t Stop) -> Self {
        Self { counter: Arc::new(counter), is_ours: false, timebase: HeldTimebase::Lent(timebase), stop, last: 0 }
    }

    /// The sum added since the last read; zero after a stop.
    fn read(&self) -> Result<u64, DeviceError> {
        loop {
            if !self.is_ours {
                let ready = system::wait((*self.counter).as_fd(), self.stop.bell());
                if ready.map_err(|error| failed("wait for an eventfd", &error))? == Ready::Bell {
                    return Ok(0);
                }
            }
            let mut count = [0; 8];
            match system::read((*self.counter).as_fd(), &mut count) {
                Ok(_) => return Ok(u64::from_ne_bytes(count)),
                // Another process has read it first.
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(failed("read an eventfd", &error)),
            }
        }
    }
}

impl<M: Machine + Send + Sync> EventSource<M> for Counter<'_, M> {
    fn name(&self) -> String {
        "eventfd".to_owned()
    }

    fn adopt(&mut self, successor: Timebase<M>) {
        self.timebase.adopt(successor);
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        let waited = has_come((*self.counter).as_fd())?;
        let count = if self.stop.is_set() { 0 } else { self.read()? };
        let wake = self.timebase.now();
        // The stop added one, possibly together with other additions.
        let added_by_stop = u64::from(self.is_ours && count > 0 && self.stop.is_set());
        let count = count - added_by_stop;
        if count == 0 {
            return Ok(None);
        }
        self.last = self.last.saturating_add(count);
        let missed = count - 1;
        Ok(Some(Event { at: wake, stamped: Stamped::Wake, wake, waited, sequence: self.last, missed, cycle: None }))
    }
}
