//! [`PtpClock`]: the clock of a network card, a hypervisor or a timing card, through the kernel's interface for such
//! clocks: `/dev/ptp0`.
//!
//! The clock is read between two readings of the time of day, so each reading is an interval:
//!
//! ```text
//!   CLOCK_REALTIME    earliest ───────── latest      cross stamp: the hardware stamps both clocks at once
//!   /dev/ptp0                    time                extended: the driver brackets the read of the register itself
//!                                                    brackets: the kernel brackets the call of the driver
//! ```
//!
//! Uses the best of three methods that the driver has, and the narrowest of several brackets.
//!
//! **What it does not claim.** The kernel brackets with the time of day, which may be stepped: a caller that wants
//! another clock compares the two before and after. How far the clock is from its own master, over a network with an
//! unknown delay, is in no interval. Most such clocks count TAI, which was 37 s ahead of UTC in 2026; the kernel does
//! not report the scale of a clock.
//!
//! **Real-time behaviour.** [`PtpClock::read`] is one system call that reads the card several times: microseconds on
//! PCI Express, milliseconds for a clock behind a slow bus. Do not call it on a thread that has a deadline.

use std::io;
use std::os::linux::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use hairspring_machine::Nanos;
use zerocopy::{FromBytes, FromZeros as _, IntoBytes};

use crate::device::DeviceError;
use crate::driver::node::{Node, Request};
use crate::refusal::refusal;

const REMEDY: &str = "load the driver of a card or hypervisor that has such a clock (ptp_kvm, igb, e1000e, ...), and name its file, for \
                      instance ptp:/dev/ptp0; ethtool -T shows the clock of a network card";
/// Brackets per reading; the narrowest counts. The kernel takes at most 25.
const SAMPLES: usize = 10;
const MOST_SAMPLES: usize = 25;
/// The step of a stamp, and of its conversion to the time of day.
const STEP: Nanos = Nanos::new(1);

/// `struct ptp_clock_time`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, FromBytes, IntoBytes)]
struct Time {
    seconds: i64,
    nanoseconds: u32,
    reserved: u32,
}

impl Time {
    fn nanos(self) -> Option<Nanos> {
        let seconds = self.seconds.checked_mul(1_000_000_000)?;
        seconds.checked_add(i64::from(self.nanoseconds)).map(Nanos::new)
    }
}

/// `struct ptp_clock_caps`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes)]
struct Capabilities {
    most_adjustment: i32,
    alarms: i32,
    external_stamps: i32,
    periodic_outputs: i32,
    pps: i32,
    pins: i32,
    cross_stamps: i32,
    unused: [i32; 13],
}

/// `struct ptp_sys_offset`: the time of day, then the clock and the time of day in turn.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes)]
struct Offset {
    samples: u32,
    reserved: [u32; 3],
    times: [Time; 2 * MOST_SAMPLES + 1],
}

/// `struct ptp_sys_offset_extended`: the time of day, the clock, and the time of day, of each sample.
#[repr(C)]
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes)]
struct Extended {
    samples: u32,
    reserved: [u32; 3],
    times: [[Time; 3]; MOST_SAMPLES],
}

/// `struct ptp_sys_offset_precise`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes)]
struct Precise {
    clock: Time,
    realtime: Time,
    monotonic_raw: Time,
    reserved: [u32; 4],
}

impl Default for Offset {
    fn default() -> Self {
        Self { samples: SAMPLES as u32, ..Self::new_zeroed() }
    }
}

impl Default for Extended {
    fn default() -> Self {
        Self { samples: SAMPLES as u32, ..Self::new_zeroed() }
    }
}

const _: () = assert!(size_of::<Capabilities>() == 80 && size_of::<Precise>() == 64);
const _: () = assert!(size_of::<Offset>() == 832 && size_of::<Extended>() == 1216);

// From `linux/ptp_clock.h`; those with a 2 are in Linux since 5.4.
const CAPABILITIES: Request<Capabilities> = Request::gives(b'=', 1);
/// The header calls it a request that only takes a value; the kernel returns one.
const OFFSET: Request<Offset> = Request::takes(b'=', 14);
const PRECISE: Request<Precise> = Request::exchanges(b'=', 17);
const EXTENDED: Request<Extended> = Request::exchanges(b'=', 18);

/// How a reading was bracketed, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtpBracket {
    /// The hardware stamped both clocks at once.
    CrossStamp,
    /// The driver read the time of day just before and after the register of the clock.
    Extended,
    /// The kernel read the time of day before and after the call of the driver.
    Plain,
}

/// Capabilities of a clock, as its driver reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtpCapabilities {
    /// The greatest correction of the clock's rate, in parts per billion. 0: the clock cannot be disciplined.
    pub most_adjustment_ppb: u32,
    /// Inputs whose edges the clock stamps.
    pub external_stamps: u32,
    /// Outputs that it drives periodically.
    pub periodic_outputs: u32,
    /// Whether it notifies the kernel at each of its seconds.
    pub has_pps: bool,
    /// Whether its hardware stamps both clocks at once.
    pub has_cross_stamps: bool,
}

