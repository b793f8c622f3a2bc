//! [`Writer`]: what writes a card's stream: one recorder, or those of a series.

use std::path::PathBuf;

use hairspring_machine::Instant;
use hairspring_ring::units::Bytes;
use hairspring_source::SourceCounters;

use crate::recorder::{Outcome, Recorder, Status, Step};
use crate::series::{SeriesRecorder, SeriesSummary};
use hairspring_recording::beginning::Beginning;
use hairspring_recording::clock::ClockNote;
use hairspring_recording::journal::GapBounds;

pub(super) enum Writer {
    One(Box<Recorder>),
    /// A series, the files beside its segments, and whether they are new.
    Series(Box<SeriesRecorder>, Vec<PathBuf>, bool),
}

impl Writer {
    pub(super) fn begins(&mut self, beginning: Beginning) {
        match self {
            Self::One(recorder) => recorder.begins(beginning),
            Self::Series(series, ..) => series.begins(beginning),
        }
    }

    pub(super) fn beginning(&self) -> Option<Beginning> {
        match self {
            Self::One(recorder) => recorder.beginning(),
            Self::Series(series, ..) => series.beginning(),
        }
    }

    pub(super) fn note(&mut self, note: ClockNote) {
        match self {
            Self::One(recorder) => recorder.note(note),
            Self::Series(series, ..) => series.note(note),
        }
    }

    pub(super) fn bound_gaps(&mut self, bounds: &[GapBounds]) {
        match self {
            Self::One(recorder) => recorder.bound_gaps(bounds),
            Self::Series(series, ..) => series.bound_gaps(bounds),
        }
    }

    pub(super) fn stopped_by(&mut self, what: String) {
        match self {
            Self::One(recorder) => recorder.stopped_by(what),
            Self::Series(series, ..) => series.stopped_by(what),
        }
    }

    pub(super) fn step(&mut self, now: Instant, counters: SourceCounters) -> Step {
        match self {
            Self::One(recorder) => recorder.step(now, counters),
            Self::Series(series, ..) => series.step(now, counters),
        }
    }

    pub(super) fn wait(&mut self, until: Instant) {
        match self {
            Self::One(recorder) => recorder.wait(until),
            Self::Series(series, ..) => series.wait(until),
        }
    }

    pub(super) fn status(&self, counters: SourceCounters, free: Option<Bytes>) -> Status {
        match self {
            Self::One(recorder) => recorder.status(counters, free),
            Self::Series(series, ..) => series.status(counters, free),
        }
    }

    /// The number of the present segment.
    pub(super) fn segment(&self) -> Option<u32> {
        if let Self::Series(series, ..) = self { Some(series.number()) } else { None }
    }

    /// The free space, while it is less than twice the limit of a series.
    pub(super) fn low_space(&self) -> Option<Bytes> {
        if let Self::Series(series, ..) = self { series.low_space() } else { None }
    }

    pub(super) fn finish(self, now: Instant, counters: SourceCounters) -> (Outcome, Option<SeriesSummary>) {
        match self {
            Self::One(recorder) => (recorder.finish(now, counters), None),
            Self::Series(series, files, _) => {
                let (outcome, summary) = series.finish(now, counters);
                let files = files.into_iter().chain(outcome.files.iter().cloned()).collect();
                (Outcome { files, ..outcome }, Some(summary))
            }
        }
    }

    /// Removes the files, before anything was recorded. Blocks.
    pub(super) fn abandon(self) {
        match self {
            Self::One(recorder) => recorder.abandon(),
            Self::Series(series, files, are_new) => {
                series.abandon();
                for file in files.into_iter().filter(|_| are_new) {
                    // They were made a moment ago; one that stays is reported when the name is used again.
                    drop(std::fs::remove_file(file));
                }
            }
        }
    }
}
