//! The recorder beside fio: the same disk, block and depth, each writing to a new file whose space was reserved, each
//! in its turn. Ours checks, journals and syncs while it writes; fio verifies nothing. Then both read the files back;
//! so does a plain loop of reads, beside excerpts in Rust and in Python, all through the page cache, which is emptied
//! of the file before. The last table counts the CPU time of recording a gigabyte per second.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use hairspring_record::recorder::WriteSettings;
use hairspring_record::session::{Input, RecordConfig, Recorded, record};
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_recording::verify::{VerifyOptions, verify};
use hairspring_recording::{Excerpt, ExcerptCheck, ExcerptPart, Files, Recording};
use hairspring_ring::OnOverrun;
use hairspring_ring::{Bytes, Frames, Layout, SampleRate};
use hairspring_sheet::{Method, Unit};
use hairspring_source::Source;
use hairspring_source::pattern::Pattern;
use hairspring_source::virtual_card::{Settings, UnpacedCard, VirtualCard};
use hairspring_store::{Ways, best};
use hairspring_suite::interleaving::median;
use hairspring_time::Nanos;

use crate::report;

const BLOCK: Bytes = Bytes::mib(1);
const DEPTH: usize = 8;
const ROUNDS: usize = 11;
const PACED_ROUNDS: usize = 5;
const VOLUME: Bytes = Bytes::gib(4);
const QUICK_VOLUME: Bytes = Bytes::mib(512);

/// A candidate, and the rates of its rounds in bytes per second.
struct Line {
    name: &'static str,
    rates: Vec<f64>,
}

pub(crate) fn run(folder: &Path, quick: bool) -> Result<(), String> {
    let volume = if quick { QUICK_VOLUME } else { VOLUME };
    println!("## Recording and reading back\n");
    println!(
        "{ROUNDS} rounds of {volume} in {}, blocks of {BLOCK}, {DEPTH} at a time; ours from the start until all is on the \
         device, fio's by its own clock, which ends before its last sync. Ours has checksums, journal and syncs; fio has none \
         of them, and is not verified. fio's buffers are on the machine's ordinary pages, and in the last two rows on reserved pages of \
         2 MiB; the recorder and `verify` use what large pages the kernel gives.\n",
        folder.display()
    );
    let lines = [
        "fio, write",
        "recorder, unpaced",
        "fio, read",
        "verify",
        "verify, checksums alone",
        "plain read",
        "excerpts, checked",
        "excerpts, unchecked",
        "Python, checked",
        "Python, unchecked",
        "fio on 2 MiB pages, write",
        "fio on 2 MiB pages, read",
    ];
    let mut lines = lines.map(|name| Line { name, rates: Vec::new() });
    let mut notes = Vec::new();
    let fio_file = folder.join("peers-fio.data");
    let huge_file = folder.join("peers-fio-huge.data");
    let base = folder.join("peers-recording");
    for round in 0..ROUNDS {
        eprintln!("recording, round {} of {ROUNDS}", round + 1);
        // The two take turns in going first.
        let mut turns = [0, 1];
        turns.rotate_left(round % 2);
        Files::of(&base).remove();
        for turn in turns {
            if turn == 0 {
                lines[0].rates.extend(fio(&fio_file, "write", volume, Memory::Own, &mut notes));
                lines[10].rates.extend(fio(&huge_file, "write", volume, Memory::Huge, &mut notes));
            } else {
                let recorded = one(&base, card(None, volume)?)?;
                lines[1].rates.push(rate(volume, recorded.finished));
            }
        }
        for turn in turns {
            if turn == 0 {
                lines[2].rates.extend(fio(&fio_file, "read", volume, Memory::Own, &mut notes));
                lines[11].rates.extend(fio(&huge_file, "read", volume, Memory::Huge, &mut notes));
            } else {
                for (line, counters) in [(3, true), (4, false)] {
                    lines[line].rates.push(verified(&base, counters)?);
                }
            }
        }
        let mut turns = [5, 6, 7, 8, 9];
        turns.rotate_left(round % 5);
        for turn in turns {
            lines[turn].rates.extend(match turn {
                5 => Some(plainly_read(&base)?),
                6 => Some(excerpted(&base, ExcerptCheck::Checksums)?),
                7 => Some(excerpted(&base, ExcerptCheck::Unchecked)?),
                8 => python(&base, "checked", &mut notes)?,
                _ => python(&base, "unchecked", &mut notes)?,
            });
        }
    }
    let medians: Vec<f64> = lines.iter().map(|line| median(&line.rates)).collect();
    println!("| what | n | min | median | max | against |\n| --- | ---: | ---: | ---: | ---: | --- |");
    for (index, line) in lines.iter().enumerate() {
        let peer = [0, 0, 2, 2, 2, 5, 5, 5, 5, 5, 0, 2][index];
        let figure = hairspring_sheet::Figure::from_samples(Unit::BytesPerS, Method::Rate, &mut line.rates.clone());
        let cells = [figure.min, figure.median, figure.max].map(|value| report::cell(value, Unit::BytesPerS));
        let ratio = medians[index] / medians[peer];
        let against = if index == peer || !ratio.is_finite() {
            "–".to_owned()
        } else {
            format!("{:.1} % of {}", ratio * 100.0, lines[peer].name)
        };
        println!("| {} | {} | {} | {against} |", line.name, figure.n, cells.join(" | "));
    }
    for note in notes {
        println!("\n* {note}");
    }
    Files::of(&base).remove();
    [fio_file, huge_file].iter().for_each(|file| drop(std::fs::remove_file(file)));
    one_gigabyte_each_second(&base, volume)?;
    Files::of(&base).remove();
    Ok(())
}

