//! The true rate of a card: hard bounds from times and positions of its pointer.

use hairspring_machine::{Instant, Nanos};
use hairspring_recording::clock::{ClockRecord, Mark, MarkSource, axis::TimeAxis};
use hairspring_ring::Frames;
use hairspring_sheet::Absent;

use super::card::{Stream, failed, recording};
use crate::probe::{Reading, Taken};

/// Time for which the pointer is read repeatedly, for a narrow mark.
const HUNT_FOR: Nanos = Nanos::from_millis(5);
/// Frames of a period: few interrupts, because the rate alone matters.
const PERIOD: u32 = 1024;

/// Deviation of the rate from the nominal one, in ppm, with its bounds.
pub(super) fn rate_error(span: Nanos) -> Taken {
    let mut stream = Stream::open(&recording()?, PERIOD, 16 * PERIOD)?;
    stream.pcm.start().map_err(failed)?;
    let begun = stream.pcm.now();
    let mut record = ClockRecord::default();
    let (mut frames, mut marks) = (0, 0);
    while stream.pcm.now() - begun < span {
        stream.wait();
        frames += stream.pass()?.1;
        // Until it moves: then the frame is known within one look.
        let hunted = stream.pcm.now();
        while stream.pcm.now() - hunted < HUNT_FOR {
            let earliest = stream.pcm.now();
            let (status, passed, _) = stream.pass()?;
            frames += passed;
            if passed > 0 {
                let latest: Instant = status.changed.max(earliest);
                let frame = Frames(frames - 1);
                record.mark(Mark { frame, earliest: hunted.max(earliest), latest, how: MarkSource::Card });
                marks += 1;
                break;
            }
        }
    }
    stream.pcm.halt();
    let rate = stream.pcm.setup().rate;
    match TimeAxis::new(&record, true).rate_ppb(rate) {
        Some([low, high]) if marks >= 2 => Ok(Reading::estimate(marks, (low + high) / 2e3, [low / 1e3, high / 1e3])),
        None if marks >= 2 => Err(Absent::final_(
            "the card's positions do not lie on a line: its rate jumps, or its driver shows them late",
        )),
        _ => Err(Absent::new("the card's pointer was seen to move less than twice", "take a longer sheet: --thorough")),
    }
}
