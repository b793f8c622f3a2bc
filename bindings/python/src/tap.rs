//! Live taps: frames of a running recording, copied without the GIL.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hairspring_ring::Frames;
use hairspring_tap::{TapError, TapPlace, TapReader, TapState, TapTrace};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyPermissionError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Interval at which a wait checks for signals.
const LOOK: Duration = Duration::from_millis(100);

/// A reader of a live tap.
#[pyclass(frozen, module = "hairspring")]
pub(crate) struct TapHandle(Mutex<TapReader>);

/// Frames in memory of their own, which numpy uses in place.
#[pyclass(frozen, module = "hairspring")]
pub(crate) struct TapFrames {
    /// Number of the first frame; None if it is no longer known, or if there is none.
    #[pyo3(get)]
    first_frame: Option<u64>,
    #[pyo3(get)]
    frames: u64,
    /// Frames that this reader was too slow for, before the first.
    #[pyo3(get)]
    missed: u64,
    bytes: Box<[u8]>,
}

#[pymethods]
impl TapFrames {
    /// The bytes for numpy, which keeps this object as long as it uses them. Read-only, as the pointer is shared.
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let described = PyDict::new(py);
        described.set_item("version", 3)?;
        described.set_item("typestr", "|u1")?;
        described.set_item("shape", (self.bytes.len(),))?;
        described.set_item("data", (self.bytes.as_ptr() as usize, true))?;
        Ok(described)
    }
}

fn refused(error: TapError) -> PyErr {
    let text = format!("failed to {error}");
    match error {
        TapError::NotOffered(_) => PyFileNotFoundError::new_err(text),
        TapError::System(_, error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            PyPermissionError::new_err(text)
        }
        TapError::System(..) => PyOSError::new_err(text),
        TapError::Refused(..) => PyOSError::new_err(text),
    }
}

impl TapHandle {
    fn reader(&self) -> MutexGuard<'_, TapReader> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl TapHandle {
    /// Opens the tap of this name, or the socket of this path. Waits for the recorder's answer without the GIL, at most
    /// five seconds.
    #[new]
    fn new(py: Python<'_>, name: &str) -> PyResult<Self> {
        let place: TapPlace =
            name.parse().map_err(|error| PyValueError::new_err(format!("{name:?} names no tap: {error}")))?;
        let reader = py.detach(|| TapReader::open(&place)).map_err(refused)?;
        Ok(Self(Mutex::new(reader)))
    }

    /// Constant facts: container, channels, bits, grain (frames, bytes), rate (frames, seconds), id, text, capacity in
    /// bytes, and user and process of the recorder.
    fn about<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let reader = self.reader();
        let layout = reader.layout();
        let about = PyDict::new(py);
        about.set_item("container", layout.container().to_string())?;
        about.set_item("channels", layout.channels())?;
        about.set_item("resolution_bits", layout.resolution_bits())?;
        about.set_item("grain", (layout.grain().frames, layout.grain().bytes))?;
        about.set_item("rate", reader.rate().map(hairspring_ring::SampleRate::as_fraction))?;
        let id = reader.id();
        about.set_item("id", id.iter().map(|byte| format!("{byte:02x}")).collect::<String>())?;
        about.set_item("text", reader.channels_text())?;
        about.set_item("capacity_bytes", reader.capacity().0)?;
        about.set_item("recorder", reader.recorder())?;
        Ok(about)
    }

    /// Waits without the GIL until `frames` frames can be read, the stream has ended, or the time is over, and copies
    /// consecutive frames. Python handles its signals meanwhile.
    fn read(&self, py: Python<'_>, frames: u64, timeout_ns: Option<u64>) -> PyResult<TapFrames> {
        let until = timeout_ns.and_then(|ns| Instant::now().checked_add(Duration::from_nanos(ns)));
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let (enough, state) = py.detach(|| {
                let reader = self.reader();
                let state = reader.wait(Frames(frames), left.unwrap_or(LOOK).min(LOOK));
                let most = reader.layout().frames_in(hairspring_ring::Bytes(reader.capacity().0 / 2)).0.max(1);
                (reader.available().0 >= frames.clamp(1, most), state)
            });
            py.check_signals()?;
            let over = timeout_ns.is_some() && left.is_none_or(|left| left.is_zero());
            if enough || over || state != TapState::Running {
                break;
            }
        }
        Ok(py.detach(|| self.copy(frames)))
    }

    /// Skips all but the newest `frames` frames, and copies these. Does not wait.
    fn newest(&self, py: Python<'_>, frames: u64) -> TapFrames {
        py.detach(|| {
            self.reader().skip_to_newest(Frames(frames));
            self.copy(frames)
        })
    }

    fn state(&self) -> &'static str {
        self.reader().state().name()
    }

    /// Frames that this reader was too slow for.
    fn missed(&self) -> u64 {
        self.reader().missed().0
    }

    /// Frames that the source lost; None if the recorder died while it wrote that.
    fn lost(&self) -> Option<u64> {
        self.reader().gaps().map(|gaps| gaps.lost.0)
    }

    /// Readings of the clocks (monotonic, realtime, within), and marks (frame, earliest, latest), in nanoseconds.
    #[expect(clippy::type_complexity, reason = "two lists of three numbers")]
    fn clocks(&self) -> (Vec<(i64, i64, i64)>, Vec<(u64, i64, i64)>) {
        let clocks = self.reader().clocks().unwrap_or_default();
        let at = |instant: hairspring_machine::Instant| instant.as_monotonic().count();
        let pairs = clocks.pairs.iter().map(|pair| (at(pair.monotonic), pair.realtime.count(), pair.within.count()));
        let marks = clocks.marks.iter().map(|mark| (mark.frame.0, at(mark.earliest), at(mark.latest)));
        (pairs.collect(), marks.collect())
    }
}

impl TapHandle {
    /// Copies at most `frames` of the available frames.
    fn copy(&self, frames: u64) -> TapFrames {
        let mut reader = self.reader();
        let most = frames.min(reader.available().0);
        let room = TapTrace::room_for(reader.layout(), Frames(most)).0.min(reader.capacity().0);
        let mut bytes = vec![0; usize::try_from(room).unwrap_or(0)];
        let piece = reader.read(&mut bytes);
        bytes.truncate(usize::try_from(reader.layout().bytes_of(piece.frames).0).unwrap_or(0));
        let first_frame = piece.first_frame.filter(|_| piece.frames.0 > 0).map(|frame| frame.0);
        TapFrames { first_frame, frames: piece.frames.0, missed: piece.missed.0, bytes: bytes.into() }
    }
}
