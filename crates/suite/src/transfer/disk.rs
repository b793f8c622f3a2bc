//! Plain files: written and read block after block, eight at a time, by block size, past the page cache and through it,
//! on one target and on several.
//!
//! Every write is to a file whose space was reserved and never used before, and its time includes the sync at the end.
//! Every read is of a file that was really written, with bytes that do not compress; through the page cache it begins
//! with the file dropped from there. Where the program fio is installed it writes and reads beside, in the same rounds.

#![expect(unsafe_code, reason = "attaches the memory that is moved to its store")]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use hairspring_machine::{Machine, Nanos};
use hairspring_ring::notifier::Notifier;
use hairspring_ring::{Bytes, Frames, Layout, Memory, Pages};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_source::pattern::Pattern;
use hairspring_store::Store;
use hairspring_store::{Completion, Direct, FileId, LentMemory, MemoryId, Op, Open, Piece, Token, Ways, best};
use hairspring_time::{Host, Timebase};

use super::disk_limits::Disks;
use super::fits::{self, FitRows};
use super::hockney::Block;
use super::memory::rate;
use super::repeats;
use crate::interleaving::median;
use crate::probe::{Context, Probes, Reading, Row, Setting, Slot, TableSlot};

/// Block sizes with their segments: those of AN006.
const BLOCKS: [(&str, Bytes); 7] = [
    ("64kib", Bytes::kib(64)),
    ("128kib", Bytes::kib(128)),
    ("256kib", Bytes::kib(256)),
    ("512kib", Bytes::kib(512)),
    ("1mib", Bytes::mib(1)),
    ("2mib", Bytes::mib(2)),
    ("4mib", Bytes::mib(4)),
];
/// The block at which fio runs beside.
const FIO_BLOCK: usize = 4;
/// Numbers of targets that have rows.
const TARGETS: [usize; 3] = [1, 2, 4];
/// Operations under way at once.
const DEPTH: usize = 8;
/// Least length of a run in bytes, a multiple of the largest block; a shorter one is over before the disk has begun.
const LEAST_RUN: Bytes = Bytes::mib(32);
/// A read through the page cache that exceeds the best direct one by this factor did not come from the disk.
const CACHED: f64 = 3.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Write,
    Read,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Direct,
    Buffered,
    Fio,
}

/// One row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    direction: Direction,
    block: usize,
    way: Way,
    targets: usize,
}

impl Cell {
    fn all() -> impl Iterator<Item = Self> {
        TARGETS.into_iter().flat_map(|targets| {
            [Direction::Write, Direction::Read].into_iter().flat_map(move |direction| {
                [Way::Direct, Way::Buffered, Way::Fio].into_iter().flat_map(move |way| {
                    let blocks = if way == Way::Fio { FIO_BLOCK..FIO_BLOCK + 1 } else { 0..BLOCKS.len() };
                    // Through the cache, several targets are one cache.
                    let blocks = if targets > 1 && way != Way::Direct { 0..0 } else { blocks };
                    blocks.map(move |block| Self { direction, block, way, targets })
                })
            })
        })
    }

    fn verb(self) -> &'static str {
        if self.direction == Direction::Write { "write" } else { "read" }
    }

    fn way(self) -> &'static str {
        match self.way {
            Way::Direct => "direct",
            Way::Buffered => "buffered",
            Way::Fio => "fio",
        }
    }

    /// Its sweep in ids, beside others over the same blocks.
    fn sweep(self) -> String {
        format!("{}.{}.{}", self.verb(), self.way(), self.targets)
    }

    fn row(self) -> Row {
        let (block, bytes) = BLOCKS[self.block];
        let suffix = match self.way {
            // The same as the row beside which it stands.
            Way::Fio => format!("{block}.direct.{}.fio.rate", self.targets),
            _ => format!("{block}.{}.{}.rate", self.way(), self.targets),
        };
        let (verb, through) = match self.way {
            Way::Direct => (self.verb(), "past the page cache"),
            Way::Buffered => (self.verb(), "through the page cache"),
            Way::Fio => (self.verb(), "past the page cache, by fio with io_uring and registered buffers"),
        };
        let how = match self.direction {
            Direction::Write => "into space reserved before, the sync at the end included",
            Direction::Read => "of a file that was written before",
        };
        let targets = if self.targets == 1 { "1 target".to_owned() } else { format!("{} targets", self.targets) };
        Row::new(
            suffix,
            format!("{verb} {bytes}, {}, {targets}", self.way()),
            Unit::BytesPerS,
            Method::Rate,
            format!(
                "{verb} of blocks of {bytes} one after the other, {DEPTH} at a time, {through}, {how}, on {targets}"
            ),
        )
    }
}

