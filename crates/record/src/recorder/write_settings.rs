//! [`WriteSettings`]: how data are written, the same for a recording and for each segment of a series.

use hairspring_machine::Nanos;
use hairspring_ring::units::Bytes;

use super::BlockPlacement;

/// How data are written.
#[derive(Clone, Debug)]
pub struct WriteSettings {
    /// Size of a write, and the bytes that gather before the recorder is woken. It is rounded to whole frames and to
    /// the disks' alignment, and is at most [`MOST_BLOCK`](hairspring_recording::MOST_BLOCK), because readers refuse
    /// larger blocks.
    pub block: Bytes,
    /// Writes under way at once, 1–256, for each recorder.
    pub depth: usize,
    /// Which target gets a block.
    pub placement: BlockPlacement,
    /// The expected volume, if it is known. The recorder reserves space for it before the start.
    pub volume: Option<Bytes>,
    /// Time between two syncs.
    pub sync_every: Nanos,
    /// Bytes after which the recorder syncs, even before `sync_every`.
    pub sync_bytes: Bytes,
    /// The program that records, for the metadata.
    pub software: String,
}

impl Default for WriteSettings {
    fn default() -> Self {
        Self {
            block: Bytes::mib(4),
            depth: 8,
            placement: BlockPlacement::LeastLoaded,
            volume: None,
            sync_every: Nanos::from_secs(1),
            sync_bytes: Bytes::gib(1),
            software: concat!("hairspring ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}