/// A PTP hardware clock that is open for reading.
#[derive(Debug)]
pub struct PtpClock {
    node: Node,
    name: String,
    capabilities: PtpCapabilities,
    bracket: PtpBracket,
}

/// One reading: when the time of day was between `earliest` and `latest`, the clock stood at `time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PtpReading {
    /// The clock, in nanoseconds of its own scale.
    pub time: Nanos,
    /// `CLOCK_REALTIME` at that moment, at least.
    pub earliest: Nanos,
    /// At most.
    pub latest: Nanos,
    /// How it was bracketed.
    pub bracket: PtpBracket,
}

impl PtpClock {
    /// Opens a clock for reading, and finds the best way to read it by trying.
    ///
    /// # Errors
    /// The file does not exist, a permission is missing, or it is not a PTP clock.
    pub fn open(path: &Path) -> Result<Self, DeviceError> {
        let node = Node::open_to_read(path, "the PTP clock", REMEDY)?;
        let can = node.ask(CAPABILITIES).map_err(|error| failed(&node, "ask the abilities of", &error))?;
        let number = node.file().metadata().map(|file| file.st_rdev()).unwrap_or_default();
        let listed = PathBuf::from(format!("/sys/dev/char/{}:{}", libc::major(number), libc::minor(number)));
        // A name is for people; a clock without one is as good.
        let name = std::fs::read_to_string(listed.join("clock_name")).unwrap_or_default().trim().to_owned();
        let count = |number: i32| u32::try_from(number).unwrap_or(0);
        let capabilities = PtpCapabilities {
            most_adjustment_ppb: count(can.most_adjustment),
            external_stamps: count(can.external_stamps),
            periodic_outputs: count(can.periodic_outputs),
            has_pps: can.pps != 0,
            has_cross_stamps: can.cross_stamps != 0,
        };
        let mut opened = Self { node, name, capabilities, bracket: PtpBracket::CrossStamp };
        opened.read()?;
        Ok(opened)
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        self.node.path()
    }

    /// The driver's name for it, from sysfs; empty if sysfs does not show one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Capabilities of the clock.
    pub fn capabilities(&self) -> PtpCapabilities {
        self.capabilities
    }

    /// How the last reading was bracketed.
    pub fn bracket(&self) -> PtpBracket {
        self.bracket
    }

    /// Reads the clock. Falls back to the next way of [`PtpBracket`] where the driver does not have one, or the
    /// hardware cannot stamp now.
    ///
    /// # Errors
    /// The clock is gone or refuses, or the time of day was stepped during every bracket.
    pub fn read(&mut self) -> Result<PtpReading, DeviceError> {
        let refused = |error: &io::Error| failed(&self.node, "read", error);
        if self.bracket == PtpBracket::CrossStamp {
            match self.node.ask(PRECISE) {
                Ok(told) => return told.reading().ok_or_else(|| self.impossible()),
                Err(error) if is_unsupported(&error) => self.bracket = PtpBracket::Extended,
                Err(error) => return Err(refused(&error)),
            }
        }
        if self.bracket == PtpBracket::Extended {
            match self.node.ask(EXTENDED) {
                Ok(told) => return told.reading().ok_or_else(|| self.impossible()),
                Err(error) if is_unsupported(&error) => self.bracket = PtpBracket::Plain,
                Err(error) => return Err(refused(&error)),
            }
        }
        let told = self.node.ask(OFFSET).map_err(|error| refused(&error))?;
        told.reading().ok_or_else(|| self.impossible())
    }

    fn impossible(&self) -> DeviceError {
        DeviceError {
            attempted: format!("read the PTP clock {}", self.node.path().display()),
            said: "the time of day went backwards during every reading, or the clock shows no time".to_owned(),
            remedy: "read it again; if that does not help, see with phc_ctl what it shows",
        }
    }
}

impl Precise {
    fn reading(&self) -> Option<PtpReading> {
        let (time, at) = (self.clock.nanos()?, self.realtime.nanos()?);
        Some(PtpReading { time, earliest: at - STEP, latest: at + STEP, bracket: PtpBracket::CrossStamp })
    }
}

impl Extended {
    fn reading(&self) -> Option<PtpReading> {
        narrowest(self.times.iter().take(SAMPLES).copied(), PtpBracket::Extended)
    }
}

impl Offset {
    fn reading(&self) -> Option<PtpReading> {
        let samples = self.times.windows(3).step_by(2).take(SAMPLES);
        narrowest(samples.map(|three| [three[0], three[1], three[2]]), PtpBracket::Plain)
    }
}