/// The CPU time of a card of 1 GB/s, by purpose.
fn one_gigabyte_each_second(base: &Path, volume: Bytes) -> Result<(), String> {
    println!("\n### One gigabyte each second\n");
    println!("| round | verdict | moving and writing | checksums | the card itself | buffer at most | worst stall |");
    println!("| ---: | --- | ---: | ---: | ---: | ---: | ---: |");
    for round in 1..=PACED_ROUNDS {
        eprintln!("1 GB/s, round {round} of {PACED_ROUNDS}");
        Files::of(base).remove();
        let recorded = one(base, card(SampleRate::hz(125_000_000), volume)?)?;
        let outcome = &recorded.outcome;
        let part = |span: Nanos| format!("{:.1} %", span.as_secs_f64() / recorded.elapsed.as_secs_f64() * 100.0);
        println!(
            "| {round} | {} | {} | {} | {} | {} | {} |",
            outcome.verdict.name(),
            part(recorded.recorder_cpu - outcome.checksum_time),
            part(outcome.checksum_time),
            part(recorded.source_cpu),
            outcome.high_water,
            outcome.worst_stall
        );
    }
    println!("\nParts of one core's time while the card ran.");
    Ok(())
}

fn rate(bytes: Bytes, took: Nanos) -> f64 {
    bytes.count() as f64 / took.as_secs_f64()
}

fn card(rate: Option<SampleRate>, volume: Bytes) -> Result<Box<dyn Source>, String> {
    let layout = Layout::analogue(4, 16).map_err(|error| error.to_string())?;
    let pattern = Pattern::Noise { seed: 3 };
    let frames: Option<Frames> = Some(layout.frames_in(volume));
    let Some(rate) = rate else { return Ok(Box::new(UnpacedCard::new(layout, pattern, frames))) };
    let fifo = Bytes::mib(64);
    let settings =
        Settings { layout, rate, pattern, fifo, jitter: Nanos::ZERO, hiccups: Vec::new(), bus: None, frames };
    Ok(Box::new(VirtualCard::new(settings)))
}

fn one(base: &Path, source: Box<dyn Source>) -> Result<Recorded, String> {
    let clocked = source.describe().clocked;
    let config = RecordConfig {
        buffer: Bytes::mib(64),
        write: WriteSettings { block: BLOCK, depth: DEPTH, volume: Some(VOLUME), ..WriteSettings::default() },
        on_overrun: if clocked { OnOverrun::Gap } else { OnOverrun::Block },
        ..RecordConfig::default()
    };
    let input = Input { source, targets: vec![base.to_owned()], channels: Vec::new() };
    let mut recorded = record(vec![input], &config, &AtomicBool::new(false), &mut |_| ()).map_err(|e| e.to_string())?;
    recorded.pop().ok_or_else(|| "record nothing".to_owned())
}

/// The rate of a verification that found no fault.
fn verified(base: &Path, counters: bool) -> Result<f64, String> {
    let recording = Recording::open(&[base.to_owned()]).map_err(|error| error.to_string())?;
    let options = VerifyOptions { counters, sha512: false };
    let mut store = best(DEPTH, Ways::default());
    let before = std::time::Instant::now();
    let verified = verify(&mut *store, &recording, options, &mut |_| ()).map_err(|error| error.to_string())?;
    let took = before.elapsed();
    if verified.verdict != RecordingVerdict::Complete {
        return Err(format!("verify what was recorded: {}", verified.verdict.name()));
    }
    Ok(verified.bytes.count() as f64 / took.as_secs_f64())
}

/// Bytes of an excerpt, as dask reads them.
const EXCERPT: u64 = 96 << 20;

