//! The interface of `linux/comedi.h`: its structures, and each of its requests that we use as a safe function.
//!
//! Here are all requests whose values contain addresses, or whose length differs from the one in the request number.

#![expect(unsafe_code, reason = "ioctl with structures that hold addresses")]

use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd};

use zerocopy::{FromBytes, IntoBytes};

use crate::driver::node::{Node, Request, encoded};

const GROUP: u8 = b'd';
const INSN_BITS: u32 = 2 | 0x0c00_0000;
const INSN_CONFIG: u32 = 3 | 0x0c00_0000;
const CONFIG_INPUT: u32 = 0;
const CONFIG_OUTPUT: u32 = 1;
const CONFIG_QUERY: u32 = 28;
/// Subdevices that we ask for at most. The largest cards have less than 30.
const MOST_SUBDEVICES: usize = 64;
/// Most corrections of a command by the driver before it must be accepted.
const MOST_CORRECTIONS: usize = 8;

pub(super) const TRIG_NONE: u32 = 0x01;
pub(super) const TRIG_NOW: u32 = 0x02;
pub(super) const TRIG_FOLLOW: u32 = 0x04;
pub(super) const TRIG_TIMER: u32 = 0x10;
pub(super) const TRIG_COUNT: u32 = 0x20;
/// Samples of 32 bits instead of 16.
const LONG_SAMPLES: u32 = 0x1000_0000;
const READS_BY_COMMAND: u32 = 0x8000;

#[repr(C)]
#[derive(Clone, Copy, Default, FromBytes, IntoBytes)]
struct DeviceInfo {
    version: u32,
    subdevices: u32,
    driver: [u8; 20],
    board: [u8; 20],
    read_subdevice: i32,
    write_subdevice: i32,
    unused: [i32; 30],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct SubdeviceInfo {
    kind: u32,
    channels: u32,
    subdevice_flags: u32,
    timer: u32,
    most_channels: u32,
    greatest: u32,
    flags: u32,
    range: u32,
    settling_time: u32,
    bits_support: u32,
    unused: [u32; 8],
}

#[repr(C)]
struct Instruction {
    instruction: u32,
    count: u32,
    data: *mut u32,
    subdevice: u32,
    channel: u32,
    unused: [u32; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Default, FromBytes, IntoBytes)]
struct BufferConfiguration {
    subdevice: u32,
    flags: u32,
    most_bytes: u32,
    bytes: u32,
    unused: [u32; 4],
}

/// A condition and its argument.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trigger {
    pub(super) source: u32,
    pub(super) argument: u32,
}

/// Settings of an acquisition: the fields of `struct comedi_cmd` without its addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Acquisition {
    pub(super) subdevice: u32,
    pub(super) start: Trigger,
    pub(super) scan_begin: Trigger,
    pub(super) convert: Trigger,
    pub(super) scan_end: Trigger,
    pub(super) stop: Trigger,
}

#[repr(C)]
struct CommandBlock {
    subdevice: u32,
    flags: u32,
    /// Start, beginning of a scan, conversion, end of a scan, stop.
    triggers: [Trigger; 5],
    channels: *const u32,
    channel_count: u32,
    data: *mut i16,
    data_length: u32,
}

/// Types of subdevices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    AnalogInput,
    DigitalInput,
    DigitalOutput,
    Digital,
    Other(u32),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnalogInput => f.write_str("an analogue input"),
            Self::DigitalInput => f.write_str("digital inputs"),
            Self::DigitalOutput => f.write_str("digital outputs"),
            Self::Digital => f.write_str("digital lines"),
            Self::Other(0) => f.write_str("not used"),
            Self::Other(2) => f.write_str("an analogue output"),
            Self::Other(kind) => write!(f, "of comedi's kind {kind}"),
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Subdevice {
    pub(super) kind: Kind,
    pub(super) channels: u32,
    /// The largest value of a sample.
    pub(super) greatest: u32,
    pub(super) sample_bytes: u32,
    pub(super) can_stream: bool,
}

