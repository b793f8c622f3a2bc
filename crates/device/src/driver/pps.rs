//! [`PpsDevice`]: the pulses of a clock, usually one each second, through the kernel's interface for them: `/dev/pps0`.
//!
//! A satellite receiver, an atomic clock or a timing card gives a pulse. Its driver (of a parallel port, a serial line,
//! a network card) stamps the asserting edge in the interrupt, and counts it. Every process that opens the device gets
//! every pulse.
//!
//! **Loss is counted.** The kernel keeps the last pulse only, with its number; the device counts the numbers that it
//! never saw.
//!
//! **Conditions.** It waits for a pulse by `PPS_FETCH`, which returns at the next pulse or after a given time: on most
//! kernels `poll` returns at once, and on the newest ones another program's fetch clears the readiness. The stamp
//! includes a time offset that a program has set for the device, as programs that discipline the clock do.

use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use hairspring_machine::Nanos;
use zerocopy::{FromBytes, IntoBytes};

use crate::device::DeviceError;
use crate::driver::node::{Node, Request};
use crate::refusal::refusal;

const REMEDY: &str = "load the driver that stamps the pulses (pps_parport, pps_ldisc by ldattach 18, pps_gpio), and name its file, \
                      for instance pps:/dev/pps0";

/// `struct pps_ktime`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes)]
struct Time {
    seconds: i64,
    nanoseconds: i32,
    flags: u32,
}

/// `struct pps_kparams`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes)]
struct Parameters {
    version: i32,
    mode: i32,
    offsets: [Time; 2],
}

/// `struct pps_fdata`: the request and the result, for the edges that assert and those that clear.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes)]
struct Fetch {
    sequences: [u32; 2],
    times: [Time; 2],
    mode: i32,
    unused: i32,
    timeout: Time,
}

const _: () = assert!(size_of::<Parameters>() == 40 && size_of::<Fetch>() == 64);

// From `linux/pps.h`, whose numbers encode the size of an address.
const PARAMETERS: Request<Parameters> = Request::by_address(2, b'p', 0xa1);
const SET_PARAMETERS: Request<Parameters> = Request::by_address(1, b'p', 0xa2);
const CAPABILITIES: Request<i32> = Request::by_address(2, b'p', 0xa3);
const FETCH: Request<Fetch> = Request::by_address(3, b'p', 0xa4);
const VERSION: i32 = 1;
const CAPTURE_ASSERT: i32 = 0x01;
const CAN_WAIT: i32 = 0x100;
/// Stamps as seconds and nanoseconds.
const AS_TIMESPEC: i32 = 0x1000;

/// An open pulse source.
#[derive(Debug)]
pub struct PpsDevice {
    node: Node,
    /// Its entry in sysfs, while it exists; `None` without one.
    listed: Option<PathBuf>,
    /// The kernel's number of the last pulse that was seen.
    seen: u32,
}

/// The last pulse that the kernel stamped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PpsPulse {
    /// Time of the pulse, by `CLOCK_REALTIME`.
    pub realtime: Nanos,
    /// The number of pulses since the last returned one, with this one.
    pub count: u64,
}

impl PpsDevice {
    /// Opens a device, and waits for pulses from now on.
    ///
    /// # Errors
    /// The device does not exist, a permission is missing, or it is not a source of pulses that stamps asserting edges,
    /// or that is switched off and the caller may not switch it on.
    pub fn open(path: &Path) -> Result<Self, DeviceError> {
        let node = Node::open(path, "the pulse source", REMEDY)?;
        let number = node.file().metadata().map(|file| file.st_rdev()).unwrap_or_default();
        let listed = PathBuf::from(format!("/sys/dev/char/{}:{}", libc::major(number), libc::minor(number)));
        let mut opened = Self { node, listed: Some(listed), seen: 0 };
        opened.listed = opened.listed.filter(|listed| listed.exists());
        let can = opened.node.ask(CAPABILITIES).map_err(|error| opened.failed("ask the abilities of", &error))?;
        let needed = CAPTURE_ASSERT | CAN_WAIT;
        if can & needed != needed {
            return Err(DeviceError {
                attempted: format!("use the pulse source {}", path.display()),
                said: format!("it cannot stamp assert edges, or cannot be waited for (capabilities {can:#x})"),
                remedy: "choose another one; ppstest shows what each can do",
            });
        }
        let parameters = opened.node.ask(PARAMETERS).map_err(|error| opened.failed("ask the settings of", &error))?;
        if parameters.mode & CAPTURE_ASSERT == 0 {
            let mode = parameters.mode | CAPTURE_ASSERT | AS_TIMESPEC;
            let set = opened.node.put(SET_PARAMETERS, Parameters { version: VERSION, mode, ..parameters });
            set.map_err(|error| opened.failed("switch on", &error))?;
        }
        opened.seen = opened.fetch(Nanos::ZERO)?.map_or(0, |told| told.sequences[0]);
        Ok(opened)
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        self.node.path()
    }

    /// Waits at most `most`, which is less than a second, for a pulse. `None` if there was none since the last call.
    ///
    /// # Errors
    /// The device is gone or refuses.
    pub fn next(&mut self, most: Nanos) -> Result<Option<PpsPulse>, DeviceError> {
        let mut told = self.fetch(most)?;
        if told.is_none() && most > Nanos::ZERO {
            self.check_there()?;
            told = self.fetch(Nanos::ZERO)?;
        }
        Ok(told.filter(|told| told.sequences[0] != self.seen).map(|told| {
            let count = u64::from(told.sequences[0].wrapping_sub(self.seen));
            self.seen = told.sequences[0];
            let [Time { seconds, nanoseconds, .. }, _] = told.times;
            PpsPulse { realtime: Nanos::new(seconds * 1_000_000_000 + i64::from(nanoseconds)), count }
        }))
    }

    /// Waits at most `most` for the next edge, and fetches the last pulse; at once if `most` is zero. `None` if there
    /// was none.
    fn fetch(&self, most: Nanos) -> Result<Option<Fetch>, DeviceError> {
        let timeout = Time { seconds: 0, nanoseconds: most.count() as i32, flags: 0 };
        match self.node.exchange(FETCH, Fetch { timeout, ..Fetch::default() }) {
            Ok(told) => Ok(Some(told)),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIMEDOUT | libc::EINTR)) => Ok(None),
            Err(error) => Err(self.failed("wait for", &error)),
        }
    }

    /// Whether the kernel still has the device: a removed device is only silent.
    fn check_there(&self) -> Result<(), DeviceError> {
        match &self.listed {
            Some(listed) if !listed.exists() => {
                Err(self.failed("wait for", &std::io::Error::from_raw_os_error(libc::ENODEV)))
            }
            _ => Ok(()),
        }
    }

    fn failed(&self, attempted: &str, error: &std::io::Error) -> DeviceError {
        refusal(format!("{attempted} the pulse source {}", self.node.path().display()), error, REMEDY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_source_of_pulses_is_refused_with_what_to_load() {
        for (path, said) in [
            ("/dev/null", "Inappropriate ioctl"),
            ("/dev/pps/none", "No such file"),
            ("/proc/uptime", "not a character device"),
        ] {
            let error = PpsDevice::open(Path::new(path)).expect_err(path).to_string();
            assert!(error.contains(said) && error.contains("pps_parport"), "{path}: {error}");
        }
    }
}
