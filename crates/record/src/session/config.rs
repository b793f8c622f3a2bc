//! [`RecordConfig`]: the settings of a recording.

use super::*;

/// The settings of a recording.
#[derive(Clone, Debug)]
pub struct RecordConfig {
    /// Size of the buffer of each card.
    pub buffer: Bytes,
    /// The kind of its pages.
    pub pages: Pages,
    /// How data are written. The block must divide the buffer; the volume is that of each card.
    pub write: WriteSettings,
    /// The policy for a full buffer.
    pub on_overrun: OnOverrun,
    /// The ways to the disk that may be used.
    pub ways: Ways,
    /// How long to record, from when all cards have delivered data; `None` to record until the sources end or `stop` is
    /// set.
    pub length: Option<Nanos>,
    /// Whether the sources end by their own count of frames after that time. This computer's clock then ends sources
    /// that fall silent or are slow: later by a hundredth of the length, but by 0.1 s at least and by 5 s at most.
    pub by_frames: bool,
    /// How long to wait for the first data of every card; `None` to wait until `stop` is set.
    pub wait: Option<Nanos>,
    /// Records only the data around this trigger: the trigger, frames before and after it, and the number of shots.
    pub trigger: Option<(Trigger, Frames, Frames, Shots)>,
    /// Divides the recording of each card into segments.
    pub series: Option<SeriesConfig>,
    /// Priority, CPUs, node and locked memory of the threads.
    pub threads: RecordingThreads,
    /// An external clock with which to compare `CLOCK_MONOTONIC`. If it disappears, that is noted and the recording
    /// goes on.
    pub external: Option<Arc<Mutex<dyn ExternalClock>>>,
}

impl Default for RecordConfig {
    fn default() -> Self {
        Self {
            buffer: Bytes::mib(256),
            pages: Pages::Huge2M,
            write: WriteSettings::default(),
            on_overrun: OnOverrun::Stop,
            ways: Ways::default(),
            length: None,
            by_frames: false,
            wait: None,
            trigger: None,
            series: None,
            threads: RecordingThreads::default(),
            external: None,
        }
    }
}
