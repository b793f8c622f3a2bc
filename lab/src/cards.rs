//! Data acquisition through comedi: the parallel port as a card with digital lines, and the kernel's card that makes
//! waveforms.

use std::path::{Path, PathBuf};
use std::process::Command;

use hairspring_device::{AnalogCard, AnalogInput, Comedi, Device, Inputs, Lines, Pulse};
use hairspring_recording::Files;
use hairspring_recording::RecordingVerdict;
use hairspring_ring::{Bytes, Frames};
use hairspring_time::Nanos;

use crate::Lab;
use crate::disks;
use crate::findings::{Findings, check, refused, text};
use crate::{kernel, shell};

/// The card that the test attaches a driver to, and the card that `comedi_test` creates.
const PORT_CARD: &str = "/dev/comedi0";
const WAVES: &str = "/dev/comedi1";
const PORT_AT: i32 = 0x378;
/// Frames of a recording of the waves: two seconds.
const FRAMES: u64 = 20_000;
// Subdevices of comedi_parport.
const DATA: u32 = 0;
const STATUS: u32 = 1;
const CONTROL: u32 = 2;
// Lines of the control register, which comedi does not invert: strobe; init and select.
const STROBE: Lines = Lines(0b0001);
const ON_LINE: Lines = Lines(0b1100);

fn open(subdevice: u32, outputs: Lines, safe: Lines) -> Result<Comedi, String> {
    Comedi::open(Path::new(PORT_CARD), subdevice, outputs, safe).map_err(text)
}

/// Bytes that digital outputs strobe into the parallel port.
pub(crate) fn digital(lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const COUNT: u32 = 32;
    refused(open(DATA, Lines(0xff), Lines(0)), "a card without a driver", "comedi driver")?;
    // Two drivers cannot use the same ports.
    shell::run("rmmod ppdev; rmmod parport_pc")?;
    kernel::attach(Path::new(PORT_CARD), "comedi_parport", PORT_AT).map_err(text)?;
    // The data lines change direction together: one output makes all of them outputs.
    let mut one = open(DATA, Lines(0b100), Lines(0))?;
    check(one.output_lines() == Lines(0xff), || format!("the outputs are {}", one.output_lines()))?;
    for lines in [Lines(0b100), Lines(0)] {
        one.write(Lines(0b100), lines).map_err(text)?;
        check(one.read() == Ok(lines), || format!("{:?} instead of {lines}", one.read()))?;
    }
    drop(one);
    let mut data = open(DATA, Lines(0xff), Lines(0))?;
    let mut control = open(CONTROL, Lines(0), ON_LINE)?;
    let mut status = open(STATUS, Lines(0), Lines(0))?;
    for number in 0..COUNT {
        let byte = (200 - 3 * number) as u8;
        data.write(Lines(0xff), Lines(byte.into())).map_err(text)?;
        let read = data.read().map_err(text)?;
        check(read == Lines(byte.into()), || format!("{byte:#04x} was read back as {read}"))?;
        let pulse = Pulse { lines: STROBE, width: Nanos::from_micros(20) };
        let report = pulse.fire(&mut control, &lab.timebase).map_err(text)?;
        check(report.at_least >= pulse.width, || format!("too short: {report:?}"))?;
        findings.captured(byte);
    }
    // A mask leaves the other lines as they are.
    data.write(Lines(0x0f), Lines(0xff)).map_err(text)?;
    let expected = Lines((200 - 3 * (COUNT - 1)) & 0xf0 | 0x0f);
    check(data.read() == Ok(expected), || format!("{:?} instead of {expected}", data.read()))?;
    // Ready, on line, no error, as QEMU's printer always is.
    let read = status.read().map_err(text)?;
    check(read.is_high(0) && read.is_high(1), || format!("the status is {read}"))?;
    refused(open(STATUS, Lines(1), Lines(0)), "an input as an output", "inputs only")?;
    refused(open(9, Lines(0), Lines(0)), "a subdevice that is not there", "there are 3")?;
    findings.exact("bytes", COUNT);
    Ok(())
}

fn inputs(period: Nanos, frames: u64) -> Inputs {
    Inputs { subdevice: 0, channels: vec![0, 1], range: 0, period, frames: Some(Frames(frames)), buffer: None }
}

/// Records a sawtooth and a square wave and reads them back: every frame is present, in order, with the right values.
pub(crate) fn recording(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let source = AnalogInput::open(Path::new(WAVES), &inputs(Nanos::from_micros(100), FRAMES)).map_err(text)?;
    let target = PathBuf::from("/tmp/waves");
    let recorded = disks::recorded(Box::new(source), target.clone(), &mut |_| Ok(()))?;
    let outcome = &recorded.outcome;
    check(outcome.verdict == RecordingVerdict::Complete, || format!("{}: {}", outcome.verdict.name(), outcome.reason))?;
    waves(&target, findings)
}

