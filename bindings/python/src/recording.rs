//! Recordings: which samples are proven, where they lie, and reading them without the GIL. The Rust reader judges.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hairspring_record::recover::{Proven, prove};
use hairspring_recording::RecordingVerdict;
use hairspring_recording::clock::axis::{TimeAxis, align};
use hairspring_recording::{
    Block, DamagedBlock, Excerpt, ExcerptCheck, ExcerptError, ExcerptPart, Files, Member, Missing, MissingFrames,
    Recording, RecordingError,
};
use hairspring_ring::{Frames, Layout};
use hairspring_store::Ways;
use pyo3::exceptions::{PyFileNotFoundError, PyMemoryError, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

pyo3::create_exception!(
    hairspring,
    BlockError,
    PyOSError,
    "A block of a recording does not hold what was recorded. Its attributes tell the place: block, first_frame, frames, path, offset, length."
);

/// Missing frames: number of the first one, how many, cause, and the least and the most that there may be if only an
/// interval is known.
type MissingPiece = (u64, u64, &'static str, Option<(u64, u64)>);

/// A recording as journals and checksums prove it.
#[pyclass(frozen, module = "hairspring")]
pub(crate) struct Contents {
    /// The data file of each member, the metadata of the first.
    #[pyo3(get)]
    data: Vec<PathBuf>,
    #[pyo3(get)]
    meta: PathBuf,
    /// The metadata of a recording of another program, which may lie in an archive.
    #[pyo3(get)]
    document: Option<String>,
    /// Whether two neighbouring channels are one complex sample; and whether the files have the highest byte of a
    /// sample first. A read returns the lowest byte first; a memory map of the files shows them as they are.
    #[pyo3(get)]
    is_complex: bool,
    #[pyo3(get)]
    is_big_endian: bool,
    /// Identity of the recording, as 32 hexadecimal digits.
    #[pyo3(get)]
    id: String,
    /// Pieces of the stream in order: member, offset in its data file, bytes, number of the first frame.
    #[pyo3(get)]
    stretches: Vec<(usize, u64, u64, u64)>,
    /// Runs of frames without a gap: number of the first frame, and how many.
    #[pyo3(get)]
    sections: Vec<(u64, u64)>,
    /// All missing frames in order, declared or not. Causes are those of gaps, `left_out`, `deleted`, `not_stated`, and
    /// `damaged` for frames in no file.
    #[pyo3(get)]
    missing: Vec<MissingPiece>,
    /// The number of the first frame, and that behind the last one, missing ones included.
    #[pyo3(get)]
    extent: (u64, u64),
    /// Why it is not in order.
    #[pyo3(get)]
    faults: Vec<String>,
    #[pyo3(get)]
    state: &'static str,
    #[pyo3(get)]
    container: String,
    #[pyo3(get)]
    channels: u32,
    /// The smallest unit of a file: its bytes and its frames.
    #[pyo3(get)]
    grain: (u64, u64),
    /// The sample rate as a fraction: frames, and the seconds that they take.
    #[pyo3(get)]
    rate: Option<(u64, u64)>,
    /// When its frames were taken.
    #[pyo3(get)]
    axis: FrameAxis,
    /// Time of its first frame, in nanoseconds since 1970, and the time by which it may have been earlier. None if
    /// unknown.
    #[pyo3(get)]
    started: Option<(i64, i64)>,
    /// The number of the frame behind those that are stored, or declared as missing, without an exception before them.
    #[pyo3(get)]
    settled: u64,
    recording: Recording,
    proven: Proven,
}

/// Bytes of whole blocks in memory of their own, which numpy uses in place, and the frames in them.
#[pyclass(frozen, module = "hairspring")]
pub(crate) struct Piece {
    /// Number of the first frame, how many frames, and the offset of the first in the bytes.
    #[pyo3(get)]
    runs: Vec<(u64, u64, usize)>,
    address: usize,
    length: usize,
    /// Keeps the memory. Its bytes are numpy's.
    _excerpt: Mutex<Excerpt>,
}

/// The time axis of a recording.
#[pyclass(frozen, module = "hairspring")]
#[derive(Clone)]
pub(crate) struct FrameAxis(TimeAxis);

#[pymethods]
impl FrameAxis {
    /// Between which nanoseconds of `CLOCK_MONOTONIC` a frame was taken.
    fn time_of(&self, frame: u64) -> Option<(i64, i64)> {
        let time = self.0.time_of(Frames(frame))?;
        Some((time.earliest.as_monotonic().count(), time.latest.as_monotonic().count()))
    }

    /// Time by which `frame` of the other was taken later, in nanoseconds at least and at most; and the two frames of
    /// the other between which `frame` of this one was taken.
    #[expect(clippy::type_complexity, reason = "two intervals")]
    fn align(&self, other: &Self, frame: u64) -> PyResult<((i64, i64), Option<(i64, i64)>)> {
        let found = align(&self.0, &other.0, Frames(frame));
        let found = found.map_err(|error| PyValueError::new_err(format!("failed to align: {error}")))?;
        Ok(((found.earliest.count(), found.latest.count()), found.frames))
    }
}

/// Interval at which a read checks for signals.
const LOOK: Duration = Duration::from_millis(10);

/// Runs `work` without the GIL. `work` calls its argument often, which lets Python handle its signals; an exception
/// from a signal handler ends the work.
fn detached<T: Send, E: Send>(
    py: Python<'_>,
    work: impl FnOnce(&mut dyn FnMut() -> ControlFlow<()>) -> Result<T, E> + Send,
) -> PyResult<Result<T, E>> {
    let mut raised = None;
    let done = py.detach(|| {
        let mut looked = Instant::now();
        work(&mut || {
            if looked.elapsed() < LOOK {
                return ControlFlow::Continue(());
            }
            looked = Instant::now();
            raised = Python::attach(signals).err();
            if raised.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    });
    raised.map_or(Ok(done), Err)
}

/// Opens a recording by the path of any of its members. Compares blocks that no sync covers with their checksums, with
/// `verify` all blocks; without a boolean none, and the journals are believed. Of a series only the segments from that
/// frame on, if `since` is given. An exception from a signal handler ends it.
#[pyfunction]
#[pyo3(signature = (paths, verify, since = None))]
pub(crate) fn read_recording(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    verify: Option<bool>,
    since: Option<u64>,
) -> PyResult<Contents> {
    detached(py, |look| contents(&paths, verify, since, look))?.map_err(|error| refused("open the recording", error))
}

fn refused(attempted: &str, error: RecordingError) -> PyErr {
    match error {
        RecordingError::NotFound(_) => PyFileNotFoundError::new_err(format!("failed to {attempted}: {error}")),
        RecordingError::Store(error) => {
            let text = format!("failed to {attempted}: {}: {}", error.attempted, error.errno);
            PyOSError::new_err((error.errno.0, text, error.path.into_os_string()))
        }
        error => PyValueError::new_err(format!("failed to {attempted}: {error}")),
    }
}

/// Lets Python handle its signals.
fn signals(py: Python<'_>) -> PyResult<()> {
    py.check_signals()
}

/// Calls `look` after each block; its error ends the reading.
fn contents(
    paths: &[PathBuf],
    verify: Option<bool>,
    since: Option<u64>,
    look: &mut dyn FnMut() -> ControlFlow<()>,
) -> Result<Contents, RecordingError> {
    let mut store = hairspring_store::best(1, Ways::ALL);
    let recording = match since {
        Some(frame) => Recording::open_since(&mut *store, paths, Frames(frame)),
        None => Recording::open_in(&mut *store, paths),
    }?;
    let recording = recording.whole()?;
    let proven = match verify {
        Some(verify) if verify || !recording.is_foreign() => prove(&mut *store, &recording, verify, &mut |_| look())?,
        // The files of another program have no other evidence than their size.
        _ => {
            let (blocks, faults) = (recording.blocks().to_vec(), recording.faults().to_vec());
            let gaps = recording.gaps().iter().map(|(_, gap)| *gap).collect();
            let verdict = recording.ended().map_or(RecordingVerdict::Incomplete, |ended| ended.verdict);
            Proven { blocks, gaps, verdict, faults }
        }
    };
    let files: Vec<Files> = recording.members().iter().map(|member| Files::of(&member.base)).collect();
    let stretches = proven.stretches(&recording);
    let layout: Layout = recording.about().layout;
    let mut sections: Vec<(u64, u64)> = Vec::new();
    for stretch in &stretches {
        let frames = layout.frames_in(stretch.length).0;
        match sections.last_mut() {
            Some((first, count)) if *first + *count == stretch.first.0 => *count += frames,
            _ => sections.push((stretch.first.0, frames)),
        }
    }
    let state = match recording.ended() {
        _ if recording.is_foreign() => "foreign",
        None => "recording",
        Some(ended) if ended.recovered && proven.faults.is_empty() => "recovered",
        Some(_) => proven.verdict.name(),
    };
    let timeline = recording.timeline();
    let settled = match recording.holes().iter().find(|hole| !hole.declared) {
        Some(hole) => timeline.frame_at(hole.position),
        None => timeline.frame_at(recording.blocks().last().map_or(0, Block::end)),
    };
    let about = recording.about();
    let missing = Missing::of(&recording, &proven.blocks);
    let stretch = |it: &MissingFrames| {
        let bounds = it.bounds.map(|bounds| (bounds.least.0, bounds.most.0));
        (it.first.0, it.frames.0, it.cause.name(), bounds)
    };
    Ok(Contents {
        meta: files.first().map(|files| files.meta.clone()).unwrap_or_default(),
        data: recording.members().iter().map(Member::data).collect(),
        document: recording.foreign_metadata().map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
        is_complex: recording.is_complex(),
        is_big_endian: recording.is_big_endian(),
        id: about.id.to_string(),
        stretches: stretches.iter().map(|it| (it.member, it.file_offset, it.length.0, it.first.0)).collect(),
        sections,
        missing: missing.iter().map(stretch).collect(),
        extent: (missing.extent().start, missing.extent().end),
        // Work that a recorder has yet to do is no fault.
        faults: if recording.holder().is_some() { recording.faults().to_vec() } else { proven.faults.clone() },
        state,
        container: layout.container().to_string(),
        channels: layout.channels(),
        grain: (layout.grain().bytes, layout.grain().frames),
        rate: about.rate.map(hairspring_ring::SampleRate::as_fraction),
        axis: FrameAxis(about.time_axis()),
        started: about.started_within.map(|within| (about.started_realtime.count(), within.count())),
        settled: settled.0,
        recording,
        proven,
    })
}

#[pymethods]
impl Contents {
    /// The process that owned the files when they were opened, as in "is being recorded by process 4711 (hairspring)";
    /// None if there was none.
    fn owner(&self) -> Option<String> {
        self.recording.holder().map(|holder| holder.to_string())
    }

    /// Whether the file system of its metadata can say who owns them.
    fn is_owner_known(&self) -> bool {
        hairspring_store::owner::has_locks(&self.meta)
    }

    /// Reads the existing frames from `first` to before `end`, without the GIL, and with `verify` compares their blocks
    /// with their checksums. Raises BlockError for the first bad block.
    fn read(&self, py: Python<'_>, first: u64, end: u64, verify: bool) -> PyResult<Piece> {
        let check = if verify { ExcerptCheck::Checksums } else { ExcerptCheck::Unchecked };
        let read = detached(py, |look| {
            let mut store = hairspring_store::best(Excerpt::DEPTH, Excerpt::WAYS);
            let part = ExcerptPart { recording: &self.recording, blocks: &self.proven.blocks };
            Excerpt::read(&mut *store, &[part], first..end, check, look)
        })?;
        let mut excerpt = read.map_err(|error| match error {
            ExcerptError::Block(bad) => block_error(py, &bad),
            ExcerptError::NoMemory(error) => {
                PyMemoryError::new_err(format!("failed to {error}; read fewer frames at once"))
            }
            ExcerptError::Recording(error) => refused("read the recording", error),
        })?;
        let runs = excerpt.runs().iter().map(|run| (run.first.0, run.frames.0, run.at)).collect();
        let bytes = excerpt.bytes();
        let (address, length) = (bytes.as_mut_ptr() as usize, bytes.len());
        Ok(Piece { runs, address, length, _excerpt: Mutex::new(excerpt) })
    }

    /// Numbers of frames that cut a range into chunks of whole blocks, each of about `bytes`: its first and its end,
    /// too.
    fn edges(&self, first: u64, end: u64, bytes: u64) -> Vec<u64> {
        let timeline = self.recording.timeline();
        let (layout, mut edges) = (timeline.layout(), vec![first]);
        let most = layout.frames_in(hairspring_ring::Bytes(bytes)).0.max(1);
        let mut edge = first;
        // A chunk ends before the block that would make it too large. A gap is cut wherever that is needed.
        for block in &self.proven.blocks {
            let next = timeline.frame_at(block.end()).0.min(end);
            if next <= first {
                continue;
            }
            let begin = timeline.frame_at(block.position).0;
            if begin > edge && next - edge > most {
                edge = begin.min(end);
                edges.push(edge);
            }
            if begin >= end {
                break;
            }
        }
        edges.push(end);
        let cut = edges.windows(2).flat_map(|pair| {
            let pieces = if pair[1] - pair[0] > 2 * most { (pair[1] - pair[0]).div_ceil(most) } else { 1 };
            let (from, to) = (pair[0], pair[1]);
            (0..pieces).map(move |piece| (from + piece * most).min(to))
        });
        let mut cut: Vec<u64> = cut.collect();
        cut.push(end);
        cut.dedup();
        if first == end {
            cut.push(end);
        }
        cut
    }
}

/// The exception for a bad block.
fn block_error(py: Python<'_>, bad: &DamagedBlock) -> PyErr {
    let error =
        BlockError::new_err(format!("failed to read the recording: {bad}; `hairspring recover --all` leaves it out"));
    let frames = bad.frames.end - bad.frames.start;
    let value = error.value(py);
    let told = value
        .setattr("block", bad.block)
        .and_then(|()| value.setattr("first_frame", bad.frames.start))
        .and_then(|()| value.setattr("frames", frames))
        .and_then(|()| value.setattr("path", &bad.path))
        .and_then(|()| value.setattr("offset", bad.file_offset))
        .and_then(|()| value.setattr("length", bad.length));
    told.map_or_else(|failed| failed, |()| error)
}

#[pymethods]
impl Piece {
    /// The bytes for numpy, which keeps this object as long as it uses them.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let described = PyDict::new(py);
        described.set_item("version", 3)?;
        described.set_item("typestr", "|u1")?;
        described.set_item("shape", (self.length,))?;
        described.set_item("data", (self.address, false))?;
        Ok(described)
    }
}
