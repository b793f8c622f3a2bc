//! [`RecordError`]: why nothing was recorded, or which defect ended the recording.

use hairspring_ring::RingError;
use hairspring_ring::memory::MemoryError;
use hairspring_ring::units::Bytes;
use hairspring_source::trigger::TriggerError;
use hairspring_time::CalibrationError;

use crate::recorder::RecorderError;

/// Why nothing was recorded, or which defect ended the recording.
#[derive(Debug)]
pub enum RecordError {
    /// No card.
    NoCard,
    /// The notify size does not divide the buffer.
    Notify(Bytes, Bytes),
    /// The source has a clock of its own and cannot be made to wait.
    CannotBlock(String),
    /// The trigger does not suit the stream.
    Trigger(TriggerError),
    /// The index of the series cannot be made, or the series cannot be resumed: why.
    Series(String),
    /// The ring cannot be made.
    Ring(RingError),
    /// No memory for the buffer.
    Memory(MemoryError),
    /// The recorder cannot be made.
    Recorder(RecorderError),
    /// The time base cannot be calibrated.
    Calibration(CalibrationError),
    /// A thread was refused.
    Thread(std::io::Error),
    /// A part panicked: its name and the panic's message. The recording was ended; the data until then are in the
    /// files.
    Panicked(&'static str, String),
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoCard => f.write_str("nothing to record: name a card"),
            Self::Notify(Bytes(0), _) => {
                f.write_str("a notify size of 0 B: choose one that divides the buffer, as 4 MiB")
            }
            Self::Notify(notify, buffer) => {
                let below = Bytes(buffer.0 / buffer.0.div_ceil(notify.0.max(1)).max(1));
                write!(f, "a notify size of {notify} does not divide a buffer of {buffer}: ")?;
                match buffer.0 % below.0.max(1) {
                    0 if below.0 > 0 => write!(f, "choose {below}, or a buffer of {}", buffer.round_up(*notify)),
                    _ => write!(f, "choose a buffer of {}", buffer.round_up(Bytes(notify.0.max(1)))),
                }
            }
            Self::CannotBlock(hardware) => {
                write!(f, "{hardware} has a clock of its own and cannot be made to wait: choose stop, gap or overwrite")
            }
            Self::Trigger(error) => error.fmt(f),
            Self::Series(why) => write!(f, "failed to begin the series: {why}"),
            Self::Ring(error) => error.fmt(f),
            Self::Memory(error) => error.fmt(f),
            Self::Recorder(error) => error.fmt(f),
            Self::Calibration(error) => error.fmt(f),
            Self::Thread(error) => write!(f, "start a thread for the card: {error}"),
            Self::Panicked(part, said) => write!(
                f,
                "the {part} panicked: {said}; the recording was ended, and `hairspring recover` puts its files in order"
            ),
        }
    }
}

impl std::error::Error for RecordError {}

impl From<RecorderError> for RecordError {
    fn from(error: RecorderError) -> Self {
        Self::Recorder(error)
    }
}