/// A request whose value is this structure.
const fn number<T>(direction: u32, index: u8) -> libc::c_ulong {
    encoded(direction, GROUP, index, size_of::<T>())
}

/// All subdevices of a card.
pub(super) fn subdevices(node: &Node) -> io::Result<Vec<Subdevice>> {
    let device = node.ask(Request::<DeviceInfo>::gives(GROUP, 1))?;
    let count = device.subdevices as usize;
    if count > MOST_SUBDEVICES {
        return Err(io::Error::other(format!("it has {count} subdevices, more than any known card")));
    }
    // The kernel writes one entry per subdevice of the card. The card may be replaced between the two calls: leave
    // room.
    let mut infos = [SubdeviceInfo::default(); 4 * MOST_SUBDEVICES];
    // SAFETY: the kernel fills as many `struct comedi_subdinfo` as the card has subdevices: `count`, or what another
    // card has that was attached since, for which there is four times the room of the most we admit. They live until
    // the call returns.
    call(unsafe { libc::ioctl(raw(node), number::<SubdeviceInfo>(2, 2) as _, infos.as_mut_ptr()) })?;
    let known = infos[..count].iter().map(|info| Subdevice {
        kind: match info.kind {
            1 => Kind::AnalogInput,
            3 => Kind::DigitalInput,
            4 => Kind::DigitalOutput,
            5 => Kind::Digital,
            kind => Kind::Other(kind),
        },
        channels: info.channels,
        greatest: info.greatest,
        sample_bytes: if info.subdevice_flags & LONG_SAMPLES != 0 { 4 } else { 2 },
        can_stream: info.subdevice_flags & READS_BY_COMMAND != 0,
    });
    Ok(known.collect())
}

/// Sets the digital lines of a mask, and returns the new state of all lines.
pub(super) fn bits(node: &Node, subdevice: u32, mask: u32, value: u32) -> io::Result<u32> {
    let mut data = [mask, value];
    instruct(node, INSN_BITS, subdevice, 0, &mut data)?;
    Ok(data[1])
}

/// Makes a digital line an output or an input.
pub(super) fn direct(node: &Node, subdevice: u32, line: u32, output: bool) -> io::Result<()> {
    let mut data = [if output { CONFIG_OUTPUT } else { CONFIG_INPUT }];
    instruct(node, INSN_CONFIG, subdevice, line, &mut data)
}

/// Whether a digital line is an output.
pub(super) fn is_output(node: &Node, subdevice: u32, line: u32) -> io::Result<bool> {
    let mut data = [CONFIG_QUERY, CONFIG_INPUT];
    instruct(node, INSN_CONFIG, subdevice, line, &mut data)?;
    Ok(data[1] == CONFIG_OUTPUT)
}

fn instruct(node: &Node, instruction: u32, subdevice: u32, channel: u32, data: &mut [u32]) -> io::Result<()> {
    let count = data.len() as u32;
    let mut request = Instruction { instruction, count, data: data.as_mut_ptr(), subdevice, channel, unused: [0; 3] };
    // SAFETY: this is the kernel's `struct comedi_insn`; it reads and writes `count` numbers at its address, which are
    // `data`, borrowed for itself alone until the call returns.
    call(unsafe { libc::ioctl(raw(node), number::<Instruction>(2, 12) as _, &raw mut request) })
}

/// Sets the size of the kernel's buffer, if one is given, and returns the actual size.
pub(super) fn buffer_bytes(node: &Node, subdevice: u32, wanted: Option<u32>) -> io::Result<u32> {
    let buffer = node.exchange(
        Request::gives(GROUP, 13),
        BufferConfiguration { subdevice, bytes: wanted.unwrap_or(0), ..Default::default() },
    )?;
    Ok(buffer.bytes)
}

