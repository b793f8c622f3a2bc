//! Sound cards: the kernel's loop-back card, which hands played data to a recorder, for content, counts and drift; and
//! QEMU's card, for interrupts and positions.
//!
//! Every frame that is played is its own number, so the recorded data themselves show missing frames. The well-known
//! programs are the oracles: we record what they play, and they record what we play.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hairspring_recording::RecordingVerdict;
use hairspring_recording::{Files, Recording};
use hairspring_ring::{End, Frames, Layout, SampleRate};
use hairspring_source::sound::{PcmState, SoundCard};
use hairspring_time::Nanos;
use serde_json::Value;

use crate::Lab;
use crate::disks;
use crate::findings::{Findings, check, refused, text};
use crate::shell;

/// Devices for recording, and for playing into it.
const RECORDS: &str = "alsa:hw:Loopback,0,0,1ch,32bit,48kS/s";
const PLAYS: &str = "alsa:hw:Loopback,1,0";
const QEMU: &str = "alsa:hw:1,0,2ch,16bit,48kS/s";
const RATE_HZ: u64 = 48_000;

/// Plays numbers until it is stopped: 1, 2, 3, …
struct Player {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, String>>,
}

impl Player {
    fn start() -> Result<Self, String> {
        let layout = Layout::analogue(1, 32).map_err(text)?;
        let rate = SampleRate::hz(RATE_HZ).ok_or("no rate")?;
        let (mut pcm, _) = SoundCard::for_output(PLAYS, layout, rate).map_err(text)?.open_output().map_err(text)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (plays, playing) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let (mut next, mut started) = (1_u64, false);
            while !stopped.load(Ordering::Relaxed) {
                let numbers: Vec<u8> = (next..next + 4096).flat_map(|number| (number as i32).to_le_bytes()).collect();
                match pcm.write(&numbers) {
                    Ok(frames) => next += frames,
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                        if !started {
                            pcm.start().map_err(text)?;
                            started = plays.send(()).is_ok();
                        }
                        let status = pcm.status().map_err(text)?;
                        check(status.state == PcmState::Running, || format!("the player is {:?}", status.state))?;
                        check(status.pointer < next, || "the player ran dry".to_owned())?;
                        std::thread::sleep(Duration::from_millis(5));
                    }
                    Err(error) => return Err(format!("failed to play: {error}")),
                }
            }
            pcm.halt();
            Ok(next - 1)
        });
        let player = Self { stop, thread };
        // Frames recorded before it plays are silence.
        match playing.recv_timeout(Duration::from_secs(60)) {
            Ok(()) => Ok(player),
            Err(_) => Err(player.finish().err().unwrap_or_else(|| "the player does not begin".to_owned())),
        }
    }

    fn finish(self) -> Result<u64, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the player panicked".to_owned())?
    }
}

/// The numbers in a file of samples, without the silence before the first and behind the last.
fn numbers(path: &Path) -> Result<Vec<i32>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("failed to read {}: {error}", path.display()))?;
    let all: Vec<i32> =
        bytes.chunks_exact(4).map(|four| i32::from_le_bytes([four[0], four[1], four[2], four[3]])).collect();
    let first = all.iter().position(|number| *number != 0).unwrap_or(all.len());
    let end = all.iter().rposition(|number| *number != 0).map_or(first, |last| last + 1);
    Ok(all[first..end].to_vec())
}

/// Every step between neighbours that is not 1: how many numbers are missing there.
fn missing(numbers: &[i32]) -> Vec<i64> {
    let steps = numbers.windows(2).map(|pair| i64::from(pair[1]) - i64::from(pair[0]) - 1);
    steps.filter(|missing| *missing != 0).collect()
}

fn record(card: &str, to: &Path, more: &[&str]) -> Result<Child, String> {
    let to = to.display().to_string();
    let mut command = Command::new("/hairspring");
    command.args(["record", "--card", card, "--to", &to, "--format", "json", "--buffer", "8MiB", "--notify", "64KiB"]);
    command.args(more).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(text)
}

/// The report of `hairspring record`.
fn report(child: Child) -> Result<Value, String> {
    let output = child.wait_with_output().map_err(text)?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{}: {said} ({error})", output.status))
}