/// A cell with its row, and with those of the line through its sweep.
#[derive(Clone, Copy)]
struct Place {
    cell: Cell,
    rate: Slot,
    /// fio has no sweep.
    fit: Option<FitRows>,
}

impl Place {
    fn slots(&self) -> impl Iterator<Item = Slot> + use<> {
        [self.rate].into_iter().chain(self.fit.into_iter().flat_map(FitRows::all))
    }
}

/// The one probe: all cells in turns.
pub(super) fn add<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) {
    let limits = "only with folders to do it in; at least 5 repeats in turns, in an order of each turn's own; two fifths of the \
                  volume that may be written are shared by all rows";
    let write = probes.table("transfer.disk.write", "Disk, write by block size", limits);
    let read = probes.table("transfer.disk.read", "Disk, read by block size", limits);
    let lines = fits::table(probes, "transfer.disk", "Disk, lines through the block sizes");
    let mut fits: Vec<(String, FitRows)> = Vec::new();
    let places: Vec<Place> = Cell::all()
        .map(|cell| {
            let table = if cell.direction == Direction::Write { write } else { read };
            let fit = (cell.way != Way::Fio).then(|| fit(probes, lines, &mut fits, cell));
            Place { cell, rate: probes.row(table, cell.row()), fit }
        })
        .collect();
    let slots: Vec<Slot> = places.iter().flat_map(Place::slots).collect();
    probes.several_on_host(Setting::AsStarted, slots.clone(), move |context, timebase| {
        if let Some(disks) = super::disks(context, slots) {
            measure(context, timebase, &disks, &places);
        }
    });
}

/// The rows of the line through a cell's sweep; all its cells share them.
fn fit<M: Machine + Clone + Sync + 'static>(
    probes: &mut Probes<M>,
    table: TableSlot,
    fits: &mut Vec<(String, FitRows)>,
    cell: Cell,
) -> FitRows {
    let sweep = cell.sweep();
    if let Some((_, rows)) = fits.iter().find(|(known, _)| *known == sweep) {
        return *rows;
    }
    let name = format!("{}, {}, {} target(s)", cell.verb(), cell.way(), cell.targets);
    let rows = fits::rows(probes, table, &sweep, &name);
    fits.push((sweep, rows));
    rows
}

fn measure<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    timebase: &Timebase<Host>,
    disks: &Disks,
    places: &[Place],
) {
    // The volume that may be written is one for all rounds, so one round measures the disks.
    if context.turns(1) == 0 {
        return context.elsewhere(places.iter().flat_map(Place::slots));
    }
    let wanted = places.iter().copied().filter(|place| context.wants_any(place.slots()));
    let (possible, beyond): (Vec<Place>, Vec<Place>) =
        wanted.partition(|place| place.cell.targets <= disks.folders.len());
    for place in beyond {
        let remedy = "name as many, on disks of their own: `--dir A --dir B`";
        let absent = Absent::new(format!("it takes {} folders", place.cell.targets), remedy);
        context.absent_all(place.slots(), &absent);
    }
    if possible.is_empty() {
        return;
    }
    let rounds = repeats::all(context.effort);
    let run = Bytes(disks.plain().0 / (possible.len() * rounds) as u64).round_down(Bytes::mib(4));
    if run < LEAST_RUN {
        let needed = Bytes((LEAST_RUN.0 * (possible.len() * rounds) as u64) * 5 / 2);
        let absent = Absent::new(
            format!("{} leave less than {LEAST_RUN} for each of {rounds} repeats", disks.volume),
            format!("allow more: `--volume {}GiB`, or choose rows with --only", needed.0.div_ceil(1 << 30)),
        );
        context.absent_all(possible.iter().flat_map(Place::slots), &absent);
        return;
    }
    let mut rates: Vec<Result<Vec<f64>, Absent>> = vec![Ok(Vec::new()); possible.len()];
    let complete = repeats::in_turns(context, "disks by block size", rounds, possible.len(), |_, turn| {
        if let Ok(so_far) = &mut rates[turn.candidate] {
            match one_run(timebase, possible[turn.candidate].cell, run, disks) {
                Ok(took) => so_far.push(rate(run, took)),
                Err(absent) => rates[turn.candidate] = Err(absent),
            }
        }
        ControlFlow::Continue(())
    });
    if !complete {
        return;
    }
    enter(context, &possible, &rates);
    context.remark(format!(
        "Disk: each repeat moves {run} on {}. A virtual or caching disk may be faster than what lies below it.",
        disks.described()
    ));
}

