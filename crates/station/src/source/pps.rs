//! [`Pps`]: the pulses of a clock as events, each with the kernel's stamp of its asserting edge.
//!
//! **Loss is counted.** The kernel keeps the last pulse only, with its number; numbers that were never seen are missed
//! pulses.
//!
//! **Conditions.** Each call to the driver ends with the next pulse or after 0.1 s. A pulse that falls between two of
//! these calls, which follow each other at once, is returned up to 0.1 s later, with its true stamp.

use std::path::Path;

use hairspring_device::{DeviceError, PpsDevice, PpsPulse};
use hairspring_machine::{Machine, Nanos};
use hairspring_time::{HeldTimebase, Timebase};

use super::{EventSource, taken};
use crate::event::{Event, Stamped};
use crate::stop::Stop;

/// Longest time between two checks of the stop flag and of the device.
const LOOK: Nanos = Nanos::from_millis(100);

/// Waits for pulses.
#[derive(Debug)]
pub struct Pps<'t, M: Machine> {
    device: PpsDevice,
    timebase: HeldTimebase<'t, M>,
    stop: &'t Stop,
    last: u64,
}

impl<'t, M: Machine> Pps<'t, M> {
    /// Opens a device, and waits for pulses from now on.
    ///
    /// # Errors
    /// As [`PpsDevice::open`].
    pub fn open(path: &Path, timebase: &'t Timebase<M>, stop: &'t Stop) -> Result<Self, DeviceError> {
        Ok(Self { device: PpsDevice::open(path)?, timebase: HeldTimebase::Lent(timebase), stop, last: 0 })
    }
}

impl<M: Machine + Send + Sync> EventSource<M> for Pps<'_, M> {
    fn name(&self) -> String {
        format!("pulse source {}", self.device.path().display())
    }

    fn adopt(&mut self, successor: Timebase<M>) {
        self.timebase.adopt(successor);
    }

    fn wait(&mut self) -> Result<Option<Event>, DeviceError> {
        let mut pulse = self.device.next(Nanos::ZERO)?;
        loop {
            if let Some(PpsPulse { realtime, count }) = pulse {
                let wake = self.timebase.now();
                self.last += count;
                let at = taken(&self.timebase, realtime, wake);
                let (sequence, missed) = (self.last, count - 1);
                let stamped = Stamped::Kernel;
                return Ok(Some(Event { at, stamped, wake, waited: false, sequence, missed, cycle: None }));
            }
            if self.stop.is_set() {
                return Ok(None);
            }
            pulse = self.device.next(LOOK)?;
        }
    }
}
