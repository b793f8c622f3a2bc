//! `--segment` and the options that bound a series.

use clap::Args;
use hairspring_record::recorder::KeepOn;
use hairspring_record::series::Retention;
use hairspring_record::session::{AskedLength, SeriesConfig};
use hairspring_ring::{Bytes, Frames};
use hairspring_source::trigger::Trigger;
use hairspring_time::Nanos;

use crate::arguments::{duration, parsed};
use crate::exit::Failure;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Long recordings")]
pub(crate) struct SegmentArguments {
    /// Divide the recording into segments of this time or size, for instance 10min or 4GiB. No frame is lost between
    /// them
    ///
    /// Each segment is a recording by its own: NAME-000000, NAME-000001, ... A segment ends with a whole block, so it
    /// can be a little longer or shorter. With --trigger it ends between two shots, and has one shot at least. NAME
    /// then opens all of them as one recording.
    #[arg(long, value_name = "TIME|SIZE", value_parser = length, allow_hyphen_values = true)]
    segment: Option<AskedLength>,
    /// Keep so many closed segments, and delete older ones
    #[arg(long, value_name = "N", requires = "segment")]
    keep: Option<u32>,
    /// Keep closed segments for this long after their end, and delete older ones
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "segment", allow_hyphen_values = true)]
    keep_time: Option<Nanos>,
    /// Keep so many bytes in closed segments, and delete the oldest ones beyond
    #[arg(long, value_name = "SIZE", value_parser = parsed::<Bytes>, requires = "segment", allow_hyphen_values = true)]
    keep_bytes: Option<Bytes>,
    /// Pin the segments around a trigger, so that nothing deletes them: a trigger as for --trigger
    ///
    /// All frames are recorded. The segment in which the trigger is seen becomes pinned, like by `hairspring keep`, and
    /// so do its neighbours that have any of the --pre frames before the trigger or of the --post frames from it on.
    #[arg(long, value_name = "TRIGGER", value_parser = parsed::<Trigger>, requires = "segment")]
    #[arg(group = "event", allow_hyphen_values = true)]
    keep_on: Option<Trigger>,
    /// End the recording in order, with exit code 12, when less than this is free on a target's disk; warn from twice
    /// as much on
    #[arg(long, value_name = "SIZE", value_parser = parsed::<Bytes>, requires = "segment", allow_hyphen_values = true)]
    free: Option<Bytes>,
    /// Go on with the series of this name, or begin it if there is none
    ///
    /// The last segment is recovered first. What is missing between is a gap: an interval of frames, from the clocks.
    #[arg(long, requires = "segment")]
    resume: bool,
    /// Print a systemd unit that records like this and goes on after a restart, and end
    #[arg(long, requires = "segment")]
    pub(super) unit: bool,
    /// Delete the oldest segments instead of ending when less than --free is free
    #[arg(long, requires = "free")]
    make_room: bool,
}

impl SegmentArguments {
    /// The series that is asked for; `None` for one recording.
    pub(crate) fn series(&self, pre: Frames, post: Frames) -> Result<Option<SeriesConfig>, Failure> {
        let Some(length) = self.segment else { return Ok(None) };
        let is_nothing = match length {
            AskedLength::Time(time) => time <= Nanos::ZERO,
            AskedLength::Bytes(bytes) => bytes.0 == 0,
        };
        if is_nothing {
            return Err(Failure::bad_request("--segment: write a time or a size, for instance 10min or 4GiB"));
        }
        if self.keep_time.is_some_and(|time| time <= Nanos::ZERO) {
            return Err(Failure::bad_request("--keep-time: write how long segments are kept, for instance 7d"));
        }
        let retention = Retention {
            segments: self.keep,
            time: self.keep_time,
            bytes: self.keep_bytes,
            free: self.free,
            makes_room: self.make_room,
        };
        let keep_on = self.keep_on.map(|trigger| KeepOn { trigger, pre, post });
        Ok(Some(SeriesConfig { length, retention, keep_on, resume: self.resume }))
    }

    /// Warning, printed once, if the free space will end the recording.
    pub(super) fn warning(&self, free: Bytes) -> Option<String> {
        let limit = self.free.filter(|_| !self.make_room)?;
        Some(format!(
            "warning: only {free} are free; the recording ends when less than {limit} are: free space, or allow --make-room"
        ))
    }

    /// Whether a series of this name may be there.
    pub(super) fn may_exist(&self) -> bool {
        self.resume || self.unit
    }
}

/// Reads a time or a size.
fn length(text: &str) -> Result<AskedLength, String> {
    let time = duration(text).map(AskedLength::Time);
    time.or_else(|_| text.parse().map(AskedLength::Bytes))
        .map_err(|_| "write a time or a size, like 10min, 1h or 4GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_a_time_or_a_size() {
        assert_eq!(length("10min"), Ok(AskedLength::Time(Nanos::from_secs(600))));
        assert_eq!(length("4GiB"), Ok(AskedLength::Bytes(Bytes::gib(4))));
        assert_eq!(length("200ms"), Ok(AskedLength::Time(Nanos::from_millis(200))));
        assert!(length("often").is_err_and(|why| why.contains("10min")));
    }
}