/// The same with the command `hairspring record`.
pub(crate) fn command(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let target = PathBuf::from("/tmp/command");
    let card = format!("{}:{WAVES},2ch,10kS/s", AnalogCard::NAME);
    let (to, frames) = (target.display().to_string(), FRAMES.to_string());
    let record = |card: &str| {
        let arguments = ["record", "--card", card, "--frames", &frames, "--to", &to, "--format", "json"];
        Command::new("/hairspring").args(arguments).output().map_err(text)
    };
    let none = record("comedi:/dev/comedi15,2ch,10kS/s")?;
    let said = String::from_utf8_lossy(&none.stderr);
    check(none.status.code() == Some(2) && said.contains("comedi driver"), || format!("{}: {said}", none.status))?;
    let recorded = record(&card)?;
    check(recorded.status.success(), || {
        format!("{}: {}", recorded.status, String::from_utf8_lossy(&recorded.stderr).trim())
    })?;
    let report: serde_json::Value = serde_json::from_slice(&recorded.stdout).map_err(text)?;
    check(report["verdict"] == "complete" && report["card"] == card, || report.to_string())?;
    waves(&target, findings)
}

/// The recording is complete, and its frames are the two waves of the card.
fn waves(target: &Path, findings: &mut Findings) -> Result<(), String> {
    /// The waves repeat after 100 ms.
    const PERIOD: usize = 1_000;
    let verified = disks::verified(target)?;
    check(verified.verdict == RecordingVerdict::Complete, || format!("{verified:?}"))?;
    let bytes = std::fs::read(Files::of(target).data).map_err(text)?;
    let samples: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    let channel = |number: usize| samples.iter().skip(number).step_by(2).copied().collect::<Vec<u16>>();
    let (sawtooth, square) = (channel(0), channel(1));
    check(sawtooth.len() as u64 == FRAMES, || format!("{} frames", sawtooth.len()))?;
    for (name, wave) in [("sawtooth", &sawtooth), ("square", &square)] {
        // A missing frame shifts all frames after it.
        let differs = (PERIOD..wave.len()).find(|at| wave[*at] != wave[*at - PERIOD]);
        check(differs.is_none(), || format!("the {name} does not repeat itself at frame {differs:?}"))?;
    }
    let falls = sawtooth.windows(2).filter(|pair| pair[1] < pair[0]).count();
    let turns = square.windows(2).filter(|pair| pair[1] != pair[0]).count();
    let mut levels = square.clone();
    levels.sort_unstable();
    levels.dedup();
    let periods = FRAMES as usize / PERIOD;
    check(falls.abs_diff(periods) <= 1, || format!("the sawtooth falls {falls} times in {periods} periods"))?;
    check(turns.abs_diff(2 * periods) <= 1 && levels.len() == 2, || format!("the square wave: {turns}, {levels:?}"))?;
    findings.exact("frames", sawtooth.len());
    findings.exact("levels", levels);
    findings.exact("verdict", verified.verdict.name());
    Ok(())
}

/// A buffer that is not emptied in time: the recording is marked as incomplete, and its frames have no gap.
pub(crate) fn overflow(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    use hairspring_ring::End;
    use hairspring_ring::{Memory, ring};
    use hairspring_source::Next;
    use hairspring_source::Source as _;
    // 4096 bytes are 1024 frames; at this rate they are full after 102 ms.
    let small = Inputs { buffer: Some(Bytes(4096)), frames: None, ..inputs(Nanos::from_micros(100), 0) };
    let mut source = AnalogInput::open(Path::new(WAVES), &small).map_err(text)?;
    let fifo = source.describe().fifo;
    check(fifo == Bytes(4096), || format!("the buffer has {fifo}"))?;
    let memory = Memory::mirrored(Bytes::mib(1), Bytes::mib(1), hairspring_ring::Pages::Small).map_err(text)?;
    let on_overrun = hairspring_ring::OnOverrun::Gap;
    let (mut producer, consumer) = ring(std::sync::Arc::new(memory), Bytes(65_536), on_overrun).map_err(text)?;
    let now = hairspring_machine::Instant::BOOT;
    source.start(now);
    std::thread::sleep(std::time::Duration::from_millis(1_000));
    let mut next = source.service(now, &mut producer);
    for _ in 0..100 {
        if matches!(next, Next::Ended(_)) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
        next = source.service(now, &mut producer);
    }
    check(next == Next::Ended(End::Overrun), || format!("it ended with {next:?}"))?;
    let counters = source.counters();
    check(counters.produced_bytes - counters.lost_bytes == consumer.head(), || format!("{counters:?}"))?;
    check(consumer.head() > 0, || "what was in the buffer was not kept".to_owned())?;
    findings.exact("ended", "overrun");
    Ok(())
}

/// Inputs that do not exist.
pub(crate) fn refusals(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let open = |path: &str, inputs: &Inputs| AnalogInput::open(Path::new(path), inputs);
    let usual = inputs(Nanos::from_micros(100), 10);
    refused(open("/dev/comedi15", &usual), "a card that is not there", "comedi driver")?;
    refused(open("/dev/null", &usual), "another device", "comedi driver")?;
    let output = Inputs { subdevice: 1, ..usual.clone() };
    refused(open(WAVES, &output), "an output as an input", "it is an analogue output")?;
    let channel = Inputs { channels: vec![0, 8], ..usual.clone() };
    refused(open(WAVES, &channel), "a channel too many", "no channel 8")?;
    let none = Inputs { channels: vec![], ..usual.clone() };
    refused(open(WAVES, &none), "no channel", "0 channels")?;
    let running = open(WAVES, &Inputs { frames: None, ..usual.clone() }).map_err(text)?;
    let digital = Comedi::open(Path::new(WAVES), 0, Lines(0), Lines(0));
    refused(digital, "analogue inputs as digital lines", "it is an analogue input")?;
    drop(running);
    findings.exact("refusals", 6);
    Ok(())
}
