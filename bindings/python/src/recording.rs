//! Which samples of a recording are proven, and where they lie, so that numpy can map them. The Rust reader judges.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use hairspring_record::RecordingVerdict;
use hairspring_record::recording::{Files, Recording, RecordingError};
use hairspring_record::recover::{Proven, prove};
use hairspring_record::store;
use hairspring_record::store::Ways;
use hairspring_ring::{Gap, Layout};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyValueError};
use pyo3::prelude::*;

/// A recording as journals and checksums prove it.
#[pyclass(frozen, get_all, module = "hairspring")]
pub(crate) struct Contents {
    /// The data file of each member, the metadata of the first.
    data: Vec<PathBuf>,
    meta: PathBuf,
    /// Pieces of the stream in order: member, offset in its data file, bytes, number of the first frame.
    stretches: Vec<(usize, u64, u64, u64)>,
    /// Gaps in order: number of the first frame, how many frames, cause. None for a recording of another program.
    gaps: Option<Vec<(u64, u64, &'static str)>>,
    /// Why it is not in order.
    faults: Vec<String>,
    state: &'static str,
    container: String,
    channels: u32,
    /// The smallest unit of a file: its bytes and its frames.
    grain: (u64, u64),
    /// The sample rate as a fraction: frames, and the seconds that they take.
    rate: Option<(u64, u64)>,
}

/// How often a read checks for signals.
const LOOK: Duration = Duration::from_millis(10);

/// Opens a recording by the path of any of its members. Compares blocks that no sync covers with their checksums, with `verify`
/// all blocks. An exception from a signal handler ends it.
#[pyfunction]
pub(crate) fn read_recording(py: Python<'_>, paths: Vec<PathBuf>, verify: bool) -> PyResult<Contents> {
    let mut raised = None;
    let read = py.detach(|| {
        let mut looked = Instant::now();
        contents(&paths, verify, &mut || {
            if looked.elapsed() < LOOK {
                return ControlFlow::Continue(());
            }
            looked = Instant::now();
            raised = Python::attach(signals).err();
            if raised.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    });
    if let Some(raised) = raised {
        return Err(raised);
    }
    read.map_err(|error| match error {
        RecordingError::NotFound(_) => PyFileNotFoundError::new_err(format!("failed to open the recording: {error}")),
        RecordingError::Store(error) => {
            let text = format!("failed to open the recording: {}", error.attempted);
            PyOSError::new_err((error.errno.0, text, error.path))
        }
        error => PyValueError::new_err(format!("failed to open the recording: {error}")),
    })
}

/// Lets Python handle its signals.
fn signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// Calls `look` after each block; its error ends the reading.
fn contents(
    paths: &[PathBuf],
    verify: bool,
    look: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Contents, RecordingError> {
    let mut store = store::best(1, Ways::ALL);
    let recording = Recording::open_in(&mut *store, paths)?.whole()?;
    let believed = if recording.is_foreign() && !verify {
        // The size of the file is the only evidence.
        let (blocks, faults) = (recording.blocks().to_vec(), recording.faults().to_vec());
        Proven { blocks, gaps: Vec::new(), verdict: RecordingVerdict::Incomplete, faults }
    } else {
        prove(&mut *store, &recording, verify, &mut |_| look())?
    };
    let files: Vec<Files> = recording.members().iter().map(|member| Files::of(&member.base)).collect();
    let stretches = believed.stretches(&recording);
    let layout: Layout = recording.about().layout;
    let state = match recording.ended() {
        _ if recording.is_foreign() => "foreign",
        None => "recording",
        Some(ended) if ended.recovered && believed.faults.is_empty() => "recovered",
        Some(_) => believed.verdict.name(),
    };
    let gap = |gap: &Gap| (gap.first.0, gap.frames.0, gap.cause.name());
    Ok(Contents {
        meta: files.first().map(|files| files.meta.clone()).unwrap_or_default(),
        data: files.into_iter().map(|files| files.data).collect(),
        stretches: stretches.iter().map(|it| (it.member, it.file_offset, it.length.0, it.first.0)).collect(),
        gaps: (!recording.is_foreign()).then(|| believed.gaps.iter().map(gap).collect()),
        faults: believed.faults,
        state,
        container: layout.container().to_string(),
        channels: layout.channels(),
        grain: (layout.grain().bytes, layout.grain().frames),
        rate: recording.about().rate.map(hairspring_ring::SampleRate::as_fraction),
    })
}
