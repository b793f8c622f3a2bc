//! What of a recording is proven, and where it lies: the Rust reader's judgement, for numpy to map.

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

/// A recording as journals and checksums bear it out.
#[pyclass(frozen, get_all, module = "hairspring")]
pub(crate) struct Contents {
    /// The data file of each member, the metadata of the first.
    data: Vec<PathBuf>,
    meta: PathBuf,
    /// Where the frames lie, in the order of the stream: member, offset in its data file, bytes, number of the first frame.
    stretches: Vec<(usize, u64, u64, u64)>,
    /// What is missing, in order: number of the first frame, how many, why. None of a recording of another program.
    gaps: Option<Vec<(u64, u64, &'static str)>>,
    /// Why it is not in order.
    faults: Vec<String>,
    state: &'static str,
    container: String,
    channels: u32,
    /// The smallest piece of a file: bytes, and frames in it.
    grain: (u64, u64),
    /// Frames in so many seconds.
    rate: Option<(u64, u64)>,
}

/// How often reading looks for signals.
const LOOK: Duration = Duration::from_millis(10);

/// Opens a recording by the path of any of its members, and proves what no sync covers, or with `verify` everything. A signal handler that
/// raises ends it.
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

/// `look` is called after each block that is read, and may break off.
fn contents(
    paths: &[PathBuf],
    verify: bool,
    look: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Contents, RecordingError> {
    let mut store = store::best(1, Ways::ALL);
    let recording = Recording::open_in(&mut *store, paths)?.whole()?;
    let believed = if recording.is_foreign() && !verify {
        // The size of its file is all there is.
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