/// The rate of reading a recording excerpt by excerpt.
fn excerpted(base: &Path, check: ExcerptCheck) -> Result<f64, String> {
    let recording = Recording::open(&[base.to_owned()]).map_err(|error| error.to_string())?;
    let part = ExcerptPart { recording: &recording, blocks: recording.blocks() };
    let (layout, bytes) = (recording.about().layout, recording.stored_bytes());
    let (frames, most) = (layout.frames_in(Bytes(bytes)).0, layout.frames_in(Bytes(EXCERPT)).0);
    forget(&File::open(Files::of(base).data).map_err(|error| error.to_string())?)?;
    let before = std::time::Instant::now();
    let mut first = 0;
    while first < frames {
        let mut store = best(Excerpt::DEPTH, Excerpt::WAYS);
        let range = first..frames.min(first + most);
        let mut go_on = || ControlFlow::Continue(());
        let read = Excerpt::read(&mut *store, &[part], range, check, &mut go_on);
        std::hint::black_box(read.map_err(|error| error.to_string())?.bytes());
        first += most;
    }
    Ok(bytes as f64 / before.elapsed().as_secs_f64())
}

/// The rate of reading the data file of a recording into one buffer, block by block.
fn plainly_read(base: &Path) -> Result<f64, String> {
    let file = File::open(Files::of(base).data).map_err(|error| error.to_string())?;
    forget(&file)?;
    let mut buffer = vec![0; BLOCK.count() as usize];
    let before = std::time::Instant::now();
    let mut at = 0;
    loop {
        match file.read_at(&mut buffer, at).map_err(|error| error.to_string())? {
            0 => return Ok(at as f64 / before.elapsed().as_secs_f64()),
            read => at += read as u64,
        }
        std::hint::black_box(&buffer);
    }
}

/// The rate of reading a recording with the Python package, excerpt by excerpt; none, with a note, if the package is
/// not installed.
fn python(base: &Path, check: &str, notes: &mut Vec<String>) -> Result<Option<f64>, String> {
    forget(&File::open(Files::of(base).data).map_err(|error| error.to_string())?)?;
    let script = include_str!("../callers/read_recording.py");
    let mut command = Command::new("python3");
    command.args(["-c", script]).arg(base).args([check, &EXCERPT.to_string()]).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success());
    let rate = output.and_then(|output| String::from_utf8_lossy(&output.stdout).trim().parse().ok());
    let note = "Python: n/a, hairspring or numpy is not installed for the `python3` of the path";
    if rate.is_none() && !notes.iter().any(|known| known == note) {
        notes.push(note.to_owned());
    }
    Ok(rate)
}

/// Takes a file out of the page cache.
fn forget(file: &File) -> Result<(), String> {
    file.sync_all().map_err(|error| error.to_string())?;
    rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::DontNeed).map_err(|error| error.to_string())
}

/// The memory of fio's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    /// fio's default.
    Own,
    /// Reserved pages of 2 MiB.
    Huge,
}

/// fio's rate; none, with a note, if it is not installed or fails.
fn fio(file: &Path, direction: &str, volume: Bytes, memory: Memory, notes: &mut Vec<String>) -> Option<f64> {
    if direction == "write" {
        drop(std::fs::remove_file(file));
    }
    let mut command = Command::new("fio");
    command.arg("--name=peer").arg(format!("--filename={}", file.display())).arg(format!("--rw={direction}"));
    command.arg(format!("--bs={}", BLOCK.count())).arg(format!("--size={}", volume.count()));
    command.arg(format!("--iodepth={DEPTH}"));
    command.args(["--ioengine=io_uring", "--direct=1", "--fixedbufs=1", "--fallocate=native", "--end_fsync=1"]);
    command.args(["--output-format=json"]);
    command.args((memory == Memory::Huge).then_some("--iomem=mmaphuge"));
    let mut note = |text: &str| {
        if !notes.iter().any(|note| note == text) {
            notes.push(text.to_owned());
        }
        None
    };
    let Ok(output) = command.stdin(Stdio::null()).stderr(Stdio::null()).output() else {
        return note("fio: n/a, not installed (`apt-get install fio`)");
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let parsed = text.find('{').and_then(|at| serde_json::from_str::<serde_json::Value>(&text[at..]).ok());
    let job = parsed.as_ref().and_then(|report| report.get("jobs")?.get(0));
    let fine = output.status.success() && job.is_some_and(|job| job.get("error").is_some_and(|error| error == 0));
    match job.and_then(|job| job.get(direction)?.get("bw_bytes")?.as_f64()).filter(|_| fine) {
        Some(rate) => Some(rate),
        None if memory == Memory::Huge => note("fio on 2 MiB pages: n/a, reserve some (sysctl vm.nr_hugepages=64)"),
        None => note("fio: n/a, it failed"),
    }
}
