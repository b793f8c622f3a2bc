//! What the recorder learns of time while it runs.

use super::Recorder;
use crate::clock::{ClockNote, Mark};
use crate::journal::Record;
use hairspring_ring::units::Frames;

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
        }
    }

    pub(super) fn enter_note(&mut self, record: &Record) {
        // No record may follow the end.
        for member in self.members.iter_mut().filter(|member| !member.is_closing()) {
            member.append(record);
        }
    }
}
