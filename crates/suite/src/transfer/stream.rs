//! Streams: a card recorded to disks, and a recording played to an output, by notify size and the sizes of both
//! buffers.
//!
//! The card is an open loop: it keeps its own clock and loses what does not fit. Each repeat tries falling rates,
//! beginning near the rate of the same path without a clock, until one whole run loses nothing. That rate is the
//! sample. A run moves at least twice what both buffers hold, so that the buffers cannot hide the disk. These are short
//! runs: `hairspring maxrate` and a long recording show the sustained rate.

use std::ops::ControlFlow;

use hairspring_machine::{Machine, Nanos};
use hairspring_record::session::Recorded;
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_ring::{ByteRate, Bytes};
use hairspring_sheet::Absent;
use hairspring_source::Source;
use hairspring_source::virtual_card::{Settings, UnpacedCard, VirtualCard};

use super::cell::{Cell, PATTERN, STAIR, bases, keep_recording, layout, remove};
use super::disk_limits::Disks;
use super::{play, repeats};
use crate::probe::{Context, Probes, Reading, Setting, Slot};

/// Runs that a repeat takes on average, for the division of the volume.
const RUNS: u64 = 3;

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

fn one_recording(cell: Cell, source: Box<dyn Source>, disks: &Disks) -> Result<Recorded, Absent> {
    let recorded = keep_recording(cell, source, disks);
    remove(&bases(disks, cell.targets));
    recorded
}
