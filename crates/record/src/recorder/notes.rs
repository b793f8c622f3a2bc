//! Findings about time that the recorder gets while it runs.

use super::Recorder;
use hairspring_recording::clock::{ClockNote, Mark};
use hairspring_recording::journal::{GapBounds, Record};
use hairspring_ring::units::Frames;
use hairspring_source::SenderCount;

impl Recorder {
    /// Enters a finding about time into the journals; the metadata get it at the end. Ignored after the end.
    pub fn note(&mut self, note: ClockNote) {
        match note {
            ClockNote::Pair(pair) => {
                self.clock.pair(pair);
                self.enter_note(&Record::Pair(pair));
            }
            ClockNote::Mark(mark) => {
                // The source counts from its own start.
                let mark = Mark { frame: Frames(mark.frame.0 + self.place.origin.0), ..mark };
                self.clock.mark(mark);
                self.enter_note(&Record::Mark(mark));
            }
            ClockNote::Frame0(beginning, _) => self.begins(beginning),
            // Until it is known where a resumed series begins, the source's frames have no numbers.
            ClockNote::Count(count) if self.setup.resumed.is_some() => self.first_count = Some(count),
            ClockNote::Count(count) => {
                let count = SenderCount { frame: Frames(count.frame.0 + self.place.origin.0), ..count };
                self.clock.count = Some(count);
                self.enter_note(&Record::Count(count));
            }
            ClockNote::External(reading) => {
                self.clock.external_reading(reading);
                self.enter_note(&Record::External(reading));
            }
            ClockNote::ExternalSilence(silence) => {
                self.clock.external_silence(silence);
                self.enter_note(&Record::ExternalSilence(silence));
            }
        }
    }

    /// Sets the reason why the source is stopped, if it is not the user, as a fragment: "its time was over". Ignored if
    /// the source had ended before.
    pub fn stopped_by(&mut self, what: String) {
        self.stopped_by = Some(what);
    }

    /// Enters the lengths of gaps that are known as intervals only: all from the source up to now, in order. The last
    /// may have grown.
    pub fn bound_gaps(&mut self, bounds: &[GapBounds]) {
        // The source counts from the beginning of its epoch, and its list includes earlier segments.
        let shifted = |one: &GapBounds| GapBounds { first: Frames(one.first.0 + self.place.origin.0), ..*one };
        let bounds: Vec<_> = bounds.iter().map(shifted).filter(|one| one.first >= self.place.first).collect();
        let known = self.bounds.iter().zip(&bounds).take_while(|(known, new)| known == new).count();
        for new in &bounds[known..] {
            self.enter_note(&Record::Bounds(*new));
        }
        self.bounds = bounds;
    }

    /// The bounds of the gaps of this segment.
    pub(super) fn own_bounds(&self) -> impl Iterator<Item = GapBounds> {
        self.bounds.iter().copied().filter(|one| self.gaps.iter().any(|gap| gap.first == one.first))
    }

    pub(super) fn enter_note(&mut self, record: &Record) {
        // A record must not follow the end.
        for member in self.members.iter_mut().filter(|member| !member.is_closing()) {
            member.append(record);
        }
    }
}