fn enter<M: Machine + Clone + Sync>(
    context: &mut Context<'_, M>,
    places: &[Place],
    rates: &[Result<Vec<f64>, Absent>],
) {
    let past_cache = |cell: Cell| cell.direction == Direction::Read && cell.way == Way::Direct;
    let best_read = places.iter().zip(rates).filter(|(place, _)| past_cache(place.cell));
    let best_read = best_read.filter_map(|(_, rates)| rates.as_ref().ok()).flatten().copied().fold(0.0, f64::max);
    let mut sweeps: Vec<(Place, FitRows, Vec<Block>)> = Vec::new();
    for (place, rates) in places.iter().zip(rates) {
        let cell = place.cell;
        let cached = |rates: &[f64]| {
            cell.way == Way::Buffered
                && cell.direction == Direction::Read
                && best_read > 0.0
                && median(rates) > best_read * CACHED
        };
        match rates {
            Err(absent) => context.absent(place.rate, absent.clone()),
            Ok(rates) if cached(rates) => {
                let reason = "it was much faster than any read past the page cache: the data came from memory";
                context.absent(place.rate, Absent::final_(reason));
            }
            Ok(rates) => {
                context.put(place.rate, Reading::samples(rates.clone()));
                let bytes = BLOCKS[cell.block].1.0 as f64;
                let block = Block { bytes, times_ns: rates.iter().map(|rate| bytes * 1e9 / rate).collect() };
                let Some(fit) = place.fit else { continue };
                match sweeps.iter_mut().find(|(first, ..)| first.cell.sweep() == cell.sweep()) {
                    Some((.., blocks)) => blocks.push(block),
                    None => sweeps.push((*place, fit, vec![block])),
                }
            }
        }
    }
    let mut lines = Vec::new();
    for (place, fit, mut blocks) in sweeps {
        blocks.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
        let cell = place.cell;
        let name = format!("{}, {}, {}", cell.verb(), cell.way(), cell.targets);
        lines.extend(fits::enter(context, fit, &name, &blocks));
    }
    fits::plot(context, "transfer.disk", "Disk by block size", "block size", lines);
}

/// One run of a cell: how long it took.
fn one_run(timebase: &Timebase<Host>, cell: Cell, run: Bytes, disks: &Disks) -> Result<Nanos, Absent> {
    let folders = &disks.folders[..cell.targets];
    let files: Vec<PathBuf> = folders.iter().map(|folder| folder.join(".hairspring-sheet.data")).collect();
    // Remove the files that an interrupted sheet left.
    files.iter().for_each(|file| drop(std::fs::remove_file(file)));
    let took = match cell.way {
        Way::Fio => fio(cell, run, &files[0], timebase),
        _ => ours(timebase, cell, run, &files),
    };
    files.iter().for_each(|file| drop(std::fs::remove_file(file)));
    took
}

/// Blocks in memory, and a store that moves them.
struct Mover {
    store: Box<dyn Store>,
    memory: MemoryId,
    block: u64,
    notifier: Notifier,
}

fn failed(what: impl std::fmt::Display) -> Absent {
    Absent::new(format!("failed to {what}"), "see that the folder may be written to and has room")
}

impl Mover {
    fn new(block: Bytes, direct: bool) -> Result<Self, Absent> {
        let mut store = best(DEPTH, Ways { direct, ..Ways::default() });
        let size = Bytes(block.0 * DEPTH as u64);
        // As a recorder's buffer: on small pages some disks are much slower.
        let memory =
            Memory::mirrored(size, size, Pages::Transparent).map_err(|error| failed(format!("get memory: {error}")))?;
        let memory = Arc::new(memory);
        fill(&memory);
        // SAFETY: no other owner of the memory is left but the store, and the ring that filled it is gone.
        let lent = unsafe { LentMemory::new(memory) };
        let memory = store.attach(lent);
        let notifier = Notifier::new().map_err(|error| failed(format!("get a descriptor: {error}")))?;
        Ok(Self { store, memory, block: block.0, notifier })
    }

