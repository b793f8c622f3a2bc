//! The page beside a recording's ring: stream and clocks for programs that tap it.

use hairspring_ring::Producer;
use hairspring_ring::page::{ClockPage, PageFacts, PageMark, PagePair};
use hairspring_source::SourceDescription;

use hairspring_recording::channels::ChannelDescription;
use hairspring_recording::clock::ClockNote;
use hairspring_recording::journal::RecordingId;

/// Describes the stream on the page; returns the page for its clocks.
pub(super) fn state(
    producer: &mut Producer,
    description: &SourceDescription,
    id: RecordingId,
    channels: &[ChannelDescription],
) -> Option<ClockPage> {
    // Absent means unknown: a page without text has channels without descriptions.
    let text = if channels.is_empty() { None } else { serde_json::to_string(channels).ok() };
    let text = text.unwrap_or_default();
    producer.state(&PageFacts { id: id.0, layout: description.layout, rate: description.rate, text });
    producer.take_clock_page()
}

/// Enters a finding of the source's thread about time. Real-time safe.
pub(super) fn note(page: &mut ClockPage, note: &ClockNote) {
    match *note {
        ClockNote::Pair(pair) => {
            page.pair(PagePair { monotonic: pair.monotonic, realtime: pair.realtime, within: pair.within });
        }
        ClockNote::Mark(mark) => {
            page.mark(PageMark { frame: mark.frame, earliest: mark.earliest, latest: mark.latest });
        }
        // The mark of frame 0 follows; the sender's counter only matters when a series is resumed. An external clock
        // belongs to the recording.
        ClockNote::Frame0(..) | ClockNote::Count(_) | ClockNote::External(_) | ClockNote::ExternalSilence(_) => {}
    }
}