/// Of the trigger sources set in the acquisition, those that the subdevice supports.
pub(super) fn possible(node: &Node, acquisition: &Acquisition, channels: &[u32]) -> io::Result<Acquisition> {
    command(node, 10, acquisition, channels).map(|(_, possible)| possible)
}

/// Lets the driver correct the arguments of an acquisition until it takes them.
pub(super) fn corrected(node: &Node, acquisition: &Acquisition, channels: &[u32]) -> io::Result<Acquisition> {
    let mut wanted = *acquisition;
    for _ in 0..MOST_CORRECTIONS {
        let (stage, granted) = command(node, 10, &wanted, channels)?;
        match stage {
            0 => return Ok(granted),
            // The stages before are about sources that do not exist or contradict each other, which no number corrects.
            1 | 2 => return Err(io::Error::from_raw_os_error(libc::EINVAL)),
            _ => wanted = granted,
        }
    }
    Err(io::Error::from_raw_os_error(libc::EINVAL))
}

/// Begins an acquisition.
pub(super) fn begin(node: &Node, acquisition: &Acquisition, channels: &[u32]) -> io::Result<()> {
    command(node, 9, acquisition, channels).map(drop)
}

/// Ends the acquisition of a subdevice. Acquired data can still be read.
pub(super) fn cancel(node: &Node, subdevice: u32) -> io::Result<()> {
    // SAFETY: the argument is a number, not an address.
    call(unsafe { libc::ioctl(raw(node), encoded(0, GROUP, 7, 0) as _, libc::c_ulong::from(subdevice)) })
}

/// Chooses the subdevice that is read from through this file.
pub(super) fn read_from(node: &Node, subdevice: u32) -> io::Result<()> {
    // SAFETY: the argument is a number, not an address.
    call(unsafe { libc::ioctl(raw(node), encoded(0, GROUP, 16, 0) as _, libc::c_ulong::from(subdevice)) })
}

/// A command or its test: the driver's answer, and the command as corrected.
fn command(node: &Node, index: u8, wanted: &Acquisition, channels: &[u32]) -> io::Result<(i32, Acquisition)> {
    let Acquisition { subdevice, start, scan_begin, convert, scan_end, stop } = *wanted;
    let mut block = CommandBlock {
        subdevice,
        flags: 0,
        triggers: [start, scan_begin, convert, scan_end, stop],
        channels: channels.as_ptr(),
        channel_count: channels.len() as u32,
        data: std::ptr::null_mut(),
        data_length: 0,
    };
    // SAFETY: this is the kernel's `struct comedi_cmd`. It reads `channel_count` numbers at the address of the list,
    // which is borrowed until the call returns and which it copies; no data are given, and it writes only to the block
    // itself.
    let stage = unsafe { libc::ioctl(raw(node), number::<CommandBlock>(2, index) as _, &raw mut block) };
    if stage < 0 {
        return Err(io::Error::last_os_error());
    }
    let [start, scan_begin, convert, scan_end, stop] = block.triggers;
    Ok((stage, Acquisition { subdevice, start, scan_begin, convert, scan_end, stop }))
}

fn raw(node: &Node) -> libc::c_int {
    node.as_fd().as_raw_fd()
}

fn call(result: libc::c_int) -> io::Result<()> {
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_as_long_as_the_kernels() {
        // COMEDI_DEVINFO, COMEDI_SUBDINFO, COMEDI_INSN, COMEDI_BUFCONFIG and COMEDI_CMD on a machine of 64 bits.
        assert_eq!(number::<DeviceInfo>(2, 1), 0x80b0_6401);
        assert_eq!(number::<SubdeviceInfo>(2, 2), 0x8048_6402);
        assert_eq!(number::<Instruction>(2, 12), 0x8028_640c);
        assert_eq!(number::<BufferConfiguration>(2, 13), 0x8020_640d);
        assert_eq!(number::<CommandBlock>(2, 9), 0x8050_6409);
    }
}
