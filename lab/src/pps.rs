//! Pulses of a clock, stamped by the kernel's `pps_parport`: each is an interrupt of the parallel port. QEMU's port
//! raises one at the end of each strobe. The test strobes through I/O ports, bypassing the driver that owns the port.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hairspring_machine::Machine as _;
use hairspring_station::source::{EventSource as _, Pps};
use hairspring_station::{Stamped, Stop};
use hairspring_time::{Instant, Nanos};
use serde_json::Value;

use crate::Lab;
use crate::findings::{Findings, check, refused, text};
use crate::units::Registers;
use crate::{ptp, shell};

const PULSES: &str = "/dev/pps0";
/// Time and number of the last pulse, as sysfs shows them: `1577836800.000000000#7`.
const LAST: &str = "/sys/class/pps/pps0/assert";

/// Gives the pulses.
struct Clock(Registers);

impl Clock {
    fn new() -> Result<Self, String> {
        let registers = Registers::open()?;
        registers.read(Registers::STATUS).map_err(text)?;
        Ok(Self(registers))
    }

    /// Gives one pulse and returns its time, once the kernel has counted it.
    fn pulse(&self, lab: &Lab) -> Result<Instant, String> {
        let before = counted()?;
        let at = lab.timebase.now();
        self.0.write(Registers::CONTROL, self.0.strobed & !Registers::STROBE)?;
        shell::wait_until("a pulse was not counted", || counted().is_ok_and(|count| count == before + 1))?;
        // Clears the interrupt of QEMU's port.
        self.0.read(Registers::STATUS).map_err(text)?;
        Ok(at)
    }
}

fn counted() -> Result<u32, String> {
    let last = std::fs::read_to_string(LAST).map_err(text)?;
    last.trim().rsplit_once('#').and_then(|(_, number)| number.parse().ok()).ok_or(format!("the last pulse is {last}"))
}

/// Each pulse is one event with the kernel's stamp; pulses without a waiter are counted as missed; a stop ends the
/// wait.
pub(crate) fn pulses(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const COUNT: u64 = 20;
    let stop = Stop::new().map_err(text)?;
    let open = |path: &str| Pps::open(Path::new(path), &lab.timebase, &stop);
    refused(open(PULSES), "a source without a driver", "load the driver that stamps the pulses")?;
    refused(open("/dev/parport0"), "a port", "load the driver that stamps the pulses")?;
    // The driver claims the port before it can store pulses, and QEMU interrupts at each claim while interrupts are
    // allowed, which would crash the kernel.
    let registers = Registers::open()?;
    registers.write(Registers::CONTROL, registers.strobed & !(Registers::STROBE | Registers::ALLOW))?;
    registers.read(Registers::STATUS).map_err(text)?;
    shell::run("insmod /modules/pps_parport.ko clear_wait=0")?;
    shell::wait_for(PULSES)?;
    let clock = Clock::new()?;
    // Pulses from before the opening are not events of this source.
    clock.pulse(lab)?;
    let (mut source, mut other) = (open(PULSES).map_err(text)?, open(PULSES).map_err(text)?);
    let (mut to_stamp, mut to_wake) = (Vec::new(), Vec::new());
    for number in 1..=COUNT {
        let (waiting, given) = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| source.wait());
            // Gives the thread time to fall asleep.
            std::thread::sleep(Duration::from_millis(2));
            let given = clock.pulse(lab);
            (waiting.join(), given)
        });
        let given = given?;
        let event = waiting.map_err(|_| "the source panicked".to_owned())?.map_err(text)?.ok_or("it ended")?;
        let since = |later: Instant, earlier: Instant| later.since(earlier).map_err(text);
        let (stamp, wake) = (since(event.at, given)?, since(event.wake, event.at)?);
        let expected = (number, 0, Stamped::Kernel);
        check((event.sequence, event.missed, event.stamped) == expected, || format!("pulse {number}: {event:?}"))?;
        check(wake >= Nanos::ZERO, || format!("pulse {number} was waited for before it came: {event:?}"))?;
        to_stamp.push(stamp);
        to_wake.push(wake);
    }
    // The two stamps come from two clocks that the kernel synchronizes to less than a millisecond.
    let early = to_stamp.iter().filter(|span| **span < Nanos::from_millis(-1)).count();
    check(early == 0, || format!("{early} pulses were stamped before they were given: {to_stamp:?}"))?;
    let all = other.wait().map_err(text)?.ok_or("it ended")?;
    check((all.sequence, all.missed) == (COUNT, COUNT - 1), || format!("without a waiter: {all:?}"))?;
    let stopped = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| source.wait());
        std::thread::sleep(Duration::from_millis(20));
        stop.set();
        waiting.join()
    });
    let stopped = stopped.map_err(|_| "the source panicked".to_owned())?.map_err(text)?;
    check(stopped.is_none(), || format!("a stop: {stopped:?}"))?;
    findings.exact("pulses", COUNT);
    findings.exact("missed_by_who_did_not_wait", all.missed);
    findings.measured("pulse_to_stamp", &to_stamp);
    findings.measured("stamp_to_wake", &to_wake);
    Ok(())
}

