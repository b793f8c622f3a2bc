//! The parallel port of the PC. QEMU writes each strobed byte into a file on the host.

use std::path::Path;

use hairspring_device::{Device, Lines, Parport, Pulse};
use hairspring_time::Nanos;

use crate::Lab;
use crate::findings::{Findings, check, refused, text};

pub(crate) const PORT: &str = "/dev/parport0";
const DATA: Lines = Lines(0xff);
/// nStrobe. The receiver takes the data at its falling edge.
const STROBE: Lines = Lines(0x100);
/// nInit high: the printer is not being reset.
pub(crate) const SAFE: Lines = Lines(0x400);
const PULSES: u32 = 64;
const WIDTHS: [Nanos; 3] = [Nanos::ZERO, Nanos::from_micros(50), Nanos::from_millis(1)];

fn open() -> Result<Parport, String> {
    Parport::open(Path::new(PORT), SAFE).map_err(text)
}

/// No pulse is shorter than requested, and the receiver takes each byte exactly once, with the right data.
pub(crate) fn pulses(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let mut port = open()?;
    // The safe state strobes once, because the line was high before.
    findings.captured(0);
    let mut over = Vec::new();
    for number in 0..PULSES {
        let byte = (number * 37 + 11) as u8;
        port.write(DATA, Lines(byte.into())).map_err(text)?;
        let pulse = Pulse { lines: STROBE, width: WIDTHS[number as usize % WIDTHS.len()] };
        let report = pulse.fire(&mut port, &lab.timebase).map_err(text)?;
        findings.captured(byte);
        check(report.at_least >= pulse.width, || format!("pulse {number} was too short: {report:?}"))?;
        over.push(report.at_most - pulse.width);
    }
    findings.exact("pulses", PULSES);
    findings.measured("longer_than_asked", &over);
    Ok(())
}

/// Each strobe raises one interrupt, and the test counts them.
pub(crate) fn interrupts(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const COUNT: u32 = 20;
    let mut port = open()?;
    findings.captured(0);
    // Discards earlier interrupts.
    port.wait_interrupt(Nanos::from_millis(100)).map_err(text)?;
    port.read().map_err(text)?;
    let quiet = port.wait_interrupt(Nanos::from_millis(20)).map_err(text)?;
    check(quiet == 0, || format!("{quiet} interrupts without a strobe"))?;
    let mut came = 0;
    for byte in 0..COUNT {
        port.write(DATA, Lines(byte)).map_err(text)?;
        port.write(STROBE, STROBE).map_err(text)?;
        came += port.wait_interrupt(Nanos::from_secs(5)).map_err(text)?;
        // QEMU's port clears its interrupt when the status is read.
        port.read().map_err(text)?;
        port.write(STROBE, Lines(0)).map_err(text)?;
        findings.captured(byte as u8);
    }
    findings.exact("interrupts", came);
    check(came == COUNT, || format!("{came} interrupts for {COUNT} strobes"))
}

/// Refuses a port in use, and one that does not exist.
pub(crate) fn refusals(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let first = open()?;
    findings.captured(0);
    refused(open(), "a port in use", "another driver or process has it")?;
    drop(first);
    refused(Parport::open(Path::new("/dev/parport7"), SAFE), "a port that is not there", "No such file")?;
    refused(Parport::open(Path::new("/init"), SAFE), "a file", "not a character device")?;
    // A reader does not strobe.
    drop(Parport::listen(Path::new(PORT)).map_err(text)?);
    // Once released, the port can be opened again.
    open()?;
    findings.captured(0);
    findings.exact("refusals", 3);
    Ok(())
}
