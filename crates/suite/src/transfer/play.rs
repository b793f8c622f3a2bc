//! Recordings played to a virtual output: the other direction of [`stream`](super::stream).

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hairspring_play::player::{PlayConfig, Track, play};
use hairspring_play::sink::{Null, Sink, Unclocked, VirtualOutput};
use hairspring_recording::Recording;
use hairspring_recording::ledger::RecordingVerdict;
use hairspring_ring::{ByteRate, Bytes, Layout};
use hairspring_sheet::Absent;
use hairspring_source::virtual_card::UnpacedCard;
use hairspring_store::{Ways, best};

use super::cell::{Cell, PATTERN, STAIR, bases, frames_of, keep_recording, layout, remove};
use super::disk_limits::Disks;

/// Reads under way at once.
const DEPTH: usize = 8;

pub(super) fn sample(cell: Cell, disks: &Disks) -> Result<ByteRate, Absent> {
    let layout = layout()?;
    let card = UnpacedCard::new(layout, PATTERN, Some(frames_of(cell)?));
    let recorded = keep_recording(cell, Box::new(card), disks);
    let rate = recorded.and_then(|_| highest(cell, layout, disks));
    remove(&bases(disks, cell.targets));
    rate
}

/// The highest rate of the stair at which the output never ran dry.
fn highest(cell: Cell, layout: Layout, disks: &Disks) -> Result<ByteRate, Absent> {
    let failed = |error: &dyn std::fmt::Display| Absent::final_(format!("failed to play: {error}"));
    let recording = Recording::open(&bases(disks, cell.targets)).map_err(|error| failed(&error))?;
    let track = Track::of(&recording);
    let config = PlayConfig { buffer: cell.software, depth: DEPTH, ..PlayConfig::default() };
    let run = |sink: Box<dyn Sink>| {
        let store = best(DEPTH, Ways::default());
        play(&track, sink, store, &config, &Arc::new(AtomicBool::new(false)), &mut |_| ())
            .map_err(|error| failed(&error))
    };
    let unpaced = run(Box::new(Unclocked::new(Null)))?;
    // With the time in which the buffer was filled: a clock would have waited for that, too.
    let ceiling = ByteRate::of(Bytes(recording.stored_bytes()), unpaced.preroll + unpaced.elapsed);
    let ceiling = ceiling.ok_or_else(|| Absent::final_("the unpaced run took no time"))?;
    for step in STAIR {
        let Some(rate) = ByteRate::new(ceiling.bytes_per_s() * step).and_then(|rate| layout.sample_rate(rate)) else {
            continue;
        };
        let played = run(Box::new(VirtualOutput::new(Null, layout, rate, cell.hardware)))?;
        if played.verdict == RecordingVerdict::Complete {
            return Ok(layout.byte_rate(rate));
        }
    }
    let reason = format!("the output ran dry at every rate down to {} of what the path moves unpaced", STAIR[7]);
    Err(Absent::new(reason, "free the machine from other work, or use larger buffers"))
}
