//! Streams: a card recorded to disks, and a recording played to an output, by notify size and the sizes of both buffers.
//!
//! The card is an open loop: it keeps its own clock and loses what does not fit. Each repeat tries falling rates, beginning near
//! the rate of the same path without a clock, until one whole run loses nothing. That rate is the sample. A run moves at least twice what both buffers hold, so that the buffers cannot hide the disk. These are short runs: how a
//! machine does for hours is for `hairspring maxrate` and a long recording to say.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use hairspring_machine::{Machine, Nanos};
use hairspring_record::ledger::RecordingVerdict;
use hairspring_record::recording::Files;
use hairspring_record::session::{Input, RecordConfig, Recorded, record};
use hairspring_ring::{ByteRate, Bytes, Frames, Layout, OnOverrun};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_source::Source;
use hairspring_source::pattern::Pattern;
use hairspring_source::virtual_card::{Settings, UnpacedCard, VirtualCard};

use super::disks::Disks;
use super::{play, repeats};
use crate::probe::{Context, Probes, Reading, Row, Setting, Slot};

/// The steps of the stair, as parts of what the path moves without a clock.
pub(super) const STAIR: [f64; 8] = [0.95, 0.85, 0.75, 0.6, 0.45, 0.3, 0.15, 0.05];
/// Runs that a repeat takes on average, for the division of the volume.
const RUNS: u64 = 3;
/// Numbers of targets that have rows.
const TARGETS: [usize; 2] = [1, 2];

/// What a row streams through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) plays: bool,
    pub(super) notify: Bytes,
    pub(super) software: Bytes,
    pub(super) hardware: Bytes,
    pub(super) targets: usize,
}

/// The rows of AN006's reference systems, and smaller buffers, which need less volume. In the order in which the volume is
/// given to them.
const RECORDED: [(Bytes, Bytes, Bytes); 7] = [
    (Bytes::mib(1), Bytes::mib(16), Bytes::mib(16)),
    (Bytes::kib(64), Bytes::mib(16), Bytes::mib(16)),
    (Bytes::mib(4), Bytes::mib(64), Bytes::mib(16)),
    (Bytes::mib(1), Bytes::mib(64), Bytes::mib(64)),
    (Bytes::mib(8), Bytes::mib(64), Bytes::mib(64)),
    (Bytes::mib(1), Bytes::mib(512), Bytes::mib(64)),
    (Bytes::mib(8), Bytes::mib(512), Bytes::mib(64)),
];
const PLAYED: [(Bytes, Bytes, Bytes); 4] = [
    (Bytes::mib(1), Bytes::mib(16), Bytes::mib(16)),
    (Bytes::kib(64), Bytes::mib(16), Bytes::mib(16)),
    (Bytes::kib(4), Bytes::mib(16), Bytes::mib(16)),
    (Bytes::mib(1), Bytes::mib(512), Bytes::mib(64)),
];

impl Cell {
    fn all() -> impl Iterator<Item = Self> {
        let cell = |plays, targets, (notify, software, hardware)| Self { plays, notify, software, hardware, targets };
        let recorded =
            TARGETS.into_iter().flat_map(move |n| RECORDED.into_iter().map(move |sizes| cell(false, n, sizes)));
        recorded.chain(PLAYED.into_iter().map(move |sizes| cell(true, 1, sizes)))
    }

    fn row(self) -> Row {
        let (notify, software, hardware, targets) = (self.notify, self.software, self.hardware, self.targets);
        let plural = if targets == 1 { "" } else { "s" };
        let measures = if self.plays {
            format!(
                "highest rate at which a virtual output with a FIFO of {hardware} never ran dry, fed from a recording on \
                 {targets} target{plural} through a buffer of {software} in pieces of {notify}, each checked"
            )
        } else {
            format!(
                "highest rate at which a virtual card with a FIFO of {hardware} was recorded without loss on {targets} \
                 target{plural} through a buffer of {software} in blocks of {notify}, with checksums, journal and syncs"
            )
        };
        let label = format!("notify {notify}, software {software}, hardware {hardware}, {targets} target{plural}");
        let sizes = [notify, software, hardware].map(segment).join(".");
        Row::new(format!("{sizes}.{targets}.rate"), label, Unit::BytesPerS, Method::Rate, measures)
    }

    /// What one run moves at least: twice what could hide in the buffers.
    fn least_run(self) -> Bytes {
        Bytes(((self.software.0 + self.hardware.0) * 2).max(Bytes::mib(128).0))
    }
}

/// As a segment of an id: `64kib`, `8mib`.
fn segment(bytes: Bytes) -> String {
    if bytes.0.is_multiple_of(1 << 20) { format!("{}mib", bytes.0 >> 20) } else { format!("{}kib", bytes.0 >> 10) }
}

/// The one probe: all cells in turns.
pub(super) fn add<M: Machine + Clone + Sync + 'static>(probes: &mut Probes<M>) {
    let limits = "only with folders to do it in; at least 5 repeats in turns; runs of at least twice both buffers, at least 128 \
                  MiB; rates in steps of about a tenth; three fifths of the volume that may be written, first come first served";
    let record = probes.table("transfer.stream.record", "Card to disk", limits);
    let play = probes.table("transfer.stream.play", "Disk to output", limits);
    let mut row = |cell: Cell| (cell, probes.row(if cell.plays { play } else { record }, cell.row()));
    let cells: Vec<(Cell, Slot)> = Cell::all().map(&mut row).collect();
    let slots: Vec<Slot> = cells.iter().map(|(_, slot)| *slot).collect();
    probes.several_on_host(Setting::AsStarted, slots.clone(), move |context, _| {
        if let Some(disks) = super::disks(context, slots) {
            measure(context, &disks, &cells);
        }
    });
}