/// Played data arrive, each frame once and in order, and as many as requested.
pub(crate) fn content(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const FRAMES: u64 = 2 * RATE_HZ;
    let target = PathBuf::from("/tmp/sound");
    let player = Player::start()?;
    let card: SoundCard = RECORDS.parse().map_err(text)?;
    let source = card.open(Some(Frames(FRAMES))).map_err(text)?;
    let recorded = disks::recorded(Box::new(source), target.clone(), &mut |_| Ok(()))?;
    player.finish()?;
    let outcome = &recorded.outcome;
    check(outcome.verdict == RecordingVerdict::Complete, || format!("{}: {}", outcome.verdict.name(), outcome.reason))?;
    let verified = disks::verified(&target)?;
    check(verified.verdict == RecordingVerdict::Complete, || format!("{verified:?}"))?;
    let data = Files::of(&target).data;
    let bytes = std::fs::metadata(&data).map_err(text)?.len();
    check(bytes == FRAMES * 4, || format!("{bytes} bytes"))?;
    let numbers = numbers(&data)?;
    check(numbers.len() as u64 > FRAMES / 2, || format!("only {} numbers", numbers.len()))?;
    check(missing(&numbers).is_empty(), || format!("missing: {:?}", missing(&numbers)))?;
    let hardware = &recorded.description.hardware;
    check(hardware.contains("Loopback") && hardware.contains("mixer:"), || hardware.clone())?;
    findings.exact("frames", FRAMES);
    findings.exact("missing", 0);
    Ok(())
}

/// The recording process is stopped for less and for more than the card's buffer: lost frames are counted exactly.
pub(crate) fn overruns(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let target = PathBuf::from("/tmp/overrun");
    let player = Player::start()?;
    let card = format!("{RECORDS},buffer=24000");
    let child = record(&card, &target, &["--on-overrun", "gap", "--for", "6s"])?;
    let pid = child.id();
    let pause = |ms| std::thread::sleep(Duration::from_millis(ms));
    wait_until_running("pcm0c")?;
    pause(500);
    for stopped_ms in [200, 900, 1400] {
        shell::run(&format!("kill -STOP {pid}"))?;
        pause(stopped_ms);
        shell::run(&format!("kill -CONT {pid}"))?;
        pause(500);
    }
    let report = report(child)?;
    player.finish()?;
    let recording = Recording::open(std::slice::from_ref(&target)).map_err(text)?;
    // Gaps between the same two frames are one for a reader of the numbers.
    let mut gaps: Vec<(u64, i64)> = Vec::new();
    for (position, gap) in recording.gaps() {
        match gaps.last_mut().filter(|(at, _)| at == position) {
            Some((_, frames)) => *frames += gap.frames.0 as i64,
            None => gaps.push((*position, gap.frames.0 as i64)),
        }
    }
    let gaps: Vec<i64> = gaps.into_iter().map(|(_, frames)| frames).collect();
    let numbers = numbers(&Files::of(&target).data)?;
    let missing = missing(&numbers);
    check(gaps == missing, || format!("declared {gaps:?}, missing {missing:?}"))?;
    check(recording.bounds().is_empty(), || format!("in doubt: {:?}", recording.bounds()))?;
    // Two stops were longer than the buffer, by 400 and 900 ms.
    let lost: i64 = missing.iter().sum();
    check(lost > 1_200 * 48, || format!("only {lost} frames were lost: {report}"))?;
    check(report["verdict"] == "incomplete" || report["verdict"] == "stopped", || report["verdict"].to_string())?;
    findings.exact("declared_less_missing", 0);
    findings.note("gaps", format!("{gaps:?} frames, each as many as were missing"));
    Ok(())
}

/// The card's rate by the first and the last of the recording's marks, off its nominal one. An emulated computer's
/// ticks come late, so a line through all marks need not exist. The first mark is that of the start.
fn rate_ppm(target: &Path) -> Result<[f64; 2], String> {
    let recording = Recording::open(&[target.to_owned()]).map_err(text)?;
    let marks = recording.about().clock.marks();
    let (Some(first), Some(last)) = (marks.get(1), marks.last()) else { return Err(format!("{} marks", marks.len())) };
    check(last.frame.0 > first.frame.0, || format!("{} marks show no progress: {marks:?}", marks.len()))?;
    let frames = (last.frame.0 - first.frame.0) as f64;
    let ppm = |span: Nanos| (frames / span.as_secs_f64() / RATE_HZ as f64 - 1.0) * 1e6;
    Ok([ppm(last.latest - first.earliest), ppm(last.earliest - first.latest)])
}

/// Waits until a stream of the loop-back card runs.
fn wait_until_running(stream: &str) -> Result<(), String> {
    let status = format!("/proc/asound/Loopback/{stream}/sub0/status");
    let runs = || std::fs::read_to_string(&status).is_ok_and(|text| text.contains("state: RUNNING"));
    shell::wait_until(&format!("{status} is not running"), runs)
}