/// The sheet has figures for the reaction to pulses if a source of pulses exists.
pub(crate) fn sheet(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let clock = Clock::new()?;
    let (done, said) = (AtomicBool::new(false), |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned());
    let (output, pulses) = std::thread::scope(|scope| {
        let taking = scope.spawn(|| {
            let arguments = ["sheet", "--quick", "--format", "json", "--only", "reaction.pps"];
            let output = Command::new("/hairspring").args(arguments).output();
            done.store(true, Ordering::Relaxed);
            output
        });
        let mut pulses = Ok(());
        while pulses.is_ok() && !done.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
            pulses = clock.pulse(lab).map(drop);
        }
        (taking.join(), pulses)
    });
    pulses?;
    let output = output.map_err(|_| "the command's thread panicked".to_owned())?.map_err(text)?;
    check(output.status.success(), || format!("{}: {}", output.status, said(&output.stderr)))?;
    let sheet: Value = serde_json::from_slice(&output.stdout).map_err(text)?;
    findings.exact("stages", figures(&sheet).len());
    check(figures(&sheet).len() == 5, || format!("the figures are {:?}", figures(&sheet)))
}

/// A recording counts the pulses, which are given each second by `CLOCK_MONOTONIC`: against them it is neither fast nor
/// slow.
pub(crate) fn recording(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let clock = Clock::new()?;
    // The test gives them later than it should, which is a lateness like that of the kernel's stamps.
    let mut recording = ptp::recording_beside("pps:/dev/pps0,late=100ms", "/tmp/pps")?;
    let begun = lab.timebase.machine().monotonic();
    let (mut given, mut latest) = (0, Nanos::ZERO);
    while recording.try_wait().map_err(text)?.is_none() {
        given += 1;
        let due = begun + Nanos::from_secs(given);
        while lab.timebase.machine().monotonic() < due {
            std::thread::sleep(Duration::from_millis(1));
        }
        clock.pulse(lab)?;
        // By now it has its stamp.
        latest = latest.max(lab.timebase.machine().monotonic() - due);
    }
    let (told, words) = ptp::verified(recording, "/tmp/pps")?;
    check(told["kind"] == "pps" && told["late_ns"] == 100_000_000, || told.to_string())?;
    check(told["readings"].as_u64().is_some_and(|readings| readings >= 2), || told.to_string())?;
    let [low, high] = [0, 1].map(|end| told["monotonic_ppb"][end].as_f64().unwrap_or(f64::NAN));
    if latest > Nanos::from_millis(100) {
        findings.not_judged(format!("the rate: this computer gave a pulse {latest} late"));
    } else {
        check(low <= 0.0 && high >= 0.0 && told["off_line_ns"] == 0, || told.to_string())?;
    }
    for none in ["steps_ns", "silences"] {
        check(told[none].as_array().is_some_and(Vec::is_empty), || told.to_string())?;
    }
    check(words.contains("pps:/dev/pps0: CLOCK_MONOTONIC "), || words.clone())?;
    findings.measured("latest", &[latest]);
    findings.note("rate", told["monotonic_ppb"].to_string());
    Ok(())
}

/// The rows of the source that have figures.
fn figures(sheet: &Value) -> Vec<String> {
    match sheet {
        Value::Object(object) => {
            let id = object.get("id").and_then(Value::as_str).filter(|id| id.starts_with("reaction.pps."));
            let has_figure = sheet["figure"]["n"].as_u64().is_some_and(|n| n > 0);
            match id.filter(|_| has_figure) {
                Some(id) => vec![id.to_owned()],
                None => object.values().flat_map(figures).collect(),
            }
        }
        Value::Array(array) => array.iter().flat_map(figures).collect(),
        _ => Vec::new(),
    }
}

/// Removing a device while a thread waits for it gives an error with that reason.
pub(crate) fn unplugged(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let stop = Stop::new().map_err(text)?;
    let mut source = Pps::open(Path::new(PULSES), &lab.timebase, &stop).map_err(text)?;
    let port = shell::list("/sys/bus/pnp/drivers/parport_pc")?;
    let port = port.iter().filter_map(|path| path.file_name()?.to_str()).find(|name| name.contains(':'));
    let port = port.ok_or("the port is not a separate device")?;
    let waited = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            // QEMU's port raises one more interrupt when interrupts are disabled.
            let mut more = 2;
            loop {
                more -= 1;
                match source.wait() {
                    Ok(Some(_)) if more > 0 => {}
                    waited => return waited,
                }
            }
        });
        std::thread::sleep(Duration::from_millis(20));
        let unplugged = shell::write("/sys/bus/pnp/drivers/parport_pc/unbind", port);
        unplugged.map(|()| waiting.join())
    });
    let waited = waited?.map_err(|_| "the source panicked".to_owned())?;
    refused(waited, "a source that was unplugged", "gone or unplugged")?;
    drop(source);
    shell::run("rmmod pps_parport")?;
    findings.exact("unplugged", true);
    Ok(())
}