/// The narrowest of brackets, each of which is the time before, the clock, and the time after. Brackets in which the
/// time of day went backwards are ignored.
fn narrowest(samples: impl Iterator<Item = [Time; 3]>, bracket: PtpBracket) -> Option<PtpReading> {
    let reading = |[before, clock, after]: [Time; 3]| {
        let (time, before, after) = (clock.nanos()?, before.nanos()?, after.nanos()?);
        (before <= after).then_some(PtpReading { time, earliest: before - STEP, latest: after + STEP, bracket })
    };
    samples.filter_map(reading).min_by_key(|reading| reading.latest - reading.earliest)
}

/// Whether the error means that a driver or a kernel lacks this method of reading a clock. Some drivers have cross
/// stamps only at times.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOTTY | libc::EINVAL | libc::ETIMEDOUT | libc::EBUSY))
}

fn failed(node: &Node, attempted: &str, error: &io::Error) -> DeviceError {
    refusal(format!("{attempted} the PTP clock {}", node.path().display()), error, REMEDY)
}

#[cfg(test)]
mod tests {
    use hairspring_machine::{Clock, Host, Machine as _};

    use super::*;

    #[test]
    fn what_is_no_ptp_clock_is_refused_with_what_to_load() {
        for (path, said) in [
            ("/dev/null", "Inappropriate ioctl"),
            ("/dev/ptp/none", "No such file"),
            ("/proc/uptime", "not a character device"),
        ] {
            let error = PtpClock::open(Path::new(path)).expect_err(path).to_string();
            assert!(error.contains(said) && error.contains("ptp_kvm"), "{path}: {error}");
        }
    }

    #[test]
    fn numbers_are_those_of_the_kernels_header() {
        let shown = format!("{CAPABILITIES:?} {OFFSET:?} {PRECISE:?} {EXTENDED:?}");
        for number in [0x8050_3d01_u32, 0x4340_3d0e, 0xc040_3d11, 0xc4c0_3d12] {
            assert!(shown.contains(&format!("number: {number},")), "{number:#x} is not in {shown}");
        }
    }

    fn time(ns: i64) -> Time {
        Time { seconds: ns.div_euclid(1_000_000_000), nanoseconds: ns.rem_euclid(1_000_000_000) as u32, reserved: 0 }
    }

    /// The chosen bracket: the clock, the least and the greatest time of day.
    #[track_caller]
    fn check(reading: Option<PtpReading>, expected: Option<(i64, i64, i64)>) {
        let told = |it: PtpReading| (it.time.count(), it.earliest.count(), it.latest.count());
        assert_eq!(reading.map(told), expected);
    }

    const S: i64 = 1_000_000_000;

    #[test]
    fn the_narrowest_bracket_is_kept_and_one_that_was_stepped_is_none() {
        let mut told = Extended::default();
        told.times.fill([time(S), time(7), time(3 * S)]);
        told.times[3] = [time(5 * S - 300), time(-2), time(5 * S + 100)];
        // The time of day was set back: the bracket seems to have a negative width.
        told.times[5] = [time(9 * S), time(8), time(8 * S)];
        // Samples that were not requested are ignored.
        told.times[SAMPLES] = [time(0); 3];
        check(told.reading(), Some((-2, 5 * S - 301, 5 * S + 101)));
        told.times.fill([time(2 * S), time(7), time(S)]);
        check(told.reading(), None);
    }

    #[test]
    fn plain_brackets_share_their_ends() {
        let mut told = Offset::default();
        for (place, one) in told.times.iter_mut().enumerate() {
            let at = place as i64;
            *one = if place % 2 == 1 { time(700 * S + at) } else { time(at * at * 100) };
        }
        check(told.reading(), Some((700 * S + 1, -1, 401)));
    }

    #[test]
    fn a_cross_stamp_is_exact_to_its_step() {
        let told = Precise { clock: time(37 * S), realtime: time(S), ..Precise::default() };
        check(told.reading(), Some((37 * S, S - 1, S + 1)));
        // A clock whose time cannot be represented.
        let far = Time { seconds: i64::MAX, ..Time::default() };
        check(Precise { clock: far, ..told }.reading(), None);
    }

    #[test]
    fn a_clock_of_this_machine_is_read_within_the_time_of_the_call() {
        const TEST: &str = "a_clock_of_this_machine_is_read_within_the_time_of_the_call";
        let mut clock = match PtpClock::open(Path::new("/dev/ptp0")) {
            Ok(clock) => clock,
            Err(refused) => return testing::skip(TEST, format!("{}: {}", refused.attempted, refused.said)),
        };
        let before = Host.read(Clock::Realtime);
        let first = clock.read().expect("a reading");
        let second = clock.read().expect("another");
        let after = Host.read(Clock::Realtime);
        assert!(before <= first.latest && second.earliest <= after, "{before} {first:?} {second:?} {after}");
        assert!(first.earliest <= first.latest && first.time <= second.time, "{first:?} {second:?}");
    }
}