    /// Moves whole blocks through files in turn, and syncs the written files.
    fn run(
        &mut self,
        files: &[FileId],
        blocks: u64,
        op: fn(FileId, u64, Piece) -> Op,
        sync: bool,
    ) -> Result<(), Absent> {
        let mut free: Vec<usize> = (0..DEPTH).collect();
        let (mut sent, mut done) = (0, 0);
        let mut completions: Vec<Completion> = Vec::new();
        while done < blocks {
            while sent < blocks
                && let Some(slot) = free.pop()
            {
                let piece = Piece { memory: self.memory, at: slot * self.block as usize, length: self.block as usize };
                let (file, place) = (files[(sent % files.len() as u64) as usize], sent / files.len() as u64);
                self.store.submit(Token(slot as u64), op(file, place * self.block, piece));
                sent += 1;
            }
            self.finish(&mut completions)?;
            for completion in completions.drain(..) {
                match completion.result {
                    Ok(bytes) if bytes == self.block => free.push(completion.token.0 as usize),
                    Ok(bytes) => return Err(failed(format!("move a whole block: {bytes} bytes of {}", self.block))),
                    Err(errno) => return Err(failed(format!("move a block: {errno}"))),
                }
                done += 1;
            }
        }
        if sync {
            for (number, file) in files.iter().enumerate() {
                self.store.submit(Token(number as u64), Op::Sync(*file));
            }
            self.all(files.len())?;
        }
        Ok(())
    }

    /// Waits until there are completions.
    fn finish(&mut self, completions: &mut Vec<Completion>) -> Result<(), Absent> {
        self.store.flush();
        self.store.reap(completions);
        while completions.is_empty() {
            self.store.wait(&self.notifier, hairspring_machine::Instant::END);
            self.store.reap(completions);
        }
        Ok(())
    }

    /// Waits for `count` operations, which all must succeed.
    fn all(&mut self, count: usize) -> Result<(), Absent> {
        let (mut done, mut completions) = (0, Vec::new());
        while done < count {
            self.finish(&mut completions)?;
            for completion in completions.drain(..) {
                completion.result.map_err(|errno| failed(format!("prepare a file: {errno}")))?;
                done += 1;
            }
        }
        Ok(())
    }

    fn open(&mut self, files: &[PathBuf], how: Open) -> Result<Vec<FileId>, Absent> {
        files.iter().map(|file| self.store.open(file, how).map_err(failed)).collect()
    }

    fn reserve(&mut self, files: &[FileId], bytes: u64) -> Result<(), Absent> {
        for (number, file) in files.iter().enumerate() {
            self.store.submit(Token(number as u64), Op::Allocate(*file, 0, bytes));
        }
        self.all(files.len())
    }

    /// Whether the files are moved in the declared way.
    fn is_as_wanted(&self, files: &[FileId], way: Way) -> Result<(), Absent> {
        let all = |wanted: Direct| files.iter().all(|file| self.store.facts(*file).direct == wanted);
        if way == Way::Buffered || all(Direct::Proven) {
            return Ok(());
        }
        let remedy = "name a folder on a disk of its own, not in memory or on a network";
        Err(Absent::new("the file system does not say that it goes past the page cache", remedy))
    }
}

/// Fills a memory with bytes that no disk can compress.
#[expect(clippy::cast_possible_truncation, reason = "the memory is one that this process has mapped")]
fn fill(memory: &Arc<Memory>) {
    let Ok((mut producer, _consumer)) =
        hairspring_ring::ring(Arc::clone(memory), memory.size(), hairspring_ring::OnOverrun::Stop)
    else {
        return;
    };
    if let (Some(bytes), Ok(layout)) = (producer.reserve(memory.size().0 as usize), Layout::analogue(1, 8)) {
        Pattern::Noise { seed: 1 }.fill(layout, Frames(0), bytes);
    }
}

