//! Lines of a GPIO chip: the PL061 of QEMU's board, whose outputs 4 and 5 the host connects with inputs: 4 with 0 and 1
//! (in this order), 5 with 2. The host records each change of an output, and compares.

use std::path::Path;
use std::sync::mpsc;

use hairspring_device::{Device, Gpio, GpioEdge, GpioEdges, Guarded, Lines, LockFile};
use hairspring_machine::Machine as _;
use hairspring_station::source::EventSource as _;
use hairspring_station::source::interrupt::{EdgeDirection, InterruptLine, Interrupts};
use hairspring_station::{Activation, SchedulingUnit, Stamped, Stop};
use hairspring_time::{Host, Nanos};

use crate::Lab;
use crate::findings::{Findings, check, refused, text};
use crate::{shell, units};

const CHIP: &str = "/dev/gpiochip0";
const PATIENCE: Nanos = Nanos::from_secs(10);

fn open(outputs: &[u32], inputs: &[u32]) -> Result<Gpio, String> {
    Gpio::open(Path::new(CHIP), outputs, inputs, Lines(0)).map_err(text)
}

fn watch(line: u32, kept: u32) -> Result<GpioEdges, String> {
    GpioEdges::watch(Path::new(CHIP), &[line], kept).map_err(text)
}

fn next(edges: &mut GpioEdges) -> Result<GpioEdge, String> {
    edges.next(PATIENCE).map_err(text)?.ok_or_else(|| "an edge did not come".to_owned())
}

/// The changes of outputs that the host must record.
fn noted(findings: &mut Findings, line: u8, is_high: bool) {
    findings.captured(line << 1 | u8::from(is_high));
}

/// Writes patterns to the outputs. The host sees each change, and the inputs follow.
pub(crate) fn lines(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const OUTPUTS: [u8; 3] = [4, 6, 7];
    // The lines of the device have the order of the list.
    let mut device = open(&OUTPUTS.map(u32::from), &[1, 0])?;
    device.init().map_err(text)?;
    let mut before = 0;
    let patterns = [0b001, 0b101, 0b010, 0b111, 0b000, 0b011, 0b110, 0b001, 0b000];
    for pattern in patterns {
        device.write(Lines(0b111), Lines(pattern)).map_err(text)?;
        for (number, line) in (0..).zip(OUTPUTS) {
            let is_high = pattern >> number & 1 == 1;
            if is_high != (before >> number & 1 == 1) {
                noted(findings, line, is_high);
            }
        }
        before = pattern;
        let expected = if pattern & 1 == 1 { Lines(0b11) } else { Lines(0) };
        let device = std::cell::RefCell::new(&mut device);
        shell::wait_until(&format!("the inputs did not become {expected}"), || {
            device.borrow_mut().read().is_ok_and(|read| read == expected)
        })?;
    }
    // Lines outside the mask keep their levels.
    device.write(Lines(0b100), Lines(u32::MAX)).map_err(text)?;
    noted(findings, 7, true);
    device.make_safe().map_err(text)?;
    noted(findings, 7, false);
    findings.exact("patterns", patterns.len());
    Ok(())
}

/// Each edge arrives once, in order, with the kernel's time stamp.
pub(crate) fn edges(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const COUNT: u32 = 100;
    let (mut device, mut edges) = (open(&[4], &[])?, watch(0, 0)?);
    let now = || Host.monotonic();
    let (mut to_stamp, mut to_wake) = (Vec::new(), Vec::new());
    for number in 1..=COUNT {
        let rising = number % 2 == 1;
        let before = now();
        device.write(Lines(1), Lines(u32::from(rising))).map_err(text)?;
        noted(findings, 4, rising);
        let edge = next(&mut edges)?;
        let after = now();
        let expected = GpioEdge { at: edge.at, line: 0, rising, number, line_number: number };
        check(edge == expected, || format!("{edge:?} instead of {expected:?}"))?;
        check(before <= edge.at && edge.at <= after, || format!("{edge:?} is not between {before} and {after}"))?;
        to_stamp.push(edge.at - before);
        to_wake.push(after - edge.at);
    }
    check(edges.lost() == 0, || format!("{} lost", edges.lost()))?;
    let more = edges.next(Nanos::from_millis(20)).map_err(text)?;
    check(more.is_none(), || format!("one more edge: {more:?}"))?;
    findings.exact("edges", COUNT);
    findings.measured("write_to_stamp", &to_stamp);
    findings.measured("stamp_to_wake", &to_wake);
    Ok(())
}

