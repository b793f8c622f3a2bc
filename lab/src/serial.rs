//! The modem control lines of the PC's second serial port: looped back within the port, and unplugged.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hairspring_device::{Device, Lines, Pulse, Serial};
use hairspring_time::Nanos;

use crate::Lab;
use crate::findings::{Findings, check, refused, text};
use crate::shell;

const PORT: &str = "/dev/ttyS1";
const DTR: Lines = Lines(0b01);
const RTS: Lines = Lines(0b10);
const CTS: Lines = Lines(0b0001);
const DSR: Lines = Lines(0b0010);

/// The inputs that the port's loopback connects with outputs. It also connects DCD with the line that enables
/// interrupts.
const LOOPED: Lines = Lines(0b0111);

/// Each output reaches its input and no other: the port's loopback connects DTR with DSR and RTS with CTS.
pub(crate) fn lines(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let mut port = Serial::open(Path::new(PORT), Lines(0)).map_err(text)?;
    loop_back(PORT)?;
    for (outputs, expected) in
        [(Lines(0), Lines(0)), (DTR, DSR), (RTS, CTS), (Lines(0b11), Lines(0b11)), (Lines(0), Lines(0))]
    {
        port.write(Lines(0b11), outputs).map_err(text)?;
        let read = Lines(port.read().map_err(text)?.0 & LOOPED.0);
        check(read == expected, || format!("outputs {outputs} were read as {read}, not as {expected}"))?;
    }
    port.write(Lines(0b11), DTR).map_err(text)?;
    // Only lines in the mask change.
    port.write(RTS, Lines(u32::MAX)).map_err(text)?;
    check(port.read().is_ok_and(|read| read.0 & LOOPED.0 == 0b11), || {
        "a write changed a line that was not in its mask".to_owned()
    })?;
    let pulse = Pulse { lines: DTR, width: Nanos::from_micros(100) };
    let train = pulse.train(50, Nanos::from_millis(2), &mut port, &lab.timebase, &AtomicBool::new(false));
    let train = train.map_err(text)?;
    let short = train.pulses.iter().filter(|pulse| pulse.at_least < pulse.width).count();
    findings.exact("made_or_left_out", train.pulses.len() as u64 + train.left_out);
    findings.exact("too_short", short);
    findings.measured("late", &train.pulses.iter().map(|pulse| pulse.late).collect::<Vec<_>>());
    check(short == 0, || format!("{short} pulses were too short"))?;
    port.make_safe().map_err(text)?;
    check(port.read().is_ok_and(|read| read.0 & LOOPED.0 == 0), || "the safe state is not there".to_owned())?;
    drop(port);
    // The safe state remains after the port is closed.
    for (safe, dtr, rts) in [(DTR, true, false), (Lines(0), false, false), (Lines(0b11), true, true)] {
        drop(Serial::open(Path::new(PORT), safe).map_err(text)?);
        let ports = std::fs::read_to_string("/proc/tty/driver/serial").map_err(text)?;
        let line = ports.lines().find(|line| line.starts_with("1:")).ok_or("the kernel does not list the port")?;
        check((line.contains("DTR"), line.contains("RTS")) == (dtr, rts), || {
            format!("closed with the safe state {safe}, it is {line}")
        })?;
    }
    refused(Serial::open(Path::new("/dev/null"), Lines(0)), "no port", "serial:/dev/ttyS0")
}

/// Removing a port in the middle of a pulse train gives an error with that reason.
pub(crate) fn unplugged(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let mut port = Serial::open(Path::new(PORT), Lines(0)).map_err(text)?;
    let device = std::fs::read_link("/sys/class/tty/ttyS1/device").map_err(text)?;
    let device = device.file_name().ok_or("the port has no device")?.to_string_lossy().into_owned();
    let pulse = Pulse { lines: DTR, width: Nanos::from_micros(100) };
    let (train, removed) = std::thread::scope(|scope| {
        let remover = scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            shell::write("/sys/class/tty/ttyS1/device/driver/unbind", &device)
        });
        let train = pulse.train(100_000, Nanos::from_millis(1), &mut port, &lab.timebase, &AtomicBool::new(false));
        (train, remover.join())
    });
    removed.map_err(|_| "the remover panicked".to_owned())??;
    findings.exact("unplugged", true);
    refused(train, "a train on a port that was unplugged", "gone or unplugged")
}

/// Sets the port's loopback, which Linux offers as one more modem control line.
fn loop_back(port: &str) -> Result<(), String> {
    const LOOP: libc::c_int = 0x8000;
    crate::kernel::modem_set(Path::new(port), LOOP).map_err(|error| format!("failed to loop {port} back: {error}"))
}