/// The card's clock is shifted by its control: the recording reports the shift.
pub(crate) fn drift(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    for (shift, expected_ppm) in [(100_000, 0.0), (100_500, -4975.1), (99_500, 5025.1)] {
        let name = "iface=PCM,name='PCM Rate Shift 100000',device=0,subdevice=0";
        let amixer = "ALSA_CONFIG_PATH=/lib/alsa.conf amixer -D hw:Loopback";
        shell::run(&format!("{amixer} -q cset \"{name}\" {shift} || {{ {amixer} controls | head -n 8; exit 1; }}"))?;
        let target = PathBuf::from(format!("/tmp/drift-{shift}"));
        report(record(RECORDS, &target, &["--for", "8s"])?)?;
        let [low, high] = rate_ppm(&target)?;
        findings.note(&format!("shift_{shift}"), format!("{low:.1} to {high:.1} ppm"));
        // A tick of the emulated computer, by which the card moves, in the seconds between the marks.
        let slack = 1500.0;
        let holds = low - slack <= expected_ppm && expected_ppm <= high + slack;
        check(holds, || format!("{shift}: {low} to {high} ppm, and {expected_ppm} ppm was set"))?;
        // On a busy host the marks are wide. The interval holds the truth all the same, but is of little use.
        if high - low > 8000.0 {
            findings.note(&format!("shift_{shift}"), format!("{low:.0} to {high:.0} ppm, too wide to be a statement"));
        }
    }
    shell::run(
        "ALSA_CONFIG_PATH=/lib/alsa.conf amixer -q -D hw:Loopback cset \"iface=PCM,name='PCM Rate Shift 100000',device=0,subdevice=0\" 100000",
    )?;
    Ok(())
}

/// Data that `aplay` plays are recorded here, and data that are played here `arecord` records.
pub(crate) fn oracles(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let form = "-q -t raw -f S32_LE -c 1 -r 48000";
    let count = RATE_HZ as i32;
    let played: Vec<u8> = (1..=count).flat_map(i32::to_le_bytes).collect();
    std::fs::write("/tmp/played", played).map_err(text)?;
    let target = PathBuf::from("/tmp/aplay");
    let child = record(RECORDS, &target, &["--for", "5s"])?;
    wait_until_running("pcm0c")?;
    shell::run(&format!("ALSA_CONFIG_PATH=/lib/alsa.conf aplay -D hw:Loopback,1,0 {form} /tmp/played"))?;
    report(child)?;
    let heard = numbers(&Files::of(&target).data)?;
    // At its end the player stops, and the card repeats the rest of its buffer.
    let right = heard.iter().zip(1..=count).take_while(|(heard, played)| *heard == played).count();
    check(right == count as usize, || format!("of {count} numbers the first {right} came in order"))?;
    let player = Player::start()?;
    shell::run(&format!("ALSA_CONFIG_PATH=/lib/alsa.conf arecord -D hw:Loopback,0,0 {form} -d 1 /tmp/arecord"))?;
    player.finish()?;
    let heard = numbers(Path::new("/tmp/arecord"))?;
    check(heard.len() == count as usize && missing(&heard).is_empty(), || {
        format!("arecord has {} numbers, with {} steps between them", heard.len(), missing(&heard).len())
    })?;
    findings.exact("numbers", 2 * count);
    Ok(())
}

/// A recording is played to the card, and recorded again: the same numbers, in time.
pub(crate) fn play(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let player = Player::start()?;
    let first = PathBuf::from("/tmp/play");
    report(record(RECORDS, &first, &["--frames", "48000"])?)?;
    player.finish()?;
    let again = PathBuf::from("/tmp/again");
    let child = record(RECORDS, &again, &["--for", "6s"])?;
    wait_until_running("pcm0c")?;
    let arguments = ["play", "/tmp/play", "--to", PLAYS, "--buffer", "8MiB", "--format", "json"];
    let played = Command::new("/hairspring").args(arguments).output().map_err(text)?;
    let played: Value = serde_json::from_slice(&played.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&played.stderr)))?;
    report(child)?;
    check(played["missing_frames"] == 0 && played["played_frames"] == 48_000, || played.to_string())?;
    let [sent, heard] = [numbers(&Files::of(&first).data)?, numbers(&Files::of(&again).data)?];
    check(sent.len() > 24_000 && sent == heard, || format!("{} numbers were sent, {} came", sent.len(), heard.len()))?;
    findings.exact("missing", 0);
    Ok(())
}