/// The kernel discards edges that are not read in time; the source counts them, so that kept and lost edges add up.
pub(crate) fn overflow(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const COUNT: u32 = 40;
    const KEPT: u32 = 4;
    let (mut device, mut unread, mut read) = (open(&[4], &[])?, watch(0, KEPT)?, watch(1, 0)?);
    for number in 1..=COUNT {
        let rising = number % 2 == 1;
        device.write(Lines(1), Lines(u32::from(rising))).map_err(text)?;
        noted(findings, 4, rising);
        // The host sets this line after the other one.
        next(&mut read)?;
    }
    let (mut kept, mut last) = (0_u64, 0);
    while let Some(edge) = unread.next(Nanos::from_millis(100)).map_err(text)? {
        check(edge.number > last, || format!("{edge:?} behind number {last}"))?;
        (kept, last) = (kept + 1, edge.number);
    }
    let lost = unread.lost();
    check(kept + lost == u64::from(COUNT) && last == COUNT && lost > 0, || {
        format!("{kept} were kept and {lost} lost of {COUNT}, the last is {last}")
    })?;
    findings.exact("kept", kept);
    findings.exact("lost", lost);
    Ok(())
}

/// Edges of one direction as the source of a scheduling unit, whose action writes to an output.
pub(crate) fn unit(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const COUNT: u32 = 100;
    let lock = LockFile::of_process().map_err(text)?;
    let device = Guarded::new(Box::new(open(&[6], &[])?), Box::new(lock));
    let mut raiser = open(&[5], &[])?;
    let stop = Stop::new().map_err(text)?;
    let line = InterruptLine::Gpio(watch(2, 0)?, Some(EdgeDirection::Rising));
    let source = Interrupts::new(line, "line 2", &lab.timebase, &stop);
    let (tell, served) = mpsc::channel();
    let mut is_high = false;
    let action = move |activation: &mut Activation<'_, '_, Host>| {
        is_high = !is_high;
        activation.device(|device| device.write(Lines(1), Lines(u32::from(is_high))))?;
        // The receiver may have given up.
        let _ = tell.send(activation.event().sequence);
        Ok(())
    };
    let (unit, log) =
        SchedulingUnit::new(Box::new(source), Box::new(action), Some(&device), &lab.timebase, units::RING);
    let mut raised = Vec::with_capacity(COUNT as usize);
    let ran = units::ran(unit, log, &stop, &served, |wait| {
        for number in 1..=COUNT {
            // Gives the unit time to fall asleep.
            std::thread::sleep(std::time::Duration::from_millis(1));
            raised.push(lab.timebase.now());
            raiser.write(Lines(1), Lines(1)).map_err(text)?;
            noted(findings, 5, true);
            wait(number.into())?;
            noted(findings, 6, number % 2 == 1);
            raiser.write(Lines(1), Lines(0)).map_err(text)?;
            noted(findings, 5, false);
        }
        Ok(())
    })?;
    units::judge(&ran, &raised, Stamped::Kernel, true, findings)
}

/// Lines that are in use or do not exist are refused.
pub(crate) fn refusals(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let (taken, watched) = (open(&[4], &[])?, watch(0, 0)?);
    refused(open(&[4], &[]), "an output in use", "another program uses it")?;
    refused(open(&[], &[0]), "a line that is watched", "another program uses it")?;
    refused(watch(4, 0), "edges of a line in use", "another program uses it")?;
    refused(open(&[99], &[]), "a line that is not there", "gpioinfo lists them")?;
    let none = Gpio::open(Path::new("/dev/gpiochip9"), &[0], &[], Lines(0));
    refused(none, "a chip that is not there", "No such file")?;
    drop((taken, watched));
    // Once released, the lines can be opened again.
    open(&[4], &[0])?;
    findings.exact("refusals", 5);
    Ok(())
}

/// A chip that is removed while its lines are in use.
pub(crate) fn unplugged(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const DRIVER: &str = "/sys/bus/amba/drivers/pl061_gpio";
    let (mut device, mut edges) = (open(&[4], &[1])?, watch(0, 0)?);
    let chip = shell::list(DRIVER)?;
    let chip = chip.iter().filter_map(|path| path.file_name()?.to_str()).find(|name| name.ends_with(".pl061"));
    let chip = chip.ok_or("the driver has no chip")?;
    let stop = Stop::new().map_err(text)?;
    let mut source = Interrupts::new(InterruptLine::Gpio(watch(2, 0)?, None), "line 2", &lab.timebase, &stop);
    let waited = std::thread::scope(|scope| {
        let waiting = scope.spawn(move || source.wait());
        // Gives the thread time to fall asleep.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let unplugged = shell::write(format!("{DRIVER}/unbind"), chip);
        unplugged.map(|()| waiting.join())
    });
    let waited = waited?.map_err(|_| "the source panicked".to_owned())?;
    refused(waited, "a source that waited meanwhile", "gone or unplugged")?;
    refused(device.write(Lines(1), Lines(1)), "a write to a chip that is gone", "gone or unplugged")?;
    refused(device.read(), "a read from a chip that is gone", "gone or unplugged")?;
    refused(edges.next(Nanos::from_secs(1)), "edges of a chip that is gone", "gone or unplugged")?;
    refused(open(&[4], &[]), "a chip that is gone", "No such file")?;
    findings.exact("unplugged", true);
    Ok(())
}