fn ours(timebase: &Timebase<Host>, cell: Cell, run: Bytes, files: &[PathBuf]) -> Result<Nanos, Absent> {
    let block = BLOCKS[cell.block].1;
    let blocks = run.0 / block.0;
    let share = (blocks.div_ceil(files.len() as u64)) * block.0;
    let mut mover = Mover::new(block, cell.way == Way::Direct)?;
    if cell.direction == Direction::Read {
        // The file is written first, in the quickest way.
        let mut writer = Mover::new(Bytes::mib(4), true)?;
        let open = writer.open(files, Open::CreateData)?;
        writer.run(&open, share.div_ceil(4 << 20) * files.len() as u64, Op::Write, true)?;
        drop(writer);
        for file in files {
            drop_from_cache(file)?;
        }
        let open = mover.open(files, Open::ReadData)?;
        mover.is_as_wanted(&open, cell.way)?;
        let mut result = Ok(());
        let took = repeats::timed(timebase, || result = mover.run(&open, blocks, Op::Read, false));
        return result.map(|()| took);
    }
    let open = mover.open(files, Open::CreateData)?;
    mover.is_as_wanted(&open, cell.way)?;
    mover.reserve(&open, share)?;
    let mut result = Ok(());
    let took = repeats::timed(timebase, || result = mover.run(&open, blocks, Op::Write, true));
    // A direct write may have fallen back while it ran.
    mover.is_as_wanted(&open, cell.way)?;
    result.map(|()| took)
}

/// Gives the pages of a file back, so that reading it means reading the disk.
fn drop_from_cache(file: &Path) -> Result<(), Absent> {
    let open = std::fs::File::open(file).map_err(|error| failed(format!("open {}: {error}", file.display())))?;
    open.sync_all().map_err(|error| failed(format!("sync {}: {error}", file.display())))?;
    rustix::fs::fadvise(&open, 0, None, rustix::fs::Advice::DontNeed)
        .map_err(|error| failed(format!("drop {} from the cache: {error}", file.display())))
}

/// The same by fio.
fn fio(cell: Cell, run: Bytes, file: &Path, timebase: &Timebase<Host>) -> Result<Nanos, Absent> {
    let run_fio = |direction: Direction| {
        let rw = if direction == Direction::Write { "--rw=write" } else { "--rw=read" };
        let mut command = Command::new("fio");
        command.arg("--name=hairspring").arg(format!("--filename={}", file.display())).arg(rw);
        command.arg(format!("--bs={}", BLOCKS[cell.block].1.0)).arg(format!("--size={}", run.0));
        command.arg(format!("--iodepth={DEPTH}"));
        command.args(["--ioengine=io_uring", "--direct=1", "--fixedbufs=1", "--fallocate=native", "--end_fsync=1"]);
        command.args(["--output-format=json", "--refill_buffers=0", "--randrepeat=0"]);
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let output = output.map_err(|_| Absent::new("fio is not installed", "install it: `apt-get install fio`"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            return Err(Absent::final_("fio failed"));
        }
        fio_time(&text, direction).ok_or_else(|| Absent::final_("fio said nothing that could be read"))
    };
    let _ = timebase;
    if cell.direction == Direction::Read {
        run_fio(Direction::Write)?;
        drop_from_cache(file)?;
    }
    run_fio(cell.direction)
}

/// Duration of the job in fio's JSON output; a run with errors has none.
fn fio_time(json: &str, direction: Direction) -> Option<Nanos> {
    let report: serde_json::Value = serde_json::from_str(json.get(json.find('{')?..)?).ok()?;
    let job = report.get("jobs")?.get(0)?;
    if job.get("error")?.as_i64()? != 0 {
        return None;
    }
    let side = job.get(if direction == Direction::Write { "write" } else { "read" })?;
    let (bytes, per_s) = (side.get("io_bytes")?.as_f64()?, side.get("bw_bytes")?.as_f64()?);
    Nanos::try_from_secs_f64(bytes / per_s).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_fio_run_gives_no_time() {
        let report = |error: i32| {
            format!(r#"{{"jobs":[{{"error":{error},"write":{{"io_bytes":4194304,"bw_bytes":2097152}}}}]}}"#)
        };
        assert_eq!(fio_time(&report(0), Direction::Write), Some(Nanos::from_secs(2)));
        assert_eq!(fio_time(&report(28), Direction::Write), None);
        assert_eq!(fio_time(&report(0), Direction::Read), None);
        assert_eq!(fio_time("fio: note\nnothing", Direction::Write), None);
    }
}