/// A sample, or the reason why there is none.
type Sample = Result<ByteRate, Absent>;

fn measure<M: Machine + Clone + Sync>(context: &mut Context<'_, M>, disks: &Disks, all: &[(Cell, Slot)]) {
    // The volume that may be written is one for all rounds, so one round measures the disks.
    if context.turns(1) == 0 {
        return context.elsewhere(all.iter().map(|(_, slot)| *slot));
    }
    let repeats = repeats::all(context.effort);
    let rounds = repeats as u64;
    let mut left = disks.streams();
    let mut cells = Vec::new();
    for (cell, slot) in all.iter().copied() {
        if !context.wants(slot) {
            continue;
        }
        // A recording to be played is written once in each round.
        let runs = if cell.plays { rounds } else { RUNS * rounds };
        let needed = Bytes(cell.least_run().0 * runs);
        if cell.targets > disks.folders.len() {
            let remedy = "name as many, on disks of their own: `--dir A --dir B`";
            context.absent(slot, Absent::new(format!("it takes {} folders", cell.targets), remedy));
        } else if needed > left {
            let whole = Bytes((disks.volume.0 + (needed.0 - left.0) * 5 / 3).next_multiple_of(1 << 30));
            let reason = format!("it would write {needed}, and the volume allowed is used by the rows above");
            context.absent(slot, Absent::new(reason, format!("allow more: `--volume {}GiB`", whole.0 >> 30)));
        } else {
            left.0 -= needed.0;
            cells.push((cell, slot));
        }
    }
    let mut rates: Vec<Result<Vec<f64>, Absent>> = vec![Ok(Vec::new()); cells.len()];
    let complete = repeats::in_turns(context, "streams to and from disk", repeats, cells.len(), |_, turn| {
        if let Ok(so_far) = &mut rates[turn.candidate] {
            let cell = cells[turn.candidate].0;
            match if cell.plays { play::sample(cell, disks) } else { sample(cell, disks) } {
                Ok(rate) => so_far.push(rate.bytes_per_s()),
                Err(absent) => rates[turn.candidate] = Err(absent),
            }
        }
        ControlFlow::Continue(())
    });
    if complete {
        for ((_, slot), rates) in cells.into_iter().zip(rates) {
            context.enter(slot, rates.map(Reading::samples));
        }
    }
}

/// Four channels of 16 bits, as the cards of the field have them.
pub(super) fn layout() -> Result<Layout, Absent> {
    Layout::analogue(4, 16).map_err(|error| Absent::final_(error.to_string()))
}

/// The data: cheap to make and impossible to compress.
pub(super) const PATTERN: Pattern = Pattern::Noise { seed: 2 };

fn sample(cell: Cell, disks: &Disks) -> Sample {
    let layout = layout()?;
    let frames = layout.frames_in(cell.least_run());
    let unpaced = one_recording(cell, Box::new(UnpacedCard::new(layout, PATTERN, Some(frames))), disks)?;
    let ceiling = unpaced.rate_reached().ok_or_else(|| Absent::final_("the unpaced run took no time"))?;
    for step in STAIR {
        let Some(rate) = ByteRate::new(ceiling.bytes_per_s() * step).and_then(|rate| layout.sample_rate(rate)) else {
            continue;
        };
        let settings = Settings {
            layout,
            rate,
            pattern: PATTERN,
            fifo: cell.hardware,
            jitter: Nanos::ZERO,
            hiccups: Vec::new(),
            bus: None,
            frames: Some(frames),
        };
        let recorded = one_recording(cell, Box::new(VirtualCard::new(settings)), disks)?;
        if recorded.outcome.verdict == RecordingVerdict::Complete {
            return Ok(layout.byte_rate(rate));
        }
    }
    let reason = format!("something was lost at every rate down to {} of what the path moves unpaced", STAIR[7]);
    Err(Absent::new(reason, "free the machine from other work, or use larger buffers"))
}

/// Where the recordings of a cell are.
pub(super) fn bases(disks: &Disks, targets: usize) -> Vec<PathBuf> {
    disks.folders[..targets].iter().map(|folder| folder.join(".hairspring-sheet")).collect()
}

pub(super) fn remove(bases: &[PathBuf]) {
    for base in bases {
        Files::of(base).remove();
    }
}

fn one_recording(cell: Cell, source: Box<dyn Source>, disks: &Disks) -> Result<Recorded, Absent> {
    let recorded = keep_recording(cell, source, disks);
    remove(&bases(disks, cell.targets));
    recorded
}

/// One recording, whose files stay.
pub(super) fn keep_recording(cell: Cell, source: Box<dyn Source>, disks: &Disks) -> Result<Recorded, Absent> {
    let targets = bases(disks, cell.targets);
    remove(&targets);
    let clocked = source.describe().clocked;
    let config = RecordConfig {
        buffer: cell.software,
        notify: cell.notify,
        on_overrun: if clocked { OnOverrun::Stop } else { OnOverrun::Block },
        volume: Some(cell.least_run()),
        ..RecordConfig::default()
    };
    let input = Input { source, targets };
    let failed = |text: String| Absent::new(format!("failed to record: {text}"), "see that the folder has room");
    let mut recorded = record(vec![input], &config, &AtomicBool::new(false), &mut |_| ());
    let recorded = recorded.as_mut().map_err(|error| failed(error.to_string()))?.pop();
    recorded.ok_or_else(|| Absent::final_("there was no recording"))
}

/// Frames of a whole number of bytes for a run.
pub(super) fn frames_of(cell: Cell) -> Result<Frames, Absent> {
    Ok(layout()?.frames_in(cell.least_run()))
}
