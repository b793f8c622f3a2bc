//! The PTP hardware clock of QEMU's `e1000e`, through the kernel's driver of that card. The tests set it, as a daemon
//! would.
//!
//! Before version 8.1 QEMU lets the card's counter stand. The driver and the kernel's interface are real nevertheless,
//! and a clock that stands is one that must be noticed.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use hairspring_device::{PtpBracket, PtpClock};
use hairspring_machine::{Clock, Host, Machine as _};
use hairspring_time::Nanos;
use serde_json::Value;

use crate::Lab;
use crate::findings::{Findings, check, refused, text};
use crate::shell;

const CLOCK: &str = "/dev/ptp0";

/// Each time that is set is read, within the readings of the time of day before and after.
pub(crate) fn clock(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const COUNT: i64 = 20;
    refused(PtpClock::open(Path::new("/dev/ptp9")), "a clock without a driver", "load the driver")?;
    refused(PtpClock::open(Path::new("/dev/parport0")), "a port", "load the driver")?;
    let mut clock = PtpClock::open(Path::new(CLOCK)).map_err(text)?;
    let can = clock.capabilities();
    check(can.most_adjustment_ppb > 0 && !can.has_cross_stamps, || format!("{can:?}"))?;
    check(clock.bracket() == PtpBracket::Extended, || format!("{:?}", clock.bracket()))?;
    findings.note("name", clock.name().to_owned());
    let set = File::options().read(true).write(true).open(CLOCK).map_err(text)?;
    let now = || Host.read(Clock::Realtime);
    let mut widths = Vec::new();
    for number in 0..COUNT {
        let time = (1_000_000 + number * 37) * 1_000_000_000 + 123_456_789;
        let before = now();
        crate::kernel::set_clock(&set, time).map_err(text)?;
        let reading = clock.read().map_err(text)?;
        let after = now();
        // One that runs has run on since, at a rate that is about right.
        let passed = reading.time - Nanos::new(time);
        let most = (after - before) * 2 + Nanos::from_micros(1);
        check(passed >= Nanos::ZERO && passed <= most, || format!("{time}: {reading:?}, at most {most} later"))?;
        check(before <= reading.latest && reading.earliest <= after, || format!("{before} {reading:?} {after}"))?;
        widths.push(reading.latest - reading.earliest);
    }
    check(widths.iter().all(|width| *width >= Nanos::ZERO), || format!("{widths:?}"))?;
    findings.exact("times", COUNT);
    findings.measured("width", &widths);
    Ok(())
}

/// Starts a recording of three seconds that is compared with a clock.
pub(crate) fn recording_beside(reference: &str, target: &str) -> Result<Child, String> {
    let arguments = ["record", "--card", "virtual:1ch,16bit,100kS/s", "--to", target, "--for", "3s", "--quiet"];
    let mut command = Command::new("/hairspring");
    command.args(arguments).args(["--reference", reference]).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().map_err(text)
}

/// Waits until a recording has begun, and a second more. Its files are made just before the first reading.
fn wait_for_the_middle(target: &str) -> Result<(), String> {
    shell::wait_for(&format!("{target}.sigmf-meta"))?;
    std::thread::sleep(Duration::from_secs(1));
    Ok(())
}

/// The report of `hairspring verify` on a recording that has ended and is complete: its reference, and the text.
pub(crate) fn verified(recording: Child, target: &str) -> Result<(Value, String), String> {
    let ended = recording.wait_with_output().map_err(text)?;
    check(ended.status.success(), || format!("{}: {}", ended.status, String::from_utf8_lossy(&ended.stderr).trim()))?;
    let said = |arguments: &[&str]| {
        let output = Command::new("/hairspring").args(["verify", target]).args(arguments).output().map_err(text)?;
        check(output.status.success(), || String::from_utf8_lossy(&output.stderr).into_owned())?;
        Ok::<_, String>(output.stdout)
    };
    let told: Value = serde_json::from_slice(&said(&["--format", "json"])?).map_err(text)?;
    check(told["verdict"] == "complete", || told.to_string())?;
    // Lines are broken for people.
    let words = String::from_utf8_lossy(&said(&[])?).split_whitespace().collect::<Vec<_>>().join(" ");
    Ok((told["reference"].clone(), words))
}

/// A recording has the readings, and a step that the clock made meanwhile.
pub(crate) fn recording(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let mut clock = PtpClock::open(Path::new(CLOCK)).map_err(text)?;
    let first = clock.read().map_err(text)?.time;
    std::thread::sleep(Duration::from_millis(50));
    let runs = clock.read().map_err(text)?.time > first;
    let recording = recording_beside("ptp:/dev/ptp0", "/tmp/ptp")?;
    wait_for_the_middle("/tmp/ptp")?;
    let set = File::options().read(true).write(true).open(CLOCK).map_err(text)?;
    let later = clock.read().map_err(text)?.time + Nanos::from_secs(3600);
    crate::kernel::set_clock(&set, later.count()).map_err(text)?;
    let (told, words) = verified(recording, "/tmp/ptp")?;
    check(told["kind"] == "ptp" && told["id"] == CLOCK, || told.to_string())?;
    check(told["readings"].as_u64().is_some_and(|readings| readings >= 4), || told.to_string())?;
    let steps: Vec<i64> = told["steps_ns"].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
    let forward = steps.iter().filter(|by| **by > 3_590_000_000_000).count();
    check(forward == 1, || told.to_string())?;
    check(told["silences"].as_array().is_some_and(Vec::is_empty), || told.to_string())?;
    // A clock that stands is behind at each reading, and has no rate.
    check(told["monotonic_ppb"].is_array() == runs, || told.to_string())?;
    check(runs || steps.iter().filter(|by| **by < 0).count() >= 3, || told.to_string())?;
    check(words.contains("ptp:/dev/ptp0 (") && words.contains("it stepped by "), || words.clone())?;
    findings.exact("steps_forward", forward);
    findings.note("rate", told["monotonic_ppb"].to_string());
    Ok(())
}

/// A card that is taken away while a recording is compared with its clock: the recording is complete, and reports the
/// loss.
pub(crate) fn unplugged(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const DRIVER: &str = "/sys/bus/pci/drivers/e1000e";
    let mut clock = PtpClock::open(Path::new(CLOCK)).map_err(text)?;
    let cards = shell::list(DRIVER)?;
    let card = cards.iter().filter_map(|path| path.file_name()?.to_str()).find(|name| name.starts_with("0000:"));
    let recording = recording_beside("ptp:/dev/ptp0", "/tmp/ptp-gone")?;
    wait_for_the_middle("/tmp/ptp-gone")?;
    shell::write(format!("{DRIVER}/unbind"), card.ok_or("the driver has no card")?)?;
    refused(clock.read(), "a clock that was unplugged", "gone or unplugged")?;
    let (told, words) = verified(recording, "/tmp/ptp-gone")?;
    let gone = told["silences"].as_array().into_iter().flatten().filter(|silence| silence["gone"] == true).count();
    check(gone == 1 && told["readings"].as_u64().is_some_and(|readings| readings >= 1), || told.to_string())?;
    check(words.contains("it was gone or refused for"), || words.clone())?;
    findings.exact("gone", gone);
    Ok(())
}
