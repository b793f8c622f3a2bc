//! `lab-guest`: the tests of the drivers, against the kernel's real ones.
//!
//! It runs in the virtual machine that `cargo xtask lab` boots, with the command beside it. Each test uses a device
//! that QEMU or the kernel provides, and reports to the host by one line of JSON in the file that is its only argument:
//! findings, measurements and duration. The exit status means nothing. If the machine dies, the missing lines show it.
//!
//! It changes modules, disks and devices as it likes: it is made for a machine that is thrown away.
#![expect(clippy::print_stderr, reason = "the console of the machine, for people")]

mod cards;
mod disks;
mod findings;
mod gpio;
mod hypervisor;
mod kernel;
mod parallel;
mod pci;
mod pps;
mod ptp;
mod serial;
mod sheets;
mod shell;
mod sound;
mod units;

use std::fs::File;
use std::io::Write as _;
use std::time::Instant;

use hairspring_time::{Host, Timebase};
use serde_json::json;

use findings::Findings;

/// State that the tests share.
struct Lab {
    timebase: Timebase<Host>,
}

type Test = fn(&Lab, &mut Findings) -> Result<(), String>;

/// All tests of the PC, in the order in which they run: those that take a device away come last.
const TESTS: &[(&str, Test)] = &[
    ("sheet.quick", sheets::quick),
    (hypervisor::TEST, hypervisor::stops),
    ("parport.pulses", parallel::pulses),
    ("parport.interrupts", parallel::interrupts),
    ("parport.unit", units::parport),
    ("parport.refusals", parallel::refusals),
    ("pps.pulses", pps::pulses),
    ("pps.sheet", pps::sheet),
    ("pps.recording", pps::recording),
    ("pps.unplugged", pps::unplugged),
    ("ptp.clock", ptp::clock),
    ("ptp.recording", ptp::recording),
    ("comedi.digital", cards::digital),
    ("comedi.recording", cards::recording),
    ("comedi.command", cards::command),
    ("comedi.overflow", cards::overflow),
    ("comedi.refusals", cards::refusals),
    ("serial.lines", serial::lines),
    ("pci.words", pci::words),
    ("pci.factorial", pci::factorial),
    ("pci.dma", pci::dma),
    ("pci.interrupts", pci::interrupts),
    ("uio.unit", units::uio),
    ("sound.content", sound::content),
    ("sound.overruns", sound::overruns),
    ("sound.drift", sound::drift),
    ("sound.oracles", sound::oracles),
    ("sound.play", sound::play),
    ("sound.sheet", sound::sheet),
    ("sound.positions", sound::positions),
    ("sound.refusals", sound::refusals),
    ("disk.raid0", disks::raid0),
    ("disk.errors", disks::errors),
    ("disk.dropped", disks::dropped),
    ("ptp.unplugged", ptp::unplugged),
    ("sound.unplugged", sound::unplugged),
    ("serial.unplugged", serial::unplugged),
    ("pci.unplugged", pci::unplugged),
];

/// All tests of the board.
const BOARD_TESTS: &[(&str, Test)] = &[
    ("gpio.lines", gpio::lines),
    ("gpio.edges", gpio::edges),
    ("gpio.overflow", gpio::overflow),
    ("gpio.unit", gpio::unit),
    ("gpio.refusals", gpio::refusals),
    ("gpio.unplugged", gpio::unplugged),
];

fn main() {
    let path = std::env::args().nth(1).unwrap_or_else(|| "/dev/stderr".to_owned());
    let mut results = match File::options().write(true).open(&path) {
        Ok(file) => file,
        Err(error) => return eprintln!("lab-guest: failed to open {path}: {error}"),
    };
    let mut tell = |line: serde_json::Value| {
        // A sheet is too long for the console's line.
        if line["sheet"].is_null() {
            eprintln!("{line}");
        }
        let _ = results.write_all(format!("{line}\n").as_bytes());
    };
    let timebase = match Timebase::calibrate(Host) {
        Ok(timebase) => timebase,
        Err(error) => return tell(json!({ "fatal": format!("failed to {error}") })),
    };
    let lab = Lab { timebase };
    // The kernel passes unknown parts of its command line to the first program.
    let only = std::env::var("LAB_ONLY").unwrap_or_default();
    let tests = if std::env::consts::ARCH == "aarch64" { BOARD_TESTS } else { TESTS };
    // A machine whose clock counts instructions stands when they do: the host cannot make a hole in its time.
    let is_here = |name: &str| name != hypervisor::TEST || std::env::var_os(hypervisor::STOPS).is_some();
    let chosen: Vec<_> = tests.iter().filter(|(name, _)| name.starts_with(&only) && is_here(name)).collect();
    tell(json!({ "tests": chosen.iter().map(|(name, _)| name).collect::<Vec<_>>() }));
    for (name, test) in &chosen {
        tell(json!({ "begin": name }));
        let begun = Instant::now();
        let mut findings = Findings::default();
        // A panic is a failure of its test, and the others still run.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(&lab, &mut findings)));
        let ended = ended.unwrap_or_else(|_| Err("it panicked; the console says where".to_owned()));
        if let Some(sheet) = findings.take_sheet() {
            tell(json!({ "sheet": sheet }));
        }
        tell(findings.line(name, &ended, begun.elapsed()));
    }
    tell(json!({ "end": chosen.len() }));
}