/// The chapter of the sheet, of QEMU's card and of the way through the loop-back card.
pub(crate) fn sheet(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let arguments = ["sheet", "--quick", "--only", "sound", "--format", "json"];
    let taken = Command::new("/hairspring").args(arguments).output().map_err(text)?;
    let sheet: Value = serde_json::from_slice(&taken.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&taken.stderr)))?;
    let rows = sheet["chapters"].as_array().into_iter().flatten();
    let rows = rows.flat_map(|chapter| chapter["tables"].as_array().into_iter().flatten());
    let rows = rows.flat_map(|table| table["rows"].as_array().into_iter().flatten());
    let mut found = 0;
    for row in rows.filter(|row| row["id"].as_str().is_some_and(|id| id.starts_with("sound."))) {
        let id = row["id"].as_str().unwrap_or_default().to_owned();
        let (median, reason) = (&row["figure"]["median"], &row["absent"]["reason"]);
        found += u32::from(median.is_number());
        check(median.is_number() || reason.is_string(), || format!("{id}: {row}"))?;
        findings.note(&id, if median.is_number() { median.to_string() } else { reason.to_string() });
    }
    check(found >= 4, || format!("only {found} figures: {sheet}"))
}

/// QEMU's card: as many frames as its interrupts and positions count, at about its rate.
pub(crate) fn positions(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    const FRAMES: u64 = 2 * RATE_HZ;
    let interrupts = || -> Result<u64, String> {
        let all = std::fs::read_to_string("/proc/interrupts").map_err(text)?;
        let lines = all.lines().filter(|line| line.contains("snd_hda_intel"));
        Ok(lines.flat_map(str::split_whitespace).filter_map(|word| word.parse::<u64>().ok()).sum())
    };
    let before = interrupts()?;
    let target = PathBuf::from("/tmp/qemu");
    let frames = FRAMES.to_string();
    let report = report(record(QEMU, &target, &["--frames", &frames])?)?;
    check(report["verdict"] == "complete", || report.to_string())?;
    let bytes = std::fs::metadata(Files::of(&target).data).map_err(text)?.len();
    check(bytes == FRAMES * 4, || format!("{bytes} bytes"))?;
    let more = interrupts()? - before;
    check(more > 0, || "no interrupt".to_owned())?;
    let [low, high] = rate_ppm(&target)?;
    check(low < 50_000.0 && high > -50_000.0, || format!("{low} to {high} ppm"))?;
    findings.exact("frames", FRAMES);
    findings.note("interrupts", format!("{more}"));
    findings.note("rate", format!("{low:.1} to {high:.1} ppm"));
    Ok(())
}

/// A stream that another process has, and streams that do not exist.
pub(crate) fn refusals(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let open = |card: &str| card.parse::<SoundCard>().map_err(text)?.open(None).map_err(text);
    let held = open(QEMU)?;
    let us = format!("held by process {} (lab-guest)", std::process::id());
    refused(open(QEMU), "a stream in use", &us)?;
    drop(held);
    refused(open("alsa:hw:7,0,2ch,16bit,48kS/s"), "a card that is not there", "/proc/asound/cards")?;
    refused(open("alsa:hw:1,5,2ch,16bit,48kS/s"), "a device that is not there", "/proc/asound/cards")?;
    refused(open("alsa:hw:1,0,9ch,16bit,48kS/s"), "channels that it has not", "the card has no 9 channels: it has 2")?;
    refused(open("alsa:hw:1,0,2ch,float,48kS/s"), "a form that it has not", "it has 16bit")?;
    refused(open("alsa:hw:1,0,2ch,16bit,192kS/s"), "a rate that it has not", "no 192000 frames per second")?;
    findings.exact("refusals", 6);
    Ok(())
}

/// The card is taken away while it records: the recording ends with the reason and keeps its data so far.
pub(crate) fn unplugged(_lab: &Lab, findings: &mut Findings) -> Result<(), String> {
    let card: SoundCard = QEMU.parse().map_err(text)?;
    let source = card.open(None).map_err(text)?;
    let driver = "/sys/bus/pci/drivers/snd_hda_intel";
    let device =
        shell::list(driver)?.into_iter().find(|path| path.join("vendor").exists()).ok_or("no card is bound")?;
    let name = device.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut taking = None;
    let recorded = disks::recorded(Box::new(source), PathBuf::from("/tmp/unplugged"), &mut |stored| {
        if stored > 100_000 && taking.is_none() {
            let name = name.clone();
            // It waits until no process has the card.
            taking = Some(std::thread::spawn(move || std::fs::write(format!("{driver}/unbind"), name)));
        }
        Ok(())
    })?;
    let outcome = &recorded.outcome;
    check(outcome.end == End::Failed(libc::ENODEV), || format!("{:?}: {}", outcome.end, outcome.reason))?;
    check(outcome.ledger.stored_bytes > 100_000, || format!("{:?}", outcome.ledger))?;
    if let Some(taking) = taking {
        taking.join().map_err(|_| "the thread panicked".to_owned())?.map_err(text)?;
    }
    findings.exact("ended", "ENODEV");
    Ok(())
}
