//! [`Cell`]: the buffers and targets of one row of streams, and its recordings. Recording and playing work on the same
//! cells.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use hairspring_record::recorder::WriteSettings;
use hairspring_record::session::{Input, RecordConfig, Recorded, record};
use hairspring_recording::Files;
use hairspring_ring::{Bytes, Frames, Layout, OnOverrun};
use hairspring_sheet::{Absent, Method, Unit};
use hairspring_source::Source;
use hairspring_source::pattern::Pattern;

use super::disk_limits::Disks;
use crate::probe::Row;

/// The steps of the stair, as parts of the rate that the path reaches without a clock.
pub(super) const STAIR: [f64; 8] = [0.95, 0.85, 0.75, 0.6, 0.45, 0.3, 0.15, 0.05];
/// Numbers of targets that have rows.
const TARGETS: [usize; 2] = [1, 2];

/// Buffers, blocks and targets of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) plays: bool,
    pub(super) notify: Bytes,
    pub(super) software: Bytes,
    pub(super) hardware: Bytes,
    pub(super) targets: usize,
}

/// The rows of AN006's reference systems, and smaller buffers, which need less volume. In the order in which the volume
/// is given to them.
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
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let cell = |plays, targets, (notify, software, hardware)| Self { plays, notify, software, hardware, targets };
        let recorded =
            TARGETS.into_iter().flat_map(move |n| RECORDED.into_iter().map(move |sizes| cell(false, n, sizes)));
        recorded.chain(PLAYED.into_iter().map(move |sizes| cell(true, 1, sizes)))
    }

    pub(super) fn row(self) -> Row {
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

    /// Least bytes moved by one run: twice what could hide in the buffers.
    pub(super) fn least_run(self) -> Bytes {
        Bytes(((self.software.0 + self.hardware.0) * 2).max(Bytes::mib(128).0))
    }
}

/// As a segment of an id: `64kib`, `8mib`.
fn segment(bytes: Bytes) -> String {
    if bytes.0.is_multiple_of(1 << 20) { format!("{}mib", bytes.0 >> 20) } else { format!("{}kib", bytes.0 >> 10) }
}

/// Four channels of 16 bits, as the cards of the field have them.
pub(super) fn layout() -> Result<Layout, Absent> {
    Layout::analogue(4, 16).map_err(|error| Absent::final_(error.to_string()))
}

/// The data: cheap to make and impossible to compress.
pub(super) const PATTERN: Pattern = Pattern::Noise { seed: 2 };

/// Paths of the recordings of a cell.
pub(super) fn bases(disks: &Disks, targets: usize) -> Vec<PathBuf> {
    disks.folders[..targets].iter().map(|folder| folder.join(".hairspring-sheet")).collect()
}

pub(super) fn remove(bases: &[PathBuf]) {
    for base in bases {
        Files::of(base).remove();
    }
}

/// One recording, whose files stay.
pub(super) fn keep_recording(cell: Cell, source: Box<dyn Source>, disks: &Disks) -> Result<Recorded, Absent> {
    let targets = bases(disks, cell.targets);
    remove(&targets);
    let clocked = source.describe().clocked;
    let config = RecordConfig {
        buffer: cell.software,
        write: WriteSettings { block: cell.notify, volume: Some(cell.least_run()), ..WriteSettings::default() },
        on_overrun: if clocked { OnOverrun::Stop } else { OnOverrun::Block },
        ..RecordConfig::default()
    };
    let input = Input { source, targets, channels: Vec::new() };
    let failed = |text: String| Absent::new(format!("failed to record: {text}"), "see that the folder has room");
    let mut recorded = record(vec![input], &config, &AtomicBool::new(false), &mut |_| ());
    let recorded = recorded.as_mut().map_err(|error| failed(error.to_string()))?.pop();
    recorded.ok_or_else(|| Absent::final_("there was no recording"))
}

/// Frames of a whole number of bytes for a run.
pub(super) fn frames_of(cell: Cell) -> Result<Frames, Absent> {
    Ok(layout()?.frames_in(cell.least_run()))
}
