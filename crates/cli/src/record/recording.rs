//! Opening recordings, and showing the progress of reading them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;
use hairspring_machine::{Host, Instant, Machine};
use hairspring_recording::verify::ReadProgress;
use hairspring_recording::{Files, Recording, RecordingError};
use hairspring_ring::{ByteRate, Gap};
use hairspring_store::compressed::compressed_path;
use hairspring_store::owner::OwnError;
use hairspring_store::{Store, Ways, best};
use hairspring_time::Nanos;

use crate::arguments::Plain;
use crate::exit::{Exit, Failure};
use crate::listing::clock;
use crate::output;
use crate::progress_line::ProgressLine;

/// Reads under way at once.
const DEPTH: usize = 8;
/// Columns of the bar.
const BAR: usize = 24;

/// The arguments of every command that reads a whole recording.
#[derive(Args, Debug)]
pub(crate) struct ReadArguments {
    /// Recording, with or without an ending, or a series of segments. Name the parts of a stripe that were moved as
    /// well
    #[arg(value_name = "RECORDING", required = true)]
    pub(crate) recording: Vec<PathBuf>,
    /// Show no progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Plain::Text)]
    pub(crate) format: Plain,
}

/// The store that reads files.
pub(crate) fn store() -> Box<dyn Store> {
    best(DEPTH, Ways::default())
}

/// Opens a recording, and reports which parts of it are read outside the named folders.
pub(crate) fn open(store: &mut dyn Store, paths: &[PathBuf]) -> Result<Recording, Failure> {
    let opened = Recording::open_in(store, paths).map_err(|error| refused(&error))?;
    opened.told_elsewhere().for_each(|told| output::log(&told));
    Ok(opened)
}

/// The failure with the exit code of the error.
pub(crate) fn refused(error: &RecordingError) -> Failure {
    match error {
        RecordingError::Nothing
        | RecordingError::NotFound(_)
        | RecordingError::NotTogether(..)
        | RecordingError::AnotherSeries(..)
        | RecordingError::Elsewhere(..) => Failure::bad_request(error.to_string()),
        RecordingError::Owned(error) => owned(error),
        RecordingError::Store(refused) => {
            let text = format!("failed to {refused}");
            match refused.errno.kind() {
                ErrorKind::PermissionDenied => Failure::failed(text),
                ErrorKind::AlreadyExists | ErrorKind::StorageFull | ErrorKind::ReadOnlyFilesystem => {
                    Failure::bad_request(text)
                }
                // The recording exists, but a file is missing or a disk cannot read it.
                _ => unreadable(text),
            }
        }
        RecordingError::Meta(..)
        | RecordingError::TooLarge(..)
        | RecordingError::MembersMissing(..)
        | RecordingError::Limit(_)
        | RecordingError::Cancelled => unreadable(error.to_string()),
    }
}

/// The failure of a command that cannot own a recording.
pub(crate) fn owned(error: &OwnError) -> Failure {
    Failure { exit: Exit::Owned, text: error.to_string() }
}

fn unreadable(text: String) -> Failure {
    Failure { exit: Exit::Unreadable, text }
}

/// The gaps of a recording, in order.
pub(crate) fn gaps(recording: &Recording) -> Vec<Gap> {
    recording.gaps().iter().map(|(_, gap)| *gap).collect()
}

/// The files of all members.
pub(crate) fn files(recording: &Recording) -> Vec<String> {
    recording.members().iter().flat_map(|member| files_of(&member.base)).collect()
}

/// The files of one member.
pub(crate) fn files_of(base: &Path) -> Vec<String> {
    let Files { mut data, meta, journal } = Files::of(base);
    let compressed = compressed_path(&data);
    if !data.exists() && compressed.exists() {
        data = compressed;
    }
    [data, meta, journal].iter().map(|file| file.display().to_string()).collect()
}

/// The progress of reading, in a line.
pub(crate) struct Reading {
    live: ProgressLine,
    begun: Instant,
}

impl Reading {
    /// Reads, and shows its progress unless `quiet`.
    pub(crate) fn during<T>(quiet: bool, read: impl FnOnce(&mut dyn FnMut(ReadProgress)) -> T) -> T {
        let mut reading = Self { live: ProgressLine::new(quiet), begun: Host.monotonic() };
        let read = read(&mut |progress| reading.show(progress));
        reading.live.end();
        read
    }

    fn show(&mut self, progress: ReadProgress) {
        let elapsed = Host.monotonic() - self.begun;
        self.live.show(elapsed, || line(progress, elapsed));
    }
}

fn line(progress: ReadProgress, elapsed: Nanos) -> String {
    let (done, total) = (progress.done.0, progress.total.0.max(progress.done.0).max(1));
    let filled = (u128::from(done) * BAR as u128 / u128::from(total)) as usize;
    let percent = u128::from(done) * 100 / u128::from(total);
    let bar = format!("{}{}", "█".repeat(filled), "░".repeat(BAR - filled));
    let rate = ByteRate::of(progress.done, elapsed).map_or(0.0, ByteRate::bytes_per_s);
    let left = (rate > 0.0).then(|| Nanos::try_from_secs_f64((total - done) as f64 / rate).ok()).flatten();
    let left = left.map_or_else(String::new, |left| format!("  {} left", clock(left)));
    let [done, total] = [done, total].map(|bytes| bytes as f64 / 1e6);
    format!("{bar} {percent:>3} %  {done:.0} of {total:.0} MB  {:.0} MB/s{left}", rate / 1e6)
}

#[cfg(test)]
mod tests {
    use hairspring_ring::Bytes;

    use super::*;

    #[test]
    fn the_line_shows_part_rate_and_time_left() {
        let progress = ReadProgress { done: Bytes(250_000_000), total: Bytes(1_000_000_000) };
        let shown = line(progress, Nanos::from_secs(1));
        assert_eq!(shown, "██████░░░░░░░░░░░░░░░░░░  25 %  250 of 1000 MB  250 MB/s  0:03 left");
        assert!(line(ReadProgress::default(), Nanos::ZERO).contains("  0 %"));
    }
}
